//! Compares settings with each other and with the machine.

use std::path::Path;

use super::source::Reader;
use super::{Auth, Config};

/// Adds a fault for each thing that does not go together or is not there.
pub(super) fn check(config: &Config, reader: &mut Reader) {
    check_authentication(config, reader);
    check_listeners(config, reader);
    check_times(config, reader);
    check_token_key(config, reader);
    if let Some(path) = &config.agent.ca_file
        && let Err(problem) = read(path)
    {
        reader.fault("agent", "ca_file", problem);
    }
}

fn check_authentication(config: &Config, reader: &mut Reader) {
    let api = &config.api;
    match api.auth {
        Auth::None => {
            let is_open = !api.listen.ip().to_canonical().is_loopback();
            if is_open
                && !api.allow_unauthenticated
                && reader.are_sound(&[("api", "auth"), ("api", "allow_unauthenticated")])
            {
                reader.fault(
                    "api",
                    "listen",
                    format!(
                        "{} can be reached from outside, and auth is \"none\": anybody could take over every machine. Set auth = \"http_basic\" with an htpasswd_file, listen on 127.0.0.1, or set allow_unauthenticated = true if something else guards the API",
                        api.listen
                    ),
                );
            }
        }
        Auth::HttpBasic => match &api.htpasswd_file {
            None if reader.are_sound(&[("api", "htpasswd_file")]) => reader.fault(
                "api",
                "htpasswd_file",
                "is needed with auth = \"http_basic\"; make one with: htpasswd -nbB admin PASSWORD > htpasswd".to_owned(),
            ),
            None => {}
            Some(path) => {
                if let Err(problem) = read(path).and_then(|text| check_htpasswd(&text)) {
                    reader.fault("api", "htpasswd_file", problem);
                }
            }
        },
    }
}

fn check_listeners(config: &Config, reader: &mut Reader) {
    let api = &config.api;
    let keys = [("api", "listen"), ("api", "agent_listen")];
    if api.agent_listen == Some(api.listen) && api.listen.port() != 0 && reader.are_sound(&keys) {
        reader.fault(
            "api",
            "agent_listen",
            format!(
                "{} is api.listen too; give agents another address or port, or leave it out to have all in one place",
                api.listen
            ),
        );
    }
}

/// Only line numbers are named: the lines hold hashes.
fn check_htpasswd(text: &str) -> Result<(), String> {
    let mut users = 0;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let is_bcrypt = line.split_once(':').is_some_and(|(user, hash)| {
            let known = ["$2y$", "$2b$", "$2a$"];
            !user.is_empty() && hash.len() == 60 && known.iter().any(|kind| hash.starts_with(kind))
        });
        if !is_bcrypt {
            return Err(format!(
                "line {} is not user:hash with a bcrypt hash; make it with htpasswd -nbB USER PASSWORD (the B means bcrypt)",
                index + 1
            ));
        }
        users += 1;
    }
    if users == 0 {
        return Err(
            "holds no user, so nobody could use the API; add one with htpasswd -nbB USER PASSWORD"
                .to_owned(),
        );
    }
    Ok(())
}

fn check_times(config: &Config, reader: &mut Reader) {
    let heartbeat = config.agent.heartbeat_timeout;
    // Twice the longest pause between two heartbeats, which is 0.6 of the timeout; rounded up.
    let least = (heartbeat * 12).div_ceil(10);
    let conductor = &config.conductor;
    for (name, silence) in [
        ("deploy_callback_timeout", conductor.deploy_callback_timeout),
        ("clean_callback_timeout", conductor.clean_callback_timeout),
        (
            "service_callback_timeout",
            conductor.service_callback_timeout,
        ),
        ("rescue_callback_timeout", conductor.rescue_callback_timeout),
    ] {
        let keys = [("conductor", name), ("agent", "heartbeat_timeout")];
        if silence != 0 && silence < least && reader.are_sound(&keys) {
            reader.fault(
                "conductor",
                name,
                format!(
                    "{silence} s is too short: agents report every 0.3 to 0.6 of agent.heartbeat_timeout ({heartbeat} s), so healthy ones would be given up on. Use at least {least}, or 0 for no limit, or lower heartbeat_timeout"
                ),
            );
        }
    }
    let (connect, command) = (config.agent.connect_timeout, config.agent.command_timeout);
    let keys = [("agent", "connect_timeout"), ("agent", "command_timeout")];
    if connect >= command && reader.are_sound(&keys) {
        reader.fault(
            "agent",
            "connect_timeout",
            format!(
                "{connect} s must be less than command_timeout ({command} s), which includes it; otherwise an agent that can't be reached looks like one that doesn't answer"
            ),
        );
    }
}

fn check_token_key(config: &Config, reader: &mut Reader) {
    let keys = [("database", "url"), ("agent", "token_key_file")];
    if config.token_key_path().is_none() && reader.are_sound(&keys) {
        reader.fault(
            "agent",
            "token_key_file",
            "is needed with PostgreSQL: name a file for the key of agent tokens, readable by this program only; it is made if it is not there. It must not be in the database, whose readers shall not learn tokens".to_owned(),
        );
    }
    if let Some(path) = &config.agent.token_key_file {
        if path.exists() {
            if let Err(error) = std::fs::File::open(path) {
                reader.fault("agent", "token_key_file", unreadable(path, &error));
            }
        } else if !path
            .parent()
            .is_none_or(|folder| folder.as_os_str().is_empty() || folder.is_dir())
        {
            reader.fault(
                "agent",
                "token_key_file",
                format!(
                    "{} can't be made: its folder does not exist; make the folder first",
                    path.display()
                ),
            );
        }
    }
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| unreadable(path, &error))
}

fn unreadable(path: &Path, error: &std::io::Error) -> String {
    format!(
        "{} can't be read ({error}); check the path and its permissions",
        path.display()
    )
}
