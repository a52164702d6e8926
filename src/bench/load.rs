//! The load generator: so many connections with keep-alive, each with one request under way.
//!
//! It writes prepared bytes and reads no more of an answer than its status and its length, so that the processor is left to
//! whoever is measured. Without a rate each connection sends its next request when it has its answer; with one, requests are due
//! at fixed moments and an answer's time counts from the moment its request was due, so that a server that stands still is not
//! asked less meanwhile.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::LocalSet;

/// Longest that one answer is waited for.
const ANSWERED_WITHIN: Duration = Duration::from_secs(30);

/// Writes request number so and so, as it goes onto the wire, into an empty buffer.
pub type Write = dyn Fn(u64, &mut Vec<u8>) + Send + Sync;

/// What is sent where, and how fast.
#[derive(Clone)]
pub struct Load {
    /// The server.
    pub address: SocketAddr,
    /// How many connections.
    pub connections: usize,
    /// Requests a second, all connections together; none: as many as are answered.
    pub per_s: Option<f64>,
    /// When it ends, whichever comes first.
    pub until: Until,
    /// The requests.
    pub write: Arc<Write>,
}

/// When a load ends.
#[derive(Debug, Clone, Copy)]
pub enum Until {
    /// After this time.
    Passed(Duration),
    /// After so many requests.
    Sent(u64),
}

/// What became of a load.
#[derive(Debug, Default)]
pub struct Measured {
    /// From the first request to the last answer.
    pub took: Duration,
    /// How many answers had which status; 0 stands for none.
    pub statuses: BTreeMap<u16, u64>,
    /// Answers 503 without `Retry-After`.
    pub without_retry_after: u64,
    /// How long each answer of the statuses 200 to 299 took, in microseconds, ascending.
    pub good_us: Vec<u32>,
}

impl Measured {
    /// Good answers.
    pub fn good(&self) -> u64 {
        self.good_us.len() as u64
    }

    /// All other answers, and requests without one.
    pub fn bad(&self) -> u64 {
        self.statuses.values().sum::<u64>() - self.good()
    }

    /// Good answers a second.
    pub fn per_s(&self) -> f64 {
        self.good() as f64 / self.took.as_secs_f64().max(1e-9)
    }

    /// What so many of 1,000 good answers did not exceed, in milliseconds.
    pub fn ms(&self, of_1000: usize) -> f64 {
        let last = self.good_us.len().saturating_sub(1);
        let index = self.good_us.len() * of_1000 / 1_000;
        self.good_us
            .get(index.min(last))
            .map_or(f64::NAN, |us| f64::from(*us) / 1_000.0)
    }

    /// Adds what was measured after it.
    pub fn follow(&mut self, next: Measured) {
        self.took += next.took;
        self.add(next);
        self.good_us.sort_unstable();
    }

    fn add(&mut self, other: Measured) {
        for (status, count) in other.statuses {
            *self.statuses.entry(status).or_default() += count;
        }
        self.without_retry_after += other.without_retry_after;
        self.good_us.extend(other.good_us);
    }
}

/// Carries a load on a thread of its own; returns when it has ended.
///
/// # Errors
/// The connections can't be made.
pub async fn drive(load: Load) -> Result<Measured, String> {
    on_a_thread(load).await.map_err(|error| error.to_string())
}

async fn on_a_thread(load: Load) -> io::Result<Measured> {
    let (tell, told) = tokio::sync::oneshot::channel();
    std::thread::Builder::new()
        .name("upbeat-load".to_owned())
        .spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            let measured = runtime
                .and_then(|runtime| LocalSet::new().block_on(&runtime, all_connections(load)));
            // Whoever waited may have given up.
            let _ = tell.send(measured);
        })?;
    told.await
        .unwrap_or_else(|_| Err(io::Error::other("the load generator panicked")))
}

/// What the connections of a load share.
struct Shared {
    load: Load,
    began: Instant,
    next: AtomicU64,
    is_over: AtomicBool,
}

async fn all_connections(load: Load) -> io::Result<Measured> {
    let mut streams = Vec::new();
    for _ in 0..load.connections {
        let stream = TcpStream::connect(load.address).await?;
        stream.set_nodelay(true)?;
        streams.push(stream);
    }
    let shared = Arc::new(Shared {
        load,
        began: Instant::now(),
        next: AtomicU64::new(0),
        is_over: AtomicBool::new(false),
    });
    let connections: Vec<_> = streams
        .into_iter()
        .map(|stream| tokio::task::spawn_local(one_connection(stream, shared.clone())))
        .collect();
    if let Until::Passed(time) = shared.load.until {
        tokio::time::sleep(time).await;
        shared.is_over.store(true, Ordering::Relaxed);
    }
    let mut all = Measured::default();
    for connection in connections {
        all.add(connection.await.map_err(io::Error::other)?);
    }
    all.took = shared.began.elapsed();
    all.good_us.sort_unstable();
    Ok(all)
}

async fn one_connection(mut stream: TcpStream, shared: Arc<Shared>) -> Measured {
    let mut measured = Measured::default();
    let (mut out, mut buffer) = (Vec::new(), Vec::new());
    loop {
        let number = shared.next.fetch_add(1, Ordering::Relaxed);
        let is_last = match shared.load.until {
            Until::Passed(_) => shared.is_over.load(Ordering::Relaxed),
            Until::Sent(most) => number >= most,
        };
        if is_last {
            return measured;
        }
        let mut due = Instant::now();
        if let Some(per_s) = shared.load.per_s {
            due = shared.began + Duration::from_secs_f64(number as f64 / per_s);
            if due > Instant::now() {
                tokio::time::sleep_until(due.into()).await;
            }
        }
        out.clear();
        (shared.load.write)(number, &mut out);
        let asked = async {
            stream.write_all(&out).await?;
            read_answer(&mut stream, &mut buffer).await
        };
        let answer = match tokio::time::timeout(ANSWERED_WITHIN, asked).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) | Err(_) => Answer::default(),
        };
        let us = u32::try_from(due.elapsed().as_micros()).unwrap_or(u32::MAX);
        *measured.statuses.entry(answer.status).or_default() += 1;
        match answer.status {
            200..300 => measured.good_us.push(us),
            503 if !answer.has_retry_after => measured.without_retry_after += 1,
            _ => {}
        }
        if answer.is_last {
            match TcpStream::connect(shared.load.address).await {
                Ok(fresh) => stream = fresh,
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
            buffer.clear();
        }
    }
}

/// What is looked at of an answer.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    status: u16,
    has_retry_after: bool,
    /// Nothing more comes on this connection.
    is_last: bool,
}

impl Default for Answer {
    /// None.
    fn default() -> Answer {
        Answer {
            status: 0,
            has_retry_after: false,
            is_last: true,
        }
    }
}

async fn read_answer(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<Answer> {
    buffer.clear();
    loop {
        if stream.read_buf(buffer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some((answer, length)) = head(buffer) {
            while buffer.len() < length {
                if stream.read_buf(buffer).await? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            return Ok(answer);
        }
    }
}

/// What the head of an answer says, and how many bytes the whole answer has; none before the head is there.
fn head(bytes: &[u8]) -> Option<(Answer, usize)> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&bytes[..end]).ok()?;
    let mut lines = text.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let mut answer = Answer {
        status,
        has_retry_after: false,
        is_last: false,
    };
    let mut body = 0;
    for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
        if name.eq_ignore_ascii_case("content-length") {
            body = value.parse().ok()?;
        } else if name.eq_ignore_ascii_case("retry-after") {
            answer.has_retry_after = true;
        } else if name.eq_ignore_ascii_case("connection") {
            answer.is_last = value.eq_ignore_ascii_case("close");
        }
    }
    Some((answer, end + body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_as_far_as_they_have_come() {
        let text =
            b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nContent-Length: 2\r\n\r\n{}";
        assert_eq!(head(&text[..40]), None);
        let (answer, length) = head(text).unwrap();
        assert_eq!(length, text.len());
        assert_eq!((answer.status, answer.has_retry_after), (503, true));
        assert!(!answer.is_last);
        let (answer, _) = head(b"HTTP/1.1 202 Accepted\r\nconnection: close\r\n\r\n").unwrap();
        assert!(answer.is_last);
    }

    #[test]
    fn shares_of_the_answers_are_told() {
        let measured = Measured {
            took: Duration::from_secs(2),
            statuses: BTreeMap::from([(202, 1_000), (503, 7)]),
            good_us: (1..=1_000).map(|ms| ms * 1_000).collect(),
            ..Measured::default()
        };
        assert_eq!(measured.per_s(), 500.0);
        assert_eq!(measured.bad(), 7);
        assert_eq!(
            (measured.ms(500), measured.ms(990), measured.ms(1_000)),
            (501.0, 991.0, 1_000.0)
        );
        assert!(Measured::default().ms(990).is_nan());
    }
}
