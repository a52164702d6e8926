//! `GET /v1/nodes/{node}/validate`: what stands against using each interface of a node.

use serde_json::{Value, json};

use super::error::Error;
use super::reply::{Document, Reply};
use super::request::Request;
use crate::node::traits::check_instance_traits;
use crate::node::{Node, image};

const KINDS: [&str; 12] = [
    "boot",
    "deploy",
    "management",
    "network",
    "power",
    "bios",
    "console",
    "firmware",
    "inspect",
    "raid",
    "rescue",
    "storage",
];

/// `GET /v1/nodes/{node}/validate`
pub async fn show(request: &Request, ident: &str) -> Result<Reply, Error> {
    request.query_arguments()?.finish()?;
    let node = request.node(ident).await?;
    Ok(Reply::body(&report(&node)))
}

fn report(node: &Node) -> Document {
    let attributes = &node.attributes;
    let mut problems = image::problems(attributes);
    if let Err(why) = check_instance_traits(node) {
        problems.push(why.to_string());
    }
    let mut document = Document::default();
    for kind in KINDS {
        let implementation = attributes.interfaces.get(kind).map_or("", String::as_str);
        let result: Value = if implementation.is_empty() || implementation.starts_with("no-") {
            json!({"result": null, "reason": format!("not supported ({implementation})")})
        } else if matches!(kind, "boot" | "deploy") && !problems.is_empty() {
            json!({"result": false, "reason": problems.join("; ")})
        } else {
            json!({"result": true})
        };
        document.put(kind, result);
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::attributes::parse_new;
    use crate::timestamp::Timestamp;

    fn of(instance_info: Value) -> Value {
        let document = json!({"driver": "fake-hardware", "instance_info": instance_info});
        let new = parse_new(document.as_object().unwrap(), 110).unwrap();
        let node = Node::enrolled(Default::default(), new.attributes, Timestamp(0));
        serde_json::to_value(report(&node)).unwrap()
    }

    #[test]
    fn a_node_without_an_image_says_what_is_missing() {
        let report = of(json!({}));
        assert_eq!(report["deploy"]["result"], false);
        assert!(
            report["deploy"]["reason"]
                .as_str()
                .unwrap()
                .contains("image_source")
        );
        assert_eq!(report["power"], json!({"result": true}));
        assert_eq!(report["rescue"], json!({"result": true}));
        assert_eq!(report.as_object().unwrap().len(), 12);
    }

    #[test]
    fn a_node_with_an_image_can_be_deployed() {
        let report = of(json!({
            "image_source": "http://images.example/i.raw", "image_os_hash_algo": "sha256",
            "image_os_hash_value": "a".repeat(64),
        }));
        assert_eq!(report["deploy"], json!({"result": true}));
        assert_eq!(report["boot"], json!({"result": true}));
    }

    #[test]
    fn traits_and_capabilities_that_stand_against_a_deploy_are_said() {
        for (key, value) in [
            ("traits", json!("CUSTOM_A")),
            ("traits", json!(["CUSTOM_MISSING"])),
            ("traits", json!([1])),
            ("capabilities", json!("boot_mode")),
        ] {
            let mut info = json!({
                "image_source": "http://images.example/i.raw", "image_os_hash_algo": "sha256",
                "image_os_hash_value": "a".repeat(64),
            });
            info[key] = value;
            let report = of(info);
            assert_eq!(report["deploy"]["result"], false);
            let reason = report["deploy"]["reason"].as_str().unwrap();
            assert!(reason.contains(key), "{reason}");
        }
    }
}
