//! Hooks `parse-lldp` and `local-link-connection`: what switches say of themselves.
//!
//! The agent sends the TLVs of each NIC's LLDP frames as pairs of a type and a value in hexadecimal (IEEE 802.1AB; `lldp` of the
//! interface, or `lldp_raw` of the document with the interfaces' names). They come from the network: a TLV that makes no sense is
//! passed over.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::Inspected;
use crate::node::state::Object;

/// More NICs than any machine has that hear switches.
const INTERFACES_MAX: usize = 64;
/// A frame has no room for more.
const TLVS_MAX: usize = 128;
/// What the nine bits of the length can say.
const TLV_BYTES_MAX: usize = 511;

const CHASSIS_ID: u64 = 1;
const PORT_ID: u64 = 2;
const PORT_DESCRIPTION: u64 = 4;
const SYSTEM_NAME: u64 = 5;
const SYSTEM_DESCRIPTION: u64 = 6;
const MANAGEMENT_ADDRESS: u64 = 8;
const ORGANIZATION: u64 = 127;

/// Organization and subtype of the TLVs of 802.1 and 802.3 that are read.
const PORT_VLAN: [u8; 4] = [0x00, 0x80, 0xc2, 1];
const VLAN_NAME: [u8; 4] = [0x00, 0x80, 0xc2, 3];
const FRAME_SIZE: [u8; 4] = [0x00, 0x12, 0x0f, 4];

/// One type with its value.
struct Tlv {
    kind: u64,
    bytes: Vec<u8>,
}

/// Keeps what the switches say as `parsed_lldp` in the plugin data.
pub(super) fn parse(inspected: &mut Inspected<'_>) {
    let mut parsed = Object::new();
    for interface in inspected.interfaces.iter().take(INTERFACES_MAX) {
        let tlvs = tlvs(&interface.name, &interface.whole, &inspected.plugin_data);
        let said = described(&tlvs);
        if !said.is_empty() {
            parsed.insert(interface.name.clone(), Value::Object(said));
        }
    }
    if !parsed.is_empty() {
        let parsed = Value::Object(parsed);
        inspected
            .plugin_data
            .insert("parsed_lldp".to_owned(), parsed);
    }
}

/// Enters the switch and its port into the ports that don't say them. A switch that is known by no MAC address is not entered: nobody
/// could find it by that.
pub(super) fn local_link_connection(inspected: &mut Inspected<'_>) {
    let now = inspected.now;
    for interface in inspected.interfaces.iter().take(INTERFACES_MAX) {
        let tlvs = tlvs(&interface.name, &interface.whole, &inspected.plugin_data);
        let id = |kind| tlvs.iter().find(|tlv| tlv.kind == kind);
        let switch = id(CHASSIS_ID)
            .filter(|tlv| tlv.bytes.first() == Some(&4))
            .and_then(|tlv| chassis_id(&tlv.bytes));
        let port_id = id(PORT_ID).and_then(|tlv| port_id(&tlv.bytes));
        let (Some(switch), Some(port_id)) = (switch, port_id) else {
            continue;
        };
        let mut ports = inspected.node.ports.iter_mut();
        let Some(port) = ports.find(|port| port.address == interface.address) else {
            continue;
        };
        let before = port.local_link_connection.clone();
        for (key, value) in [("switch_id", switch), ("port_id", port_id)] {
            let connection = &mut port.local_link_connection;
            connection.entry(key).or_insert_with(|| json!(value));
        }
        if port.local_link_connection != before {
            port.updated_at = Some(now);
        }
    }
}

fn tlvs(name: &str, interface: &Object, plugin_data: &Object) -> Vec<Tlv> {
    let raw = plugin_data.get("lldp_raw").and_then(|raw| raw.get(name));
    let pairs = raw
        .or_else(|| interface.get("lldp"))
        .and_then(Value::as_array);
    let read = |pair: &Value| {
        let bytes = unhexed(pair.get(1)?.as_str()?)?;
        let kind = pair.get(0)?.as_u64()?;
        Some(Tlv { kind, bytes })
    };
    let pairs = pairs.into_iter().flatten().take(TLVS_MAX);
    pairs.filter_map(read).collect()
}

fn unhexed(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || text.len() > 2 * TLV_BYTES_MAX {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = text.as_bytes().chunks_exact(2);
    pairs
        .map(|pair| match pair {
            [high, low] => u8::try_from(digit(*high)? * 16 + digit(*low)?).ok(),
            _ => None,
        })
        .collect()
}

/// What TLVs say, under the names clients know. The first of each kind counts.
fn described(tlvs: &[Tlv]) -> Object {
    let (mut said, mut addresses, mut vlans) = (Object::new(), Vec::new(), Vec::new());
    for Tlv { kind, bytes } in tlvs {
        let (name, value) = match *kind {
            CHASSIS_ID => ("switch_chassis_id", chassis_id(bytes).map(Value::from)),
            PORT_ID => ("switch_port_id", port_id(bytes).map(Value::from)),
            PORT_DESCRIPTION => ("switch_port_description", text(bytes).map(Value::from)),
            SYSTEM_NAME => ("switch_system_name", text(bytes).map(Value::from)),
            SYSTEM_DESCRIPTION => ("switch_system_description", text(bytes).map(Value::from)),
            MANAGEMENT_ADDRESS => {
                addresses.extend(management_address(bytes).map(Value::from));
                continue;
            }
            ORGANIZATION => match bytes.split_first_chunk::<4>() {
                Some((&PORT_VLAN, [high, low, ..])) => (
                    "switch_port_untagged_vlan_id",
                    Some(json!(u16::from_be_bytes([*high, *low]))),
                ),
                Some((&FRAME_SIZE, [high, low, ..])) => (
                    "switch_port_mtu",
                    Some(json!(u16::from_be_bytes([*high, *low]))),
                ),
                Some((&VLAN_NAME, [high, low, length, name @ ..])) => {
                    if let Some(name) = name.get(..usize::from(*length)).and_then(text) {
                        let id = u16::from_be_bytes([*high, *low]);
                        vlans.push(json!({"id": id, "name": name}));
                    }
                    continue;
                }
                _ => continue,
            },
            _ => continue,
        };
        if let Some(value) = value {
            said.entry(name).or_insert(value);
        }
    }
    for (name, values) in [
        ("switch_mgmt_addresses", addresses),
        ("switch_port_vlans", vlans),
    ] {
        if !values.is_empty() {
            said.insert(name.to_owned(), Value::Array(values));
        }
    }
    said
}

fn chassis_id(bytes: &[u8]) -> Option<String> {
    match bytes.split_first()? {
        (4, rest) => mac(rest),
        (5, rest) => network_address(rest),
        (1..=3 | 6 | 7, rest) => text(rest),
        _ => None,
    }
}

fn port_id(bytes: &[u8]) -> Option<String> {
    match bytes.split_first()? {
        (3, rest) => mac(rest),
        (4, rest) => network_address(rest),
        (1 | 2 | 5 | 7, rest) => text(rest),
        _ => None,
    }
}

/// The first byte says how many belong to the address, its kind included.
fn management_address(bytes: &[u8]) -> Option<String> {
    let (length, rest) = bytes.split_first()?;
    network_address(rest.get(..usize::from(*length))?)
}

/// The first byte says what kind of address it is, by IANA's numbers.
fn network_address(bytes: &[u8]) -> Option<String> {
    match bytes.split_first()? {
        (1, rest) => Some(IpAddr::from(<[u8; 4]>::try_from(rest).ok()?).to_string()),
        (2, rest) => Some(IpAddr::from(<[u8; 16]>::try_from(rest).ok()?).to_string()),
        (6, rest) => mac(rest),
        _ => None,
    }
}

fn mac(bytes: &[u8]) -> Option<String> {
    let bytes = <[u8; 6]>::try_from(bytes).ok()?;
    Some(bytes.map(|byte| format!("{byte:02x}")).join(":"))
}

/// Text without the NUL that some switches put at its end.
fn text(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?.trim_end_matches('\0');
    (!text.is_empty() && !text.contains('\0')).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tlv(kind: u64, hex: &str) -> Option<Tlv> {
        let bytes = unhexed(hex)?;
        Some(Tlv { kind, bytes })
    }

    #[test]
    fn what_a_switch_says_gets_the_names_clients_know() {
        let tlvs: Vec<Tlv> = [
            (1, "04112233aabbcc"),
            (2, "05457468312f31"),
            (3, "0078"),
            (4, "73657276657220340000"),
            (5, "737730312d6431"),
            (8, "0501c0000201020000000100"),
            (127, "0080c2010064"),
            (127, "0080c20300660464617461"),
            (127, "00120f042400"),
            (127, "0080"),
        ]
        .into_iter()
        .filter_map(|(kind, hex)| tlv(kind, hex))
        .collect();
        assert_eq!(
            Value::Object(described(&tlvs)),
            json!({
                "switch_chassis_id": "11:22:33:aa:bb:cc", "switch_port_id": "Eth1/1",
                "switch_port_description": "server 4", "switch_system_name": "sw01-d1",
                "switch_mgmt_addresses": ["192.0.2.1"], "switch_port_untagged_vlan_id": 100,
                "switch_port_vlans": [{"id": 102, "name": "data"}], "switch_port_mtu": 9216,
            })
        );
    }

    #[test]
    fn what_makes_no_sense_is_passed_over() {
        for hex in ["0", "zz", "äö", &"00".repeat(TLV_BYTES_MAX + 1)] {
            assert!(tlv(5, hex).is_none(), "{hex}");
        }
        for (kind, hex) in [
            (1, ""),
            (1, "04"),
            (1, "041122"),
            (1, "09aa"),
            (1, "0501c000"),
            (2, "07fffe"),
            (5, "ff"),
            (5, ""),
            (8, ""),
            (8, "ff01"),
            (127, "0080c203006609"),
            (127, "0080c201"),
            (9, "00"),
            (u64::MAX, "00"),
        ] {
            let said = described(&[tlv(kind, hex).unwrap()]);
            assert!(said.is_empty(), "{kind} {hex}: {said:?}");
        }
    }
}
