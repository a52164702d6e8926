//! Objects that stand for themselves and not for a part of a node: chassis, deploy templates, runbooks, inspection rules and
//! allocations.
//!
//! Pure. Each kind is plain data with a table of its fields; what is said of it once it is there is the same for all and stands
//! here. The store keeps all of them in one table, the HTTP side serves all of them by the same handlers.

pub mod allocation;
mod chassis;
mod deploy_template;
mod inspection_rule;
mod runbook;
pub mod steps;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use self::allocation::{Allocation, AllocationState};
pub use self::chassis::Chassis;
pub use self::deploy_template::DeployTemplate;
pub use self::inspection_rule::{InspectionRule, PRIORITY_MAX};
pub use self::runbook::Runbook;

use crate::node::fields::{self, Field};
use crate::node::values::optional_uuid;
use crate::node::{NodeId, Object, PatchOperation, Refused};
use crate::timestamp::Timestamp;

/// An object: its UUID, its version, its times, and what it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record<T> {
    /// Its UUID.
    pub id: Uuid,
    /// Raised by one with every change; the store refuses to go backwards.
    pub version: u64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Option<Timestamp>,
    /// What it is.
    pub is: T,
}

impl<T> Record<T> {
    /// A new one.
    pub fn new(id: Uuid, is: T, now: Timestamp) -> Record<T> {
        Record {
            id,
            version: 1,
            created_at: now,
            updated_at: None,
            is,
        }
    }

    /// The next version, with other contents.
    pub fn with(&self, is: T, now: Timestamp) -> Record<T> {
        Record {
            id: self.id,
            version: self.version + 1,
            created_at: self.created_at,
            updated_at: Some(now),
            is,
        }
    }
}

/// What lists of objects filter by; each kind has some of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "named as on the wire")]
pub struct Columns {
    pub name: Option<String>,
    pub owner: Option<String>,
    pub state: Option<String>,
    pub resource_class: Option<String>,
    pub node: Option<NodeId>,
}

/// One kind of objects.
pub trait Kind:
    Clone + PartialEq + std::fmt::Debug + Default + Serialize + DeserializeOwned + Send + Sync + 'static
{
    /// The word for rows.
    const NAME: &'static str;
    /// The word for sentences, at their beginning.
    const TITLE: &'static str;
    /// What can be set, apart from `uuid`.
    const FIELDS: &'static [Field];

    /// What lists filter by.
    fn columns(&self) -> Columns {
        Columns::default()
    }

    /// What must hold of the whole, at a microversion; `old` is what it was before, if it was there.
    ///
    /// # Errors
    /// [`Refused::BadValue`] naming the field.
    fn check(&self, old: Option<&Self>, microversion: u16) -> Result<(), Refused> {
        let _ = (old, microversion);
        Ok(())
    }
}

/// Reads the document of a new object: the UUID it asks for, and what it is.
///
/// # Errors
/// [`Refused::BadValue`] naming the field.
pub fn read_new<T: Kind>(
    document: &Object,
    microversion: u16,
) -> Result<(Option<Uuid>, T), Refused> {
    let mut rest = document.clone();
    let id = match rest.remove("uuid") {
        Some(value) => optional_uuid("uuid", &value)?,
        None => None,
    };
    let new: T = fields::read_new(T::FIELDS, &rest)?;
    new.check(None, microversion)?;
    Ok((id, new))
}

/// What a patch makes of an object.
///
/// # Errors
/// [`Refused::BadValue`] naming the field.
pub fn patched<T: Kind>(
    old: &T,
    operations: &[PatchOperation],
    microversion: u16,
) -> Result<T, Refused> {
    let new: T = fields::patched(T::FIELDS, old, operations)?;
    new.check(Some(old), microversion)?;
    Ok(new)
}

#[cfg(test)]
mod tests;
