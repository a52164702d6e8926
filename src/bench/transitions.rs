//! Changes of the provision state, each stored before it is answered: `manage` for nodes that are `available`.

use std::sync::Arc;

use serde_json::json;

use super::load::{Load, Until};
use super::{Bench, load, requests, site};

const PART: &str = "transitions";
const EACH: u64 = 10_000;

pub async fn measure(bench: &mut Bench) -> Result<&'static str, String> {
    let place = bench.place()?;
    let nodes = bench.options.nodes;
    site::fill(&place.url, nodes, site::idle).await?;
    let conductor = bench.conductor(&place).await?;
    let mut first = 0;
    for connections in [1, 64, 512] {
        let times = if connections == 1 { EACH / 10 } else { EACH };
        if first + times > nodes {
            break;
        }
        let write: Arc<load::Write> = Arc::new(move |number, out: &mut Vec<u8>| {
            let path = format!("/v1/nodes/{}/states/provision", site::id(first + number));
            *out = requests::request("PUT", &path, Some(&json!({"target": "manage"})));
        });
        let load = Load {
            address: conductor.address,
            connections,
            per_s: None,
            until: Until::Sent(times),
            write,
        };
        let measured = load::drive(load).await?;
        bench
            .report
            .add_load(PART, &format!("{connections} connections"), &measured);
        first += times;
    }
    conductor.stop().await;
    Ok(PART)
}
