//! What the demo is told, what it needs, and how it can end.
//!
//! The command line fills [`DemoOptions`]; whoever can start a conductor implements [`StartConductor`]; `run` uses both.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::ExitCode;
use std::time::Duration;

use crate::driver::PowerHook;

const NODES_MAX: usize = 10_000;

/// What the user chose.
#[derive(Debug, Clone, clap::Args)]
pub struct DemoOptions {
    /// How many machines to deploy.
    #[arg(long, default_value = "10", value_parser = parse_nodes)]
    pub nodes: usize,
    /// End when all are deployed: with 0 if all ended as expected, with 1 otherwise.
    #[arg(long)]
    pub once: bool,
    /// Address and port of the conductor's API; a free port on 127.0.0.1 unless given.
    #[arg(long)]
    pub listen: Option<SocketAddr>,
}

fn parse_nodes(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(nodes) if (1..=NODES_MAX).contains(&nodes) => Ok(nodes),
        _ => Err(format!("give a number of machines from 1 to {NODES_MAX}")),
    }
}

/// How the demo's conductor must be set up. Besides: agents may have addresses in 127.0.0.0/8, and no credentials are
/// asked for.
#[derive(Clone)]
pub struct ConductorSettings {
    /// An empty directory for the database, removed at the end.
    pub state_dir: PathBuf,
    /// Where the API listens; port 0 means any free one.
    pub listen: SocketAddr,
    /// Given to agents at look-up; they heartbeat after 0.3 to 0.6 of it.
    pub heartbeat_timeout: Duration,
    /// How long an agent may be silent before its deploy fails.
    pub silence_timeout: Duration,
    /// How often a running command is asked for.
    pub command_poll_interval: Duration,
    /// To be called at each power change of a `fake-hardware` node.
    pub power_hook: PowerHook,
}

/// A conductor that answers at `api_url`.
pub struct RunningConductor {
    /// `http://127.0.0.1:6385`, without `/v1`.
    pub api_url: String,
    /// Stops it and waits for its end.
    pub stop: Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = ()>>>>,
}

/// Starts a conductor in this process. It must not catch signals: the demo waits for Ctrl-C.
pub trait StartConductor {
    /// Returns when the API answers.
    ///
    /// # Errors
    /// A text for the user.
    fn start(
        &self,
        settings: ConductorSettings,
    ) -> impl Future<Output = Result<RunningConductor, String>>;
}

/// How the demo ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DemoEnd {
    /// Every node ended as it should.
    AsExpected,
    /// At least one node did not.
    Unexpected,
    /// Ctrl-C before the last deploy had ended.
    Interrupted,
}

impl From<DemoEnd> for ExitCode {
    fn from(end: DemoEnd) -> Self {
        match end {
            DemoEnd::AsExpected => Self::SUCCESS,
            DemoEnd::Unexpected => Self::FAILURE,
            DemoEnd::Interrupted => Self::from(130),
        }
    }
}

/// Why the demo could not be held.
#[derive(Debug)]
pub enum DemoError {
    /// The temporary directory for the database.
    StateDir(std::io::Error),
    /// More open files are needed than the system allows.
    OpenFiles {
        /// For this many machines.
        needed: u64,
        /// The hard limit.
        allowed: u64,
    },
    /// The conductor did not start.
    Conductor(String),
    /// A request to the API failed.
    Api(String),
}

impl fmt::Display for DemoError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StateDir(error) => {
                write!(
                    formatter,
                    "no temporary directory for the database: {error}; set TMPDIR to a writable one"
                )
            }
            Self::OpenFiles { needed, allowed } => write!(
                formatter,
                "this many machines need about {needed} open files and the system allows {allowed}; \
                 ask for fewer with --nodes or raise the hard limit (ulimit -Hn)"
            ),
            Self::Conductor(text) => write!(formatter, "the conductor did not start: {text}"),
            Self::Api(text) => formatter.write_str(text),
        }
    }
}

impl std::error::Error for DemoError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::StateDir(error) => Some(error),
            Self::OpenFiles { .. } | Self::Conductor(_) | Self::Api(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_nodes_is_checked() {
        assert_eq!(parse_nodes("1000"), Ok(1000));
        assert!(
            parse_nodes("0").is_err() && parse_nodes("-1").is_err() && parse_nodes("x").is_err()
        );
    }
}
