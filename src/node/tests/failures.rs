//! What an operator reads when a deploy fails: what was done, what went wrong, what to do.

use serde_json::json;

use super::super::steps::{WorkStep, core_steps};
use super::super::work::{Work, WorkKind, explain};
use super::*;
use crate::command::{Finish, Refusal};

fn a_step(interface: &str, name: &str, priority: i64) -> WorkStep {
    WorkStep::named(interface, name, priority)
}

/// A deploy that is at `step`.
fn at(step: WorkStep) -> Work {
    let mut deploy = Work::begun(WorkKind::Deploy, Timestamp(0), BootMode::Bios, Vec::new());
    deploy.phase = WorkPhase::InBandStep;
    deploy.steps = vec![step].into();
    deploy
}

fn told(deploy: &Work, finish: &Finish) -> String {
    explain(&World::new().node.attributes, deploy, finish)
}

fn failed(kind: &str, message: &str) -> Finish {
    Finish::Failed {
        kind: kind.to_owned(),
        message: message.to_owned(),
    }
}

#[test]
fn what_failed_is_named() {
    let [write, prepare, ..] = &core_steps()[..] else {
        panic!("the conductor has steps");
    };
    let mut reading = at(write.clone());
    reading.steps.clear();
    reading.phase = WorkPhase::ReadingSteps;
    let mut uuids = at(prepare.clone());
    uuids.phase = WorkPhase::ReadingUuids;
    for (deploy, what) in [
        (
            at(write.clone()),
            "Writing image http://images.example/cloud.raw failed: oh. ",
        ),
        (
            at(a_step("raid", "build", 90)),
            "Deploy step raid.build failed: oh. ",
        ),
        (
            at(a_step("deploy", "burn_in", 90)),
            "Deploy step deploy.burn_in failed: oh. ",
        ),
        // Not the conductor's own, whatever it is called.
        (
            at(a_step("raid", "write_image", 90)),
            "Deploy step raid.write_image failed: oh. ",
        ),
        (
            reading,
            "The deployment, reading the agent's steps, failed: oh. ",
        ),
        (
            uuids,
            "The deployment, reading the partition UUIDs, failed: oh. ",
        ),
    ] {
        let text = told(&deploy, &failed("", " oh. "));
        assert_eq!(text, format!("{what}Mend the cause, then deploy again."));
    }
    let text = explain(
        &Attributes::default(),
        &at(write.clone()),
        &failed("X", "oh"),
    );
    assert!(
        text.starts_with("Writing the image failed: oh (X). "),
        "{text}"
    );
}

#[test]
fn every_end_but_a_good_one_is_explained() {
    let deploy = at(core_steps()[0].clone());
    let refused = |why| told(&deploy, &Finish::Refused { why });
    let invalid = Refusal::Invalid {
        status: 404,
        text: "no such command".to_owned(),
    };
    let text = refused(invalid);
    assert!(
        text.contains("404: no such command. The ramdisk does not know this command"),
        "{text}"
    );
    let text = refused(Refusal::ListPoisoned);
    assert!(
        text.ends_with("Deploy again, which boots the ramdisk anew."),
        "{text}"
    );
    let text = told(&deploy, &Finish::VersionMismatch);
    assert!(text.contains("hardware managers changed"), "{text}");
    let text = told(&deploy, &Finish::Abandoned);
    assert!(text.contains("ended without a result"), "{text}");
}

#[test]
fn the_cure_fits_what_the_agent_calls_it() {
    let deploy = at(core_steps()[0].clone());
    for (kind, message, cure) in [
        ("ImageChecksumError", "x", "image_os_hash_value"),
        ("ImageDownloadOutofSpaceError", "x", "too little memory"),
        (
            "ImageDownloadOutofSpaceError",
            "No space left",
            "too little memory",
        ),
        ("ImageDownloadError", "x", "Check that image_source"),
        ("ImageDownloadTimeoutError", "x", "Check that image_source"),
        ("ImageDownloadFatalError", "x", "Check that image_source"),
        ("InvalidImage", "x", "image_disk_format"),
        ("DeviceNotFound", "x", "root device hints"),
        ("Other", "x", "Mend the cause"),
        ("Other", "No space left on device", "use a smaller image"),
        (
            "InvalidImage",
            "the image is too large",
            "use a smaller image",
        ),
        (
            "ImageWriteError",
            "it is larger than the disk",
            "use a smaller image",
        ),
        (
            "ImageWriteError",
            "output is smaller than input",
            "use a smaller image",
        ),
    ] {
        let text = told(&deploy, &failed(kind, message));
        assert!(text.contains(cure), "{kind} {message}: {text}");
        assert!(text.contains(&format!("{message} ({kind})")), "{text}");
    }
}

#[test]
fn a_text_of_the_agent_is_cut_at_its_limit_only() {
    let deploy = at(core_steps()[0].clone());
    let kept = "ä".repeat(2_000);
    let text = told(&deploy, &failed("", &kept));
    assert!(text.contains(&format!(": {kept}. ")));
    let text = told(&deploy, &failed("", &format!("{kept}ä")));
    assert!(text.contains(&format!(": {kept}.... ")));
}

#[test]
fn silence_is_told_with_its_length_and_the_limit() {
    let mut world = World::writing();
    world.agent_says(AgentEvent::PollFailed(gone()));
    let limit_ms = world.limits.deploy_callback_timeout_ms;
    world.waits(limit_ms + 2_000);
    for part in [
        "while step deploy.write_image was in progress",
        "nothing was heard for 1802 s (deploy_callback_timeout is 1800 s)",
        "Last attempt: the agent can't be reached: connection refused.",
    ] {
        assert!(world.last_error().contains(part), "{}", world.last_error());
    }
    let mut world = World::available();
    world.asks(Verb::Active);
    world.driver_says_yes();
    world.waits(limit_ms);
    assert!(world.last_error().contains("No agent called within 1800 s"));
}

#[test]
fn a_step_that_takes_too_long_is_named_with_its_length() {
    let mut world = World::writing();
    let step_ms = world.limits.write_image_limit_ms;
    world.at += step_ms;
    world.heartbeats(TokenMatch::Right);
    world.waits(3_000);
    let said = "The deployment failed: step deploy.write_image has not ended after 21603 s";
    assert!(world.last_error().contains(said), "{}", world.last_error());

    // What the conductor asks for itself is named by the agent's name of the command.
    let mut world = World::writing();
    world.polled(Status::Succeeded, json!({}));
    world.survey(&[]);
    world.posted(Status::Running, Value::Null);
    let step_ms = world.limits.command_limit_ms;
    world.at += step_ms;
    world.heartbeats(TokenMatch::Right);
    world.waits(0);
    let said = "failed: standby.get_partition_uuids has not ended after 3600 s";
    assert!(world.last_error().contains(said), "{}", world.last_error());

    // A step of the agent by its own.
    let mut world = World::agent_with_step("raid", "build");
    world.survey(&[]);
    world.posted(Status::Running, Value::Null);
    world.at += step_ms;
    world.heartbeats(TokenMatch::Right);
    world.waits(0);
    let said = "failed: step raid.build has not ended after 3600 s";
    assert!(world.last_error().contains(said), "{}", world.last_error());
}
