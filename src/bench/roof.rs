//! The roof: what actix-web does on this machine when all there is to do is to read the same JSON and to answer 202.

use actix_web::{App, HttpResponse, HttpServer, web};
use serde::Deserialize;
use serde_json::json;

/// A heartbeat as agents send it.
#[derive(Deserialize)]
struct Heartbeat {
    callback_url: String,
    agent_version: String,
    agent_token: String,
}

/// Serves until the process is ended.
///
/// # Errors
/// There is no port.
pub async fn serve() -> std::io::Result<()> {
    let answer = async |_node: web::Path<String>, heartbeat: web::Json<Heartbeat>| {
        let heartbeat = heartbeat.into_inner();
        if heartbeat.callback_url.is_empty()
            || heartbeat.agent_version.is_empty()
            || heartbeat.agent_token.is_empty()
        {
            return HttpResponse::BadRequest().finish();
        }
        HttpResponse::Accepted().finish()
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let server =
        HttpServer::new(move || App::new().route("/v1/heartbeat/{node}", web::post().to(answer)))
            .workers(cores)
            .bind(("127.0.0.1", 0))?;
    let address = server.addrs().first().map(ToString::to_string);
    eprintln!("{}", json!({"message": "ready", "address": address}));
    server.run().await
}
