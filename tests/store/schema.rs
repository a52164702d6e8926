//! The tables as the program knows them and as the migrations made them.

use upbeat::store::Store;

use super::support::{Database, Raw};

/// `table column type null`, as declared in the source, in alphabetical order.
fn declared() -> Vec<String> {
    let source = include_str!("../../src/store/schema.rs");
    let mut columns = Vec::new();
    let mut table = "";
    for line in source.lines().map(str::trim) {
        if let Some((name, _)) = line.split_once(" (") {
            table = name;
        } else if let Some((column, kind)) = line.trim_end_matches(',').split_once(" -> ") {
            let inner = kind
                .strip_prefix("Nullable<")
                .and_then(|kind| kind.strip_suffix('>'));
            let null = if inner.is_some() { "null" } else { "not null" };
            let kind = match inner.unwrap_or(kind) {
                "BigInt" => "bigint",
                "Text" => "text",
                "Bool" => "boolean",
                other => panic!("{other} is not a type that both databases have"),
            };
            columns.push(format!("{table} {column} {kind} {null}"));
        }
    }
    columns.sort();
    columns
}

pub async fn tables_are_as_the_program_knows_them(database: &Database, _: &Store) {
    let mut raw = database.raw();
    let question = match raw {
        Raw::Sqlite(_) => {
            "SELECT t.name || ' ' || c.name || ' ' || lower(c.type) || CASE c.\"notnull\" WHEN 1 THEN ' not null' ELSE ' null' END \
             AS said FROM sqlite_schema t, pragma_table_info(t.name) c \
             WHERE t.type = 'table' AND t.name NOT LIKE '\\_\\_%' ESCAPE '\\'"
        }
        Raw::Postgres(_) => {
            "SELECT (table_name || ' ' || column_name || ' ' || data_type || CASE is_nullable WHEN 'NO' THEN ' not null' ELSE ' null' END) \
             AS said FROM information_schema.columns WHERE table_schema = 'public' AND table_name NOT LIKE '\\_\\_%'"
        }
    };
    let mut found = raw.ask(question);
    found.sort();
    assert_eq!(found, declared());
    assert_eq!(found.len(), 25 + 10 + 9 + 12 + 8 + 11 + 2 + 2 + 3);
}
