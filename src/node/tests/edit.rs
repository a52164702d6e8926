//! What operators change on a node and its ports, as the node's step carries it out.

use serde_json::{Value, json};

use super::*;

fn operation(op: PatchOp, path: &str, value: Value) -> PatchOperation {
    PatchOperation {
        op,
        path: path.split('/').map(str::to_owned).collect(),
        value,
    }
}

impl World {
    fn patch(&mut self, path: &str, value: Value) -> Step {
        self.go(Event::Patch {
            operations: vec![operation(PatchOp::Add, path, value)],
            reset_interfaces: false,
            microversion: 110,
        })
    }

    fn adds_port(&mut self, id: u128, address: &str) -> Step {
        let port = Port {
            id: port_id(id),
            created_at: Timestamp(self.at),
            updated_at: None,
            address: address.to_owned(),
            name: None,
            pxe_enabled: true,
            extra: Object::new(),
            local_link_connection: Object::new(),
            physical_network: None,
            is_smartnic: false,
            description: None,
            vendor: None,
            category: None,
            portgroup_uuid: None,
            available_for_dynamic_portgroup: true,
        };
        self.go(Event::PortCreate(Box::new(port)))
    }

    fn patch_port(&mut self, id: u128, path: &str, value: Value) -> Step {
        self.go(Event::PortPatch {
            id: port_id(id),
            operations: vec![operation(PatchOp::Add, path, value)],
        })
    }

    fn addresses(&self) -> Vec<&str> {
        self.node
            .ports
            .iter()
            .map(|port| port.address.as_str())
            .collect()
    }
}

fn port_id(id: u128) -> PortId {
    PortId(uuid::Uuid::from_u128(id))
}

fn with_two_ports() -> World {
    let mut world = World::new();
    world.adds_port(1, "52:54:00:00:00:01");
    world.adds_port(2, "52:54:00:00:00:02");
    world
}

#[test]
fn a_patch_that_changes_something_is_a_change_and_another_is_none() {
    let mut world = World::new();
    let step = world.patch("name", json!("n"));
    assert_eq!((step.reply, step.outcome), (Reply::Done, Outcome::Changed));
    assert_eq!(world.node.attributes.name.as_deref(), Some("n"));
    assert_eq!(world.node.updated_at, Some(Timestamp(world.at)));
    world.at += 1;
    let before = world.node.clone();
    let step = world.patch("name", json!("n"));
    assert_eq!(
        (step.reply, step.outcome),
        (Reply::Done, Outcome::Unchanged)
    );
    assert_eq!(world.node, before);
}

#[test]
fn a_patch_puts_the_node_into_maintenance_and_takes_it_out() {
    let mut world = World::new();
    for on in [true, false] {
        let step = world.patch("maintenance", json!(on));
        assert_eq!(step.outcome, Outcome::Changed);
        assert_eq!(world.node.maintenance.is_some(), on);
    }
}

#[test]
fn only_a_node_that_may_go_is_removed() {
    let mut world = World::new();
    let step = world.go(Event::Delete);
    assert!(step.removed && step.reply == Reply::Done);
    let mut world = World::active();
    world.node.attributes.protected = true;
    let step = world.go(Event::Delete);
    assert!(!step.removed);
    assert!(matches!(
        step.reply,
        Reply::Refused(Refused::Protected { .. })
    ));
    // Whatever its agent still does is of no account.
    let mut world = World::writing();
    world.go(Event::Maintenance {
        on: true,
        reason: None,
    });
    let step = world.go(Event::Delete);
    assert!(step.removed);
    assert_eq!(
        (&step.node.session, step.node.open_command()),
        (&None, None)
    );
}

#[test]
fn a_port_is_added_once() {
    let mut world = with_two_ports();
    let step = world.adds_port(3, "52:54:00:00:00:03");
    assert_eq!(
        (step.reply, step.outcome),
        (Reply::PortCreated(port_id(3)), Outcome::Changed)
    );
    let step = world.adds_port(2, "52:54:00:00:00:04");
    let Reply::Refused(Refused::Conflict { text }) = step.reply else {
        panic!("{:?}", step.reply);
    };
    assert!(text.contains(&port_id(2).to_string()), "{text}");
    assert_eq!(world.addresses().len(), 3);
}

#[test]
fn a_patch_of_a_port_changes_that_port_and_its_time() {
    let mut world = with_two_ports();
    world.at += 5;
    let step = world.patch_port(2, "name", json!("second"));
    assert_eq!((step.reply, step.outcome), (Reply::Done, Outcome::Changed));
    let [first, second] = &world.node.ports[..] else {
        panic!("{:?}", world.node.ports);
    };
    assert_eq!((&first.name, first.updated_at), (&None, None));
    assert_eq!(second.name.as_deref(), Some("second"));
    assert_eq!(second.updated_at, Some(Timestamp(world.at)));

    world.at += 5;
    let before = world.node.clone();
    let step = world.patch_port(2, "name", json!("second"));
    assert_eq!(step.outcome, Outcome::Unchanged);
    assert_eq!(world.node, before);
    let step = world.patch_port(9, "name", json!("ninth"));
    assert!(matches!(
        step.reply,
        Reply::Refused(Refused::NotFound { .. })
    ));
}

#[test]
fn a_port_is_removed_alone() {
    let mut world = with_two_ports();
    let remove = |id| Event::PortDelete { id: port_id(id) };
    let step = world.go(remove(1));
    assert_eq!((step.reply, step.outcome), (Reply::Done, Outcome::Changed));
    assert_eq!(world.addresses(), ["52:54:00:00:00:02"]);
    let step = world.go(remove(1));
    let Reply::Refused(Refused::NotFound { what }) = step.reply else {
        panic!("{:?}", step.reply);
    };
    assert_eq!(what, format!("Port {}", port_id(1)));
}
