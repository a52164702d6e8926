//! What is left out where a node is written: most of what could be said of it is not said of most nodes, and each row is written often
//! and kept in memory by the thousand.

/// True for what a reader takes a missing field for.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
