//! Reads the config drive a request brings: passed on as it came, or built from its parts; never shown.

mod iso;

use std::io::Write as _;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Map, Value, json};

use super::error::Error;
use super::request::Request;
use crate::node::Node;
use crate::node::boot_options::check_address;

/// The config drive for the node called `ident` as text: a URL, or gzip in base64. Empty text means none.
///
/// # Errors
/// [`Error::Bad`], [`Error::TooNew`], and those of looking the node up; none quotes the value.
pub async fn read(request: &Request, ident: &str, value: Value) -> Result<Option<String>, Error> {
    match value {
        Value::String(text) if text.is_empty() => Ok(None),
        Value::String(text) => check(text).map(Some).map_err(Error::Bad),
        Value::Object(parts) => {
            request.need(56, "configdrive as an object")?;
            if parts.contains_key("vendor_data") {
                request.need(59, "vendor_data in configdrive")?;
            }
            let node = request.node(ident).await?;
            let files = files(&node, parts).map_err(Error::Bad)?;
            Ok(Some(STANDARD.encode(packed(&iso::image(&files)))))
        }
        _ => Err(Error::Bad(
            "configdrive: must be a string (gzip in base64, or a URL) or an object (meta_data, network_data, user_data, vendor_data).".to_owned(),
        )),
    }
}

/// The files of a config drive with these parts, in the order of their names.
///
/// # Errors
/// What is wrong.
fn files(node: &Node, parts: Map<String, Value>) -> Result<Vec<(&'static str, Vec<u8>)>, String> {
    let mut meta_data = Map::new();
    let mut rest = Vec::new();
    for (name, value) in parts {
        match (name.as_str(), value) {
            (_, Value::Null) => {}
            ("meta_data", Value::Object(given)) => meta_data = given,
            ("network_data", Value::Object(given)) => {
                rest.push((
                    "network_data.json",
                    Value::Object(given).to_string().into_bytes(),
                ));
            }
            ("user_data", Value::String(text)) if text.is_empty() => {}
            ("user_data", Value::String(text)) => rest.push(("user_data", text.into_bytes())),
            ("user_data", given @ (Value::Object(_) | Value::Array(_))) => {
                rest.push(("user_data", given.to_string().into_bytes()));
            }
            ("vendor_data", Value::Object(given)) => {
                rest.push((
                    "vendor_data2.json",
                    Value::Object(given).to_string().into_bytes(),
                ));
            }
            ("meta_data" | "network_data" | "vendor_data", _) => {
                return Err(format!("configdrive: {name} must be an object."));
            }
            ("user_data", _) => {
                return Err(
                    "configdrive: user_data must be a string, an object or a list.".to_owned(),
                );
            }
            _ => {
                return Err(format!(
                    "configdrive: {name:?} is no part of it; use meta_data, network_data, user_data and vendor_data."
                ));
            }
        }
    }
    // A system must know who it is.
    meta_data
        .entry("uuid")
        .or_insert_with(|| json!(node.id.to_string()));
    if let Some(name) = &node.attributes.name {
        meta_data.entry("name").or_insert_with(|| json!(name));
    }
    let mut files = vec![(
        "meta_data.json",
        Value::Object(meta_data).to_string().into_bytes(),
    )];
    files.extend(rest);
    files.sort_unstable_by_key(|(name, _)| *name);
    Ok(files)
}

fn packed(image: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    let written = packer.write_all(image).and_then(|()| packer.finish());
    written.expect("memory takes whatever is written to it")
}

fn check(text: String) -> Result<String, String> {
    if text.contains("://") {
        check_address(&text, &["http", "https"])
            .map_err(|problem| format!("configdrive: {problem}."))?;
        return match url::Url::parse(&text) {
            Ok(_) => Ok(text),
            Err(error) => Err(format!("configdrive: is no valid URL: {error}.")),
        };
    }
    let packed: String = text.split_ascii_whitespace().collect();
    match STANDARD.decode(&packed) {
        Ok(bytes) if bytes.starts_with(&[0x1f, 0x8b]) => Ok(packed),
        Ok(_) => Err("configdrive: is base64, but not of gzip data.".to_owned()),
        Err(_) => Err("configdrive: is neither base64 nor an http or https URL.".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use uuid::Uuid;

    use super::*;
    use crate::node::{NodeId, attributes};
    use crate::timestamp::Timestamp;

    fn a_node() -> Node {
        let document = json!({"driver": "fake-hardware", "name": "first"});
        let new = attributes::parse_new(document.as_object().unwrap(), 110).unwrap();
        Node::enrolled(NodeId(Uuid::nil()), new.attributes, Timestamp(0))
    }

    fn built(parts: Value) -> Result<Vec<(&'static str, String)>, String> {
        let Value::Object(parts) = parts else {
            unreachable!("the tests give objects");
        };
        let files = files(&a_node(), parts)?;
        let text = |(name, content)| (name, String::from_utf8(content).unwrap());
        Ok(files.into_iter().map(text).collect())
    }

    #[test]
    fn parts_become_files_and_a_system_learns_who_it_is() {
        let nobody = json!({"name": "first", "uuid": Uuid::nil()}).to_string();
        assert_eq!(
            built(json!({})).unwrap(),
            [("meta_data.json", nobody.clone())]
        );
        let parts = json!({
            "meta_data": null, "user_data": {"packages": ["vim"]}, "network_data": {"links": []}, "vendor_data": {"a": 1},
        });
        assert_eq!(
            built(parts).unwrap(),
            [
                ("meta_data.json", nobody),
                ("network_data.json", r#"{"links":[]}"#.to_owned()),
                ("user_data", r#"{"packages":["vim"]}"#.to_owned()),
                ("vendor_data2.json", r#"{"a":1}"#.to_owned()),
            ]
        );
        let own =
            built(json!({"meta_data": {"uuid": "mine", "name": "me"}, "user_data": "#!/bin/sh"}));
        let own = own.unwrap();
        assert_eq!(own[0].1, r#"{"name":"me","uuid":"mine"}"#);
        assert_eq!(own[1], ("user_data", "#!/bin/sh".to_owned()));
    }

    /// One byte more, and some programs no longer find the parts of a mail.
    #[test]
    fn what_a_user_writes_is_not_touched() {
        for text in [
            "#!/bin/sh\r\necho a\r\n",
            "Content-Type: multipart/mixed; boundary=\"b\"\n\n--b\n\n--b--\n",
            "no end of line",
            "\n\n  ä…\t\u{0}\n\n",
            "H4sIAAAAAAAAA0vOSM3JyQcAc1JQkAUAAAA=",
        ] {
            let files = built(json!({"user_data": text})).unwrap();
            assert_eq!(files[1], ("user_data", text.to_owned()));
            let image = iso::image(&[("user_data", text.as_bytes().to_vec())]);
            let files = iso::tests::read(&image);
            assert_eq!(files["/openstack/latest/user_data"], text.as_bytes());
        }
    }

    #[test]
    fn what_is_no_part_of_a_drive_is_refused_without_quoting_it() {
        for parts in [
            json!({"meta_data": "s3cret"}),
            json!({"user_data": 7}),
            json!({"network_data": ["s3cret"]}),
            json!({"files": {"s3cret": 1}}),
        ] {
            let problem = built(parts).unwrap_err();
            assert!(problem.starts_with("configdrive:"), "{problem}");
            assert!(!problem.contains("s3cret"), "{problem}");
        }
    }

    #[test]
    fn a_drive_is_packed_so_that_the_agent_can_unpack_it() {
        let image = iso::image(&[("user_data", b"hello".to_vec())]);
        let packed = packed(&image);
        assert!(packed.len() < 1_000, "it is mostly nothing");
        assert!(check(STANDARD.encode(&packed)).is_ok());
        let mut unpacked = Vec::new();
        flate2::read::GzDecoder::new(&packed[..])
            .read_to_end(&mut unpacked)
            .unwrap();
        let files = iso::tests::read(&unpacked);
        assert_eq!(files["/openstack/latest/user_data"], b"hello");
    }

    #[test]
    fn a_drive_is_packed_text_or_a_url() {
        let packed = STANDARD.encode([0x1f, 0x8b, 8, 0, 1, 2, 3]);
        assert_eq!(check(packed.clone()), Ok(packed.clone()));
        assert_eq!(
            check(format!("{}\n{}", &packed[..4], &packed[4..])),
            Ok(packed)
        );
        assert!(check("https://drives.example/1".to_owned()).is_ok());
        for wrong in ["http://", "file:///etc/passwd", "not base64!", "aGVsbG8="] {
            let problem = check(wrong.to_owned()).unwrap_err();
            assert!(problem.starts_with("configdrive:"), "{problem}");
        }
    }
}
