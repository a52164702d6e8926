//! `upbeat lab` as a process of its own: the program as it is started by a user, with machines behind every node.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

pub const USER: &str = "operator";
pub const PASSWORD: &str = "a-password-for-tests";

/// How operators prove who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auth {
    None,
    HttpBasic,
}

/// A running lab; it ends when this is dropped and leaves nothing behind.
pub struct Lab {
    /// Without `/v1`.
    pub url: String,
    process: Child,
    directory: TempDir,
}

impl Lab {
    /// Returns when the API answers.
    pub fn start(auth: Auth) -> Lab {
        let directory = tempfile::tempdir().unwrap();
        let log = std::fs::File::create(directory.path().join("log")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_upbeat"));
        command
            .args(["lab", "--listen", "127.0.0.1:0"])
            .env("TMPDIR", directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log);
        if auth == Auth::HttpBasic {
            let users = directory.path().join("htpasswd");
            // Quick to compute: these are only tests.
            let hash = bcrypt::hash(PASSWORD, 4).unwrap();
            std::fs::write(&users, format!("{USER}:{hash}\n")).unwrap();
            command
                .args(["--set", "api.auth=http_basic", "--set"])
                .arg(format!("api.htpasswd_file={}", users.display()));
        }
        let mut process = command.spawn().expect("the program starts");
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let url = loop {
            let Some(Ok(line)) = lines.next() else {
                let _ = process.wait();
                panic!("the lab did not start: {}", log_of(&directory));
            };
            if let Some((_, rest)) = line.split_once("The API answers at ") {
                let (url, _) = rest.split_once(". ").expect("a sentence ends there");
                break url.to_owned();
            }
        };
        // What else it says must not fill the pipe.
        std::thread::spawn(move || lines.count());
        Lab {
            url,
            process,
            directory,
        }
    }

    /// The end of its log, for those who look for the reason of a failure.
    pub fn log(&self) -> String {
        log_of(&self.directory)
    }
}

fn log_of(directory: &TempDir) -> String {
    let mut text = String::new();
    if let Ok(mut file) = std::fs::File::open(directory.path().join("log")) {
        let _ = file.read_to_string(&mut text);
    }
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(60)..].join("\n")
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
