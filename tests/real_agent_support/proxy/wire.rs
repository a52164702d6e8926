//! Bytes in and out: what the proxy knows of HTTP and of sockets.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use super::{REST_MAX, Request};

/// Whether a process listens on the loopback port; without a connection, which it might mind.
pub fn is_listened_on(port: u16) -> bool {
    let sockets = std::fs::read_to_string("/proc/net/tcp").expect("Linux tells its sockets");
    let (address, listening) = (format!("0100007F:{port:04X}"), "0A");
    sockets.lines().any(|line| {
        let mut words = line.split_whitespace();
        words.nth(1) == Some(address.as_str()) && words.nth(1) == Some(listening)
    })
}

/// Reads one request; answers what it is, its query, and its bytes with `Connection: close`.
pub fn read_request(client: &TcpStream) -> io::Result<(Request, String, Vec<u8>)> {
    let mut reader = BufReader::new(client);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if line == "\r\n" {
            break;
        }
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
        if !lower.starts_with("connection:") {
            head.push_str(&line);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;

    let mut words = head.split(' ');
    let mut word = || words.next().unwrap_or_default().to_owned();
    let (method, target) = (word(), word());
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let document: Value = serde_json::from_slice(&body).unwrap_or_default();
    let text = |at: &str| {
        let found = document.pointer(at).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    };
    let request = Request {
        method,
        path: path.to_owned(),
        command: text("/name"),
        step: text("/params/step/step"),
    };
    let query = query.to_owned();
    head.push_str("Connection: close\r\n\r\n");
    let mut bytes = head.into_bytes();
    bytes.extend(body);
    Ok((request, query, bytes))
}

pub fn pass_on(port: u16, request: &[u8]) -> io::Result<TcpStream> {
    let mut peer = TcpStream::connect(("127.0.0.1", port))?;
    peer.set_read_timeout(Some(REST_MAX))?;
    peer.write_all(request)?;
    Ok(peer)
}

/// All the peer says, which is at least something.
pub fn read_reply(mut peer: TcpStream) -> io::Result<Vec<u8>> {
    let mut reply = Vec::new();
    peer.read_to_end(&mut reply)?;
    match reply.is_empty() {
        true => Err(io::ErrorKind::UnexpectedEof.into()),
        false => Ok(reply),
    }
}

pub fn answer(status: u16, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status} Said By The Proxy\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

pub fn body_start(reply: &[u8]) -> usize {
    let end = reply.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    end.map_or(reply.len(), |end| end + 4)
}
