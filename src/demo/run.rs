//! `upbeat demo`: a conductor, a fleet, and what becomes of them.
//!
//! Called by the command line, with a way to start a conductor in this process. Everything the demo does to nodes goes
//! through the public HTTP API (`client`); everything it knows about machines comes from their journals. It never
//! looks into the conductor.
//!
//! Three of the machines misbehave: one writes slowly (longer than the conductor lets an agent be silent, which must
//! not matter as long as it heartbeats), one loses the reply to its most important command (which must not run twice),
//! one dies while it writes (which must be noticed).

use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use tokio::time::Instant;

use super::client::{Client, MICROVERSION, Seen};
use super::faults::{Faults, WriteWhenLost};
use super::fleet::{Fleet, FleetOptions, PowerHook};
use super::journal::Journal;
use super::report::{self, Progress, Row};

const NODES_MAX: usize = 10_000;
/// Nodes that are being enrolled at the same time.
const ENROLLING_MAX: usize = 32;
const LIST_INTERVAL: Duration = Duration::from_millis(500);
/// Above this many nodes everything is paced for two busy cores.
const FEW_NODES: usize = 50;
const FILES_PER_NODE: u64 = 8;
const FILES_BASE: u64 = 256;

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

/// How the demo's conductor must be set up.
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
    AsExpected,
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
    OpenFiles { needed: u64, allowed: u64 },
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Behaviour {
    Healthy,
    WritesSlowly,
    LosesReply,
    Dies,
}

impl Behaviour {
    /// The misbehaving machines come first, because they take longest; fewer than four nodes hold fewer of them.
    fn of(number: usize, nodes: usize) -> Self {
        match (number, nodes) {
            (1, 2..) => Self::WritesSlowly,
            (2, 3..) => Self::LosesReply,
            (3, 4..) => Self::Dies,
            _ => Self::Healthy,
        }
    }

    fn describe(self) -> &'static str {
        match self {
            Self::Healthy => "healthy",
            Self::WritesSlowly => "writes slowly",
            Self::LosesReply => "loses the reply to write_image",
            Self::Dies => "dies while it writes",
        }
    }

    fn expected(self) -> &'static str {
        match self {
            Self::Healthy | Self::WritesSlowly | Self::LosesReply => "active",
            Self::Dies => "deploy failed",
        }
    }

    fn faults(self, silence_timeout: Duration) -> Faults {
        match self {
            Self::Healthy => Faults::none(),
            Self::WritesSlowly => Faults::none().slow_write(silence_timeout.mul_f64(1.2)),
            Self::LosesReply => Faults::none().loses_first_reply(WriteWhenLost::StillRunning),
            Self::Dies => Faults::none().dies_during_write(),
        }
    }
}

/// One node of the demo.
struct DemoNode {
    name: String,
    mac: String,
    behaviour: Behaviour,
    progress: Mutex<DeployProgress>,
}

#[derive(Default)]
struct DeployProgress {
    enrolled: Option<(String, Instant)>,
    enrol_error: Option<String>,
    seen: Option<Seen>,
    over_at: Option<Instant>,
}

impl DemoNode {
    fn new(number: usize, nodes: usize) -> Self {
        Self {
            name: format!("demo-{number:04}"),
            mac: format!(
                "52:54:00:{:02x}:{:02x}:{:02x}",
                number >> 16 & 0xff,
                number >> 8 & 0xff,
                number & 0xff
            ),
            behaviour: Behaviour::of(number, nodes),
            progress: Mutex::default(),
        }
    }

    fn progress(&self) -> std::sync::MutexGuard<'_, DeployProgress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        let progress = self.progress();
        progress.over_at.is_some() || progress.enrol_error.is_some()
    }

    fn row(&self, journal: &Journal) -> Row {
        let progress = self.progress();
        let error = progress
            .seen
            .as_ref()
            .and_then(|seen| seen.last_error.clone());
        Row {
            name: self.name.clone(),
            behaviour: self.behaviour.describe(),
            is_special: self.behaviour != Behaviour::Healthy,
            expected: self.behaviour.expected(),
            ended_as: match (&progress.enrol_error, &progress.seen) {
                (Some(_), None) => "not enrolled".to_owned(),
                (_, Some(seen)) => seen.provision_state.clone(),
                (None, None) => "unknown".to_owned(),
            },
            took: progress
                .over_at
                .zip(progress.enrolled.as_ref())
                .map(|(over_at, (_, asked_at))| over_at - *asked_at),
            why: progress.enrol_error.clone().or(error).unwrap_or_default(),
            writes: journal.writes_started.len(),
        }
    }
}

/// Holds the demo. Prints to standard output.
///
/// # Errors
/// If it cannot be held; deploys that end otherwise than expected are no error but [`DemoEnd::Unexpected`].
pub async fn run(options: DemoOptions, start: &impl StartConductor) -> Result<DemoEnd, DemoError> {
    println!(
        "Upbeat demo: {} simulated machines on loopback. Starting the conductor ...",
        options.nodes
    );
    allow_open_files(options.nodes)?;
    let state_dir = tempfile::Builder::new()
        .prefix("upbeat-demo-")
        .tempdir()
        .map_err(DemoError::StateDir)?;
    let fleet = Arc::new(OnceLock::<Fleet>::new());
    let settings = settings(&options, state_dir.path().to_owned(), power_hook(&fleet));
    let silence_timeout = settings.silence_timeout;
    let conductor = start.start(settings).await.map_err(DemoError::Conductor)?;
    let machines = fleet.get_or_init(|| Fleet::new(&conductor.api_url, FleetOptions::default()));

    let end = hold(&options, &conductor.api_url, machines, silence_timeout).await;
    if !matches!(end, Ok(DemoEnd::Interrupted) | Err(_)) && !options.once {
        println!("\nThe conductor and its machines stay up. Ctrl-C ends the demo.");
        wait_for_interrupt().await;
    }
    machines.stop().await;
    (conductor.stop)().await;
    end
}

async fn hold(
    options: &DemoOptions,
    api_url: &str,
    fleet: &Fleet,
    silence_timeout: Duration,
) -> Result<DemoEnd, DemoError> {
    let api_url = api_url.trim_end_matches('/');
    println!("API      {api_url}/\nMetrics  {api_url}/metrics");
    println!("Try      {}\n", example(api_url));
    let client = Client::new(api_url)?;
    let nodes: Vec<DemoNode> = (1..=options.nodes)
        .map(|number| DemoNode::new(number, options.nodes))
        .collect();
    for node in &nodes {
        fleet.add(&*node.mac, node.behaviour.faults(silence_timeout));
    }

    let started_at = Instant::now();
    let deadline = started_at
        + Duration::from_secs(60)
        + silence_timeout
        + Duration::from_millis(100) * options.nodes as u32;
    let mut progress = Progress::new(options.nodes);
    let is_interrupted = tokio::select! {
        ((), followed) = async { tokio::join!(enrol_all(&client, &nodes), follow(&client, &nodes, started_at, deadline, &mut progress)) } => {
            followed?;
            false
        }
        () = wait_for_interrupt() => true,
    };
    progress.end();
    if is_interrupted {
        println!("\nInterrupted.");
        return Ok(DemoEnd::Interrupted);
    }

    let last_over_at = nodes
        .iter()
        .filter_map(|node| node.progress().over_at)
        .max();
    let total = last_over_at.map_or(started_at.elapsed(), |over_at| over_at - started_at);
    let journals: Vec<Journal> = nodes.iter().map(|node| fleet.journal(&node.mac)).collect();
    let rows: Vec<Row> = nodes
        .iter()
        .zip(&journals)
        .map(|(node, journal)| node.row(journal))
        .collect();
    let odd = rows.iter().filter(|row| !row.is_as_expected()).count();
    println!(
        "\n{}\n\n{}",
        report::table(&rows),
        report::numbers(&rows, &journals, total)
    );
    if odd == 0 {
        println!("\nAll {} nodes ended as expected.", rows.len());
        Ok(DemoEnd::AsExpected)
    } else {
        println!(
            "\n{odd} of {} nodes did not end as expected; they are marked (!).",
            rows.len()
        );
        Ok(DemoEnd::Unexpected)
    }
}

async fn enrol_all(client: &Client, nodes: &[DemoNode]) {
    stream::iter(nodes)
        .for_each_concurrent(ENROLLING_MAX, async |node| {
            let enrolled = client.enrol(&node.name, &node.mac).await;
            let mut progress = node.progress();
            match enrolled {
                Ok(uuid) => progress.enrolled = Some((uuid, Instant::now())),
                Err(error) => progress.enrol_error = Some(error.to_string()),
            }
        })
        .await;
}

/// Lists the nodes until all deploys are over or the deadline has passed.
async fn follow(
    client: &Client,
    nodes: &[DemoNode],
    started_at: Instant,
    deadline: Instant,
    shown: &mut Progress,
) -> Result<(), DemoError> {
    let mut ticks = tokio::time::interval(LIST_INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let listed_at = Instant::now();
        let list = client.list().await?;
        let mut states = BTreeMap::<String, usize>::new();
        for node in nodes {
            let mut progress = node.progress();
            let Some((uuid, asked_at)) = progress.enrolled.clone() else {
                continue;
            };
            // A list that was asked for before the deploy was may show the past.
            if let Some(seen) = list.get(&uuid).filter(|_| listed_at > asked_at) {
                if seen.is_over() && progress.over_at.is_none() {
                    progress.over_at = Some(listed_at);
                }
                progress.seen = Some(seen.clone());
            }
        }
        for seen in list.values() {
            *states.entry(seen.provision_state.clone()).or_default() += 1;
        }
        let over = nodes.iter().filter(|node| node.is_over()).count();
        shown.show(
            over,
            started_at.elapsed(),
            &states.into_iter().collect::<Vec<_>>(),
        );
        if over == nodes.len() || Instant::now() > deadline {
            return Ok(());
        }
    }
}

fn settings(options: &DemoOptions, state_dir: PathBuf, power_hook: PowerHook) -> ConductorSettings {
    let is_small = options.nodes <= FEW_NODES;
    let seconds =
        |small: u64, large: u64| Duration::from_secs(if is_small { small } else { large });
    ConductorSettings {
        state_dir,
        listen: options.listen.unwrap_or((Ipv4Addr::LOCALHOST, 0).into()),
        heartbeat_timeout: seconds(3, 10),
        silence_timeout: seconds(5, 15),
        command_poll_interval: Duration::from_millis(if is_small { 250 } else { 1000 }),
        power_hook,
    }
}

/// The hook is needed before the fleet can exist, because the fleet must know the API's address; no node exists until
/// both do.
fn power_hook(fleet: &Arc<OnceLock<Fleet>>) -> PowerHook {
    let fleet = fleet.clone();
    Arc::new(move |_node_uuid, macs, on| {
        if let Some(fleet) = fleet.get() {
            for mac in macs {
                fleet.power(mac, on);
            }
        }
    })
}

fn example(api_url: &str) -> String {
    format!(
        "curl -s -H 'X-OpenStack-Ironic-API-Version: {MICROVERSION}' \
         '{api_url}/v1/nodes?fields=name,provision_state,last_error'"
    )
}

/// Raises this process's limit of open files if need be.
fn allow_open_files(nodes: usize) -> Result<(), DemoError> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let needed = FILES_BASE + FILES_PER_NODE * nodes as u64;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let allowed = maximum.unwrap_or(u64::MAX);
    let raised = Rlimit {
        current: Some(needed),
        maximum,
    };
    if allowed < needed || setrlimit(Resource::Nofile, raised).is_err() {
        return Err(DemoError::OpenFiles {
            needed,
            allowed: current.unwrap_or(allowed).max(allowed),
        });
    }
    Ok(())
}

/// Waits for Ctrl-C, or for the signal that service managers send.
async fn wait_for_interrupt() {
    use tokio::signal::unix::{SignalKind, signal};
    let signals = signal(SignalKind::interrupt())
        .and_then(|interrupt| Ok((interrupt, signal(SignalKind::terminate())?)));
    match signals {
        Ok((mut interrupt, mut terminate)) => tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        },
        Err(error) => {
            tracing::warn!(%error, "Ctrl-C cannot be waited for");
            std::future::pending().await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_nodes_hold_only_as_many_faults_as_fit() {
        let special = |nodes: usize| {
            (1..=nodes)
                .filter(|number| Behaviour::of(*number, nodes) != Behaviour::Healthy)
                .count()
        };
        assert_eq!([1, 2, 3, 4, 10].map(special), [0, 1, 2, 3, 3]);
    }

    #[test]
    fn the_slow_machine_writes_longer_than_an_agent_may_be_silent() {
        let silence = Duration::from_secs(5);
        assert_eq!(
            Behaviour::WritesSlowly.faults(silence),
            Faults::none().slow_write(Duration::from_secs(6))
        );
    }

    #[test]
    fn the_number_of_nodes_is_checked() {
        assert_eq!(parse_nodes("1000"), Ok(1000));
        assert!(
            parse_nodes("0").is_err() && parse_nodes("-1").is_err() && parse_nodes("x").is_err()
        );
    }
}
