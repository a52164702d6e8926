//! Inspection: told before the look-up, whatever becomes of it.

use serde_json::json;
use upbeat::demo::{Faults, FleetOptions};

use crate::lab::*;
use crate::stub_api::{self, StubApi};

fn inspects() -> FleetOptions {
    FleetOptions {
        inspects: true,
        ..quick()
    }
}

#[tokio::test]
async fn the_machine_is_told_of_before_the_look_up_which_then_names_the_node() {
    let api = StubApi::start().await;
    api.set(|behaviour| behaviour.inspection_statuses.push_back(202));
    let lab = Lab::with(Faults::none(), inspects(), api);
    let journal = lab.boot().await;
    assert_eq!(journal.inspections, [Some(202)]);

    let requests = lab.api.requests("/v1/");
    assert_eq!(requests[0].path, "/v1/continue_inspection");
    assert_eq!(requests[0].version, None, "the agent names no version");
    let inventory = &requests[0].body["inventory"];
    assert_eq!(inventory["interfaces"][0]["mac_address"], MAC);
    assert_eq!(inventory["boot"]["pxe_interface"], MAC);
    assert_eq!(inventory["memory"]["physical_mb"], 16384);
    assert!(inventory["cpu"]["frequency"].is_string());
    assert_eq!(requests[0].body["error"], json!(null));
    let lookup = &lab.api.requests("/v1/lookup")[0];
    assert!(
        lookup
            .query
            .ends_with(&format!("&node_uuid={}", stub_api::NODE)),
        "{}",
        lookup.query
    );
}

#[tokio::test]
async fn when_nobody_wants_to_know_the_agent_goes_on() {
    let lab = Lab::with(Faults::none(), inspects(), StubApi::start().await);
    let journal = lab.boot().await;
    assert_eq!(journal.inspections, [Some(404)]);
    let lookup = &lab.api.requests("/v1/lookup")[0];
    assert!(!lookup.query.contains("node_uuid"), "{}", lookup.query);
}

#[tokio::test]
async fn a_busy_api_is_told_again_and_five_times_are_enough() {
    let api = StubApi::start().await;
    api.set(|behaviour| behaviour.inspection_statuses = [409, 503, 202].into());
    let lab = Lab::with(Faults::none(), inspects(), api);
    let journal = lab.boot().await;
    assert_eq!(journal.inspections, [Some(409), Some(503), Some(202)]);

    let api = StubApi::start().await;
    api.set(|behaviour| behaviour.inspection_statuses = [503; 5].into());
    let lab = Lab::with(Faults::none(), inspects(), api);
    let journal = lab.boot().await;
    assert_eq!(
        journal.inspections.len(),
        6,
        "the process after it starts anew"
    );
    assert_eq!(journal.agent_starts, 2);
}
