//! What one box carries: `upbeat bench` measures a conductor in a process of its own over real HTTP, beside a bare actix-web handler
//! in the same run, and says of each figure whether it is as promised.
//!
//! ```text
//!  bench (this process)                                  measured (processes of their own)
//!  ├─ site     fills a database with nodes
//!  ├─ load     one thread, so many connections  ──HTTP─▶ upbeat serve      ◀─▶ database
//!  │                                            ──HTTP─▶ the bare handler
//!  ├─ agents   answer what conductors ask       ◀─HTTP── upbeat serve
//!  └─ parts    one per thing measured ─▶ report ─▶ tables, JSON
//! ```
//! All of it shares the processor cores with whoever is measured, and says so. Start reading at [`run`].

mod agents;
mod api;
mod connections;
mod curve;
mod deadlines;
mod deploys;
mod heartbeats;
mod load;
mod lookups;
mod machine;
mod memory;
mod neighbours;
mod overload;
mod place;
mod process;
mod report;
mod requests;
mod restart;
mod roof;
#[doc(hidden)]
pub mod site;
mod slow;
mod transitions;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum as _;

use self::machine::Machine;
use self::place::Place;
use self::process::Process;
use self::report::Report;

/// What `upbeat bench` is told.
#[derive(Debug, Clone, clap::Args)]
pub struct BenchOptions {
    /// What to measure; everything unless named.
    #[arg(value_enum)]
    parts: Vec<Part>,
    /// How many nodes are enrolled.
    #[arg(long, default_value_t = 100_000)]
    nodes: u64,
    /// How many of them wait for an agent.
    #[arg(long, default_value_t = 10_000)]
    waiting: u64,
    /// For how many seconds each load lasts.
    #[arg(long, default_value_t = 9)]
    seconds: u64,
    /// postgres://user:password@host:port/name of a database that is emptied again and again: its name must begin with
    /// upbeat_bench. SQLite files in a temporary folder unless given.
    #[arg(long)]
    database: Option<String>,
    /// A setting of the conductor that is measured, as `upbeat serve` takes it; may be repeated.
    #[arg(long = "set", value_name = "SECTION.KEY=VALUE")]
    settings: Vec<String>,
    /// A file for the figures, as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Serve as the bare handler others are compared with.
    #[arg(long, hide = true)]
    as_bare_handler: bool,
    /// Serve as a conductor each of whose commits takes longer.
    #[arg(long, hide = true)]
    as_slow_conductor: bool,
}

/// One thing to measure; in this order, unless some are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Heartbeats a second, and how long they take.
    Heartbeats,
    /// Lookups of agents that have just booted.
    Lookups,
    /// Lists, single nodes, new nodes, changes.
    Api,
    /// Changes of the provision state that are stored.
    Transitions,
    /// Heartbeats while agents hang and the store is slow.
    Neighbours,
    /// Deadlines that come at once.
    Deadlines,
    /// What a node costs.
    Memory,
    /// Killed and started again with every command open.
    Restart,
    /// A thousand machines deployed at once.
    Deploys,
    /// Twice as much as it can take.
    Overload,
    /// Silent, slow and endless clients.
    Connections,
    /// How cost grows with the number of nodes.
    Curve,
}

/// What all parts work with.
struct Bench {
    options: BenchOptions,
    report: Report,
}

impl Bench {
    fn load_time(&self) -> Duration {
        Duration::from_secs(self.options.seconds.max(1))
    }

    /// A new, empty database.
    fn place(&self) -> Result<Place, String> {
        Place::new(self.options.database.as_deref())
    }

    /// A conductor on that database.
    async fn conductor(&self, place: &Place) -> Result<Process, String> {
        self.serving(&["serve"], place).await
    }

    /// A conductor each of whose commits takes 50 ms longer.
    async fn slow_conductor(&self, place: &Place) -> Result<Process, String> {
        self.serving(&["bench", "--as-slow-conductor"], place).await
    }

    async fn serving(&self, role: &[&str], place: &Place) -> Result<Process, String> {
        Process::conductor(role, place.folder(), &place.url, &self.options.settings).await
    }

    async fn measure(&mut self, part: Part) -> Result<&'static str, String> {
        match part {
            Part::Heartbeats => heartbeats::measure(self).await,
            Part::Lookups => lookups::measure(self).await,
            Part::Api => api::measure(self).await,
            Part::Transitions => transitions::measure(self).await,
            Part::Neighbours => neighbours::measure(self).await,
            Part::Deadlines => deadlines::measure(self).await,
            Part::Memory => memory::measure(self).await,
            Part::Restart => restart::measure(self).await,
            Part::Deploys => deploys::measure(self).await,
            Part::Overload => overload::measure(self).await,
            Part::Connections => connections::measure(self).await,
            Part::Curve => curve::measure(self).await,
        }
    }
}

/// Measures what was asked for. Exit code 1 if something could not be measured, or a promise was missed.
pub async fn run(options: BenchOptions) -> ExitCode {
    let served = if options.as_bare_handler {
        Some(roof::serve().await.map_err(|error| error.to_string()))
    } else if options.as_slow_conductor {
        Some(slow::serve(&options.settings).await)
    } else {
        None
    };
    match served {
        Some(Ok(())) => return ExitCode::SUCCESS,
        Some(Err(why)) => {
            eprintln!("{why}");
            return ExitCode::FAILURE;
        }
        None => {}
    }
    // Fails only if one was chosen before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let machine = match Machine::here(options.database.as_deref()) {
        Ok(machine) => machine,
        Err(why) => {
            eprintln!("--database: {why}");
            return ExitCode::FAILURE;
        }
    };
    let figures = Vec::new();
    let mut bench = Bench {
        report: Report { machine, figures },
        options,
    };
    println!("{}", bench.report.machine.line());
    println!(
        "The load generator shares the cores with whoever is measured. {} nodes, {} of them waiting, {}.",
        bench.options.nodes,
        bench.options.waiting,
        match &bench.options.database {
            Some(_) => "in PostgreSQL",
            None => "in SQLite with synchronous=FULL",
        }
    );
    let parts = match bench.options.parts.as_slice() {
        [] => Part::value_variants().to_vec(),
        named => named.to_vec(),
    };
    let mut code = ExitCode::SUCCESS;
    for part in parts {
        match bench.measure(part).await {
            Ok(title) => println!("\n{}", bench.report.table(title)),
            Err(why) => {
                eprintln!("{part:?} could not be measured: {why}");
                code = ExitCode::FAILURE;
            }
        }
    }
    if let Some(path) = &bench.options.json {
        let text = serde_json::to_string_pretty(&bench.report).expect("plain data");
        if let Err(error) = std::fs::write(path, text + "\n") {
            eprintln!("{}: {error}", path.display());
            code = ExitCode::FAILURE;
        }
    }
    let missed = bench.report.missed();
    if !missed.is_empty() {
        println!("\n{} of the promised figures were missed.", missed.len());
        code = ExitCode::FAILURE;
    }
    code
}
