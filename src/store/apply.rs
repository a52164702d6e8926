//! What one save does to the tables; the transaction around it is the writer's.

use super::connection::AnyConnection;
use super::fault::Fault;
use super::queue::Task;
use super::types::{Change, Save};
use super::{catalog, commands, history, inventories, nodes, parts, ports, signs};

/// The last numbers given out in the orders of creation.
pub(super) struct Seqs {
    nodes: i64,
    ports: i64,
    parts: i64,
    catalog: i64,
}

impl Seqs {
    pub(super) fn load(conn: &mut AnyConnection) -> diesel::QueryResult<Seqs> {
        Ok(Seqs {
            nodes: nodes::last_seq(conn)?,
            ports: ports::last_seq(conn)?,
            parts: parts::last_seq(conn)?,
            catalog: catalog::last_seq(conn)?,
        })
    }
}

/// Carries out one save. After `VersionConflict` nothing of it was written; after any other fault some of it may have been.
pub(super) fn apply(
    conn: &mut AnyConnection,
    seqs: &mut Seqs,
    host: &str,
    task: &Task,
) -> Result<(), Fault> {
    match task {
        Task::Node(save) => apply_node(conn, seqs, host, save),
        Task::Signs(node) => signs::set(conn, node),
        Task::Record(save) => catalog::save(conn, save, || {
            seqs.catalog += 1;
            seqs.catalog
        }),
    }
}

fn apply_node(
    conn: &mut AnyConnection,
    seqs: &mut Seqs,
    host: &str,
    save: &Save,
) -> Result<(), Fault> {
    let node = &*save.node;
    let (has_new_ports, has_new_parts) = match save.change {
        Change::Insert => {
            seqs.nodes += 1;
            nodes::insert(conn, node, seqs.nodes)?;
            (!node.ports.is_empty(), parts::has_any(node))
        }
        Change::Update { from_version } => {
            nodes::update(conn, node, from_version, save.columns)?;
            (save.ports_changed, save.parts_changed)
        }
        Change::Remove { from_version } => {
            nodes::remove(conn, node.id, from_version)?;
            return match save.allocation {
                Some(link) => catalog::link(conn, node, link),
                None => Ok(()),
            };
        }
    };
    if has_new_ports {
        ports::replace(conn, node, || {
            seqs.ports += 1;
            seqs.ports
        })?;
    }
    if has_new_parts {
        parts::replace(conn, node, || {
            seqs.parts += 1;
            seqs.parts
        })?;
    }
    if let Some(link) = save.allocation {
        catalog::link(conn, node, link)?;
    }
    commands::save(conn, node)?;
    if let Some(inventory) = &save.inventory {
        inventories::set(conn, node.id, inventory)?;
    }
    history::add(conn, node.id, host, &save.history)?;
    Ok(())
}
