//! Documents of things that are described by a table of fields: how a new one is read, and how a patch is applied.
//!
//! Pure. A thing is plain data whose keys are spelled as on the wire; its table says what each field may hold and since when it is
//! there. Used for what belongs to a node besides its ports, and for the objects that stand for themselves (`crate::catalog`).

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::event::{PatchOp, PatchOperation};
use super::patch::apply_below;
use super::refused::Refused;
use super::state::Object;
use super::values::{bad, boolean, is_name, mac_address, object_of, optional_uuid, text_of};

/// One field that can be set.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// As spelled on the wire.
    pub name: &'static str,
    /// The microversion it is there since, the minor number.
    pub since: u16,
    /// What it may hold.
    pub holds: Holds,
    /// It must be given and can't be removed.
    pub required: bool,
    /// It can be changed once the thing is there.
    pub patchable: bool,
}

/// What a field may hold, apart from null.
#[derive(Debug, Clone, Copy)]
pub enum Holds {
    /// Text of at most so many characters.
    Text(usize),
    /// A name that paths can carry.
    Name,
    /// A MAC address, stored in lower case with colons.
    Mac,
    /// A UUID.
    Uuid,
    /// A JSON object.
    Object,
    /// True or false, or one of the words clients use for them.
    Bool,
    /// A whole number from the first to the second, also as digits in a text.
    Number(i64, i64),
    /// What a function makes of it; it is told the field's name and the value.
    Checked(fn(&str, &Value) -> Result<Value, Refused>),
}

/// A field that need not be there.
pub const fn field(name: &'static str, since: u16, holds: Holds) -> Field {
    Field {
        name,
        since,
        holds,
        required: false,
        patchable: true,
    }
}

/// A field that must be there.
pub const fn required(name: &'static str, since: u16, holds: Holds) -> Field {
    Field {
        required: true,
        ..field(name, since, holds)
    }
}

/// A field that is set for good.
pub const fn fixed(mut field: Field) -> Field {
    field.patchable = false;
    field
}

/// The first field of a document that is younger than `microversion`, and since when it is there.
pub fn too_new(
    fields: &[Field],
    document: &Object,
    microversion: u16,
) -> Option<(&'static str, u16)> {
    let field = fields
        .iter()
        .find(|field| field.since > microversion && document.contains_key(field.name));
    field.map(|field| (field.name, field.since))
}

/// The first field of a patch that is younger than `microversion`, and since when it is there.
pub fn patch_too_new(
    fields: &[Field],
    operations: &[PatchOperation],
    microversion: u16,
) -> Option<(&'static str, u16)> {
    let is_named = |field: &&Field| {
        operations.iter().any(|operation| {
            operation
                .path
                .first()
                .is_some_and(|root| root == field.name)
        })
    };
    let field = fields
        .iter()
        .find(|field| field.since > microversion && is_named(field));
    field.map(|field| (field.name, field.since))
}

/// Reads a new thing. What is not given, or null, gets its default.
///
/// # Errors
/// [`Refused::BadValue`] naming the field.
pub fn read_new<T: DeserializeOwned>(fields: &[Field], document: &Object) -> Result<T, Refused> {
    let mut whole = Map::new();
    for (name, value) in document {
        let field = named(fields, name)?;
        if !value.is_null() {
            whole.insert(name.clone(), checked(field, value)?);
        }
    }
    for field in fields.iter().filter(|field| field.required) {
        if !whole.contains_key(field.name) {
            return Err(bad(field.name, "is missing"));
        }
    }
    made(whole)
}

/// Applies a patch to a copy. A removed field gets its default.
///
/// # Errors
/// [`Refused::BadValue`] naming the field.
pub fn patched<T: Serialize + DeserializeOwned>(
    fields: &[Field],
    old: &T,
    operations: &[PatchOperation],
) -> Result<T, Refused> {
    let Ok(Value::Object(mut whole)) = serde_json::to_value(old) else {
        return Err(bad("path", "what is stored can't be written as JSON"));
    };
    for operation in operations {
        let Some((root, below)) = operation.path.split_first() else {
            return Err(bad("path", "is empty; name a field, for example /extra"));
        };
        let field = named(fields, root)?;
        if !field.patchable {
            return Err(bad(root, "can't be changed by a patch"));
        }
        let value = if below.is_empty() {
            match operation.op {
                PatchOp::Remove => Value::Null,
                PatchOp::Add | PatchOp::Replace => operation.value.clone(),
            }
        } else {
            let mut value = match (whole.get(root), field.holds) {
                (Some(value), _) if !value.is_null() => value.clone(),
                (_, Holds::Object) => Value::Object(Map::new()),
                (_, _) => Value::Null,
            };
            if !value.is_object() && !value.is_array() {
                return Err(bad(root, "has no parts that could be changed"));
            }
            apply_below(&mut value, below, operation, &operation.path.join("/"))?;
            value
        };
        if !value.is_null() {
            whole.insert(root.clone(), checked(field, &value)?);
        } else if field.required {
            return Err(bad(root, "can't be removed; replace it"));
        } else {
            whole.remove(root);
        }
    }
    made(whole)
}

fn named<'a>(fields: &'a [Field], name: &str) -> Result<&'a Field, Refused> {
    let found = fields.iter().find(|field| field.name == name);
    found.ok_or_else(|| bad(name, "is not a field that can be set"))
}

fn made<T: DeserializeOwned>(whole: Object) -> Result<T, Refused> {
    serde_json::from_value(Value::Object(whole)).map_err(|error| {
        bad(
            "document",
            &format!("has a value of the wrong type: {error}"),
        )
    })
}

/// A value in the form it is stored in.
fn checked(field: &Field, value: &Value) -> Result<Value, Refused> {
    let name = field.name;
    match field.holds {
        Holds::Text(characters_max) => {
            let text = text_of(name, value, characters_max)?;
            if field.required && text.is_empty() {
                return Err(bad(name, "must not be empty"));
            }
        }
        Holds::Name => {
            if !is_name(text_of(name, value, 255)?) {
                return Err(bad(
                    name,
                    "a name is made of letters, digits and - . _ ~ only, is no UUID, and none of the words that paths use",
                ));
            }
        }
        Holds::Mac => {
            let text = text_of(name, value, 255)?;
            let Some(address) = mac_address(text) else {
                return Err(bad(
                    name,
                    &format!("expected a MAC address such as 52:54:00:12:34:56 but got {text:?}"),
                ));
            };
            return Ok(Value::String(address));
        }
        Holds::Uuid => {
            if let Some(id) = optional_uuid(name, value)? {
                return Ok(Value::String(id.to_string()));
            }
        }
        Holds::Object => {
            object_of(name, value)?;
        }
        Holds::Bool => {
            let Some(is_true) = boolean(value) else {
                return Err(bad(name, "must be true or false"));
            };
            return Ok(Value::Bool(is_true));
        }
        Holds::Number(least, most) => return number(name, value, least, most).map(Value::from),
        Holds::Checked(check) => return check(name, value),
    }
    Ok(value.clone())
}

/// A whole number within limits, also as digits in a text.
///
/// # Errors
/// [`Refused::BadValue`].
pub fn number(name: &str, value: &Value, least: i64, most: i64) -> Result<i64, Refused> {
    let number = match value {
        Value::String(digits) => digits.trim().parse().ok(),
        other => other.as_i64(),
    };
    number
        .filter(|number| (least..=most).contains(number))
        .ok_or_else(|| {
            bad(
                name,
                &format!("must be a whole number from {least} to {most}"),
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;

    #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    struct Thing {
        name: String,
        note: Option<String>,
        address: Option<String>,
        extra: Object,
        size: i64,
        shared: bool,
    }

    const FIELDS: &[Field] = &[
        fixed(required("name", 1, Holds::Name)),
        field("note", 5, Holds::Text(5)),
        field("address", 1, Holds::Mac),
        field("extra", 1, Holds::Object),
        field("size", 1, Holds::Number(0, 9)),
        field("shared", 9, Holds::Bool),
    ];

    fn read(document: Value) -> Result<Thing, Refused> {
        read_new(FIELDS, document.as_object().unwrap())
    }

    fn operation(op: PatchOp, path: &str, value: Value) -> PatchOperation {
        PatchOperation {
            op,
            path: path.split('/').map(str::to_owned).collect(),
            value,
        }
    }

    #[test]
    fn values_are_read_in_one_form_and_null_is_the_default() {
        let thing = read(json!({
            "name": "n", "note": null, "address": "52-54-00-AA-00-01", "size": "7", "shared": "True",
        }))
        .unwrap();
        assert_eq!(thing.address.as_deref(), Some("52:54:00:aa:00:01"));
        assert_eq!((thing.note, thing.size, thing.shared), (None, 7, true));
    }

    #[test]
    fn every_bad_value_is_named() {
        for (document, field) in [
            (json!({}), "name"),
            (json!({"name": null}), "name"),
            (json!({"name": "a b"}), "name"),
            (json!({"name": "n", "note": "longer"}), "note"),
            (json!({"name": "n", "address": "x"}), "address"),
            (json!({"name": "n", "extra": []}), "extra"),
            (json!({"name": "n", "size": 10}), "size"),
            (json!({"name": "n", "size": 1.5}), "size"),
            (json!({"name": "n", "shared": "maybe"}), "shared"),
            (json!({"name": "n", "colour": 1}), "colour"),
        ] {
            match read(document.clone()) {
                Err(Refused::BadValue { field: named, .. }) => assert_eq!(named, field),
                other => panic!("{document}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_patch_changes_parts_and_brings_defaults_back() {
        let thing = read(json!({"name": "n", "note": "a", "extra": {"a": {"b": 1}}})).unwrap();
        let patched: Thing = patched(
            FIELDS,
            &thing,
            &[
                operation(PatchOp::Remove, "note", Value::Null),
                operation(PatchOp::Replace, "extra/a/b", json!(2)),
                operation(PatchOp::Add, "size", json!(3)),
            ],
        )
        .unwrap();
        assert_eq!((patched.note, patched.size), (None, 3));
        assert_eq!(Value::Object(patched.extra), json!({"a": {"b": 2}}));
    }

    #[test]
    fn a_patch_that_can_not_be_is_refused() {
        let thing = read(json!({"name": "n"})).unwrap();
        for wrong in [
            operation(PatchOp::Remove, "name", Value::Null),
            operation(PatchOp::Replace, "name", json!("m")),
            operation(PatchOp::Add, "colour", json!(1)),
            operation(PatchOp::Remove, "extra/a", Value::Null),
            operation(PatchOp::Add, "size/a", json!(1)),
            operation(PatchOp::Add, "size", json!("x")),
        ] {
            let refused = patched(FIELDS, &thing, std::slice::from_ref(&wrong)).unwrap_err();
            assert_eq!(refused.name(), "bad_value", "{wrong:?}");
        }
    }

    #[test]
    fn fields_younger_than_the_request_are_found() {
        let document = json!({"name": "n", "note": "a"});
        let document = document.as_object().unwrap();
        assert_eq!(too_new(FIELDS, document, 4), Some(("note", 5)));
        assert_eq!(too_new(FIELDS, document, 5), None);
        let patch = [operation(PatchOp::Add, "shared", json!(true))];
        assert_eq!(patch_too_new(FIELDS, &patch, 8), Some(("shared", 9)));
        assert_eq!(patch_too_new(FIELDS, &patch, 9), None);
    }
}
