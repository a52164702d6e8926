//! The names of the provision states and verbs, as clients spell them.

use std::fmt;

macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[expect(missing_docs, reason = "each variant is spelled by `name`")]
        pub enum $name { $($variant),+ }

        impl $name {
            /// Every value, in the order of the life of a node.
            pub const ALL: &[$name] = &[$($name::$variant),+];

            /// As clients spell it.
            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }

            /// The value that clients spell `text`.
            pub fn parse(text: &str) -> Option<$name> {
                match text { $($text => Some($name::$variant),)+ _ => None }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

named! {
    /// All provision states of the Bare Metal API.
    ProvisionState {
        Enroll = "enroll",
        Verifying = "verifying",
        Manageable = "manageable",
        Inspecting = "inspecting",
        InspectWait = "inspect wait",
        InspectFailed = "inspect failed",
        Cleaning = "cleaning",
        CleanWait = "clean wait",
        CleanHold = "clean hold",
        CleanFailed = "clean failed",
        Available = "available",
        Deploying = "deploying",
        WaitCallBack = "wait call-back",
        DeployHold = "deploy hold",
        DeployFailed = "deploy failed",
        Active = "active",
        Servicing = "servicing",
        ServiceWait = "service wait",
        ServiceHold = "service hold",
        ServiceFailed = "service failed",
        Rescuing = "rescuing",
        RescueWait = "rescue wait",
        RescueFailed = "rescue failed",
        Rescue = "rescue",
        Unrescuing = "unrescuing",
        UnrescueFailed = "unrescue failed",
        Deleting = "deleting",
        Error = "error",
        Adopting = "adopting",
        AdoptFailed = "adopt failed",
    }
}

named! {
    /// All provision verbs of the Bare Metal API.
    Verb {
        Manage = "manage",
        Provide = "provide",
        Inspect = "inspect",
        Clean = "clean",
        Active = "active",
        Rebuild = "rebuild",
        Deleted = "deleted",
        Rescue = "rescue",
        Unrescue = "unrescue",
        Adopt = "adopt",
        Service = "service",
        Abort = "abort",
        Unhold = "unhold",
    }
}

impl ProvisionState {
    /// What the state is on the way to, or was when it failed; none for states that rest.
    pub fn target(self) -> Option<ProvisionState> {
        use ProvisionState as S;
        match self {
            S::Enroll | S::Manageable | S::Available | S::Active | S::Rescue | S::Error => None,
            S::Verifying | S::Inspecting | S::InspectWait | S::InspectFailed => Some(S::Manageable),
            S::Cleaning | S::CleanWait | S::CleanHold | S::CleanFailed | S::Deleting => {
                Some(S::Available)
            }
            S::Deploying
            | S::WaitCallBack
            | S::DeployHold
            | S::DeployFailed
            | S::Servicing
            | S::ServiceWait
            | S::ServiceHold
            | S::ServiceFailed
            | S::Unrescuing
            | S::UnrescueFailed
            | S::Adopting
            | S::AdoptFailed => Some(S::Active),
            S::Rescuing | S::RescueWait | S::RescueFailed => Some(S::Rescue),
        }
    }

    /// True where the next move is an agent's or, held, somebody's.
    pub fn is_waiting(self) -> bool {
        use ProvisionState as S;
        matches!(
            self,
            S::InspectWait
                | S::CleanWait
                | S::CleanHold
                | S::WaitCallBack
                | S::DeployHold
                | S::ServiceWait
                | S::ServiceHold
                | S::RescueWait
        )
    }

    /// True where the conductor itself is at work: requests to change the node have to wait.
    pub fn is_working(self) -> bool {
        use ProvisionState as S;
        matches!(
            self,
            S::Verifying
                | S::Inspecting
                | S::Cleaning
                | S::Deploying
                | S::Servicing
                | S::Rescuing
                | S::Unrescuing
                | S::Deleting
                | S::Adopting
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back_as_itself() {
        for state in ProvisionState::ALL {
            assert_eq!(ProvisionState::parse(state.name()), Some(*state));
        }
        for verb in Verb::ALL {
            assert_eq!(Verb::parse(verb.name()), Some(*verb));
        }
        assert_eq!(ProvisionState::ALL.len(), 30);
        assert_eq!(ProvisionState::parse("Enroll"), None);
    }
}
