//! The step `write_image` on a disk that is not there.
//!
//! Called by the command engine and by `steps`. Checks the image information as the agent does, takes as long as the machine is told
//! to, lets the machine's faults strike in the middle, and answers what the agent would. It downloads nothing and
//! writes nothing.

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value, json};

use super::agent::{End, Process};
use super::faults::{Fault, Times, WriteError};
use super::history::{AgentError, Outcome};
use super::journal::WriteRecord;
use super::tasks::random_between;

/// The disk that images go to.
pub(crate) const DEVICE: &str = "/dev/sda";
const NO_CHECKSUM: &str = "Image checksum is not available, either the 'checksum' field or the 'os_hash_algo' and \
                           'os_hash_value' fields pair must be set for image verification.";

/// `standby.prepare_image`.
pub(crate) async fn prepare_image(
    process: &Arc<Process>,
    id: &str,
    params: &Map<String, Value>,
) -> Outcome {
    // The command carries no node; the agent uses what the look-up told it.
    let node = json!({"uuid": process.identity().map(|identity| identity.node_uuid)});
    match write(process, id, &params["image_info"], &node, Map::new()).await {
        Ok(text) => Outcome::Succeeded(text.into()),
        Err(error) => Outcome::Failed(error),
    }
}

/// The check of `standby.prepare_image` that happens before it is accepted.
///
/// # Errors
/// The agent's text for status 400.
pub(crate) fn validate_before(
    process: &Process,
    params: &Map<String, Value>,
) -> Result<(), String> {
    let is_md5_enabled = process
        .identity()
        .is_some_and(|identity| identity.is_md5_enabled);
    validate(
        params.get("image_info").unwrap_or(&Value::Null),
        is_md5_enabled,
    )
    .map_err(|details| format!("Invalid command parameters: {details}"))
}

/// Checks image information as the agent does.
///
/// # Errors
/// The agent's text.
fn validate(image_info: &Value, is_md5_enabled: bool) -> Result<(), String> {
    for field in ["id", "urls"] {
        if image_info.get(field).is_none() {
            return Err(format!("Image is missing '{field}' field."));
        }
    }
    if image_info["urls"].as_array().is_none_or(Vec::is_empty) {
        return Err("Image 'urls' must be a list with at least one element.".to_owned());
    }
    let given = |field: &str| image_info.get(field).filter(|value| !value.is_null());
    let filled = |field: &str| match given(field).and_then(Value::as_str) {
        Some(text) if !text.is_empty() => Ok(()),
        _ => Err(format!("Image '{field}' must be a non-empty string.")),
    };
    if given("os_hash_algo").is_some() || given("os_hash_value").is_some() {
        filled("os_hash_algo")?;
        return filled("os_hash_value");
    }
    if given("checksum").is_none() {
        return Err(NO_CHECKSUM.to_owned());
    }
    filled("checksum")?;
    let is_md5 = image_info["checksum"]
        .as_str()
        .is_some_and(|checksum| checksum.len() == 32);
    if is_md5 && !is_md5_enabled {
        Err(NO_CHECKSUM.to_owned())
    } else {
        Ok(())
    }
}

/// Writes an image, or fails as the agent does; returns the agent's words.
pub(crate) async fn write(
    process: &Arc<Process>,
    id: &str,
    image_info: &Value,
    node: &Value,
    marks: Map<String, Value>,
) -> Result<String, AgentError> {
    let Some(identity) = process.identity() else {
        return Err(AgentError::execution("the agent does not know its node"));
    };
    validate(image_info, identity.is_md5_enabled).map_err(|details| AgentError {
        kind: "InvalidCommandParamsError",
        code: 400,
        message: "Invalid command parameters",
        details,
    })?;
    let image_id = image_info["id"].as_str().unwrap_or_default().to_owned();
    process.note(|journal| {
        journal.writes_started.push(WriteRecord {
            command_id: id.to_owned(),
            image_id: image_id.clone(),
            node_uuid: node["uuid"].as_str().unwrap_or_default().to_owned(),
            marks,
            at: Instant::now(),
        });
    });
    if node["instance_info"]["root_device"].is_null() && node["properties"]["root_device"].is_null()
    {
        // Without a hint where to write, the agent asks for the node again; it goes on with what it has if that fails.
        let sent = || process.note(|journal| journal.lookups_sent += 1);
        process
            .api
            .lookup(
                &process.machine.addresses(),
                Some(&identity.node_uuid),
                sent,
            )
            .await;
    }
    let faults = &process.machine.faults;
    let options = &process.machine.world.options;
    let is_streamed = image_info["disk_format"] == "raw"
        && image_info["stream_raw_images"].as_bool().unwrap_or(true);
    let takes = match faults.find(|fault| {
        if let Fault::SlowWrite(takes) = fault {
            Some(*takes)
        } else {
            None
        }
    }) {
        Some(takes) => takes.as_secs_f64(),
        None if process.history.keeps(&image_id) => 0.0,
        None => random_between(
            options.write_time.0.as_secs_f64(),
            options.write_time.1.as_secs_f64(),
        ),
    };
    let half = std::time::Duration::from_secs_f64(takes / 2.0);
    tokio::time::sleep(half).await;
    strike(process).await;
    if let Some(error) = write_error(process) {
        return Err(describe(error, image_info));
    }
    tokio::time::sleep(half).await;

    let root_uuid = disk_identifier(&process.machine.mac, &image_id);
    let mut uuids = json!({"root uuid": root_uuid});
    if image_info["image_type"] == "partition" && is_uefi(node, options.is_uefi) {
        uuids["efi system partition uuid"] =
            format!("{:04X}-{:04X}", root_uuid.len(), image_id.len()).into();
    }
    process.history.note_written(&image_id, !is_streamed, uuids);
    process.note(|journal| journal.writes_finished += 1);
    Ok(format!(
        "image ({image_id}) written to device {DEVICE} root_uuid={root_uuid}"
    ))
}

/// The faults that end a write without an end.
async fn strike(process: &Arc<Process>) {
    let takes = |wanted: Fault| {
        process
            .machine
            .faults
            .take(|fault| (*fault == wanted).then_some(()))
            .is_some()
    };
    let end = if takes(Fault::DiesDuringWrite) {
        Some(End::Dies)
    } else if takes(Fault::RestartsDuringWrite) {
        Some(End::Restarts)
    } else {
        None
    };
    if let Some(end) = end {
        process.end(end);
        std::future::pending::<()>().await;
    }
    if takes(Fault::HangsDuringWrite) {
        std::future::pending::<()>().await;
    }
}

fn write_error(process: &Process) -> Option<WriteError> {
    let error = |wanted: Times| {
        move |fault: &Fault| match fault {
            Fault::WriteFails(error, times) if *times == wanted => Some(*error),
            _ => None,
        }
    };
    let faults = &process.machine.faults;
    faults
        .find(error(Times::Always))
        .or_else(|| faults.take(error(Times::Once)))
}

fn describe(error: WriteError, image_info: &Value) -> AgentError {
    let id = image_info["id"].as_str().unwrap_or_default();
    let url = image_info["urls"][0].as_str().unwrap_or_default();
    let wanted = image_info["os_hash_value"]
        .as_str()
        .or(image_info["checksum"].as_str())
        .unwrap_or_default();
    let (kind, code, message, details) = match error {
        WriteError::Download => (
            "ImageDownloadError",
            500,
            "Error downloading image",
            format!("Download of image {id} failed: Connection broken while reading {url}"),
        ),
        WriteError::NotFound => (
            "ImageDownloadFatalError",
            500,
            "Error downloading image",
            format!(
                "Download of image {id} failed: Received status code 404 from {url}, expected 200."
            ),
        ),
        WriteError::Checksum => (
            "ImageChecksumError",
            500,
            "Error verifying image checksum",
            format!(
                "Image failed to verify against checksum. location: {id}; image ID: /tmp/{id}; image checksum: \
                 {wanted}; verification checksum: {}",
                wanted.chars().rev().collect::<String>()
            ),
        ),
        WriteError::DiskFull => (
            "ImageWriteError",
            500,
            "Error writing image to device",
            format!("Writing image {id} to device {DEVICE} failed: No space left on device"),
        ),
        WriteError::NoDevice => (
            "DeviceNotFound",
            404,
            "Error finding the disk or partition device to deploy the image onto",
            "No suitable device was found for deployment".to_owned(),
        ),
    };
    AgentError {
        kind,
        code,
        message,
        details,
    }
}

/// How the node boots: what it is told first, what the ramdisk booted in last.
fn is_uefi(node: &Value, ramdisk_is_uefi: bool) -> bool {
    let capability = |capabilities: &Value| match capabilities {
        Value::String(list) => list
            .split(',')
            .find_map(|item| item.strip_prefix("boot_mode:"))
            .map(str::to_owned),
        other => other["boot_mode"].as_str().map(str::to_owned),
    };
    let told = node["instance_info"]["deploy_boot_mode"]
        .as_str()
        .map(str::to_owned)
        .or_else(|| capability(&node["instance_info"]["capabilities"]))
        .or_else(|| capability(&node["properties"]["capabilities"]))
        .or_else(|| {
            node["driver_internal_info"]["deploy_boot_mode"]
                .as_str()
                .map(str::to_owned)
        });
    told.map_or(ramdisk_is_uefi, |mode| mode == "uefi")
}

/// An identifier as an MBR holds it: the same for the same image on the same machine (32-bit FNV-1a).
fn disk_identifier(mac: &str, image_id: &str) -> String {
    let hash = mac
        .bytes()
        .chain(image_id.bytes())
        .fold(0x811c_9dc5_u32, |hash, byte| {
            (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
        });
    format!("0x{hash:08x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_information_is_checked_as_the_agent_does() {
        let error = |image_info: Value| validate(&image_info, false).unwrap_err();
        assert_eq!(error(json!({})), "Image is missing 'id' field.");
        assert_eq!(error(json!({"id": "x"})), "Image is missing 'urls' field.");
        assert_eq!(
            error(json!({"id": "x", "urls": []})),
            "Image 'urls' must be a list with at least one element."
        );
        assert_eq!(error(json!({"id": "x", "urls": ["u"]})), NO_CHECKSUM);
        assert_eq!(
            error(json!({"id": "x", "urls": ["u"], "os_hash_algo": "sha256"})),
            "Image 'os_hash_value' must be a non-empty string."
        );
        let md5 = json!({"id": "x", "urls": ["u"], "checksum": "0".repeat(32)});
        assert_eq!(error(md5.clone()), NO_CHECKSUM);
        assert_eq!(validate(&md5, true), Ok(()));
        let sha = json!({"id": "x", "urls": ["u"], "os_hash_algo": "sha256", "os_hash_value": "1", "checksum": null});
        assert_eq!(validate(&sha, false), Ok(()));
    }

    #[test]
    fn the_boot_mode_comes_from_the_node_before_the_ramdisk() {
        assert!(is_uefi(&json!({}), true));
        assert!(!is_uefi(
            &json!({"properties": {"capabilities": "a:b,boot_mode:bios"}}),
            true
        ));
        assert!(is_uefi(
            &json!({"instance_info": {"capabilities": {"boot_mode": "uefi"}}}),
            false
        ));
        let both = json!({"instance_info": {"deploy_boot_mode": "bios"}, "properties": {"capabilities": "boot_mode:uefi"}});
        assert!(!is_uefi(&both, true));
    }
}
