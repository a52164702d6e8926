//! The list of deploy steps: the conductor's own, the agent's and the user's, in the order of their priorities.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::state::Object;

/// One step of a deploy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeployStep {
    /// Which hardware interface it belongs to, for example `deploy`.
    pub interface: String,
    /// Its name, for example `write_image`.
    pub step: String,
    /// Higher ones come first; 0 is never carried out.
    pub priority: i64,
    /// Arguments for the agent.
    #[serde(default)]
    pub args: Object,
    /// The machine must be rebooted into the ramdisk after it.
    #[serde(default)]
    pub reboot_requested: bool,
}

/// The steps the conductor itself takes in every deploy of the `direct` interface, with the priorities of the Bare Metal API.
const CORE: &[(&str, i64)] = &[
    (WRITE_IMAGE, 80),
    (PREPARE_INSTANCE_BOOT, 60),
    (TEAR_DOWN_AGENT, 40),
    (BOOT_INSTANCE, 20),
];

/// The agent writes the image to the disk.
pub const WRITE_IMAGE: &str = "write_image";
/// The disk is made bootable and the boot device set.
pub const PREPARE_INSTANCE_BOOT: &str = "prepare_instance_boot";
/// The ramdisk is shut down.
pub const TEAR_DOWN_AGENT: &str = "tear_down_agent";
/// The machine is powered on.
pub const BOOT_INSTANCE: &str = "boot_instance";

impl DeployStep {
    /// True for the steps that the conductor takes itself; all others are the agent's.
    pub fn is_core(&self) -> bool {
        self.interface == "deploy" && CORE.iter().any(|(name, _)| *name == self.step)
    }

    fn is_same_as(&self, other: &DeployStep) -> bool {
        self.interface == other.interface && self.step == other.step
    }
}

/// The conductor's own steps.
pub fn core_steps() -> Vec<DeployStep> {
    CORE.iter()
        .map(|(name, priority)| DeployStep {
            interface: "deploy".to_owned(),
            step: (*name).to_owned(),
            priority: *priority,
            args: Object::new(),
            reboot_requested: false,
        })
        .collect()
}

/// More steps than any agent has, and a longer name than any of them; the list is stored with every change of the node.
const STEPS_MAX: usize = 1_000;
const NAME_BYTES_MAX: usize = 255;

/// The agent's steps, from the result of `deploy.get_deploy_steps`: lists by hardware manager. Steps the agent describes in a
/// way that makes no sense are left out, and those beyond the thousandth.
pub fn agent_steps(result: &Value) -> Vec<DeployStep> {
    let by_manager = result.get("deploy_steps").and_then(Value::as_object);
    by_manager
        .into_iter()
        .flat_map(|managers| managers.values())
        .filter_map(Value::as_array)
        .flatten()
        .filter_map(|step| {
            Some(DeployStep {
                interface: step.get("interface")?.as_str()?.to_owned(),
                step: step.get("step")?.as_str()?.to_owned(),
                priority: step.get("priority").and_then(Value::as_i64).unwrap_or(0),
                args: Object::new(),
                reboot_requested: step
                    .get("reboot_requested")
                    .and_then(Value::as_bool)
                    .unwrap_or(false),
            })
        })
        .filter(|step| step.interface.len() <= NAME_BYTES_MAX && step.step.len() <= NAME_BYTES_MAX)
        .take(STEPS_MAX)
        .collect()
}

/// The whole list, highest priority first.
///
/// A step of the conductor hides one of the agent with the same interface and name. What the user asked for replaces the
/// priority and arguments of a step of the same name.
///
/// # Errors
/// A step of the user that neither the conductor nor the agent knows: its name.
pub fn merge(agent: &[DeployStep], user: &[DeployStep]) -> Result<Vec<DeployStep>, String> {
    let mut steps = core_steps();
    for step in agent {
        if !steps.iter().any(|known| known.is_same_as(step)) {
            steps.push(step.clone());
        }
    }
    for wanted in user {
        let Some(known) = steps.iter_mut().find(|known| known.is_same_as(wanted)) else {
            return Err(format!("{}.{}", wanted.interface, wanted.step));
        };
        known.priority = wanted.priority;
        known.args = wanted.args.clone();
    }
    steps.retain(|step| step.priority > 0);
    // A stable sort: steps of equal priority stay in the order above, the conductor's first.
    steps.sort_by_key(|step| std::cmp::Reverse(step.priority));
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn step(interface: &str, name: &str, priority: i64) -> DeployStep {
        DeployStep {
            interface: interface.to_owned(),
            step: name.to_owned(),
            priority,
            args: Object::new(),
            reboot_requested: false,
        }
    }

    fn names(steps: &[DeployStep]) -> Vec<&str> {
        steps.iter().map(|step| step.step.as_str()).collect()
    }

    #[test]
    fn without_wishes_the_usual_steps_come_in_order() {
        assert_eq!(
            names(&merge(&[], &[]).unwrap()),
            [
                WRITE_IMAGE,
                PREPARE_INSTANCE_BOOT,
                TEAR_DOWN_AGENT,
                BOOT_INSTANCE
            ]
        );
    }

    #[test]
    fn a_step_of_the_agent_comes_where_its_priority_puts_it() {
        let agent = [
            step("raid", "apply_configuration", 0),
            step("deploy", "burn_in", 90),
        ];
        let merged = merge(&agent, &[step("raid", "apply_configuration", 85)]).unwrap();
        assert_eq!(
            names(&merged)[..3],
            ["burn_in", "apply_configuration", WRITE_IMAGE]
        );
    }

    #[test]
    fn priority_0_is_never_carried_out() {
        let agent = [step("raid", "build", 0), step("deploy", "burn_in", 90)];
        let first = |user: &[DeployStep]| merge(&agent, user).unwrap()[0].step.clone();
        assert_eq!(first(&[]), "burn_in");
        assert_eq!(first(&[step("deploy", "burn_in", 0)]), WRITE_IMAGE);
        assert_eq!(merge(&agent, &[]).unwrap().len(), 5);
    }

    #[test]
    fn the_conductors_write_image_hides_the_agents() {
        let merged = merge(&[step("deploy", WRITE_IMAGE, 0)], &[]).unwrap();
        assert_eq!(merged[0].priority, 80);
    }

    #[test]
    fn an_unknown_step_of_the_user_is_named() {
        assert_eq!(
            merge(&[], &[step("bios", "reset", 10)]),
            Err("bios.reset".to_owned())
        );
    }

    #[test]
    fn an_agent_can_not_flood_the_list() {
        let many: Vec<Value> = (0..20_000)
            .map(|n| json!({"interface": "deploy", "step": format!("s{n}"), "priority": 1}))
            .collect();
        let long = json!({"interface": "deploy", "step": "s".repeat(100_000), "priority": 1});
        let steps = agent_steps(&json!({"deploy_steps": {"A": [long], "B": many}}));
        assert_eq!(steps.len(), STEPS_MAX);
        assert_eq!(steps[0].step, "s0");
    }

    #[test]
    fn the_agents_answer_is_read_over_all_its_managers() {
        let result = json!({"deploy_steps": {
            "A": [{"interface": "deploy", "step": "one", "priority": 5, "reboot_requested": true}],
            "B": [{"interface": "raid", "step": "two", "priority": 0}, {"step": "nameless interface"}, 7],
        }});
        let steps = agent_steps(&result);
        assert_eq!(names(&steps), ["one", "two"]);
        assert!(steps[0].reboot_requested);
    }
}
