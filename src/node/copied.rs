//! Large parts of a node that most steps leave alone: the copies of a node have them in common until one of them is changed.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A value that is copied when it is changed, not when its owner is copied. Reads, compares and is written as the value itself.
#[derive(Debug, Clone, Default)]
pub struct CopyOnChange<T>(Arc<T>);

impl<T> CopyOnChange<T> {
    /// What the copies have in common.
    pub(super) fn whole(&self) -> &Arc<T> {
        &self.0
    }

    /// The same, to be put in the place of another that is equal.
    pub(super) fn whole_mut(&mut self) -> &mut Arc<T> {
        &mut self.0
    }
}

impl<T> Deref for CopyOnChange<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// What is reached through this is copied first if others have it too, so it should only be asked for by whoever changes something.
impl<T: Clone> DerefMut for CopyOnChange<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

impl<T> From<T> for CopyOnChange<T> {
    fn from(value: T) -> CopyOnChange<T> {
        CopyOnChange(Arc::new(value))
    }
}

impl<T: PartialEq> PartialEq for CopyOnChange<T> {
    fn eq(&self, other: &CopyOnChange<T>) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl<T: Serialize> Serialize for CopyOnChange<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for CopyOnChange<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<CopyOnChange<T>, D::Error> {
        T::deserialize(deserializer).map(CopyOnChange::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_have_it_in_common_until_one_is_changed() {
        let one = CopyOnChange::from(vec![1, 2]);
        let mut other = one.clone();
        assert!(Arc::ptr_eq(&one.0, &other.0));
        other.push(3);
        assert_eq!((&*one, &*other), (&vec![1, 2], &vec![1, 2, 3]));
        assert_ne!(one, other);
        other.pop();
        assert_eq!(one, other, "the same value in another place");
        assert_eq!(serde_json::to_string(&one).unwrap(), "[1,2]");
        assert_eq!(
            serde_json::from_str::<CopyOnChange<Vec<i32>>>("[1,2]").unwrap(),
            one
        );
    }
}
