//! Objects that stand for themselves: created, changed and removed by way of the one writer.
//!
//! They have no actor: a change is made from what is stored and stored only over that, and made again where somebody was faster.

use uuid::Uuid;

use super::{Conductor, DeliverError};
use crate::catalog::{Kind, Record};
use crate::node::Refused;
use crate::store::{Ident, ReadError, RecordSave, SaveError};

/// How often somebody else may be faster in a row.
const TRIES: usize = 10;

impl Conductor {
    /// Stores a new object.
    ///
    /// # Errors
    /// `Duplicate`, `Overloaded` or `Unavailable`; nothing was stored then.
    pub async fn create_record<T: Kind>(&self, id: Uuid, is: T) -> Result<Record<T>, DeliverError> {
        let record = Record::new(id, is, self.now());
        let saving = self.shared.writer.save_record(RecordSave::insert(&record));
        saving.await?;
        Ok(record)
    }

    /// Changes an object; `change` may be called more than once.
    ///
    /// # Errors
    /// What `change` refuses; as [`Conductor::create_record`]; `NotFound`.
    pub async fn change_record<T: Kind>(
        &self,
        id: Uuid,
        change: impl Fn(&T) -> Result<T, Refused>,
    ) -> Result<Record<T>, DeliverError> {
        for _ in 0..TRIES {
            let old = self.record::<T>(id).await?;
            let is = change(&old.is).map_err(DeliverError::Refused)?;
            if is == old.is {
                return Ok(old);
            }
            let new = old.with(is, self.now());
            let save = RecordSave::update(&new, old.version);
            match self.shared.writer.save_record(save).await {
                Ok(()) => return Ok(new),
                Err(SaveError::VersionConflict) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(SaveError::VersionConflict.into())
    }

    /// Removes an object if `may_go` lets it; that may be called more than once.
    ///
    /// # Errors
    /// As [`Conductor::change_record`].
    pub async fn remove_record<T: Kind>(
        &self,
        id: Uuid,
        may_go: impl Fn(&T) -> Result<(), Refused>,
    ) -> Result<(), DeliverError> {
        for _ in 0..TRIES {
            let old = self.record::<T>(id).await?;
            may_go(&old.is).map_err(DeliverError::Refused)?;
            let save = RecordSave::remove(&old);
            match self.shared.writer.save_record(save).await {
                Ok(()) => return Ok(()),
                Err(SaveError::VersionConflict) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(SaveError::VersionConflict.into())
    }

    /// An object as it is stored.
    ///
    /// # Errors
    /// `NotFound`, `Unavailable`.
    pub async fn record<T: Kind>(&self, id: Uuid) -> Result<Record<T>, DeliverError> {
        match self.reader().record(Ident::Id(id)).await {
            Ok(Some(record)) => Ok(record),
            Ok(None) | Err(ReadError::UnknownMarker) => Err(DeliverError::NotFound),
            Err(ReadError::Unavailable(why)) => Err(DeliverError::Unavailable(why)),
        }
    }
}
