//! The queue to the thread that writes, and the handle by which it is given work.
//!
//! It is one queue, first in, first out; who may put how much into it is decided here. What becomes of it is decided in `writer`.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

#[cfg(test)]
use super::connection::AnyConnection;
use super::types::{RecordSave, Save, SaveError};
use super::writer::SAVES_PER_COMMIT;
use crate::node::Node;

/// How many saves that wait for their turn are in the queue at once, in places of their own: enough for the next commit to be full.
const PATIENT_SAVES: usize = 2 * SAVES_PER_COMMIT;
/// What else may be in the queue: a wish to close it, a fact about the database.
const OTHER_JOBS: usize = 16;

pub(super) type SaveAnswer = oneshot::Sender<Result<(), SaveError>>;

/// A change of one thing.
#[derive(Clone)]
pub(super) enum Task {
    Node(Box<Save>),
    /// Nothing but its signs of life.
    Signs(Arc<Node>),
    Record(Box<RecordSave>),
}

/// What the thread can be asked.
pub(super) enum Job {
    Save(Task, SaveAnswer, OwnedSemaphorePermit),
    SetMeta {
        key: String,
        value: String,
        /// Also where there is a value already.
        replace: bool,
        answer: oneshot::Sender<Result<String, SaveError>>,
    },
    Close,
    /// Lets a test do something to the thread's own connection.
    #[cfg(test)]
    Meddle(Box<dyn FnOnce(&mut AnyConnection) + Send>),
}

/// Hands changes to the one thread that writes. Cheap to clone.
///
/// There is one queue, first in, first out, and its places are of two kinds, so that neither kind of save keeps the other out:
/// places for those who can be told to come again, and a few for those who wait for one.
#[derive(Clone)]
pub struct Writer {
    queue: mpsc::Sender<Job>,
    places: Arc<Semaphore>,
    patient_places: Arc<Semaphore>,
}

impl Writer {
    /// Stores one change; the future is ready when it is committed. The change takes its place in the queue at once, in the order
    /// of the calls, whenever the future is polled; a caller that stops waiting does not undo it.
    ///
    /// # Errors
    /// See [`SaveError`]; `Overloaded` at once when the queue is full.
    pub fn save(&self, save: Save) -> impl Future<Output = Result<(), SaveError>> + Send + use<> {
        let given = self.try_save(save);
        async move { given?.await }
    }

    /// As [`Writer::save`], but whether there was a place in the queue is known at once.
    ///
    /// # Errors
    /// `Overloaded` or `Unavailable`; the rest comes with the future.
    pub fn try_save(
        &self,
        save: Save,
    ) -> Result<impl Future<Output = Result<(), SaveError>> + Send + use<>, SaveError> {
        self.queued_at_once(Task::Node(Box::new(save)))
    }

    /// Stores the signs of life of a node that is otherwise stored as it is; whether there was a place in the queue is known at once.
    ///
    /// # Errors
    /// `Overloaded` or `Unavailable`; the rest comes with the future: `VersionConflict` where there is no such node.
    pub fn try_save_signs(
        &self,
        node: Arc<Node>,
    ) -> Result<impl Future<Output = Result<(), SaveError>> + Send + use<>, SaveError> {
        self.queued_at_once(Task::Signs(node))
    }

    /// As [`Writer::save`], for an object that stands for itself.
    ///
    /// # Errors
    /// See [`SaveError`]; `Overloaded` at once when the queue is full.
    pub async fn save_record(&self, save: RecordSave) -> Result<(), SaveError> {
        self.queued_at_once(Task::Record(Box::new(save)))?.await
    }

    /// Stores one change that nobody can be asked to repeat: where the queue is full it waits for a place, first come, first served.
    /// The future is ready when the change is committed; dropped before that, the change may or may not be stored.
    ///
    /// # Errors
    /// See [`SaveError`]; never `Overloaded`.
    pub fn save_in_turn(
        &self,
        save: Save,
    ) -> impl Future<Output = Result<(), SaveError>> + Send + use<> {
        let writer = self.clone();
        async move {
            let place = Arc::clone(&writer.patient_places).acquire_owned().await;
            // Nobody closes it.
            let place = place.map_err(|_| gone())?;
            writer.queued(Task::Node(Box::new(save)), place)?.await
        }
    }

    /// Puts it into the queue, if there is a place.
    fn queued_at_once(
        &self,
        task: Task,
    ) -> Result<impl Future<Output = Result<(), SaveError>> + Send + use<>, SaveError> {
        let place = Arc::clone(&self.places)
            .try_acquire_owned()
            .map_err(|_| SaveError::Overloaded)?;
        self.queued(task, place)
    }

    fn queued(
        &self,
        task: Task,
        place: OwnedSemaphorePermit,
    ) -> Result<impl Future<Output = Result<(), SaveError>> + Send + use<>, SaveError> {
        let (answer, answered) = oneshot::channel();
        self.give(Job::Save(task, answer, place))?;
        Ok(async move { answered.await.unwrap_or_else(|_| Err(gone())) })
    }

    /// Stores a fact about the whole database unless there is one under this key; returns the one that is stored then.
    ///
    /// # Errors
    /// `Overloaded` or `Unavailable`.
    pub async fn set_meta_if_absent(&self, key: &str, value: &str) -> Result<String, SaveError> {
        self.meta(key, value, false).await
    }

    /// Stores a fact about the whole database, in place of the one under this key if there is one.
    ///
    /// # Errors
    /// `Overloaded` or `Unavailable`.
    pub async fn set_meta(&self, key: &str, value: &str) -> Result<(), SaveError> {
        self.meta(key, value, true).await.map(|_| ())
    }

    async fn meta(&self, key: &str, value: &str, replace: bool) -> Result<String, SaveError> {
        let (answer, answered) = oneshot::channel();
        self.give(Job::SetMeta {
            key: key.to_owned(),
            value: value.to_owned(),
            replace,
            answer,
        })?;
        answered.await.unwrap_or_else(|_| Err(gone()))
    }

    /// The way in for what is no change.
    pub(super) fn queue(&self) -> mpsc::Sender<Job> {
        self.queue.clone()
    }

    fn give(&self, job: Job) -> Result<(), SaveError> {
        self.queue.try_send(job).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => SaveError::Overloaded,
            mpsc::error::TrySendError::Closed(_) => gone(),
        })
    }

    #[cfg(test)]
    pub(super) fn meddle(&self, with: impl FnOnce(&mut AnyConnection) + Send + 'static) {
        self.give(Job::Meddle(Box::new(with))).unwrap();
    }

    /// Lets the thread that writes die of a panic.
    #[cfg(test)]
    pub(crate) fn dies(&self) {
        self.meddle(|_| panic!("a fault of ours"));
    }
}

fn gone() -> SaveError {
    SaveError::Unavailable(
        "the thread that writes to the database has ended; restart the conductor".to_owned(),
    )
}

/// A queue with `queue_max` places for those who can be told to come again, and its other end.
pub(super) fn new(queue_max: usize) -> (Writer, mpsc::Receiver<Job>) {
    let (queue, jobs) = mpsc::channel(queue_max + PATIENT_SAVES + OTHER_JOBS);
    let writer = Writer {
        queue,
        places: Arc::new(Semaphore::new(queue_max)),
        patient_places: Arc::new(Semaphore::new(PATIENT_SAVES)),
    };
    (writer, jobs)
}
