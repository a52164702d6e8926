//! Who is given a token, who is told that there is none, and who is asked to come again.

use serde_json::json;

use super::*;

/// An agent at work on a machine only a person can switch, where a lost token may be issued anew.
fn reissuing(mut world: World) -> World {
    world.node.attributes.driver = "manual-management".to_owned();
    world.limits.reissue_lost_token = true;
    world
}

fn lookup(world: &mut World) -> Reply {
    let fresh_nonce = "another".to_owned();
    world.go(Event::Lookup { fresh_nonce }).reply
}

#[test]
fn an_agent_that_was_just_heard_and_is_gone_since_is_no_proof() {
    let mut world = reissuing(World::writing());
    world.polled(Status::Running, Value::Null);
    world.agent_says(AgentEvent::PollFailed(Unreadable::NobodyListens));
    assert_eq!(lookup(&mut world), Reply::TokenLater);
}

#[test]
fn nobody_is_asked_to_come_again_where_no_token_can_be_issued_anew() {
    let masked = Reply::Token { masked: true };
    // The driver switches power.
    let mut world = World::writing();
    world.limits.reissue_lost_token = true;
    world.at += 5_000;
    assert_eq!(lookup(&mut world), masked);
    // The operator does not allow it.
    let mut world = reissuing(World::writing());
    world.limits.reissue_lost_token = false;
    world.at += 5_000;
    assert_eq!(lookup(&mut world), masked);
    // Nothing is asked of the agent by which it could be seen to be gone.
    let mut world = reissuing(World::writing());
    world.polled(Status::Succeeded, json!({}));
    world.command_runs("get_partition_uuids", json!({}));
    assert_eq!(world.node.open_command(), None);
    world.at += 5_000;
    assert_eq!(lookup(&mut world), masked);
    assert_eq!(world.node.deadlines.look, None);
}

#[test]
fn a_lookup_is_answered_only_while_a_deploy_waits_for_it() {
    let refused = Reply::Refused(Refused::LookupNotAllowed);
    for mut world in [World::new(), World::available(), World::active(), failed()] {
        assert_eq!(lookup(&mut world), refused, "{}", world.state());
        let step = world.heartbeats(TokenMatch::Right);
        assert_eq!(step.reply, Reply::Refused(Refused::TokenWrong));
    }
}

#[test]
fn the_wait_for_an_agent_goes_on_under_the_one_that_comes_after_it() {
    let mut world = reissuing(World::writing());
    world.go(Event::Resumed { down_for_ms: 2_500 });
    world.at += 5_000;
    lookup(&mut world);
    let before = world.node.deadlines.clone();
    assert!(before.refreshed > 0 && before.moved_ms == 2_500);
    world.history.clear();
    world.at += 15_000;
    world.agent_says(AgentEvent::PollFailed(Unreadable::NobodyListens));
    assert_eq!(
        (world.state(), &world.node.session),
        ("wait call-back", &None)
    );
    // Nobody is told that the deadline was dropped or armed, so what is counted of it goes on too.
    let after = &world.node.deadlines;
    assert_eq!(
        (after.refreshed, after.moved_ms),
        (before.refreshed, before.moved_ms)
    );
    let told = |line: &String| line.contains("liveness deadline");
    assert!(!world.history.iter().any(told), "{:?}", world.history);
}
