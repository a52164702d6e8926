//! Signs of life: what every heartbeat and every answer of an agent changes, apart from all else a node is. They are stored for
//! themselves, because they come often and are small.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::state::{Deadlines, Node};
use crate::timestamp::Timestamp;

/// When a node's agent was heard, and when waiting ends.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Signs {
    deadlines: Deadlines,
    agent: Option<Heard>,
}

/// What is known of an agent's life.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Heard {
    last_heartbeat_at: Option<Timestamp>,
    last_contact_at: Option<Timestamp>,
    trouble: Option<String>,
    asked_again_at: Option<Timestamp>,
    proved_alive_at: Option<Timestamp>,
}

impl Signs {
    /// Those of a node.
    pub fn of(node: &Node) -> Signs {
        Signs {
            deadlines: node.deadlines.clone(),
            agent: node.session.as_ref().map(|session| Heard {
                last_heartbeat_at: session.last_heartbeat_at,
                last_contact_at: session.last_contact_at,
                trouble: session.trouble.clone(),
                asked_again_at: session.asked_again_at,
                proved_alive_at: session.proved_alive_at,
            }),
        }
    }

    /// Makes them those of `node`, of which they are.
    pub fn put_into(self, node: &mut Node) {
        node.deadlines = self.deadlines;
        if let (Some(session), Some(heard)) = (&mut node.session, self.agent) {
            session.last_heartbeat_at = heard.last_heartbeat_at;
            session.last_contact_at = heard.last_contact_at;
            session.trouble = heard.trouble;
            session.asked_again_at = heard.asked_again_at;
            session.proved_alive_at = heard.proved_alive_at;
        }
    }
}
