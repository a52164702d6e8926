//! Reads JSON patches: lists of operations with a path and a value.

use serde_json::Value;

use super::error::Error;
use crate::node::{PatchOp, PatchOperation};

/// More operations than any client sends.
const OPERATIONS_MAX: usize = 1000;

/// Reads the operations of a patch. From 1.98 on `~0` and `~1` in paths stand for `~` and `/`.
///
/// # Errors
/// [`Error::Bad`] naming the operation by its number, beginning with 1.
pub fn operations(document: &Value, microversion: u16) -> Result<Vec<PatchOperation>, Error> {
    let Value::Array(items) = document else {
        return Err(Error::Bad(
            "A patch is a list of operations, such as [{\"op\": \"add\", \"path\": \"/extra/a\", \"value\": 1}].".to_owned(),
        ));
    };
    if items.len() > OPERATIONS_MAX {
        return Err(Error::Bad(format!(
            "The patch has {} operations; at most {OPERATIONS_MAX} are allowed.",
            items.len()
        )));
    }
    items
        .iter()
        .enumerate()
        .map(|(index, item)| {
            operation(item, microversion).map_err(|problem| {
                Error::Bad(format!("Operation {} of the patch: {problem}", index + 1))
            })
        })
        .collect()
}

fn operation(item: &Value, microversion: u16) -> Result<PatchOperation, String> {
    let Value::Object(item) = item else {
        return Err("is not an object.".to_owned());
    };
    if let Some(unknown) = item
        .keys()
        .find(|key| !["op", "path", "value"].contains(&key.as_str()))
    {
        return Err(format!(
            "has the unknown key {unknown:?}; only op, path and value are known."
        ));
    }
    let op = match item.get("op").and_then(Value::as_str) {
        Some("add") => PatchOp::Add,
        Some("remove") => PatchOp::Remove,
        Some("replace") => PatchOp::Replace,
        _ => return Err("op must be add, remove or replace.".to_owned()),
    };
    let Some(path) = item.get("path").and_then(Value::as_str) else {
        return Err("path is missing or not a string.".to_owned());
    };
    let path = split(path, microversion)?;
    let value = match (op, item.get("value")) {
        (PatchOp::Remove, _) => Value::Null,
        (PatchOp::Add | PatchOp::Replace, Some(value)) => value.clone(),
        (PatchOp::Add | PatchOp::Replace, None) => return Err("value is missing.".to_owned()),
    };
    Ok(PatchOperation { op, path, value })
}

fn split(path: &str, microversion: u16) -> Result<Vec<String>, String> {
    let refused = || {
        format!(
            "path {path:?} is not made of words of letters, digits, - and _ with a slash before each."
        )
    };
    let rest = path.strip_prefix('/').ok_or_else(refused)?;
    rest.split('/')
        .map(|word| {
            let plain = if microversion >= 98 {
                unescaped(word).ok_or_else(refused)?
            } else {
                word.to_owned()
            };
            let is_right = |c: char| {
                c.is_ascii_alphanumeric()
                    || "-_".contains(c)
                    || (microversion >= 98 && "~/".contains(c))
            };
            if plain.is_empty() || !plain.chars().all(is_right) {
                return Err(refused());
            }
            Ok(plain)
        })
        .collect()
}

fn unescaped(word: &str) -> Option<String> {
    let mut plain = String::with_capacity(word.len());
    let mut characters = word.chars();
    while let Some(c) = characters.next() {
        if c != '~' {
            plain.push(c);
            continue;
        }
        match characters.next() {
            Some('0') => plain.push('~'),
            Some('1') => plain.push('/'),
            _ => return None,
        }
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn operations_are_read_in_order() {
        let read = operations(
            &json!([{"op": "add", "path": "/extra/a-b_1", "value": null}, {"op": "remove", "path": "/name"}]),
            50,
        )
        .unwrap();
        assert_eq!(read[0].path, ["extra", "a-b_1"]);
        assert_eq!(
            (read[1].op, &read[1].value),
            (PatchOp::Remove, &Value::Null)
        );
        assert_eq!(operations(&json!([]), 1), Ok(vec![]));
    }

    #[test]
    fn bad_operations_are_named_by_number() {
        for wrong in [
            json!(5),
            json!({"op": "move", "path": "/a", "value": 1}),
            json!({"op": "add", "path": "/a"}),
            json!({"op": "add", "value": 1}),
            json!({"op": "add", "path": "extra", "value": 1}),
            json!({"op": "add", "path": "/", "value": 1}),
            json!({"op": "add", "path": "/extra//a", "value": 1}),
            json!({"op": "add", "path": "/extra/a b", "value": 1}),
            json!({"op": "add", "path": "/extra/a.b", "value": 1}),
            json!({"op": "add", "path": "/extra/a~1b", "value": 1}),
            json!({"op": "add", "path": "/extra/a", "value": 1, "from": "/b"}),
        ] {
            let fine = json!({"op": "remove", "path": "/name"});
            match operations(&json!([fine, wrong]), 97) {
                Err(Error::Bad(text)) => assert!(text.contains("Operation 2"), "{text}"),
                other => panic!("{wrong}: {other:?}"),
            }
        }
        assert!(operations(&json!({"op": "add"}), 50).is_err());
    }

    #[test]
    fn tildes_escape_from_their_version_on() {
        let patch = json!([{"op": "add", "path": "/extra/a~1b~0c", "value": 1}]);
        assert_eq!(operations(&patch, 98).unwrap()[0].path, ["extra", "a/b~c"]);
        let broken = json!([{"op": "add", "path": "/extra/a~2", "value": 1}]);
        assert!(operations(&broken, 98).is_err());
    }
}
