//! The conductor against the real ironic-python-agent: whole deploys, and what
//! an operator is told when one fails.
//!
//! `tests/real_agent/setup` comes first; without it each test here prints
//! `SKIPPED` and why, or fails if `UPBEAT_REQUIRE_REAL_AGENT=1` (`ops/check`
//! sets it). cargo-nextest hides the output of tests that pass, so there use
//! `--success-output immediate` to see what was skipped.

#[expect(
    dead_code,
    reason = "shared with another test, which needs other parts"
)]
mod real_agent_support;

use real_agent_support::conductor::Conductor;
use real_agent_support::images::{Image, ImageServer, noise, packed};
use real_agent_support::machine::Machine;
use real_agent_support::real_agent_is_here;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

const MIB: usize = 1 << 20;

/// Deploys an image on a fresh machine and compares the disk with it.
async fn image_arrives(conductor: &Conductor, machine: &Machine, image: &Image) {
    let images = ImageServer::start();
    let node = conductor.node_for(machine, images.offer(image)).await;
    conductor.deploy(&node, machine, None).await.worked().await;
    assert_holds(machine, image);
}

fn assert_holds(machine: &Machine, image: &Image) {
    let disk = machine.disk(0, image.content.len());
    let other = disk.iter().zip(&image.content).position(|(a, b)| a != b);
    assert_eq!(
        other, None,
        "the first byte of {} that differs on the disk",
        image.name
    );
}

/// Also covers the partition table: on an MBR disk the agent leaves it alone.
#[tokio::test]
async fn raw_image_arrives_byte_for_byte() {
    if !real_agent_is_here("raw_image_arrives_byte_for_byte") {
        return;
    }
    let conductor = Conductor::start(false).await;
    image_arrives(&conductor, &Machine::new(), &Image::raw("system.raw", 8)).await;
}

#[tokio::test]
async fn qcow2_image_arrives_byte_for_byte() {
    if !real_agent_is_here("qcow2_image_arrives_byte_for_byte") {
        return;
    }
    let conductor = Conductor::start(false).await;
    image_arrives(
        &conductor,
        &Machine::new(),
        &Image::qcow2("system.qcow2", 8),
    )
    .await;
}

/// The agent makes its own certificate and sends it in its heartbeats; the
/// conductor insists on TLS, so a deploy over plain HTTP could not pass.
#[tokio::test]
async fn agent_with_its_own_certificate() {
    if !real_agent_is_here("agent_with_its_own_certificate") {
        return;
    }
    let conductor = Conductor::start(true).await;
    image_arrives(
        &conductor,
        &Machine::with_tls(),
        &Image::raw("system.raw", 8),
    )
    .await;
}

/// The agent appends a partition for the config drive: the disk differs from
/// the image in the second entry of the partition table and nowhere else.
#[tokio::test]
async fn config_drive_lands_in_a_partition_of_its_own() {
    if !real_agent_is_here("config_drive_lands_in_a_partition_of_its_own") {
        return;
    }
    let drive = noise("config drive", MIB / 2);
    let image = Image::raw("system.raw", 8);
    let (images, machine) = (ImageServer::start(), Machine::new());
    let conductor = Conductor::start(false).await;
    let node = conductor.node_for(&machine, images.offer(&image)).await;

    let packed = packed(&drive);
    let deploy = conductor.deploy(&node, &machine, Some(packed.clone()));
    deploy.await.worked().await;
    let shown = conductor.log().contains(&packed);
    assert!(!shown, "the log shows the config drive");

    let start = machine.partition_start(2).expect("a second partition");
    assert!(
        machine.disk(start, drive.len()) == drive,
        "the partition holds another drive"
    );
    let second_entry = 462..478;
    let disk = machine.disk(0, image.content.len());
    let differing = disk.iter().zip(&image.content).enumerate();
    let elsewhere = differing
        .filter(|(at, (a, b))| a != b && !second_entry.contains(at))
        .count();
    assert_eq!(elsewhere, 0, "bytes of the image that differ on the disk");
}

/// A deploy that fails, the complaint, and a second deploy of the same node on
/// the same machine after its instance_info has been mended.
///
/// Of each list in `said` last_error has to contain at least one string.
async fn fails_then_works(machine: Machine, wrong: Wrong, said: &[&[&str]]) {
    let images = ImageServer::start();
    let good = Image::raw("good.raw", 4);
    let conductor = Conductor::start(false).await;
    let node = conductor
        .node_for(&machine, wrong.instance_info(&images))
        .await;

    let error = conductor.deploy(&node, &machine, None).await.failed();
    println!("last_error: {error}");
    let name: &[&str] = &[wrong.name()];
    for alternatives in [name].iter().chain(said) {
        let said = alternatives.iter().any(|words| {
            let words = words.to_lowercase();
            error.to_lowercase().contains(&words)
        });
        assert!(said, "last_error says none of {alternatives:?}: {error}");
    }

    conductor
        .set_instance_info(&node, images.offer(&good))
        .await;
    conductor.deploy(&node, &machine, None).await.worked().await;
    assert_holds(&machine, &good);
}

enum Wrong {
    Checksum(Image),
    Missing(Image),
    TooLarge(Image),
}

impl Wrong {
    fn name(&self) -> &str {
        let (Wrong::Checksum(image) | Wrong::Missing(image) | Wrong::TooLarge(image)) = self;
        &image.name
    }

    fn instance_info(&self, images: &ImageServer) -> Value {
        match self {
            Wrong::Checksum(image) => {
                let mut instance_info = images.offer(image);
                instance_info["image_os_hash_value"] = "0".repeat(64).into();
                instance_info
            }
            Wrong::Missing(image) => images.instance_info(image),
            Wrong::TooLarge(image) => images.offer(image),
        }
    }
}

#[tokio::test]
async fn wrong_checksum_is_explained_and_can_be_mended() {
    if !real_agent_is_here("wrong_checksum_is_explained_and_can_be_mended") {
        return;
    }
    let wrong = Wrong::Checksum(Image::raw("altered.raw", 4));
    let said: &[&[&str]] = &[
        &[
            "error verifying image checksum",
            "failed to verify against checksum",
        ],
        &["checksum in instance_info", "image_os_hash_value"],
    ];
    fails_then_works(Machine::new(), wrong, said).await;
}

#[tokio::test]
async fn missing_image_is_explained_and_can_be_mended() {
    if !real_agent_is_here("missing_image_is_explained_and_can_be_mended") {
        return;
    }
    let wrong = Wrong::Missing(Image::raw("missing.raw", 4));
    let said: &[&[&str]] = &[&["404"], &["image_source"]];
    fails_then_works(Machine::new(), wrong, said).await;
}

#[tokio::test]
async fn raw_image_larger_than_the_disk_is_explained_and_can_be_mended() {
    if real_agent_is_here("raw_image_larger_than_the_disk_is_explained_and_can_be_mended") {
        too_large_is_explained(Image::raw("huge.raw", 12)).await;
    }
}

/// Another tool meets the end of the disk than with a raw image.
#[tokio::test]
async fn qcow2_image_larger_than_the_disk_is_explained_and_can_be_mended() {
    if real_agent_is_here("qcow2_image_larger_than_the_disk_is_explained_and_can_be_mended") {
        too_large_is_explained(Image::qcow2("huge.qcow2", 12)).await;
    }
}

async fn too_large_is_explained(image: Image) {
    let said: &[&[&str]] = &[
        &[
            "no space left",
            "smaller than input",
            "larger than",
            "does not fit",
        ],
        &["smaller image", "larger disk", "root_device"],
    ];
    fails_then_works(Machine::with_small_disk(8), Wrong::TooLarge(image), said).await;
}

/// An agent nobody knows asks, gets 404 and in the end gives up; the node that
/// waits for another agent is not touched.
#[tokio::test]
async fn unknown_mac_is_not_found() {
    if !real_agent_is_here("unknown_mac_is_not_found") {
        return;
    }
    let (images, known, stranger) = (ImageServer::start(), Machine::new(), Machine::new());
    let conductor = Conductor::start(false).await;
    let instance_info = images.offer(&Image::raw("system.raw", 4));
    let node = conductor.node_for(&known, instance_info).await;
    conductor.ask(&node, json!({"target": "active"})).await;
    let before = conductor.reaches(&node, &["wait call-back"]).await;

    let path = format!("/v1/lookup?addresses={}", stranger.mac);
    let (status, _) = conductor.send(Method::GET, &path, None).await;
    assert_eq!(status, StatusCode::NOT_FOUND);

    let options = ["--set", "lookup_timeout=3"];
    let mut agent = stranger.boot_with(&conductor.url, &options);
    let code = agent.ended().await;
    assert!(code.is_some_and(|code| code != 0), "it gave up: {code:?}");
    assert!(agent.log().contains("404"), "the agent was told 404");
    assert_eq!(conductor.node(&node).await, before);
}

/// Neither a guessed token nor a missing one gets a heartbeat accepted, before
/// the token is issued or after; then the real agent finds the node as it was.
#[tokio::test]
async fn wrong_token_is_refused_and_moves_nothing() {
    if !real_agent_is_here("wrong_token_is_refused_and_moves_nothing") {
        return;
    }
    let image = Image::raw("system.raw", 4);
    let (images, machine) = (ImageServer::start(), Machine::new());
    let conductor = Conductor::start(false).await;
    let node = conductor.node_for(&machine, images.offer(&image)).await;
    conductor.ask(&node, json!({"target": "active"})).await;
    conductor.reaches(&node, &["wait call-back"]).await;

    refused_with_wrong_tokens(&conductor, &node).await;
    let lookup = format!("/v1/lookup?addresses={}", machine.mac);
    let (status, answer) = conductor.send(Method::GET, &lookup, None).await;
    assert_eq!(status, StatusCode::OK, "{}", answer["error_message"]);
    refused_with_wrong_tokens(&conductor, &node).await;

    // The token may be asked for again until a heartbeat has used it.
    let mut agent = machine.boot(&conductor.url);
    conductor.reaches(&node, &["active"]).await;
    agent.was_powered_off().await;
    assert_holds(&machine, &image);
    let token = answer["config"]["agent_token"].as_str().expect("a token");
    let shown = conductor.log().contains(token);
    assert!(!shown, "the log shows the agent token");
}

async fn refused_with_wrong_tokens(conductor: &Conductor, node: &str) {
    let before = conductor.node(node).await;
    for token in [
        json!("t".repeat(43)),
        json!("******"),
        json!(""),
        Value::Null,
    ] {
        let heartbeat = json!({
            "callback_url": "http://127.0.0.1:9",
            "agent_token": token,
            "agent_version": "13.0.0",
        });
        let path = format!("/v1/heartbeat/{node}");
        let (status, answer) = conductor.send(Method::POST, &path, Some(heartbeat)).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "token {token}: {answer}");
    }
    // All of it: provision_state, updated_at, driver_internal_info...
    assert_eq!(conductor.node(node).await, before);
}
