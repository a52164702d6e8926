//! What is to be written, read from `instance_info`, and how the machine is to boot from it.

use serde_json::{Value, json};

use super::super::image::{boot_mode, image_of, problems};
use super::*;

const HEX: &str = "0123456789abcdefABCDEF0123456789";

/// A good image, changed by `change`; null takes a field away.
fn attributes(change: Value) -> Attributes {
    let mut info = json!({
        "image_source": "https://images.example/a/b.raw",
        "image_os_hash_algo": "sha256",
        "image_os_hash_value": HEX.repeat(2),
    });
    for (key, value) in change.as_object().unwrap() {
        match value {
            Value::Null => {
                info.as_object_mut().unwrap().remove(key);
            }
            _ => info[key] = value.clone(),
        }
    }
    Attributes {
        instance_info: info.as_object().unwrap().clone(),
        ..Attributes::default()
    }
}

#[test]
fn every_way_to_name_an_image_is_taken() {
    for good in [
        json!({}),
        json!({"image_source": "http://images.example/b.raw"}),
        json!({"image_os_hash_algo": "sha512", "image_os_hash_value": HEX.repeat(4)}),
        json!({"image_os_hash_algo": "sha512", "image_os_hash_value": "http://i/SHA512SUMS"}),
        json!({"image_os_hash_algo": null, "image_os_hash_value": null, "image_checksum": HEX.repeat(2)}),
        json!({"image_os_hash_algo": null, "image_os_hash_value": null, "image_checksum": HEX.repeat(4)}),
        json!({"image_checksum": "https://i/SUMS"}),
        json!({"image_type": "whole-disk", "image_disk_format": "raw"}),
    ] {
        assert_eq!(
            problems(&attributes(good.clone())),
            Vec::<String>::new(),
            "{good}"
        );
    }
}

#[test]
fn each_fault_is_named_alone() {
    let value = |value: &str| json!({"image_os_hash_value": value});
    for (bad, text) in [
        (json!({"image_source": null}), "image_source is missing"),
        (
            json!({"image_source": "ftp://i/x"}),
            "not an http or https URL",
        ),
        (
            json!({"image_source": "https:/i"}),
            "not an http or https URL",
        ),
        (
            json!({"image_source": ""}),
            "image_source must be a non-empty string",
        ),
        (
            json!({"image_source": 7}),
            "image_source must be a non-empty string",
        ),
        (json!({"image_os_hash_value": null}), "needs both"),
        (json!({"image_os_hash_algo": null}), "needs both"),
        (
            json!({"image_os_hash_algo": null, "image_os_hash_value": null}),
            "no checksum",
        ),
        (value(&HEX.repeat(4)), "must be 64 hexadecimal digits"),
        (value(&"x".repeat(64)), "must be 64 hexadecimal digits"),
        (value(&"a".repeat(63)), "it has 63 characters"),
        (
            json!({"image_os_hash_algo": "sha512", "image_os_hash_value": "a".repeat(64)}),
            "must be 128 hexadecimal digits",
        ),
        (json!({"image_os_hash_algo": "md5"}), "use sha256 or sha512"),
        (
            json!({"image_checksum": "a".repeat(32)}),
            "image_checksum is neither",
        ),
        (
            json!({"image_checksum": "x".repeat(64)}),
            "image_checksum is neither",
        ),
        (
            json!({"image_checksum": "x".repeat(128)}),
            "image_checksum is neither",
        ),
        (
            json!({"image_type": "partition"}),
            "only whole-disk images are",
        ),
        (json!({"kernel": "k"}), "kernel or ramdisk"),
        (json!({"ramdisk": "r"}), "kernel or ramdisk"),
        (
            json!({"deploy_boot_mode": "floppy"}),
            "neither bios nor uefi",
        ),
    ] {
        let found = problems(&attributes(bad.clone()));
        assert!(
            matches!(&found[..], [one] if one.contains(text)),
            "{bad}: {found:?}"
        );
    }
}

#[test]
fn an_image_is_called_by_the_last_part_of_its_address() {
    for (url, id) in [
        ("http://i/a/b.raw", "b.raw"),
        ("http://i/a/b.raw/", "b.raw"),
        ("http://i/a/b.raw?x=/y#z", "b.raw"),
    ] {
        let image = image_of(&attributes(json!({"image_source": url}))).unwrap();
        assert_eq!((image.id.as_str(), image.url.as_str()), (id, url));
        assert_eq!((image.checksum, image.disk_format), (None, None));
    }
}

#[test]
fn the_boot_mode_is_read_from_the_first_place_that_says_it() {
    for (of_instance, capabilities, mode) in [
        (Value::Null, Value::Null, BootMode::Bios),
        (Value::Null, json!("a:b,c"), BootMode::Bios),
        (Value::Null, json!("boot_mode:uefi"), BootMode::Uefi),
        (Value::Null, json!(" secure_boot : True "), BootMode::Uefi),
        (Value::Null, json!("secure_boot:false"), BootMode::Bios),
        (
            Value::Null,
            json!("a:b, boot_mode: bios, secure_boot:true"),
            BootMode::Bios,
        ),
        (json!("bios"), json!("boot_mode:uefi"), BootMode::Bios),
        (json!("uefi"), Value::Null, BootMode::Uefi),
    ] {
        let mut of = attributes(json!({"deploy_boot_mode": of_instance}));
        of.properties
            .insert("capabilities".to_owned(), capabilities);
        assert_eq!(boot_mode(&of, BootMode::Bios), mode, "{of:?}");
    }
    let mut of = attributes(json!({}));
    of.properties
        .insert("capabilities".to_owned(), json!("boot_mode:floppy"));
    assert!(problems(&of)[0].contains("boot_mode:floppy"));
}
