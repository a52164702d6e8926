//! Small servers that stand in for an agent: they read whole requests, keep them, and answer exactly the bytes a test wants.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// What a server does with a request.
#[derive(Clone)]
pub enum Play {
    /// Writes these bytes and waits for the next request.
    Answer(Vec<u8>),
    /// Writes these bytes and closes.
    AnswerAndClose(Vec<u8>),
    /// Writes these bytes and resets the connection.
    AnswerAndReset(Vec<u8>),
    /// Never answers.
    Silence,
}

/// How a connection begins.
#[derive(Clone)]
enum Opening {
    Plain,
    Tls(Arc<ServerConfig>),
    /// Accepts and never says a word.
    Mute,
}

/// A running server; it stops when the test's runtime ends.
pub struct Server {
    pub port: u16,
    pub seen: Arc<Seen>,
}

/// What a server saw.
#[derive(Default)]
pub struct Seen {
    pub connections: AtomicUsize,
    /// Heads and bodies as they came.
    pub requests: Mutex<Vec<String>>,
    /// How long each connection was idle before the client closed it.
    pub idle_before_close: Mutex<Vec<Duration>>,
    pub closed: tokio::sync::Notify,
}

impl Seen {
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

impl Server {
    /// Plain HTTP; answers requests by `plays` in turn, the last one for ever.
    pub async fn plain(plays: &[Play]) -> Server {
        Server::start(Opening::Plain, plays).await
    }

    /// The same over TLS.
    pub async fn tls(config: ServerConfig, plays: &[Play]) -> Server {
        Server::start(Opening::Tls(Arc::new(config)), plays).await
    }

    /// Accepts connections and never answers anything, not even a TLS greeting.
    pub async fn mute() -> Server {
        Server::start(Opening::Mute, &[Play::Silence]).await
    }

    async fn start(opening: Opening, plays: &[Play]) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Seen::default());
        let plays = Arc::new(Mutex::new(plays.to_vec()));
        let to_fill = Arc::clone(&seen);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                to_fill.connections.fetch_add(1, Ordering::SeqCst);
                let (opening, plays, seen) =
                    (opening.clone(), Arc::clone(&plays), Arc::clone(&to_fill));
                tokio::spawn(async move {
                    match opening {
                        Opening::Plain => serve(stream, &plays, &seen, plain_reset).await,
                        Opening::Tls(config) => {
                            if let Ok(stream) = TlsAcceptor::from(config).accept(stream).await {
                                serve(stream, &plays, &seen, |stream| {
                                    plain_reset(stream.into_inner().0);
                                })
                                .await;
                            }
                        }
                        Opening::Mute => {
                            let _stream = stream;
                            std::future::pending::<()>().await;
                        }
                    }
                });
            }
        });
        Server { port, seen }
    }
}

fn plain_reset(stream: TcpStream) {
    stream.set_zero_linger().unwrap();
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    plays: &Mutex<Vec<Play>>,
    seen: &Seen,
    reset: impl FnOnce(S),
) {
    loop {
        let waiting_since = Instant::now();
        let Some(request) = read_request(&mut stream).await else {
            let idle = waiting_since.elapsed();
            seen.idle_before_close.lock().unwrap().push(idle);
            seen.closed.notify_one();
            return;
        };
        seen.requests.lock().unwrap().push(request);
        let play = {
            let mut plays = plays.lock().unwrap();
            if plays.len() > 1 {
                plays.remove(0)
            } else {
                plays[0].clone()
            }
        };
        match play {
            Play::Answer(bytes) => stream.write_all(&bytes).await.unwrap(),
            Play::AnswerAndClose(bytes) => {
                stream.write_all(&bytes).await.unwrap();
                let _ = stream.shutdown().await;
                return;
            }
            Play::AnswerAndReset(bytes) => {
                stream.write_all(&bytes).await.unwrap();
                stream.flush().await.unwrap();
                reset(stream);
                return;
            }
            Play::Silence => std::future::pending().await,
        }
    }
}

/// Head and body of one request; none when the client has closed.
async fn read_request<S: AsyncRead + Unpin>(stream: &mut S) -> Option<String> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length: usize = head
                .to_ascii_lowercase()
                .lines()
                .find_map(|line| line.strip_prefix("content-length:").map(str::to_owned))
                .map_or(0, |length| length.trim().parse().unwrap());
            if body.len() >= length {
                return Some(text);
            }
        }
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
        }
    }
}

/// A whole answer with a length.
pub fn answer(status: u16, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A whole answer in two chunks, without a length.
pub fn chunked(status: u16, body: &str) -> Vec<u8> {
    let (first, second) = body.split_at(body.len() / 2);
    format!(
        "HTTP/1.1 {status} X\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n",
        first.len(),
        second.len()
    )
    .into_bytes()
}

/// An answer that promises more than it holds.
pub fn half(status: u16, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{body}",
        body.len() + 10
    )
    .into_bytes()
}
