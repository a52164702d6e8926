//! Addresses of BMCs: by them a machine is told whose NICs nobody entered.

use std::net::IpAddr;

use serde_json::Value;

use crate::node::state::{Node, Object};

/// The addresses a document says its machine's BMC has, without those that are none: agents send zeros for a BMC without a network.
pub fn addresses_in(data: &Object) -> Vec<IpAddr> {
    let inventory = data.get("inventory").unwrap_or(&Value::Null);
    let texts = ["bmc_address", "bmc_v6address"].map(|key| inventory[key].as_str());
    // With the length of the network, as the BMC tells it.
    let plain = texts.into_iter().flatten().map(|text| {
        let end = text.find(['/', '%']).unwrap_or(text.len());
        text.split_at(end).0
    });
    plain
        .filter_map(|text| text.trim().parse::<IpAddr>().ok())
        .filter(|ip| !ip.is_unspecified() && !ip.is_loopback())
        .collect()
}

/// Whether the node's BMC is at one of these addresses: `redfish_address`, `ipmi_address`, ... of its driver_info.
pub fn is_at(node: &Node, addresses: &[IpAddr]) -> bool {
    let mut fields = node.attributes.driver_info.iter();
    fields.any(|(key, value)| {
        let host = value.as_str().and_then(host);
        key.ends_with("_address") && host.is_some_and(|host| addresses.contains(&host))
    })
}

/// The address in a URL, or alone.
fn host(text: &str) -> Option<IpAddr> {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let authority = rest.split('/').next()?;
    let host = authority.rsplit('@').next()?;
    if let Some(bracketed) = host.strip_prefix('[') {
        return bracketed.split(']').next()?.parse().ok();
    }
    let alone = host.parse().ok();
    alone.or_else(|| host.split(':').next()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_host_is_read_out_of_every_form_of_address() {
        for (text, ip) in [
            ("192.0.2.7", "192.0.2.7"),
            ("192.0.2.7:8443", "192.0.2.7"),
            ("https://192.0.2.7:8443/redfish/v1", "192.0.2.7"),
            ("https://admin:x@192.0.2.7", "192.0.2.7"),
            ("https://[2001:db8::1]", "2001:db8::1"),
            ("[2001:db8::1]:443", "2001:db8::1"),
            ("2001:db8::1", "2001:db8::1"),
        ] {
            assert_eq!(host(text), ip.parse().ok(), "{text}");
        }
        for text in ["", "bmc.example", "https://", "https://[", "[x", ":", "@"] {
            assert_eq!(host(text), None, "{text}");
        }
    }

    #[test]
    fn addresses_of_no_use_are_left_out() {
        for (v4, v6, found) in [
            (json!(null), json!("2001:db8::1/64"), vec!["2001:db8::1"]),
            (json!("192.0.2.7"), json!("::"), vec!["192.0.2.7"]),
            (json!(""), json!(null), vec![]),
            (json!("0.0.0.0"), json!("::/0"), vec![]),
            (json!("127.0.0.1"), json!(5), vec![]),
        ] {
            let data = json!({"inventory": {"bmc_address": v4, "bmc_v6address": v6}});
            let texts: Vec<String> = addresses_in(data.as_object().unwrap())
                .iter()
                .map(IpAddr::to_string)
                .collect();
            assert_eq!(texts, found);
        }
    }
}
