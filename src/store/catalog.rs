//! Objects that stand for themselves: how they are written, found and listed. One table holds all kinds.

use diesel::prelude::*;
use uuid::Uuid;

use super::connection::{AnyConnection, Db};
use super::fault::{Fault, ReadFault, violated};
use super::nodes::unsortable;
use super::page::{cut, text_or, time_or};
use super::rows::{number, read, text, write};
use super::schema::{catalog, nodes};
use super::types::{AllocationLink, Change, Ident, Page, RecordFilter, RecordSave, SaveError};
use crate::catalog::{Allocation, Chassis, Kind, Record};
use crate::node::{Node, NodeId};
use crate::timestamp::Timestamp;

/// The form in which objects are written.
const RECORD_FORM: u32 = 1;

/// Columns of an object, without the order of creation, which never changes.
#[derive(Debug, Clone, Insertable, AsChangeset)]
#[diesel(table_name = catalog)]
#[diesel(treat_none_as_default_value = false)]
#[diesel(treat_none_as_null = true)]
pub(super) struct Row {
    id: String,
    kind: &'static str,
    version: i64,
    name: Option<String>,
    owner: Option<String>,
    state: Option<String>,
    resource_class: Option<String>,
    node_id: Option<String>,
    created_at: i64,
    updated_at: Option<i64>,
    body: String,
}

impl Row {
    pub(super) fn new<T: Kind>(record: &Record<T>) -> Row {
        let columns = record.is.columns();
        let optional = |value: &Option<String>| value.as_deref().map(text);
        Row {
            id: record.id.to_string(),
            kind: T::NAME,
            version: number(record.version),
            name: optional(&columns.name),
            owner: optional(&columns.owner),
            state: optional(&columns.state),
            resource_class: optional(&columns.resource_class),
            node_id: columns.node.map(|node| node.to_string()),
            created_at: record.created_at.0,
            updated_at: record.updated_at.map(|at| at.0),
            body: write(RECORD_FORM, record),
        }
    }
}

/// Carries out one save of an object.
pub(super) fn save(
    conn: &mut AnyConnection,
    save: &RecordSave,
    next_seq: impl FnOnce() -> i64,
) -> Result<(), Fault> {
    let row = &save.row;
    match save.change {
        Change::Insert => {
            diesel::insert_into(catalog::table)
                .values((catalog::seq.eq(next_seq()), row.clone()))
                .execute(conn)
                .map_err(|error| duplicate(error, row))?;
            Ok(())
        }
        Change::Update { from_version } => update(conn, row, from_version),
        Change::Remove { from_version } => {
            if row.kind == Chassis::NAME {
                check_is_empty(conn, &row.id)?;
            }
            let removed = diesel::delete(
                catalog::table
                    .filter(catalog::id.eq(&row.id))
                    .filter(catalog::kind.eq(row.kind))
                    .filter(catalog::version.eq(number(from_version))),
            )
            .execute(conn)?;
            one(removed)
        }
    }
}

fn update(conn: &mut AnyConnection, row: &Row, from_version: u64) -> Result<(), Fault> {
    let changed = diesel::update(
        catalog::table
            .filter(catalog::id.eq(row.id.clone()))
            .filter(catalog::kind.eq(row.kind))
            .filter(catalog::version.eq(number(from_version))),
    )
    .set(row.clone())
    .execute(conn)
    .map_err(|error| duplicate(error, row))?;
    one(changed)
}

fn one(changed: usize) -> Result<(), Fault> {
    if changed == 1 {
        Ok(())
    } else {
        Err(Fault::Save(SaveError::VersionConflict))
    }
}

/// Nodes name their chassis, so it stays as long as one does.
fn check_is_empty(conn: &mut AnyConnection, chassis: &str) -> Result<(), Fault> {
    let nodes: i64 = nodes::table
        .filter(nodes::chassis_uuid.eq(chassis))
        .count()
        .get_result(conn)?;
    if nodes == 0 {
        return Ok(());
    }
    Err(Fault::Save(SaveError::InUse {
        what: format!("chassis {chassis}"),
        by: format!("{nodes} nodes"),
    }))
}

fn duplicate(error: diesel::result::Error, row: &Row) -> Fault {
    let (field, value) = match violated(&error) {
        Some("catalog.id") => ("uuid", row.id.clone()),
        Some("catalog.name") => ("name", row.name.clone().unwrap_or_default()),
        _ => return Fault::Database(error),
    };
    Fault::Save(SaveError::Duplicate { field, value })
}

/// What a change of a node means for an allocation, in the node's own commit.
pub(super) fn link(
    conn: &mut AnyConnection,
    node: &Node,
    link: AllocationLink,
) -> Result<(), Fault> {
    match link {
        AllocationLink::Taken(id) => {
            let gone = || {
                Fault::Save(SaveError::Gone {
                    what: "Allocation",
                    id,
                })
            };
            let old = match find::<Allocation>(conn, &Ident::Id(id)) {
                Ok(found) => found.ok_or_else(gone)?,
                Err(ReadFault::Database(error)) => return Err(Fault::Database(error)),
                Err(ReadFault::Read(_)) => return Err(gone()),
            };
            let at: Timestamp = node.updated_at.unwrap_or(node.created_at);
            let new = old.with(old.is.taken(node.id), at);
            update(conn, &Row::new(&new), old.version)
        }
        AllocationLink::Ended(id) => {
            diesel::delete(
                catalog::table
                    .filter(catalog::id.eq(id.to_string()))
                    .filter(catalog::kind.eq(Allocation::NAME)),
            )
            .execute(conn)?;
            Ok(())
        }
    }
}

/// The last number of the order of creation.
pub(super) fn last_seq(conn: &mut AnyConnection) -> QueryResult<i64> {
    let last: Option<i64> = catalog::table
        .select(diesel::dsl::max(catalog::seq))
        .first(conn)?;
    Ok(last.unwrap_or(0))
}

fn record_from<T: Kind>((id, body): (String, String)) -> Result<Record<T>, ReadFault> {
    read(RECORD_FORM, T::NAME, &id, &body).map_err(ReadFault::unreadable)
}

/// One object.
pub(super) fn find<T: Kind>(
    conn: &mut AnyConnection,
    ident: &Ident<Uuid>,
) -> Result<Option<Record<T>>, ReadFault> {
    let query = catalog::table
        .filter(catalog::kind.eq(T::NAME))
        .select((catalog::id, catalog::body))
        .into_boxed::<Db>();
    let query = match ident {
        Ident::Id(id) => query.filter(catalog::id.eq(id.to_string())),
        Ident::Name(name) => query.filter(catalog::name.eq(text(name))),
    };
    let row = query.first(conn).optional()?;
    row.map(record_from).transpose()
}

/// Objects of one kind by filter and page.
pub(super) fn list<T: Kind>(
    conn: &mut AnyConnection,
    filter: RecordFilter,
    page: &Page,
) -> Result<Vec<Record<T>>, ReadFault> {
    let RecordFilter {
        names,
        owner,
        state,
        resource_class,
        node,
    } = filter;
    let mut query = catalog::table
        .filter(catalog::kind.eq(T::NAME))
        .into_boxed::<Db>();
    if let Some(names) = names {
        let names: Vec<String> = names.iter().map(|name| text(name)).collect();
        query = query.filter(catalog::name.eq_any(names));
    }
    if let Some(owner) = owner {
        query = query.filter(catalog::owner.eq(text(&owner)));
    }
    if let Some(state) = state {
        query = query.filter(catalog::state.eq(text(&state)));
    }
    if let Some(class) = resource_class {
        query = query.filter(catalog::resource_class.eq(text(&class)));
    }
    if let Some(node) = node {
        query = query.filter(catalog::node_id.eq(NodeId::to_string(&node)));
    }
    let query = match page.sort_key.as_deref() {
        None => cut!(conn, catalog, query, page, catalog::seq, i64),
        Some("uuid") => cut!(conn, catalog, query, page, catalog::id, String),
        Some("name") => cut!(
            conn,
            catalog,
            query,
            page,
            text_or(catalog::name, ""),
            String
        ),
        Some("owner") => cut!(
            conn,
            catalog,
            query,
            page,
            text_or(catalog::owner, ""),
            String
        ),
        Some("state") => cut!(
            conn,
            catalog,
            query,
            page,
            text_or(catalog::state, ""),
            String
        ),
        Some("resource_class") => cut!(
            conn,
            catalog,
            query,
            page,
            text_or(catalog::resource_class, ""),
            String
        ),
        Some("created_at") => cut!(conn, catalog, query, page, catalog::created_at, i64),
        Some("updated_at") => cut!(
            conn,
            catalog,
            query,
            page,
            time_or(catalog::updated_at, 0_i64),
            i64
        ),
        Some(other) => return Err(unsortable("objects", other)),
    };
    let rows: Vec<(String, String)> = query.select((catalog::id, catalog::body)).load(conn)?;
    rows.into_iter().map(record_from).collect()
}
