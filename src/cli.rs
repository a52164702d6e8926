//! The command line: roles, options, exit codes.
//!
//! Exit codes: 0 as asked, 1 it failed (the reason is on standard error), 2 the command line or the configuration is at fault.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::{Parser, Subcommand};

use crate::bench::{self, BenchOptions};
use crate::config::{self, Config, LogFormat, Overrides};
use crate::demo::{self, ConductorSettings, DemoOptions, Lab, RunningConductor, StartConductor};
use crate::observe::trace;
use crate::serve;
use crate::simulator::{self, Faults, Options};

/// A bare-metal conductor: takes machines from a rack to a running system, by way of the ironic-python-agent ramdisk.
#[derive(Debug, Parser)]
#[command(name = "upbeat", version)]
struct Cli {
    #[command(subcommand)]
    role: Role,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// Run the conductor.
    Serve(ConfigOptions),
    /// See it at work: a conductor and simulated machines on loopback, deployed before your eyes.
    Demo(DemoOptions),
    /// Run the conductor with a simulated machine behind every `fake-hardware` node, to try your own client with.
    Lab(LabOptions),
    /// Let the very same core live through a made-up world where everything goes wrong, and check that the rules hold.
    Simulate(SimulateOptions),
    /// Measure what this machine carries: heartbeats, requests, deploys, deadlines, memory.
    Bench(BenchOptions),
    /// Print the effective configuration, secrets masked; or say everything that is wrong with it.
    Config(ConfigOptions),
}

#[derive(Debug, clap::Args)]
struct ConfigOptions {
    /// The configuration file; ops/upbeat.toml shows every setting with its default.
    #[arg(long, short, env = "UPBEAT_CONFIG")]
    config: Option<PathBuf>,
    /// A single setting, which wins over the file and the environment; may be repeated.
    #[arg(long = "set", value_name = "SECTION.KEY=VALUE", value_parser = parse_setting)]
    settings: Vec<(String, String)>,
}

#[derive(Debug, clap::Args)]
struct LabOptions {
    /// Address and port of the API; wins over api.listen.
    #[arg(long)]
    listen: Option<SocketAddr>,
    #[command(flatten)]
    config: ConfigOptions,
}

#[derive(Debug, clap::Args)]
struct SimulateOptions {
    /// How many nodes.
    #[arg(long, default_value_t = 100)]
    nodes: u64,
    /// For how many days of the world's time; fractions are fine.
    #[arg(long, default_value_t = 1.0)]
    days: f64,
    /// The same in milliseconds, as the command that replays a violation has it.
    #[arg(long, conflicts_with = "days")]
    span_ms: Option<i64>,
    /// What everything follows from; made up and printed if it is not given.
    #[arg(long)]
    seed: Option<u64>,
    /// Which kinds of faults: all, none, harmless (those that must never fail a deploy), or some, separated by commas.
    #[arg(long, default_value = "all", value_parser = Faults::parse)]
    faults: Faults,
    /// Only this node.
    #[arg(long)]
    node: Option<u64>,
    /// Only the faults with these numbers, as the command that replays a violation has them; or none.
    #[arg(long, value_parser = parse_strikes)]
    strikes: Option<Strikes>,
    /// Don't look for the shortest way to a violation.
    #[arg(long)]
    no_shrink: bool,
}

/// Numbers of faults.
#[derive(Debug, Clone)]
struct Strikes(BTreeSet<u64>);

fn parse_strikes(text: &str) -> Result<Strikes, String> {
    if text == "none" {
        return Ok(Strikes(BTreeSet::new()));
    }
    let numbers = text.split(',').map(|word| word.trim().parse());
    numbers
        .collect::<Result<_, _>>()
        .map(Strikes)
        .map_err(|_| "write numbers separated by commas, or none".to_owned())
}

fn parse_setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if key.contains('.') => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write it as section.key=value, for example api.listen=127.0.0.1:6385".to_owned()),
    }
}

/// Does what the command line asks for.
pub fn run() -> ExitCode {
    match Cli::parse().role {
        Role::Serve(options) => match load(&options, Vec::new()) {
            Ok(config) => actix_web::rt::System::new().block_on(serve_until_told(config, None)),
            Err(code) => code,
        },
        Role::Lab(options) => lab(options),
        Role::Config(options) => match load(&options, Vec::new()) {
            Ok(config) => {
                // Whoever reads it may have seen enough (`| head`).
                let _ = write!(std::io::stdout(), "{}", config.print_effective());
                ExitCode::SUCCESS
            }
            Err(code) => code,
        },
        Role::Simulate(options) => simulate(&options),
        Role::Bench(options) => actix_web::rt::System::new().block_on(bench::run(options)),
        Role::Demo(options) => actix_web::rt::System::new().block_on(hold_demo(options)),
    }
}

fn simulate(asked: &SimulateOptions) -> ExitCode {
    const DAY_MS: f64 = 86_400_000.0;
    let seed = asked.seed.unwrap_or_else(|| {
        let mut bytes = [0; 4];
        getrandom::fill(&mut bytes).expect("the operating system has random numbers");
        u64::from(u32::from_le_bytes(bytes))
    });
    #[expect(
        clippy::cast_possible_truncation,
        reason = "an odd length is only a short or a long run"
    )]
    let span_ms = asked.span_ms.unwrap_or((asked.days * DAY_MS) as i64);
    let options = Options {
        only_node: asked.node,
        faults: asked.faults,
        keep: asked.strikes.clone().map(|strikes| strikes.0),
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        ..Options::new(seed, asked.nodes, span_ms)
    };
    println!(
        "seed {seed}: {} nodes, {:.2} days, faults: {}",
        asked.nodes,
        span_ms as f64 / DAY_MS,
        asked.faults
    );
    let began = Instant::now();
    let report = simulator::run(&options);
    let took = began.elapsed().as_secs_f64();
    print!("{}", report.tally.text(asked.faults));
    println!(
        "{:<20}{} in {took:.1} s, {:.0}/s",
        "events",
        report.tally.events,
        report.tally.events as f64 / took
    );
    println!("{:<20}{}", "violations", report.violations);
    println!("{:<20}{:016x}", "digest", report.digest);
    let Some((node, violation)) = report.broken else {
        return ExitCode::SUCCESS;
    };
    println!(
        "\nBROKEN on node {node}: {}\n  {}",
        violation.rule.sentence(),
        violation.what
    );
    let shrunk = (!asked.no_shrink)
        .then(|| simulator::shrink(&options, node))
        .flatten();
    match shrunk {
        Some(shrunk) => {
            println!("\nThe shortest way there that was found:");
            for line in simulator::told_briefly(&shrunk.lines) {
                println!("  {line}");
            }
            println!(
                "{}: {}",
                shrunk.violation.rule.sentence(),
                shrunk.violation.what
            );
            println!("\nReplay it: {}", shrunk.command());
        }
        None => println!(
            "\nReplay it: upbeat simulate --seed {seed} --nodes {} --span-ms {span_ms} --faults {} --node {node}",
            asked.nodes, asked.faults
        ),
    }
    ExitCode::FAILURE
}

/// Serves with machines of its own. Unless the user says otherwise, nothing remains of it.
fn lab(options: LabOptions) -> ExitCode {
    let state_dir = match tempfile::Builder::new().prefix("upbeat-lab-").tempdir() {
        Ok(state_dir) => state_dir,
        Err(error) => {
            eprintln!(
                "no temporary directory for the database: {error}; set TMPDIR to a writable one"
            );
            return ExitCode::FAILURE;
        }
    };
    let database = state_dir.path().join("upbeat.db");
    let presets = vec![
        ("database.url", format!("sqlite://{}", database.display())),
        // Machines come and go quickly here.
        ("conductor.deploy_callback_timeout", "60".to_owned()),
        ("conductor.soft_power_off_wait", "2".to_owned()),
        ("agent.heartbeat_timeout", "3".to_owned()),
        ("agent.poll_interval_max", "1".to_owned()),
        ("agent.callback_networks", "127.0.0.0/8".to_owned()),
    ];
    let mut config = options.config;
    let listen = options.listen.map(|listen| listen.to_string());
    config
        .settings
        .extend(listen.map(|listen| ("api.listen".to_owned(), listen)));
    match load(&config, presets) {
        Ok(config) => {
            actix_web::rt::System::new().block_on(serve_until_told(config, Some(Lab::default())))
        }
        Err(code) => code,
    }
}

fn load(options: &ConfigOptions, presets: Vec<(&'static str, String)>) -> Result<Config, ExitCode> {
    let mut overrides = Overrides::from_environment();
    overrides.presets = presets;
    overrides.settings = options.settings.clone();
    config::load(options.config.as_deref(), &overrides).map_err(|faults| {
        eprint!("{faults}");
        ExitCode::from(2)
    })
}

async fn serve_until_told(config: Config, lab: Option<Lab>) -> ExitCode {
    let format = match config.log.format {
        LogFormat::Text => trace::Format::Text,
        LogFormat::Json => trace::Format::Json,
    };
    if let Err(why) = trace::start(format, &config.log.level) {
        eprintln!("log.level: {why}");
        return ExitCode::from(2);
    }
    let hook = lab.as_ref().map(Lab::power_hook);
    let mut running = match serve::start(&config, hook).await {
        Ok(running) => running,
        Err(why) => {
            // Databases explain themselves in several lines; a log line is one.
            let why: Vec<&str> = why.lines().map(str::trim).collect();
            tracing::error!("not started: {}", why.join(" "));
            return ExitCode::FAILURE;
        }
    };
    if let Some(lab) = &lab {
        let api_url = format!("http://{}", reachable(running.address));
        lab.open(&api_url);
        println!(
            "The API answers at {api_url}. Every fake-hardware node has a simulated machine behind its ports. Ctrl-C ends it."
        );
    }
    let code = tokio::select! {
        ended = running.ended() => {
            tracing::error!(?ended, "the conductor can't go on");
            ExitCode::FAILURE
        }
        signal = told_to_stop() => {
            tracing::info!(signal, "stopping");
            ExitCode::SUCCESS
        }
    };
    if let Some(lab) = &lab {
        lab.close().await;
    }
    running.stop().await;
    code
}

/// Where this machine finds what listens at `address`.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        IpAddr::V4(_) | IpAddr::V6(_) => {}
    }
    address
}

async fn told_to_stop() -> &'static str {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) else {
        // Without signal handlers the process ends as signals end any process.
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => "SIGINT",
        _ = terminate.recv() => "SIGTERM",
    }
}

async fn hold_demo(options: DemoOptions) -> ExitCode {
    // Warnings about simulated failures would only hide the progress bar; UPBEAT_LOG_LEVEL shows them.
    let level = std::env::var("UPBEAT_LOG_LEVEL").unwrap_or_else(|_| "off".to_owned());
    if let Err(why) = trace::start(trace::Format::Text, &level) {
        eprintln!("UPBEAT_LOG_LEVEL: {why}");
        return ExitCode::from(2);
    }
    match demo::run(options, &InThisProcess).await {
        Ok(end) => end.into(),
        Err(error) => {
            eprintln!("The demo could not be held: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Starts the demo's conductor beside the demo.
struct InThisProcess;

impl StartConductor for InThisProcess {
    async fn start(&self, settings: ConductorSettings) -> Result<RunningConductor, String> {
        let config = demo_config(&settings);
        config.validate().map_err(|faults| faults.to_string())?;
        let running = serve::start(&config, Some(settings.power_hook)).await?;
        Ok(RunningConductor {
            api_url: format!("http://{}", running.address),
            stop: Box::new(|| Box::pin(running.stop())),
        })
    }
}

fn demo_config(settings: &ConductorSettings) -> Config {
    let mut config = Config::default();
    let database = settings.state_dir.join("upbeat.db");
    config.database.url = format!("sqlite://{}", database.display());
    config.api.listen = settings.listen;
    // All are deployed at once.
    config.conductor.max_concurrent_deploy = 0;
    config.conductor.max_concurrent_clean = 0;
    config.conductor.max_concurrent_per_image_host = 0;
    config.conductor.deploy_callback_timeout = settings.silence_timeout.as_secs();
    // It shows deploys; `upbeat lab` has the whole life of a node.
    config.conductor.automated_clean = false;
    config.conductor.default_boot_mode = crate::node::BootMode::Bios;
    config.agent.heartbeat_timeout = settings.heartbeat_timeout.as_secs();
    config.agent.poll_interval_max = settings.command_poll_interval.as_secs().max(1);
    config.agent.callback_networks = vec![ipnet::IpNet::V4(ipnet::Ipv4Net::new_assert(
        std::net::Ipv4Addr::new(127, 0, 0, 0),
        8,
    ))];
    config
}
