//! What an agent can be asked to do, in the agent's own words.
//!
//! A request holds no secret and no config drive: the client adds those from the node when it builds the body.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One command of the agent (agent-side names: `<extension>.<command>`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Request {
    /// `deploy.get_deploy_steps`: which in-band steps this agent offers.
    GetDeploySteps,
    /// `deploy.execute_deploy_step`: carry out one in-band deploy step, for example `write_image`.
    ExecuteDeployStep {
        /// The hardware interface the step belongs to, for example `deploy`.
        interface: String,
        /// The step's name.
        step: String,
        /// Arguments as the user gave them; the client adds `image_info` and `configdrive` to `write_image`.
        args: Map<String, Value>,
    },
    /// `standby.get_partition_uuids`: identifiers of what was written.
    GetPartitionUuids,
    /// `image.install_bootloader`: make the written disk bootable.
    InstallBootloader {
        /// The disk identifier of a whole-disk image, or the root file system's UUID.
        root_uuid: Option<String>,
        /// UUID of the EFI system partition, where it is known.
        efi_system_part_uuid: Option<String>,
        /// UUID of the PReP boot partition, where it is known.
        prep_boot_part_uuid: Option<String>,
        /// `bios` or `uefi`.
        target_boot_mode: String,
    },
    /// `standby.sync`: flush file systems.
    Sync,
    /// `standby.power_off`: shut the machine down from within.
    PowerOff,
}

impl Request {
    /// `<extension>.<command>`, as it goes into the body of the POST.
    pub fn full_name(&self) -> &'static str {
        match self {
            Request::GetDeploySteps => "deploy.get_deploy_steps",
            Request::ExecuteDeployStep { .. } => "deploy.execute_deploy_step",
            Request::GetPartitionUuids => "standby.get_partition_uuids",
            Request::InstallBootloader { .. } => "image.install_bootloader",
            Request::Sync => "standby.sync",
            Request::PowerOff => "standby.power_off",
        }
    }

    /// The part after the dot: the name under which the agent lists the command.
    pub fn short_name(&self) -> &'static str {
        let full = self.full_name();
        full.split_once('.').map_or(full, |(_, short)| short)
    }

    /// True for commands that the agent carries out inside the request and lists only when they have ended.
    pub fn is_synchronous(&self) -> bool {
        match self {
            Request::GetDeploySteps | Request::GetPartitionUuids | Request::Sync => true,
            Request::ExecuteDeployStep { .. }
            | Request::InstallBootloader { .. }
            | Request::PowerOff => false,
        }
    }

    /// True when `listed`, a command name from the agent's list, may be this request: the agent lists the short name, but the
    /// full one for a synchronous command that raised an error.
    pub fn is_listed_as(&self, listed: &str) -> bool {
        listed == self.short_name() || listed == self.full_name()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_recognised_by_its_short_and_its_full_name() {
        assert_eq!(Request::PowerOff.short_name(), "power_off");
        assert!(Request::PowerOff.is_listed_as("power_off"));
        assert!(Request::GetDeploySteps.is_listed_as("deploy.get_deploy_steps"));
        assert!(!Request::GetDeploySteps.is_listed_as("get_clean_steps"));
    }

    #[test]
    fn only_what_takes_no_time_is_done_inside_the_request() {
        let install = Request::InstallBootloader {
            root_uuid: None,
            efi_system_part_uuid: None,
            prep_boot_part_uuid: None,
            target_boot_mode: "uefi".to_owned(),
        };
        for (request, is_synchronous) in [
            (Request::GetDeploySteps, true),
            (Request::GetPartitionUuids, true),
            (Request::Sync, true),
            (install, false),
            (Request::PowerOff, false),
        ] {
            assert_eq!(request.is_synchronous(), is_synchronous, "{request:?}");
        }
    }
}
