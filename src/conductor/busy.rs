//! What a node that is busy is at: what runs, since when, and what ends it. An answer for whoever asked for something else meanwhile.

use crate::node::{Node, ProvisionState, Verb, Waiting, allows};

/// Verbs that end work before it has finished.
const ENDS: [Verb; 2] = [Verb::Abort, Verb::Deleted];

/// What a busy node is at.
#[derive(Debug, Clone, PartialEq)]
pub struct Busy {
    /// Where it is in its life.
    pub state: ProvisionState,
    /// What it waits for, since when and until when at the latest.
    pub runs: Option<Box<Waiting>>,
    /// The verbs that would end it.
    pub ends: Vec<Verb>,
}

impl Busy {
    /// What `node` is at, and waits for.
    pub(super) fn of(node: &Node, runs: Option<Waiting>) -> Busy {
        let state = node.provision_state();
        Busy {
            state,
            runs: runs.map(Box::new),
            ends: ENDS
                .into_iter()
                .filter(|verb| allows(node, *verb))
                .collect(),
        }
    }
}
