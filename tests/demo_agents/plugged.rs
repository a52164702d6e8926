//! Machines that are plugged in when a node's power comes on.

use serde_json::json;
use upbeat::demo::{Faults, Fleet};
use upbeat::driver::Switch;

use crate::lab::*;
use crate::stub_api::{self, StubApi};

const OTHER_MAC: &str = "52:54:00:AA:00:02";

#[tokio::test]
async fn a_node_finds_one_machine_behind_all_its_ports() {
    let api = StubApi::start().await;
    let fleet = Fleet::new(&api.url, quick());
    let ports =
        |macs: &[&str]| -> Vec<String> { macs.iter().map(|mac| (*mac).to_owned()).collect() };
    fleet.power_node(stub_api::NODE, &ports(&[MAC]), Switch::OnToRamdisk);
    fleet
        .wait_for(MAC, LIMIT, |journal| journal.heartbeats_accepted() > 0)
        .await
        .expect("it boots");
    assert_eq!(looked_up(&api).len(), 2, "its port and one nobody knows of");

    fleet.power_node(stub_api::NODE, &ports(&[MAC]), Switch::Off);
    assert!(!fleet.is_on(MAC));
    fleet.power_node(
        stub_api::NODE,
        &ports(&[OTHER_MAC, MAC]),
        Switch::OnToRamdisk,
    );
    assert!(fleet.is_on(MAC) && fleet.is_on(OTHER_MAC));
    let journal = fleet
        .wait_for(OTHER_MAC, LIMIT, |journal| {
            journal.heartbeats_accepted() > 1
        })
        .await
        .expect("it boots again");
    assert_eq!(journal.power_ons, 2, "it is the same machine");
    let addresses = looked_up(&api);
    assert_eq!(addresses.len(), 3, "{addresses:?}");
    assert!(addresses.contains(&OTHER_MAC.to_lowercase()));
    fleet.stop().await;
}

#[tokio::test]
async fn a_node_without_ports_has_a_machine_until_it_gets_one() {
    let api = StubApi::start().await;
    let fleet = Fleet::new(&api.url, quick());
    fleet.power_node(stub_api::NODE, &[], Switch::OnToRamdisk);
    while looked_up(&api).is_empty() {
        tokio::task::yield_now().await;
    }
    let made_up = looked_up(&api)[0].clone();
    assert!(fleet.is_on(&made_up));
    fleet.power_node(stub_api::NODE, &[MAC.to_owned()], Switch::OnToRamdisk);
    assert!(fleet.is_on(MAC) && !fleet.is_on(&made_up));
    fleet.stop().await;
}

#[tokio::test]
async fn what_was_installed_is_booted_unless_the_ramdisk_is_wanted() {
    let lab = Lab::new(Faults::none()).await;
    let switch = |to| lab.fleet.power_node(stub_api::NODE, &[MAC.to_owned()], to);
    switch(Switch::On);
    lab.wait(|journal| journal.heartbeats_accepted() > 0).await;
    assert_eq!(
        lab.fleet.journal(MAC).instance_boots,
        0,
        "there is nothing else"
    );
    lab.write_image(true).await.unwrap();
    lab.post("standby.power_off", json!({}), false)
        .await
        .unwrap();
    lab.wait(|_| !lab.fleet.is_on(MAC)).await;
    for boots in 1..=2 {
        switch(Switch::Off);
        switch(Switch::On);
        lab.wait(|journal| journal.instance_boots == boots).await;
    }
    assert_eq!(lab.fleet.journal(MAC).agent_starts, 1);
    switch(Switch::Off);
    switch(Switch::OnToRamdisk);
    lab.wait(|journal| journal.agent_starts == 2).await;
    assert_eq!(lab.fleet.journal(MAC).instance_boots, 2);
}

/// The addresses in the latest look-up.
fn looked_up(api: &StubApi) -> Vec<String> {
    let requests = api.requests("/v1/lookup");
    let query = requests.last().map(|lookup| lookup.query.clone());
    let addresses = query
        .as_deref()
        .and_then(|query| query.strip_prefix("addresses="))
        .unwrap_or_default()
        .replace("%3A", ":")
        .replace("%2C", ",");
    addresses
        .split(',')
        .filter(|address| !address.is_empty())
        .map(str::to_owned)
        .collect()
}
