//! The configuration as a document, without secrets.

use std::path::PathBuf;

use toml::Value;

use super::{Auth, Config, LogFormat};
use crate::agent::TlsMinVersion;
use crate::node::masking::masked_text;

/// The configuration as TOML.
pub(super) fn print(config: &Config) -> String {
    let mut text = String::new();
    for (section, settings) in sections(config) {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&format!("[{section}]\n"));
        for (key, value) in settings {
            text.push_str(&format!("{key} = {value}\n"));
        }
    }
    text
}

/// Every setting in the order of the file.
pub(super) fn sections(config: &Config) -> [(&'static str, Vec<(&'static str, Value)>); 6] {
    let Config {
        api,
        conductor,
        inspector,
        database,
        agent,
        log,
    } = config;
    [
        (
            "api",
            vec![
                ("listen", text(&api.listen.to_string())),
                (
                    "agent_listen",
                    text(
                        &api.agent_listen
                            .map(|at| at.to_string())
                            .unwrap_or_default(),
                    ),
                ),
                (
                    "public_endpoint",
                    text(api.public_endpoint.as_deref().unwrap_or_default()),
                ),
                ("trust_proxy_headers", api.trust_proxy_headers.into()),
                (
                    "auth",
                    text(match api.auth {
                        Auth::None => "none",
                        Auth::HttpBasic => "http_basic",
                    }),
                ),
                ("htpasswd_file", path(&api.htpasswd_file)),
                ("allow_unauthenticated", api.allow_unauthenticated.into()),
                ("max_body_bytes", number(api.max_body_bytes)),
                (
                    "max_provision_body_bytes",
                    number(api.max_provision_body_bytes),
                ),
                (
                    "max_inspection_body_bytes",
                    number(api.max_inspection_body_bytes),
                ),
                ("max_limit", number(api.max_limit)),
                ("max_requests", number(api.max_requests)),
                ("busy_wait", number(api.busy_wait)),
                ("workers", number(api.workers)),
                (
                    "enable_ramdisk_endpoints",
                    api.enable_ramdisk_endpoints.into(),
                ),
            ],
        ),
        (
            "conductor",
            vec![
                ("host", text(conductor.host.as_deref().unwrap_or_default())),
                ("arbiters", number(conductor.arbiters)),
                (
                    "mailbox_messages_max",
                    number(conductor.mailbox_messages_max),
                ),
                (
                    "deploy_callback_timeout",
                    number(conductor.deploy_callback_timeout),
                ),
                (
                    "clean_callback_timeout",
                    number(conductor.clean_callback_timeout),
                ),
                (
                    "service_callback_timeout",
                    number(conductor.service_callback_timeout),
                ),
                (
                    "rescue_callback_timeout",
                    number(conductor.rescue_callback_timeout),
                ),
                (
                    "inspect_wait_timeout",
                    number(conductor.inspect_wait_timeout),
                ),
                ("automated_clean", conductor.automated_clean.into()),
                (
                    "clean_step_priority_override",
                    list(&conductor.clean_step_priority_override),
                ),
                (
                    "poweroff_in_cleanfail",
                    conductor.poweroff_in_cleanfail.into(),
                ),
                (
                    "power_state_change_timeout",
                    number(conductor.power_state_change_timeout),
                ),
                ("soft_power_off_wait", number(conductor.soft_power_off_wait)),
                ("write_image_limit", number(conductor.write_image_limit)),
                ("command_limit", number(conductor.command_limit)),
                (
                    "default_boot_mode",
                    text(conductor.default_boot_mode.name()),
                ),
                (
                    "max_concurrent_deploy",
                    number(conductor.max_concurrent_deploy),
                ),
                (
                    "max_concurrent_clean",
                    number(conductor.max_concurrent_clean),
                ),
                (
                    "max_concurrent_per_image_host",
                    number(conductor.max_concurrent_per_image_host),
                ),
                ("actor_restarts_max", number(conductor.actor_restarts_max)),
                (
                    "actor_restarts_window",
                    number(conductor.actor_restarts_window),
                ),
                ("idle_actor_kept_for", number(conductor.idle_actor_kept_for)),
            ],
        ),
        (
            "inspector",
            vec![
                (
                    "hooks",
                    list(
                        &inspector
                            .hooks
                            .iter()
                            .map(|hook| hook.name())
                            .collect::<Vec<_>>(),
                    ),
                ),
                ("add_ports", text(inspector.add_ports.name())),
                ("keep_ports", text(inspector.keep_ports.name())),
            ],
        ),
        (
            "database",
            vec![
                ("url", text(&masked_text(&database.url))),
                ("readers", number(database.readers)),
                ("queue_max", number(database.queue_max)),
            ],
        ),
        (
            "agent",
            vec![
                ("heartbeat_timeout", number(agent.heartbeat_timeout)),
                ("require_tls", agent.require_tls.into()),
                ("callback_networks", list(&agent.callback_networks)),
                (
                    "allow_callback_host_names",
                    agent.allow_callback_host_names.into(),
                ),
                ("command_timeout", number(agent.command_timeout)),
                ("connect_timeout", number(agent.connect_timeout)),
                ("requests_max", number(agent.requests_max)),
                ("poll_interval_max", number(agent.poll_interval_max)),
                ("response_bytes_max", number(agent.response_bytes_max)),
                ("token_key_file", path(&agent.token_key_file)),
                ("ca_file", path(&agent.ca_file)),
                (
                    "permitted_image_formats",
                    list(&agent.permitted_image_formats),
                ),
                (
                    "tls_min_version",
                    text(match agent.tls_min_version {
                        TlsMinVersion::V1_2 => "1.2",
                        TlsMinVersion::V1_3 => "1.3",
                    }),
                ),
                ("md5_checksums", agent.md5_checksums.into()),
                ("reissue_lost_token", agent.reissue_lost_token.into()),
            ],
        ),
        (
            "log",
            vec![
                (
                    "format",
                    text(match log.format {
                        LogFormat::Text => "text",
                        LogFormat::Json => "json",
                    }),
                ),
                ("level", text(&log.level)),
            ],
        ),
    ]
}

fn text(value: &str) -> Value {
    Value::String(value.to_owned())
}

fn path(value: &Option<PathBuf>) -> Value {
    text(
        &value
            .as_ref()
            .map(|path| path.display().to_string())
            .unwrap_or_default(),
    )
}

fn number(value: impl TryInto<i64>) -> Value {
    Value::Integer(value.try_into().unwrap_or(i64::MAX))
}

fn list<T: ToString>(values: &[T]) -> Value {
    Value::Array(
        values
            .iter()
            .map(|value| text(&value.to_string()))
            .collect(),
    )
}
