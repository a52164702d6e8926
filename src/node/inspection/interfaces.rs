//! Hook `validate-interfaces`: the NICs the agent found, and those among them that count.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::{AddPorts, Inspected};
use crate::node::state::Object;
use crate::node::values::mac_address;

/// Linux has at most 15.
const NAME_BYTES_MAX: usize = 64;

/// A NIC as the agent found it.
pub(super) struct Interface {
    pub(super) name: String,
    /// Its MAC address, lower case with colons.
    pub(super) address: String,
    /// The machine was booted from it.
    pub(super) is_pxe: bool,
    /// It is one that ports are made for.
    pub(super) is_valid: bool,
    pub(super) whole: Object,
}

/// Finds the NICs, and keeps them in the plugin data as `all_interfaces`, `valid_interfaces` and `macs`.
pub(super) fn validate(inspected: &mut Inspected<'_>) -> Result<(), String> {
    let is_pxe_known = inspected.pxe_mac.is_some();
    let add_ports = inspected.settings.add_ports;
    let mut found: Vec<Interface> = Vec::new();
    for interface in inspected.inventory["interfaces"]
        .as_array()
        .into_iter()
        .flatten()
    {
        if let Some(mut interface) = read(interface, inspected.pxe_mac.as_deref())
            && found.iter().all(|other| other.name != interface.name)
        {
            interface.is_valid = counts(&interface, add_ports, is_pxe_known);
            found.push(interface);
        }
    }
    if found.is_empty() {
        return Err("the agent found no network interface with a MAC address".to_owned());
    }
    let (mut all, mut valid, mut macs) = (Object::new(), Object::new(), Vec::new());
    for interface in &found {
        let whole = Value::Object(interface.whole.clone());
        all.insert(interface.name.clone(), whole.clone());
        if interface.is_valid {
            valid.insert(interface.name.clone(), whole);
            macs.push(json!(interface.address));
        }
    }
    if valid.is_empty() {
        return Err(format!(
            "no network interface the agent found fits the setting add_ports = \"{}\" of [inspector]",
            add_ports.name()
        ));
    }
    for (key, value) in [
        ("all_interfaces", Value::Object(all)),
        ("valid_interfaces", Value::Object(valid)),
        ("macs", Value::Array(macs)),
    ] {
        inspected.plugin_data.insert(key.to_owned(), value);
    }
    inspected.interfaces = found;
    Ok(())
}

/// A NIC with a name and a MAC address. Others, InfiniBand among them, are passed over.
fn read(interface: &Value, pxe_mac: Option<&str>) -> Option<Interface> {
    let mut whole = interface.as_object()?.clone();
    let text = |key: &str| whole.get(key).and_then(Value::as_str);
    let (name, address) = (text("name")?.to_owned(), mac_address(text("mac_address")?)?);
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return None;
    }
    // `fe80::1%eth0`: the zone is of no use to anybody else.
    let ipv6 = text("ipv6_address").and_then(|text| text.split('%').next());
    if let Some(ipv6) = ipv6.map(str::to_owned) {
        whole.insert("ipv6_address".to_owned(), json!(ipv6));
    }
    let is_pxe = pxe_mac == Some(address.as_str());
    whole.insert("pxe_enabled".to_owned(), json!(is_pxe));
    Some(Interface {
        name,
        address,
        is_pxe,
        is_valid: false,
        whole,
    })
}

fn counts(interface: &Interface, add_ports: AddPorts, is_pxe_known: bool) -> bool {
    let ip = ["ipv4_address", "ipv6_address"].iter().find_map(|key| {
        let text = interface.whole.get(*key)?.as_str()?;
        text.parse::<IpAddr>().ok()
    });
    if interface.name == "lo" || ip.is_some_and(|ip| ip.is_loopback()) {
        return false;
    }
    match add_ports {
        AddPorts::Pxe => interface.is_pxe || !is_pxe_known,
        AddPorts::Active => ip.is_some(),
        AddPorts::All | AddPorts::Disabled => true,
    }
}

/// The address of the NIC the machine was booted from. The kernel spells it `01-aa-bb-cc-dd-ee-ff`, with the kind of hardware in
/// front.
pub(super) fn pxe_mac(inventory: &Value, plugin_data: &Object) -> Option<String> {
    let text = inventory["boot"]["pxe_interface"]
        .as_str()
        .or_else(|| plugin_data.get("boot_interface")?.as_str())?;
    let is_prefixed = text.len() == 20 && text.as_bytes().get(2) == Some(&b'-');
    let address = if is_prefixed { text.get(3..)? } else { text };
    mac_address(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interface_booted_from_is_read_in_every_spelling() {
        let read = |text: &str| pxe_mac(&json!({"boot": {"pxe_interface": text}}), &Object::new());
        let address = Some("52:54:00:aa:00:01".to_owned());
        for text in [
            "52:54:00:aa:00:01",
            "52:54:00:AA:00:01",
            "01-52-54-00-aa-00-01",
            "52-54-00-aa-00-01",
            "20-52-54-00-aa-00-01",
        ] {
            assert_eq!(read(text), address, "{text}");
        }
        for text in [
            "",
            "eth0",
            "01-",
            "01-52-54-00-aa-0",
            "äöäöäöäöäöäöäöäöäöäö",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
