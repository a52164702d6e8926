//! Nodes: how they are written, found and listed.
//!
//! Free functions over a connection; the writer and the readers call them.

use diesel::dsl::count_star;
use diesel::prelude::*;

use super::connection::{AnyConnection, Db};
use super::fault::{Fault, ReadFault, violated};
use super::page::{cut, text_or, time_or};
use super::rows::{
    NodeRow, OutlineRow, StateRow, folded, limit, node_from, number, outline_from, text,
};
use super::schema::{nodes, ports as ports_table, signs as signs_table};
use super::types::{Columns, Ident, NodeFilter, NodeOutline, Page, ReadError, SaveError};
use super::{parts, ports, signs};
use crate::node::{Node, NodeId, ProvisionState};

/// Nodes in one query for what hangs on them: bounded because a statement takes a bounded number of values.
pub(super) const NODES_PER_QUERY: usize = 1_000;

/// Writes a new node, without its ports.
pub(super) fn insert(conn: &mut AnyConnection, node: &Node, seq: i64) -> Result<(), Fault> {
    diesel::insert_into(nodes::table)
        .values((nodes::seq.eq(seq), NodeRow::from(node)))
        .execute(conn)
        .map_err(|error| duplicate(error, node))?;
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
        Columns::State => row.set(StateRow::from(node)).execute(conn),
        Columns::All => row.set(NodeRow::from(node)).execute(conn),
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

/// Nodes by filter and page, with their ports.
pub(super) fn list(
    conn: &mut AnyConnection,
    filter: NodeFilter,
    page: &Page,
) -> Result<Vec<Node>, ReadFault> {
    let query = paged(conn, filter, page)?;
    let rows: Vec<(String, String)> = query.select((nodes::id, nodes::body)).load(conn)?;
    let mut found = read_all(rows)?;
    signs::attach(conn, &mut found)?;
    ports::attach(conn, &mut found)?;
    parts::attach(conn, &mut found)?;
    Ok(found)
}

/// The same, as far as the columns tell it: a tenth of the work.
pub(super) fn list_outlines(
    conn: &mut AnyConnection,
    filter: NodeFilter,
    page: &Page,
) -> Result<Vec<NodeOutline>, ReadFault> {
    let query = paged(conn, filter, page)?;
    let rows: Vec<OutlineRow> = query.select(OutlineRow::as_select()).load(conn)?;
    rows.into_iter()
        .map(|row| outline_from(row).map_err(ReadFault::unreadable))
        .collect()
}

/// The query for one page of the nodes a filter lets through.
fn paged(conn: &mut AnyConnection, filter: NodeFilter, page: &Page) -> Result<Boxed, ReadFault> {
    let query = filtered(filter);
    Ok(match page.sort_key.as_deref() {
        None => in_order_of_creation(conn, query, page)?,
        Some("uuid") => cut!(conn, nodes, query, page, nodes::id, String),
        Some("name") => cut!(conn, nodes, query, page, text_or(nodes::name, ""), String),
        Some("provision_state") => {
            cut!(conn, nodes, query, page, nodes::provision_state, String)
        }
        Some("power_state") => cut!(
            conn,
            nodes,
            query,
            page,
            text_or(nodes::power_state, ""),
            String
        ),
        Some("driver") => cut!(conn, nodes, query, page, nodes::driver, String),
        Some("instance_uuid") => cut!(
            conn,
            nodes,
            query,
            page,
            text_or(nodes::instance_uuid, ""),
            String
        ),
        Some("resource_class") => cut!(
            conn,
            nodes,
            query,
            page,
            text_or(nodes::resource_class, ""),
            String
        ),
        Some("maintenance") => cut!(conn, nodes, query, page, nodes::maintenance, bool),
        Some("created_at") => cut!(conn, nodes, query, page, nodes::created_at, i64),
        Some("updated_at") => cut!(
            conn,
            nodes,
            query,
            page,
            time_or(nodes::updated_at, 0_i64),
            i64
        ),
        Some(other) => return Err(unsortable("nodes", other)),
    })
}

/// The usual order has an index of its own, which a plain comparison begins in the middle of.
fn in_order_of_creation(
    conn: &mut AnyConnection,
    mut query: Boxed,
    page: &Page,
) -> Result<Boxed, ReadFault> {
    if let Some(marker) = page.marker {
        let seq: i64 = nodes::table
            .filter(nodes::id.eq(marker.to_string()))
            .select(nodes::seq)
            .first(conn)
            .optional()?
            .ok_or(ReadFault::Read(ReadError::UnknownMarker))?;
        query = if page.descending {
            query.filter(nodes::seq.lt(seq))
        } else {
            query.filter(nodes::seq.gt(seq))
        };
    }
    let query = if page.descending {
        query.order(nodes::seq.desc())
    } else {
        query.order(nodes::seq.asc())
    };
    Ok(query.limit(limit(page.limit)))
}

/// Sort keys are checked where requests are read; this is for the one that slipped through.
pub(super) fn unsortable(what: &str, key: &str) -> ReadFault {
    ReadFault::unreadable(format!("{what} can't be sorted by {key:?}"))
}

type Boxed = nodes::BoxedQuery<'static, Db>;

fn filtered(filter: NodeFilter) -> Boxed {
    let NodeFilter {
        provision_state,
        maintenance,
        associated,
        instance_uuid,
        instance_name,
        driver,
        resource_class,
        conductor_group,
        owner,
        lessee,
        project,
        fault,
        retired,
        description_contains,
        shards,
        sharded,
        parent_node,
        chassis_uuid,
        include_children,
    } = filter;
    let mut query = nodes::table.into_boxed::<Db>();
    macro_rules! equal {
        ($($column:ident),+) => {
            $(if let Some(value) = $column {
                query = query.filter(nodes::$column.eq(text(&value)));
            })+
        };
    }
    equal!(
        instance_uuid,
        instance_name,
        driver,
        resource_class,
        conductor_group,
        owner,
        lessee,
        fault,
        chassis_uuid
    );
    if !include_children && parent_node.is_none() {
        query = query.filter(nodes::parent_node.is_null());
    }
    equal!(parent_node);
    if let Some(state) = provision_state {
        query = query.filter(nodes::provision_state.eq(state.name()));
    }
    if let Some(maintenance) = maintenance {
        query = query.filter(nodes::maintenance.eq(maintenance));
    }
    if let Some(retired) = retired {
        query = query.filter(nodes::retired.eq(retired));
    }
    match associated {
        Some(true) => query = query.filter(nodes::instance_uuid.is_not_null()),
        Some(false) => query = query.filter(nodes::instance_uuid.is_null()),
        None => {}
    }
    match sharded {
        Some(true) => query = query.filter(nodes::shard.is_not_null()),
        Some(false) => query = query.filter(nodes::shard.is_null()),
        None => {}
    }
    if let Some(project) = project {
        let project = text(&project);
        query = query.filter(
            nodes::owner
                .eq(project.clone())
                .or(nodes::lessee.eq(project)),
        );
    }
    if let Some(part) = description_contains {
        query = query.filter(nodes::description.like(containing(&part)).escape('\\'));
    }
    if let Some(shards) = shards {
        query =
            query.filter(nodes::shard.eq_any(shards.iter().map(|s| text(s)).collect::<Vec<_>>()));
    }
    query
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
    ids.into_iter()
        .map(|id| {
            id.parse()
                .map_err(|_| ReadFault::unreadable(format!("{id:?} in nodes.id is no UUID")))
        })
        .collect()
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

/// How many nodes are in each shard, by its name; first those in none.
pub(super) fn count_by_shard(
    conn: &mut AnyConnection,
) -> Result<Vec<(Option<String>, u64)>, ReadFault> {
    let counts: Vec<(Option<String>, i64)> = nodes::table
        .group_by(nodes::shard)
        .order(text_or(nodes::shard, ""))
        .select((nodes::shard, count_star()))
        .load(conn)?;
    let count = |(shard, count)| (shard, u64::try_from(count).unwrap_or(0));
    Ok(counts.into_iter().map(count).collect())
}

/// How many nodes are in each state that any node is in.
pub(super) fn count_by_state(
    conn: &mut AnyConnection,
) -> Result<Vec<(ProvisionState, u64)>, ReadFault> {
    let counts: Vec<(String, i64)> = nodes::table
        .group_by(nodes::provision_state)
        .select((nodes::provision_state, count_star()))
        .load(conn)?;
    counts
        .into_iter()
        .map(|(state, count)| {
            let state = ProvisionState::parse(&state).ok_or_else(|| {
                ReadFault::unreadable(format!("{state:?} in nodes.provision_state is no state"))
            })?;
            Ok((state, u64::try_from(count).unwrap_or(0)))
        })
        .collect()
}

/// Every node that waits for something, with its ports, the most urgent first.
pub(super) fn waiting(conn: &mut AnyConnection) -> Result<Vec<Node>, ReadFault> {
    let rows: Vec<(String, String)> = nodes::table
        .filter(nodes::waiting.eq(true))
        .order((time_or(nodes::next_deadline, i64::MAX), nodes::seq))
        .select((nodes::id, nodes::body))
        .load(conn)?;
    let mut found = read_all(rows)?;
    let of_them = nodes::table
        .filter(nodes::waiting.eq(true))
        .select(nodes::id);
    let rows = signs_table::table
        .filter(signs_table::node_id.eq_any(of_them))
        .load(conn)?;
    signs::distribute(rows, &mut found)?;
    let rows = ports_table::table
        .filter(ports_table::node_id.eq_any(of_them))
        .order(ports_table::seq)
        .select((ports_table::id, ports_table::node_id, ports_table::body))
        .load(conn)?;
    ports::distribute(rows, &mut found)?;
    parts::attach(conn, &mut found)?;
    Ok(found)
}

fn read_all(rows: Vec<(String, String)>) -> Result<Vec<Node>, ReadFault> {
    rows.into_iter()
        .map(|(id, body)| node_from(&id, &body).map_err(ReadFault::unreadable))
        .collect()
}
