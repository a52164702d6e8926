//! What one agent process remembers: its list of commands and what it wrote.
//!
//! The command engine fills it, `serve` shows it, and it dies with the process. Entries are never removed. Also here:
//! the two forms in which the agent says no, a refused request and a failed command.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::sync::Notify;

pub(crate) const RUNNING: &str = "RUNNING";
pub(crate) const SUCCEEDED: &str = "SUCCEEDED";
pub(crate) const FAILED: &str = "FAILED";

/// A request that the agent does not carry out, with the agent's own status and text.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) text: String,
}

impl Refusal {
    pub(crate) fn new(status: u16, text: impl Into<String>) -> Self {
        Self {
            status,
            text: text.into(),
        }
    }
}

/// An error in the agent's own terms, as it appears in `command_error`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AgentError {
    pub(crate) kind: &'static str,
    pub(crate) code: u16,
    pub(crate) message: &'static str,
    pub(crate) details: String,
}

impl AgentError {
    /// What becomes of an error that is not the agent's own.
    pub(crate) fn execution(details: impl Into<String>) -> Self {
        let message = "Command execution failed";
        Self {
            kind: "CommandExecutionError",
            code: 500,
            message,
            details: details.into(),
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({"type": self.kind, "code": self.code, "message": self.message, "details": self.details})
    }
}

/// How an asynchronous command ended.
pub(crate) enum Outcome {
    Succeeded(Value),
    Failed(AgentError),
    VersionMismatch(AgentError),
}

/// The commands of one process, oldest first.
#[derive(Default)]
pub(crate) struct History {
    /// Held while a command is being accepted, and by a synchronous one while it runs.
    pub(crate) turn: tokio::sync::Mutex<()>,
    list: Mutex<Vec<Entry>>,
    changed: Notify,
    /// Answer to `get_partition_uuids`; `{}` until an image was written by this process.
    partition_uuids: Mutex<Value>,
    /// Images that are still on the ramdisk and need no second download.
    cached_images: Mutex<HashSet<String>>,
}

pub(crate) struct Entry {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) status: &'static str,
    pub(crate) error: Value,
    pub(crate) result: Value,
    /// Cannot be shown.
    pub(crate) is_poisoned: bool,
}

impl History {
    pub(crate) fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn push(&self, entry: Entry) {
        self.entries().push(entry);
    }

    pub(crate) fn finish(&self, id: &str, status: &'static str, error: Value, result: Value) {
        if let Some(entry) = self.entries().iter_mut().find(|entry| entry.id == id) {
            (entry.status, entry.error, entry.result) = (status, error, result);
        }
        self.changed.notify_waiters();
    }

    /// Waits until a command is not running.
    pub(crate) async fn finished(&self, id: &str) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if !self
                .entries()
                .iter()
                .any(|entry| entry.id == id && entry.status == RUNNING)
            {
                return;
            }
            changed.await;
        }
    }

    /// Whether the last command is running.
    pub(crate) fn is_busy(&self) -> bool {
        self.entries()
            .last()
            .is_some_and(|entry| entry.status == RUNNING)
    }

    /// All commands as JSON.
    pub(crate) fn show_all(&self) -> Result<Value, Refusal> {
        let commands = self
            .entries()
            .iter()
            .map(Entry::show)
            .collect::<Result<Vec<_>, _>>()?;
        Ok(json!({"commands": commands}))
    }

    /// One command as JSON.
    pub(crate) fn show(&self, id: &str) -> Result<Value, Refusal> {
        match self.entries().iter().find(|entry| entry.id == id) {
            Some(entry) => entry.show(),
            None => Err(Refusal::new(
                404,
                format!("Not found: Command Result with id {id} not found."),
            )),
        }
    }

    pub(crate) fn partition_uuids(&self) -> Value {
        let uuids = self
            .partition_uuids
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if uuids.is_null() { json!({}) } else { uuids }
    }

    pub(crate) fn has_written(&self) -> bool {
        !self
            .partition_uuids
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_null()
    }

    /// Remembers what was written; `uuids` as `get_partition_uuids` shall answer.
    pub(crate) fn note_written(&self, image_id: &str, is_kept: bool, uuids: Value) {
        *self
            .partition_uuids
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = uuids;
        if is_kept {
            self.cached_images
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(image_id.to_owned());
        }
    }

    /// Forgets what was written.
    pub(crate) fn note_erased(&self) {
        *self
            .partition_uuids
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Value::Null;
    }

    /// Whether this process wrote the image before and kept it.
    pub(crate) fn keeps(&self, image_id: &str) -> bool {
        self.cached_images
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(image_id)
    }
}

impl Entry {
    pub(crate) fn running(id: &str, name: &str) -> Self {
        Self {
            id: id.to_owned(),
            name: name.to_owned(),
            status: RUNNING,
            error: Value::Null,
            result: Value::Null,
            is_poisoned: false,
        }
    }

    fn show(&self) -> Result<Value, Refusal> {
        if self.is_poisoned {
            return Err(Refusal::new(
                500,
                "Object of type TypeError is not JSON serializable",
            ));
        }
        Ok(json!({
            "id": self.id,
            "command_name": self.name,
            "command_status": self.status,
            "command_error": self.error,
            "command_result": self.result,
        }))
    }
}
