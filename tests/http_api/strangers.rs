//! What somebody gets who has no password: the same answer everywhere, whatever is asked for.

use crate::server::{at, server_with};

/// What is for everybody: discovery, health, the document of the API, and what agents call before they know anything.
const OPEN: [&str; 9] = [
    "/",
    "/v1",
    "/health/live",
    "/health/ready",
    "/openapi.json",
    "/docs",
    "/v1/lookup",
    "/v1/heartbeat/{node}",
    "/v1/continue_inspection",
];

#[actix_web::test]
async fn every_endpoint_asks_strangers_for_a_password_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let htpasswd = folder.path().join("htpasswd");
    let hash = bcrypt::hash("lovelace", 4).unwrap();
    std::fs::write(&htpasswd, format!("ada:{hash}\n")).unwrap();
    let server =
        server_with(|settings| settings.auth = upbeat::http::Auth::Basic { htpasswd }).await;
    let document = server.get("/openapi.json").await.has_status(200).json();
    let mut asked = 0;
    for (pattern, methods) in document["paths"].as_object().unwrap() {
        if OPEN.contains(&pattern.as_str()) {
            continue;
        }
        let path = pattern.replace(['{', '}'], "");
        for method in methods.as_object().unwrap().keys() {
            if !["get", "put", "post", "patch", "delete"].contains(&method.as_str()) {
                continue;
            }
            // Neither a bad version nor a bad body is told before who is asking is known.
            let body = if method == "post" { "[[[" } else { "" };
            for version in ["1.115", "9.9"] {
                let method = method.to_uppercase();
                let headers = at(version);
                let answer = server.raw(&method, &path, &headers, body.as_bytes());
                let answer = answer.await;
                assert_eq!(answer.status, 401, "{method} {path} at {version}");
                assert_eq!(answer.json()["error"]["code"], 401);
                asked += 1;
            }
        }
    }
    assert!(asked > 200, "{asked}");
}
