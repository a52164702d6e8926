//! Large parts of a node that most steps don't look into: folded they are JSON text, which takes a small part of the memory and goes
//! into the row as it stands.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

/// A value that is opened when somebody looks into it, until it is folded again. Copies have both forms in common until one of them is
/// changed. Reads, compares and is written as the value itself.
#[derive(Debug, Clone)]
pub struct Kept<T> {
    /// None for the default value, and while the value is newer than it.
    text: Option<Arc<RawValue>>,
    /// The value, if somebody looked or it is newer than the text.
    open: OnceLock<Arc<T>>,
}

impl<T> Default for Kept<T> {
    fn default() -> Kept<T> {
        Kept {
            text: None,
            open: OnceLock::new(),
        }
    }
}

impl<T> Kept<T> {
    /// True while nobody has looked into it since it was folded.
    pub fn is_folded(&self) -> bool {
        self.open.get().is_none()
    }
}

impl<T: DeserializeOwned + Default + PartialEq> Kept<T> {
    /// True for the default value.
    pub fn is_default(&self) -> bool {
        self.text.is_none() && self.open.get().is_none_or(|open| **open == T::default())
    }
}

impl<T: Serialize + DeserializeOwned + Default + PartialEq> Kept<T> {
    /// Lets go of the open form.
    pub fn fold(&mut self) {
        if let (None, Some(open)) = (&self.text, self.open.get())
            && **open != T::default()
        {
            self.text = text_of(&**open);
            if self.text.is_none() {
                return;
            }
        }
        self.open = OnceLock::new();
    }
}

/// Its text; none if that does not read back as the value.
fn text_of<T: Serialize + DeserializeOwned + PartialEq>(value: &T) -> Option<Arc<RawValue>> {
    let text = to_raw_value(value).ok()?;
    let read: T = serde_json::from_str(text.get()).ok()?;
    (read == *value).then(|| text.into())
}

fn read<T: DeserializeOwned + Default>(text: Option<&Arc<RawValue>>) -> Arc<T> {
    let read = text.map(|text| serde_json::from_str(text.get()));
    // Only what reads back as itself is folded.
    Arc::new(read.and_then(Result::ok).unwrap_or_default())
}

impl<T: DeserializeOwned + Default> Deref for Kept<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.open.get_or_init(|| read(self.text.as_ref()))
    }
}

/// What is reached through this is copied first if others have it too, and the text no longer holds; so it should only be asked for by
/// whoever changes something.
impl<T: DeserializeOwned + Default + Clone> DerefMut for Kept<T> {
    fn deref_mut(&mut self) -> &mut T {
        let text = self.text.take();
        self.open.get_or_init(|| read(text.as_ref()));
        // It was just opened, so there is never need of another.
        let open = self.open.get_mut();
        Arc::make_mut(open.unwrap_or_else(|| Box::leak(Box::default())))
    }
}

impl<T> From<T> for Kept<T> {
    fn from(value: T) -> Kept<T> {
        Kept {
            text: None,
            open: OnceLock::from(Arc::new(value)),
        }
    }
}

impl<T: DeserializeOwned + Default + PartialEq> PartialEq for Kept<T> {
    fn eq(&self, other: &Kept<T>) -> bool {
        match (&self.text, &other.text) {
            (Some(text), Some(other)) => Arc::ptr_eq(text, other) || text.get() == other.get(),
            (None, None) => match (self.open.get(), other.open.get()) {
                (Some(open), Some(other)) => Arc::ptr_eq(open, other) || open == other,
                (open, other) => [open, other]
                    .into_iter()
                    .flatten()
                    .all(|open| **open == T::default()),
            },
            _ => **self == **other,
        }
    }
}

impl<T: Serialize + DeserializeOwned + Default> Serialize for Kept<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.text {
            Some(text) => text.serialize(serializer),
            None => (**self).serialize(serializer),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Kept<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Kept<T>, D::Error> {
        T::deserialize(deserializer).map(Kept::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(value: Vec<i32>) -> Kept<Vec<i32>> {
        let mut kept = Kept::from(value);
        kept.fold();
        assert!(kept.is_folded());
        kept
    }

    fn open_of<T>(kept: &Kept<T>) -> *const T {
        Arc::as_ptr(kept.open.get().unwrap())
    }

    #[test]
    fn it_is_opened_once_and_folds_without_being_written_anew() {
        let mut kept = folded(vec![1, 2]);
        let text = kept.text.clone().unwrap();
        assert_eq!(*kept, [1, 2]);
        let opened = open_of(&kept);
        assert_eq!((kept.len(), open_of(&kept)), (2, opened));
        kept.fold();
        assert!(kept.is_folded());
        assert!(Arc::ptr_eq(kept.text.as_ref().unwrap(), &text));
    }

    #[test]
    fn a_change_is_in_the_next_text_and_not_in_copies() {
        let one = folded(vec![1, 2]);
        let mut other = one.clone();
        other.push(3);
        assert_eq!((&*one, &*other), (&vec![1, 2], &vec![1, 2, 3]));
        assert_eq!(serde_json::to_string(&other).unwrap(), "[1,2,3]");
        other.fold();
        assert_eq!(*other, [1, 2, 3]);
        let open = Kept::from(vec![1]);
        let mut copy = open.clone();
        assert_eq!(open_of(&open), open_of(&copy));
        copy.push(2);
        assert_eq!((&*open, &*copy), (&vec![1], &vec![1, 2]));
    }

    #[test]
    fn it_compares_as_the_value_in_whatever_form_it_is() {
        let mut changed = folded(vec![7]);
        changed.push(1);
        changed.pop();
        let same = [Kept::from(vec![7]), folded(vec![7]), changed];
        let others = [
            Kept::default(),
            folded(vec![]),
            folded(vec![8]),
            vec![8].into(),
        ];
        for one in &same {
            assert!(same.iter().all(|other| one == other));
            assert!(others.iter().all(|other| one != other));
            assert!(others.iter().all(|other| other != one));
        }
        assert_eq!(folded(vec![]), Kept::default());
        assert_eq!(Kept::<Vec<i32>>::from(vec![]), Kept::default());
        // What can be told by the texts opens nothing.
        let (one, other) = (folded(vec![7]), folded(vec![7]));
        assert!(one == other && one != folded(vec![8]));
        assert!(one.is_folded() && other.is_folded());
    }

    #[test]
    fn it_is_written_and_read_as_the_value() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct Whole {
            part: Kept<Vec<i32>>,
        }
        for part in [Kept::default(), folded(vec![1]), vec![1].into()] {
            let whole = Whole { part };
            let text = serde_json::to_string(&whole).unwrap();
            assert!(
                text == r#"{"part":[]}"# || text == r#"{"part":[1]}"#,
                "{text}"
            );
            assert_eq!(serde_json::from_str::<Whole>(&text).unwrap(), whole);
            let value = serde_json::to_value(&whole).unwrap();
            assert_eq!(serde_json::from_value::<Whole>(value).unwrap(), whole);
        }
        assert!(serde_json::from_str::<Whole>(r#"{"part":"a"}"#).is_err());
    }

    #[test]
    fn what_does_not_read_back_as_itself_stays_open() {
        let mut kept = Kept::from(f64::INFINITY);
        kept.fold();
        assert_eq!(*kept, f64::INFINITY);
    }
}
