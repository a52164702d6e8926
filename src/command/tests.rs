//! The ledger, line by line: what each answer makes of a command in each phase.

use serde_json::Value;

use super::*;
use crate::timestamp::Timestamp;

const OPERATION: &str = "node/1";

fn instance(boot: &str) -> Instance {
    Instance {
        started_at: boot.to_owned(),
        callback_url: "https://192.0.2.1:9999".to_owned(),
        certificate_sha256: Some("aa".to_owned()),
    }
}

fn entry(id: &str, name: &str, status: Status) -> Entry {
    Entry {
        id: id.to_owned(),
        command_name: name.to_owned(),
        status,
        error_kind: String::new(),
        error_message: String::new(),
        result: Value::Null,
        operation: None,
    }
}

fn write_image() -> Request {
    Request::ExecuteStep {
        of: StepsOf::Deploy,
        interface: "deploy".to_owned(),
        step: "write_image".to_owned(),
        args: Default::default(),
    }
}

fn planned() -> Command {
    Command::planned(CommandId(1), write_image(), Timestamp(0))
}

/// A command that was sent to boot "1" while it listed "old".
fn sent() -> Command {
    let survey = Event::Surveyed {
        instance: instance("1"),
        entries: vec![entry("old", "get_deploy_steps", Status::Succeeded)],
    };
    go(&planned(), survey).command
}

fn unknown() -> Command {
    let lost = PostAnswer::Unknown {
        why: "reset".to_owned(),
    };
    go(&sent(), Event::Posted(lost)).command
}

fn accepted() -> Command {
    let running = entry("new", "execute_deploy_step", Status::Running);
    go(&sent(), Event::Posted(PostAnswer::Accepted(running))).command
}

fn go(command: &Command, event: Event) -> Step {
    go_at(command, event, 1_000)
}

fn go_at(command: &Command, event: Event, ms: i64) -> Step {
    step(
        command,
        OPERATION,
        Some(&instance("1")),
        event,
        Timestamp(ms),
    )
}

fn surveyed(boot: &str, new: &[Entry]) -> Event {
    let mut entries = vec![entry("old", "get_deploy_steps", Status::Succeeded)];
    entries.extend_from_slice(new);
    Event::Surveyed {
        instance: instance(boot),
        entries,
    }
}

fn finish(step: &Step) -> &Finish {
    match &step.verdict {
        Some(Verdict::Finished(finish)) => finish,
        other => panic!("not finished: {other:?}"),
    }
}

#[test]
fn the_evidence_is_taken_before_anything_is_sent() {
    let step = go(&planned(), surveyed("1", &[]));
    assert_eq!(step.effect, Some(Effect::Post));
    assert_eq!(step.command.phase.name(), "sent");
    let baseline = step.command.baseline.unwrap();
    assert_eq!(baseline.instance, instance("1"));
    assert!(baseline.knows("old"));
}

#[test]
fn nothing_is_sent_while_the_agent_is_busy() {
    let step = go(
        &planned(),
        surveyed("1", &[entry("x", "sync", Status::Running)]),
    );
    assert_eq!(step.command, planned());
    assert_eq!(step.effect, Some(Effect::Survey(Pace::Interval)));
    // It answers: that is a sign of life, and no trouble.
    assert!(matches!(step.verdict, Some(Verdict::Occupied(text)) if text.contains("sync")));
}

#[test]
fn nothing_is_sent_to_another_instance_than_expected() {
    let step = go(&planned(), surveyed("2", &[]));
    assert_eq!(*finish(&step), Finish::InstanceLost);
    assert_eq!(step.effect, None);
}

#[test]
fn nothing_is_sent_through_a_broken_list() {
    let step = go(&planned(), Event::SurveyFailed(Unreadable::Poisoned));
    assert_eq!(
        *finish(&step),
        Finish::Refused {
            why: Refusal::ListPoisoned
        }
    );
}

#[test]
fn only_a_planned_command_is_ever_posted() {
    let survey = || surveyed("1", &[]);
    for command in [sent(), unknown(), accepted()] {
        for ms in [1_000, 3_000] {
            let step = go_at(&command, survey(), ms);
            assert_ne!(step.effect, Some(Effect::Post), "{:?}", command.phase);
        }
        for event in [Event::Hint, Event::Recovered] {
            let step = go(&command, event);
            assert_ne!(step.effect, Some(Effect::Post), "{:?}", command.phase);
        }
    }
}

#[test]
fn a_clear_yes_is_followed_by_its_id() {
    let command = accepted();
    assert_eq!(
        go(
            &sent(),
            Event::Posted(PostAnswer::Accepted(entry(
                "new",
                "execute_deploy_step",
                Status::Running
            )))
        )
        .effect,
        Some(Effect::Poll(Pace::Interval))
    );
    let other = entry("other", "execute_deploy_step", Status::Succeeded);
    assert_eq!(go(&command, Event::Polled(other)).command, command);
    let done = entry("new", "execute_deploy_step", Status::Succeeded);
    let step = go(&command, Event::Polled(done));
    assert_eq!(
        *finish(&step),
        Finish::Succeeded {
            result: Value::Null
        }
    );
    assert_eq!(step.command.phase.name(), "finished");
}

#[test]
fn an_answer_that_has_already_ended_ends_the_command() {
    let failed = Entry {
        error_kind: "ImageWriteError".to_owned(),
        error_message: "no room".to_owned(),
        ..entry("new", "deploy.execute_deploy_step", Status::Failed)
    };
    let step = go(&sent(), Event::Posted(PostAnswer::Accepted(failed)));
    assert_eq!(
        *finish(&step),
        Finish::Failed {
            kind: "ImageWriteError".to_owned(),
            message: "no room".to_owned()
        }
    );
}

#[test]
fn busy_and_unauthorised_are_no_failures() {
    let busy = Refusal::Busy {
        text: "executing command x".to_owned(),
    };
    for why in [busy, Refusal::Unauthorized] {
        let is_busy = matches!(why, Refusal::Busy { .. });
        let step = go(&sent(), Event::Posted(PostAnswer::Refused(why)));
        assert_eq!(matches!(step.verdict, Some(Verdict::Occupied(_))), is_busy);
        assert_eq!(step.command.phase, Phase::Planned);
        assert_eq!(step.command.attempt, 2);
        assert_eq!(step.effect, Some(Effect::Survey(Pace::Backoff)));
    }
}

#[test]
fn busy_with_our_own_command_is_adopted() {
    let busy = PostAnswer::Refused(Refusal::Busy {
        text: String::new(),
    });
    let again = go(&sent(), Event::Posted(busy)).command;
    let step = go(
        &again,
        surveyed("1", &[entry("new", "execute_deploy_step", Status::Running)]),
    );
    assert_eq!(step.command.phase.name(), "accepted");
    assert_eq!(step.effect, Some(Effect::Poll(Pace::Interval)));
}

#[test]
fn a_definite_no_ends_the_command() {
    let why = Refusal::Invalid {
        status: 400,
        text: "bad".to_owned(),
    };
    let step = go(&sent(), Event::Posted(PostAnswer::Refused(why.clone())));
    assert_eq!(*finish(&step), Finish::Refused { why });
    assert_eq!(step.command.phase.name(), "refused");
}

#[test]
fn a_lost_answer_is_resolved_by_reading() {
    for status in [Status::Running, Status::Succeeded] {
        let survey = surveyed("1", &[entry("new", "execute_deploy_step", status.clone())]);
        let step = go(&unknown(), survey);
        match status {
            Status::Running => assert_eq!(step.command.phase.name(), "accepted"),
            _ => assert_eq!(step.command.phase.name(), "finished"),
        }
    }
}

#[test]
fn a_foreign_command_is_never_taken_for_ours() {
    let cases = [
        // known before
        entry("old", "execute_deploy_step", Status::Succeeded),
        // another name
        entry("new", "get_clean_steps", Status::Succeeded),
        // the echo of another operation
        Entry {
            operation: Some("node/7".to_owned()),
            ..entry("new", "execute_deploy_step", Status::Succeeded)
        },
    ];
    for foreign in cases {
        let step = go(&unknown(), surveyed("1", std::slice::from_ref(&foreign)));
        assert_eq!(step.command.phase.name(), "unknown", "{foreign:?}");
    }
}

#[test]
fn the_echoed_operation_settles_which_one_is_ours() {
    let plain = entry("a", "execute_deploy_step", Status::Failed);
    let echo = Entry {
        operation: Some(OPERATION.to_owned()),
        ..entry("b", "execute_deploy_step", Status::Succeeded)
    };
    let step = go(&unknown(), surveyed("1", &[plain, echo]));
    assert_eq!(
        *finish(&step),
        Finish::Succeeded {
            result: Value::Null
        }
    );
}

#[test]
fn absence_counts_only_after_it_lasted_and_on_the_same_instance() {
    let first = go_at(&unknown(), surveyed("1", &[]), 1_000).command;
    assert_eq!(first.phase.name(), "unknown");
    let early = go_at(&first, surveyed("1", &[]), 5_999).command;
    assert_eq!(early.phase.name(), "unknown");
    let late = go_at(&early, surveyed("1", &[]), 6_000);
    assert_eq!(late.command.phase, Phase::Planned);
    assert_eq!(late.command.attempt, 2);
    assert_eq!(late.effect, Some(Effect::Survey(Pace::Now)));
    let other = go_at(&early, surveyed("2", &[]), 6_000);
    assert_eq!(*finish(&other), Finish::InstanceLost);
}

#[test]
fn an_agent_that_can_not_be_read_is_asked_again() {
    let why = || Unreadable::Unreachable {
        why: "refused".to_owned(),
    };
    for command in [planned(), unknown()] {
        let step = go(&command, Event::SurveyFailed(why()));
        assert_eq!(step.command, command);
        assert_eq!(step.effect, Some(Effect::Survey(Pace::Backoff)));
    }
    let step = go(&accepted(), Event::PollFailed(why()));
    assert_eq!(step.command, accepted());
    assert_eq!(step.effect, Some(Effect::Poll(Pace::Backoff)));
}

#[test]
fn an_id_the_agent_forgot_means_another_instance_or_an_old_agent() {
    let by_list = go(&accepted(), Event::PollFailed(Unreadable::NotFound));
    assert_eq!(by_list.effect, Some(Effect::Survey(Pace::Now)));
    let running = entry("new", "execute_deploy_step", Status::Running);
    let old_agent = go(&by_list.command, surveyed("1", &[running]));
    assert_eq!(old_agent.effect, Some(Effect::Survey(Pace::Interval)));
    for survey in [surveyed("1", &[]), surveyed("2", &[])] {
        assert_eq!(*finish(&go(&by_list.command, survey)), Finish::InstanceLost);
    }
}

#[test]
fn a_restart_of_the_conductor_asks_and_never_sends() {
    let step = go(&sent(), Event::Recovered);
    assert_eq!(step.command.phase.name(), "unknown");
    assert_eq!(step.effect, Some(Effect::Survey(Pace::Now)));
    assert_eq!(
        go(&accepted(), Event::Recovered).effect,
        Some(Effect::Poll(Pace::Now))
    );
    assert_eq!(
        go(&planned(), Event::Recovered).effect,
        Some(Effect::Survey(Pace::Now))
    );
}

#[test]
fn a_late_answer_to_the_post_changes_nothing_once_it_is_unknown() {
    let late = entry("new", "execute_deploy_step", Status::Running);
    let step = go(&unknown(), Event::Posted(PostAnswer::Accepted(late)));
    assert_eq!(step.command, unknown());
    assert_eq!(step.effect, None);
}

#[test]
fn an_unknown_status_word_fails_with_the_word() {
    let odd = entry(
        "new",
        "execute_deploy_step",
        Status::Other("PAUSED".to_owned()),
    );
    match finish(&go(&accepted(), Event::Polled(odd))) {
        Finish::Failed { message, .. } => assert!(message.contains("PAUSED")),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_ended_command_is_left_alone() {
    let ended = planned().abandoned();
    for event in [
        surveyed("1", &[]),
        Event::Hint,
        Event::Recovered,
        Event::SurveyFailed(Unreadable::Poisoned),
        Event::PollFailed(Unreadable::NotFound),
    ] {
        let step = go(&ended, event);
        assert_eq!(step.command, ended);
        assert_eq!(step.effect, None);
        assert_eq!(step.verdict, None);
    }
}

#[test]
fn a_restart_takes_the_evidence_of_absence_anew() {
    let first = go_at(&unknown(), surveyed("1", &[]), 2_000);
    // The clock may have been set while the conductor was away, so the time that passed proves nothing.
    let recovered = go_at(&first.command, Event::Recovered, 90_000_000).command;
    let second = go_at(&recovered, surveyed("1", &[]), 90_000_001);
    assert_eq!(second.command.phase.name(), "unknown");
    let third = go_at(&second.command, surveyed("1", &[]), 90_005_001);
    assert_eq!(third.command.phase.name(), "planned");
    assert_eq!(third.command.attempt, 2);
}

#[test]
fn what_is_wrong_with_an_agent_is_told_with_what_was_seen() {
    let cases = [
        (
            Unreadable::Unreachable {
                why: "reset by peer".to_owned(),
            },
            "the agent can't be reached: reset by peer",
        ),
        (Unreadable::NobodyListens, "no agent listens at its address"),
        (
            Unreadable::Unauthorized,
            "the agent does not accept the agent token",
        ),
        (
            Unreadable::CertificateMismatch,
            "the agent's address answers with another certificate than the one it sent",
        ),
        (
            Unreadable::Poisoned,
            "the agent can't list its commands any more",
        ),
        (
            Unreadable::Garbage {
                why: "half a document".to_owned(),
            },
            "the agent's answer makes no sense: half a document",
        ),
    ];
    for (why, text) in cases {
        assert_eq!(
            go(&accepted(), Event::PollFailed(why)).verdict,
            Some(Verdict::Trouble(text.to_owned()))
        );
    }
    let text = Unreadable::NotFound.to_string();
    assert_eq!(text, "the agent doesn't know the command");
}

#[test]
fn what_an_agent_refuses_is_told_in_its_own_words() {
    let busy = Refusal::Busy {
        text: "executing command sync".to_owned(),
    };
    for (why, text) in [
        (busy, "the agent is busy (executing command sync)"),
        (
            Refusal::Unauthorized,
            "the agent does not accept the agent token",
        ),
    ] {
        let step = go(&sent(), Event::Posted(PostAnswer::Refused(why)));
        let told = format!("deploy.execute_deploy_step was not carried out: {text}");
        let (Some(Verdict::Occupied(found)) | Some(Verdict::Trouble(found))) = step.verdict else {
            panic!("{:?}", step.verdict);
        };
        assert_eq!(found, told);
    }
    let invalid = Refusal::Invalid {
        status: 404,
        text: "no such command".to_owned(),
    };
    assert_eq!(
        invalid.to_string(),
        "the agent answered 404: no such command"
    );
    assert!(
        Refusal::ListPoisoned
            .to_string()
            .contains("until the agent restarts")
    );
}

#[test]
fn what_only_a_broken_list_could_tell_is_given_up() {
    let poisoned = || Event::SurveyFailed(Unreadable::Poisoned);
    let mut by_list = unknown();
    by_list.phase = Phase::Accepted {
        agent_id: "new".to_owned(),
        at: Timestamp(0),
        by_list: true,
    };
    for command in [planned(), unknown(), by_list.clone()] {
        assert_eq!(
            *finish(&go(&command, poisoned())),
            Finish::Refused {
                why: Refusal::ListPoisoned
            }
        );
    }
    // This one can be asked for by its id.
    if let Phase::Accepted { by_list, .. } = &mut by_list.phase {
        *by_list = false;
    }
    let step = go(&by_list, poisoned());
    assert_eq!(step.command, by_list);
    assert!(matches!(step.verdict, Some(Verdict::Trouble(_))));
}
