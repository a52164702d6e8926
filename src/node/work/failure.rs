//! Puts failed work into words: what was written, what went wrong, what to do.

use super::kind::WorkKind;
use super::state::{Work, WorkPhase};
use crate::command::{Finish, Refusal};
use crate::node::image::image_of;
use crate::node::limits::Now;
use crate::node::masking::without_credentials;
use crate::node::state::{Attributes, Node};
use crate::node::steps::{WRITE_IMAGE, WorkStep};

/// Longest text taken over from an agent, in characters.
const AGENT_TEXT_MAX: usize = 2_000;

/// Why work fails after its command ended as `finish`.
pub fn explain(attributes: &Attributes, work: &Work, finish: &Finish) -> String {
    let what = what(attributes, work);
    let again = work.kind.words().again;
    match finish {
        Finish::Failed { kind, message } => {
            let named = if kind.is_empty() {
                String::new()
            } else {
                format!(" ({kind})")
            };
            let message = shortened(message.trim().trim_end_matches('.'));
            format!(
                "{what} failed: {message}{named}. {}, then {again}.",
                advice(kind, &message)
            )
        }
        Finish::VersionMismatch => format!(
            "{what} failed: the agent's hardware managers changed since its steps were read, so it is another ramdisk than at the beginning. {}.",
            sentence(again)
        ),
        Finish::Refused { why } => {
            format!("{what} failed: {why}. {}", refusal_advice(why, again))
        }
        Finish::Succeeded { .. } | Finish::InstanceLost | Finish::Abandoned => {
            format!("{what} ended without a result. {}.", sentence(again))
        }
    }
}

/// Why work fails after the driver said `why`.
pub(super) fn driver_failed(work: &Work, why: &str) -> String {
    let words = work.kind.words();
    let doing = match (work.phase, work.current_step()) {
        (WorkPhase::OutOfBandStep, Some(step)) => format!("in step {}", step.full_name()),
        (phase, _) => format!("while {}", phase.name()),
    };
    format!(
        "The {} failed {doing}: {why}. Mend the machine's power and boot control, then {}.",
        words.noun, words.again
    )
}

/// Why an inspection fails that nothing came of.
pub(super) fn no_inventory(node: &Node, now: Now<'_>) -> String {
    let limit_s = now.limits.inspect_wait_timeout_ms / 1_000;
    let called = match node.heard_at() {
        Some(_) => "The agent called, but did not tell what it found",
        None => "No agent told what it found",
    };
    format!(
        "The inspection failed: {called} within {limit_s} s (inspect_wait_timeout). Check that the machine booted the ramdisk, that its kernel parameters have ipa-inspection-callback-url or ipa-inspection-collectors, and that one of the node's ports has the machine's MAC address; then inspect again."
    )
}

/// Why work fails when the agent was silent for too long.
pub(super) fn silent(node: &Node, work: &Work, now: Now<'_>) -> String {
    let words = work.kind.words();
    let limit_s = work.kind.callback_timeout_ms(now.limits) / 1_000;
    let trouble = trouble_with(node, "Last attempt");
    match node.heard_at() {
        Some(heard) => format!(
            "The agent went silent while {}: nothing was heard for {} s ({} is {limit_s} s).{trouble} Look at the machine's console and network, then {}.",
            phase_of(node, work),
            now.at.ms_since(heard) / 1_000,
            words.timeout,
            words.again,
        ),
        None => format!(
            "No agent called within {limit_s} s of booting the ramdisk ({}). Check that the machine booted the ramdisk, that ipa-api-url reaches this conductor, and that one of the node's ports has the machine's MAC address; then {}.",
            words.timeout, words.again
        ),
    }
}

/// Why work fails when a step took too long although the agent lives.
pub(super) fn step_too_long(node: &Node, work: &Work, now: Now<'_>) -> String {
    let words = work.kind.words();
    let since = node
        .command
        .as_ref()
        .map_or(0, |command| now.at.ms_since(command.planned_at) / 1_000);
    let trouble = trouble_with(node, "In its way");
    let limits = match work.kind {
        WorkKind::Deploy => "write_image_limit and command_limit",
        _ => "command_limit",
    };
    format!(
        "The {} failed: {} has not ended after {since} s although the agent lives (see {limits}).{trouble} Look at the machine's console, then {}.",
        words.noun,
        doing(node, work).unwrap_or_else(|| work.phase.name().to_owned()),
        words.again,
    )
}

fn phase_of(node: &Node, work: &Work) -> String {
    match doing(node, work) {
        Some(doing) => format!("{doing} was in progress"),
        None => work.phase.name().to_owned(),
    }
}

/// What the agent is to do, by the name operators know.
fn doing(node: &Node, work: &Work) -> Option<String> {
    let command = node.open_command()?;
    Some(match work.current_step() {
        Some(step) if !is_core(work, step) || step.step == WRITE_IMAGE => {
            format!("step {}", step.full_name())
        }
        _ => command.request.full_name().to_owned(),
    })
}

fn is_core(work: &Work, step: &WorkStep) -> bool {
    work.kind == WorkKind::Deploy && step.is_core()
}

/// What is wrong with reaching the agent, as a sentence that begins with `called`; nothing if nothing is.
fn trouble_with(node: &Node, called: &str) -> String {
    node.session
        .as_ref()
        .and_then(|session| session.trouble.as_deref())
        .map(|trouble| format!(" {called}: {trouble}."))
        .unwrap_or_default()
}

fn what(attributes: &Attributes, work: &Work) -> String {
    match work.current_step() {
        Some(step) if is_core(work, step) && step.step == WRITE_IMAGE => match image_of(attributes)
        {
            Ok(image) => format!("Writing image {}", without_credentials(&image.url)),
            Err(_) => "Writing the image".to_owned(),
        },
        Some(step) if !is_core(work, step) => format!(
            "{} step {}",
            sentence(work.kind.steps_of().unwrap_or_default().word()),
            step.full_name()
        ),
        _ => format!("The {}, {},", work.kind.words().noun, work.phase.name()),
    }
}

/// What an operator can do about an error class of the agent.
fn advice(kind: &str, message: &str) -> &'static str {
    let full = message.contains("No space left")
        || message.contains("too large")
        || message.contains("larger than")
        || message.contains("smaller than input");
    match kind {
        // Agents report a full disk as a failed download, because raw images are written while they arrive.
        _ if full && kind != "ImageDownloadOutofSpaceError" => {
            "The image does not fit on the machine's root disk; use a smaller image, or point properties/root_device at a larger disk"
        }
        "ImageChecksumError" => {
            "Check that image_os_hash_value (or image_checksum) in instance_info belongs to this image and that the image on the server is whole"
        }
        "ImageDownloadOutofSpaceError" => {
            "The ramdisk has too little memory to hold the image; use a raw image, which is streamed to the disk, or a machine with more memory"
        }
        "ImageDownloadError" | "ImageDownloadTimeoutError" | "ImageDownloadFatalError" => {
            "Check that image_source exists and can be reached from the machine's network"
        }
        "InvalidImage" => {
            "Check that image_disk_format says what the image really is, and that the format is permitted"
        }
        "DeviceNotFound" => {
            "Check the root device hints in properties/root_device against the machine's disks"
        }
        _ => "Mend the cause",
    }
}

fn refusal_advice(why: &Refusal, again: &str) -> String {
    match why {
        Refusal::Invalid { .. } => {
            "The ramdisk does not know this command or rejects its parameters; check instance_info, and that the ramdisk is not too old (6.4.0 or later).".to_owned()
        }
        Refusal::ListPoisoned | Refusal::Busy { .. } | Refusal::Unauthorized => {
            format!("{}, which boots the ramdisk anew.", sentence(again))
        }
    }
}

/// The text as the beginning of a sentence.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(chars).collect()
    })
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= AGENT_TEXT_MAX {
        return text.to_owned();
    }
    let kept: String = text.chars().take(AGENT_TEXT_MAX).collect();
    format!("{kept}...")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_recognised_whatever_the_agent_calls_it() {
        for kind in ["ImageDownloadError", "ImageWriteError", ""] {
            let advice = advice(kind, "[Errno 28] No space left on device");
            assert!(advice.contains("smaller image"), "{kind}: {advice}");
        }
        assert!(advice("ImageDownloadOutofSpaceError", "No space left").contains("memory"));
    }

    #[test]
    fn a_long_text_of_the_agent_is_cut() {
        assert!(shortened(&"x".repeat(10_000)).chars().count() < 2_010);
    }
}
