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
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use crate::driver::PowerHook;

use super::client::{Client, MICROVERSION, Seen};
use super::faults::{Faults, WriteWhenLost};
use super::fleet::{Fleet, FleetOptions};
use super::journal::Journal;
use super::report::{self, Progress, Row};
use super::setup::{ConductorSettings, DemoEnd, DemoError, DemoOptions, StartConductor};

/// Nodes that are being enrolled at the same time.
const ENROLLING_MAX: usize = 32;
/// Deploys that run at the same time, so that a slow or busy computer needs longer instead of missing deadlines.
const DEPLOYING_MAX: usize = 200;
const LIST_INTERVAL: Duration = Duration::from_millis(500);
/// Above this many nodes everything is paced for two busy cores.
const FEW_NODES: usize = 50;
const FILES_PER_NODE: u64 = 8;
const FILES_BASE: u64 = 256;

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
        // Without the heartbeat that agents send when a command ends, the conductor has to find out by itself.
        let healthy = Faults::none().drops_forced_heartbeats();
        match self {
            Self::Healthy => healthy,
            Self::WritesSlowly => healthy.slow_write(silence_timeout.mul_f64(1.1)),
            Self::LosesReply => healthy.loses_first_reply(WriteWhenLost::StillRunning),
            Self::Dies => healthy.dies_during_write(),
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
    /// Held while the deploy runs.
    permit: Option<OwnedSemaphorePermit>,
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
            why: progress
                .enrol_error
                .clone()
                .or(error)
                .unwrap_or_else(|| match progress.over_at {
                    Some(_) => String::new(),
                    None => where_the_machine_is(journal),
                }),
            writes: journal.writes_started.len(),
        }
    }
}

/// For a node that is stuck without an error: where its machine is.
fn where_the_machine_is(journal: &Journal) -> String {
    let command = journal.commands.last();
    let command = command.map_or("no command came".to_owned(), |command| {
        format!("the last command was {}, {}", command.name, command.status)
    });
    let heartbeat = journal
        .heartbeats
        .last()
        .map_or("no heartbeat".to_owned(), |heartbeat| {
            let answer = heartbeat
                .status
                .map_or("nothing".to_owned(), |status| status.to_string());
            let ago = heartbeat.sent_at.elapsed().as_secs();
            format!("the last heartbeat, {ago} s ago, was answered with {answer}")
        });
    let refused = journal.refusals.last().map_or(String::new(), |refusal| {
        format!("; {} was refused with {}", refusal.name, refusal.status)
    });
    format!("at the machine: {command}; {heartbeat}{refused}")
}

/// Holds the demo. Prints to standard output.
///
/// # Errors
/// If it cannot be held; deploys that end otherwise than expected are no error but [`DemoEnd::Unexpected`].
pub async fn run(options: DemoOptions, start: &impl StartConductor) -> Result<DemoEnd, DemoError> {
    report::say(format_args!(
        "Upbeat demo: {} simulated machines on loopback. Starting the conductor ...",
        options.nodes
    ));
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
        report::say(format_args!(
            "\nThe conductor and its machines stay up. Ctrl-C ends the demo."
        ));
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
    report::say(format_args!(
        "API      {api_url}/\nMetrics  {api_url}/metrics"
    ));
    report::say(format_args!("Try      {}\n", example(api_url)));
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
        report::say(format_args!("\nInterrupted."));
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
    report::say(format_args!(
        "\n{}\n\n{}",
        report::table(&rows),
        report::numbers(&rows, &journals, total)
    ));
    if odd == 0 {
        report::say(format_args!(
            "\nAll {} nodes ended as expected.",
            rows.len()
        ));
        Ok(DemoEnd::AsExpected)
    } else {
        report::say(format_args!(
            "\n{odd} of {} nodes did not end as expected; they are marked (!).",
            rows.len()
        ));
        Ok(DemoEnd::Unexpected)
    }
}

async fn enrol_all(client: &Client, nodes: &[DemoNode]) {
    let deploying = Arc::new(Semaphore::new(DEPLOYING_MAX));
    stream::iter(nodes)
        .for_each_concurrent(ENROLLING_MAX, async |node| {
            let deployed = async {
                let uuid = client.enrol(&node.name, &node.mac).await?;
                let permit = deploying.clone().acquire_owned().await.ok();
                client.deploy(&uuid).await?;
                Ok::<_, DemoError>((uuid, permit))
            };
            let deployed = deployed.await;
            let mut progress = node.progress();
            match deployed {
                Ok((uuid, permit)) => {
                    progress.enrolled = Some((uuid, Instant::now()));
                    progress.permit = permit;
                }
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
                    progress.permit = None;
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
    Arc::new(move |_node_uuid, macs, to| {
        if let Some(fleet) = fleet.get() {
            for mac in macs {
                fleet.power(mac, to.is_on());
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
            Faults::none()
                .drops_forced_heartbeats()
                .slow_write(Duration::from_millis(5_500))
        );
    }

    #[test]
    fn a_node_that_is_stuck_is_described_by_its_machine() {
        let node = DemoNode::new(1, 1);
        let row = node.row(&Journal::default());
        assert_eq!(row.why, "at the machine: no command came; no heartbeat");
        assert!(!row.is_as_expected());
    }
}
