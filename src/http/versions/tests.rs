//! The numbers in all tables, held against the list.

use super::*;
use crate::http::endpoints::{self, Endpoint, endpoint::Body};
use crate::http::microversion::MAXIMUM;
use crate::http::openapi::resources::{resources, settable};
use crate::http::provision::VERBS;
use std::collections::BTreeSet;

#[test]
fn every_version_is_there_once_and_in_order() {
    let minors: Vec<u16> = ADDITIONS.iter().map(|addition| addition.minor).collect();
    assert_eq!(minors, (2..=MAXIMUM.0).collect::<Vec<_>>());
    let things: Vec<_> = ADDITIONS
        .iter()
        .flat_map(|addition| addition.things)
        .collect();
    assert_eq!(things.iter().collect::<BTreeSet<_>>().len(), things.len());
}

#[test]
fn fields_are_as_old_as_their_versions_say() {
    for resource in resources() {
        // A field is no older than the thing it is a field of.
        let of_all = resource
            .fields
            .iter()
            .map(|(_, since)| *since)
            .min()
            .unwrap_or(1);
        for (name, since_row) in resource.fields {
            let expected = since(&format!("{}.{name}", resource.prefix)).max(of_all);
            assert_eq!(since_row, expected, "{}.{name}", resource.prefix);
        }
    }
    for (prefix, fields) in settable() {
        for (name, since_row) in fields {
            let expected = since(&format!("{prefix}.{name}"));
            assert_eq!(since_row, expected, "{prefix}.{name}, to be set");
        }
    }
}

#[test]
fn verbs_are_as_old_as_their_versions_say() {
    for (name, since_row, _) in VERBS {
        assert_eq!(*since_row, since(&format!("verb {name}")), "{name}");
    }
}

#[test]
fn endpoints_and_parameters_are_as_old_as_their_versions_say() {
    for row in endpoints::all() {
        let what = format!("{} {}", row.method.name(), row.path);
        assert_eq!(row.since, since_of_endpoint(row), "{what}");
        let name = list_name(row);
        for parameter in row.parameters() {
            let mut expected = since(&format!("{name}?{}", parameter.name));
            if expected == 1 && !matches!(row.body, Body::Arguments(_)) {
                expected = since(&format!("*?{}", parameter.name));
            }
            // A parameter is no older than what it is a parameter of.
            let (is, expected) = (parameter.since.max(row.since), expected.max(row.since));
            assert_eq!(is, expected, "{what}: {name}?{}", parameter.name);
        }
    }
}

/// The longest path in the list that it is at or below of; a row for its method alone comes first.
fn since_of_endpoint(row: &Endpoint) -> u16 {
    let parts: Vec<&str> = row
        .path
        .split('/')
        .map(|part| if part.starts_with('{') { "{}" } else { part })
        .collect();
    let path = parts.join("/");
    let of_method = since(&format!("{} {path}", row.method.name()));
    if of_method > 1 {
        return of_method;
    }
    (2..=parts.len())
        .rev()
        .map(|count| since(&parts[..count].join("/")))
        .find(|minor| *minor > 1)
        .unwrap_or(1)
}

/// The last fixed word of its path.
fn list_name(row: &Endpoint) -> &str {
    let words = row
        .path
        .split('/')
        .filter(|word| !word.starts_with('{') && *word != "detail");
    words.fold("", |_, word| word)
}
