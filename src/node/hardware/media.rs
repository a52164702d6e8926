//! Virtual media: images that a BMC shows to its machine as a drive. Data and pure rules.

use crate::node::boot_options::{MEDIA_SCHEMES, check_url};
use crate::node::refused::Refused;
use crate::node::values::bad;

use super::recorded::Media;

/// The drives of a fake machine: the `device_type` of the API, and the types of media a BMC says each takes.
pub const DRIVES: &[(&str, &[&str])] = &[
    ("cdrom", &["CD", "DVD"]),
    ("disk", &["USBStick"]),
    ("floppy", &["Floppy"]),
];

/// How an image can get to the machine.
const DOWNLOAD_SOURCES: &[&str] = &["http", "local", "swift"];

/// Whether there is such a drive.
///
/// # Errors
/// [`Refused::BadValue`] naming those there are.
pub fn check_drive(field: &str, device_type: &str) -> Result<(), Refused> {
    if DRIVES.iter().any(|(name, _)| *name == device_type) {
        return Ok(());
    }
    let known: Vec<&str> = DRIVES.iter().map(|(name, _)| *name).collect();
    Err(bad(
        field,
        &format!("{device_type:?} is not known; use {}", known.join(", ")),
    ))
}

/// Whether these media can be put into a drive.
///
/// # Errors
/// [`Refused::BadValue`] naming the argument.
pub fn check_media(media: &Media) -> Result<(), Refused> {
    check_url(&media.image_url, MEDIA_SCHEMES).map_err(|problem| bad("image_url", &problem))?;
    match &media.download_source {
        Some(source) if !DOWNLOAD_SOURCES.contains(&source.as_str()) => Err(bad(
            "image_download_source",
            &format!(
                "{source:?} is not known; use {}",
                DOWNLOAD_SOURCES.join(", ")
            ),
        )),
        _ => Ok(()),
    }
}
