//! What of a node's settings ends up in boot scripts and in a BMC's hands: kernel parameters and the addresses of kernels, ramdisks
//! and boot images. Nothing in them may begin a line, a command or a variable of its own, or lead to files of the conductor.
//!
//! Pure; applied to `driver_info` and `instance_info` before they are stored.

use serde_json::Value;
use uuid::Uuid;

use super::refused::Refused;
use super::state::Object;
use super::values::bad;

/// As long as a kernel's command line may be at least on every architecture.
const PARAMETERS_BYTES_MAX: usize = 2_048;
const URL_BYTES_MAX: usize = 2_048;

/// Besides letters and digits. No quotes, no line ends, nothing that is special to iPXE, GRUB or a shell: ; & | < > $ ` \ { } #
const IN_PARAMETERS: &str = " -_.,:/=+@%~[]()?*!^";
/// Besides letters and digits: what URLs are made of, without what is special to a boot script.
const IN_URLS: &str = "-._~:/?#[]@!&()*+,=%";

/// Keys whose values are addresses of things that are booted.
const BOOTED: &[&str] = &[
    "deploy_kernel",
    "deploy_ramdisk",
    "rescue_kernel",
    "rescue_ramdisk",
    "kernel",
    "ramdisk",
    "bootloader",
];
/// The same, handed to a BMC as virtual media.
const INSERTED: &[&str] = &["boot_iso", "deploy_iso", "rescue_iso"];

/// Addresses of images that a virtual drive can take.
pub const MEDIA_SCHEMES: &[&str] = &["http", "https", "nfs", "cifs"];

/// Checks what `object`, the value of the field `name`, says about booting; other fields than the two say nothing about it.
///
/// # Errors
/// [`Refused::BadValue`] naming the key.
pub fn check(name: &str, object: &Object) -> Result<(), Refused> {
    if !["driver_info", "instance_info"].contains(&name) {
        return Ok(());
    }
    for (key, value) in object {
        let problem = match key.as_str() {
            _ if value.is_null() => Ok(()),
            "kernel_append_params" => text(value).and_then(check_parameters),
            key if BOOTED.contains(&key) => {
                text(value).and_then(|text| check_image(text, &["http", "https"]))
            }
            key if INSERTED.contains(&key) => {
                text(value).and_then(|text| check_image(text, MEDIA_SCHEMES))
            }
            _ => Ok(()),
        };
        if let Err(problem) = problem {
            return Err(bad(&format!("{name}/{key}"), &problem));
        }
    }
    Ok(())
}

fn text(value: &Value) -> Result<&str, String> {
    value.as_str().ok_or_else(|| "must be a string".to_owned())
}

fn check_parameters(text: &str) -> Result<(), String> {
    if text.len() > PARAMETERS_BYTES_MAX {
        return Err(format!(
            "has {} bytes; a kernel takes {PARAMETERS_BYTES_MAX}",
            text.len()
        ));
    }
    match stranger(text, IN_PARAMETERS) {
        None => Ok(()),
        Some(stranger) => Err(format!(
            "contains {stranger:?}, which could mean something to a boot loader; kernel parameters are made of letters, digits, blanks and {}",
            IN_PARAMETERS.trim()
        )),
    }
}

/// An image is named by a URL, by the UUID an image service knows it by, or, where it was taken back, not at all.
fn check_image(text: &str, schemes: &[&str]) -> Result<(), String> {
    if text.is_empty() || Uuid::try_parse(text).is_ok() {
        return Ok(());
    }
    check_url(text, schemes)
}

/// Checks that `url` is the address of something on another host, by one of `schemes`.
///
/// # Errors
/// What is wrong with it, to be put behind its name; without the URL itself, which may hold a password.
pub fn check_url(url: &str, schemes: &[&str]) -> Result<(), String> {
    if url.len() > URL_BYTES_MAX {
        return Err(format!(
            "has {} bytes; at most {URL_BYTES_MAX} are allowed",
            url.len()
        ));
    }
    check_address(url, schemes)?;
    match stranger(url, IN_URLS) {
        None => Ok(()),
        Some(stranger) => Err(format!("contains {stranger:?}; write it percent-encoded")),
    }
}

/// The same for what no boot loader reads: any other characters may be in it.
///
/// # Errors
/// As [`check_url`].
pub fn check_address(url: &str, schemes: &[&str]) -> Result<(), String> {
    let listed = schemes.join(", ");
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err(format!("is not a URL of one of the schemes {listed}"));
    };
    if !schemes
        .iter()
        .any(|known| known.eq_ignore_ascii_case(scheme))
    {
        return Err(format!(
            "has a scheme that is not allowed; use one of {listed}"
        ));
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    if host.is_empty() || host.starts_with([':', '-']) {
        return Err("names no host".to_owned());
    }
    Ok(())
}

/// The first character that is neither a letter, nor a digit, nor one of `allowed`.
fn stranger(text: &str, allowed: &str) -> Option<char> {
    text.chars()
        .find(|c| !(c.is_ascii_alphanumeric() || allowed.contains(*c)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refused(key: &str, value: Value) -> bool {
        let object = json!({ key: value });
        match check("driver_info", object.as_object().unwrap()) {
            Ok(()) => false,
            Err(Refused::BadValue { field, .. }) => {
                assert_eq!(field, format!("driver_info/{key}"));
                true
            }
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_usual_kernel_parameters_are_taken() {
        for text in [
            "",
            "nofb vga=normal console=ttyS0,115200n8 systemd.journald.forward_to_console=yes",
            "%default% ip=[fe80::1]:::off root=/dev/sda1 sshkey=ssh-rsa+AAA/b== ipa-insecure=1",
        ] {
            assert!(!refused("kernel_append_params", json!(text)), "{text}");
        }
        assert!(!refused("kernel_append_params", Value::Null));
    }

    #[test]
    fn kernel_parameters_hold_nothing_a_boot_loader_could_read_as_its_own() {
        for text in [
            "a\nchain http://evil",
            "a\rb",
            "a\tb",
            "x; shell",
            "${net0/ip}",
            "$net0",
            "a=\"b\"",
            "a='b'",
            "a `b`",
            "a && shell",
            "a || shell",
            "a > b",
            "a \\",
            "a # b",
            "a\0b",
            "naïve",
            &"x".repeat(10_240),
        ] {
            assert!(refused("kernel_append_params", json!(text)), "{text:?}");
        }
        assert!(refused("kernel_append_params", json!(["a"])));
    }

    #[test]
    fn what_is_booted_comes_from_another_host() {
        for (key, value) in [
            ("deploy_kernel", "http://images.example/ipa.kernel"),
            (
                "deploy_ramdisk",
                "HTTPS://images.example:8443/ipa.initrd?v=1&x=%20",
            ),
            ("kernel", "6523b921-218d-4849-a3bb-3ab765c2fcdc"),
            ("ramdisk", ""),
            ("boot_iso", "nfs://10.0.0.1/share/boot.iso"),
            ("deploy_iso", "cifs://user:pass@10.0.0.1/share/boot.iso"),
            ("bootloader", "http://[fd00::1]/bootx64.efi"),
            ("something_else", "file:///etc/shadow"),
        ] {
            assert!(!refused(key, json!(value)), "{key} {value}");
        }
        for (key, value) in [
            ("deploy_kernel", json!("file:///etc/shadow")),
            ("deploy_kernel", json!("FILE://host/path")),
            ("deploy_kernel", json!("/httpboot/kernel")),
            ("deploy_kernel", json!("file:relative")),
            ("deploy_kernel", json!("nfs://10.0.0.1/kernel")),
            ("deploy_kernel", json!("http://h/k init=/bin/sh")),
            ("deploy_kernel", json!("http://h/k\nshell")),
            ("deploy_kernel", json!("http://h/${net0/ip}")),
            ("deploy_kernel", json!("http://h/k;shell")),
            ("deploy_kernel", json!("http://h/'k'")),
            ("deploy_kernel", json!("http:///k")),
            ("deploy_kernel", json!("http://-oProxy/k")),
            ("deploy_kernel", json!("http://user@/k")),
            ("deploy_kernel", json!(7)),
            ("ramdisk", json!("tftp://h/r")),
            ("rescue_ramdisk", json!("data:text/plain,x")),
            ("boot_iso", json!("file:///dev/zero")),
            ("boot_iso", json!("ftp://h/x.iso")),
            ("bootloader", json!("javascript://h/x")),
            ("boot_iso", json!(format!("http://h/{}", "x".repeat(2_048)))),
        ] {
            assert!(refused(key, value.clone()), "{key} {value}");
        }
    }
}
