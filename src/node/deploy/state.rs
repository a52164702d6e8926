//! What is stored of a deploy in progress.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::node::limits::BootMode;
use crate::node::steps::DeployStep;
use crate::timestamp::Timestamp;

/// A deploy in progress.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Deploy {
    /// When it was asked for.
    pub started_at: Timestamp,
    /// What is being waited for.
    pub phase: DeployPhase,
    /// How the machine is to boot.
    pub boot_mode: BootMode,
    /// What the user asked for on top of the usual steps.
    pub wanted_steps: Vec<DeployStep>,
    /// The whole list; empty until the agent has told its own.
    pub steps: Vec<DeployStep>,
    /// Which entry of `steps` is being carried out.
    pub current: usize,
    /// How often it was begun anew because the agent was lost.
    pub restarts: u32,
    /// The agent's own steps as it told them, kept for later requests; null until then.
    pub agent_steps: Value,
    /// Versions of the agent's hardware managers, sent back with each step.
    pub hardware_manager_version: Value,
    /// What the agent says of the partitions it wrote; null until then.
    pub partition_uuids: Value,
}

/// What a deploy is waiting for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeployPhase {
    /// The driver reboots the machine into the ramdisk.
    Booting,
    /// The agent's first heartbeat.
    AwaitingAgent,
    /// The agent tells which steps it has.
    ReadingSteps,
    /// The agent carries out the current step.
    InBandStep,
    /// The agent tells what it wrote.
    ReadingUuids,
    /// The agent makes the disk bootable.
    InstallingBootloader,
    /// The driver makes the machine boot from disk.
    SettingBootDevice,
    /// The agent takes the order to power off.
    PoweringOffAgent,
    /// The machine goes off by itself.
    AwaitingOff {
        /// When it is switched off in any case.
        until: Timestamp,
    },
    /// The driver switches it off.
    SwitchingOff,
    /// The driver switches it on.
    SwitchingOn,
}

impl DeployPhase {
    /// The word for logs and texts.
    pub fn name(self) -> &'static str {
        match self {
            DeployPhase::Booting => "booting the ramdisk",
            DeployPhase::AwaitingAgent => "waiting for the agent's first heartbeat",
            DeployPhase::ReadingSteps => "reading the agent's steps",
            DeployPhase::InBandStep => "carrying out a step on the agent",
            DeployPhase::ReadingUuids => "reading the partition UUIDs",
            DeployPhase::InstallingBootloader => "installing the boot loader",
            DeployPhase::SettingBootDevice => "setting the boot device",
            DeployPhase::PoweringOffAgent => "asking the agent to power off",
            DeployPhase::AwaitingOff { .. } => "waiting for the machine to go off",
            DeployPhase::SwitchingOff => "switching the machine off",
            DeployPhase::SwitchingOn => "switching the machine on",
        }
    }
}

impl Deploy {
    /// True where the next move is the agent's: clients see `wait call-back` then, `deploying` otherwise.
    pub fn awaits_agent(&self) -> bool {
        match self.phase {
            DeployPhase::AwaitingAgent
            | DeployPhase::ReadingSteps
            | DeployPhase::InBandStep
            | DeployPhase::InstallingBootloader => true,
            DeployPhase::Booting
            | DeployPhase::ReadingUuids
            | DeployPhase::SettingBootDevice
            | DeployPhase::PoweringOffAgent
            | DeployPhase::AwaitingOff { .. }
            | DeployPhase::SwitchingOff
            | DeployPhase::SwitchingOn => false,
        }
    }

    /// A deploy that begins with booting the ramdisk.
    pub fn begun(
        started_at: Timestamp,
        boot_mode: BootMode,
        wanted_steps: Vec<DeployStep>,
    ) -> Deploy {
        Deploy {
            started_at,
            phase: DeployPhase::Booting,
            boot_mode,
            wanted_steps,
            steps: Vec::new(),
            current: 0,
            restarts: 0,
            agent_steps: Value::Null,
            hardware_manager_version: Value::Null,
            partition_uuids: Value::Null,
        }
    }

    /// The step being carried out, once the list is known.
    pub fn current_step(&self) -> Option<&DeployStep> {
        self.steps.get(self.current)
    }
}
