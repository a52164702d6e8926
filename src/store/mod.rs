//! Where nodes are kept: an embedded SQLite file or a PostgreSQL database, with the same tables.
//!
//! One thread writes ([`Writer`]), many read ([`Reader`]); [`open()`] makes both. A save is one node with its ports, its command and
//! new lines of its history, stored all or nothing, and only over the version it was made from. The conductor's actors save,
//! the HTTP side only reads. Nothing here decides what a node becomes, and nothing here knows what an agent or a request is.
//!
//! ```text
//! actors ─ Writer ─ bounded queue ─▶ one thread ─ one transaction for all that wait ─▶ nodes ports parts commands history inventories catalog meta
//! HTTP, recovery ─ Reader ─ blocking threads ─ small pool ──────────────────────────────────────▲
//! ```
//! Lists of nodes are made in memory, from what the thread that writes puts there after each commit (`lists.rs`).
//! The interesting part begins in `writer.rs`.

mod apply;
mod catalog;
mod commands;
mod connection;
mod fault;
mod history;
mod inventories;
mod lists;
mod meta;
mod nodes;
mod open;
mod page;
mod parts;
mod ports;
mod queue;
mod reader;
mod rows;
mod schema;
mod signs;
#[cfg(test)]
mod tests;
mod types;
mod writer;

pub use commands::COMMANDS_KEPT_PER_NODE;
pub use history::HISTORY_KEPT_PER_NODE;
pub use open::{OpenError, Store, StoreSettings, open, open_observed};
pub use queue::Writer;
pub use reader::Reader;
pub use types::{
    AllocationLink, Change, Columns, HistoryEntry, Ident, LedgerEntry, NODE_SORT_KEYS, NodeFilter,
    NodeOutline, PART_SORT_KEYS, PORT_SORT_KEYS, Page, PartFilter, PartOfNode, PortFilter,
    PortOfNode, RECORD_SORT_KEYS, ReadError, RecordFilter, RecordSave, Save, SaveError,
};
pub use writer::{Commit, CommitObserver, SAVES_PER_COMMIT, WriterEnd, WriterHandle};
