//! Deploys from end to end: `upbeat demo` with so many simulated machines, all deployed at once.

use std::time::Instant;

use super::Bench;

const PART: &str = "deploys";
const MACHINES: u32 = 1_000;

pub async fn measure(bench: &mut Bench) -> Result<&'static str, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let began = Instant::now();
    let machines = MACHINES.to_string();
    let ended = std::process::Command::new(program)
        .args(["demo", "--once", "--nodes", &machines])
        .stdin(std::process::Stdio::null())
        .output();
    let ended = ended.map_err(|error| error.to_string())?;
    if !ended.status.success() {
        let told = String::from_utf8_lossy(&ended.stdout);
        let last: Vec<&str> = told.lines().rev().take(5).collect();
        return Err(format!("the demo ended with {}: {last:?}", ended.status));
    }
    let took = began.elapsed().as_secs_f64();
    bench
        .report
        .add(
            PART,
            "1,000 machines, from nothing to the last one active",
            took,
            "s",
        )
        .at_most(30.0);
    bench
        .report
        .add(PART, "deploys", f64::from(MACHINES) / took, "/s");
    Ok(PART)
}
