//! Whoever is measured: a process of its own, so that its memory is its own and it can be killed.

use std::io::BufRead as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Longest that a start is waited for.
const READY_WITHIN: Duration = Duration::from_secs(120);

/// This program in another role, until dropped.
pub struct Process {
    child: Child,
    /// Where it answers.
    pub address: SocketAddr,
    /// From its start to its word that it answers.
    pub ready_after: Duration,
}

impl Process {
    /// A program that serves as a conductor (`upbeat serve`, or another role that takes the same settings) on a database, with
    /// settings `section.key=value` on top; its token key is in the folder.
    ///
    /// # Errors
    /// Why it does not start, with what it logged last.
    pub async fn conductor(
        role: &[&str],
        folder: &Path,
        database: &str,
        settings: &[String],
    ) -> Result<Process, String> {
        let key = folder.join("token.key");
        let mut arguments: Vec<String> = role.iter().map(|&word| word.to_owned()).collect();
        let usual = [
            format!("database.url={database}"),
            format!("agent.token_key_file={}", key.display()),
            "api.listen=127.0.0.1:0".to_owned(),
            "agent.callback_networks=127.0.0.0/8".to_owned(),
            "agent.require_tls=false".to_owned(),
            "log.format=json".to_owned(),
        ];
        for setting in usual.iter().chain(settings) {
            arguments.extend(["--set".to_owned(), setting.clone()]);
        }
        Process::start(arguments).await
    }

    /// The bare handler.
    ///
    /// # Errors
    /// Why it does not start.
    pub async fn roof() -> Result<Process, String> {
        Process::start(vec!["bench".to_owned(), "--as-bare-handler".to_owned()]).await
    }

    async fn start(arguments: Vec<String>) -> Result<Process, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let began = Instant::now();
        let mut child = Command::new(program)
            .args(&arguments)
            .env_remove("UPBEAT_CONFIG")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", arguments.join(" ")))?;
        let log = child.stderr.take().ok_or("a process without a log")?;
        let (tell, told) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || {
            let mut tell = Some(tell);
            let mut last = String::new();
            for line in std::io::BufReader::new(log).lines().map_while(Result::ok) {
                if tell.is_some() {
                    match (address_in(&line), tell.take()) {
                        // Whoever waited may have given up.
                        (Some(address), Some(waiting)) => drop(waiting.send(Ok(address))),
                        (_, waiting) => tell = waiting,
                    }
                    last = line;
                }
            }
            if let Some(tell) = tell {
                let _ = tell.send(Err(format!(
                    "it ended before it was ready; its last line: {last}"
                )));
            }
        });
        let address = match tokio::time::timeout(READY_WITHIN, told).await {
            Ok(Ok(Ok(address))) => address,
            Ok(Ok(Err(why))) => return Err(why),
            Ok(Err(_)) | Err(_) => {
                // It may have ended already.
                let _ = child.kill();
                let _ = child.wait();
                return Err("it was not ready in time".to_owned());
            }
        };
        Ok(Process {
            child,
            address,
            ready_after: began.elapsed(),
        })
    }

    /// Resident memory in bytes.
    pub fn resident(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with("VmRSS:"));
        let kb = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
        kb.unwrap_or(0) * 1024
    }

    /// Processor time it has used.
    pub fn processor_time(&self) -> Duration {
        processor_time_of(self.child.id())
    }

    /// One metric; 0 if there is none of this name with these labels.
    ///
    /// # Errors
    /// They can't be read.
    pub async fn metric(&self, name: &str) -> Result<f64, String> {
        let url = format!("http://{}/metrics", self.address);
        let answer = reqwest::get(url).await.map_err(|error| error.to_string())?;
        let text = answer.text().await.map_err(|error| error.to_string())?;
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        Ok(value.and_then(|value| value.parse().ok()).unwrap_or(0.0))
    }

    /// Waits until a metric is as wished; returns after how long.
    ///
    /// # Errors
    /// It does not become so in time.
    pub async fn until(
        &self,
        name: &str,
        within: Duration,
        wished: impl Fn(f64) -> bool,
    ) -> Result<Duration, String> {
        let began = Instant::now();
        loop {
            let value = self.metric(name).await?;
            if wished(value) {
                return Ok(began.elapsed());
            }
            if began.elapsed() > within {
                return Err(format!("{name} stays at {value}"));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// SIGKILL: nothing is put in order.
    pub fn kill(mut self) {
        self.end_at_once();
    }

    /// SIGTERM, and waits for its end.
    pub async fn stop(mut self) {
        let pid = Pid::from_child(&self.child);
        if kill_process(pid, Signal::TERM).is_err() {
            return;
        }
        while matches!(self.child.try_wait(), Ok(None)) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    fn end_at_once(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end_at_once();
    }
}

/// Processor time a process has used.
pub fn processor_time_of(process: u32) -> Duration {
    const TICKS_PER_S: u64 = 100;
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // Behind the name, which may hold anything: state, then numbers.
    let numbers: Vec<&str> = text
        .rsplit_once(')')
        .map_or(Vec::new(), |(_, rest)| rest.split_whitespace().collect());
    let of = |index: usize| numbers.get(index).and_then(|text| text.parse::<u64>().ok());
    let ticks = of(11).unwrap_or(0) + of(12).unwrap_or(0);
    Duration::from_millis(ticks * 1_000 / TICKS_PER_S)
}

/// The address in the log line `ready`.
fn address_in(line: &str) -> Option<SocketAddr> {
    let line: Value = serde_json::from_str(line).ok()?;
    let fields = line.get("fields").unwrap_or(&line);
    if fields.get("message")? != "ready" {
        return None;
    }
    fields.get("address")?.as_str()?.parse().ok()
}
