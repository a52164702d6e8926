//! One operation of a JSON patch, applied inside a document.

use serde_json::{Map, Value};

use super::attributes::bad;
use super::event::{PatchOp, PatchOperation};
use super::refused::Refused;

/// How deep a document may be nested, itself being level 1. Bodies of requests are limited when they are read, but operations can
/// stack one level on another, and what is too deep once written could never be read again.
const NESTED_MAX: usize = 24;

/// Applies one operation below the root of a document.
pub(super) fn apply_below(
    whole: &mut Value,
    path: &[String],
    operation: &PatchOperation,
    full_path: &str,
) -> Result<(), Refused> {
    let missing = || bad(full_path, "there is nothing at this path");
    let Some((last, parents)) = path.split_last() else {
        return Err(missing());
    };
    if operation.op != PatchOp::Remove && path.len() + depth(&operation.value) > NESTED_MAX {
        return Err(bad(
            full_path,
            &format!("would be nested deeper than {NESTED_MAX} levels"),
        ));
    }
    let mut place = whole;
    for key in parents {
        place = match place {
            Value::Object(object) => object.get_mut(key).ok_or_else(missing)?,
            Value::Array(items) => index(key)
                .and_then(|index| items.get_mut(index))
                .ok_or_else(missing)?,
            _ => return Err(missing()),
        };
        // What was null may be filled.
        if place.is_null() && operation.op == PatchOp::Add {
            *place = Value::Object(Map::new());
        }
    }
    match place {
        Value::Object(object) => match operation.op {
            PatchOp::Add => {
                object.insert(last.clone(), operation.value.clone());
            }
            PatchOp::Replace => {
                *object.get_mut(last).ok_or_else(missing)? = operation.value.clone();
            }
            PatchOp::Remove => {
                object.remove(last).ok_or_else(missing)?;
            }
        },
        Value::Array(items) => match operation.op {
            PatchOp::Add if last == "-" => items.push(operation.value.clone()),
            PatchOp::Add => match index(last) {
                Some(index) if index <= items.len() => items.insert(index, operation.value.clone()),
                _ => return Err(missing()),
            },
            PatchOp::Replace => {
                *index(last)
                    .and_then(|index| items.get_mut(index))
                    .ok_or_else(missing)? = operation.value.clone();
            }
            PatchOp::Remove => match index(last) {
                Some(index) if index < items.len() => {
                    items.remove(index);
                }
                _ => return Err(missing()),
            },
        },
        _ => return Err(missing()),
    }
    Ok(())
}

/// Whether a whole document is not nested too deeply.
///
/// # Errors
/// [`Refused::BadValue`] naming the field.
pub(super) fn check_depth(whole: &Value, field: &str) -> Result<(), Refused> {
    if depth(whole) <= NESTED_MAX {
        return Ok(());
    }
    Err(bad(
        field,
        &format!("would be nested deeper than {NESTED_MAX} levels"),
    ))
}

fn index(key: &str) -> Option<usize> {
    key.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| key.parse().ok())
        .flatten()
}

/// 0 for a plain value, 1 for a list or object of plain values.
fn depth(value: &Value) -> usize {
    let below = match value {
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(object) => object.values().map(depth).max(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return 0,
    };
    1 + below.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn add(whole: &mut Value, path: &[&str], value: Value) -> Result<(), Refused> {
        let path: Vec<String> = path.iter().map(|&word| word.to_owned()).collect();
        let operation = PatchOperation {
            op: PatchOp::Add,
            path: path.clone(),
            value,
        };
        apply_below(whole, &path, &operation, "extra/a")
    }

    #[test]
    fn operations_can_not_stack_levels_for_ever() {
        let mut whole = json!({});
        for level in 1..NESTED_MAX {
            add(&mut whole, &vec!["a"; level], json!({})).unwrap();
        }
        assert_eq!(depth(&whole), NESTED_MAX);
        let before = whole.clone();
        for value in [json!({}), json!([1])] {
            add(&mut whole, &["a"; NESTED_MAX], value).unwrap_err();
        }
        add(&mut whole, &["a", "b"], before.clone()).unwrap_err();
        assert_eq!(whole, before);
        add(&mut whole, &["a"; NESTED_MAX], json!(1)).unwrap();
    }
}
