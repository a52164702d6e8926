//! On which thread agents are called.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::task::{Context, Waker};
use std::time::Duration;

use upbeat::agent::{AgentClient, Settings};
use upbeat::command::Unreadable;

use super::{settings, target};

#[test]
fn agents_are_called_while_whoever_asked_is_busy() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = target(listener.local_addr().unwrap().port());
    let client = AgentClient::new(Settings {
        connect_timeout: Duration::from_secs(20),
        command_timeout: Duration::from_secs(20),
        ..settings()
    })
    .unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let lines = BufReader::new(stream.try_clone().unwrap()).lines();
        let head: Vec<String> = lines
            .map_while(Result::ok)
            .take_while(|line| !line.is_empty())
            .collect();
        stream
            .write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}")
            .unwrap();
        tell.send(head[0].clone()).unwrap();
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let _here = runtime.enter();
    let mut asking = Box::pin(client.poll(&target, "7"));
    let begun = asking
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));
    assert!(begun.is_pending());
    // This thread does nothing else, its runtime neither.
    let asked = told.recv_timeout(Duration::from_secs(10)).unwrap();
    assert!(asked.starts_with("GET /v1/commands/7?"), "{asked}");
    let told = runtime.block_on(asking);
    assert!(matches!(told, Err(Unreadable::Garbage { .. })), "{told:?}");
}
