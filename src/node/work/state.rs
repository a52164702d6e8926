//! What is stored of work in progress.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::kind::WorkKind;
use crate::node::common::is_shared;
use crate::node::copied::CopyOnChange;
use crate::node::limits::BootMode;
use crate::node::omitted::is_default;
use crate::node::packed::Packed;
use crate::node::provision::ProvisionState;
use crate::node::queues::QueueKind;
use crate::node::steps::WorkStep;
use crate::timestamp::Timestamp;

/// Work in progress: a deploy, a cleaning, an inspection, ...
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// What it is to come to.
    #[serde(default)]
    pub kind: WorkKind,
    /// When it was asked for.
    pub started_at: Timestamp,
    /// What is being waited for.
    pub phase: WorkPhase,
    /// How the machine is to boot.
    pub boot_mode: BootMode,
    /// The steps that were asked for; with a deploy on top of the usual ones.
    #[serde(default, skip_serializing_if = "is_default")]
    pub wanted_steps: Vec<WorkStep>,
    /// The whole list; empty until it is known.
    #[serde(default, skip_serializing_if = "is_default")]
    pub steps: CopyOnChange<Vec<WorkStep>>,
    /// Which entry of `steps` is being carried out.
    #[serde(default, skip_serializing_if = "is_default")]
    pub current: usize,
    /// How often it was begun anew because the agent was lost.
    #[serde(default, skip_serializing_if = "is_default")]
    pub restarts: u32,
    /// The agent's own steps as it told them, kept for later requests; null until then.
    #[serde(default, skip_serializing_if = "Packed::is_null")]
    pub agent_steps: Packed,
    /// Versions of the agent's hardware managers, sent back with each step.
    #[serde(default, skip_serializing_if = "Packed::is_null")]
    pub hardware_manager_version: Packed,
    /// What the agent says of the partitions it wrote; null until then.
    #[serde(default, skip_serializing_if = "Packed::is_null")]
    pub partition_uuids: Packed,
    /// It goes on without the ramdisk: all its steps are the driver's or the conductor's.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_without_ramdisk: bool,
    /// Somebody asked to abort it during a step that can't be interrupted: it ends after that step.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_abort_wanted: bool,
    /// For a rescue: the salted hash of the password, as the agent writes it into its password file.
    #[serde(default)]
    pub rescue_password_hash: Option<String>,
}

/// What work is waiting for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkPhase {
    /// Its turn: as many nodes as may do the same are at it.
    Queued {
        /// In which queue.
        kind: QueueKind,
        /// Since when.
        since: Timestamp,
    },
    /// The driver reboots the machine into the ramdisk.
    Booting,
    /// The agent's first heartbeat.
    AwaitingAgent,
    /// The agent tells which steps it has.
    ReadingSteps,
    /// The agent carries out the current step.
    InBandStep,
    /// The driver carries out the current step.
    OutOfBandStep,
    /// Nothing: a step asked for a pause of this length.
    Pausing {
        /// When it is over.
        until: Timestamp,
    },
    /// Somebody's `unhold`: a step asked for it.
    Held,
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
    /// The agent sets the password, and leaves.
    FinalizingRescue,
    /// The agent sends what it found in the machine.
    AwaitingInventory,
    /// The driver reboots the machine into what is on its disk.
    RebootingToInstance,
}

impl WorkPhase {
    /// The word for logs and texts.
    pub fn name(self) -> &'static str {
        match self {
            WorkPhase::Queued { kind, .. } => match kind {
                QueueKind::Deploy => "waiting for a turn to deploy",
                QueueKind::Clean => "waiting for a turn to clean",
                QueueKind::ImageHost => "waiting for a turn to read the image",
            },
            WorkPhase::Booting => "booting the ramdisk",
            WorkPhase::AwaitingAgent => "waiting for the agent's first heartbeat",
            WorkPhase::ReadingSteps => "reading the agent's steps",
            WorkPhase::InBandStep => "carrying out a step on the agent",
            WorkPhase::OutOfBandStep => "carrying out a step by the driver",
            WorkPhase::Pausing { .. } => "pausing, as a step asked",
            WorkPhase::Held => "holding, until somebody sends unhold",
            WorkPhase::ReadingUuids => "reading the partition UUIDs",
            WorkPhase::InstallingBootloader => "installing the boot loader",
            WorkPhase::SettingBootDevice => "setting the boot device",
            WorkPhase::PoweringOffAgent => "asking the agent to power off",
            WorkPhase::AwaitingOff { .. } => "waiting for the machine to go off",
            WorkPhase::SwitchingOff => "switching the machine off",
            WorkPhase::SwitchingOn => "switching the machine on",
            WorkPhase::FinalizingRescue => "setting the rescue password",
            WorkPhase::AwaitingInventory => "waiting for what the agent finds in the machine",
            WorkPhase::RebootingToInstance => "rebooting the machine into its instance",
        }
    }

    /// True where the next move is not the conductor's: clients see a state that waits.
    pub fn awaits_agent(self) -> bool {
        match self {
            // An agent is there, and is watched as ever.
            WorkPhase::Queued { kind, .. } => kind == QueueKind::ImageHost,
            WorkPhase::AwaitingAgent
            | WorkPhase::ReadingSteps
            | WorkPhase::InBandStep
            | WorkPhase::Pausing { .. }
            | WorkPhase::InstallingBootloader
            | WorkPhase::AwaitingInventory => true,
            WorkPhase::Booting
            | WorkPhase::OutOfBandStep
            | WorkPhase::Held
            | WorkPhase::ReadingUuids
            | WorkPhase::SettingBootDevice
            | WorkPhase::PoweringOffAgent
            | WorkPhase::AwaitingOff { .. }
            | WorkPhase::SwitchingOff
            | WorkPhase::SwitchingOn
            | WorkPhase::FinalizingRescue
            | WorkPhase::RebootingToInstance => false,
        }
    }
}

impl Work {
    /// True once [`Common::share`](crate::node::Common) has been with it.
    pub(in crate::node) fn has_shared(&self) -> bool {
        self.agent_steps.is_shared()
            && self.hardware_manager_version.is_shared()
            && is_shared(self.steps.whole())
    }

    /// Work that begins with booting the ramdisk.
    pub fn begun(
        kind: WorkKind,
        started_at: Timestamp,
        boot_mode: BootMode,
        wanted_steps: Vec<WorkStep>,
    ) -> Work {
        Work {
            kind,
            started_at,
            phase: WorkPhase::Booting,
            boot_mode,
            wanted_steps,
            steps: CopyOnChange::default(),
            current: 0,
            restarts: 0,
            agent_steps: Packed::default(),
            hardware_manager_version: Packed::default(),
            partition_uuids: Packed::default(),
            is_without_ramdisk: false,
            is_abort_wanted: false,
            rescue_password_hash: None,
        }
    }

    /// The same work from its beginning, after its agent was lost.
    pub fn anew(&self) -> Work {
        Work {
            restarts: self.restarts + 1,
            is_abort_wanted: self.is_abort_wanted,
            rescue_password_hash: self.rescue_password_hash.clone(),
            ..Work::begun(
                self.kind,
                self.started_at,
                self.boot_mode,
                self.wanted_steps.clone(),
            )
        }
    }

    /// The state clients see.
    pub fn state(&self) -> ProvisionState {
        let states = self.kind.states();
        match self.phase {
            WorkPhase::Held => states.held.unwrap_or(states.working),
            phase if phase.awaits_agent() => states.waiting.unwrap_or(states.working),
            _ => states.working,
        }
    }

    /// True while it waits to begin: nothing has been done to its machine yet.
    pub fn has_not_begun(&self) -> bool {
        match self.phase {
            WorkPhase::Queued { kind, .. } => self.kind.queue() == Some(kind),
            _ => false,
        }
    }

    /// The step being carried out, once the list is known.
    pub fn current_step(&self) -> Option<&WorkStep> {
        self.steps.get(self.current)
    }

    /// The steps that were begun, the current one included.
    pub fn begun_steps(&self) -> &[WorkStep] {
        self.steps.get(..=self.current).unwrap_or(&self.steps)
    }
}
