//! Puts a failed deploy into words: what was written, what went wrong, what to do.

use super::image::image_of;
use super::state::Deploy;
use crate::command::{Finish, Refusal};
use crate::node::limits::Now;
use crate::node::state::{Attributes, Node};
use crate::node::steps::WRITE_IMAGE;

/// Longest text taken over from an agent, in characters.
const AGENT_TEXT_MAX: usize = 2_000;

/// Why the deploy fails after its command ended as `finish`.
pub fn explain(attributes: &Attributes, deploy: &Deploy, finish: &Finish) -> String {
    let what = what(attributes, deploy);
    match finish {
        Finish::Failed { kind, message } => {
            let named = if kind.is_empty() {
                String::new()
            } else {
                format!(" ({kind})")
            };
            let message = shortened(message.trim().trim_end_matches('.'));
            format!(
                "{what} failed: {message}{named}. {}",
                advice(kind, &message)
            )
        }
        Finish::VersionMismatch => format!(
            "{what} failed: the agent's hardware managers changed since its steps were read, so it is another ramdisk than at the beginning. Deploy again."
        ),
        Finish::Refused { why } => format!("{what} failed: {why}. {}", refusal_advice(why)),
        Finish::Succeeded { .. } | Finish::InstanceLost | Finish::Abandoned => {
            format!("{what} ended without a result. Deploy again.")
        }
    }
}

/// Why the deploy fails when the agent was silent for too long.
pub(super) fn silent(node: &Node, deploy: &Deploy, now: Now<'_>) -> String {
    let limit_s = now.limits.deploy_callback_timeout_ms / 1_000;
    let trouble = trouble_with(node, "Last attempt");
    match node.heard_at() {
        Some(heard) => format!(
            "The agent went silent while {}: nothing was heard for {} s (deploy_callback_timeout is {limit_s} s).{trouble} Look at the machine's console and network, then deploy again.",
            phase_of(node, deploy),
            now.at.ms_since(heard) / 1_000,
        ),
        None => format!(
            "No agent called within {limit_s} s of booting the ramdisk (deploy_callback_timeout). Check that the machine booted the ramdisk, that ipa-api-url reaches this conductor, and that one of the node's ports has the machine's MAC address; then deploy again."
        ),
    }
}

/// Why the deploy fails when a step took too long although the agent lives.
pub(super) fn step_too_long(node: &Node, deploy: &Deploy, now: Now<'_>) -> String {
    let since = node
        .command
        .as_ref()
        .map_or(0, |command| now.at.ms_since(command.planned_at) / 1_000);
    let trouble = trouble_with(node, "In its way");
    format!(
        "The deployment failed: {} has not ended after {since} s although the agent lives (see write_image_limit and command_limit).{trouble} Look at the machine's console, then deploy again.",
        work_of(node, deploy).unwrap_or_else(|| deploy.phase.name().to_owned()),
    )
}

fn phase_of(node: &Node, deploy: &Deploy) -> String {
    match work_of(node, deploy) {
        Some(work) => format!("{work} was in progress"),
        None => deploy.phase.name().to_owned(),
    }
}

/// What the agent is to do, by the name operators know.
fn work_of(node: &Node, deploy: &Deploy) -> Option<String> {
    let command = node.open_command()?;
    Some(match deploy.current_step() {
        Some(step) if !step.is_core() || step.step == WRITE_IMAGE => {
            format!("step {}.{}", step.interface, step.step)
        }
        _ => command.request.full_name().to_owned(),
    })
}

/// What is wrong with reaching the agent, as a sentence that begins with `called`; nothing if nothing is.
fn trouble_with(node: &Node, called: &str) -> String {
    node.session
        .as_ref()
        .and_then(|session| session.trouble.as_deref())
        .map(|trouble| format!(" {called}: {trouble}."))
        .unwrap_or_default()
}

fn what(attributes: &Attributes, deploy: &Deploy) -> String {
    match deploy.current_step() {
        Some(step) if step.is_core() && step.step == WRITE_IMAGE => match image_of(attributes) {
            Ok(image) => format!("Writing image {}", without_credentials(&image.url)),
            Err(_) => "Writing the image".to_owned(),
        },
        Some(step) if !step.is_core() => {
            format!("Deploy step {}.{}", step.interface, step.step)
        }
        _ => format!("The deployment, {},", deploy.phase.name()),
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
            "The image does not fit on the machine's root disk; use a smaller image, or point properties/root_device at a larger disk, then deploy again."
        }
        "ImageChecksumError" => {
            "Check that image_os_hash_value (or image_checksum) in instance_info belongs to this image and that the image on the server is whole, then deploy again."
        }
        "ImageDownloadOutofSpaceError" => {
            "The ramdisk has too little memory to hold the image; use a raw image, which is streamed to the disk, or a machine with more memory, then deploy again."
        }
        "ImageDownloadError" | "ImageDownloadTimeoutError" | "ImageDownloadFatalError" => {
            "Check that image_source exists and can be reached from the machine's network, then deploy again."
        }
        "InvalidImage" => {
            "Check that image_disk_format says what the image really is, and that the format is permitted, then deploy again."
        }
        "DeviceNotFound" => {
            "Check the root device hints in properties/root_device against the machine's disks, then deploy again."
        }
        _ => "Mend the cause, then deploy again.",
    }
}

fn refusal_advice(why: &Refusal) -> &'static str {
    match why {
        Refusal::Invalid { .. } => {
            "The ramdisk does not know this command or rejects its parameters; check instance_info, and that the ramdisk is not too old (6.4.0 or later)."
        }
        Refusal::ListPoisoned | Refusal::Busy { .. } | Refusal::Unauthorized => {
            "Deploy again, which boots the ramdisk anew."
        }
    }
}

fn without_credentials(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            let (authority, path) = rest.split_at(end);
            let host = authority.rsplit('@').next().unwrap_or(authority);
            let path = path.split(['?', '#']).next().unwrap_or_default();
            format!("{scheme}://{host}{path}")
        }
        None => url.to_owned(),
    }
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
    fn credentials_and_query_of_an_image_url_are_not_shown() {
        assert_eq!(
            without_credentials("https://user:pass@host:8/a/b.img?sig=secret#x"),
            "https://host:8/a/b.img"
        );
        assert_eq!(without_credentials("http://host"), "http://host");
    }

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
