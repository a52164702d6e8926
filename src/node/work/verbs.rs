//! The verbs that begin work, interrupt it and let it go on. That the node's state allows the verb is known before.

use serde_json::Value;

use super::end::{give_up, rest};
use super::kind::WorkKind;
use super::run::{next_step, steps_read, without_ramdisk};
use super::state::{Work, WorkPhase};
use super::{enter, work_of, work_of_mut};
use crate::node::driver_call::DriverRequest;
use crate::node::effect::{Severity, Step};
use crate::node::event::ProvisionOptions;
use crate::node::image::{boot_mode, is_ramdisk, problems};
use crate::node::outcome::Outcome;
use crate::node::provision::Verb;
use crate::node::refused::Refused;
use crate::node::state::{Node, Provision};
use crate::node::steps::WorkStep;
use crate::node::traits::check_instance_traits;
use crate::node::turn::Turn;

/// `active` and `rebuild`
pub(in crate::node) fn deploy(mut turn: Turn<'_>, verb: Verb, options: ProvisionOptions) -> Step {
    if turn.node.maintenance.is_some() {
        return turn.refuse(in_maintenance("Deploying"));
    }
    if verb == Verb::Rebuild && turn.node.attributes.protected {
        return turn.refuse(Refused::Protected {
            what: "Rebuilding".to_owned(),
        });
    }
    if let Some(core) = options.steps.iter().find(|step| step.is_core()) {
        return turn.refuse(Refused::BadValue {
            field: "deploy_steps".to_owned(),
            problem: format!(
                "deploy.{} is a step the conductor always takes; leave it out",
                core.step
            ),
        });
    }
    if let Some(drive) = options.configdrive {
        turn.node
            .attributes
            .instance_info
            .insert("configdrive".to_owned(), Value::String(drive));
    }
    let steps_given = options.steps.len() + options.template_steps.len();
    if is_ramdisk(&turn.node.attributes) && steps_given > 0 {
        return turn.refuse(Refused::BadValue {
            field: "deploy_steps".to_owned(),
            problem: "the deploy interface ramdisk carries out none; leave them out".to_owned(),
        });
    }
    let problems = problems(&turn.node.attributes);
    if !problems.is_empty() {
        return turn.refuse(Refused::BadValue {
            field: "instance_info".to_owned(),
            problem: problems.join("; "),
        });
    }
    if let Err(why) = check_instance_traits(&turn.node) {
        return turn.refuse(why);
    }
    let mut steps = options.template_steps;
    steps.extend(options.steps);
    let work = work(&turn, WorkKind::Deploy, steps);
    begin(turn, work)
}

/// `clean`: the steps somebody asked for.
pub(in crate::node) fn clean(turn: Turn<'_>, options: ProvisionOptions) -> Step {
    with_wanted_steps(turn, WorkKind::ManualClean, options)
}

/// `service`: the steps somebody asked for, on a machine in use.
pub(in crate::node) fn service(turn: Turn<'_>, options: ProvisionOptions) -> Step {
    with_wanted_steps(turn, WorkKind::Service, options)
}

fn with_wanted_steps(turn: Turn<'_>, kind: WorkKind, options: ProvisionOptions) -> Step {
    if turn.node.maintenance.is_some() {
        return turn.refuse(in_maintenance(match kind {
            WorkKind::Service => "Servicing",
            _ => "Cleaning",
        }));
    }
    let (steps, is_without_ramdisk) = match options.runbook {
        Some(runbook) => {
            let fits = |name: &String| turn.node.traits.contains(name);
            if !runbook.traits.iter().any(fits) {
                return turn.refuse(Refused::BadValue {
                    field: "runbook".to_owned(),
                    problem: format!(
                        "runbook {} is not for this node: it has none of the traits {}",
                        runbook.name,
                        runbook.traits.join(", ")
                    ),
                });
            }
            (runbook.steps, runbook.disable_ramdisk)
        }
        None => (options.steps, options.disable_ramdisk),
    };
    if steps.is_empty() {
        return turn.refuse(Refused::BadValue {
            field: kind.steps_name().to_owned(),
            problem: "at least one step is needed, or a runbook".to_owned(),
        });
    }
    let mut work = work(&turn, kind, steps);
    work.is_without_ramdisk = is_without_ramdisk;
    begin(turn, work)
}

/// `rescue`: boot a ramdisk that its user can log into.
pub(in crate::node) fn rescue(turn: Turn<'_>, options: ProvisionOptions) -> Step {
    if turn.node.maintenance.is_some() {
        return turn.refuse(in_maintenance("Rescuing"));
    }
    let Some(hash) = options.rescue_password_hash else {
        return turn.refuse(Refused::BadValue {
            field: "rescue_password".to_owned(),
            problem: "is needed for the target \"rescue\"".to_owned(),
        });
    };
    if let Err(why) = has_interface(&turn.node, "rescue") {
        return turn.refuse(why);
    }
    let mut work = work(&turn, WorkKind::Rescue, Vec::new());
    work.rescue_password_hash = Some(hash);
    begin(turn, work)
}

/// `unrescue`: boot what is on the disk again.
pub(in crate::node) fn unrescue(mut turn: Turn<'_>) -> Step {
    if turn.node.maintenance.is_some() {
        return turn.refuse(in_maintenance("Unrescuing"));
    }
    turn.node.last_error = None;
    turn.forget_agent();
    let mut work = work(&turn, WorkKind::Unrescue, Vec::new());
    work.phase = WorkPhase::RebootingToInstance;
    turn.move_to(Provision::Working(work.into()));
    turn.call_driver(DriverRequest::RebootToInstance);
    turn.done(Outcome::DriverCalled)
}

/// `inspect`: boot the ramdisk and let its agent tell what is in the machine.
pub(in crate::node) fn inspect(mut turn: Turn<'_>) -> Step {
    if let Err(why) = has_interface(&turn.node, "inspect") {
        return turn.refuse(why);
    }
    let work = work(&turn, WorkKind::Inspect, Vec::new());
    turn.node.inspection.started_at = Some(turn.now.at);
    turn.node.inspection.finished_at = None;
    begin(turn, work)
}

/// The cleaning on the way to `available`. Where it is switched off the node passes through `cleaning` all the same, as clients
/// expect, and its history says that nothing was cleaned.
pub(in crate::node) fn clean_automatically(mut turn: Turn<'_>) -> Step {
    let wanted = turn.node.attributes.automated_clean;
    let work = work(&turn, WorkKind::Clean, Vec::new());
    if wanted.unwrap_or(turn.now.limits.automated_clean) {
        return begin(turn, work);
    }
    turn.move_to(Provision::Working(work.into()));
    turn.note(
        Severity::Info,
        "provisioning",
        "nothing was cleaned, because automated_clean is off; the disks hold what they held"
            .to_owned(),
    );
    rest(turn, WorkKind::Clean)
}

/// `abort`: give up. A step that must not be interrupted is waited for.
pub(in crate::node) fn abort(mut turn: Turn<'_>) -> Step {
    let Some(work) = work_of_mut(&mut turn) else {
        // `service failed`: leave it at that.
        return leave_service(turn);
    };
    let kind = work.kind;
    let is_interruptible = match (kind, work.phase, work.current_step()) {
        (WorkKind::Deploy, _, _) => true,
        (_, WorkPhase::InBandStep, Some(step)) => !step.is_not_abortable,
        _ => true,
    };
    if !is_interruptible {
        work.is_abort_wanted = true;
        turn.note(
            Severity::Info,
            "provisioning",
            "abort asked for; the step in progress can't be interrupted, so the work ends after it"
                .to_owned(),
        );
        return turn.done(Outcome::Changed);
    }
    abort_now(turn)
}

/// Ends work because somebody asked for it.
pub(super) fn abort_now(mut turn: Turn<'_>) -> Step {
    let Some(work) = work_of(&turn) else {
        return turn.done(Outcome::AnswerIgnored);
    };
    let kind = work.kind;
    let text = format!(
        "The {} was aborted by request while {}.",
        kind.words().noun,
        work.phase.name()
    );
    if kind != WorkKind::Service {
        return give_up(turn, text);
    }
    turn.forget_agent();
    turn.error("provisioning", text);
    turn.move_to(Provision::ServiceFailed);
    if turn.node.maintenance.is_some() {
        // Somebody works on the machine: it is left as it is, and whoever ends the maintenance leaves the failed state, too.
        return turn.done(Outcome::WorkFailed);
    }
    leave_service(turn)
}

/// From `service failed` back into use: the machine boots what is on its disk.
fn leave_service(mut turn: Turn<'_>) -> Step {
    if turn.node.maintenance.is_some() {
        return turn.refuse(in_maintenance("Aborting a failed service"));
    }
    turn.forget_agent();
    turn.move_to(Provision::Active);
    turn.call_driver(DriverRequest::RebootToInstance);
    turn.done(Outcome::DriverCalled)
}

/// `unhold`: go on with the step after the one that asked for the pause.
pub(in crate::node) fn unhold(mut turn: Turn<'_>) -> Step {
    let Some(work) = work_of(&turn) else {
        return turn.done(Outcome::AnswerIgnored);
    };
    if turn.node.driver_call.is_some() {
        let state = work.state();
        return turn.refuse(Refused::Busy { state });
    }
    let is_without_ramdisk = work.is_without_ramdisk;
    enter(&mut turn, WorkPhase::AwaitingAgent);
    if !is_without_ramdisk {
        turn.refresh_liveness();
    }
    next_step(turn)
}

/// Work of this kind on this node, at its beginning.
fn work(turn: &Turn<'_>, kind: WorkKind, steps: Vec<WorkStep>) -> Work {
    let mode = boot_mode(&turn.node.attributes, turn.now.limits.default_boot_mode);
    Work::begun(kind, turn.now.at, mode, steps)
}

/// Begins, at once or when its turn comes.
fn begin(mut turn: Turn<'_>, mut work: Work) -> Step {
    let kind = work.kind;
    if matches!(kind, WorkKind::ManualClean | WorkKind::Service) {
        let needs_none = without_ramdisk(&turn.node, &work);
        work.is_without_ramdisk |= needs_none;
    }
    turn.node.last_error = None;
    turn.forget_agent();
    let queue = kind
        .queue()
        .filter(|queue| turn.now.limits.queues.of(*queue) > 0);
    if let Some(kind) = queue {
        let since = turn.now.at;
        work.phase = WorkPhase::Queued { kind, since };
        turn.move_to(Provision::Working(work.into()));
        return turn.done(Outcome::Queued);
    }
    turn.move_to(Provision::Working(work.into()));
    start(turn)
}

/// The work begins with booting the ramdisk, or without it where it is not needed.
pub(super) fn start(mut turn: Turn<'_>) -> Step {
    enter(&mut turn, WorkPhase::Booting);
    if work_of(&turn).is_some_and(|work| work.is_without_ramdisk) {
        return steps_read(turn, &Value::Null);
    }
    turn.call_driver(DriverRequest::RebootToRamdisk);
    turn.done(Outcome::DriverCalled)
}

fn in_maintenance(what: &str) -> Refused {
    Refused::InMaintenance {
        what: what.to_owned(),
    }
}

/// Refuses what the node has no interface for.
fn has_interface(node: &Node, kind: &str) -> Result<(), Refused> {
    let interface = node.attributes.interfaces.get(kind);
    match interface {
        Some(name) if name == &format!("no-{kind}") => Err(Refused::BadValue {
            field: format!("{kind}_interface"),
            problem: format!("is {name}, which can't do this; set it to another one first"),
        }),
        _ => Ok(()),
    }
}
