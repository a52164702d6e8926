//! Traits: words about what a machine can do, which allocations ask for.
//!
//! Pure. The rule for names is that of the Bare Metal API: those of the standard vocabulary, which have the name of a field of
//! knowledge in front, and an operator's own, which begin with `CUSTOM_`.

use serde_json::Value;

use super::effect::Step;
use super::outcome::Outcome;
use super::refused::Refused;
use super::state::Node;
use super::turn::Turn;
use super::values::bad;

/// A node has no more.
pub const TRAITS_MAX: usize = 50;

/// What the names of the standard vocabulary begin with.
const STANDARD: [&str; 5] = ["COMPUTE_", "HW_", "MISC_", "OWNER_", "STORAGE_"];

/// A change of a node's traits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TraitChange {
    /// These and no others.
    Set(Vec<String>),
    /// One more.
    Add(String),
    /// One less.
    Remove(String),
    /// None.
    Clear,
}

/// True for what can be a trait.
pub fn is_trait(name: &str) -> bool {
    let rest = name.strip_prefix("CUSTOM_").or_else(|| {
        STANDARD
            .iter()
            .find_map(|standard| name.strip_prefix(standard))
    });
    name.len() <= 255
        && rest.is_some_and(|rest| {
            !rest.is_empty()
                && rest
                    .bytes()
                    .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
        })
}

/// Checks what can be a trait.
///
/// # Errors
/// [`Refused::BadValue`] naming the field.
pub fn check_trait(field: &str, name: &str) -> Result<(), Refused> {
    if is_trait(name) {
        return Ok(());
    }
    Err(bad(
        field,
        &format!(
            "{name:?} is no trait; use one of the standard ones, or CUSTOM_ and then capital letters, digits and _"
        ),
    ))
}

/// A list of traits in the form they are kept in: each once, in alphabetical order.
///
/// # Errors
/// [`Refused::BadValue`] naming the field.
pub fn checked_list(field: &str, names: Vec<String>) -> Result<Vec<String>, Refused> {
    let mut list = names;
    list.sort();
    list.dedup();
    for name in &list {
        check_trait(field, name)?;
    }
    if list.len() > TRAITS_MAX {
        return Err(bad(
            field,
            &format!("are {}; at most {TRAITS_MAX} are allowed", list.len()),
        ));
    }
    Ok(list)
}

/// What a change makes of a list; `whose` has the traits, for the sentence.
///
/// # Errors
/// [`Refused::BadValue`]; [`Refused::NotFound`] for one that is to be removed and is not there.
pub fn changed(whose: &str, list: &[String], change: TraitChange) -> Result<Vec<String>, Refused> {
    match change {
        TraitChange::Set(names) => checked_list("traits", names),
        TraitChange::Add(name) => {
            let mut names = list.to_vec();
            names.push(name);
            checked_list("traits", names)
        }
        TraitChange::Remove(name) => {
            if !list.contains(&name) {
                return Err(Refused::NotFound {
                    what: format!("Trait {name} of {whose}"),
                });
            }
            Ok(list
                .iter()
                .filter(|other| **other != name)
                .cloned()
                .collect())
        }
        TraitChange::Clear => Ok(Vec::new()),
    }
}

/// The traits that the node's instance asks for.
pub fn instance_traits(node: &Node) -> Vec<String> {
    let listed = node.attributes.instance_info.get("traits");
    let texts = listed.and_then(Value::as_array).into_iter().flatten();
    texts.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Whether the node can do all that its instance asks for.
///
/// # Errors
/// [`Refused::BadValue`] naming what it can't.
pub fn check_instance_traits(node: &Node) -> Result<(), Refused> {
    let listed = node.attributes.instance_info.get("traits");
    let is_list = |value: &Value| {
        value
            .as_array()
            .is_some_and(|all| all.iter().all(Value::is_string))
    };
    if listed.is_some_and(|value| !value.is_null() && !is_list(value)) {
        let problem = "must be a list of names such as [\"CUSTOM_GPU\"]";
        return Err(bad("instance_info/traits", problem));
    }
    let mut missing = instance_traits(node);
    missing.retain(|name| !node.traits.contains(name));
    if missing.is_empty() {
        return Ok(());
    }
    Err(bad(
        "instance_info/traits",
        &format!("the node itself has no {}", missing.join(", ")),
    ))
}

pub(super) fn change(mut turn: Turn<'_>, change: TraitChange) -> Step {
    let whose = format!("node {}", turn.node.id);
    match changed(&whose, &turn.node.traits, change) {
        Ok(traits) if turn.node.traits == traits => turn.unchanged(Outcome::Unchanged),
        Ok(traits) => {
            turn.node.traits = traits.into();
            turn.done(Outcome::Changed)
        }
        Err(why) => turn.refuse(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timestamp::Timestamp;
    use serde_json::json;

    #[test]
    fn traits_are_standard_or_custom() {
        for name in ["CUSTOM_A_1", "HW_CPU_X86_VMX", "STORAGE_DISK_SSD"] {
            assert!(is_trait(name), "{name}");
        }
        for name in [
            "",
            "CUSTOM_",
            "CUSTOM_a",
            "custom_A",
            "GOLD",
            "CUSTOM_A-B",
            "HW_ÄU",
        ] {
            assert!(!is_trait(name), "{name}");
        }
    }

    #[test]
    fn an_instance_asks_for_no_more_than_its_node_can_do() {
        let mut node = Node::enrolled(Default::default(), Default::default(), Timestamp(0));
        node.traits = vec!["CUSTOM_A".to_owned(), "CUSTOM_B".to_owned()].into();
        let info = &mut node.attributes.instance_info;
        info.insert("traits".to_owned(), json!(["CUSTOM_B"]));
        assert_eq!(instance_traits(&node), ["CUSTOM_B"]);
        assert_eq!(check_instance_traits(&node), Ok(()));
        node.traits.clear();
        let why = check_instance_traits(&node).unwrap_err().to_string();
        assert!(why.contains("CUSTOM_B"), "{why}");
        for wrong in [json!("CUSTOM_B"), json!([1]), json!({"CUSTOM_B": 1})] {
            let info = &mut node.attributes.instance_info;
            info.insert("traits".to_owned(), wrong.clone());
            let why = check_instance_traits(&node).unwrap_err().to_string();
            assert!(why.contains("list of names"), "{wrong}: {why}");
        }
    }

    #[test]
    fn lists_are_kept_in_order_and_bounded() {
        let many = |count: usize| (0..count).map(|n| format!("CUSTOM_{n}")).collect();
        assert_eq!(
            checked_list("traits", many(50)).map(|list| list.len()),
            Ok(50)
        );
        assert!(checked_list("traits", many(51)).is_err());
        let list = ["CUSTOM_B", "CUSTOM_A", "CUSTOM_B"].map(str::to_owned);
        let kept = checked_list("traits", list.to_vec()).unwrap();
        assert_eq!(kept, ["CUSTOM_A", "CUSTOM_B"]);
        let less = changed("n", &kept, TraitChange::Remove("CUSTOM_A".to_owned())).unwrap();
        assert_eq!(less, ["CUSTOM_B"]);
        let missing = changed("n", &less, TraitChange::Remove("CUSTOM_A".to_owned()));
        assert_eq!(missing.unwrap_err().name(), "not_found");
    }
}
