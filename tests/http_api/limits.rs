//! What one client may cost: time, bytes, depth and guesses. Over bare sockets, for what no HTTP client would send.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::server::{Answer, Server, at, server, server_with};

/// Far more than any answer here takes, far less than never.
const LIMIT: Duration = Duration::from_secs(20);

/// Sends this and then nothing more; what comes back until the server closes.
async fn sends(server: &Server, bytes: &[u8]) -> String {
    sends_to(server.address, bytes).await
}

async fn sends_to(address: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // A server that has seen enough may close before it has read all.
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let reading = stream.read_to_end(&mut answer);
    let closed = tokio::time::timeout(LIMIT, reading).await.is_ok();
    assert!(
        closed,
        "not closed after {:?} was answered by {:?}",
        String::from_utf8_lossy(bytes),
        String::from_utf8_lossy(&answer)
    );
    String::from_utf8(answer).unwrap()
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("nothing")
}

async fn hasty() -> Server {
    server_with(|settings| settings.request_timeout_ms = 1_000).await
}

#[actix_web::test]
async fn who_does_not_finish_a_request_is_hung_up_on() {
    let server = hasty().await;
    for unfinished in [
        "GET /v1/nodes HT",
        "GET /v1/nodes HTTP/1.1\r\nHost: x\r\nX-Slow: ",
        "",
    ] {
        let answer = sends(&server, unfinished.as_bytes()).await;
        assert!(
            ["408", "nothing"].contains(&status(&answer)),
            "{unfinished:?}: {answer}"
        );
    }
    let head = "POST /v1/nodes HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{";
    let answer = sends(&server, head.as_bytes()).await;
    assert_eq!(status(&answer), "408", "{answer}");
    assert!(answer.contains("faultstring"), "{answer}");
    assert_eq!(server.node_count().await, 0);
}

#[actix_web::test]
async fn a_body_that_drips_is_given_up_on_however_often_something_comes() {
    let server = hasty().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = "POST /v1/nodes HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    let began = Instant::now();
    let (mut read, mut write) = stream.into_split();
    let dripping = async {
        // Each byte comes long before the time is over, counted from the byte before.
        while write.write_all(b" ").await.is_ok() && began.elapsed() < LIMIT {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let answering = async {
        let mut answer = Vec::new();
        let _ = read.read_to_end(&mut answer).await;
        (String::from_utf8(answer).unwrap(), began.elapsed())
    };
    let ((answer, took), ()) = tokio::join!(answering, dripping);
    assert_eq!(status(&answer), "408", "{answer}");
    assert!(took < LIMIT, "{took:?}");
    // One that is long but comes in time is read.
    let long = json!({"driver": "fake-hardware", "extra": {"text": "x".repeat(900_000)}});
    server
        .send("POST", "/v1/nodes", Some(long))
        .await
        .has_status(201);
}

#[actix_web::test]
async fn too_many_and_too_long_headers_are_refused_and_others_go_on() {
    let server = server().await;
    let many: String = (0..2_000).map(|n| format!("X-{n}: a\r\n")).collect();
    let long = format!("X-Long: {}\r\n", "a".repeat(1 << 20));
    let path = format!("GET /v1/nodes?x={} HTTP/1.1\r\n", "a".repeat(1 << 20));
    for request in [
        format!("GET /v1/nodes HTTP/1.1\r\nHost: x\r\n{many}\r\n"),
        format!("GET /v1/nodes HTTP/1.1\r\nHost: x\r\n{long}\r\n"),
        format!("{path}Host: x\r\n\r\n"),
        "\u{0}\u{1}\u{2}\r\n\r\n".to_owned(),
        "GET /v1/nodes HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}"
            .to_owned(),
        "GET /v1/nodes HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n".to_owned(),
        "POST /v1/nodes HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n".to_owned(),
    ] {
        let answer = sends(&server, request.as_bytes()).await;
        let status = status(&answer);
        assert!(
            status == "nothing" || status.starts_with('4'),
            "{}: {answer}",
            &request[..40]
        );
        server.get("/v1/nodes").await.has_status(200);
    }
    // A length and chunks at once: what one reads as the body another would read as a request.
    let smuggled = "POST /v1/nodes HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n\
                    0\r\n\r\nDELETE /v1/nodes/n HTTP/1.1\r\nHost: x\r\n\r\n";
    let answer = sends(&server, smuggled.as_bytes()).await;
    assert!(status(&answer).starts_with('4'), "{answer}");
    let seen = server.seen.lock().unwrap().clone();
    assert!(seen.iter().all(|(method, _, _)| *method != "DELETE"));
}

fn basic(pair: &str) -> String {
    let packed = STANDARD.encode(pair);
    format!("Authorization: Basic {packed}\r\n{}", at("1.115"))
}

async fn nodes_as(server: &Server, pair: &str) -> Answer {
    server.raw("GET", "/v1/nodes", &basic(pair), b"").await
}

#[actix_web::test]
async fn who_is_unknown_gets_one_request_a_connection() {
    let folder = tempfile::tempdir().unwrap();
    let htpasswd = folder.path().join("htpasswd");
    let hash = bcrypt::hash("lovelace", 4).unwrap();
    std::fs::write(&htpasswd, format!("ada:{hash}\n")).unwrap();
    let server = server_with(|settings| {
        settings.auth = upbeat::http::Auth::Basic { htpasswd };
        settings.agent_listen = Some("127.0.0.1:0".parse().unwrap());
    })
    .await;
    let request = |path: &str, more: &str| format!("GET {path} HTTP/1.1\r\nHost: x\r\n{more}\r\n");
    let closes = |answer: &str| answer.to_lowercase().contains("connection: close\r\n");
    for path in ["/v1/nodes", "/v1/nothing", "/health/live", "/"] {
        let answer = sends(&server, request(path, "").as_bytes()).await;
        assert!(closes(&answer), "{path}: {answer}");
    }
    let known = request("/v1/nodes", &basic("ada:lovelace"));
    let answer = sends(&server, known.as_bytes()).await;
    assert!(status(&answer) == "200" && !closes(&answer), "{answer}");
    // Agents have one as well.
    let for_agents = server.agent_address.unwrap();
    let answer = sends_to(for_agents, request("/v1/lookup", "").as_bytes()).await;
    assert!(closes(&answer), "{answer}");
}

#[actix_web::test]
async fn guessing_passwords_gets_slower_and_who_is_known_does_not_notice() {
    let folder = tempfile::tempdir().unwrap();
    let htpasswd = folder.path().join("htpasswd");
    let hash = |password: &str| bcrypt::hash(password, 4).unwrap();
    let users = format!("ada:{}\ngrace:{}\n", hash("lovelace"), hash("hopper"));
    std::fs::write(&htpasswd, users).unwrap();
    let server =
        server_with(|settings| settings.auth = upbeat::http::Auth::Basic { htpasswd }).await;
    nodes_as(&server, "ada:lovelace").await.has_status(200);
    let began = Instant::now();
    for number in 0..7 {
        nodes_as(&server, &format!("ada:{number}"))
            .await
            .has_status(401);
    }
    // The sixth waited for 0.1 s, the seventh for 0.2 s.
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(300), "{took:?}");
    // Who was let in before is let in at once, though it has the same address and name.
    let guesses = (0..8).map(|number| {
        let pair = format!("user-{number}:x");
        let server = &server;
        async move { nodes_as(server, &pair).await.status }
    });
    let known = async {
        let began = Instant::now();
        nodes_as(&server, "ada:lovelace").await.has_status(200);
        began.elapsed()
    };
    let (statuses, known) = tokio::join!(join_all(guesses), known);
    assert!(statuses.iter().all(|status| [401, 503].contains(status)));
    assert!(known < Duration::from_millis(400), "{known:?}");
    // Who is not known yet waits, and is let in.
    nodes_as(&server, "grace:hopper").await.has_status(200);
}

#[actix_web::test]
async fn addresses_that_lead_to_files_or_elsewhere_are_refused() {
    let server = server().await;
    let mac = "52:54:00:aa:00:01";
    let uuid = server.node(json!({"driver": "fake-hardware"})).await;
    let port = json!({"address": mac, "node_uuid": uuid});
    server
        .send("POST", "/v1/ports", Some(port))
        .await
        .has_status(201);
    let node = format!("/v1/nodes/{uuid}");
    let ask = async |method: &str, path: &str, body: Value| {
        let answer = server.send(method, path, Some(body)).await;
        let text = answer.has_status(400).fault_string();
        assert!(!text.contains("/etc/shadow"), "{text}");
    };
    let wrong = [
        "file:///etc/shadow",
        "FILE:///etc/shadow",
        "ftp://host/etc/shadow",
        "gopher://host/etc/shadow",
        "data:,/etc/shadow",
        "/etc/shadow",
        "javascript:/etc/shadow",
        "http:///etc/shadow",
    ];
    for url in wrong {
        for path in [
            "/driver_info/deploy_kernel",
            "/driver_info/deploy_ramdisk",
            "/driver_info/rescue_kernel",
            "/driver_info/bootloader",
            "/driver_info/deploy_iso",
            "/instance_info/kernel",
            "/instance_info/ramdisk",
            "/instance_info/boot_iso",
        ] {
            let patch = json!([{"op": "add", "path": path, "value": url}]);
            ask("PATCH", &node, patch).await;
        }
        let document = json!({"driver": "fake-hardware", "driver_info": {"deploy_kernel": url}});
        ask("POST", "/v1/nodes", document).await;
        let media = json!({"device_type": "cdrom", "image_url": url});
        ask("POST", &format!("{node}/vmedia"), media).await;
    }
    for (verb, state) in [("manage", "manageable"), ("provide", "available")] {
        let path = format!("{node}/states/provision");
        server
            .send("PUT", &path, Some(json!({"target": verb})))
            .await
            .has_status(202);
        server
            .node_when(&uuid, |node| node["provision_state"] == state)
            .await;
    }
    let deploy = format!("{node}/states/provision");
    for url in wrong {
        let image = json!([{"op": "add", "path": "/instance_info", "value": {
            "image_source": url, "image_os_hash_algo": "sha256",
            "image_os_hash_value": "a".repeat(64),
        }}]);
        // What names the image is looked at when it is used.
        let set = server.send("PATCH", &node, Some(image)).await;
        if set.status == 200 {
            let told = server.send("PUT", &deploy, Some(json!({"target": "active"})));
            told.await.has_status(400);
        }
        let good = json!([{"op": "add", "path": "/instance_info", "value": {
            "image_source": "http://127.0.0.1:9/i.raw", "image_os_hash_algo": "sha256",
            "image_os_hash_value": "a".repeat(64),
        }}]);
        server
            .send("PATCH", &node, Some(good))
            .await
            .has_status(200);
        let drive = json!({"target": "active", "configdrive": url});
        ask("PUT", &deploy, drive).await;
    }
    let shown = server.get(&node).await.json();
    assert_eq!(shown["provision_state"], "available");
    assert_eq!(shown["driver_info"], json!({}));
}
