//! JSON that is kept for later and hardly ever looked into: as text it takes a tenth of the memory.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// A JSON value, kept as text. Is written and read as the value itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Packed(Option<Box<str>>);

impl Packed {
    /// The value.
    pub fn unpack(&self) -> Value {
        let text = self.0.as_deref();
        // It was written from a value.
        text.and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default()
    }
}

impl From<&Value> for Packed {
    fn from(value: &Value) -> Packed {
        let text = (!value.is_null()).then(|| value.to_string());
        Packed(text.map(String::into_boxed_str))
    }
}

impl Serialize for Packed {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.unpack().serialize(serializer)
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
            assert_eq!(serde_json::from_value::<Packed>(value).unwrap(), packed);
        }
        assert_eq!(Packed::default().unpack(), Value::Null);
    }
}
