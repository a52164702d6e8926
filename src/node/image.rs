//! What is to be written: reads a node's `instance_info` and says what is wrong with it, all at once.

use serde_json::Value;

use crate::node::boot_options::check_address;
use crate::node::hardware::uses;
use crate::node::limits::BootMode;
use crate::node::masking::without_credentials;
use crate::node::state::{Attributes, Object};

/// A whole-disk image, as the agent is told about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Image {
    /// The last part of its address: the agent's name for it.
    pub id: String,
    /// Where the agent gets it.
    pub url: String,
    /// `raw`, `qcow2`, ...; none leaves it to the agent.
    pub disk_format: Option<String>,
    /// A checksum, or the URL of a checksum file (`image_checksum`).
    pub checksum: Option<String>,
    /// `sha256`, `sha512`, ... with its value, which may be a URL.
    pub os_hash: Option<(String, String)>,
}

/// Reads the image of a node.
///
/// # Errors
/// Everything that is wrong, one sentence each, naming the field and what would be right.
pub fn image_of(attributes: &Attributes) -> Result<Image, Vec<String>> {
    let info = &attributes.instance_info;
    let mut problems = Vec::new();
    let url = text(info, "image_source", &mut problems);
    let checksum = text(info, "image_checksum", &mut problems);
    let algorithm = text(info, "image_os_hash_algo", &mut problems);
    let value = text(info, "image_os_hash_value", &mut problems);
    let disk_format = text(info, "image_disk_format", &mut problems);
    let image_type = text(info, "image_type", &mut problems);

    if url.is_none() && !is_set(info, "image_source") {
        problems.push("instance_info/image_source is missing; set it to the http or https URL of a whole-disk image".to_owned());
    }
    if let Some(url) = &url
        && let Err(problem) = check_address(url, &["http", "https"])
    {
        problems.push(format!(
            "instance_info/image_source {:?} is not an http or https URL of an image: it {problem}",
            without_credentials(url)
        ));
    }
    if algorithm.is_some() != value.is_some() {
        problems.push(
            "instance_info needs both image_os_hash_algo and image_os_hash_value, or neither"
                .to_owned(),
        );
    }
    if checksum.is_none() && value.is_none() && algorithm.is_none() {
        problems.push("instance_info has no checksum of the image; set image_os_hash_algo (sha256 or sha512) and image_os_hash_value, or image_checksum".to_owned());
    }
    match (algorithm.as_deref(), value.as_deref()) {
        (Some("sha256"), Some(value)) => check_hex("image_os_hash_value", value, 64, &mut problems),
        (Some("sha512"), Some(value)) => {
            check_hex("image_os_hash_value", value, 128, &mut problems)
        }
        (Some(other), _) if other != "sha256" && other != "sha512" => problems.push(format!(
            "instance_info/image_os_hash_algo {other:?} is not supported; use sha256 or sha512"
        )),
        _ => {}
    }
    if let Some(sum) = &checksum
        && !is_url(sum)
        && !((sum.len() == 64 || sum.len() == 128) && is_hex(sum))
    {
        problems.push("instance_info/image_checksum is neither a sha256 (64 hexadecimal digits), nor a sha512 (128), nor an http(s) URL of a checksum file".to_owned());
    }
    if let Some(kind) = &image_type
        && kind != "whole-disk"
    {
        problems.push(format!(
            "instance_info/image_type {kind:?} is not supported; only whole-disk images are"
        ));
    }
    if ["kernel", "ramdisk"]
        .iter()
        .any(|key| info.contains_key(*key))
    {
        problems.push("instance_info names a kernel or ramdisk, as partition images do; only whole-disk images are supported".to_owned());
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let url = url.unwrap_or_default();
    Ok(Image {
        id: last_segment(&url),
        url,
        disk_format,
        checksum,
        os_hash: algorithm.zip(value),
    })
}

/// The host that gives the image out, with its port: all machines that read from it have the same.
pub fn image_host(attributes: &Attributes) -> Option<String> {
    let url = attributes.instance_info.get("image_source")?.as_str()?;
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?.trim_end_matches(':');
    let host = host.to_ascii_lowercase();
    // What stands in brackets has colons of its own.
    let has_port = host
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.bytes().all(|digit| digit.is_ascii_digit()));
    let port = match scheme.to_ascii_lowercase().as_str() {
        "http" => 80,
        "https" => 443,
        _ => return None,
    };
    match (host.is_empty(), has_port) {
        (true, _) => None,
        (false, true) => Some(host),
        (false, false) => Some(format!("{host}:{port}")),
    }
}

fn is_set(info: &Object, key: &str) -> bool {
    info.get(key).is_some_and(|value| !value.is_null())
}

/// Everything that stands against deploying a node with these attributes; empty when nothing does.
pub fn problems(attributes: &Attributes) -> Vec<String> {
    if is_ramdisk(attributes) {
        return ramdisk_problems(attributes);
    }
    // What a custom agent writes, if anything, its own steps say.
    let needs_no_image = uses(attributes, "deploy", "custom-agent")
        && !is_set(&attributes.instance_info, "image_source");
    let mut problems = match image_of(attributes) {
        Err(problems) if !needs_no_image => problems,
        _ => Vec::new(),
    };
    if let Err(problem) = stated_boot_mode(attributes) {
        problems.push(problem);
    }
    problems.extend(config_drive_problem(&attributes.instance_info));
    problems
}

/// What is wrong with a config drive that was set as a field, without quoting it; the one that comes with the verb is read where it comes.
fn config_drive_problem(info: &Object) -> Option<String> {
    let is_packed = |text: &str| {
        text.bytes().all(|byte| {
            byte.is_ascii_alphanumeric() || b"+/=".contains(&byte) || byte.is_ascii_whitespace()
        })
    };
    match info.get("configdrive") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) if text.starts_with("http://") || text.starts_with("https://") => None,
        Some(Value::String(text)) if is_packed(text) => None,
        Some(_) => Some(
            "instance_info/configdrive must be text: gzip in base64, or an http or https URL; give an object with the provision request instead"
                .to_owned(),
        ),
    }
}

/// True if a deploy only boots a ramdisk or an ISO, which then is what the machine is used with: nothing is written, and no agent comes.
pub fn is_ramdisk(attributes: &Attributes) -> bool {
    uses(attributes, "deploy", "ramdisk")
}

fn ramdisk_problems(attributes: &Attributes) -> Vec<String> {
    let has = |key: &str| {
        let value = attributes.instance_info.get(key);
        value
            .and_then(Value::as_str)
            .is_some_and(|text| !text.is_empty())
    };
    if has("boot_iso") || has("kernel") && has("ramdisk") {
        return Vec::new();
    }
    vec!["instance_info has nothing to boot; set boot_iso to the URL of an ISO, or both kernel and ramdisk".to_owned()]
}

/// How the node is to boot: `instance_info/deploy_boot_mode`, else the capability `boot_mode`, else `default`.
pub fn boot_mode(attributes: &Attributes, default: BootMode) -> BootMode {
    stated_boot_mode(attributes)
        .ok()
        .flatten()
        .unwrap_or(default)
}

fn stated_boot_mode(attributes: &Attributes) -> Result<Option<BootMode>, String> {
    let of_instance = attributes
        .instance_info
        .get("deploy_boot_mode")
        .and_then(Value::as_str);
    let wanted = instance_capabilities(&attributes.instance_info)?;
    if let Some(word) = of_instance {
        return BootMode::parse(word).map(Some).ok_or_else(|| {
            format!("instance_info/deploy_boot_mode {word:?} is neither bios nor uefi")
        });
    }
    if let Some(mode) = mode_among(&wanted, "instance_info")? {
        return Ok(Some(mode));
    }
    let capabilities = attributes
        .properties
        .get("capabilities")
        .and_then(Value::as_str)
        .unwrap_or_default();
    mode_among(
        &pairs(capabilities).flatten().collect::<Vec<_>>(),
        "properties",
    )
}

/// What the capabilities that stand in `field` say of how to boot.
fn mode_among(capabilities: &[Capability], field: &str) -> Result<Option<BootMode>, String> {
    for (key, word) in capabilities {
        match key.as_str() {
            "boot_mode" => {
                return BootMode::parse(word).map(Some).ok_or_else(|| {
                    format!("the capability boot_mode:{word} in {field} is neither bios nor uefi")
                });
            }
            "secure_boot" if word.eq_ignore_ascii_case("true") => return Ok(Some(BootMode::Uefi)),
            _ => {}
        }
    }
    Ok(None)
}

/// A key and its word.
type Capability = (String, String);

/// The capabilities an instance asks for: an object, the text of one, or pairs such as `boot_mode:uefi,secure_boot:true`.
fn instance_capabilities(info: &Object) -> Result<Vec<Capability>, String> {
    let problem = || {
        "instance_info/capabilities is neither an object of words nor pairs such as \"boot_mode:uefi,secure_boot:true\"".to_owned()
    };
    let object = match info.get("capabilities") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::String(text)) if text.trim_start().starts_with('{') => {
            serde_json::from_str(text).map_err(|_| problem())?
        }
        Some(Value::String(text)) => return pairs(text).collect::<Option<_>>().ok_or_else(problem),
        Some(Value::Object(object)) => object.clone(),
        Some(_) => return Err(problem()),
    };
    let capability = |(key, value): (String, Value)| match value {
        Value::String(word) => Some((key, word)),
        Value::Bool(_) | Value::Number(_) => Some((key, value.to_string())),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    let all = object.into_iter().map(capability);
    all.collect::<Option<_>>().ok_or_else(problem)
}

/// What stands between the commas; none for what is no pair.
fn pairs(text: &str) -> impl Iterator<Item = Option<Capability>> {
    let parts = text.split(',').filter(|part| !part.trim().is_empty());
    parts.map(|part| {
        let (key, word) = part.split_once(':')?;
        Some((key.trim().to_owned(), word.trim().to_owned()))
    })
}

fn text(info: &Object, key: &str, problems: &mut Vec<String>) -> Option<String> {
    match info.get(key) {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) if !text.is_empty() => Some(text.clone()),
        Some(_) => {
            problems.push(format!("instance_info/{key} must be a non-empty string"));
            None
        }
    }
}

fn check_hex(key: &str, value: &str, digits: usize, problems: &mut Vec<String>) {
    if !(is_url(value) || value.len() == digits && is_hex(value)) {
        problems.push(format!(
            "instance_info/{key} must be {digits} hexadecimal digits or an http(s) URL; it has {} characters",
            value.chars().count()
        ));
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_url(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

fn last_segment(url: &str) -> String {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    let last = path.rsplit('/').find(|part| !part.is_empty());
    last.unwrap_or("image").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn attributes(instance_info: Value) -> Attributes {
        Attributes {
            instance_info: instance_info.as_object().unwrap().clone(),
            ..Attributes::default()
        }
    }

    fn good() -> Value {
        json!({
            "image_source": "http://images.example/cloud.qcow2?x=/1",
            "image_os_hash_algo": "sha256",
            "image_os_hash_value": "a".repeat(64),
            "image_disk_format": "qcow2",
        })
    }

    #[test]
    fn a_good_image_is_read_whole() {
        let image = image_of(&attributes(good())).unwrap();
        assert_eq!(image.id, "cloud.qcow2");
        assert_eq!(image.os_hash, Some(("sha256".to_owned(), "a".repeat(64))));
    }

    #[test]
    fn every_fault_is_named() {
        let cases = [
            (json!({"image_source": null}), "checksum"),
            (json!({"image_source": "file:///x"}), "image_source"),
            (json!({"image_source": 7}), "image_source"),
            (json!({"image_os_hash_value": null}), "both"),
            (json!({"image_os_hash_value": "abc"}), "64"),
            (json!({"image_os_hash_algo": "md5"}), "sha256"),
            (json!({"image_checksum": "abc"}), "image_checksum"),
            (json!({"image_type": "partition"}), "whole-disk"),
            (json!({"kernel": "k"}), "partition"),
            (json!({"deploy_boot_mode": "floppy"}), "deploy_boot_mode"),
        ];
        for (change, word) in cases {
            let mut info = good();
            for (key, value) in change.as_object().unwrap() {
                info[key] = value.clone();
            }
            if change == json!({"image_source": null}) {
                info["image_os_hash_algo"] = Value::Null;
                info["image_os_hash_value"] = Value::Null;
            }
            let found = problems(&attributes(info)).join("; ");
            assert!(found.contains(word), "{change}: {found}");
        }
        assert!(
            problems(&attributes(json!({})))
                .join(";")
                .contains("image_source is missing")
        );
    }

    #[test]
    fn machines_that_read_from_the_same_host_have_the_same_name_for_it() {
        for (url, host) in [
            (
                "http://Images.example/a.raw?x=/1",
                Some("images.example:80"),
            ),
            ("http://images.example:80/b.raw", Some("images.example:80")),
            ("https://images.example#x", Some("images.example:443")),
            (
                "HTTP://user:pass@images.example:8080",
                Some("images.example:8080"),
            ),
            ("http://[2001:db8::1]/a", Some("[2001:db8::1]:80")),
            ("http://[2001:db8::1]:81/a", Some("[2001:db8::1]:81")),
            ("http://images.example:/a", Some("images.example:80")),
            ("http:///a", None),
            ("file:///a", None),
            ("a.raw", None),
        ] {
            let of = attributes(json!({"image_source": url}));
            assert_eq!(image_host(&of).as_deref(), host, "{url}");
        }
        assert_eq!(image_host(&attributes(json!({}))), None);
    }

    #[test]
    fn checksums_may_be_urls() {
        let mut info = good();
        info["image_os_hash_value"] = json!("https://images.example/SHA256SUMS");
        info["image_checksum"] = json!("http://images.example/SHA256SUMS");
        assert_eq!(problems(&attributes(info)), Vec::<String>::new());
    }

    #[test]
    fn the_boot_mode_comes_from_the_instance_then_the_capabilities_then_the_default() {
        let mut of = attributes(good());
        assert_eq!(boot_mode(&of, BootMode::Bios), BootMode::Bios);
        of.properties
            .insert("capabilities".into(), json!("a:b, boot_mode:uefi"));
        assert_eq!(boot_mode(&of, BootMode::Bios), BootMode::Uefi);
        of.instance_info
            .insert("deploy_boot_mode".into(), json!("bios"));
        assert_eq!(boot_mode(&of, BootMode::Uefi), BootMode::Bios);
    }

    #[test]
    fn an_instance_tells_its_capabilities_in_any_of_three_forms() {
        for capabilities in [
            json!("disk_label:gpt, boot_mode:uefi"),
            json!(r#"{"disk_label": "gpt", "boot_mode": "uefi"}"#),
            json!({"disk_label": "gpt", "boot_mode": "uefi"}),
            json!("secure_boot:True"),
            json!({"secure_boot": true}),
        ] {
            let mut of = attributes(good());
            of.properties
                .insert("capabilities".into(), json!("boot_mode:bios"));
            of.instance_info
                .insert("capabilities".into(), capabilities.clone());
            assert_eq!(problems(&of), Vec::<String>::new(), "{capabilities}");
            assert_eq!(
                boot_mode(&of, BootMode::Bios),
                BootMode::Uefi,
                "{capabilities}"
            );
        }
        for capabilities in [
            json!("boot_mode"),
            json!("{boot_mode: uefi}"),
            json!("{\"a\": ".repeat(10_000)),
            json!(["boot_mode:uefi"]),
            json!({"boot_mode": ["uefi"]}),
            json!({"boot_mode": "floppy"}),
            json!(7),
        ] {
            let mut info = good();
            info["capabilities"] = capabilities.clone();
            let found = problems(&attributes(info)).join("; ");
            assert!(found.contains("instance_info"), "{capabilities}: {found}");
        }
    }
}
