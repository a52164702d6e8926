//! Changes that operators make to a node's attributes: JSON patches of nodes, and whether a node may go. Ports are in `ports`.
//!
//! Pure; called by the node's step. A patch is applied to a copy, so a refused one changes nothing.

use serde_json::{Map, Value};

use super::attributes::{self, Field, Kind, bad};
use super::event::{PatchOp, PatchOperation};
use super::patch::apply_below;
use super::provision::ProvisionState as S;
use super::refused::Refused;
use super::state::{Attributes, Node};

pub use super::ports::{new_port, patch_port};

/// What a patch makes of a node.
#[derive(Debug, Clone, PartialEq)]
pub struct Patched {
    /// The attributes as they shall be.
    pub attributes: Attributes,
    /// Into maintenance (true), out of it (false, which also forgets its reason and fault), or as it was (none).
    pub maintenance: Option<bool>,
}

/// The first field of the patch that is younger than `microversion`, and since when it is there.
pub fn too_new(operations: &[PatchOperation], microversion: u16) -> Option<(&'static str, u16)> {
    operations
        .iter()
        .filter_map(|operation| attributes::field_named(operation.path.first()?))
        .find(|field| field.since > microversion)
        .map(|field| (field.name, field.since))
}

/// Applies a patch to a node's attributes. `microversion`: the minor number.
///
/// # Errors
/// [`Refused::BadValue`] naming the field; [`Refused::Busy`] and [`Refused::Conflict`] where the node's state is against it.
pub fn patch(
    node: &Node,
    operations: &[PatchOperation],
    reset_interfaces: bool,
    microversion: u16,
) -> Result<Patched, Refused> {
    if let Some((name, since)) = too_new(operations, microversion) {
        return Err(bad(name, &format!("needs version 1.{since} or newer")));
    }
    if operations.is_empty() && !reset_interfaces {
        return Ok(Patched {
            attributes: (*node.attributes).clone(),
            maintenance: None,
        });
    }
    if !(node.maintenance.is_some() && only_removes_instance(operations)) {
        check_state_allows_patch(node.provision_state(), microversion)?;
    }
    applied(node, operations, reset_interfaces, microversion)
}

/// What an inspection rule makes of a node that is inspected: it sets what a patch may set.
///
/// # Errors
/// As [`patch`].
pub(super) fn patch_by_rule(
    node: &Node,
    operations: &[PatchOperation],
) -> Result<Patched, Refused> {
    applied(node, operations, false, u16::MAX)
}

fn applied(
    node: &Node,
    operations: &[PatchOperation],
    reset_interfaces: bool,
    microversion: u16,
) -> Result<Patched, Refused> {
    let mut set = Map::new();
    let mut interfaces_named = Vec::new();
    for operation in operations {
        let Some((root, below)) = operation.path.split_first() else {
            return Err(bad("path", "is empty; name a field, for example /extra"));
        };
        let field = patchable(root)?;
        if field.name == "chassis_uuid" && operation.op == PatchOp::Remove && microversion < 25 {
            return Err(bad("chassis_uuid", "can be removed from version 1.25 on"));
        }
        if field.kind == Kind::Interface {
            interfaces_named.push(field.name);
        }
        let value = if below.is_empty() {
            match operation.op {
                PatchOp::Remove => default_of(node, field, &set)?,
                PatchOp::Add | PatchOp::Replace => attributes::checked(field, &operation.value)?,
            }
        } else {
            let mut whole = match (
                set.remove(root),
                attributes::object_named(&node.attributes, root),
            ) {
                (Some(changed), Some(_)) => changed,
                (None, Some(stored)) => Value::Object(stored.clone()),
                (_, None) => return Err(bad(root, "has no parts that could be changed")),
            };
            apply_below(&mut whole, below, operation, &operation.path.join("/"))?;
            attributes::checked(field, &whole)?
        };
        set.insert(root.clone(), value);
    }
    let maintenance = set.remove("maintenance").and_then(|value| value.as_bool());
    let mut attributes = attributes::from_document(&node.attributes, set)?;
    settle_interfaces(node, &mut attributes, &interfaces_named, reset_interfaces)?;
    if !attributes.protected && node.attributes.protected {
        attributes.protected_reason = None;
    }
    if !attributes.retired && node.attributes.retired {
        attributes.retired_reason = None;
    }
    check_rules(node, &attributes)?;
    attributes::name_instance_unless_removed(&mut attributes, &node.attributes);
    Ok(Patched {
        attributes,
        maintenance: maintenance.filter(|on| *on != node.maintenance.is_some()),
    })
}

/// Whether the node may be removed.
///
/// # Errors
/// [`Refused::Protected`], [`Refused::Busy`], [`Refused::Conflict`].
pub fn may_delete(node: &Node) -> Result<(), Refused> {
    let state = node.provision_state();
    if node.attributes.protected {
        return Err(Refused::Protected {
            what: "Deleting the node".to_owned(),
        });
    }
    if node.maintenance.is_some() {
        return Ok(());
    }
    if node.attributes.instance_uuid.is_some() {
        return Err(Refused::Conflict {
            text: "The node is associated with an instance; remove instance_uuid first, or put the node into maintenance.".to_owned(),
        });
    }
    match state {
        S::Enroll | S::Manageable | S::Available | S::AdoptFailed => Ok(()),
        state if state.is_working() => Err(Refused::Busy { state }),
        state => Err(Refused::Conflict {
            text: format!(
                "A node in state \"{state}\" can't be deleted; bring it to available, manageable or enroll first, or put it into maintenance."
            ),
        }),
    }
}

fn only_removes_instance(operations: &[PatchOperation]) -> bool {
    matches!(operations, [one] if one.op == PatchOp::Remove && one.path == ["instance_uuid"])
}

/// While work goes on, only some states allow changes.
fn check_state_allows_patch(state: S, microversion: u16) -> Result<(), Refused> {
    let is_allowed = match state {
        S::Inspecting => microversion < 39,
        S::Enroll
        | S::Verifying
        | S::Manageable
        | S::InspectWait
        | S::InspectFailed
        | S::CleanFailed
        | S::Available
        | S::DeployFailed
        | S::Active
        | S::ServiceHold
        | S::ServiceFailed
        | S::RescueFailed
        | S::Rescue
        | S::UnrescueFailed
        | S::Error
        | S::AdoptFailed => true,
        S::Cleaning
        | S::CleanWait
        | S::CleanHold
        | S::Deploying
        | S::WaitCallBack
        | S::DeployHold
        | S::Servicing
        | S::ServiceWait
        | S::Rescuing
        | S::RescueWait
        | S::Unrescuing
        | S::Deleting
        | S::Adopting => false,
    };
    if is_allowed {
        Ok(())
    } else {
        Err(Refused::Busy { state })
    }
}

/// The five states in which what schedulers look at may change.
fn is_at_rest_or_inspected(state: S) -> bool {
    matches!(
        state,
        S::Enroll | S::Inspecting | S::InspectWait | S::Manageable | S::Available
    )
}

fn patchable(root: &str) -> Result<&'static Field, Refused> {
    match attributes::field_named(root) {
        Some(field) if field.patchable => Ok(field),
        Some(_) => Err(bad(root, "can't be changed by a patch")),
        None => Err(bad(
            root,
            "can't be changed by a patch, or is no field of a node",
        )),
    }
}

/// What a removed field becomes.
fn default_of(node: &Node, field: &Field, set: &Map<String, Value>) -> Result<Value, Refused> {
    match field.kind {
        Kind::Driver => Err(bad(field.name, "can't be removed; set another one")),
        Kind::Interface => {
            let kind = field.name.trim_end_matches("_interface");
            let driver = set
                .get("driver")
                .and_then(Value::as_str)
                .unwrap_or(&node.attributes.driver);
            let default = attributes::known_driver(driver)?
                .interfaces
                .iter()
                .find(|interface| interface.kind == kind)
                .map_or(Value::Null, |interface| interface.default.into());
            Ok(default)
        }
        _ => field
            .empty()
            .ok_or_else(|| bad(field.name, "can't be null")),
    }
}

/// After a change of driver or interfaces every interface must be one the driver has.
fn settle_interfaces(
    node: &Node,
    attributes: &mut Attributes,
    named: &[&str],
    reset: bool,
) -> Result<(), Refused> {
    let has_new_driver = attributes.driver != node.attributes.driver;
    if reset && !has_new_driver {
        return Err(bad(
            "reset_interfaces",
            "has a meaning only together with a change of driver",
        ));
    }
    if !has_new_driver && attributes.interfaces == node.attributes.interfaces {
        return Ok(());
    }
    if reset {
        attributes
            .interfaces
            .retain(|kind, _| named.contains(&format!("{kind}_interface").as_str()));
    }
    let hardware_type = attributes::known_driver(&attributes.driver)?;
    attributes::fill_interfaces(attributes, hardware_type)
}

/// The rules about single fields that depend on the node's state.
fn check_rules(node: &Node, new: &Attributes) -> Result<(), Refused> {
    let (old, state) = (&node.attributes, node.provision_state());
    let conflict = |text: String| Err(Refused::Conflict { text });
    if new.interfaces != old.interfaces
        && new.driver == old.driver
        && !is_at_rest_or_inspected(state)
        && node.maintenance.is_none()
    {
        return conflict(format!(
            "Interfaces can't be changed in state \"{state}\"; put the node into maintenance first, or bring it to enroll, manageable or available."
        ));
    }
    if old.resource_class.is_some()
        && new.resource_class != old.resource_class
        && !is_at_rest_or_inspected(state)
    {
        return conflict(format!(
            "resource_class can't be changed in state \"{state}\"; bring the node to enroll, manageable or available first."
        ));
    }
    if let (Some(has), Some(wants)) = (&old.instance_uuid, &new.instance_uuid)
        && has != wants
    {
        return conflict(format!(
            "The node is already associated with instance {has}; remove instance_uuid before another one is set."
        ));
    }
    if node.allocation.is_some()
        && new.instance_uuid.is_none()
        && !is_at_rest_or_inspected(state)
        && node.maintenance.is_none()
    {
        return conflict(format!(
            "instance_uuid belongs to an allocation and can't be removed in state \"{state}\"; undeploy the node, or put it into maintenance first."
        ));
    }
    if new.protected_reason.is_some() && !new.protected {
        return Err(bad(
            "protected_reason",
            "can be set only while protected is true",
        ));
    }
    let protection_changes =
        new.protected != old.protected || new.protected_reason != old.protected_reason;
    if protection_changes && new.protected && !matches!(state, S::Active | S::Rescue) {
        return conflict(format!(
            "A node in state \"{state}\" can't be protected; only active and rescue nodes can."
        ));
    }
    if new.retired_reason.is_some() && !new.retired {
        return Err(bad(
            "retired_reason",
            "can be set only while retired is true",
        ));
    }
    if new.retired && !old.retired && state == S::Available {
        return conflict(
            "A node in state \"available\" can't be retired; bring it to manageable first."
                .to_owned(),
        );
    }
    if let Some(parent) = &new.parent_node
        && *parent == node.id.to_string()
    {
        return Err(bad("parent_node", "a node can't be a part of itself"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::state::{Maintenance, NodeId, Provision};
    use crate::timestamp::Timestamp;
    use serde_json::json;

    fn node(provision: Provision) -> Node {
        let document = json!({
            "driver": "fake-hardware", "name": "n", "extra": {"a": {"b": 1}, "l": [1, 2]},
            "resource_class": "large", "description": "d",
        });
        let new = attributes::parse_new(document.as_object().unwrap(), 110).unwrap();
        let mut node = Node::enrolled(NodeId::default(), new.attributes, Timestamp(0));
        node.provision = provision;
        node
    }

    fn operations(list: Value) -> Vec<PatchOperation> {
        list.as_array()
            .unwrap()
            .iter()
            .map(|item| PatchOperation {
                op: match item[0].as_str().unwrap() {
                    "add" => PatchOp::Add,
                    "remove" => PatchOp::Remove,
                    _ => PatchOp::Replace,
                },
                path: item[1].as_str().unwrap()[1..]
                    .split('/')
                    .map(str::to_owned)
                    .collect(),
                value: item[2].clone(),
            })
            .collect()
    }

    fn apply(node: &Node, list: Value) -> Result<Patched, Refused> {
        patch(node, &operations(list), false, 110)
    }

    fn refused(node: &Node, list: Value) -> &'static str {
        apply(node, list.clone())
            .expect_err(&list.to_string())
            .name()
    }

    #[test]
    fn a_patch_sets_adds_below_and_removes() {
        let patched = apply(
            &node(Provision::Enroll),
            json!([
                ["add", "/name", "other"],
                ["add", "/extra/c", true],
                ["replace", "/extra/a/b", 2],
                ["remove", "/extra/l/0"],
                ["add", "/extra/l/-", 3],
                ["remove", "/description"],
                ["add", "/driver_info/x", "y"],
                ["add", "/automated_clean", "True"],
                ["remove", "/resource_class"],
                ["add", "/maintenance", "true"],
                ["remove", "/properties"],
            ]),
        )
        .unwrap();
        let attributes = patched.attributes;
        assert_eq!(attributes.name.as_deref(), Some("other"));
        assert_eq!(
            Value::Object(attributes.extra),
            json!({"a": {"b": 2}, "c": true, "l": [2, 3]})
        );
        assert_eq!(attributes.description, None);
        assert_eq!(attributes.resource_class, None);
        assert_eq!(attributes.automated_clean, Some(true));
        assert_eq!(attributes.driver_info["x"], "y");
        assert_eq!(patched.maintenance, Some(true));
    }

    #[test]
    fn removing_a_switch_turns_it_off_instead_of_failing() {
        let mut of = node(Provision::Enroll);
        of.maintenance = Some(Maintenance::default().into());
        of.attributes.automated_clean = Some(true);
        let patched = apply(
            &of,
            json!([["remove", "/automated_clean"], ["remove", "/maintenance"]]),
        )
        .unwrap();
        assert_eq!(patched.attributes.automated_clean, None);
        assert_eq!(patched.maintenance, Some(false));
    }

    #[test]
    fn what_is_not_there_can_be_neither_removed_nor_replaced() {
        let of = node(Provision::Enroll);
        for list in [
            json!([["remove", "/extra/x"]]),
            json!([["replace", "/extra/x", 1]]),
            json!([["add", "/extra/x/y", 1]]),
            json!([["remove", "/extra/l/2"]]),
            json!([["add", "/extra/l/7", 1]]),
            json!([["add", "/name/x", 1]]),
            json!([["remove", "/driver"]]),
            json!([["add", "/uuid", "x"]]),
            json!([["add", "/provision_state", "active"]]),
            json!([["add", "/last_error", "x"]]),
            json!([["add", "/boot_mode", "uefi"]]),
            json!([["add", "/nothing", "x"]]),
            json!([["add", "/properties/cpus", "many"]]),
            json!([["add", "/protected_reason", "x"]]),
            json!([["add", "/maintenance", null]]),
        ] {
            assert_eq!(refused(&of, list), "bad_value");
        }
    }

    #[test]
    fn while_the_node_works_only_some_states_allow_a_patch() {
        let change = json!([["add", "/extra/x", 1]]);
        assert_eq!(refused(&node(Provision::Deleting), change.clone()), "busy");
        assert!(apply(&node(Provision::DeployFailed), change.clone()).is_ok());
        assert!(apply(&node(Provision::Verifying), change).is_ok());
        let mut of = node(Provision::Deleting);
        of.attributes.instance_uuid = Some("x".into());
        of.maintenance = Some(Maintenance::default().into());
        assert!(apply(&of, json!([["remove", "/instance_uuid"]])).is_ok());
    }

    #[test]
    fn rules_of_single_fields_depend_on_the_state() {
        let active = node(Provision::Active);
        assert_eq!(
            refused(&active, json!([["add", "/resource_class", "small"]])),
            "conflict"
        );
        assert_eq!(
            refused(
                &node(Provision::Enroll),
                json!([["add", "/protected", true]])
            ),
            "conflict"
        );
        assert!(
            apply(
                &active,
                json!([
                    ["add", "/protected", true],
                    ["add", "/protected_reason", "r"]
                ])
            )
            .is_ok()
        );
        assert_eq!(
            refused(
                &node(Provision::Available),
                json!([["add", "/retired", true]])
            ),
            "conflict"
        );
        let mut of = node(Provision::Available);
        of.attributes.instance_uuid = Some("6523b921-218d-4849-a3bb-3ab765c2fcdc".into());
        let other = json!([[
            "add",
            "/instance_uuid",
            "6523b921-218d-4849-a3bb-3ab765c2fcdd"
        ]]);
        assert_eq!(refused(&of, other), "conflict");
    }

    #[test]
    fn unprotecting_forgets_the_reason() {
        let mut of = node(Provision::Active);
        of.attributes.protected = true;
        of.attributes.protected_reason = Some("r".into());
        let patched = apply(&of, json!([["add", "/protected", "False"]])).unwrap();
        assert_eq!(patched.attributes.protected_reason, None);
    }

    #[test]
    fn a_new_driver_needs_interfaces_it_has() {
        let of = node(Provision::Enroll);
        let change = operations(json!([["add", "/driver", "manual-management"]]));
        assert_eq!(
            patch(&of, &change, false, 110).unwrap_err().name(),
            "bad_value"
        );
        let patched = patch(&of, &change, true, 110).unwrap();
        assert_eq!(patched.attributes.interfaces["boot"], "pxe");
        assert_eq!(patch(&of, &[], true, 110).unwrap_err().name(), "bad_value");
    }

    #[test]
    fn only_nodes_without_work_and_instance_can_go() {
        for provision in [
            Provision::Enroll,
            Provision::Manageable,
            Provision::Available,
        ] {
            assert_eq!(may_delete(&node(provision)), Ok(()));
        }
        let mut active = node(Provision::Active);
        assert_eq!(may_delete(&active).unwrap_err().name(), "conflict");
        active.maintenance = Some(Maintenance::default().into());
        assert_eq!(may_delete(&active), Ok(()));
        active.attributes.protected = true;
        assert_eq!(may_delete(&active).unwrap_err().name(), "protected");
        let mut with_instance = node(Provision::Available);
        with_instance.attributes.instance_uuid = Some("x".into());
        assert_eq!(may_delete(&with_instance).unwrap_err().name(), "conflict");
        assert_eq!(
            may_delete(&node(Provision::Deleting)).unwrap_err().name(),
            "busy"
        );
    }

    #[test]
    fn an_inspected_node_takes_patches_of_older_clients_only() {
        assert_eq!(check_state_allows_patch(S::Inspecting, 38), Ok(()));
        assert!(check_state_allows_patch(S::Inspecting, 39).is_err());
        assert!(check_state_allows_patch(S::Inspecting, 110).is_err());
    }
}
