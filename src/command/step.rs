//! The one place that decides what becomes of a command.

use super::event::{Entry, Event, PostAnswer, Refusal, Status, Unreadable};
use super::reconcile::{Reconciled, reconcile, running};
use super::state::{Baseline, Command, Finish, Instance, Phase};
use crate::timestamp::Timestamp;

/// How long every survey must show no trace of an unknown command, on the instance that was asked, before it counts as never
/// arrived. The connection of the POST is closed by then; this covers what was still on its way, so nothing that carries a POST
/// may go on trying for as long. In milliseconds.
pub const ABSENT_FOR_MS: i64 = 5_000;

/// When to do it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// At once.
    Now,
    /// After the usual polling interval.
    Interval,
    /// After a pause that grows with every failure in a row.
    Backoff,
}

/// The one thing to do next for a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Read `/v1/status` and the list of commands; answer with [`Event::Surveyed`] or [`Event::SurveyFailed`].
    Survey(Pace),
    /// Send the command, once, on a fresh connection; answer with [`Event::Posted`].
    Post,
    /// Read the command by its id; answer with [`Event::Polled`] or [`Event::PollFailed`].
    Poll(Pace),
}

/// What the node should know.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// The agent answered sensibly: a sign of life.
    Alive,
    /// The command has ended.
    Finished(Finish),
    /// The agent answered sensibly, but does something else first: a sign of life, and what is waited for, in words for people.
    Occupied(String),
    /// The agent can't be read or doesn't obey; the command waits on. For people.
    Trouble(String),
}

/// What one event made of a command.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The new ledger entry, to be stored before the effect is carried out.
    pub command: Command,
    /// What to do next, if anything.
    pub effect: Option<Effect>,
    /// What the node should know, if anything.
    pub verdict: Option<Verdict>,
}

/// Decides what `event` means for `command`.
///
/// `operation` is the operation id that travelled in the step; `expected` is the agent instance the node works with, none before
/// the first command of a session. An event that does not fit the phase changes nothing.
pub fn step(
    command: &Command,
    operation: &str,
    expected: Option<&Instance>,
    event: Event,
    now: Timestamp,
) -> Step {
    let at = Judge {
        command,
        operation,
        now,
    };
    match event {
        Event::Surveyed { instance, entries } => match &command.phase {
            Phase::Planned => at.planned_surveyed(expected, instance, &entries),
            Phase::Sent { .. } | Phase::Ended { .. } => at.nothing(),
            Phase::Accepted { agent_id, .. } => at.accepted_surveyed(agent_id, &instance, &entries),
            Phase::Unknown {
                since,
                absent_since,
            } => at.unknown_surveyed(*since, *absent_since, &instance, &entries),
        },
        Event::SurveyFailed(why) => match &command.phase {
            // It stays so while the agent lives, and only the list could tell.
            Phase::Planned | Phase::Unknown { .. } | Phase::Accepted { by_list: true, .. }
                if why == Unreadable::Poisoned =>
            {
                at.finished(Finish::Refused {
                    why: Refusal::ListPoisoned,
                })
            }
            Phase::Planned | Phase::Unknown { .. } | Phase::Accepted { .. } => {
                at.trouble(Effect::Survey(Pace::Backoff), &why)
            }
            Phase::Sent { .. } | Phase::Ended { .. } => at.nothing(),
        },
        Event::Posted(answer) => match &command.phase {
            Phase::Sent { .. } => at.posted(answer),
            Phase::Planned
            | Phase::Accepted { .. }
            | Phase::Unknown { .. }
            | Phase::Ended { .. } => at.nothing(),
        },
        Event::Polled(entry) => match &command.phase {
            Phase::Accepted { agent_id, .. } if *agent_id == entry.id => {
                at.adopted(&entry, Pace::Interval)
            }
            _ => at.nothing(),
        },
        Event::PollFailed(why) => match &command.phase {
            Phase::Accepted { .. } => at.poll_failed(why),
            _ => at.nothing(),
        },
        Event::Hint => match &command.phase {
            Phase::Planned | Phase::Unknown { .. } => at.next(Effect::Survey(Pace::Now)),
            Phase::Accepted { by_list: false, .. } => at.next(Effect::Poll(Pace::Now)),
            Phase::Accepted { by_list: true, .. } => at.next(Effect::Survey(Pace::Now)),
            Phase::Sent { .. } | Phase::Ended { .. } => at.nothing(),
        },
        Event::Recovered => match &command.phase {
            Phase::Planned | Phase::Accepted { by_list: true, .. } => {
                at.next(Effect::Survey(Pace::Now))
            }
            Phase::Accepted { by_list: false, .. } => at.next(Effect::Poll(Pace::Now)),
            Phase::Sent { .. } => at.unknown(),
            // The clock may have been set meanwhile: evidence by time is taken anew.
            Phase::Unknown { since, .. } => at.unknown_since(*since),
            Phase::Ended { .. } => at.nothing(),
        },
    }
}

/// A command, the operation id it travels with, and the present time.
struct Judge<'a> {
    command: &'a Command,
    operation: &'a str,
    now: Timestamp,
}

impl Judge<'_> {
    /// Nothing was sent for this attempt yet: take the evidence and send, or wait while the agent is busy.
    fn planned_surveyed(
        &self,
        expected: Option<&Instance>,
        instance: Instance,
        entries: &[Entry],
    ) -> Step {
        if expected.is_some_and(|expected| *expected != instance) {
            return self.finished(Finish::InstanceLost);
        }
        if let Some(baseline) = &self.command.baseline
            && let Reconciled::Ours(entry) = reconcile(
                &self.command.request,
                self.operation,
                baseline,
                &instance,
                entries,
            )
        {
            return self.adopted(entry, Pace::Interval);
        }
        if let Some(other) = running(entries) {
            let mut step = self.next(Effect::Survey(Pace::Interval));
            step.verdict = Some(Verdict::Occupied(format!(
                "waiting for the agent to finish {} ({})",
                other.command_name, other.id
            )));
            return step;
        }
        let mut command = self.command.clone();
        command.baseline = Some(Box::new(Baseline::taken(instance, entries)));
        command.phase = Phase::Sent { at: self.now };
        Step {
            command,
            effect: Some(Effect::Post),
            verdict: Some(Verdict::Alive),
        }
    }

    fn posted(&self, answer: PostAnswer) -> Step {
        match answer {
            PostAnswer::Accepted(entry) => self.adopted(&entry, Pace::Interval),
            PostAnswer::Refused(why @ Refusal::Invalid { .. })
            | PostAnswer::Refused(why @ Refusal::ListPoisoned) => {
                self.finished(Finish::Refused { why })
            }
            // Not carried out, and it may be later: the next survey looks for it first all the same.
            PostAnswer::Refused(why @ Refusal::Busy { .. }) => {
                self.again(&why.to_string(), Verdict::Occupied)
            }
            PostAnswer::Refused(why @ Refusal::Unauthorized) => {
                self.again(&why.to_string(), Verdict::Trouble)
            }
            PostAnswer::NeverSent { why } => self.again(&why, Verdict::Trouble),
            PostAnswer::Unknown { why } => {
                let mut step = self.unknown();
                step.verdict = Some(Verdict::Trouble(format!(
                    "no clear answer to {}: {why}",
                    self.command.request.full_name()
                )));
                step
            }
        }
    }

    fn accepted_surveyed(&self, agent_id: &str, instance: &Instance, entries: &[Entry]) -> Step {
        if self
            .command
            .baseline
            .as_ref()
            .is_some_and(|baseline| baseline.instance != *instance)
        {
            return self.finished(Finish::InstanceLost);
        }
        match entries.iter().find(|entry| entry.id == agent_id) {
            Some(entry) => self.adopted(entry, Pace::Interval),
            // An agent never forgets a command while it lives.
            None => self.finished(Finish::InstanceLost),
        }
    }

    fn unknown_surveyed(
        &self,
        since: Timestamp,
        absent_since: Option<Timestamp>,
        instance: &Instance,
        entries: &[Entry],
    ) -> Step {
        let Some(baseline) = &self.command.baseline else {
            // A command is never sent without evidence; without it nothing may be concluded.
            return self.finished(Finish::InstanceLost);
        };
        match reconcile(
            &self.command.request,
            self.operation,
            baseline,
            instance,
            entries,
        ) {
            Reconciled::Ours(entry) => self.adopted(entry, Pace::Interval),
            Reconciled::AnotherInstance => self.finished(Finish::InstanceLost),
            Reconciled::Absent => {
                let absent_since = absent_since.unwrap_or(self.now);
                if self.now.ms_since(absent_since) >= ABSENT_FOR_MS {
                    let mut step = self.again("it never arrived", |_| Verdict::Alive);
                    step.effect = Some(Effect::Survey(Pace::Now));
                    return step;
                }
                let mut command = self.command.clone();
                command.phase = Phase::Unknown {
                    since,
                    absent_since: Some(absent_since),
                };
                Step {
                    command,
                    effect: Some(Effect::Survey(Pace::Interval)),
                    verdict: Some(Verdict::Alive),
                }
            }
        }
    }

    fn poll_failed(&self, why: Unreadable) -> Step {
        match why {
            // Either the agent has restarted or it does not answer for single ids; the list tells which.
            Unreadable::NotFound => {
                let mut command = self.command.clone();
                if let Phase::Accepted { by_list, .. } = &mut command.phase {
                    *by_list = true;
                }
                Step {
                    command,
                    effect: Some(Effect::Survey(Pace::Now)),
                    verdict: None,
                }
            }
            Unreadable::Unreachable { .. }
            | Unreadable::NobodyListens
            | Unreadable::Unauthorized
            | Unreadable::CertificateMismatch
            | Unreadable::Poisoned
            | Unreadable::Garbage { .. } => self.trouble(Effect::Poll(Pace::Backoff), &why),
        }
    }

    /// `entry` is this command: go on from what it says.
    fn adopted(&self, entry: &Entry, pace: Pace) -> Step {
        let finish = match &entry.status {
            Status::Running => {
                let mut command = self.command.clone();
                let (at, by_list) = match &self.command.phase {
                    Phase::Accepted { at, by_list, .. } => (*at, *by_list),
                    _ => (self.now, false),
                };
                command.phase = Phase::Accepted {
                    agent_id: entry.id.clone(),
                    at,
                    by_list,
                };
                return Step {
                    command,
                    effect: Some(if by_list {
                        Effect::Survey(pace)
                    } else {
                        Effect::Poll(pace)
                    }),
                    verdict: Some(Verdict::Alive),
                };
            }
            Status::Succeeded => Finish::Succeeded {
                result: entry.result.clone(),
            },
            Status::Failed => Finish::Failed {
                kind: entry.error_kind.clone(),
                message: entry.error_message.clone(),
            },
            Status::VersionMismatch => Finish::VersionMismatch,
            Status::Other(word) => Finish::Failed {
                kind: String::new(),
                message: format!("the agent reports the unknown status {word:?}"),
            },
        };
        self.finished(finish)
    }

    fn finished(&self, finish: Finish) -> Step {
        Step {
            command: self.command.clone().ended(&finish),
            effect: None,
            verdict: Some(Verdict::Finished(finish)),
        }
    }

    /// The attempt provably did not run: plan the next one. The evidence of this one is kept until the next survey.
    fn again(&self, why: &str, verdict: fn(String) -> Verdict) -> Step {
        let mut command = self.command.clone();
        command.phase = Phase::Planned;
        command.attempt = command.attempt.saturating_add(1);
        Step {
            command,
            effect: Some(Effect::Survey(Pace::Backoff)),
            verdict: Some(verdict(format!(
                "{} was not carried out: {why}",
                self.command.request.full_name()
            ))),
        }
    }

    fn unknown(&self) -> Step {
        self.unknown_since(self.now)
    }

    fn unknown_since(&self, since: Timestamp) -> Step {
        let mut command = self.command.clone();
        command.phase = Phase::Unknown {
            since,
            absent_since: None,
        };
        Step {
            command,
            effect: Some(Effect::Survey(Pace::Now)),
            verdict: None,
        }
    }

    fn trouble(&self, effect: Effect, why: &Unreadable) -> Step {
        let mut step = self.next(effect);
        step.verdict = Some(Verdict::Trouble(why.to_string()));
        step
    }

    fn next(&self, effect: Effect) -> Step {
        Step {
            command: self.command.clone(),
            effect: Some(effect),
            verdict: None,
        }
    }

    fn nothing(&self) -> Step {
        Step {
            command: self.command.clone(),
            effect: None,
            verdict: None,
        }
    }
}
