//! The core in a made-up world: many seeds break no rule, a seed means the same every time, and every rule can be broken.
//!
//! `cargo test --release --test simulate` runs 20,000 seeds; a debug build takes 100 unless `UPBEAT_SIMULATE_SEEDS` says otherwise. A
//! seed that breaks a rule is printed with the command that shows it again.

use std::collections::BTreeSet;

use upbeat::command::{
    CommandId, Effect as AgentEffect, Event as AgentEvent, Pace, Phase, PostAnswer, Refusal,
};
use upbeat::node::transitions::EDGES;
use upbeat::node::work::WorkPhase;
use upbeat::node::{Effect, Event, Node, Now, Outcome, Provision, Reply, Step, TokenMatch, step};
use upbeat::simulator::{Fault, Faults, Options, Quirks, Rule, StepFn, run, shrink, told_briefly};

const HOUR_MS: i64 = 3_600_000;

fn seeds() -> u64 {
    let usual = if cfg!(debug_assertions) { 100 } else { 20_000 };
    match std::env::var("UPBEAT_SIMULATE_SEEDS") {
        Ok(text) => text.parse().expect("UPBEAT_SIMULATE_SEEDS is a number"),
        Err(_) => usual,
    }
}

/// One node, long enough for a deploy or two, with a set of faults that depends on the seed.
fn small(seed: u64) -> Options {
    let faults = match seed % 4 {
        0 => Faults::harmless(),
        1 => Faults::harmless()
            .without(Fault::Block)
            .with(Fault::AgentRestart)
            .with(Fault::MachineReboot),
        _ => Faults::all(),
    };
    Options {
        faults,
        ..Options::new(seed, 1, HOUR_MS * 3 / 2)
    }
}

#[test]
fn no_seed_breaks_a_rule() {
    let seeds = seeds();
    let began = std::time::Instant::now();
    let workers = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    let total = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers)
            .map(|worker| {
                scope.spawn(move || {
                    let mut total = upbeat::simulator::Tally::default();
                    for seed in (worker..seeds).step_by(workers as usize) {
                        let options = small(seed);
                        let report = run(&options);
                        total.add(&report.tally);
                        if let Some((node, violation)) = report.broken {
                            let shown = shrink(&options, node);
                            let story = shown.as_ref().map_or_else(String::new, |shown| {
                                format!(
                                    "{}\n{}",
                                    told_briefly(&shown.lines).join("\n"),
                                    shown.command()
                                )
                            });
                            panic!(
                                "seed {seed}: {} {}\n{story}",
                                violation.rule.sentence(),
                                violation.what
                            );
                        }
                    }
                    total
                })
            })
            .collect();
        let mut total = upbeat::simulator::Tally::default();
        for thread in threads {
            match thread.join() {
                Ok(part) => total.add(&part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        total
    });
    println!(
        "{seeds} seeds in {:.1} s\n{}",
        began.elapsed().as_secs_f64(),
        total.text(Faults::all())
    );
    // A world in which nothing happens proves nothing.
    assert!(
        total.deploys >= seeds && total.active > seeds / 3,
        "{total:?}"
    );
    assert!(total.unknown > 0 && total.restarts > 0 && total.not_stored > 0);
    for (fault, struck) in Fault::ALL.iter().zip(&total.faults) {
        assert!(*struck > 0, "{} never struck", fault.name());
    }
}

#[test]
fn a_seed_means_the_same_every_time_on_any_number_of_threads() {
    for seed in [1, 7, 4_711] {
        let options = Options::new(seed, 6, HOUR_MS);
        let first = run(&options);
        let again = run(&Options {
            threads: 3,
            ..options.clone()
        });
        assert_eq!(first.digest, again.digest);
        assert_eq!(first.tally, again.tally);
        let other = run(&Options::new(seed + 1, 6, HOUR_MS));
        assert_ne!(first.digest, other.digest);
    }
}

/// Pairs of states that the table connects and no flow of this conductor takes, with the reason.
const NOT_TAKEN: &[(&str, &str, &str)] = &[
    (
        "inspect wait",
        "manageable",
        "what was found is taken over in inspecting",
    ),
    (
        "service failed",
        "service wait",
        "a failed service is begun anew",
    ),
    (
        "service failed",
        "service hold",
        "a failed service is begun anew",
    ),
];

#[test]
fn the_worlds_walk_along_every_edge_of_the_table() {
    let mut moves = BTreeSet::new();
    for seed in 0..400 {
        let report = run(&Options::new(seed, 4, 24 * HOUR_MS));
        assert_eq!(report.broken, None);
        moves.extend(report.tally.moves);
        let missing: BTreeSet<String> = EDGES
            .iter()
            .filter(|(from, _, to)| !moves.contains(&(*from, *to)))
            .map(|(from, _, to)| format!("{from} -> {to}"))
            .collect();
        let known: BTreeSet<String> = NOT_TAKEN
            .iter()
            .map(|(from, to, _)| format!("{from} -> {to}"))
            .collect();
        assert!(
            known.is_subset(&missing),
            "they are taken: {:?}",
            known.difference(&missing)
        );
        if missing == known {
            return;
        }
        assert!(seed < 399, "never taken: {:?}", missing.difference(&known));
    }
}

#[test]
fn without_faults_every_deploy_ends_active() {
    for seed in 0..20 {
        let report = run(&Options {
            faults: Faults::NONE,
            ..Options::new(seed, 1, 3 * HOUR_MS)
        });
        assert_eq!(report.broken, None);
        assert_eq!(report.tally.deploys, report.tally.active);
        assert!(report.tally.active > 0 && report.tally.unknown == 0);
    }
}

#[test]
fn a_broken_rule_is_told_by_the_shortest_story_and_can_be_replayed() {
    let options = (0..200)
        .map(|seed| broken(seed, Faults::all(), dispatches_again, Quirks::default()))
        .find(|options| run(options).broken.is_some())
        .expect("it can be broken");
    let (node, violation) = run(&options).broken.unwrap();
    let shown = shrink(&options, node).expect("it is broken again");
    assert_eq!(shown.violation.rule, violation.rule);
    assert!(shown.options.span_ms <= options.span_ms);
    assert!(
        shown.options.faults.iter().count() <= 3,
        "{}",
        shown.options.faults
    );
    assert!(
        shown
            .lines
            .iter()
            .any(|line| line.contains("operator asks for "))
    );
    assert!(
        shown
            .command()
            .contains(&format!("--seed {} ", options.seed))
    );
    let replayed = run(&shown.options).broken.expect("the same again");
    assert_eq!(replayed.1, shown.violation);
}

// ---- every rule can be broken ----

fn broken(seed: u64, faults: Faults, step: StepFn, quirks: Quirks) -> Options {
    Options {
        faults,
        step,
        quirks,
        ..Options::new(seed, 1, 2 * HOUR_MS)
    }
}

/// Lets seeds run until `rule` is broken; nothing outside `also` may be broken before.
fn breaks(rule: Rule, also: &[Rule], faults: Faults, step: StepFn, quirks: Quirks) {
    let mut seen = BTreeSet::new();
    for seed in 0..600 {
        if let Some((_, violation)) = run(&broken(seed, faults, step, quirks)).broken {
            assert!(
                violation.rule == rule || also.contains(&violation.rule),
                "seed {seed}: meant to break {rule:?}, but broke {:?}: {}",
                violation.rule,
                violation.what
            );
            seen.insert(violation.rule);
            if violation.rule == rule {
                return;
            }
        }
    }
    panic!("{rule:?} was not broken, only {seen:?}");
}

fn only(faults: &[Fault]) -> Faults {
    faults
        .iter()
        .fold(Faults::NONE, |set, fault| set.with(*fault))
}

fn sound() -> Quirks {
    Quirks::default()
}

/// On no clear answer: send the same attempt again, without reading the agent first.
fn dispatches_again(node: &Node, event: Event, now: Now<'_>) -> Step {
    send_instead_of_looking(node, event, now, 0)
}

/// The same, but as a new attempt, as if the first had provably never arrived.
fn takes_silence_for_absence(node: &Node, event: Event, now: Now<'_>) -> Step {
    send_instead_of_looking(node, event, now, 1)
}

fn send_instead_of_looking(node: &Node, event: Event, now: Now<'_>, more: u32) -> Step {
    let mut step = step(node, event, now);
    let was_sent = node
        .open_command()
        .is_some_and(|command| matches!(command.phase, Phase::Sent { .. }));
    if let (true, Some(command)) = (was_sent, &mut step.node.command)
        && matches!(command.phase, Phase::Unknown { .. })
    {
        command.phase = Phase::Sent { at: now.at };
        command.attempt += more;
        step.effects = vec![Effect::Command {
            id: command.id,
            attempt: command.attempt,
            effect: AgentEffect::Post,
        }];
    }
    step
}

#[test]
fn an_attempt_that_is_sent_twice_is_seen() {
    breaks(
        Rule::DispatchedOnce,
        &[],
        only(&[Fault::Loss, Fault::Garbage]),
        dispatches_again,
        sound(),
    );
}

#[test]
fn a_command_that_is_carried_out_twice_is_seen() {
    breaks(
        Rule::CarriedOutOnce,
        &[Rule::NoWriteTwice],
        only(&[Fault::Loss, Fault::Garbage, Fault::Delay]),
        takes_silence_for_absence,
        sound(),
    );
}

#[test]
fn a_write_that_is_repeated_is_seen() {
    let never_busy = Quirks {
        agents_are_never_busy: true,
        ..sound()
    };
    let faults = only(&[Fault::Loss, Fault::Garbage, Fault::Delay]);
    let others = [
        Rule::CarriedOutOnce,
        Rule::NoWriteTwice,
        Rule::OneWriteAtATime,
    ];
    breaks(
        Rule::NoWriteTwice,
        &others,
        faults,
        takes_silence_for_absence,
        sound(),
    );
    breaks(
        Rule::OneWriteAtATime,
        &others,
        faults,
        takes_silence_for_absence,
        never_busy,
    );
}

#[test]
fn a_node_that_expires_although_its_agent_lives_is_seen() {
    /// No heartbeat and no answer moves the deadline.
    fn deaf(node: &Node, event: Event, now: Now<'_>) -> Step {
        let mut step = step(node, event, now);
        if step.node.commands_planned == node.commands_planned
            && let (Some(new), Some(old)) =
                (&mut step.node.deadlines.liveness, node.deadlines.liveness)
            && *new != old
        {
            *new = old;
        }
        step
    }
    breaks(Rule::LivingDontExpire, &[], Faults::NONE, deaf, sound());
}

#[test]
fn a_step_that_expires_too_early_is_seen() {
    fn hasty(node: &Node, event: Event, now: Now<'_>) -> Step {
        let mut step = step(node, event, now);
        if step.node.commands_planned != node.commands_planned && step.node.deadlines.step.is_some()
        {
            step.node.deadlines.step = Some(now.at.plus_ms(60_000));
        }
        step
    }
    breaks(Rule::StepsHaveTheirTime, &[], Faults::NONE, hasty, sound());
}

#[test]
fn a_dead_node_that_lives_on_is_seen() {
    /// Every failed look counts as a sign of life.
    fn hopeful(node: &Node, event: Event, now: Now<'_>) -> Step {
        let failed = matches!(
            &event,
            Event::Command {
                event: AgentEvent::PollFailed(_) | AgentEvent::SurveyFailed(_),
                ..
            }
        );
        let mut step = step(node, event, now);
        if failed
            && step.node != *node
            && let Some(liveness) = &mut step.node.deadlines.liveness
        {
            *liveness = now.at.plus_ms(now.limits.deploy_callback_timeout_ms);
        }
        step
    }
    breaks(
        Rule::DeadEnd,
        &[],
        only(&[Fault::AgentHang, Fault::MachineDeath]),
        hopeful,
        sound(),
    );
}

#[test]
fn a_deadline_that_is_not_handled_is_seen() {
    /// Nothing is ever due.
    fn patient(node: &Node, event: Event, now: Now<'_>) -> Step {
        let is_deadline = event == Event::DeadlineReached;
        let mut step = step(node, event, now);
        if is_deadline {
            step.node = node.clone();
            step.effects.clear();
            step.history.clear();
            step.outcome = Outcome::DeadlineMoved;
        }
        step
    }
    breaks(
        Rule::DeadlinesFire,
        &[],
        only(&[Fault::MachineDeath]),
        patient,
        sound(),
    );
}

#[test]
fn a_wait_without_a_deadline_is_seen() {
    fn forgetful(node: &Node, event: Event, now: Now<'_>) -> Step {
        let mut step = step(node, event, now);
        if step.node != *node && step.node.open_command().is_some() {
            step.node.deadlines.step = None;
        }
        step
    }
    breaks(
        Rule::WaitsHaveDeadlines,
        &[],
        Faults::NONE,
        forgetful,
        sound(),
    );
}

#[test]
fn a_command_that_nobody_asks_about_is_seen() {
    /// After a failed look: no other.
    fn gives_up(node: &Node, event: Event, now: Now<'_>) -> Step {
        let failed = matches!(
            &event,
            Event::Command {
                event: AgentEvent::PollFailed(_) | AgentEvent::SurveyFailed(_),
                ..
            }
        );
        let mut step = step(node, event, now);
        if failed && step.node.open_command().is_some() {
            step.effects.clear();
        }
        step
    }
    let faults = only(&[Fault::Loss, Fault::Delay]);
    breaks(Rule::CommandsAreAsked, &[], faults, gives_up, sound());
}

#[test]
fn a_refusal_that_changes_something_is_seen() {
    fn offended(node: &Node, event: Event, now: Now<'_>) -> Step {
        let mut step = step(node, event, now);
        if matches!(step.reply, Reply::Refused(_)) {
            step.node.last_error = Some("how dare they".to_owned());
            step.node.version += 1;
        }
        step
    }
    breaks(
        Rule::RefusalsChangeNothing,
        &[],
        only(&[Fault::Stray]),
        offended,
        sound(),
    );
}

#[test]
fn a_version_that_jumps_is_seen() {
    fn jumps(node: &Node, event: Event, now: Now<'_>) -> Step {
        let mut step = step(node, event, now);
        step.node.version += u64::from(step.node != *node);
        step
    }
    breaks(Rule::VersionsGrow, &[], Faults::NONE, jumps, sound());
}

#[test]
fn a_row_that_comes_back_as_another_is_seen() {
    let forgetful = Quirks {
        forgets_ports: true,
        ..Quirks::default()
    };
    breaks(Rule::RowsAreWhole, &[], Faults::NONE, step, forgetful);
}

#[test]
fn a_wait_that_never_ends_is_seen() {
    /// The driver gets another minute whenever its time is over.
    fn generous(node: &Node, event: Event, now: Now<'_>) -> Step {
        let due = node
            .deadlines
            .driver
            .is_some_and(|deadline| deadline <= now.at);
        let is_deadline = event == Event::DeadlineReached;
        let mut step = step(node, event, now);
        if due && is_deadline {
            step.node = node.clone();
            step.node.version += 1;
            step.node.deadlines.driver = Some(now.at.plus_ms(60_000));
            step.effects.clear();
            step.history.clear();
        }
        step
    }
    breaks(
        Rule::WaitsEnd,
        &[],
        only(&[Fault::Driver]),
        generous,
        sound(),
    );
}

#[test]
fn a_failure_without_a_reason_is_seen() {
    fn silent(node: &Node, event: Event, now: Now<'_>) -> Step {
        let mut step = step(node, event, now);
        if matches!(step.node.provision, Provision::DeployFailed) {
            step.node.last_error = None;
        }
        step
    }
    breaks(
        Rule::FailuresHaveReasons,
        &[],
        only(&[Fault::MachineDeath]),
        silent,
        sound(),
    );
}

#[test]
fn a_deploy_that_fails_for_a_trifle_is_seen() {
    /// No clear answer is taken for a no.
    fn nervous(node: &Node, event: Event, now: Now<'_>) -> Step {
        let event = match event {
            Event::Command {
                id,
                attempt,
                event: AgentEvent::Posted(PostAnswer::Unknown { why }),
            } => Event::Command {
                id,
                attempt,
                event: AgentEvent::Posted(PostAnswer::Refused(Refusal::Invalid {
                    status: 400,
                    text: why,
                })),
            },
            other => other,
        };
        step(node, event, now)
    }
    breaks(
        Rule::HarmlessFaultsDontFail,
        &[],
        only(&[Fault::Loss]),
        nervous,
        sound(),
    );
}

#[test]
fn a_stranger_who_is_let_in_is_seen() {
    fn gullible(node: &Node, mut event: Event, now: Now<'_>) -> Step {
        if let Event::Heartbeat(heartbeat) = &mut event {
            heartbeat.token = TokenMatch::Right;
        }
        step(node, event, now)
    }
    breaks(
        Rule::StrangersChangeNothing,
        &[],
        only(&[Fault::Stray]),
        gullible,
        sound(),
    );
}

#[test]
fn more_turns_than_there_are_are_seen() {
    let forgets = Quirks {
        forgets_turns: true,
        ..sound()
    };
    let faults = only(&[Fault::Crash]);
    breaks(Rule::TurnsAreLimited, &[], faults, step, forgets);
}

#[test]
fn a_turn_that_is_lost_is_seen() {
    let leaves = Quirks {
        leaves_lost_turns: true,
        ..sound()
    };
    let faults = only(&[Fault::Crash]);
    breaks(Rule::TurnsAreTaken, &[], faults, step, leaves);
}

#[test]
fn a_place_that_is_lost_is_seen() {
    /// After a restart of the conductor it waits as if it had just asked.
    fn asks_anew(node: &Node, event: Event, now: Now<'_>) -> Step {
        let is_return = matches!(event, Event::Resumed { .. });
        let mut step = step(node, event, now);
        if let (true, Provision::Working(work)) = (is_return, &mut step.node.provision)
            && let WorkPhase::Queued { since, .. } = &mut work.phase
            && *since != now.at
        {
            *since = now.at;
            step.node.version = node.version + 1;
        }
        step
    }
    let faults = only(&[Fault::Crash]);
    breaks(Rule::TurnsComeInOrder, &[], faults, asks_anew, sound());
}

#[test]
fn whoever_does_not_wait_for_its_turn_is_seen() {
    /// A heartbeat has the agent asked at once.
    fn pushes(node: &Node, event: Event, now: Now<'_>) -> Step {
        let is_heartbeat = matches!(event, Event::Heartbeat(_));
        let mut step = step(node, event, now);
        if is_heartbeat && node.is_queued() {
            step.effects.push(Effect::Command {
                id: CommandId(node.commands_planned),
                attempt: 1,
                effect: AgentEffect::Survey(Pace::Now),
            });
        }
        step
    }
    breaks(
        Rule::WhoWaitsAsksNothing,
        &[],
        Faults::NONE,
        pushes,
        sound(),
    );
}

#[test]
fn what_the_shell_once_got_wrong_is_seen() {
    let faults = only(&[Fault::Store, Fault::Crash]);
    let late = [
        Rule::HarmlessFaultsDontFail,
        Rule::LivingDontExpire,
        Rule::DeadEnd,
        Rule::DeadlinesFire,
    ];
    let forgets = Quirks {
        forgets_signs: true,
        ..sound()
    };
    breaks(Rule::LivingDontExpire, &late, faults, step, forgets);
    let leaves = Quirks {
        leaves_failed_signs: true,
        ..sound()
    };
    breaks(Rule::LivingDontExpire, &late, faults, step, leaves);
}
