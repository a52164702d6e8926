//! Steps that are carried out on a machine from outside, without its ramdisk: which there are, and what each does to what is
//! recorded of the machine. Pure.
//!
//! How the engine of cleaning, deploying and servicing uses it:
//! 1. [`hardware_steps`] lists what a node offers for one kind of work; all have priority 0, so none runs unless somebody asks.
//! 2. [`check_arguments`] before a list of steps is accepted.
//! 3. When a step's turn comes: [`prepare`] says whether it can be done; a step that can't be done fails here, before anything is
//!    touched.
//! 4. When the driver has answered that it is done: [`record`] writes the effect into the node.

use serde_json::{Value, json};

use super::recorded::{BiosChange, FirmwareChange};
use super::{bios, firmware, raid};
use crate::command::StepsOf;
use crate::node::internal_info::utc_text;
use crate::node::state::{Attributes, Node, Object};
use crate::timestamp::Timestamp;

/// One step that a machine offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HardwareStep {
    /// The kind of interface it belongs to: `bios`, `raid`, ...
    pub interface: &'static str,
    /// Its name.
    pub step: &'static str,
    /// Which implementation of the interface offers it.
    implementation: &'static str,
    /// For which kinds of work.
    kinds: &'static [StepsOf],
    /// What it can be told.
    pub arguments: &'static [Argument],
    /// Needs the ramdisk to run meanwhile.
    pub requires_ramdisk: bool,
    /// Work can be aborted while it waits for this step.
    pub abortable: bool,
}

/// One argument of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Argument {
    /// Its name.
    pub name: &'static str,
    /// Whether the step can do without.
    pub is_required: bool,
    /// A sentence for operators.
    pub what: &'static str,
}

impl HardwareStep {
    /// 0: it runs only if somebody asks for it.
    pub const PRIORITY: i64 = 0;

    /// As `driver_internal_info` and the API show it.
    pub fn described(&self) -> Value {
        let arguments: Object = self
            .arguments
            .iter()
            .map(|argument| {
                let told = json!({"description": argument.what, "required": argument.is_required});
                (argument.name.to_owned(), told)
            })
            .collect();
        json!({
            "interface": self.interface,
            "step": self.step,
            "priority": Self::PRIORITY,
            "abortable": self.abortable,
            "requires_ramdisk": self.requires_ramdisk,
            "argsinfo": if arguments.is_empty() { Value::Null } else { Value::Object(arguments) },
        })
    }
}

const ANY: &[StepsOf] = &[StepsOf::Clean, StepsOf::Deploy, StepsOf::Service];
const CLEAN: &[StepsOf] = &[StepsOf::Clean];
const DEPLOY: &[StepsOf] = &[StepsOf::Deploy];
const SERVICE: &[StepsOf] = &[StepsOf::Service];

const fn step(
    interface: &'static str,
    step: &'static str,
    kinds: &'static [StepsOf],
    arguments: &'static [Argument],
) -> HardwareStep {
    HardwareStep {
        interface,
        step,
        implementation: "fake",
        kinds,
        arguments,
        requires_ramdisk: false,
        abortable: false,
    }
}

const fn required(name: &'static str, what: &'static str) -> Argument {
    Argument {
        name,
        is_required: true,
        what,
    }
}

const fn optional(name: &'static str, what: &'static str) -> Argument {
    Argument {
        name,
        is_required: false,
        what,
    }
}

const DELETE_EXISTING: Argument = optional(
    "delete_existing",
    "Whether the RAID that is there is deleted first.",
);
const CREATE_ROOT: Argument = optional(
    "create_root_volume",
    "Whether the logical disk with is_root_volume is made; true unless said.",
);
const CREATE_OTHERS: Argument = optional(
    "create_nonroot_volumes",
    "Whether the other logical disks are made; true unless said.",
);

/// Every step of a fake machine.
const STEPS: &[HardwareStep] = &[
    step(
        "bios",
        "apply_configuration",
        ANY,
        &[required(
            "settings",
            "The settings to change: a list of objects with name and value.",
        )],
    ),
    step("bios", "factory_reset", ANY, &[]),
    step(
        "firmware",
        "update",
        ANY,
        &[required(
            "settings",
            "What to flash: a list of objects with component and url.",
        )],
    ),
    step("management", "reset_bmc", ANY, &[]),
    step(
        "raid",
        "create_configuration",
        CLEAN,
        &[CREATE_ROOT, CREATE_OTHERS, DELETE_EXISTING],
    ),
    step("raid", "delete_configuration", CLEAN, &[]),
    step(
        "raid",
        "apply_configuration",
        DEPLOY,
        &[
            required(
                "raid_config",
                "The RAID to make: an object with logical_disks.",
            ),
            CREATE_ROOT,
            CREATE_OTHERS,
            DELETE_EXISTING,
        ],
    ),
    HardwareStep {
        abortable: true,
        ..step(
            "vendor",
            "log_passthru",
            SERVICE,
            &[optional(
                "message",
                "What to write into the node's history.",
            )],
        )
    },
];

/// What a node with these attributes offers for one kind of work.
pub fn hardware_steps(attributes: &Attributes, kind: StepsOf) -> Vec<&'static HardwareStep> {
    STEPS
        .iter()
        .filter(|step| {
            step.kinds.contains(&kind)
                && super::uses(attributes, step.interface, step.implementation)
        })
        .collect()
}

/// The step of this name, if a node with these attributes offers it for this kind of work.
pub fn hardware_step(
    attributes: &Attributes,
    kind: StepsOf,
    interface: &str,
    step: &str,
) -> Option<&'static HardwareStep> {
    hardware_steps(attributes, kind)
        .into_iter()
        .find(|known| known.interface == interface && known.step == step)
}

/// Whether a step can be told this at all: no unknown argument, none missing, each of the right form.
///
/// # Errors
/// What is wrong, in words for an operator.
pub fn check_arguments(step: &HardwareStep, args: &Object) -> Result<(), String> {
    let name = format!("{}.{}", step.interface, step.step);
    for key in args.keys() {
        if !step.arguments.iter().any(|known| known.name == key) {
            return Err(format!("{name} has no argument {key:?}"));
        }
    }
    for argument in step.arguments {
        if argument.is_required && args.get(argument.name).is_none_or(Value::is_null) {
            return Err(format!("{name} needs the argument {:?}", argument.name));
        }
    }
    for flag in [CREATE_ROOT, CREATE_OTHERS, DELETE_EXISTING] {
        if args.get(flag.name).is_some_and(|value| !value.is_boolean()) {
            return Err(format!("{name}: {} must be true or false", flag.name));
        }
    }
    let problem = match (step.interface, step.step) {
        ("bios", "apply_configuration") => bios::wanted(args).err(),
        ("firmware", "update") => firmware::wanted(args).err(),
        ("raid", "apply_configuration") => raid_of(args).err(),
        ("vendor", "log_passthru") => args
            .get("message")
            .filter(|message| !message.is_string())
            .map(|_| "message must be a string".to_owned()),
        _ => None,
    };
    match problem {
        Some(problem) => Err(format!("{name}: {problem}")),
        None => Ok(()),
    }
}

/// Whether the step can be carried out on this node now; called before the driver is asked.
///
/// # Errors
/// Why not, in words for an operator.
pub fn prepare(node: &Node, step: &HardwareStep, args: &Object) -> Result<(), String> {
    check_arguments(step, args)?;
    if (step.interface, step.step) == ("raid", "create_configuration")
        && node.hardware.target_raid_config.is_empty()
    {
        return Err(
            "the node has no target_raid_config; set it before the RAID is created".to_owned(),
        );
    }
    Ok(())
}

/// Records that the step was carried out. What can't be understood, though it was checked before, changes nothing.
pub fn record(node: &mut Node, step: &HardwareStep, args: &Object, now: Timestamp) {
    match (step.interface, step.step) {
        ("bios", "apply_configuration") => {
            for (setting, value) in bios::wanted(args).unwrap_or_default() {
                let changes = &mut node.hardware.bios_changes;
                if value == setting.factory_value {
                    changes.remove(setting.name);
                } else {
                    changes.insert(setting.name.to_owned(), BiosChange { value, at: now });
                }
            }
        }
        ("bios", "factory_reset") => node.hardware.bios_changes.clear(),
        ("firmware", "update") => {
            for (component, version) in firmware::wanted(args).unwrap_or_default() {
                let change = FirmwareChange { version, at: now };
                node.hardware
                    .firmware_changes
                    .insert(component.name.to_owned(), change);
            }
        }
        ("raid", "create_configuration") => {
            let target = node.hardware.target_raid_config.clone();
            make_raid(node, &target, args, now);
        }
        ("raid", "apply_configuration") => {
            if let Ok(target) = raid_of(args) {
                make_raid(node, &target, args, now);
            }
        }
        ("raid", "delete_configuration") => node.hardware.raid_config = Object::new(),
        _ => {}
    }
}

/// The RAID as it then is: what was there unless it is deleted first, and what was asked for, each volume with a name.
fn make_raid(node: &mut Node, target: &Object, args: &Object, now: Timestamp) {
    let flag = |argument: Argument, otherwise: bool| {
        args.get(argument.name)
            .and_then(Value::as_bool)
            .unwrap_or(otherwise)
    };
    // A deploy step replaces what is there, a clean step adds to it, unless it is said otherwise.
    let replaces = flag(DELETE_EXISTING, args.contains_key("raid_config"));
    let mut disks: Vec<Value> = if replaces {
        Vec::new()
    } else {
        disks_of(&node.hardware.raid_config)
    };
    for mut disk in disks_of(target) {
        let is_root = disk.get("is_root_volume") == Some(&Value::Bool(true));
        let is_wanted = if is_root {
            flag(CREATE_ROOT, true)
        } else {
            flag(CREATE_OTHERS, true)
        };
        if !is_wanted {
            continue;
        }
        if let Some(disk) = disk.as_object_mut() {
            disk.entry("volume_name")
                .or_insert_with(|| json!(format!("volume-{}", disks.len())));
        }
        disks.push(disk);
    }
    let mut config = Object::new();
    config.insert("logical_disks".to_owned(), Value::Array(disks));
    config.insert("last_updated".to_owned(), json!(utc_text(now)));
    node.hardware.raid_config = config;
}

fn disks_of(config: &Object) -> Vec<Value> {
    config
        .get("logical_disks")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default()
}

fn raid_of(args: &Object) -> Result<Object, String> {
    let target = args
        .get("raid_config")
        .and_then(Value::as_object)
        .ok_or("raid_config must be an object with logical_disks")?;
    if target.is_empty() {
        return Err("raid_config must be an object with logical_disks".to_owned());
    }
    raid::check_target(target).map_err(|why| why.to_string())?;
    Ok(target.clone())
}

/// An argument that must be a list of at least one thing.
pub(super) fn list_argument<'a>(args: &'a Object, name: &str) -> Result<&'a [Value], String> {
    let list = args
        .get(name)
        .and_then(Value::as_array)
        .ok_or_else(|| format!("{name} must be a list"))?;
    if list.is_empty() {
        return Err(format!("{name} is empty"));
    }
    Ok(list)
}
