//! Takes single values apart: type, range, spelling.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use ipnet::IpNet;
use toml::Value;

use super::source::{Raw, Reader, closest};
use super::{Agent, Api, Auth, Conductor, Config, Database, Inspector, Log, LogFormat};
use crate::agent::TlsMinVersion;
use crate::node::BootMode;
use crate::node::inspection::{AddPorts, Hook, KeepPorts};

const DAY: u64 = 86_400;
const GIB: u64 = 1 << 30;

/// Reads every setting; a faulty one keeps its default.
pub(super) fn read(reader: &mut Reader) -> Config {
    let Config {
        api,
        conductor,
        inspector,
        database,
        agent,
        log,
    } = Config::default();
    Config {
        api: read_api(&mut Section(reader, "api"), api),
        conductor: read_conductor(&mut Section(reader, "conductor"), conductor),
        inspector: read_inspector(&mut Section(reader, "inspector"), inspector),
        database: read_database(&mut Section(reader, "database"), database),
        agent: read_agent(&mut Section(reader, "agent"), agent),
        log: read_log(&mut Section(reader, "log"), log),
    }
}

fn read_api(from: &mut Section<'_>, default: Api) -> Api {
    Api {
        listen: from.parsed("listen", default.listen, address),
        agent_listen: from.parsed("agent_listen", default.agent_listen, |text| {
            (!text.is_empty()).then(|| address(text)).transpose()
        }),
        public_endpoint: from.parsed("public_endpoint", default.public_endpoint, endpoint),
        trust_proxy_headers: from.boolean("trust_proxy_headers", default.trust_proxy_headers),
        auth: from.choice(
            "auth",
            default.auth,
            &[("none", Auth::None), ("http_basic", Auth::HttpBasic)],
        ),
        htpasswd_file: from.path("htpasswd_file"),
        allow_unauthenticated: from.boolean("allow_unauthenticated", default.allow_unauthenticated),
        max_body_bytes: from.number("max_body_bytes", default.max_body_bytes, 1024..=GIB),
        max_provision_body_bytes: from.number(
            "max_provision_body_bytes",
            default.max_provision_body_bytes,
            1024..=GIB,
        ),
        max_inspection_body_bytes: from.number(
            "max_inspection_body_bytes",
            default.max_inspection_body_bytes,
            1024..=GIB,
        ),
        max_limit: from.number("max_limit", default.max_limit, 1..=100_000),
        max_requests: from.number("max_requests", default.max_requests, 1..=1_000_000),
        busy_wait: from.number("busy_wait", default.busy_wait, 0..=60),
        workers: from.number("workers", default.workers, 0..=1024),
        enable_ramdisk_endpoints: from
            .boolean("enable_ramdisk_endpoints", default.enable_ramdisk_endpoints),
    }
}

fn read_conductor(from: &mut Section<'_>, default: Conductor) -> Conductor {
    Conductor {
        host: from.parsed("host", default.host, |text| {
            let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
            if text.len() > 255 || !text.chars().all(is_name) {
                return Err(format!(
                    "{text:?} is not a host name; use up to 255 letters, digits, dots, hyphens and underscores"
                ));
            }
            Ok((!text.is_empty()).then(|| text.to_owned()))
        }),
        arbiters: from.number("arbiters", default.arbiters, 0..=1024),
        mailbox_messages_max: from.number(
            "mailbox_messages_max",
            default.mailbox_messages_max,
            1..=65_536,
        ),
        deploy_callback_timeout: from.number(
            "deploy_callback_timeout",
            default.deploy_callback_timeout,
            0..=30 * DAY,
        ),
        clean_callback_timeout: from.number(
            "clean_callback_timeout",
            default.clean_callback_timeout,
            0..=30 * DAY,
        ),
        service_callback_timeout: from.number(
            "service_callback_timeout",
            default.service_callback_timeout,
            0..=30 * DAY,
        ),
        rescue_callback_timeout: from.number(
            "rescue_callback_timeout",
            default.rescue_callback_timeout,
            0..=30 * DAY,
        ),
        inspect_wait_timeout: from.number(
            "inspect_wait_timeout",
            default.inspect_wait_timeout,
            0..=30 * DAY,
        ),
        automated_clean: from.boolean("automated_clean", default.automated_clean),
        clean_step_priority_override: from.list(
            "clean_step_priority_override",
            default.clean_step_priority_override,
            str::parse,
        ),
        poweroff_in_cleanfail: from.boolean("poweroff_in_cleanfail", default.poweroff_in_cleanfail),
        power_state_change_timeout: from.number(
            "power_state_change_timeout",
            default.power_state_change_timeout,
            0..=DAY,
        ),
        soft_power_off_wait: from.number("soft_power_off_wait", default.soft_power_off_wait, 0..=DAY),
        write_image_limit: from.number("write_image_limit", default.write_image_limit, 0..=30 * DAY),
        command_limit: from.number("command_limit", default.command_limit, 0..=30 * DAY),
        default_boot_mode: from.choice(
            "default_boot_mode",
            default.default_boot_mode,
            &[("uefi", BootMode::Uefi), ("bios", BootMode::Bios)],
        ),
        max_concurrent_deploy: from.number(
            "max_concurrent_deploy",
            default.max_concurrent_deploy,
            0..=1_000_000,
        ),
        max_concurrent_clean: from.number(
            "max_concurrent_clean",
            default.max_concurrent_clean,
            0..=1_000_000,
        ),
        max_concurrent_per_image_host: from.number(
            "max_concurrent_per_image_host",
            default.max_concurrent_per_image_host,
            0..=1_000_000,
        ),
        actor_restarts_max: from.number("actor_restarts_max", default.actor_restarts_max, 1..=1000),
        actor_restarts_window: from.number(
            "actor_restarts_window",
            default.actor_restarts_window,
            1..=DAY,
        ),
        idle_actor_kept_for: from.number(
            "idle_actor_kept_for",
            default.idle_actor_kept_for,
            1..=DAY,
        ),
    }
}

fn read_inspector(from: &mut Section<'_>, default: Inspector) -> Inspector {
    Inspector {
        hooks: from.list("hooks", default.hooks, |text| {
            let known = Hook::ALL.iter().find(|(name, _)| *name == text);
            known.map(|(_, hook)| *hook).ok_or_else(|| {
                let names = Hook::ALL.map(|(name, _)| name).join(", ");
                format!("{text:?} is not an inspection hook; use some of {names}")
            })
        }),
        add_ports: from.choice("add_ports", default.add_ports, &AddPorts::ALL),
        keep_ports: from.choice("keep_ports", default.keep_ports, &KeepPorts::ALL),
    }
}

fn read_database(from: &mut Section<'_>, default: Database) -> Database {
    Database {
        url: from.parsed("url", default.url, |text| {
            // The text may hold a password, so it is never repeated.
            let rest = ["sqlite://", "postgres://", "postgresql://"]
                .iter()
                .find_map(|scheme| text.strip_prefix(scheme));
            match rest {
                Some("") => Err("names no database; write for example \"sqlite://upbeat.db\"".to_owned()),
                Some(_) => Ok(text.to_owned()),
                None => Err(
                    "is not a database this program knows; write \"sqlite://path\" or \"postgres://user:password@host/name\""
                        .to_owned(),
                ),
            }
        }),
        readers: from.number("readers", default.readers, 1..=1024),
        queue_max: from.number("queue_max", default.queue_max, 1..=1 << 20),
    }
}

fn read_agent(from: &mut Section<'_>, default: Agent) -> Agent {
    Agent {
        heartbeat_timeout: from.number("heartbeat_timeout", default.heartbeat_timeout, 2..=DAY),
        require_tls: from.boolean("require_tls", default.require_tls),
        callback_networks: from.list("callback_networks", default.callback_networks, |text| {
            text.parse::<IpNet>().map_err(|_| {
                format!(
                    "{text:?} is not a network; write for example \"10.0.0.0/8\" or \"fd00::/8\""
                )
            })
        }),
        allow_callback_host_names: from.boolean(
            "allow_callback_host_names",
            default.allow_callback_host_names,
        ),
        command_timeout: from.number("command_timeout", default.command_timeout, 1..=DAY),
        connect_timeout: from.number("connect_timeout", default.connect_timeout, 1..=3600),
        requests_max: from.number("requests_max", default.requests_max, 4..=10_000),
        poll_interval_max: from.number("poll_interval_max", default.poll_interval_max, 1..=3600),
        response_bytes_max: from.number(
            "response_bytes_max",
            default.response_bytes_max,
            65_536..=4 * GIB,
        ),
        token_key_file: from.path("token_key_file"),
        ca_file: from.path("ca_file"),
        permitted_image_formats: from.list(
            "permitted_image_formats",
            default.permitted_image_formats,
            image_format,
        ),
        tls_min_version: from.choice(
            "tls_min_version",
            default.tls_min_version,
            &[("1.2", TlsMinVersion::V1_2), ("1.3", TlsMinVersion::V1_3)],
        ),
        md5_checksums: from.boolean("md5_checksums", default.md5_checksums),
        reissue_lost_token: from.boolean("reissue_lost_token", default.reissue_lost_token),
    }
}

fn read_log(from: &mut Section<'_>, default: Log) -> Log {
    Log {
        format: from.choice(
            "format",
            default.format,
            &[("text", LogFormat::Text), ("json", LogFormat::Json)],
        ),
        level: from.parsed("level", default.level, log_level),
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        format!("{text:?} is not an address with a port; write for example \"127.0.0.1:6385\" or \"[::1]:6385\"")
    })
}

fn endpoint(text: &str) -> Result<Option<String>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let is_endpoint = url::Url::parse(text).is_ok_and(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none()
    });
    if !is_endpoint {
        return Err(
            "is not the URL of an API; write for example \"https://upbeat.example:6385\", without user, query or fragment"
                .to_owned(),
        );
    }
    Ok(Some(text.trim_end_matches('/').to_owned()))
}

fn image_format(text: &str) -> Result<String, String> {
    // The formats the agent can tell apart.
    const KNOWN: [&str; 10] = [
        "raw", "gpt", "qcow2", "iso", "vmdk", "vdi", "vhd", "vhdx", "qed", "luks",
    ];
    if KNOWN.contains(&text) {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "{text:?} is not an image format of the agent; it knows {}",
            KNOWN.join(", ")
        ))
    }
}

fn log_level(text: &str) -> Result<String, String> {
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    for part in text.split(',') {
        let level = part
            .rsplit_once('=')
            .map_or(part, |(_, level)| level)
            .trim();
        if !LEVELS.contains(&level.to_ascii_lowercase().as_str()) {
            return Err(format!(
                "{level:?} is not a level; use one of {}, alone or as module=level, separated by commas",
                LEVELS.join(", ")
            ));
        }
    }
    Ok(text.to_owned())
}

/// One section of the settings.
struct Section<'a>(&'a mut Reader, &'static str);

impl Section<'_> {
    fn fault(&mut self, key: &str, problem: String) {
        self.0.fault(self.1, key, problem);
    }

    fn boolean(&mut self, key: &str, default: bool) -> bool {
        match self.0.value(self.1, key) {
            None => default,
            Some(Raw::Toml(Value::Boolean(value))) => value,
            Some(Raw::Text(text)) if text == "true" => true,
            Some(Raw::Text(text)) if text == "false" => false,
            Some(_) => {
                self.fault(key, "must be true or false, without quotes".to_owned());
                default
            }
        }
    }

    fn number<T>(&mut self, key: &str, default: T, range: RangeInclusive<u64>) -> T
    where
        T: TryFrom<u64> + Copy,
    {
        let number = match self.0.value(self.1, key) {
            None => return default,
            Some(Raw::Toml(Value::Integer(number))) => u64::try_from(number).ok(),
            Some(Raw::Text(text)) => text.trim().parse().ok(),
            Some(Raw::Toml(_)) => None,
        };
        let fitting = number.filter(|number| range.contains(number));
        match fitting.and_then(|number| T::try_from(number).ok()) {
            Some(number) => number,
            None => {
                self.fault(
                    key,
                    format!(
                        "must be a whole number from {} to {}, without quotes",
                        range.start(),
                        range.end()
                    ),
                );
                default
            }
        }
    }

    fn text(&mut self, key: &str) -> Option<String> {
        match self.0.value(self.1, key)? {
            Raw::Toml(Value::String(text)) | Raw::Text(text) => Some(text),
            Raw::Toml(_) => {
                self.fault(key, "must be text in quotes".to_owned());
                None
            }
        }
    }

    fn parsed<T>(&mut self, key: &str, default: T, parse: impl Fn(&str) -> Result<T, String>) -> T {
        let Some(text) = self.text(key) else {
            return default;
        };
        parse(&text).unwrap_or_else(|problem| {
            self.fault(key, problem);
            default
        })
    }

    fn path(&mut self, key: &str) -> Option<PathBuf> {
        self.text(key)
            .filter(|text| !text.is_empty())
            .map(PathBuf::from)
    }

    fn choice<T: Copy>(&mut self, key: &str, default: T, choices: &[(&str, T)]) -> T {
        let Some(text) = self.text(key) else {
            return default;
        };
        if let Some((_, value)) = choices.iter().find(|(name, _)| *name == text) {
            return *value;
        }
        let names: Vec<String> = choices
            .iter()
            .map(|(name, _)| format!("{name:?}"))
            .collect();
        let hint = closest(&text, choices.iter().map(|(name, _)| *name))
            .map(|meant| format!("; did you mean {meant:?}?"))
            .unwrap_or_default();
        self.fault(key, format!("must be {}{hint}", names.join(" or ")));
        default
    }

    /// A list of texts; in the environment and on the command line they are separated by commas.
    fn list<T>(
        &mut self,
        key: &str,
        default: Vec<T>,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Vec<T> {
        let texts: Option<Vec<String>> = match self.0.value(self.1, key) {
            None => return default,
            Some(Raw::Text(text)) => Some(
                text.split(',')
                    .map(|part| part.trim().to_owned())
                    .filter(|part| !part.is_empty())
                    .collect(),
            ),
            Some(Raw::Toml(Value::Array(values))) => values
                .into_iter()
                .map(|value| match value {
                    Value::String(text) => Some(text),
                    _ => None,
                })
                .collect(),
            Some(Raw::Toml(_)) => None,
        };
        let Some(texts) = texts else {
            self.fault(
                key,
                "must be a list of texts in quotes: [\"a\", \"b\"]".to_owned(),
            );
            return default;
        };
        if texts.is_empty() && !default.is_empty() {
            self.fault(
                key,
                "must not be empty; leave it out for the default".to_owned(),
            );
            return default;
        }
        let mut values = Vec::new();
        for text in &texts {
            match parse(text) {
                Ok(value) => values.push(value),
                Err(problem) => self.fault(key, problem),
            }
        }
        values
    }
}
