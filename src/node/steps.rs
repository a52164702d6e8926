//! The lists of steps: the conductor's own, the driver's, the agent's and the user's, in the order in which they are carried out.
//!
//! Pure. A deploy and an automated cleaning go by priority; a manual cleaning and a service go in the order somebody asked for.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::omitted::is_default;
use super::state::Object;
pub use crate::command::StepsOf;

/// One step of a deploy, a cleaning or a service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkStep {
    /// Which hardware interface it belongs to, for example `deploy`.
    pub interface: String,
    /// Its name, for example `write_image`.
    pub step: String,
    /// Higher ones come first; 0 is only carried out when somebody asks for it.
    pub priority: i64,
    /// Arguments.
    #[serde(default, skip_serializing_if = "is_default")]
    pub args: Object,
    /// The machine must be rebooted into the ramdisk after it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reboot_requested: bool,
    /// Carried out by the driver, not by the agent.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_out_of_band: bool,
    /// An abort has to wait for its end.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_not_abortable: bool,
    /// It needs no ramdisk on the machine.
    #[serde(default, skip_serializing_if = "is_default")]
    pub needs_no_ramdisk: bool,
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

/// Steps by these names are the conductor's in every list, whatever interface they are asked for with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reserved {
    /// `hold`: until somebody sends `unhold`.
    Hold,
    /// `wait`: for `seconds`, or until the agent calls again.
    Wait,
    /// `power_on`
    PowerOn,
    /// `power_off`
    PowerOff,
    /// `reboot`
    Reboot,
}

impl Reserved {
    /// The reserved step called `name`.
    pub fn named(name: &str) -> Option<Reserved> {
        match name {
            "hold" => Some(Reserved::Hold),
            "wait" => Some(Reserved::Wait),
            "power_on" => Some(Reserved::PowerOn),
            "power_off" => Some(Reserved::PowerOff),
            "reboot" => Some(Reserved::Reboot),
            _ => None,
        }
    }
}

/// The longest pause a step may ask for, in seconds: a week.
pub const PAUSE_S_MAX: i64 = 604_800;

/// The hardware interfaces that have steps, in the order of steps of equal priority.
pub const INTERFACES: [&str; 7] = [
    "power",
    "management",
    "firmware",
    "deploy",
    "bios",
    "raid",
    "vendor",
];

impl WorkStep {
    /// A step without arguments.
    pub fn named(interface: &str, step: &str, priority: i64) -> WorkStep {
        WorkStep {
            interface: interface.to_owned(),
            step: step.to_owned(),
            priority,
            args: Object::new(),
            reboot_requested: false,
            is_out_of_band: false,
            is_not_abortable: false,
            needs_no_ramdisk: false,
        }
    }

    /// `<interface>.<step>`
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.interface, self.step)
    }

    /// True for the steps of a deploy that the conductor takes itself.
    pub fn is_core(&self) -> bool {
        self.interface == "deploy" && CORE.iter().any(|(name, _)| *name == self.step)
    }

    /// The step of the conductor that it is in every list, if it is one.
    pub fn reserved(&self) -> Option<Reserved> {
        Reserved::named(&self.step)
    }

    /// True if an agent that was lost in it may be asked for it again: it wipes, and wiping twice is wiping.
    pub fn is_repeatable(&self) -> bool {
        self.interface == "deploy" && self.step.starts_with("erase_")
    }

    fn is_same_as(&self, other: &WorkStep) -> bool {
        self.interface == other.interface && self.step == other.step
    }
}

/// The conductor's own steps in a deploy by the deploy interface `interface`: `custom-agent` leaves the writing to steps of the agent.
pub fn core_steps_of(interface: &str) -> Vec<WorkStep> {
    core_steps()
        .into_iter()
        .filter(|step| interface != "custom-agent" || step.step != WRITE_IMAGE)
        .collect()
}

/// The conductor's own steps in a deploy.
pub fn core_steps() -> Vec<WorkStep> {
    CORE.iter()
        .map(|(name, priority)| WorkStep::named("deploy", name, *priority))
        .collect()
}

/// More steps than any agent has; the list is stored with every change of the node.
const STEPS_MAX: usize = 1_000;
/// More steps than anybody asks for at a time.
pub const WANTED_STEPS_MAX: usize = 100;
/// The longest name of a step or an interface, in bytes.
pub const NAME_BYTES_MAX: usize = 255;

/// The agent's steps, from the result of `get_deploy_steps` and its like: lists by hardware manager. Where two managers have a step, the
/// first is taken.
///
/// # Errors
/// What of it can't be read. A list that is only half understood is none: a step that is passed over may be the one that erases the disk.
pub fn agent_steps(of: StepsOf, result: &Value) -> Result<Vec<WorkStep>, String> {
    let name = format!("{}_steps", of.word());
    let managers = result
        .get(&name)
        .and_then(Value::as_object)
        .ok_or_else(|| format!("{name} is missing or no object"))?;
    let mut steps = Vec::new();
    for (manager, list) in managers {
        let list = list
            .as_array()
            .ok_or_else(|| format!("{name} of {} is no list", short(manager)))?;
        for step in list {
            let of_manager = |problem: &str| format!("a step of {}: {problem}", short(manager));
            steps.push(agent_step(step).map_err(of_manager)?);
            if steps.len() > STEPS_MAX {
                return Err(format!("{name} has more than {STEPS_MAX} steps"));
            }
        }
    }
    Ok(steps)
}

fn agent_step(step: &Value) -> Result<WorkStep, &'static str> {
    let text = |key: &str| {
        let text = step.get(key).and_then(Value::as_str);
        text.filter(|text| !text.is_empty() && text.len() <= NAME_BYTES_MAX)
    };
    let flag = |key: &str| step.get(key).and_then(Value::as_bool);
    let interface = text("interface").ok_or("interface is missing or no short text")?;
    let name = text("step").ok_or("step is missing or no short text")?;
    let priority = step
        .get("priority")
        .and_then(Value::as_i64)
        .ok_or("priority is missing or no whole number")?;
    Ok(WorkStep {
        reboot_requested: flag("reboot_requested").unwrap_or(false),
        is_not_abortable: flag("abortable") != Some(true),
        ..WorkStep::named(interface, name, priority)
    })
}

/// Enough of an agent's name for something to recognise it.
fn short(name: &str) -> String {
    name.chars().take(80).collect()
}

/// The names of steps that more than one of the agent's hardware managers has, each once.
pub fn told_twice(agent: &[WorkStep]) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let names = agent.iter().map(WorkStep::full_name);
    names.filter(|name| !seen.insert(name.clone())).collect()
}

/// The whole list of a deploy, highest priority first, from the conductor's own steps, those of the driver and the agent, and those
/// somebody asked for.
///
/// A step of the conductor hides one of the driver or the agent with the same interface and name, and one of the driver hides the
/// agent's. What the user asked for replaces the priority and arguments of a step of the same name; what was asked for later wins.
///
/// # Errors
/// A step of the user that nobody knows: its name.
pub fn by_wish_and_priority(
    own: Vec<WorkStep>,
    driver: &[WorkStep],
    agent: &[WorkStep],
    user: &[WorkStep],
) -> Result<Vec<WorkStep>, String> {
    let mut steps = known(own, driver, agent);
    for wanted in user {
        if wanted.reserved().is_some() {
            steps.push(wanted.clone());
            continue;
        }
        let Some(known) = steps.iter_mut().find(|known| known.is_same_as(wanted)) else {
            return Err(wanted.full_name());
        };
        known.priority = wanted.priority;
        known.args = wanted.args.clone();
    }
    steps.retain(|step| step.priority > 0);
    // A stable sort: steps of equal priority stay in the order above, the conductor's first.
    steps.sort_by_key(|step| std::cmp::Reverse(step.priority));
    Ok(steps)
}

/// The whole list of an automated cleaning: every step that has a priority, highest first, and by interface where it is equal.
/// `priorities`: those an operator has set, by `<interface>.<step>`.
pub fn by_priority(
    driver: &[WorkStep],
    agent: &[WorkStep],
    priorities: &BTreeMap<String, i64>,
) -> Vec<WorkStep> {
    let mut steps = known(Vec::new(), driver, agent);
    for step in &mut steps {
        if let Some(priority) = priorities.get(&step.full_name()) {
            step.priority = *priority;
        }
    }
    steps.retain(|step| step.priority > 0);
    steps.sort_by_key(|step| {
        let place = INTERFACES
            .iter()
            .position(|interface| *interface == step.interface);
        (
            std::cmp::Reverse(step.priority),
            place.unwrap_or(usize::MAX),
        )
    });
    steps
}

/// The steps somebody asked for, in their order, with what the driver and the agent say of them.
///
/// # Errors
/// A step that nobody knows: its name.
pub fn in_order(
    wanted: &[WorkStep],
    driver: &[WorkStep],
    agent: &[WorkStep],
) -> Result<Vec<WorkStep>, String> {
    let known = known(Vec::new(), driver, agent);
    wanted
        .iter()
        .map(|wanted| {
            if wanted.reserved().is_some() {
                return Ok(WorkStep {
                    needs_no_ramdisk: true,
                    ..wanted.clone()
                });
            }
            let known = known.iter().find(|known| known.is_same_as(wanted));
            let known = known.ok_or_else(|| wanted.full_name())?;
            Ok(WorkStep {
                args: wanted.args.clone(),
                priority: wanted.priority,
                ..known.clone()
            })
        })
        .collect()
}

fn known(own: Vec<WorkStep>, driver: &[WorkStep], agent: &[WorkStep]) -> Vec<WorkStep> {
    let mut steps = own;
    for step in driver.iter().chain(agent) {
        if !steps.iter().any(|known| known.is_same_as(step)) {
            steps.push(step.clone());
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    use WorkStep as Step;

    fn step(interface: &str, name: &str, priority: i64) -> Step {
        Step::named(interface, name, priority)
    }

    fn merge(agent: &[Step], user: &[Step]) -> Result<Vec<Step>, String> {
        by_wish_and_priority(core_steps(), &[], agent, user)
    }

    fn names(steps: &[WorkStep]) -> Vec<&str> {
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
        let first = |user: &[WorkStep]| merge(&agent, user).unwrap()[0].step.clone();
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
        let result = json!({"deploy_steps": {"A": many}});
        let problem = agent_steps(StepsOf::Deploy, &result).unwrap_err();
        assert!(problem.contains("1000"), "{problem}");
    }

    #[test]
    fn the_agents_answer_is_read_over_all_its_managers() {
        let result = json!({"deploy_steps": {
            "A": [{"interface": "deploy", "step": "one", "priority": 5, "reboot_requested": true}],
            "B": [{"interface": "raid", "step": "two", "priority": 0}],
        }});
        let steps = agent_steps(StepsOf::Deploy, &result).unwrap();
        assert_eq!(names(&steps), ["one", "two"]);
        assert!(steps[0].reboot_requested);
    }

    #[test]
    fn a_step_of_two_managers_is_taken_once_and_is_of_its_own_phase() {
        let erase =
            |priority| json!({"interface": "deploy", "step": "erase", "priority": priority});
        let result = json!({
            "clean_steps": {"Generic": [erase(10)], "Vendor": [erase(99)]},
            "deploy_steps": {"Generic": [{"interface": "deploy", "step": "burn_in", "priority": 90}]},
        });
        let agent = agent_steps(StepsOf::Clean, &result).unwrap();
        assert_eq!(told_twice(&agent), ["deploy.erase".to_owned()].into());
        let steps = by_priority(&[], &agent, &BTreeMap::new());
        assert_eq!(
            steps,
            [step("deploy", "erase", 10)].map(|step| Step {
                is_not_abortable: true,
                ..step
            })
        );
        let agent = agent_steps(StepsOf::Deploy, &result).unwrap();
        assert_eq!(
            (names(&agent), told_twice(&agent)),
            (vec!["burn_in"], BTreeSet::new())
        );
        assert!(agent_steps(StepsOf::Service, &result).is_err());
    }

    #[test]
    fn a_list_that_is_only_half_understood_is_none() {
        let good = json!({"interface": "deploy", "step": "erase_devices", "priority": 10});
        let with = |key: &str, value: Value| {
            let mut step = good.clone();
            step[key] = value;
            json!({"clean_steps": {"A": [step]}})
        };
        for (result, said) in [
            (json!({}), "clean_steps is missing"),
            (json!({"clean_steps": "x"}), "clean_steps is missing"),
            (json!({"clean_steps": {"A": null}}), "of A is no list"),
            (json!({"clean_steps": {"A": [7]}}), "interface"),
            (with("interface", json!(null)), "interface"),
            (with("step", json!("s".repeat(300))), "step is missing"),
            (with("priority", json!("10")), "priority"),
            (with("priority", json!(10.5)), "priority"),
            (with("priority", json!(null)), "priority"),
        ] {
            let problem = agent_steps(StepsOf::Clean, &result).unwrap_err();
            assert!(problem.contains(said), "{result}: {problem}");
        }
        assert_eq!(
            agent_steps(StepsOf::Clean, &json!({"clean_steps": {}})),
            Ok(Vec::new())
        );
    }
}
