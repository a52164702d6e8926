//! The conductor against the real ironic-python-agent while something goes wrong: lost requests and replies, outages in either
//! direction, bad answers, killed agents and killed conductors.
//!
//! Two proxies stand in the conversation, one for each direction; see `real_agent_support/proxy.rs`. What an agent was asked to
//! do is counted twice and independently: by the proxy, and by the image server, which sees a download for each write.
//! The image server gives out half of the image until the test opens it, so that a write lasts exactly as long as a test needs.
//!
//! Same rules as in `real_agent.rs` for a machine that can't run the agent.

#[expect(
    dead_code,
    reason = "shared with another test, which needs other parts"
)]
mod real_agent_support;

use std::time::{Duration, Instant};

use real_agent_support::conductor::Settings;
use real_agent_support::lab::{Lab, SHORT_LIMIT, WRITE};
use real_agent_support::proxy::{Absence, Fault, Point, Request, Seen};
use real_agent_support::real_agent_is_here;
use serde_json::json;

/// What a gateway says of a server it can't reach.
const PAGE: &str = "<html>502 Bad Gateway</html>";

fn is_write(request: &Request) -> bool {
    request.is_dispatch_of(WRITE)
}

fn anything(_: &Request) -> bool {
    true
}

/// Bug (b) of the field, where it was harmless: the write goes on.
#[tokio::test]
async fn reply_to_write_image_lost_while_it_runs() {
    if !real_agent_is_here("reply_to_write_image_lost_while_it_runs") {
        return;
    }
    let mut lab = Lab::start(Settings::default()).await;
    lab.to_agent.harm(1, Fault::LoseReply, is_write);
    lab.deploy().await;
    lab.writing(1).await;
    let polls = Request::is_poll_of_one;
    lab.to_agent
        .passes("a poll of the found command", polls)
        .await;
    lab.ends_active(1).await;
}

/// The last command of the agent is not running any more: whoever goes by that writes twice.
#[tokio::test]
async fn reply_to_write_image_lost_and_the_write_already_finished() {
    if !real_agent_is_here("reply_to_write_image_lost_and_the_write_already_finished") {
        return;
    }
    let mut lab = Lab::start(Settings::default()).await;
    let reply = lab.to_agent.hold(Point::Reply, is_write);
    lab.deploy().await;
    reply.reached().await;
    lab.images.open();
    lab.write_finished().await;
    reply.cut();
    lab.ends_active(1).await;
}

#[tokio::test]
async fn request_to_write_image_lost() {
    if !real_agent_is_here("request_to_write_image_lost") {
        return;
    }
    let mut lab = Lab::start(Settings::default()).await;
    lab.to_agent.harm(1, Fault::LoseRequest, is_write);
    lab.deploy().await;
    lab.writing(1).await;
    assert_eq!(lab.to_agent.dispatches(WRITE), (2, 1), "sent and arrived");
    lab.ends_active(1).await;
}

/// The agent has accepted the write, and what comes back says nothing of it.
async fn spoilt_reply(fault: Fault) {
    let mut lab = Lab::start(Settings {
        command_timeout: 2,
        ..Settings::default()
    })
    .await;
    lab.to_agent.harm(1, fault, is_write);
    lab.deploy().await;
    lab.writing(1).await;
    let polls = Request::is_poll_of_one;
    lab.to_agent
        .passes("a poll of the found command", polls)
        .await;
    lab.ends_active(1).await;
}

#[tokio::test]
async fn reply_to_write_image_truncated() {
    if real_agent_is_here("reply_to_write_image_truncated") {
        spoilt_reply(Fault::Truncate).await;
    }
}

#[tokio::test]
async fn reply_to_write_image_replaced_by_a_gateway() {
    if real_agent_is_here("reply_to_write_image_replaced_by_a_gateway") {
        spoilt_reply(Fault::Replace(502, PAGE.to_owned())).await;
    }
}

#[tokio::test]
async fn reply_to_write_image_too_late() {
    if real_agent_is_here("reply_to_write_image_too_late") {
        spoilt_reply(Fault::Delay(Duration::from_secs(3))).await;
    }
}

/// One reply of each kind is lost, the write's excepted, in both directions.
#[tokio::test]
async fn replies_to_everything_else_lost() {
    if !real_agent_is_here("replies_to_everything_else_lost") {
        return;
    }
    let mut lab = Lab::start(Settings::default()).await;
    let calls: [fn(&Request) -> bool; 2] = [Request::is_lookup, Request::is_heartbeat];
    for call in calls {
        lab.to_conductor.harm(1, Fault::LoseReply, call);
    }
    let commands = [
        "deploy.get_deploy_steps",
        "standby.get_partition_uuids",
        "standby.power_off",
    ];
    for name in commands {
        let is_it = move |request: &Request| request.is_command(name);
        lab.to_agent.harm(1, Fault::LoseReply, is_it);
    }
    lab.deploy().await;
    lab.writing(1).await;
    lab.images.open();
    lab.conductor
        .reaches(&lab.node, &["active", "deploy failed"])
        .await;
    let seen = lab.to_agent.seen();
    for name in commands {
        let arrived = |seen: &&Seen| seen.arrived && seen.request.is_command(name);
        assert_eq!(seen.iter().filter(arrived).count(), 1, "{name}");
    }
    lab.ends_active(1).await;
}

/// Longer than two heartbeats take, shorter than the limit; then all is as before.
#[tokio::test]
async fn network_away_for_longer_than_the_heartbeat_interval() {
    if !real_agent_is_here("network_away_for_longer_than_the_heartbeat_interval") {
        return;
    }
    let mut lab = Lab::start(Settings {
        heartbeat_timeout: 4,
        deploy_callback_timeout: 30,
        command_timeout: 3,
        ..Settings::default()
    })
    .await;
    lab.deploy().await;
    lab.writing(1).await;
    lab.to_agent.gone(Absence::Silent, anything);
    lab.to_conductor.gone(Absence::Silent, anything);
    tokio::time::sleep(Duration::from_secs(6)).await; // the outage
    lab.to_conductor.back();
    lab.to_agent.back();
    lab.to_agent.passes("a poll", Request::is_poll).await;
    let heartbeats = Request::is_heartbeat;
    lab.to_conductor.passes("a heartbeat", heartbeats).await;
    lab.ends_active(1).await;
}

fn with_a_short_limit() -> Settings {
    Settings {
        heartbeat_timeout: 4,
        deploy_callback_timeout: SHORT_LIMIT,
        command_timeout: 3,
        ..Settings::default()
    }
}

#[tokio::test]
async fn polls_alone_keep_a_deploy_alive() {
    if !real_agent_is_here("polls_alone_keep_a_deploy_alive") {
        return;
    }
    let mut lab = Lab::start(with_a_short_limit()).await;
    lab.deploy().await;
    lab.writing(1).await;
    lab.to_conductor
        .gone(Absence::Closed, Request::is_heartbeat);
    let blocked = Instant::now();
    lab.goes_on_for(1.5).await;
    let heard = |seen: &Seen| seen.at > blocked && seen.arrived && seen.request.is_heartbeat();
    assert!(
        !lab.to_conductor.seen().iter().any(heard),
        "a heartbeat came through"
    );
    lab.ends_active(1).await;
}

#[tokio::test]
async fn heartbeats_alone_keep_a_deploy_alive() {
    if !real_agent_is_here("heartbeats_alone_keep_a_deploy_alive") {
        return;
    }
    let mut lab = Lab::start(with_a_short_limit()).await;
    lab.deploy().await;
    lab.writing(1).await;
    lab.to_agent.gone(Absence::Closed, anything);
    let away = Instant::now();
    lab.goes_on_for(1.5).await;
    let answered = |seen: &Seen| seen.at > away && seen.answered;
    assert!(
        !lab.to_agent.seen().iter().any(answered),
        "the agent answered"
    );
    lab.to_agent.back();
    lab.ends_active(1).await;
}

#[tokio::test]
async fn bad_answers_to_polls_are_asked_again() {
    if !real_agent_is_here("bad_answers_to_polls_are_asked_again") {
        return;
    }
    let mut lab = Lab::start(Settings {
        command_timeout: 2,
        ..Settings::default()
    })
    .await;
    lab.deploy().await;
    lab.writing(1).await;
    let fault = r#"{"faultcode": "Server", "faultstring": "database is locked"}"#;
    let faults = [
        Fault::Answer(500, fault.to_owned()),
        Fault::Answer(500, PAGE.to_owned()),
        Fault::Answer(200, PAGE.to_owned()),
        Fault::Answer(200, "{}".to_owned()),
        Fault::Answer(200, String::new()),
        Fault::Truncate,
        Fault::Delay(Duration::from_secs(1)),
        Fault::Delay(Duration::from_secs(3)),
        Fault::LoseReply,
    ];
    for fault in faults {
        println!("{fault:?}");
        lab.to_agent.harm(1, fault, Request::is_poll);
        lab.to_agent.faults_begun().await;
        lab.to_agent.passes("a poll", Request::is_poll).await;
    }
    lab.ends_active(1).await;
}

/// The agent's process is killed in the middle of the write and comes back without its token, on a machine that never went down.
/// Nobody knows what is on the disk: the machine is power-cycled into a new session, and the image is written again.
#[tokio::test]
async fn agent_killed_in_the_write_and_restarted() {
    if !real_agent_is_here("agent_killed_in_the_write_and_restarted") {
        return;
    }
    let mut lab = Lab::start(Settings {
        heartbeat_timeout: 4,
        ..Settings::default()
    })
    .await;
    lab.deploy().await;
    lab.writing(1).await;
    lab.boot();
    lab.power_cycled(1).await;
    lab.boot();
    lab.writing(2).await;
    lab.ends_active(2).await;
}

/// The same where only a person can switch power, and the configuration allows a new token: the agent asks for it until the one
/// before it is provably gone, and writes the image from the start.
#[tokio::test]
async fn agent_killed_in_the_write_gets_a_new_token() {
    if !real_agent_is_here("agent_killed_in_the_write_gets_a_new_token") {
        return;
    }
    let mut lab = Lab::start(Settings {
        heartbeat_timeout: 4,
        driver: "manual-management",
        reissue_lost_token: true,
        ..Settings::default()
    })
    .await;
    lab.deploy().await;
    lab.writing(1).await;
    lab.boot();
    lab.writing(2).await;
    lab.ends_active(2).await;
}

/// Killed by somebody else, and the conductor is dead meanwhile: nobody sees the agent go and come.
#[tokio::test]
async fn machine_restarted_by_itself_while_the_conductor_was_dead() {
    if !real_agent_is_here("machine_restarted_by_itself_while_the_conductor_was_dead") {
        return;
    }
    let mut lab = Lab::start(Settings::default()).await;
    lab.deploy().await;
    lab.writing(1).await;
    lab.conductor.kill();
    lab.boot();
    lab.conductor.start_again().await;
    lab.power_cycled(1).await;
    lab.boot();
    lab.writing(2).await;
    lab.ends_active(2).await;
}

/// An agent dies with the token it has just got. The next one gets it as well, for nobody has used it yet.
#[tokio::test]
async fn agent_restarted_before_its_first_heartbeat() {
    if !real_agent_is_here("agent_restarted_before_its_first_heartbeat") {
        return;
    }
    let mut lab = Lab::start(Settings::default()).await;
    let heartbeat = lab.to_conductor.hold(Point::Request, Request::is_heartbeat);
    lab.deploy().await;
    heartbeat.reached().await;
    lab.boot();
    heartbeat.cut();
    lab.writing(1).await;
    lab.ends_active(1).await;
}

/// Killed eleven times, at every stage there is; the machine notices nothing.
#[tokio::test]
async fn conductor_killed_at_each_stage_of_a_deploy() {
    if !real_agent_is_here("conductor_killed_at_each_stage_of_a_deploy") {
        return;
    }
    let mut lab = Lab::start(Settings::default()).await;
    let steps = |request: &Request| request.is_command("deploy.get_deploy_steps");
    let uuids = |request: &Request| request.is_command("standby.get_partition_uuids");
    let power_off = |request: &Request| request.is_command("standby.power_off");
    let (calls, asks) = (&lab.to_conductor, &lab.to_agent);
    let mut holds = [
        (
            "lookup answered",
            calls.hold(Point::Reply, Request::is_lookup),
        ),
        (
            "first heartbeat answered",
            calls.hold(Point::Reply, Request::is_heartbeat),
        ),
        ("steps told", asks.hold(Point::Reply, steps)),
        (
            "write on its way, and lost",
            asks.hold(Point::Request, is_write),
        ),
        ("write accepted", asks.hold(Point::Reply, is_write)),
        (
            "write in progress",
            asks.hold(Point::Reply, Request::is_poll_of_one),
        ),
        (
            "write finished",
            asks.hold(Point::Request, Request::is_poll_of_one),
        ),
        ("partitions told", asks.hold(Point::Reply, uuids)),
        ("power off accepted", asks.hold(Point::Reply, power_off)),
    ]
    .into_iter();

    lab.conductor
        .ask(&lab.node, json!({"target": "active"}))
        .await;
    lab.conductor.kill();
    lab.conductor.start_again().await;
    lab.conductor.reaches(&lab.node, &["wait call-back"]).await;
    lab.conductor.kill();
    lab.conductor.start_again().await;
    lab.boot();
    let mut kills = 2;
    for (stage, hold) in &mut holds {
        println!("{stage}");
        hold.reached().await;
        if stage == "write finished" {
            lab.images.open();
            lab.write_finished().await;
        }
        lab.conductor.kill();
        kills += 1;
        // What the agent said to the dead conductor gets through; what the dead conductor said does not.
        if stage.ends_with("answered") {
            hold.release();
        } else {
            hold.cut();
        }
        lab.conductor.start_again().await;
    }
    assert_eq!(kills, 11);
    assert_eq!(lab.to_agent.dispatches(WRITE), (2, 1), "sent and arrived");
    lab.ends_active(1).await;
}

/// What failed deploys in June 2020: the reply to the POST is lost, the agent can't be asked at that moment, and an agent that
/// gets the command again says that it is busy.
async fn race_of_june_2020(status: u16, text: &str) {
    let mut lab = Lab::start(Settings::default()).await;
    let reply = lab.to_agent.hold(Point::Reply, is_write);
    lab.deploy().await;
    reply.reached().await;
    lab.to_agent
        .harm(3, Fault::LoseRequest, |request| request.method == "GET");
    lab.to_agent.harm(usize::MAX, busy(status, text), is_write);
    reply.cut();
    lab.writing(1).await;
    let polls = Request::is_poll_of_one;
    lab.to_agent
        .passes("a poll of the found command", polls)
        .await;
    assert_eq!(lab.to_agent.dispatches(WRITE), (1, 1), "sent and arrived");
    lab.ends_active(1).await;
}

fn busy(status: u16, text: &str) -> Fault {
    let body = json!({"faultcode": "Client", "faultstring": text});
    Fault::Answer(status, body.to_string())
}

const BUSY_SINCE_6_4: (u16, &str) = (409, "Agent is busy: executing command execute_deploy_step");
const BUSY_BEFORE_6_4: (u16, &str) = (500, "Command execution failed: agent is busy");

#[tokio::test]
async fn june_2020_race_with_busy_as_409() {
    if real_agent_is_here("june_2020_race_with_busy_as_409") {
        race_of_june_2020(BUSY_SINCE_6_4.0, BUSY_SINCE_6_4.1).await;
    }
}

#[tokio::test]
async fn june_2020_race_with_busy_as_500() {
    if real_agent_is_here("june_2020_race_with_busy_as_500") {
        race_of_june_2020(BUSY_BEFORE_6_4.0, BUSY_BEFORE_6_4.1).await;
    }
}

/// The agent is busy with something else when the write is asked for: not a failure, and asked again.
#[tokio::test]
async fn busy_agent_is_waited_for() {
    if !real_agent_is_here("busy_agent_is_waited_for") {
        return;
    }
    let mut lab = Lab::start(Settings::default()).await;
    for (status, text) in [BUSY_SINCE_6_4, BUSY_BEFORE_6_4] {
        lab.to_agent.harm(1, busy(status, text), is_write);
    }
    lab.deploy().await;
    lab.writing(1).await;
    assert_eq!(lab.to_agent.dispatches(WRITE), (3, 1), "sent and arrived");
    lab.ends_active(1).await;
}

/// Bug (a) of the field, July 2015.
#[tokio::test]
async fn write_three_times_as_long_as_deploy_callback_timeout() {
    if !real_agent_is_here("write_three_times_as_long_as_deploy_callback_timeout") {
        return;
    }
    let mut lab = Lab::start(with_a_short_limit()).await;
    lab.deploy().await;
    lab.writing(1).await;
    lab.goes_on_for(3.0).await;
    lab.ends_active(1).await;
}

#[tokio::test]
async fn agent_dead_in_the_write_fails_the_deploy_on_time() {
    if !real_agent_is_here("agent_dead_in_the_write_fails_the_deploy_on_time") {
        return;
    }
    let mut lab = Lab::start(with_a_short_limit()).await;
    lab.deploy().await;
    lab.writing(1).await;
    lab.to_agent.passes("a poll", Request::is_poll_of_one).await;
    lab.agent = None;
    let died = Instant::now();
    let node = lab
        .conductor
        .reaches(&lab.node, &["active", "deploy failed"])
        .await;
    let after = died.elapsed().as_secs_f64();
    assert_eq!(node["provision_state"], "deploy failed");
    let limit = f64::from(SHORT_LIMIT);
    assert!(
        (limit - 3.0..limit + 3.0).contains(&after),
        "failed after {after:.1} s"
    );
    let error = node["last_error"].as_str().expect("a last_error");
    for words in [
        "went silent",
        "write_image",
        "deploy_callback_timeout is 8 s",
        "Last attempt",
    ] {
        assert!(
            error.contains(words),
            "last_error does not say {words:?}: {error}"
        );
    }
    let token = lab.to_agent.token().expect("a command was sent");
    assert!(!error.contains(&token), "last_error shows the token");
    lab.keeps_the_token_secret();
}
