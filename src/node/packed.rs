//! JSON that is kept for later and hardly ever looked into: as text it takes a tenth of the memory.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Weak};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// So many texts may be known before it is worth a look which of them are gone.
const ROOM_LEAST: usize = 64;

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

    /// From now on it has its text in common with those that were shared before and are the same.
    pub fn share(&mut self, common: &mut CommonTexts) {
        if let Some(text) = &mut self.0 {
            common.share(text);
        }
    }

    /// True once it was shared, and where there is nothing to share.
    pub fn is_shared(&self) -> bool {
        self.0.as_ref().is_none_or(|text| Arc::weak_count(text) > 0)
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

/// Texts that many nodes have: agents that run the same ramdisk tell the same of their steps. Forgets what no node has any more.
#[derive(Debug, Default)]
pub struct CommonTexts {
    /// By what their content hashes to.
    known: HashMap<u64, Weak<RawValue>>,
    /// How many there may be before those that are gone are forgotten.
    room: usize,
}

impl CommonTexts {
    fn share(&mut self, text: &mut Arc<RawValue>) {
        let mut hasher = DefaultHasher::new();
        text.get().hash(&mut hasher);
        let place = hasher.finish();
        match self.known.get(&place).and_then(Weak::upgrade) {
            Some(known) if known.get() == text.get() => return *text = known,
            _ => {}
        }
        if self.known.len() >= self.room {
            self.known.retain(|_, known| known.strong_count() > 0);
            self.room = (self.known.len() * 2).max(ROOM_LEAST);
        }
        self.known.insert(place, Arc::downgrade(text));
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

    #[test]
    fn the_same_text_is_kept_once_and_no_longer_than_somebody_has_it() {
        let mut common = CommonTexts::default();
        let mut shared = |value: &Value| {
            let mut packed = Packed::from(value);
            assert!(!packed.is_shared());
            packed.share(&mut common);
            assert!(packed.is_shared());
            assert_eq!(packed.unpack(), *value);
            packed.0.unwrap()
        };
        let (one, same, other) = (
            shared(&json!([1])),
            shared(&json!([1])),
            shared(&json!([2])),
        );
        assert!(Arc::ptr_eq(&one, &same) && !Arc::ptr_eq(&one, &other));
        for number in 0..10 * ROOM_LEAST {
            shared(&json!({"number": number}));
        }
        assert!(Arc::ptr_eq(&one, &shared(&json!([1]))));
        assert!(common.known.len() <= ROOM_LEAST);
        assert!(Packed::default().is_shared());
    }
}
