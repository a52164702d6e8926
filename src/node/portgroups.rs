//! Port groups: several ports of a node that act as one.
//!
//! Pure. The rules about when one may change are here; how a change is carried out is in `parts`.

use serde::{Deserialize, Serialize};
use thin_vec::ThinVec;
use uuid::Uuid;

use super::event::Event;
use super::fields::{Field, Holds, field};
use super::parts::{Part, PartChange, PartKind};
use super::provision::ProvisionState as S;
use super::refused::Refused;
use super::state::{Node, Object, Port};
use super::values::bad;

/// A group of ports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Portgroup {
    /// MAC address of the whole, lower case with colons; unique.
    pub address: Option<String>,
    /// Unique name.
    pub name: Option<String>,
    /// Free for the operator.
    pub extra: Object,
    /// How its ports act together, in the words of Linux bonding.
    pub mode: String,
    /// More about that.
    pub properties: Object,
    /// Whether its ports may also act alone, such as to boot from the network.
    pub standalone_ports_supported: bool,
    /// Name of the physical network.
    pub physical_network: Option<String>,
    /// Free category.
    pub category: Option<String>,
}

impl Default for Portgroup {
    fn default() -> Portgroup {
        Portgroup {
            address: None,
            name: None,
            extra: Object::new(),
            mode: "active-backup".to_owned(),
            properties: Object::new(),
            standalone_ports_supported: true,
            physical_network: None,
            category: None,
        }
    }
}

impl PartKind for Portgroup {
    const NAME: &'static str = "Portgroup";
    const FIELDS: &'static [Field] = &[
        field("address", 1, Holds::Mac),
        field("name", 1, Holds::Name),
        field("extra", 1, Holds::Object),
        field("mode", 26, Holds::Text(255)),
        field("properties", 26, Holds::Object),
        field("standalone_ports_supported", 1, Holds::Bool),
        field("physical_network", 102, Holds::Text(64)),
        field("category", 103, Holds::Text(80)),
    ];

    fn of(node: &Node) -> &ThinVec<Part<Portgroup>> {
        &node.portgroups
    }

    fn of_mut(node: &mut Node) -> &mut ThinVec<Part<Portgroup>> {
        &mut node.portgroups
    }

    fn event(change: PartChange<Portgroup>) -> Event {
        Event::Portgroup(change)
    }

    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    fn claim(&self) -> Option<(&'static str, String)> {
        Some(("address", self.address.clone()?))
    }

    fn may_become(
        node: &Node,
        old: Option<&Part<Portgroup>>,
        new: &Part<Portgroup>,
    ) -> Result<(), Refused> {
        let Some(old) = old else {
            return Ok(());
        };
        let (from, to) = (&old.is, &new.is);
        let is_connected_as_before = from.address == to.address
            && from.mode == to.mode
            && from.properties == to.properties
            && from.physical_network == to.physical_network
            && from.standalone_ports_supported == to.standalone_ports_supported;
        if !is_connected_as_before {
            check_may_rewire(node, "a port group")?;
        }
        for port in ports_of(node, new.id) {
            check_port(port, new)?;
        }
        Ok(())
    }

    fn may_go(node: &Node, part: &Part<Portgroup>) -> Result<(), Refused> {
        let ports = ports_of(node, part.id).count();
        if ports > 0 {
            return Err(Refused::InUse {
                what: format!("Portgroup {}", part.id),
                by: format!("{ports} ports; delete them or take them out of it first"),
            });
        }
        Ok(())
    }
}

/// What connects the machine may change only while nobody relies on it.
///
/// # Errors
/// [`Refused::Conflict`] naming the node's state.
pub(super) fn check_may_rewire(node: &Node, what: &str) -> Result<(), Refused> {
    let state = node.provision_state();
    let is_free = matches!(
        state,
        S::Enroll | S::Inspecting | S::InspectWait | S::Manageable
    );
    if is_free || node.maintenance.is_some() {
        return Ok(());
    }
    Err(Refused::Conflict {
        text: format!(
            "Connectivity attributes of {what} can't be changed while its node is in state \"{state}\"; put the node into maintenance first, or bring it to enroll or manageable."
        ),
    })
}

/// Whether a port may be in the group it names, if it names one.
///
/// # Errors
/// [`Refused::BadValue`] where this node has no such group; [`Refused::Conflict`] where the two don't fit.
pub(super) fn check_port_in_group(node: &Node, port: &Port) -> Result<(), Refused> {
    let Some(id) = port.portgroup_uuid else {
        return Ok(());
    };
    let Some(group) = node.portgroups.iter().find(|group| group.id == id) else {
        return Err(bad(
            "portgroup_uuid",
            &format!("the port's node has no port group {id}"),
        ));
    };
    check_port(port, group)
}

fn check_port(port: &Port, group: &Part<Portgroup>) -> Result<(), Refused> {
    if port.pxe_enabled && !group.is.standalone_ports_supported {
        return Err(Refused::Conflict {
            text: format!(
                "Port {} can't have pxe_enabled while port group {} does not support standalone ports; set pxe_enabled to false, or standalone_ports_supported to true.",
                port.id, group.id
            ),
        });
    }
    Ok(())
}

fn ports_of(node: &Node, group: Uuid) -> impl Iterator<Item = &Port> {
    let is_in_it = move |port: &&Port| port.portgroup_uuid == Some(group);
    node.ports.iter().filter(is_in_it)
}
