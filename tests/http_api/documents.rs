//! The OpenAPI document and the page to read it.

use crate::server::{server, server_with};
use upbeat::http::Auth;

const NOBODY: &str = "00000000-0000-4000-8000-000000000000";

#[actix_web::test]
async fn the_document_and_its_page_are_open_and_have_no_versions() {
    let folder = tempfile::tempdir().unwrap();
    let htpasswd = folder.path().join("htpasswd");
    let line = format!("ada:{}\n", bcrypt::hash("lovelace", 4).unwrap());
    std::fs::write(&htpasswd, line).unwrap();
    let server = server_with(|settings| settings.auth = Auth::Basic { htpasswd }).await;
    server
        .raw("GET", "/v1/nodes", "", b"")
        .await
        .has_status(401);
    let answer = server.raw("GET", "/openapi.json", "", b"").await;
    let answer = answer.has_status(200);
    assert_eq!(answer.header("X-OpenStack-Ironic-API-Version"), None);
    let document = answer.json();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["info"]["version"], "1.115");
    assert_eq!(document["servers"][0]["url"], "http://upbeat.test:6385");
    let page = server.raw("GET", "/docs", "", b"").await.has_status(200);
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
}

/// What clients send that is in no row is refused, and what is in a row is known to its handler.
#[actix_web::test]
async fn every_parameter_of_the_document_is_known_to_its_endpoint() {
    let server = server().await;
    // The document itself is no part of the Bare Metal API.
    server.get("/v1/openapi.json").await.has_status(404);
    let document = server.get("/openapi.json").await.json();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let operation = &methods["get"];
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            if parameter["in"] != "query" {
                continue;
            }
            let name = parameter["name"].as_str().unwrap();
            let value = match parameter["schema"]["type"].as_str().unwrap() {
                "boolean" => "false",
                "integer" => "1",
                _ => parameter["schema"]["enum"][0].as_str().unwrap_or(NOBODY),
            };
            let names = path
                .split('/')
                .map(|part| if part.starts_with('{') { NOBODY } else { part });
            let address = names.collect::<Vec<_>>().join("/");
            let value = value.replace(' ', "%20");
            let answer = server.get(&format!("{address}?{name}={value}")).await;
            let text = String::from_utf8_lossy(&answer.body);
            assert!(
                !text.contains("Unexpected arguments"),
                "{address}?{name}: {text}"
            );
        }
        if operation["x-since"].is_string() && path != "/v1/lookup" {
            let address = path.replace(['{', '}'], "");
            let answer = server.get(&format!("{address}?colour=red")).await;
            assert_eq!(answer.status, 400, "{path}");
            assert!(answer.fault_string().contains("colour"), "{path}");
        }
    }
}
