//! JSON that is kept for later and hardly ever looked into: as text it takes a tenth of the memory.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::common::is_shared;

/// A JSON value, kept as text, which copies have in common. Is written and read as the value itself.
#[derive(Debug, Clone, Default)]
pub struct Packed(Option<Arc<RawValue>>);

impl Packed {
    /// The value.
    pub fn unpack(&self) -> Value {
        // It was written from a value.
        self.text()
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default()
    }

    /// True for what is not there.
    pub fn is_null(&self) -> bool {
        self.0.is_none()
    }

    /// The text itself, to be shared.
    pub(super) fn text_mut(&mut self) -> Option<&mut Arc<RawValue>> {
        self.0.as_mut()
    }

    /// True once its text was shared, and where there is nothing to share.
    pub fn is_shared(&self) -> bool {
        self.0.as_ref().is_none_or(is_shared)
    }

    fn text(&self) -> Option<&str> {
        self.0.as_ref().map(|text| text.get())
    }
}

impl PartialEq for Packed {
    fn eq(&self, other: &Packed) -> bool {
        self.text() == other.text()
    }
}

impl From<&Value> for Packed {
    fn from(value: &Value) -> Packed {
        if value.is_null() {
            return Packed::default();
        }
        Packed(to_raw_value(value).ok().map(Arc::from))
    }
}

impl Serialize for Packed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Some(text) => text.serialize(serializer),
            None => serializer.serialize_unit(),
        }
    }
}

impl<'de> Deserialize<'de> for Packed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Packed, D::Error> {
        Value::deserialize(deserializer).map(|value| Packed::from(&value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_packed_comes_out_again_and_is_stored_as_itself() {
        for value in [
            json!(null),
            json!({"a": [1, -2.5, "ü\n"], "b": {}}),
            json!("text"),
        ] {
            let packed = Packed::from(&value);
            assert_eq!(packed.unpack(), value);
            assert_eq!(serde_json::to_value(&packed).unwrap(), value);
            assert_eq!(serde_json::to_string(&packed).unwrap(), value.to_string());
            assert_eq!(serde_json::from_value::<Packed>(value).unwrap(), packed);
        }
        assert_eq!(Packed::default().unpack(), Value::Null);
    }
}
