//! Nodes: how they are written, found and listed.
//!
//! Free functions over a connection; the writer and the readers call them.

use std::collections::HashMap;

use diesel::prelude::*;

use super::connection::{AnyConnection, Db, directly};
use super::fault::{Fault, ReadFault, violated};
use super::lists::Lists;
use super::page::time_or;
use super::rows::{NodeRow, OutlineRow, StateRow, folded, node_from, number, outline_from, text};
use super::schema::{nodes, ports as ports_table};
use super::types::{Columns, Ident, NodeFilter, NodeOutline, Page, SaveError};
use super::{parts, ports, signs};
use crate::node::{Node, NodeId};

/// Nodes in one query for what hangs on them: bounded because a statement takes a bounded number of values.
pub(super) const NODES_PER_QUERY: usize = 1_000;

/// Writes a new node, without its ports.
pub(super) fn insert(conn: &mut AnyConnection, node: &Node, seq: i64) -> Result<(), Fault> {
    let insert =
        diesel::insert_into(nodes::table).values((nodes::seq.eq(seq), NodeRow::from(node)));
    directly!(conn, |conn| insert.execute(conn)).map_err(|error| duplicate(error, node))?;
    Ok(())
}

/// Writes these columns of a node over its version `from`, without its ports. Where that version is not stored, nothing is changed.
pub(super) fn update(
    conn: &mut AnyConnection,
    node: &Node,
    from: u64,
    columns: Columns,
) -> Result<(), Fault> {
    let row = diesel::update(
        nodes::table
            .filter(nodes::id.eq(node.id.to_string()))
            // Older where signs of life were stored since, which have rows of their own.
            .filter(nodes::version.le(number(from))),
    );
    let changed = match columns {
        Columns::State => {
            let update = row.set(StateRow::from(node));
            directly!(conn, |conn| update.execute(conn))
        }
        Columns::All => {
            let update = row.set(NodeRow::from(node));
            directly!(conn, |conn| update.execute(conn))
        }
    };
    one(changed.map_err(|error| duplicate(error, node))?)
}

/// Removes a node of version `from` with everything that hangs on it. Where that version is not stored, nothing is changed.
pub(super) fn remove(conn: &mut AnyConnection, node: NodeId, from: u64) -> Result<(), Fault> {
    let removed = diesel::delete(
        nodes::table
            .filter(nodes::id.eq(node.to_string()))
            .filter(nodes::version.le(number(from))),
    )
    .execute(conn)?;
    one(removed)
}

fn one(changed: usize) -> Result<(), Fault> {
    if changed == 1 {
        Ok(())
    } else {
        Err(Fault::Save(SaveError::VersionConflict))
    }
}

fn duplicate(error: diesel::result::Error, node: &Node) -> Fault {
    let attributes = &node.attributes;
    let (field, value) = match violated(&error) {
        Some("nodes.id") => ("uuid", Some(node.id.to_string())),
        Some("nodes.name") => ("name", attributes.name.clone()),
        Some("nodes.instance_uuid") => ("instance_uuid", attributes.instance_uuid.clone()),
        _ => return Fault::Database(error),
    };
    Fault::Save(SaveError::Duplicate {
        field,
        value: value.unwrap_or_default(),
    })
}

/// The last number of the order of creation.
pub(super) fn last_seq(conn: &mut AnyConnection) -> QueryResult<i64> {
    let last: Option<i64> = nodes::table
        .select(diesel::dsl::max(nodes::seq))
        .first(conn)?;
    Ok(last.unwrap_or(0))
}

/// One node, with its ports.
pub(super) fn find(
    conn: &mut AnyConnection,
    ident: &Ident<NodeId>,
) -> Result<Option<Node>, ReadFault> {
    let query = nodes::table
        .select((nodes::id, nodes::body))
        .into_boxed::<Db>();
    let query = match ident {
        Ident::Id(id) => query.filter(nodes::id.eq(id.to_string())),
        Ident::Name(name) => query.filter(nodes::name.eq(text(name))),
    };
    let rows: Vec<(String, String)> = query.load(conn)?;
    let mut found = read_all(rows)?;
    signs::attach(conn, &mut found)?;
    ports::attach(conn, &mut found)?;
    parts::attach(conn, &mut found)?;
    Ok(found.pop())
}

/// Nodes by filter and page, with their ports. `lists` is at most as new as what `conn` sees: a node that changed since is shown as it
/// is now, and only if it still belongs there.
pub(super) fn list(
    conn: &mut AnyConnection,
    lists: &Lists,
    filter: &NodeFilter,
    mut page: Page,
) -> Result<Vec<Node>, ReadFault> {
    let wanted = page.limit;
    let mut found = Vec::new();
    loop {
        page.limit = wanted - found.len();
        let outlines = lists.page(filter, &page)?;
        let ids: Vec<NodeId> = outlines.iter().map(|outline| outline.id).collect();
        found.extend(
            by_ids(conn, &ids)?
                .into_iter()
                .filter(|node| filter.lets_through(&NodeOutline::from(node))),
        );
        match outlines.last() {
            // Where some are gone, others take their place.
            Some(last) if outlines.len() == page.limit && found.len() < wanted => {
                page.marker = Some(last.id.0);
            }
            _ => break,
        }
    }
    signs::attach(conn, &mut found)?;
    ports::attach(conn, &mut found)?;
    parts::attach(conn, &mut found)?;
    Ok(found)
}

/// Those of these nodes that are still there, in the same order, without anything that hangs on them.
fn by_ids(conn: &mut AnyConnection, ids: &[NodeId]) -> Result<Vec<Node>, ReadFault> {
    let mut found = Vec::with_capacity(ids.len());
    for some in ids.chunks(NODES_PER_QUERY) {
        let ids: Vec<String> = some.iter().map(NodeId::to_string).collect();
        let rows: Vec<(String, String)> = nodes::table
            .filter(nodes::id.eq_any(&ids))
            .select((nodes::id, nodes::body))
            .load(conn)?;
        let mut bodies: HashMap<String, String> = rows.into_iter().collect();
        let in_order = ids
            .into_iter()
            .filter_map(|id| bodies.remove_entry(&id))
            .collect();
        found.extend(read_all(in_order)?);
    }
    Ok(found)
}

/// What lists need of all nodes.
pub(super) fn load_lists(conn: &mut AnyConnection) -> Result<Lists, ReadFault> {
    let mut lists = Lists::default();
    let rows = nodes::table
        .order(nodes::seq)
        .select(OutlineRow::as_select())
        .load_iter(conn)?;
    for row in rows {
        let outline = outline_from(row?).map_err(ReadFault::unreadable)?;
        lists.put(outline.into());
    }
    Ok(lists)
}

/// Sort keys are checked where requests are read; this is for the one that slipped through.
pub(super) fn unsortable(what: &str, key: &str) -> ReadFault {
    ReadFault::unreadable(format!("{what} can't be sorted by {key:?}"))
}

/// The pattern of `LIKE ... ESCAPE '\'` that finds `part` anywhere, literally.
pub(super) fn containing(part: &str) -> String {
    let mut pattern = String::from("%");
    for letter in folded(part).chars() {
        if matches!(letter, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern.push('%');
    pattern
}

/// The nodes that own any of these ports, each once, in the order of their creation.
pub(super) fn by_addresses(
    conn: &mut AnyConnection,
    addresses: &[String],
) -> Result<Vec<NodeId>, ReadFault> {
    let addresses: Vec<String> = addresses
        .iter()
        .map(|mac| text(mac).to_lowercase())
        .collect();
    let ids: Vec<String> = owners(addresses).load(conn)?;
    ids.into_iter().map(|id| id_from(&id)).collect()
}

/// From the ports to the nodes: asked the other way round, every lookup looks at every node.
#[diesel::dsl::auto_type(no_type_alias)]
pub(super) fn owners(addresses: Vec<String>) -> _ {
    let owners = ports_table::table
        .filter(ports_table::address.eq_any(addresses))
        .select(ports_table::node_id);
    nodes::table
        .filter(nodes::id.eq_any(owners))
        .order(nodes::seq)
        .select(nodes::id)
}

/// Every node that waits for something, the most urgent first.
pub(super) fn waiting(conn: &mut AnyConnection) -> Result<Vec<NodeId>, ReadFault> {
    let found: Vec<String> = nodes::table
        .filter(nodes::waiting.eq(true))
        .order((time_or(nodes::next_deadline, i64::MAX), nodes::seq))
        .select(nodes::id)
        .load(conn)?;
    found.into_iter().map(|id| id_from(&id)).collect()
}

/// These nodes in this order, folded, with their ports; without those that are not there.
pub(super) fn these(conn: &mut AnyConnection, ids: &[NodeId]) -> Result<Vec<Node>, ReadFault> {
    let mut found = by_ids(conn, ids)?;
    found.iter_mut().for_each(Node::fold);
    signs::attach(conn, &mut found)?;
    ports::attach(conn, &mut found)?;
    parts::attach(conn, &mut found)?;
    Ok(found)
}

fn id_from(id: &str) -> Result<NodeId, ReadFault> {
    id.parse()
        .map_err(|_| ReadFault::unreadable(format!("{id:?} in nodes.id is no UUID")))
}

fn read_all(rows: Vec<(String, String)>) -> Result<Vec<Node>, ReadFault> {
    rows.into_iter()
        .map(|(id, body)| node_from(&id, &body).map_err(ReadFault::unreadable))
        .collect()
}
