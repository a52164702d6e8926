//! One operation of a JSON patch, applied inside a document.

use serde_json::{Map, Value};

use super::attributes::bad;
use super::event::{PatchOp, PatchOperation};
use super::refused::Refused;

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

fn index(key: &str) -> Option<usize> {
    key.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| key.parse().ok())
        .flatten()
}
