//! Clean, deploy and service steps: what the agent offers, and what becomes of a step it is told to run.
//!
//! Called by the command engine. The three kinds differ in names only: `clean.get_clean_steps` and
//! `clean.execute_clean_step`, and so on. The steps are those of the agent's generic hardware manager, plus three of a
//! manager of its own ([`OWN_MANAGER`]) for what that one doesn't have: a step that takes as long as it is told to, one
//! that fails and one after which the machine must be rebooted. Nothing is erased, because there is no disk; `write`
//! does `write_image`.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::agent::Process;
use super::commands::missing_arguments;
use super::history::{AgentError, Outcome};
use super::write::{self, DEVICE};

const GENERIC_MANAGER: &str = "GenericHardwareManager";
const OWN_MANAGER: &str = "SimulatedHardwareManager";

/// How long a step of the generic manager takes that does something to the machine.
const STEP_S: f64 = 2.0;
/// `simulated_pause` without an argument.
const PAUSE_S: f64 = 1.0;
/// Nobody waits longer for a simulated machine.
const PAUSE_S_MAX: f64 = 86_400.0;
/// Keys of a step that the protocol knows; what else is in it are the conductor's marks.
const STEP_KEYS: [&str; 4] = ["interface", "step", "args", "priority"];

/// Which steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Clean,
    Deploy,
    Service,
}

impl Kind {
    /// As in `execute_clean_step`, `clean_step`, `clean_result`, `clean_version`.
    fn word(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Deploy => "deploy",
            Self::Service => "service",
        }
    }

    fn extension(self) -> &'static str {
        match self {
            Self::Clean => "CleanExtension",
            Self::Deploy => "DeployExtension",
            Self::Service => "ServiceExtension",
        }
    }

    /// What an unforeseen failure of a step is called.
    fn error(self) -> (&'static str, &'static str) {
        match self {
            Self::Clean => ("CleaningError", "Clean step failed"),
            Self::Deploy => ("DeploymentError", "Deploy step failed"),
            Self::Service => ("ServicingError", "Service step failed"),
        }
    }
}

/// The answer to `get_clean_steps`, `get_deploy_steps` or `get_service_steps`.
pub(crate) fn offered(kind: Kind) -> Value {
    let generic = match kind {
        Kind::Clean => clean_steps(),
        Kind::Deploy => deploy_steps(),
        Kind::Service => service_steps(),
    };
    json!({
        format!("{}_steps", kind.word()): {GENERIC_MANAGER: generic, OWN_MANAGER: own_steps(kind)},
        "hardware_manager_version": hardware_manager_version(),
    })
}

/// The deploy steps a simulated agent tells, which are those of the real one and its own.
pub fn deploy_steps_offered() -> Value {
    offered(Kind::Deploy)["deploy_steps"].take()
}

fn hardware_manager_version() -> Value {
    json!({"generic_hardware_manager": "1.2", OWN_MANAGER: "1"})
}

fn clean_steps() -> Vec<Value> {
    let step = |name, priority| abortable(a_step(name, "deploy", priority));
    let mut steps = vec![
        step("erase_devices", 10),
        step("erase_devices_metadata", 99),
        step("erase_devices_express", 0),
        step("erase_pstore", 0),
        with_arguments(step("clean_uefi_nvram", 0), nvram_arguments()),
        abortable(a_step("delete_configuration", "raid", 0)),
        abortable(a_step("create_configuration", "raid", 0)),
    ];
    let burn_ins = [
        "burnin_cpu",
        "burnin_gpu",
        "burnin_disk",
        "burnin_memory",
        "burnin_network",
    ];
    steps.extend(burn_ins.map(|name| step(name, 0)));
    steps
}

fn deploy_steps() -> Vec<Value> {
    let step = |name| a_step(name, "deploy", 0);
    vec![
        step("erase_devices_metadata"),
        with_arguments(a_step("apply_configuration", "raid", 0), raid_arguments()),
        with_arguments(step("clean_uefi_nvram"), nvram_arguments()),
        step("write_image"),
        with_arguments(step("inject_files"), files_arguments()),
        step("execute_bootc_install"),
    ]
}

fn service_steps() -> Vec<Value> {
    let step = |name| abortable(a_step(name, "deploy", 0));
    vec![
        abortable(a_step("delete_configuration", "raid", 0)),
        with_arguments(a_step("apply_configuration", "raid", 0), raid_arguments()),
        abortable(a_step("create_configuration", "raid", 0)),
        step("burnin_cpu"),
        step("burnin_gpu"),
        step("burnin_memory"),
        step("burnin_network"),
        a_step("write_image", "deploy", 0),
        with_arguments(a_step("inject_files", "deploy", 0), files_arguments()),
        a_step("execute_bootc_install", "deploy", 0),
    ]
}

fn own_steps(kind: Kind) -> Vec<Value> {
    let step = |name| {
        let step = a_step(name, "deploy", 0);
        if kind == Kind::Deploy {
            step
        } else {
            abortable(step)
        }
    };
    let mut reboot = step("simulated_reboot");
    reboot["reboot_requested"] = true.into();
    vec![
        with_arguments(
            step("simulated_pause"),
            json!({"seconds": argument("How long it takes; a second unless given.", false)}),
        ),
        with_arguments(
            step("simulated_failure"),
            json!({"message": argument("What the error shall say.", false)}),
        ),
        reboot,
    ]
}

fn a_step(name: &str, interface: &str, priority: u8) -> Value {
    json!({"step": name, "priority": priority, "interface": interface, "reboot_requested": false})
}

fn abortable(mut step: Value) -> Value {
    step["abortable"] = true.into();
    step
}

fn with_arguments(mut step: Value, arguments: Value) -> Value {
    step["argsinfo"] = arguments;
    step
}

fn argument(description: &str, required: bool) -> Value {
    json!({"description": description, "required": required})
}

fn raid_arguments() -> Value {
    json!({
        "raid_config": argument("The wished RAID configuration.", true),
        "delete_existing": argument("Whether to delete what is there first; true unless given.", false),
    })
}

fn nvram_arguments() -> Value {
    json!({"match_patterns": argument("Boot entries that match one of these are deleted.", false)})
}

fn files_arguments() -> Value {
    json!({
        "files": argument("The files to put on the disk.", false),
        "verify_ca": argument("Whether certificates are checked.", false),
    })
}

/// `clean.execute_clean_step`, `deploy.execute_deploy_step` or `service.execute_service_step`.
pub(crate) async fn execute(
    process: &Arc<Process>,
    kind: Kind,
    id: &str,
    params: &Map<String, Value>,
) -> Outcome {
    const NEEDED: [&str; 3] = ["step", "node", "ports"];
    let word = kind.word();
    let function = format!("{}.execute_{word}_step", kind.extension());
    if let Some(details) = missing_arguments(&function, &NEEDED, params) {
        return Outcome::Failed(AgentError::execution(details));
    }
    let known = hardware_manager_version();
    if let Some(version) = params
        .get(&format!("{word}_version"))
        .filter(|version| !version.is_null() && **version != known)
    {
        return Outcome::VersionMismatch(AgentError {
            kind: "VersionMismatch",
            code: 409,
            message: "Hardware managers version mismatch, reload agent with correct version",
            details: format!("Current versions: {known}, versions used by ironic: {version}"),
        });
    }
    let step = &params["step"];
    let Some(name) = step["step"].as_str() else {
        return Outcome::Failed(AgentError::execution(format!(
            "Malformed {word}_step, no \"step\" key: {step}"
        )));
    };
    process.note(|journal| journal.steps_started.push(format!("{word}.{name}")));
    match run(process, kind, id, name, params).await {
        Ok(result) => Outcome::Succeeded(json!({
            format!("{word}_result"): result,
            format!("{word}_step"): step,
        })),
        Err(error) => Outcome::Failed(error),
    }
}

/// Runs one step and returns its result.
async fn run(
    process: &Arc<Process>,
    kind: Kind,
    id: &str,
    name: &str,
    params: &Map<String, Value>,
) -> Result<Value, AgentError> {
    let (step, node) = (&params["step"], &params["node"]);
    let options = &process.machine.world.options;
    let takes = |seconds| tokio::time::sleep(options.paced(seconds));
    match name {
        "write_image" => {
            let image_info = &step["args"]["image_info"];
            let text = write::write(process, id, image_info, node, marks(step)).await?;
            Ok(json!({"result": format!("prepare_image: {text}")}))
        }
        "erase_devices" => {
            takes(STEP_S).await;
            erase(process);
            Ok(json!({DEVICE: null}))
        }
        "erase_devices_metadata" | "erase_devices_express" => {
            takes(STEP_S).await;
            erase(process);
            Ok(Value::Null)
        }
        "create_configuration" => {
            takes(STEP_S).await;
            Ok(node["target_raid_config"].clone())
        }
        "apply_configuration" => {
            let Some(wished) = step["args"].get("raid_config") else {
                return Err(unforeseen(
                    kind,
                    name,
                    "TypeError",
                    "apply_configuration() missing 1 required positional argument: 'raid_config'",
                ));
            };
            takes(STEP_S).await;
            Ok(wished.clone())
        }
        "delete_configuration"
        | "clean_uefi_nvram"
        | "erase_pstore"
        | "inject_files"
        | "simulated_reboot" => {
            takes(STEP_S).await;
            Ok(Value::Null)
        }
        "burnin_cpu" | "burnin_gpu" | "burnin_disk" | "burnin_memory" | "burnin_network" => {
            takes(STEP_S).await;
            Ok(Value::Null)
        }
        "simulated_pause" => {
            let seconds = step["args"]["seconds"].as_f64().unwrap_or(PAUSE_S);
            tokio::time::sleep(Duration::from_secs_f64(seconds.clamp(0.0, PAUSE_S_MAX))).await;
            Ok(json!(format!("paused for {seconds} s")))
        }
        "simulated_failure" => {
            let message = step["args"]["message"].as_str().unwrap_or("as asked for");
            Err(unforeseen(kind, name, "RuntimeError", message))
        }
        _ => Err(AgentError {
            kind: "HardwareManagerMethodNotFound",
            code: 500,
            message: "No HardwareManager found to handle method",
            details: format!("Could not find method: {name}"),
        }),
    }
}

/// Nothing can be booted from the disk afterwards, whoever wrote it.
fn erase(process: &Process) {
    process.history.note_erased();
    process.machine.erase();
}

/// What the agent makes of an exception that is none of its own.
fn unforeseen(kind: Kind, step: &str, class: &str, what: &str) -> AgentError {
    let (error, message) = kind.error();
    AgentError {
        kind: error,
        code: 500,
        message,
        details: format!(
            "Unexpected exception performing {} step {step}. {class}: {what}",
            kind.word()
        ),
    }
}

/// What the conductor put into the step besides what the protocol knows.
fn marks(step: &Value) -> Map<String, Value> {
    step.as_object()
        .into_iter()
        .flatten()
        .filter(|(key, _)| !STEP_KEYS.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names and priorities of the generic manager's steps, in the agent's order.
    fn generic(kind: Kind) -> Vec<(String, u64)> {
        let offered = offered(kind);
        offered[format!("{}_steps", kind.word())][GENERIC_MANAGER]
            .as_array()
            .unwrap()
            .iter()
            .map(|step| {
                (
                    step["step"].as_str().unwrap().to_owned(),
                    step["priority"].as_u64().unwrap(),
                )
            })
            .collect()
    }

    #[test]
    fn only_erasing_runs_by_itself() {
        let by_itself = |kind| {
            let mut steps = generic(kind);
            steps.retain(|(_, priority)| *priority > 0);
            steps
        };
        assert_eq!(
            by_itself(Kind::Clean),
            [
                ("erase_devices".to_owned(), 10),
                ("erase_devices_metadata".to_owned(), 99)
            ]
        );
        assert_eq!(by_itself(Kind::Deploy), []);
        assert_eq!(by_itself(Kind::Service), []);
    }

    #[test]
    fn every_step_has_what_a_conductor_needs_and_one_wants_a_reboot() {
        for kind in [Kind::Clean, Kind::Deploy, Kind::Service] {
            let offered = offered(kind);
            let managers = offered[format!("{}_steps", kind.word())]
                .as_object()
                .unwrap();
            let mut rebooting = Vec::new();
            for step in managers
                .values()
                .flat_map(|steps| steps.as_array().unwrap())
            {
                assert!(step["interface"].is_string(), "{step}");
                assert!(step["priority"].is_u64(), "{step}");
                if step["reboot_requested"] == true {
                    rebooting.push(step["step"].clone());
                }
            }
            assert_eq!(rebooting, ["simulated_reboot"]);
        }
    }

    #[test]
    fn marks_are_what_the_protocol_does_not_know() {
        let step = json!({"interface": "deploy", "step": "x", "args": {}, "priority": 1, "x_operation_id": "op-7"});
        assert_eq!(
            Value::Object(marks(&step)),
            json!({"x_operation_id": "op-7"})
        );
        assert_eq!(marks(&Value::Null), Map::new());
    }
}
