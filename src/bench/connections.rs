//! Connections that want nothing or never come to an end: 10,000 that are silent, a thousand that stop in the middle of a request,
//! and a hundred that send headers without end; what they cost, how soon they are gone, and whether agents notice.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::load::{Load, Until};
use super::{Bench, load, requests, site};
use crate::serve;

const PART: &str = "connections";
/// So long the conductor takes to accept them all, or longer.
const TAKEN_IN_WITHIN: Duration = Duration::from_secs(2);
const KIB: f64 = 1_024.0;
const SILENT: usize = 10_000;
const HALF: usize = 1_000;
const FLOODS: usize = 100;
/// A flood ends after so many bytes, if nobody ends it before.
const FLOOD_BYTES: usize = 16 << 20;
const HEARTBEATS_PER_S: f64 = 500.0;
/// Longest that anybody may hold a connection for nothing.
const GONE_WITHIN: Duration = Duration::from_secs(20);

pub async fn measure(bench: &mut Bench) -> Result<&'static str, String> {
    serve::allow_open_files();
    let waiting = bench.options.waiting;
    let place = bench.place()?;
    site::fill(&place.url, waiting, site::heard).await?;
    let conductor = bench.conductor(&place).await?;
    let address = conductor.address;
    let write = requests::heartbeats_of_all(&place.key, waiting);
    let usual = Load {
        address,
        connections: 64,
        per_s: Some(HEARTBEATS_PER_S),
        until: Until::Passed(bench.load_time()),
        write,
    };
    // Whatever the first requests take is taken.
    load::drive(usual.clone()).await?;
    let half = requests::request("GET", "/v1/nodes", None);
    let half = half[..half.len() - 2].to_vec();
    for (what, count, sends) in [
        ("silent", SILENT, Sends::Nothing),
        ("half a request", HALF, Sends::Once(half)),
        ("headers without end", FLOODS, Sends::WithoutEnd),
    ] {
        let before = conductor.resident() as f64;
        let began = Instant::now();
        let mut open = JoinSet::new();
        for _ in 0..count {
            let stream = TcpStream::connect(address)
                .await
                .map_err(|error| error.to_string())?;
            open.spawn(until_closed(stream, sends.clone()));
        }
        // Whoever connects now would wait behind all of them.
        tokio::time::sleep(TAKEN_IN_WITHIN).await;
        let (meanwhile, most) = tokio::join!(load::drive(usual.clone()), async {
            let mut most = 0;
            while began.elapsed() < bench.load_time() {
                most = most.max(conductor.resident());
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            most as f64
        });
        let meanwhile = meanwhile?;
        let mut held = 0;
        while let Some(closed) = open.join_next().await {
            held += u64::from(!closed.unwrap_or(false));
        }
        let all_gone = began.elapsed().as_secs_f64();
        let report = &mut bench.report;
        let title = |figure: &str| format!("{count} connections, {what}: {figure}");
        report.add(
            PART,
            &title("memory for each"),
            (most - before).max(0.0) / count as f64 / KIB,
            "KiB",
        );
        report
            .add(PART, &title("heartbeats, 99 %"), meanwhile.ms(990), "ms")
            .at_most(20.0);
        report.expect_none(PART, title("heartbeats not accepted"), meanwhile.bad());
        report.add(PART, &title("all closed after"), all_gone, "s");
        report.expect_none(PART, title("still open then"), held);
    }
    conductor.stop().await;
    Ok(PART)
}

/// What a client sends that never sends a whole request.
#[derive(Clone)]
enum Sends {
    Nothing,
    Once(Vec<u8>),
    WithoutEnd,
}

/// True when the other side has closed the connection in time.
async fn until_closed(mut stream: TcpStream, sends: Sends) -> bool {
    let closed = async {
        match sends {
            Sends::Nothing => {}
            // Whether it fails shows when it is read.
            Sends::Once(bytes) => drop(stream.write_all(&bytes).await),
            Sends::WithoutEnd => drop(flood(&mut stream).await),
        }
        let mut answer = Vec::new();
        // An end is an end, however it comes.
        drop(stream.read_to_end(&mut answer).await);
    };
    tokio::time::timeout(GONE_WITHIN, closed).await.is_ok()
}

async fn flood(stream: &mut TcpStream) -> std::io::Result<()> {
    stream
        .write_all(b"GET /v1/nodes HTTP/1.1\r\nhost: conductor.example\r\n")
        .await?;
    let header = format!("x-flood: {}\r\n", "a".repeat(1_000));
    for _ in 0..FLOOD_BYTES / header.len() {
        stream.write_all(header.as_bytes()).await?;
    }
    Ok(())
}
