//! The table for people: `ops/api.md`, made from the rows and the list of versions. A test holds the file against it.

use std::fmt::Write;

use crate::http::endpoints::endpoint::Access;
use crate::http::endpoints::{self, Endpoint, Versions};
use crate::http::openapi::resources::{resources, settable};
use crate::http::provision::VERBS;
use crate::http::versions::ADDITIONS;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/ops/api.md");

/// Endpoints of the Bare Metal API that are not there, and since when other servers have them.
const MISSING: &[(&str, &str, u16)] = &[
    ("GET", "/v1/nodes/{node}/management/indicators", 63),
    ("POST", "/v1/events", 54),
    ("GET", "/healthcheck", 1),
];

fn text() -> String {
    let mut text = String::from(
        "# The API, endpoint by endpoint and version by version\n\
         \n\
         This file is made from the code; a test fails when it is out of date and says how to renew it. A running server tells\n\
         the same in more detail at `/openapi.json`, and as a page at `/docs`.\n\
         \n\
         ## What is there\n\
         \n\
         Paths that begin with `/v1` are there without it, too. Older requests get 404 unless another status is given. Agents\n\
         need no user name, nor does what is marked \"open\".\n\
         \n\
         | method, path | since | answers | what it does |\n\
         |---|---|---|---|\n",
    );
    for row in endpoints::all() {
        let statuses: Vec<String> = row
            .statuses()
            .iter()
            .filter(|status| row.status == **status || row.errors.contains(status))
            .map(u16::to_string)
            .collect();
        let _ = writeln!(
            text,
            "| {} `{}` | {} | {} | {}{} |",
            row.method.name(),
            row.path,
            since(row),
            statuses.join(", "),
            row.about,
            match row.access {
                Access::Users => "",
                Access::Everybody => " (open)",
                Access::Agents => " (agents)",
            },
        );
    }
    text.push_str(
        "\nBesides the statuses of the table, every endpoint may answer 400 (bad input), 401 (no valid user name and password,\n\
         where they are wanted), 404 (what the path or a filter names is not there), 406 (the version, or something younger than\n\
         it), 408 and 413 (the body), 500 (a fault of the server) and 503 (not now).\n\
         \n\
         ## What is not there\n\
         \n\
         These are answered as a server without the feature answers them: 404.\n\
         \n\
         | method, path | since |\n\
         |---|---|\n",
    );
    for (method, path, since) in MISSING {
        let _ = writeln!(text, "| {method} `{path}` | 1.{since} |");
    }
    text.push_str(
        "\n## What each version brought\n\
         \n\
         `node.owner` is a field, `nodes?owner` a parameter of a list. What is not there is struck out.\n\
         \n\
         | version | what it brought | there |\n\
         |---|---|---|\n",
    );
    for addition in ADDITIONS {
        let things: Vec<String> = addition
            .things
            .iter()
            .map(|thing| {
                if is_there(thing) {
                    format!("`{thing}`")
                } else {
                    format!("~~`{thing}`~~")
                }
            })
            .collect();
        let _ = writeln!(
            text,
            "| 1.{} | {} | {} |",
            addition.minor,
            addition.about,
            things.join(", ")
        );
    }
    text
}

fn since(row: &Endpoint) -> String {
    if row.versions == Versions::None {
        return "any".to_owned();
    }
    match row.too_old.status() {
        404 => format!("1.{}", row.since),
        other => format!("1.{} ({other})", row.since),
    }
}

fn is_there(thing: &str) -> bool {
    if let Some(verb) = thing.strip_prefix("verb ") {
        return VERBS.iter().any(|(name, _, _)| *name == verb);
    }
    if let Some((_, parameter)) = thing.split_once('?') {
        return endpoints::all()
            .flat_map(Endpoint::parameters)
            .any(|known| known.name == parameter);
    }
    if let Some(at) = thing.find('/') {
        let wanted = thing[at..].replace("{}", "{");
        let is_below = |row: &Endpoint| {
            let mut path = String::new();
            for part in row.path.split('/').skip(1) {
                path.push('/');
                path.push_str(if part.starts_with('{') { "{" } else { part });
            }
            path == wanted || path.starts_with(&format!("{wanted}/"))
        };
        return endpoints::all().any(is_below);
    }
    let (prefix, name) = thing.split_once('.').unwrap_or(("", thing));
    let shown = resources()
        .into_iter()
        .filter(|resource| resource.prefix == prefix)
        .flat_map(|resource| resource.fields);
    let set = settable()
        .into_iter()
        .filter(|(of, _)| *of == prefix)
        .flat_map(|(_, fields)| fields);
    prefix == "driver" || shown.chain(set).any(|(known, _)| known == name)
}

#[test]
fn the_file_is_what_the_code_says() {
    let wanted = text();
    if std::env::var_os("UPBEAT_WRITE_DOCS").is_some() {
        std::fs::write(FILE, &wanted).unwrap();
    }
    let there = std::fs::read_to_string(FILE).unwrap_or_default();
    assert!(
        there == wanted,
        "ops/api.md is out of date: UPBEAT_WRITE_DOCS=1 cargo test --lib the_file_is_what_the_code_says"
    );
}

#[test]
fn what_is_not_there_is_not_there() {
    for (_, path, _) in MISSING {
        let path = path.replace(['{', '}'], "");
        assert!(endpoints::find(&path).is_err(), "{path} is there");
    }
}
