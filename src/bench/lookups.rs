//! Lookups of agents that have just booted: the first opens a session, which is stored before it is answered; later ones find it.

use std::sync::Arc;

use super::load::{Load, Until};
use super::{Bench, load, requests, site};

const PART: &str = "lookups";
const CONNECTIONS: usize = 64;

pub async fn measure(bench: &mut Bench) -> Result<&'static str, String> {
    let place = bench.place()?;
    let waiting = bench.options.waiting;
    site::fill_some_waiting(&place.url, bench.options.nodes, waiting, site::booted).await?;
    let conductor = bench.conductor(&place).await?;
    let write: Arc<load::Write> = Arc::new(move |number, out: &mut Vec<u8>| {
        let path = format!(
            "/v1/lookup?addresses={}",
            site::mac(number * 7919 % waiting)
        );
        *out = requests::request("GET", &path, None);
    });
    let load = Load {
        address: conductor.address,
        connections: CONNECTIONS,
        per_s: None,
        until: Until::Sent(waiting),
        write,
    };
    for what in ["the first of each agent, stored", "later ones"] {
        let measured = load::drive(load.clone()).await?;
        bench.report.add_load(PART, what, &measured);
    }
    conductor.stop().await;
    Ok(PART)
}
