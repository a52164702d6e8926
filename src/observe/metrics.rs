//! Every metric of the conductor: one struct, one field per metric.
//!
//! Fields are recorded where things happen and fetched together by [`Metrics::encode`]. Names follow
//! `upbeat_<thing>_<unit>_<total?>`; labels are words from closed lists, never a node's id. The library adds `_total` to counters
//! and `_info` to the build; the test below pins what comes out.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

/// The `Content-Type` of [`Metrics::encode`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A gauge of seconds.
pub type Seconds = Gauge<f64, AtomicU64>;

/// A gauge of things that can be counted.
pub type Count = Gauge;

/// What a heartbeat came to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OutcomeLabel {
    /// Word of the step's outcome.
    pub outcome: &'static str,
}

/// What happened to a node.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct EventLabel {
    /// Word of the event.
    pub event: &'static str,
}

/// Where nodes stand.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ProvisionStateLabel {
    /// As on the wire.
    pub provision_state: &'static str,
}

/// Which command, and how it ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct CommandLabel {
    /// Full name, for example `deploy.execute_deploy_step`.
    pub command: &'static str,
    /// How it ended.
    pub outcome: &'static str,
}

/// Which command.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct CommandNameLabel {
    /// Full name, for example `deploy.execute_deploy_step`.
    pub command: &'static str,
}

/// Which command, and how it was found out what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ResolutionLabel {
    /// Full name, for example `deploy.execute_deploy_step`.
    pub command: &'static str,
    /// `found`, `never_arrived`, `refused`, `instance_lost` or `given_up`.
    pub resolution: &'static str,
}

/// Which kind of deadline.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct DeadlineLabel {
    /// `liveness`, `step`, `driver` or `look`.
    pub deadline: &'static str,
}

/// Which kind of queue.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct QueueLabel {
    /// `deploy`, `clean` or `image_host`.
    pub queue: &'static str,
}

/// Which kind of actor was restarted, and why.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RestartLabel {
    /// Kind of actor, for example `node`.
    pub actor: &'static str,
    /// For example `panic`.
    pub cause: &'static str,
}

/// Which requests, and how they were answered.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RequestLabel {
    /// HTTP method; methods nobody routes are one word together.
    pub method: &'static str,
    /// The route's pattern, for example `/v1/nodes/{node_ident}`; paths nobody routes are one word together.
    pub route: &'static str,
    /// Status code.
    pub code: u16,
}

/// Which requests.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RouteLabel {
    /// See [`RequestLabel::route`].
    pub route: &'static str,
}

type Histograms<Label> = Family<Label, Histogram, fn() -> Histogram>;

/// All metrics. Shared by reference or `Arc`; recording needs no lock worth speaking of.
pub struct Metrics {
    registry: Registry,
    /// `upbeat_heartbeats_total{outcome}`: heartbeats received.
    pub heartbeats: Family<OutcomeLabel, Counter>,
    /// `upbeat_steps_seconds{event}`: how long a node's step took, without its commit.
    pub steps_seconds: Histograms<EventLabel>,
    /// `upbeat_nodes{provision_state}`: nodes in each state.
    pub nodes: Family<ProvisionStateLabel, Gauge>,
    /// `upbeat_commands_total{command,outcome}`: agent commands that ended.
    pub commands: Family<CommandLabel, Counter>,
    /// `upbeat_dispatches_total{command}`: POSTs to agents asked for; each attempt of a command is one.
    pub dispatches: Family<CommandNameLabel, Counter>,
    /// `upbeat_busy_answers_total`: POSTs that an agent answered with being busy (409, or 500 of old agents).
    pub busy_answers: Counter,
    /// `upbeat_unknown_outcomes_total{command}`: POSTs of which it was not known whether they arrived; those found so in the store
    /// at start are counted too.
    pub unknown_outcomes: Family<CommandNameLabel, Counter>,
    /// `upbeat_unknown_resolutions_total{command,resolution}`: what became of them, each once.
    pub unknown_resolutions: Family<ResolutionLabel, Counter>,
    /// `upbeat_commands_unknown`: agent commands of which nobody knows at the moment whether they arrived.
    pub commands_unknown: Gauge,
    /// `upbeat_command_gap_seconds`: from a command's end being known to the next one of the same node being sent.
    pub command_gap_seconds: Histogram,
    /// `upbeat_node_actors`: nodes that have an actor at the moment; those that rest have none.
    pub node_actors: Gauge,
    /// `upbeat_agent_requests`: requests to agents that are under way.
    pub agent_requests: Gauge,
    /// `upbeat_agent_requests_waiting`: requests to agents that wait for their turn, because as many as may be are under way.
    pub agent_requests_waiting: Gauge,
    /// `upbeat_requests_waiting`: requests of operators that wait for a busy node.
    pub requests_waiting: Gauge,
    /// `upbeat_turns{queue}`: nodes whose turn has come, where only so many may do the same at once.
    pub turns: Family<QueueLabel, Gauge>,
    /// `upbeat_turns_waiting{queue}`: nodes that wait for their turn.
    pub turns_waiting: Family<QueueLabel, Gauge>,
    /// `upbeat_deadline_lateness_seconds{deadline}`: from a deadline's time to what it meant being stored.
    pub deadline_lateness_seconds: Histograms<DeadlineLabel>,
    /// `upbeat_recovery_seconds`: from the start of the conductor until every node that waited was back; 0 until then.
    pub recovery_seconds: Seconds,
    /// `upbeat_recovery_nodes`: nodes that waited for something when the conductor started.
    pub recovery_nodes: Gauge,
    /// `upbeat_recovery_nodes_left`: those of them that are not back yet.
    pub recovery_nodes_left: Gauge,
    /// `upbeat_mailbox_refused_total`: events refused because a node's queue was full.
    pub mailbox_refused: Counter,
    /// `upbeat_actor_restarts_total{actor,cause}`: actors started again after they failed.
    pub actor_restarts: Family<RestartLabel, Counter>,
    /// `upbeat_step_panics_total`: steps that panicked; each is a fault of the program.
    pub step_panics: Counter,
    /// `upbeat_commit_seconds`: how long a commit of the store took, from its first save being taken.
    pub commit_seconds: Histogram,
    /// `upbeat_commit_rows`: how many saves (nodes, with all that belongs to them) one commit stored.
    pub commit_rows: Histogram,
    /// `upbeat_arbiter_lag_seconds`: how late the slowest arbiter answered when last asked.
    pub arbiter_lag_seconds: Seconds,
    /// `upbeat_quarantined_nodes`: nodes the conductor gave up on; each needs a person.
    pub quarantined_nodes: Gauge,
    /// `upbeat_http_requests_total{method,route,code}`: requests answered.
    pub http_requests: Family<RequestLabel, Counter>,
    /// `upbeat_http_request_seconds{route}`: how long answering took.
    pub http_request_seconds: Histograms<RouteLabel>,
}

/// From 1 µs to 0.26 s: pure steps.
fn step_buckets() -> Histogram {
    Histogram::new(exponential_buckets(1e-6, 4.0, 10))
}

/// From 0.1 ms to 6.5 s: commits.
fn commit_buckets() -> Histogram {
    Histogram::new(exponential_buckets(1e-4, 3.0, 11))
}

/// From 1 ms to 16 s: requests.
fn request_buckets() -> Histogram {
    Histogram::new(exponential_buckets(1e-3, 2.0, 15))
}

/// From 1 ms to 65 s, with a bound at 1 s: no deadline should be later.
fn lateness_buckets() -> Histogram {
    Histogram::new([
        0.001, 0.004, 0.016, 0.064, 0.25, 0.5, 1.0, 2.0, 4.0, 16.0, 64.0,
    ])
}

impl Metrics {
    /// All metrics at zero, and the program's version as `upbeat_build_info`.
    pub fn new() -> Metrics {
        let mut metrics = Metrics {
            registry: Registry::default(),
            heartbeats: Family::default(),
            steps_seconds: Family::new_with_constructor(step_buckets),
            nodes: Family::default(),
            commands: Family::default(),
            dispatches: Family::default(),
            busy_answers: Counter::default(),
            unknown_outcomes: Family::default(),
            unknown_resolutions: Family::default(),
            commands_unknown: Gauge::default(),
            // From 10 ms to 5 minutes: the longest pause between an agent's heartbeats.
            command_gap_seconds: Histogram::new(exponential_buckets(0.01, 2.0, 15)),
            node_actors: Gauge::default(),
            agent_requests: Gauge::default(),
            agent_requests_waiting: Gauge::default(),
            requests_waiting: Gauge::default(),
            turns: Family::default(),
            turns_waiting: Family::default(),
            deadline_lateness_seconds: Family::new_with_constructor(lateness_buckets),
            recovery_seconds: Seconds::default(),
            recovery_nodes: Gauge::default(),
            recovery_nodes_left: Gauge::default(),
            mailbox_refused: Counter::default(),
            actor_restarts: Family::default(),
            step_panics: Counter::default(),
            commit_seconds: commit_buckets(),
            // Up to the most saves of one commit.
            commit_rows: Histogram::new(exponential_buckets(1.0, 2.0, 9)),
            arbiter_lag_seconds: Seconds::default(),
            quarantined_nodes: Gauge::default(),
            http_requests: Family::default(),
            http_request_seconds: Family::new_with_constructor(request_buckets),
        };
        metrics.register();
        metrics
    }

    fn register(&mut self) {
        let build = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
        let registry = &mut self.registry;
        registry.register("upbeat_build", "The program", build);
        macro_rules! register {
            ($($field:ident as $name:literal: $help:literal),+ $(,)?) => {
                $(registry.register($name, $help, self.$field.clone());)+
            };
        }
        register! {
            heartbeats as "upbeat_heartbeats": "Heartbeats received",
            steps_seconds as "upbeat_steps_seconds": "Duration of a node's step, without its commit",
            nodes as "upbeat_nodes": "Nodes in each provision state",
            commands as "upbeat_commands": "Agent commands that ended",
            dispatches as "upbeat_dispatches": "Commands sent to agents, each attempt",
            busy_answers as "upbeat_busy_answers": "Commands that an agent answered with being busy",
            unknown_outcomes as "upbeat_unknown_outcomes": "Commands sent of which it was not known whether they arrived",
            unknown_resolutions as "upbeat_unknown_resolutions": "What became of commands of which it was not known whether they arrived",
            commands_unknown as "upbeat_commands_unknown": "Agent commands that may or may not have arrived",
            command_gap_seconds as "upbeat_command_gap_seconds": "From the end of a command to the next one being sent",
            node_actors as "upbeat_node_actors": "Nodes that have an actor at the moment",
            agent_requests as "upbeat_agent_requests": "Requests to agents under way",
            agent_requests_waiting as "upbeat_agent_requests_waiting": "Requests to agents that wait for their turn",
            requests_waiting as "upbeat_requests_waiting": "Requests of operators that wait for a busy node",
            turns as "upbeat_turns": "Nodes whose turn has come",
            turns_waiting as "upbeat_turns_waiting": "Nodes that wait for their turn",
            deadline_lateness_seconds as "upbeat_deadline_lateness_seconds": "From a deadline's time to what it meant being stored",
            recovery_seconds as "upbeat_recovery_seconds": "From the start until every node that waited was back",
            recovery_nodes as "upbeat_recovery_nodes": "Nodes that waited for something at the start",
            recovery_nodes_left as "upbeat_recovery_nodes_left": "Nodes that waited at the start and are not back yet",
            mailbox_refused as "upbeat_mailbox_refused": "Events refused because a node's queue was full",
            actor_restarts as "upbeat_actor_restarts": "Actors started again after they failed",
            step_panics as "upbeat_step_panics": "Steps that panicked",
            commit_seconds as "upbeat_commit_seconds": "Duration of a commit",
            commit_rows as "upbeat_commit_rows": "Saves stored by one commit",
            arbiter_lag_seconds as "upbeat_arbiter_lag_seconds": "Delay of the slowest arbiter",
            quarantined_nodes as "upbeat_quarantined_nodes": "Nodes the conductor gave up on",
            http_requests as "upbeat_http_requests": "HTTP requests answered",
            http_request_seconds as "upbeat_http_request_seconds": "Duration of HTTP requests",
        }
    }

    /// Records one commit of the store.
    pub fn committed(&self, took: Duration, rows: usize) {
        self.commit_seconds.observe(took.as_secs_f64());
        // At most a few hundred.
        self.commit_rows.observe(rows as f64);
    }

    /// All metrics as text, of the type [`CONTENT_TYPE`].
    pub fn encode(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a String does not fail");
        text
    }
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Each metric once, with every label it has.
    fn recorded() -> Metrics {
        let metrics = Metrics::new();
        metrics
            .heartbeats
            .get_or_create(&OutcomeLabel { outcome: "alive" })
            .inc();
        metrics
            .steps_seconds
            .get_or_create(&EventLabel { event: "heartbeat" })
            .observe(0.001);
        metrics
            .nodes
            .get_or_create(&ProvisionStateLabel {
                provision_state: "active",
            })
            .set(3);
        metrics
            .commands
            .get_or_create(&CommandLabel {
                command: "standby.sync",
                outcome: "succeeded",
            })
            .inc();
        let command = "standby.sync";
        metrics
            .dispatches
            .get_or_create(&CommandNameLabel { command })
            .inc();
        metrics
            .unknown_outcomes
            .get_or_create(&CommandNameLabel { command })
            .inc();
        metrics
            .unknown_resolutions
            .get_or_create(&ResolutionLabel {
                command,
                resolution: "found",
            })
            .inc();
        metrics
            .deadline_lateness_seconds
            .get_or_create(&DeadlineLabel {
                deadline: "liveness",
            })
            .observe(0.01);
        let label = QueueLabel { queue: "deploy" };
        metrics.turns.get_or_create(&label).set(2);
        metrics.turns_waiting.get_or_create(&label).set(1);
        metrics.command_gap_seconds.observe(0.5);
        metrics
            .actor_restarts
            .get_or_create(&RestartLabel {
                actor: "node",
                cause: "panic",
            })
            .inc();
        metrics.committed(Duration::from_millis(2), 7);
        metrics
            .http_requests
            .get_or_create(&RequestLabel {
                method: "GET",
                route: "/v1/nodes",
                code: 200,
            })
            .inc();
        metrics
            .http_request_seconds
            .get_or_create(&RouteLabel { route: "/v1/nodes" })
            .observe(0.01);
        metrics
    }

    #[test]
    fn every_name_and_label_is_as_dashboards_and_alerts_know_it() {
        let text = recorded().encode();
        // The value goes, and of a histogram all but the count.
        let found: BTreeSet<&str> = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.rsplit_once(' '))
            .map(|(series, _)| series)
            .filter(|series| !series.contains("_bucket") && !series.contains("_sum"))
            .collect();
        let build = format!(
            "upbeat_build_info{{version=\"{}\"}}",
            env!("CARGO_PKG_VERSION")
        );
        let expected = BTreeSet::from([
            build.as_str(),
            "upbeat_heartbeats_total{outcome=\"alive\"}",
            "upbeat_steps_seconds_count{event=\"heartbeat\"}",
            "upbeat_nodes{provision_state=\"active\"}",
            "upbeat_commands_total{command=\"standby.sync\",outcome=\"succeeded\"}",
            "upbeat_dispatches_total{command=\"standby.sync\"}",
            "upbeat_busy_answers_total",
            "upbeat_unknown_outcomes_total{command=\"standby.sync\"}",
            "upbeat_unknown_resolutions_total{command=\"standby.sync\",resolution=\"found\"}",
            "upbeat_commands_unknown",
            "upbeat_node_actors",
            "upbeat_agent_requests",
            "upbeat_agent_requests_waiting",
            "upbeat_requests_waiting",
            "upbeat_turns{queue=\"deploy\"}",
            "upbeat_turns_waiting{queue=\"deploy\"}",
            "upbeat_deadline_lateness_seconds_count{deadline=\"liveness\"}",
            "upbeat_recovery_seconds",
            "upbeat_recovery_nodes",
            "upbeat_recovery_nodes_left",
            "upbeat_command_gap_seconds_count",
            "upbeat_mailbox_refused_total",
            "upbeat_actor_restarts_total{actor=\"node\",cause=\"panic\"}",
            "upbeat_step_panics_total",
            "upbeat_commit_seconds_count",
            "upbeat_commit_rows_count",
            "upbeat_arbiter_lag_seconds",
            "upbeat_quarantined_nodes",
            "upbeat_http_requests_total{method=\"GET\",route=\"/v1/nodes\",code=\"200\"}",
            "upbeat_http_request_seconds_count{route=\"/v1/nodes\"}",
        ]);
        assert_eq!(found, expected);
    }

    #[test]
    fn the_text_ends_as_its_type_demands() {
        assert!(Metrics::new().encode().ends_with("# EOF\n"));
    }

    #[test]
    fn a_commit_is_counted_with_its_rows() {
        let text = recorded().encode();
        for line in [
            "upbeat_commit_rows_sum 7.0",
            "upbeat_commit_seconds_sum 0.002",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} in {text}");
        }
    }
}
