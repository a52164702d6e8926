//! What an agent can be asked to do, in the agent's own words.
//!
//! A request holds no secret and no config drive: the client adds those from the node when it builds the body.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Which of an agent's lists of steps: it has one for each kind of work that is made of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepsOf {
    /// Deploy steps.
    #[default]
    Deploy,
    /// Clean steps.
    Clean,
    /// Service steps.
    Service,
}

impl StepsOf {
    /// The word in the agent's names: `<word>_steps`, `<word>_result`, `<word>_version`.
    pub fn word(self) -> &'static str {
        match self {
            StepsOf::Deploy => "deploy",
            StepsOf::Clean => "clean",
            StepsOf::Service => "service",
        }
    }
}

/// One command of the agent (agent-side names: `<extension>.<command>`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Request {
    /// `deploy.get_deploy_steps`, `clean.get_clean_steps`, ...: which in-band steps this agent offers.
    #[serde(alias = "get_deploy_steps")]
    GetSteps {
        /// From which list.
        #[serde(default)]
        of: StepsOf,
    },
    /// `deploy.execute_deploy_step`, `clean.execute_clean_step`, ...: carry out one in-band step, for example `write_image`.
    #[serde(alias = "execute_deploy_step")]
    ExecuteStep {
        /// From which list.
        #[serde(default)]
        of: StepsOf,
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
    /// `rescue.finalize_rescue`: set the password of the rescue user, and end the agent. The password's hash is added by the client.
    FinalizeRescue,
}

impl Request {
    /// `<extension>.<command>`, as it goes into the body of the POST.
    pub fn full_name(&self) -> &'static str {
        match self {
            Request::GetSteps { of } => match of {
                StepsOf::Deploy => "deploy.get_deploy_steps",
                StepsOf::Clean => "clean.get_clean_steps",
                StepsOf::Service => "service.get_service_steps",
            },
            Request::ExecuteStep { of, .. } => match of {
                StepsOf::Deploy => "deploy.execute_deploy_step",
                StepsOf::Clean => "clean.execute_clean_step",
                StepsOf::Service => "service.execute_service_step",
            },
            Request::GetPartitionUuids => "standby.get_partition_uuids",
            Request::InstallBootloader { .. } => "image.install_bootloader",
            Request::Sync => "standby.sync",
            Request::PowerOff => "standby.power_off",
            Request::FinalizeRescue => "rescue.finalize_rescue",
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
            Request::GetSteps { .. }
            | Request::GetPartitionUuids
            | Request::Sync
            | Request::FinalizeRescue => true,
            Request::ExecuteStep { .. } | Request::InstallBootloader { .. } | Request::PowerOff => {
                false
            }
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
        let of = StepsOf::Deploy;
        assert!(Request::GetSteps { of }.is_listed_as("deploy.get_deploy_steps"));
        assert!(!Request::GetSteps { of }.is_listed_as("get_clean_steps"));
        let of = StepsOf::Clean;
        assert!(Request::GetSteps { of }.is_listed_as("get_clean_steps"));
    }

    #[test]
    fn what_older_versions_stored_is_read() {
        let get: Request = serde_json::from_str(r#"{"name": "get_deploy_steps"}"#).unwrap();
        assert_eq!(get.full_name(), "deploy.get_deploy_steps");
        let execute: Request = serde_json::from_str(
            r#"{"name": "execute_deploy_step", "interface": "deploy", "step": "write_image", "args": {}}"#,
        )
        .unwrap();
        assert_eq!(execute.full_name(), "deploy.execute_deploy_step");
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
            (
                Request::GetSteps {
                    of: StepsOf::Deploy,
                },
                true,
            ),
            (Request::FinalizeRescue, true),
            (Request::GetPartitionUuids, true),
            (Request::Sync, true),
            (install, false),
            (Request::PowerOff, false),
        ] {
            assert_eq!(request.is_synchronous(), is_synchronous, "{request:?}");
        }
    }
}
