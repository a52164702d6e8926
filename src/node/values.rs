//! Single values as clients spell them: names, UUIDs, MAC addresses, true and false; and the refusal that names the field.
//!
//! Pure; used by the tables of node and port fields, and by the HTTP side for what stands in paths and queries.

use serde_json::Value;
use uuid::Uuid;

use super::refused::Refused;
use super::state::Object;

/// Words that stand behind `/v1/nodes/` in paths.
const RESERVED_NAMES: [&str; 6] = [
    "maintenance",
    "management",
    "states",
    "vendor_passthru",
    "detail",
    "validate",
];

/// True for what can be the name of a node or a port.
pub fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 255
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte))
        && text.bytes().any(|byte| byte != b'.')
        && Uuid::try_parse(text).is_err()
        && !RESERVED_NAMES.contains(&text)
}

/// True or false, or one of the words clients use for them, in any case.
pub fn boolean(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(is_true) => Some(*is_true),
        Value::String(text) => match text.trim().to_ascii_lowercase().as_str() {
            "1" | "t" | "true" | "y" | "yes" | "on" => Some(true),
            "0" | "f" | "false" | "n" | "no" | "off" => Some(false),
            _ => None,
        },
        Value::Number(number) => match number.as_i64() {
            Some(0) => Some(false),
            Some(1) => Some(true),
            _ => None,
        },
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A MAC address in lower case with colons; read with colons or dashes.
pub fn mac_address(text: &str) -> Option<String> {
    let separator = if text.contains('-') { '-' } else { ':' };
    let parts: Vec<&str> = text.split(separator).collect();
    let is_pair =
        |part: &&str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    (parts.len() == 6 && parts.iter().all(is_pair)).then(|| parts.join(":").to_ascii_lowercase())
}

/// A refusal that names the field.
pub fn bad(field: &str, problem: &str) -> Refused {
    Refused::BadValue {
        field: field.to_owned(),
        problem: problem.to_owned(),
    }
}

/// Text of at most so many characters.
///
/// # Errors
/// [`Refused::BadValue`].
pub fn text_of<'a>(
    name: &str,
    value: &'a Value,
    characters_max: usize,
) -> Result<&'a str, Refused> {
    let Value::String(text) = value else {
        return Err(bad(name, "must be a string"));
    };
    let characters = text.chars().count();
    if characters > characters_max {
        return Err(bad(
            name,
            &format!("has {characters} characters; at most {characters_max} are allowed"),
        ));
    }
    if text.contains('\0') {
        return Err(bad(name, "must not contain the character NUL"));
    }
    Ok(text)
}

/// An object.
///
/// # Errors
/// [`Refused::BadValue`].
pub fn object_of<'a>(name: &str, value: &'a Value) -> Result<&'a Object, Refused> {
    value
        .as_object()
        .ok_or_else(|| bad(name, "must be an object"))
}

/// A UUID, or null.
///
/// # Errors
/// [`Refused::BadValue`].
pub fn optional_uuid(name: &str, value: &Value) -> Result<Option<Uuid>, Refused> {
    if value.is_null() {
        return Ok(None);
    }
    let text = text_of(name, value, 255)?;
    match Uuid::try_parse(text) {
        Ok(id) if matches!(text.len(), 32 | 36) => Ok(Some(id)),
        _ => Err(bad(name, &format!("expected a UUID but got {text:?}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn mac_addresses_get_one_spelling() {
        assert_eq!(
            mac_address("52-54-00-AA-00-03").as_deref(),
            Some("52:54:00:aa:00:03")
        );
        for text in [
            "",
            "52:54:00:aa:00",
            "52:54:00:aa:00:0g",
            "52:54:00:aa:00:03:04",
            "525400aa0003",
            "5:254:00:aa:00:03",
        ] {
            assert_eq!(mac_address(text), None, "{text}");
        }
    }

    #[test]
    fn true_and_false_have_many_spellings() {
        for yes in [
            json!(true),
            json!("True"),
            json!("1"),
            json!("on"),
            json!("Y"),
            json!(1),
        ] {
            assert_eq!(boolean(&yes), Some(true), "{yes}");
        }
        for no in [
            json!(false),
            json!("FALSE"),
            json!("0"),
            json!("off"),
            json!("n"),
            json!(0),
        ] {
            assert_eq!(boolean(&no), Some(false), "{no}");
        }
        for neither in [
            json!(null),
            json!("maybe"),
            json!(2),
            json!([]),
            json!({}),
            json!(""),
        ] {
            assert_eq!(boolean(&neither), None, "{neither}");
        }
    }

    #[test]
    fn names_are_what_paths_can_carry() {
        for name in ["n", "ns~name", "a.b-c_1~", "detail2"] {
            assert!(is_name(name), "{name}");
        }
        for other in [
            "",
            "a b",
            "a/b",
            "ä",
            "detail",
            "validate",
            "6523b921218d4849a3bb3ab765c2fcdc",
        ] {
            assert!(!is_name(other), "{other}");
        }
    }
}
