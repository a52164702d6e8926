//! The command engine of one agent process.
//!
//! `serve` hands it requests; it decides, as the real agent does, whether a command is refused, runs inside the request
//! or on its own, and keeps the list. Three rules matter most: busy is decided by the *last* entry of the list alone; a
//! synchronous command enters the list only when it has finished; the list is never trimmed and dies with the process.
//!
//! Supported are the commands of a node's life: `clean`, `deploy` and `service` with their `get_*_steps` and
//! `execute_*_step`, `rescue.finalize_rescue`, `standby.prepare_image`, `standby.get_partition_uuids`, `standby.sync`,
//! `standby.power_off`, `standby.run_image`, `image.install_bootloader`, `log.collect_system_logs` and
//! `system.lockdown`. Any other is an unknown command.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::agent::{End, Process};
use super::history::{AgentError, Entry, FAILED, Outcome, RUNNING, Refusal, SUCCEEDED};
use super::journal::{CommandRecord, Journal};
use super::logs;
use super::steps::{self, Kind};
use super::write;

/// How long the agent lives after it accepted a command that ends it.
const FAREWELL: Duration = Duration::from_millis(200);
/// The same after `rescue.finalize_rescue`.
const FAREWELL_AFTER_RESCUE: Duration = Duration::from_millis(100);
/// How long a boot loader takes.
const BOOTLOADER_S: f64 = 2.0;

const EXTENSIONS: [&str; 10] = [
    "standby", "clean", "deploy", "service", "flow", "image", "log", "rescue", "poll", "system",
];

/// How a synchronous command ended.
enum SyncOutcome {
    Succeeded(Value),
    /// A missing key in Python. The agent takes it for a missing extension.
    KeyError,
    /// Wrong arguments in Python. The agent cannot write the error as JSON, ever.
    TypeError,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Command {
    GetSteps(Kind),
    ExecuteStep(Kind),
    FinalizeRescue,
    PrepareImage,
    GetPartitionUuids,
    Sync,
    PowerOff,
    RunImage,
    InstallBootloader,
    CollectSystemLogs,
    Lockdown,
}

impl Command {
    fn parse(full_name: &str) -> Option<Self> {
        Some(match full_name {
            "clean.get_clean_steps" => Self::GetSteps(Kind::Clean),
            "clean.execute_clean_step" => Self::ExecuteStep(Kind::Clean),
            "deploy.get_deploy_steps" => Self::GetSteps(Kind::Deploy),
            "deploy.execute_deploy_step" => Self::ExecuteStep(Kind::Deploy),
            "service.get_service_steps" => Self::GetSteps(Kind::Service),
            "service.execute_service_step" => Self::ExecuteStep(Kind::Service),
            "rescue.finalize_rescue" => Self::FinalizeRescue,
            "standby.prepare_image" => Self::PrepareImage,
            "standby.get_partition_uuids" => Self::GetPartitionUuids,
            "standby.sync" => Self::Sync,
            "standby.power_off" => Self::PowerOff,
            "standby.run_image" => Self::RunImage,
            "image.install_bootloader" => Self::InstallBootloader,
            "log.collect_system_logs" => Self::CollectSystemLogs,
            "system.lockdown" => Self::Lockdown,
            _ => return None,
        })
    }

    fn is_async(self) -> bool {
        match self {
            Self::ExecuteStep(_)
            | Self::PrepareImage
            | Self::PowerOff
            | Self::RunImage
            | Self::InstallBootloader => true,
            Self::GetSteps(_)
            | Self::FinalizeRescue
            | Self::GetPartitionUuids
            | Self::Sync
            | Self::CollectSystemLogs
            | Self::Lockdown => false,
        }
    }
}

/// Runs a command, or starts it, and returns its id. With `wait` returns only when it has finished.
///
/// # Errors
/// The agent's refusal; nothing runs then.
pub(crate) async fn execute(
    process: &Arc<Process>,
    full_name: &str,
    params: Map<String, Value>,
    wait: bool,
) -> Result<String, Refusal> {
    let history = &process.history;
    let turn = history.turn.lock().await;
    let Some((extension, short_name)) = full_name.split_once('.') else {
        let text = "Invalid command: Command name must be of the form <extension>.<name>";
        return Err(Refusal::new(400, text));
    };
    if let Some(running) = history
        .entries()
        .last()
        .filter(|entry| entry.status == RUNNING)
    {
        return Err(Refusal::new(
            409,
            format!("Agent is busy: executing command {}", running.name),
        ));
    }
    if !EXTENSIONS.contains(&extension) {
        return Err(extension_not_found(extension));
    }
    let Some(command) = Command::parse(full_name) else {
        return Err(Refusal::new(
            400,
            format!("Invalid command: Unknown command: {short_name}"),
        ));
    };
    if command == Command::PrepareImage {
        write::validate_before(process, &params).map_err(|text| Refusal::new(400, text))?;
    }

    let id = uuid::Uuid::new_v4().to_string();
    let record = CommandRecord {
        id: id.clone(),
        name: full_name.to_owned(),
        is_async: command.is_async(),
        agent_start: process.number,
        received_at: Instant::now(),
        finished_at: None,
        status: RUNNING,
    };
    process.note(|journal| journal.commands.push(record));
    if command.is_async() {
        history.push(Entry::running(&id, short_name));
        start(process, command, id.clone(), short_name.to_owned(), params);
        drop(turn);
        if wait {
            history.finished(&id).await;
        }
        return Ok(id);
    }

    let outcome = run_sync(process, command, &params).await;
    let status = if matches!(outcome, SyncOutcome::Succeeded(_)) {
        SUCCEEDED
    } else {
        FAILED
    };
    let listed = match outcome {
        SyncOutcome::Succeeded(result) => Some(Entry {
            status,
            result,
            ..Entry::running(&id, short_name)
        }),
        SyncOutcome::KeyError => None,
        SyncOutcome::TypeError => Some(Entry {
            status,
            is_poisoned: true,
            ..Entry::running(&id, full_name)
        }),
    };
    let is_listed = listed.is_some();
    if let Some(entry) = listed {
        history.push(entry);
    }
    process.note(|journal| note_finished(journal, &id, status));
    if is_listed {
        Ok(id)
    } else {
        Err(extension_not_found(extension))
    }
}

fn extension_not_found(extension: &str) -> Refusal {
    Refusal::new(
        404,
        format!("Not found: Extension with id {extension} not found."),
    )
}

/// Runs an asynchronous command as a task of the process.
fn start(
    process: &Arc<Process>,
    command: Command,
    id: String,
    short_name: String,
    params: Map<String, Value>,
) {
    let this = process.clone();
    process.tasks.spawn(async move {
        let outcome = run_async(&this, command, &id, &params).await;
        let (status, error, result) = match outcome {
            // A text is the only result that names its command.
            Outcome::Succeeded(Value::String(text)) => (
                SUCCEEDED,
                Value::Null,
                json!({"result": format!("{short_name}: {text}")}),
            ),
            Outcome::Succeeded(result) => (SUCCEEDED, Value::Null, result),
            Outcome::Failed(error) => (FAILED, error.to_json(), Value::Null),
            Outcome::VersionMismatch(error) => {
                ("CLEAN_VERSION_MISMATCH", error.to_json(), Value::Null)
            }
        };
        // The list first: who is woken by the journal must find it finished.
        this.history.finish(&id, status, error, result);
        this.force_heartbeat();
        this.note(|journal| note_finished(journal, &id, status));
    });
}

fn note_finished(journal: &mut Journal, id: &str, status: &'static str) {
    if let Some(record) = journal
        .commands
        .iter_mut()
        .rev()
        .find(|record| record.id == id)
    {
        record.finished_at = Some(Instant::now());
        record.status = status;
    }
}

async fn run_async(
    process: &Arc<Process>,
    command: Command,
    id: &str,
    params: &Map<String, Value>,
) -> Outcome {
    match command {
        Command::ExecuteStep(kind) => steps::execute(process, kind, id, params).await,
        Command::PrepareImage => write::prepare_image(process, id, params).await,
        Command::InstallBootloader => {
            if let Some(details) =
                missing_arguments("ImageExtension.install_bootloader", &["root_uuid"], params)
            {
                return Outcome::Failed(AgentError::execution(details));
            }
            tokio::time::sleep(process.machine.world.options.paced(BOOTLOADER_S)).await;
            Outcome::Succeeded(Value::Null)
        }
        Command::PowerOff | Command::RunImage => {
            tokio::time::sleep(FAREWELL).await;
            if process.history.has_written() {
                process.machine.boot_instance_next();
            }
            process.end(if command == Command::PowerOff {
                End::PowersOff
            } else {
                End::RunsImage
            });
            std::future::pending().await
        }
        Command::GetSteps(_)
        | Command::FinalizeRescue
        | Command::GetPartitionUuids
        | Command::Sync
        | Command::CollectSystemLogs
        | Command::Lockdown => unreachable!("synchronous commands run inside their request"),
    }
}

async fn run_sync(
    process: &Arc<Process>,
    command: Command,
    params: &Map<String, Value>,
) -> SyncOutcome {
    let takes_nothing = params.is_empty();
    match command {
        Command::GetSteps(kind) => {
            if params.len() != 2 || !params.contains_key("node") || !params.contains_key("ports") {
                return SyncOutcome::TypeError;
            }
            if params["node"].get("uuid").is_none() {
                return SyncOutcome::KeyError;
            }
            tokio::time::sleep(process.machine.world.options.steps_time).await;
            SyncOutcome::Succeeded(steps::offered(kind))
        }
        Command::FinalizeRescue => finalize_rescue(process, params),
        _ if !takes_nothing => SyncOutcome::TypeError,
        Command::GetPartitionUuids => SyncOutcome::Succeeded(process.history.partition_uuids()),
        Command::Sync => SyncOutcome::Succeeded(Value::Null),
        Command::CollectSystemLogs => {
            let text = process
                .history
                .entries()
                .iter()
                .map(|entry| format!("{} {}\n", entry.name, entry.status))
                .fold(
                    format!(
                        "agent of {} started at {}\n",
                        process.machine.mac, process.started_at
                    ),
                    |text, line| text + &line,
                );
            SyncOutcome::Succeeded(json!({"system_logs": logs::archive("journal", &text)}))
        }
        Command::Lockdown => {
            let this = process.clone();
            if process.history.has_written() {
                process.machine.boot_instance_next();
            }
            process.tasks.spawn(async move {
                tokio::time::sleep(FAREWELL).await;
                this.end(End::LockedDown);
            });
            SyncOutcome::Succeeded(Value::Null)
        }
        Command::ExecuteStep(_)
        | Command::PrepareImage
        | Command::PowerOff
        | Command::RunImage
        | Command::InstallBootloader => unreachable!("asynchronous commands run as tasks"),
    }
}

/// `rescue.finalize_rescue`: the agent's last command. Whoever is on the network now must not find it.
fn finalize_rescue(process: &Arc<Process>, params: &Map<String, Value>) -> SyncOutcome {
    const KNOWN: [&str; 2] = ["rescue_password", "hashed"];
    if params.keys().any(|key| !KNOWN.contains(&key.as_str())) {
        return SyncOutcome::TypeError;
    }
    process.note(|journal| journal.rescues += 1);
    let this = process.clone();
    process.tasks.spawn(async move {
        tokio::time::sleep(FAREWELL_AFTER_RESCUE).await;
        this.end(End::Rescued);
    });
    SyncOutcome::Succeeded(Value::Null)
}

/// Python's complaint about missing arguments, or `None` if there are none.
pub(crate) fn missing_arguments(
    function: &str,
    needed: &[&str],
    params: &Map<String, Value>,
) -> Option<String> {
    let missing: Vec<String> = needed
        .iter()
        .filter(|name| !params.contains_key(**name))
        .map(|name| format!("'{name}'"))
        .collect();
    let (last, others) = missing.split_last()?;
    let list = match others {
        [] => last.clone(),
        [one] => format!("{one} and {last}"),
        several => format!("{}, and {last}", several.join(", ")),
    };
    let plural = if others.is_empty() { "" } else { "s" };
    Some(format!(
        "{function}() missing {} required positional argument{plural}: {list}",
        missing.len()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_arguments_read_as_python_says_it() {
        let with = |names: &[&str]| {
            names
                .iter()
                .map(|name| ((*name).to_owned(), Value::Null))
                .collect()
        };
        let complain = |params: &Map<String, Value>| {
            missing_arguments(
                "DeployExtension.execute_deploy_step",
                &["step", "node", "ports"],
                params,
            )
        };
        let start = "DeployExtension.execute_deploy_step() missing";
        assert_eq!(
            complain(&with(&[])).unwrap(),
            format!("{start} 3 required positional arguments: 'step', 'node', and 'ports'")
        );
        assert_eq!(
            complain(&with(&["node"])).unwrap(),
            format!("{start} 2 required positional arguments: 'step' and 'ports'")
        );
        assert_eq!(
            complain(&with(&["step", "node"])).unwrap(),
            format!("{start} 1 required positional argument: 'ports'")
        );
        assert_eq!(complain(&with(&["step", "node", "ports"])), None);
    }
}
