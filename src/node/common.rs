//! What many nodes have alike is there once: agents that run the same ramdisk tell the same of their steps, and most deploys take the same.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Weak};

use serde_json::value::RawValue;

use super::steps::WorkStep;
use super::work::Work;

/// So many values may be known before it is worth a look which of them are gone.
const ROOM_LEAST: usize = 64;

/// What nodes have in common. Forgets what no node has any more.
#[derive(Debug, Default)]
pub struct Common {
    texts: Pool<RawValue>,
    steps: Pool<Vec<WorkStep>>,
}

impl Common {
    /// From now on the work has in common with others what is the same.
    pub(super) fn share(&mut self, work: &mut Work) {
        let told = [&mut work.agent_steps, &mut work.hardware_manager_version];
        for text in told.into_iter().filter_map(|packed| packed.text_mut()) {
            let place = hash(|hasher| text.get().hash(hasher));
            self.texts
                .share(place, text, |one, other| one.get() == other.get());
        }
        let steps = work.steps.whole_mut();
        let place = hash(|hasher| {
            for step in &**steps {
                (&step.interface, &step.step, step.priority).hash(hasher);
            }
        });
        self.steps.share(place, steps, Vec::eq);
    }
}

/// True once [`Common::share`] has been with it.
pub(super) fn is_shared<T: ?Sized>(value: &Arc<T>) -> bool {
    Arc::weak_count(value) > 0
}

/// Values of one kind, by what they hash to.
#[derive(Debug)]
struct Pool<T: ?Sized> {
    known: HashMap<u64, Weak<T>>,
    /// How many there may be before those that are gone are forgotten.
    room: usize,
}

impl<T: ?Sized> Default for Pool<T> {
    fn default() -> Pool<T> {
        Pool {
            known: HashMap::new(),
            room: 0,
        }
    }
}

impl<T: ?Sized> Pool<T> {
    fn share(&mut self, place: u64, value: &mut Arc<T>, is_same: impl Fn(&T, &T) -> bool) {
        match self.known.get(&place).and_then(Weak::upgrade) {
            Some(known) if is_same(&known, value) => return *value = known,
            _ => {}
        }
        if self.known.len() >= self.room {
            self.known.retain(|_, known| known.strong_count() > 0);
            self.room = (self.known.len() * 2).max(ROOM_LEAST);
        }
        self.known.insert(place, Arc::downgrade(value));
    }
}

fn hash(write: impl FnOnce(&mut DefaultHasher)) -> u64 {
    let mut hasher = DefaultHasher::new();
    write(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::limits::BootMode;
    use crate::node::packed::Packed;
    use crate::node::work::WorkKind;
    use crate::timestamp::Timestamp;
    use serde_json::{Value, json};

    fn work(told: &Value, priority: i64) -> Work {
        let mut work = Work::begun(WorkKind::Deploy, Timestamp(1), BootMode::Uefi, Vec::new());
        work.agent_steps = Packed::from(told);
        work.steps = vec![WorkStep::named("deploy", "write_image", priority)].into();
        work
    }

    fn text(work: &mut Work) -> &Arc<RawValue> {
        work.agent_steps.text_mut().unwrap()
    }

    #[test]
    fn the_same_is_kept_once_and_no_longer_than_somebody_has_it() {
        let mut common = Common::default();
        let mut shared = |told: &Value, priority| {
            let before = work(told, priority);
            let mut after = before.clone();
            assert!(!after.has_shared());
            common.share(&mut after);
            assert!(after.has_shared());
            assert_eq!(after, before);
            after
        };
        let mut one = shared(&json!([1]), 80);
        let mut same = shared(&json!([1]), 80);
        let mut other = shared(&json!([2]), 70);
        assert!(Arc::ptr_eq(text(&mut one), text(&mut same)));
        assert!(!Arc::ptr_eq(text(&mut one), text(&mut other)));
        assert!(Arc::ptr_eq(one.steps.whole_mut(), same.steps.whole_mut()));
        for number in 0..10 * ROOM_LEAST {
            shared(&json!({ "number": number }), i64::try_from(number).unwrap());
        }
        same = shared(&json!([1]), 80);
        assert!(Arc::ptr_eq(text(&mut one), text(&mut same)));
        assert!(Arc::ptr_eq(one.steps.whole_mut(), same.steps.whole_mut()));
        assert!(common.texts.known.len() <= ROOM_LEAST);
        assert!(common.steps.known.len() <= ROOM_LEAST);
    }

    #[test]
    fn steps_that_differ_in_what_is_not_hashed_are_told_apart() {
        let mut common = Common::default();
        let (mut one, mut other) = (work(&json!([1]), 80), work(&json!([1]), 80));
        other.steps[0].args.insert("a".to_owned(), json!(1));
        common.share(&mut one);
        common.share(&mut other);
        assert_ne!(one.steps, other.steps);
    }

    #[test]
    fn a_change_is_seen_by_nobody_else() {
        let mut common = Common::default();
        let (mut one, mut other) = (work(&json!([1]), 80), work(&json!([1]), 80));
        common.share(&mut one);
        common.share(&mut other);
        one.steps[0].priority = 7;
        assert_eq!(other.steps[0].priority, 80);
        assert!(!one.has_shared());
    }
}
