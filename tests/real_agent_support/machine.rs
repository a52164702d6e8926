//! A machine: a MAC address, a disk that is a file, and the real agent when it
//! is switched on.

use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{eventually, free_port, harness, tail};

/// What the harness ends with when the agent was told to power off.
const EXIT_POWERED_OFF: i32 = 21;

const SECTOR: u64 = 512;

/// The harness's own choice where a test makes none.
const DISK_BYTES: u64 = 5 << 30;

const LEFTOVER: &[u8] = b"what the last user left";
const LEFTOVER_AT: u64 = 1 << 20;

static MACHINES_MADE: AtomicU16 = AtomicU16::new(1);

/// A machine that is off; its disk lasts as long as it does.
pub struct Machine {
    pub mac: String,
    /// The agent serves HTTPS with a certificate of its own.
    pub tls: bool,
    /// Of the disk; `None`: 5 GiB, large enough to be chosen without a hint.
    disk_mib: Option<u64>,
    folder: TempDir,
}

impl Machine {
    pub fn new() -> Machine {
        let number = MACHINES_MADE.fetch_add(1, Ordering::Relaxed);
        let [high, low] = number.to_be_bytes();
        Machine {
            mac: format!("52:54:00:00:{high:02x}:{low:02x}"),
            tls: false,
            disk_mib: None,
            folder: tempfile::tempdir().expect("a temporary folder"),
        }
    }

    pub fn with_tls() -> Machine {
        Machine {
            tls: true,
            ..Machine::new()
        }
    }

    /// A machine whose disk the agent takes only because of a root device hint.
    pub fn with_small_disk(disk_mib: u64) -> Machine {
        Machine {
            disk_mib: Some(disk_mib),
            ..Machine::new()
        }
    }

    /// A machine somebody has used before: its disk has a GPT, and a partition that begins with [`LEFTOVER`].
    pub fn used() -> Machine {
        let machine = Machine::new();
        std::fs::create_dir(machine.workdir()).expect("a folder for the agent");
        // The harness takes a folder it finds for its own only with this in it.
        std::fs::write(machine.workdir().join("machine.json"), "{}").expect("a plain file");
        let path = machine.workdir().join("disk.img");
        let disk = std::fs::File::create_new(&path).expect("a disk");
        disk.set_len(DISK_BYTES).expect("a sparse file");
        let made = Command::new("parted")
            .arg("--script")
            .arg(&path)
            .args(["mklabel", "gpt", "mkpart", "data", "1MiB", "8MiB"])
            .output();
        assert!(made.expect("parted starts").status.success());
        disk.write_all_at(LEFTOVER, LEFTOVER_AT)
            .expect("a plain file");
        machine
    }

    /// Whether the disk has a GPT: the one at its beginning, and the copy at its end.
    pub fn partition_tables(&self) -> [bool; 2] {
        [SECTOR, DISK_BYTES - SECTOR].map(|at| self.disk(at, 8) == b"EFI PART")
    }

    /// Whether what its last user wrote is still there.
    pub fn has_leftover(&self) -> bool {
        self.disk(LEFTOVER_AT, LEFTOVER.len()) == LEFTOVER
    }

    /// What the harness or its agent wrote into a file of that name.
    pub fn file(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.workdir().join(name)).ok()
    }

    /// What a node has to say about this machine.
    pub fn properties(&self) -> Value {
        let mut properties = json!({"cpu_arch": "x86_64", "capabilities": "boot_mode:bios"});
        if self.disk_mib.is_some() {
            let serial = format!("file-{}", self.mac.replace(':', ""));
            properties["root_device"] = json!({"serial": serial});
        }
        properties
    }

    /// Switches it on: the agent starts and looks itself up.
    pub fn boot(&self, api_url: &str) -> Agent {
        self.boot_with(api_url, &[])
    }

    /// The same, with more options of the harness.
    pub fn boot_with(&self, api_url: &str, options: &[&str]) -> Agent {
        let port = free_port();
        let mut command = Command::new(harness().join("run"));
        command
            .args(["--api-url", api_url, "--mac", &self.mac])
            .args(["--port", &port.to_string()])
            .arg("--workdir")
            .arg(self.workdir())
            .args(options);
        if let Some(size) = self.disk_mib {
            command.args(["--disk-size", &format!("{size}M")]);
        }
        if self.tls {
            command.arg("--tls");
        }
        let console = self.folder.path().join("console.log");
        let output = std::fs::File::create(&console).expect("the console log is made");
        let process = command
            .stdin(Stdio::null())
            .stdout(output.try_clone().expect("one log for both streams"))
            .stderr(output)
            .spawn()
            .expect("the harness starts");
        Agent {
            port,
            process,
            console,
            log: self.workdir().join("agent.log"),
        }
    }

    /// The first bytes of the disk.
    pub fn disk(&self, offset: u64, length: usize) -> Vec<u8> {
        let mut disk = std::fs::File::open(self.workdir().join("disk.img")).expect("a disk");
        let mut bytes = vec![0; length];
        disk.seek(SeekFrom::Start(offset)).expect("a plain file");
        disk.read_exact(&mut bytes).expect("a disk of that size");
        bytes
    }

    /// Where the MBR says that primary partition `number` begins, in bytes;
    /// `None` if there is no such partition.
    pub fn partition_start(&self, number: usize) -> Option<u64> {
        let mbr = self.disk(0, SECTOR as usize);
        let entry = &mbr[430 + 16 * number..446 + 16 * number];
        let start = u32::from_le_bytes(entry[8..12].try_into().expect("four bytes"));
        (entry[4] != 0).then_some(u64::from(start) * SECTOR)
    }

    fn workdir(&self) -> PathBuf {
        self.folder.path().join("agent")
    }
}

/// A running agent; ended when dropped, as by switching the machine off.
pub struct Agent {
    /// Where its API listens; it advertises the same unless an option says otherwise.
    pub port: u16,
    process: Child,
    /// What the harness says, the agent too before it has a log.
    console: PathBuf,
    log: PathBuf,
}

impl Agent {
    /// Waits for the end of the process; answers its exit code.
    pub async fn ended(&mut self) -> Option<i32> {
        let process = &mut self.process;
        let status = eventually("the agent to end", async || {
            process.try_wait().expect("a child of this test")
        });
        status.await.code()
    }

    /// The conductor has told the agent to power its machine off.
    pub async fn was_powered_off(&mut self) {
        assert_eq!(self.ended().await, Some(EXIT_POWERED_OFF));
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // The process is the sandbox itself: nothing in it outlives it.
        let _ = self.process.kill();
        let _ = self.process.wait();
        if std::thread::panicking() {
            // Its other lines show tokens.
            let trouble = |line: &str| line.contains(" WARNING ") || line.contains(" ERROR ");
            let (console, log) = (tail(&self.console, |_| true), tail(&self.log, trouble));
            println!("--- the agent's console\n{console}");
            println!("--- trouble in the agent's log\n{log}");
        }
    }
}
