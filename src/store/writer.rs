//! The one thread that writes, and the handle by which its end is known. Work is given to it through `queue`.
//!
//! It takes the first save in its queue and whatever else is waiting, up to [`SAVES_PER_COMMIT`], and commits all in one
//! transaction: the cost of making a commit durable is shared by everybody who waits. Then, and only then, it answers. A save
//! that can't be carried out (a duplicate, another version) fails alone: the batch is undone and done again with a savepoint
//! around each save. What goes wrong with the database itself is answered `Unavailable`, and the thread lives on.
//!
//! The interesting part begins at [`Thread::run`].

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use diesel::connection::Connection;
use tokio::sync::{mpsc, oneshot};

use super::apply::{Seqs, apply};
use super::connection::{AnyConnection, Place};
use super::fault::{Fault, explain, is_outage};
use super::lists::Published;
use super::queue::{self, Job, SaveAnswer, Task, Writer};
use super::types::{Change, NodeOutline, ReadError, SaveError};
use super::{meta, nodes};
use crate::node::NodeId;

/// The most saves in one commit: beyond it the delay grows and the throughput doesn't.
pub const SAVES_PER_COMMIT: usize = 128;

/// One commit, for metrics.
#[derive(Debug, Clone, Copy)]
pub struct Commit {
    /// From the first save being taken to the end of the commit.
    pub took: Duration,
    /// How many saves it made durable.
    pub saves: usize,
}

/// Is told of every commit, on the writer's thread; must be quick.
pub type CommitObserver = Arc<dyn Fn(Commit) + Send + Sync>;

/// How the writer's thread came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriterEnd {
    /// As asked.
    Closed,
    /// By a fault of ours: nothing can be stored any more, and the process has to end.
    Died,
}

/// Watches and ends the writer's thread.
pub struct WriterHandle {
    queue: mpsc::Sender<Job>,
    ended: oneshot::Receiver<()>,
    end: Option<WriterEnd>,
    thread: Option<JoinHandle<()>>,
}

impl WriterHandle {
    /// Returns when the thread has ended, at once if it already has. May be dropped and called again.
    pub async fn ended(&mut self) -> WriterEnd {
        if let Some(end) = self.end {
            return end;
        }
        // The thread sends at its regular end; when it panics, the sender is dropped.
        let end = match (&mut self.ended).await {
            Ok(()) => WriterEnd::Closed,
            Err(_) => WriterEnd::Died,
        };
        self.end = Some(end);
        end
    }

    /// Stores what is in the queue, takes nothing more, and ends the thread. Returns when the database is closed.
    pub async fn close(mut self) -> WriterEnd {
        // Fails only if the thread has already ended.
        let _ = self.queue.send(Job::Close).await;
        let end = self.ended().await;
        if let Some(thread) = self.thread.take() {
            // It has sent its last word; what is left is closing the connection. How it ended is known.
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
        end
    }
}

/// What the thread starts with.
pub(super) struct Start {
    pub(super) place: Place,
    /// Connected, migrated, and holding the lock of a PostgreSQL database.
    pub(super) conn: AnyConnection,
    /// Holds the lock of a SQLite file.
    pub(super) lock: Option<File>,
    pub(super) host: String,
    pub(super) queue_max: usize,
    /// Where every change of a node is shown after its commit.
    pub(super) lists: Arc<Published>,
    pub(super) observe: CommitObserver,
}

/// Starts the thread.
pub(super) fn start(start: Start) -> Result<(Writer, WriterHandle), String> {
    let (writer, jobs) = queue::new(start.queue_max.max(1));
    let (tell, ended) = oneshot::channel();
    let Start {
        place,
        mut conn,
        lock,
        host,
        queue_max: _,
        lists,
        observe,
    } = start;
    let seqs = load(&mut conn, &place, &lists)?;
    let mut thread = Thread {
        file: file_at(&place),
        place,
        conn: Some(conn),
        seqs,
        lists,
        host,
        observe,
    };
    let thread = std::thread::Builder::new()
        .name("upbeat-writer".to_owned())
        .spawn(move || {
            thread.run(jobs);
            // First the connection, then the lock, then the word that both are free.
            drop(thread);
            drop(lock);
            // Nobody may be listening.
            let _ = tell.send(());
        })
        .map_err(|error| format!("the writer's thread can't be started: {error}"))?;
    let handle = WriterHandle {
        queue: writer.queue(),
        ended,
        end: None,
        thread: Some(thread),
    };
    Ok((writer, handle))
}

/// What became of the saves of one batch: one result each, or one fault of the database for all.
type Outcome = Result<Vec<Result<(), SaveError>>, Outage>;

/// The database's fault.
struct Outage {
    why: String,
    /// It happened before the commit began, so the batch may be tried again.
    is_before_commit: bool,
}

struct Thread {
    place: Place,
    /// None after the connection was lost, until it is needed again.
    conn: Option<AnyConnection>,
    /// The file the connection has opened; see `file_at`.
    file: Option<(u64, u64)>,
    seqs: Seqs,
    lists: Arc<Published>,
    host: String,
    observe: CommitObserver,
}

impl Thread {
    fn run(&mut self, mut jobs: mpsc::Receiver<Job>) {
        while let Some(job) = jobs.blocking_recv() {
            let mut batch = Vec::new();
            let mut next = Some(job);
            // A job that is not a save ends the batch, so that everything happens in the order of the queue.
            let mut other = None;
            while let Some(job) = next.take() {
                match job {
                    // Its place is free for the next one.
                    Job::Save(save, answer, _place) => batch.push((save, answer)),
                    job => {
                        other = Some(job);
                        break;
                    }
                }
                if batch.len() < SAVES_PER_COMMIT {
                    next = jobs.try_recv().ok();
                }
            }
            self.save_all(batch);
            match other {
                Some(Job::SetMeta {
                    key,
                    value,
                    replace,
                    answer,
                }) => {
                    // The caller may have given up.
                    let _ = answer.send(self.set_meta(&key, &value, replace));
                }
                Some(Job::Close) => jobs.close(),
                #[cfg(test)]
                Some(Job::Meddle(with)) => with(self.conn.as_mut().unwrap()),
                Some(Job::Save(..)) | None => {}
            }
        }
    }

    fn save_all(&mut self, batch: Vec<(Task, SaveAnswer)>) {
        if batch.is_empty() {
            return;
        }
        let began = Instant::now();
        let (saves, answers): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
        let outcome = self.with_connection(|conn, seqs, host, place| {
            let together = store_together(conn, seqs, host, place, &saves)?;
            match together {
                Some(results) => Ok(results),
                None => store_each(conn, seqs, host, place, &saves),
            }
        });
        let results = match outcome {
            Ok(results) => {
                self.show(&saves, &results);
                (self.observe)(Commit {
                    took: began.elapsed(),
                    saves: results.iter().filter(|result| result.is_ok()).count(),
                });
                results
            }
            Err(outage) => {
                tracing::error!(saves = saves.len(), why = outage.why, "nothing was stored");
                vec![Err(SaveError::Unavailable(outage.why)); saves.len()]
            }
        };
        for (answer, result) in answers.into_iter().zip(results) {
            // The caller may have given up; what was stored stays stored.
            let _ = answer.send(result);
        }
    }

    /// Lets lists show what was stored.
    fn show(&self, saves: &[Task], results: &[Result<(), SaveError>]) {
        let stored = saves
            .iter()
            .zip(results)
            .filter(|(_, result)| result.is_ok());
        let changed: Vec<Changed> = stored.filter_map(|(save, _)| Changed::by(save)).collect();
        self.lists.change(|lists| {
            for change in changed {
                match change {
                    Changed::Is(outline) => lists.put(outline),
                    Changed::Gone(id) => lists.remove(id),
                }
            }
        });
    }

    fn set_meta(&mut self, key: &str, value: &str, replace: bool) -> Result<String, SaveError> {
        self.with_connection(|conn, _, _, place| {
            let before = |error: diesel::result::Error| Outage {
                why: explain(place, &error),
                is_before_commit: true,
            };
            conn.begin_write().map_err(before)?;
            let stored = if replace {
                meta::set(conn, key, value).map(|()| value.to_owned())
            } else {
                meta::set_if_absent(conn, key, value)
            };
            match stored {
                Ok(stored) => {
                    commit(conn, place)?;
                    Ok(stored)
                }
                Err(error) => {
                    roll_back(conn);
                    Err(before(error))
                }
            }
        })
        .map_err(|outage| SaveError::Unavailable(outage.why))
    }

    /// Runs `work` on the connection; where that turns out to be lost, once more on a new one.
    fn with_connection<T>(
        &mut self,
        work: impl Fn(&mut AnyConnection, &mut Seqs, &str, &Place) -> Result<T, Outage>,
    ) -> Result<T, Outage> {
        let mut was_connected = self.conn.is_some();
        loop {
            self.connect()?;
            if self.file != file_at(&self.place) {
                return Err(Outage {
                    why: format!(
                        "{}: the file was removed or replaced while it was in use, so what is written now would be lost; stop, put the file back and start again",
                        self.place
                    ),
                    is_before_commit: true,
                });
            }
            let conn = self.conn.as_mut().expect("just connected");
            let outage = match work(conn, &mut self.seqs, &self.host, &self.place) {
                Ok(value) => return Ok(value),
                Err(outage) => outage,
            };
            if !conn.is_lost() {
                return Err(outage);
            }
            self.conn = None;
            if !(was_connected && outage.is_before_commit) {
                return Err(outage);
            }
            was_connected = false;
            tracing::warn!(why = outage.why, "connecting to the database again");
        }
    }

    fn connect(&mut self) -> Result<(), Outage> {
        if self.conn.is_some() {
            return Ok(());
        }
        let outage = |why| Outage {
            why,
            is_before_commit: true,
        };
        let place = &self.place;
        let mut conn = place
            .connect_writer()
            .map_err(|error| outage(super::open::unreachable(place, &error)))?;
        let explained = |error| outage(explain(place, &error));
        if !conn.take_advisory_lock().map_err(explained)? {
            return Err(outage(super::open::in_use(place)));
        }
        // Whether the last change was stored may not be known.
        self.seqs = load(&mut conn, place, &self.lists).map_err(outage)?;
        self.file = file_at(place);
        self.conn = Some(conn);
        Ok(())
    }
}

/// What lists show of a save.
enum Changed {
    Is(Arc<NodeOutline>),
    Gone(NodeId),
}

impl Changed {
    fn by(save: &Task) -> Option<Changed> {
        match save {
            Task::Node(save) => Some(match save.change {
                Change::Insert | Change::Update { .. } => {
                    Changed::Is(Arc::new(NodeOutline::from(&*save.node)))
                }
                Change::Remove { .. } => Changed::Gone(save.node.id),
            }),
            Task::Signs(_) | Task::Record(_) => None,
        }
    }
}

/// Reads what the thread has to know of what is stored.
fn load(conn: &mut AnyConnection, place: &Place, lists: &Published) -> Result<Seqs, String> {
    let seqs = Seqs::load(conn).map_err(|error| explain(place, &error))?;
    let loaded = nodes::load_lists(conn).map_err(|fault| match fault.explained(place) {
        ReadError::Unavailable(why) => why,
        ReadError::UnknownMarker => "a list of nodes has no such marker".to_owned(),
    })?;
    lists.change(|lists| *lists = loaded);
    Ok(seqs)
}

/// Stores all saves in one transaction. `None`: one of them is at fault in a way that leaves the transaction unusable, and nothing
/// was stored.
fn store_together(
    conn: &mut AnyConnection,
    seqs: &mut Seqs,
    host: &str,
    place: &Place,
    saves: &[Task],
) -> Result<Option<Vec<Result<(), SaveError>>>, Outage> {
    conn.begin_write().map_err(|error| Outage {
        why: explain(place, &error),
        is_before_commit: true,
    })?;
    let mut results = Vec::with_capacity(saves.len());
    for save in saves {
        match apply(conn, seqs, host, save) {
            Ok(()) => results.push(Ok(())),
            // Nothing was written for it, so there is nothing to undo.
            Err(Fault::Save(SaveError::VersionConflict)) => {
                results.push(Err(SaveError::VersionConflict));
            }
            Err(fault) => {
                roll_back(conn);
                return match fault {
                    Fault::Save(error) if saves.len() == 1 => Ok(Some(vec![Err(error)])),
                    Fault::Save(_) => Ok(None),
                    Fault::Database(error) if saves.len() == 1 || is_outage(&error) => {
                        Err(Outage {
                            why: explain(place, &error),
                            is_before_commit: true,
                        })
                    }
                    Fault::Database(_) => Ok(None),
                };
            }
        }
    }
    commit(conn, place)?;
    Ok(Some(results))
}

/// Stores all saves in one transaction, a savepoint around each, so that a bad one takes nobody with it.
fn store_each(
    conn: &mut AnyConnection,
    seqs: &mut Seqs,
    host: &str,
    place: &Place,
    saves: &[Task],
) -> Outcome {
    conn.begin_write().map_err(|error| Outage {
        why: explain(place, &error),
        is_before_commit: true,
    })?;
    let mut results = Vec::with_capacity(saves.len());
    for save in saves {
        match conn.transaction(|conn| apply(conn, seqs, host, save)) {
            Ok(()) => results.push(Ok(())),
            Err(Fault::Save(error)) => results.push(Err(error)),
            Err(Fault::Database(error)) => {
                let why = explain(place, &error);
                if is_outage(&error) || conn.is_lost() {
                    roll_back(conn);
                    return Err(Outage {
                        why,
                        is_before_commit: true,
                    });
                }
                match save {
                    Task::Node(save) => {
                        tracing::error!(node.id = %save.node.id, why, "not stored");
                    }
                    Task::Signs(node) => {
                        tracing::error!(node.id = %node.id, why, "signs of life were not stored");
                    }
                    Task::Record(_) => tracing::error!(why, "an object was not stored"),
                }
                results.push(Err(SaveError::Unavailable(why)));
            }
        }
    }
    commit(conn, place)?;
    Ok(results)
}

/// Which file the database is: device and inode; none for a server, or where no file is.
fn file_at(place: &Place) -> Option<(u64, u64)> {
    match place {
        Place::Sqlite(path) => {
            let about = std::fs::metadata(path).ok()?;
            Some((about.dev(), about.ino()))
        }
        Place::Postgres(_) => None,
    }
}

fn commit(conn: &mut AnyConnection, place: &Place) -> Result<(), Outage> {
    conn.commit().map_err(|error| {
        let mut why = explain(place, &error);
        if conn.is_lost() {
            why.push_str("; whether the last change was stored is not known, look at it again");
        }
        Outage {
            why,
            is_before_commit: false,
        }
    })
}

/// Undoes the transaction. Where that fails the connection counts as lost, and a new one is made.
fn roll_back(conn: &mut AnyConnection) {
    if let Err(error) = conn.rollback() {
        tracing::warn!(%error, "a transaction could not be undone");
    }
}
