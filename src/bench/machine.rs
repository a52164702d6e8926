//! What figures were measured on.

use serde::Serialize;

use super::place;

/// A machine and what runs on it.
#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    /// Processor cores this process may use; the load generator shares them with whoever is measured.
    pub cores: usize,
    /// The processor's name.
    pub processor: String,
    /// Memory in MB.
    pub memory_mb: u64,
    /// The operating system's kernel.
    pub kernel: String,
    /// Upbeat's version.
    pub upbeat: &'static str,
    /// The version of SQLite that is linked.
    pub sqlite: String,
    /// The version of the PostgreSQL server, if one was named.
    pub postgresql: Option<String>,
    /// Whether the compiler optimised.
    pub is_optimised: bool,
    /// How many processes wanted a processor in the last minute, this one not yet among them.
    pub load_before: f64,
}

impl Machine {
    /// This one, with the PostgreSQL server at this address, if any.
    ///
    /// # Errors
    /// The server can't be asked.
    pub fn here(server: Option<&str>) -> Result<Machine, String> {
        let first_number =
            |text: String| text.split_whitespace().find_map(|word| word.parse().ok());
        Ok(Machine {
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            processor: after("/proc/cpuinfo", "model name")
                .unwrap_or_else(|| "unknown processor".to_owned()),
            memory_mb: after("/proc/meminfo", "MemTotal")
                .and_then(first_number)
                .map_or(0, |kb: u64| kb / 1024),
            kernel: read("/proc/sys/kernel/osrelease"),
            upbeat: env!("CARGO_PKG_VERSION"),
            sqlite: place::sqlite_version()?,
            postgresql: server.map(place::server_version).transpose()?,
            is_optimised: !cfg!(debug_assertions),
            load_before: read("/proc/loadavg")
                .split(' ')
                .next()
                .and_then(|load| load.parse().ok())
                .unwrap_or(0.0),
        })
    }

    /// One line of it.
    pub fn line(&self) -> String {
        let build = if self.is_optimised {
            "optimised build"
        } else {
            "unoptimised build, so the figures mean nothing"
        };
        let database = match &self.postgresql {
            Some(version) => format!("PostgreSQL {version}"),
            None => format!("SQLite {}", self.sqlite),
        };
        format!(
            "machine: {} cores, {}, {} MB, Linux {}, load before {:.2}; upbeat {}, {build}; {database}",
            self.cores, self.processor, self.memory_mb, self.kernel, self.load_before, self.upbeat
        )
    }
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path)
        .map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
}

/// The value of the first line of this name in a file of lines `name: value`.
fn after(path: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
