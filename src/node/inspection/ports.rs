//! Hook `ports`: NICs become ports, and ports of NICs that are gone may go.

use serde_json::{Value, json};

use super::{AddPorts, Inspected, KeepPorts};
use crate::node::effect::Severity;
use crate::node::state::Port;

/// The identifier an InfiniBand NIC uses in DHCP.
const CLIENT_ID_BYTES_MAX: usize = 255;

pub(super) fn update(inspected: &mut Inspected<'_>) {
    let now = inspected.now;
    let is_pxe_known = inspected.interfaces.iter().any(|one| one.is_pxe);
    let (mut made, mut taken) = (Vec::new(), Vec::new());
    let mut fresh_ids = std::mem::take(&mut inspected.fresh_ids).into_iter();
    for interface in &inspected.interfaces {
        let ports = &mut inspected.node.ports;
        let known = ports
            .iter_mut()
            .find(|port| port.address == interface.address);
        if let Some(port) = known {
            if is_pxe_known && port.pxe_enabled != interface.is_pxe {
                port.pxe_enabled = interface.is_pxe;
                port.updated_at = Some(now);
            }
            continue;
        }
        if !interface.is_valid || inspected.settings.add_ports == AddPorts::Disabled {
            continue;
        }
        if inspected.taken.contains(&interface.address) {
            taken.push(interface.address.clone());
            continue;
        }
        let Some(id) = fresh_ids.next() else {
            break;
        };
        let mut port = Port::new(id, interface.address.clone(), now);
        port.pxe_enabled = interface.is_pxe || !is_pxe_known;
        let client_id = interface.whole.get("client_id").and_then(Value::as_str);
        if let Some(client_id) = client_id.filter(|id| id.len() <= CLIENT_ID_BYTES_MAX) {
            port.extra.insert("client-id".to_owned(), json!(client_id));
        }
        made.push(interface.address.clone());
        ports.push(port);
    }
    let removed = remove_others(inspected);
    for (what, addresses) in [
        ("ports made for", made),
        (
            "ports removed, because they are not among the interfaces:",
            removed,
        ),
        (
            "no ports made, because those of other nodes have the addresses:",
            taken,
        ),
    ] {
        if !addresses.is_empty() {
            let line = format!("{what} {}", addresses.join(", "));
            inspected.note(Severity::Info, line);
        }
    }
}

/// Removes ports the setting does not keep, and answers their addresses.
fn remove_others(inspected: &mut Inspected<'_>) -> Vec<String> {
    let is_kept = |address: &str| {
        let mut interfaces = inspected.interfaces.iter();
        match inspected.settings.keep_ports {
            KeepPorts::All => true,
            KeepPorts::Present => interfaces.any(|one| one.address == address),
            KeepPorts::Added => interfaces.any(|one| one.is_valid && one.address == address),
        }
    };
    let ports = std::mem::take(&mut *inspected.node.ports);
    let (kept, others): (Vec<Port>, Vec<Port>) =
        ports.into_iter().partition(|port| is_kept(&port.address));
    *inspected.node.ports = kept;
    others.into_iter().map(|port| port.address).collect()
}
