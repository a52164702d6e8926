//! How long things may take, and what is allowed: the part of the configuration the core reads.

use std::collections::BTreeMap;

use super::inspection::Settings;
use super::queues::QueueKind;
use crate::timestamp::Timestamp;

/// All lengths in milliseconds; 0 means "no limit". A few settings that are no lengths stand here too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// How long an agent may be silent, before and after its first heartbeat (`deploy_callback_timeout`).
    pub deploy_callback_timeout_ms: i64,
    /// The same during a cleaning (`clean_callback_timeout`).
    pub clean_callback_timeout_ms: i64,
    /// The same during a service (`service_callback_timeout`).
    pub service_callback_timeout_ms: i64,
    /// The same during a rescue (`rescue_callback_timeout`).
    pub rescue_callback_timeout_ms: i64,
    /// How long an agent may take to tell what it finds in its machine, booting included (`inspect_wait_timeout`).
    pub inspect_wait_timeout_ms: i64,
    /// How long `write_image` may take, however alive the agent is.
    pub write_image_limit_ms: i64,
    /// How long any other command may take, however alive the agent is.
    pub command_limit_ms: i64,
    /// How long a driver may take for one call (`power_state_change_timeout`).
    pub driver_limit_ms: i64,
    /// How long a machine may take to go off by itself after the agent was asked to (`soft_power_off` at the end of a deploy).
    pub power_off_wait_ms: i64,
    /// How often to look whether it went off.
    pub power_off_look_every_ms: i64,
    /// Boot mode of nodes that don't say theirs: `bios` or `uefi`.
    pub default_boot_mode: BootMode,
    /// Nodes are cleaned on their way to `available`, unless they say otherwise (`automated_clean`).
    pub automated_clean: bool,
    /// Priorities of clean steps, by `<interface>.<step>`, in place of those the driver and the agent give them; 0 leaves a step out
    /// of automated cleaning (`clean_step_priority_override`).
    pub clean_step_priorities: BTreeMap<String, i64>,
    /// A machine is switched off when a step of its cleaning has failed, and not left for a person to look at
    /// (`poweroff_in_cleanfail`).
    pub poweroff_in_cleanfail: bool,
    /// An agent that lost its token gets a new one without a power cycle, where the driver can't switch power and the agent that had
    /// the token is gone (`reissue_lost_token`).
    pub reissue_lost_token: bool,
    /// How many nodes may do the same at once.
    pub queues: QueueLimits,
    /// What is made of the findings of inspections.
    pub inspection: Settings,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            deploy_callback_timeout_ms: 1_800_000,
            clean_callback_timeout_ms: 1_800_000,
            service_callback_timeout_ms: 1_800_000,
            rescue_callback_timeout_ms: 1_800_000,
            inspect_wait_timeout_ms: 1_800_000,
            write_image_limit_ms: 6 * 3_600_000,
            command_limit_ms: 3_600_000,
            driver_limit_ms: 60_000,
            power_off_wait_ms: 35_000,
            power_off_look_every_ms: 1_000,
            default_boot_mode: BootMode::Uefi,
            automated_clean: true,
            clean_step_priorities: BTreeMap::new(),
            poweroff_in_cleanfail: false,
            reissue_lost_token: false,
            queues: QueueLimits::default(),
            inspection: Settings::default(),
        }
    }
}

/// How many nodes may do the same at once; more wait for their turn. 0: no limit, and nobody waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueLimits {
    /// Be deployed (`max_concurrent_deploy`).
    pub deploy: u32,
    /// Be cleaned (`max_concurrent_clean`).
    pub clean: u32,
    /// Read the image they write from the same host (`max_concurrent_per_image_host`).
    pub image_host: u32,
}

impl QueueLimits {
    /// Nobody waits for anybody.
    pub const NONE: QueueLimits = QueueLimits {
        deploy: 0,
        clean: 0,
        image_host: 0,
    };

    /// The limit of this kind.
    pub fn of(&self, kind: QueueKind) -> u32 {
        match kind {
            QueueKind::Deploy => self.deploy,
            QueueKind::Clean => self.clean,
            QueueKind::ImageHost => self.image_host,
        }
    }
}

impl Default for QueueLimits {
    fn default() -> QueueLimits {
        QueueLimits {
            deploy: 250,
            clean: 50,
            image_host: 100,
        }
    }
}

/// How the machine's firmware boots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BootMode {
    /// Legacy.
    Bios,
    /// UEFI.
    Uefi,
}

impl BootMode {
    /// As the agent and clients spell it.
    pub fn name(self) -> &'static str {
        match self {
            BootMode::Bios => "bios",
            BootMode::Uefi => "uefi",
        }
    }

    /// The mode spelled `text`.
    pub fn parse(text: &str) -> Option<BootMode> {
        match text {
            "bios" => Some(BootMode::Bios),
            "uefi" => Some(BootMode::Uefi),
            _ => None,
        }
    }
}

/// The moment an event is handled, and the limits that hold then.
#[derive(Debug, Clone, Copy)]
pub struct Now<'a> {
    /// The time.
    pub at: Timestamp,
    /// The limits.
    pub limits: &'a Limits,
}

impl Now<'_> {
    /// When something that may take `length_ms` must have ended; none for 0.
    pub fn deadline(&self, length_ms: i64) -> Option<Timestamp> {
        (length_ms > 0).then(|| self.at.plus_ms(length_ms))
    }
}
