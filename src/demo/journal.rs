//! What happened on one machine, for those who want to check it.
//!
//! The machine and its agent write it; tests and the demo's report read copies of it. It outlives power cycles and
//! agent restarts. It holds no token and no parameters of commands except the names and ids needed to tell them apart.

use std::time::{Duration, Instant};

use serde_json::{Map, Value};

/// Everything one machine remembers.
#[derive(Debug, Clone, Default)]
pub struct Journal {
    /// How often the power came on.
    pub power_ons: usize,
    /// How often the machine started from its own disk instead of the ramdisk.
    pub instance_boots: usize,
    /// How many agent processes were started.
    pub agent_starts: usize,
    /// Look-ups sent, those in the middle of a write included.
    pub lookups_sent: usize,
    /// Whether an agent was refused for good because its token had been given out before.
    pub token_was_masked: bool,
    /// Heartbeats, oldest first.
    pub heartbeats: Vec<HeartbeatRecord>,
    /// Commands the agent accepted, in the order of their arrival.
    pub commands: Vec<CommandRecord>,
    /// Requests to run a command that the agent refused.
    pub refusals: Vec<RefusalRecord>,
    /// Every start of a write to the disk.
    pub writes_started: Vec<WriteRecord>,
    /// Writes that ended well.
    pub writes_finished: usize,
    /// Every step that was begun, such as `clean.erase_devices_metadata`.
    pub steps_started: Vec<String>,
    /// How often `rescue.finalize_rescue` was carried out.
    pub rescues: usize,
    /// Inspection data sent: the status of each answer, `None` if there was none.
    pub inspections: Vec<Option<u16>>,
    /// The address the present or last agent announced.
    pub callback_url: Option<String>,
}

/// One heartbeat.
#[derive(Debug, Clone, Copy)]
pub struct HeartbeatRecord {
    /// When it was sent.
    pub sent_at: Instant,
    /// The status of the answer; `None` if there was none.
    pub status: Option<u16>,
    /// Sent because a command had finished.
    pub forced: bool,
}

/// One command the agent accepted.
#[derive(Debug, Clone)]
pub struct CommandRecord {
    /// The id the agent gave it.
    pub id: String,
    /// The full name, such as `deploy.execute_deploy_step`.
    pub name: String,
    /// Whether it ran beside its request instead of inside it.
    pub is_async: bool,
    /// Which agent process it was, counted from 1.
    pub agent_start: usize,
    /// When the agent accepted it.
    pub received_at: Instant,
    /// When it ended, well or badly; `None` while it runs or if the agent was gone before.
    pub finished_at: Option<Instant>,
    /// `RUNNING`, `SUCCEEDED`, `FAILED` or `CLEAN_VERSION_MISMATCH`.
    pub status: &'static str,
}

/// One request to run a command that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusalRecord {
    /// The name asked for; empty if it could not be read.
    pub name: String,
    /// The status of the answer.
    pub status: u16,
}

/// One start of a write.
#[derive(Debug, Clone)]
pub struct WriteRecord {
    /// The command that wrote.
    pub command_id: String,
    /// `image_info.id`.
    pub image_id: String,
    /// For which node, as the command said.
    pub node_uuid: String,
    /// Whatever else the conductor put into the step dictionary, such as its own operation id.
    pub marks: Map<String, Value>,
    /// When it began.
    pub at: Instant,
}

impl Journal {
    /// How long the agent sat idle between the end of each asynchronous command and the arrival of the next command.
    ///
    /// Synchronous commands are left out: their end is known to the conductor by the reply itself.
    pub fn idle_times(&self) -> Vec<Duration> {
        self.commands
            .iter()
            .filter(|command| command.is_async)
            .filter_map(|command| {
                let finished_at = command.finished_at?;
                let next = self
                    .commands
                    .iter()
                    .filter(|next| {
                        next.agent_start == command.agent_start && next.received_at >= finished_at
                    })
                    .map(|next| next.received_at)
                    .min()?;
                Some(next - finished_at)
            })
            .collect()
    }

    /// The commands with this full name.
    pub fn commands_named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a CommandRecord> {
        self.commands
            .iter()
            .filter(move |command| command.name == name)
    }

    /// How many heartbeats were answered with 202.
    pub fn heartbeats_accepted(&self) -> usize {
        self.heartbeats
            .iter()
            .filter(|heartbeat| heartbeat.status == Some(202))
            .count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a_command(
        name: &str,
        is_async: bool,
        received_at: Instant,
        finished_at: Option<Instant>,
    ) -> CommandRecord {
        CommandRecord {
            id: name.to_owned(),
            name: name.to_owned(),
            is_async,
            agent_start: 1,
            received_at,
            finished_at,
            status: "SUCCEEDED",
        }
    }

    #[test]
    fn idle_time_runs_from_the_end_of_an_asynchronous_command_to_the_next_arrival() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut journal = Journal {
            commands: vec![
                a_command("deploy.get_deploy_steps", false, at(0), Some(at(10))),
                a_command("deploy.execute_deploy_step", true, at(20), Some(at(1000))),
                a_command(
                    "standby.get_partition_uuids",
                    false,
                    at(1300),
                    Some(at(1301)),
                ),
                a_command("standby.power_off", true, at(1400), None),
            ],
            ..Journal::default()
        };
        assert_eq!(journal.idle_times(), [Duration::from_millis(300)]);
        journal.commands[2].agent_start = 2;
        assert_eq!(
            journal.idle_times(),
            [Duration::from_millis(400)],
            "another process is another story"
        );
    }
}
