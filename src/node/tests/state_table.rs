//! The table of states for people: `ops/states.md`, made from the table of transitions. A test holds the file against it.

use std::fmt::Write;

use crate::node::provision::ProvisionState as S;
use crate::node::transitions::{EDGES, diagram, verbs};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/ops/states.md");

/// What ends a state at work or a wait if nobody does.
fn limit(state: S) -> &'static str {
    match state {
        S::Verifying | S::Adopting | S::Deleting => "`power_state_change_timeout`",
        S::Inspecting | S::Cleaning | S::Deploying | S::Servicing | S::Rescuing | S::Unrescuing => {
            "`power_state_change_timeout` for the driver, `command_limit` for the agent"
        }
        S::InspectWait => "`inspect_wait_timeout`",
        S::CleanWait => "`clean_callback_timeout` of silence, `command_limit` for a step",
        S::WaitCallBack => {
            "`deploy_callback_timeout` of silence, `write_image_limit` and `command_limit` for a step"
        }
        S::ServiceWait => "`service_callback_timeout` of silence, `command_limit` for a step",
        S::RescueWait => "`rescue_callback_timeout` of silence",
        S::CleanHold | S::DeployHold | S::ServiceHold => "none: it is somebody's to end",
        _ => "",
    }
}

fn text() -> String {
    let mut text = String::from(
        "# The states of a node\n\
         \n\
         This file is made from the code (`src/node/transitions.rs`); a test fails when it is out of date and says how to renew it.\n\
         `baremetal node show` tells the state as `provision_state`, and `GET /v1/nodes/<node>/commands` what the node waits for.\n\
         A restart of the conductor fails none of them: what was awaited before is awaited after it.\n\
         \n\
         | state | on the way to | verbs | what else leads away | limit |\n\
         |---|---|---|---|---|\n",
    );
    for state in S::ALL {
        let verbs = verbs(*state);
        let names: Vec<&str> = verbs.iter().map(|verb| verb.name()).collect();
        let others: Vec<String> = EDGES
            .iter()
            .filter(|(from, cause, _)| {
                from == state && !verbs.iter().any(|verb| *cause == (*verb).into())
            })
            .map(|(_, cause, to)| format!("{}: {to}", cause.name()))
            .collect();
        let target = state.target().map_or("", S::name);
        writeln!(
            text,
            "| {state} | {target} | {} | {} | {} |",
            names.join(", "),
            others.join(", "),
            limit(*state)
        )
        .unwrap();
    }
    text.push_str(
        "\nA node in `deploying` or `cleaning` that waits for its turn has no limit, and takes `abort`, a deploy also `deleted`, while it waits.\n",
    );
    text.push_str(
        "\nA manual cleaning is on the way to manageable from its beginning to its end.\n",
    );
    text.push_str("\n```mermaid\n");
    text.push_str(&diagram());
    text.push_str("```\n");
    text
}

#[test]
fn the_file_of_states_is_what_the_table_says() {
    let wanted = text();
    if std::env::var_os("UPBEAT_WRITE_DOCS").is_some() {
        std::fs::write(FILE, &wanted).unwrap();
    }
    let there = std::fs::read_to_string(FILE).unwrap_or_default();
    assert!(
        there == wanted,
        "ops/states.md is out of date: UPBEAT_WRITE_DOCS=1 cargo test --lib the_file_of_states"
    );
}

#[test]
fn every_state_that_can_end_by_itself_has_a_limit() {
    for state in S::ALL {
        let can_hang = state.is_working() || state.is_waiting();
        assert_eq!(!limit(*state).is_empty(), can_hang, "{state}");
    }
}
