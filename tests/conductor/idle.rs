//! Nodes that rest need no actor; those that wait for something keep theirs.

use serde_json::{Value, json};
use upbeat::demo::FleetOptions;

use crate::support::api::eventually;
use crate::support::site::Site;

const ACTORS: &str = "upbeat_node_actors";

/// Waits until so many nodes have an actor.
async fn actors(site: &Site, count: f64) {
    eventually("the actors", async || {
        (site.api.metric(ACTORS).await == count).then_some(())
    })
    .await;
}

#[actix_web::test]
async fn the_actor_of_a_node_that_rests_ends_and_comes_back_with_the_next_event() {
    let site = Site::start(
        |config| {
            config.conductor.idle_actor_kept_for = 1;
            config.conductor.deploy_callback_timeout = 300;
        },
        FleetOptions::default(),
    )
    .await;
    let waiting = site.deploying().await;
    site.api.reaches(&waiting, "wait call-back").await;
    let resting = site
        .api
        .available_node("52:54:00:00:0f:01", Value::Null)
        .await;
    for value in 1..=2 {
        let patch = json!([{"op": "add", "path": "/extra/seen", "value": value}]);
        let path = format!("/v1/nodes/{resting}");
        let told = site.api.expect(200, "PATCH", &path, patch).await;
        assert_eq!(told["extra"]["seen"], value);
        // The one that is left is that of the node that waits.
        actors(&site, 1.0).await;
    }
    let told = site.api.node(&waiting).await;
    assert_eq!(told["provision_state"], "wait call-back");
    site.api.ask(&waiting, "deleted").await;
    site.api.reaches(&waiting, "available").await;
    actors(&site, 0.0).await;
    site.stop().await;
}
