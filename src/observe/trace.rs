//! Log lines: where they go, how they look, and what their fields are called.
//!
//! `main` calls [`start`] once. Lines go to standard error, as text for people or JSON for machines. Fields have the names below
//! everywhere; a constant becomes a field name in braces: `tracing::info!({ trace::NODE_ID } = %id, "..")`. Nobody logs a token,
//! a password or a configdrive, and text that came from outside is logged with `?`, which keeps it on one line.

use std::io::{IsTerminal, Write};
use std::panic::PanicHookInfo;
use std::str::FromStr;

use tracing::Subscriber;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// UUID of the node a line is about.
pub const NODE_ID: &str = "node.id";
/// Its provision state, as on the wire.
pub const NODE_PROVISION_STATE: &str = "node.provision_state";
/// Number of the agent command a line is about, within its node.
pub const COMMAND_ID: &str = "command.id";
/// Its full name, for example `deploy.execute_deploy_step`.
pub const COMMAND_NAME: &str = "command.name";
/// What happened to the node, in one word.
pub const EVENT: &str = "event";
/// What its step came to, in one word.
pub const OUTCOME: &str = "outcome";
/// HTTP method of a request.
pub const HTTP_METHOD: &str = "http.method";
/// Pattern of its path.
pub const HTTP_ROUTE: &str = "http.route";
/// Status code of its answer.
pub const HTTP_CODE: &str = "http.code";
/// Why something failed.
pub const ERROR: &str = "error";
/// What a panic said.
pub const PANIC_MESSAGE: &str = "panic.message";
/// Where it happened: file, line and column.
pub const PANIC_LOCATION: &str = "panic.location";

/// How lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// One line of text each, for people.
    #[default]
    Text,
    /// One JSON object each, for machines.
    Json,
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Format, String> {
        match text {
            "text" => Ok(Format::Text),
            "json" => Ok(Format::Json),
            other => Err(format!(
                "{other:?} is no format of log lines; use text or json"
            )),
        }
    }
}

/// Starts logging to standard error and reporting panics as log lines.
///
/// `level` is `error`, `warn`, `info`, `debug` or `trace`, or a list such as `info,upbeat::store=debug`.
///
/// # Errors
/// What is wrong with `level` and what would be right; or that logging was started before.
pub fn start(format: Format, level: &str) -> Result<(), String> {
    let subscriber = subscriber(
        format,
        filter(level)?,
        std::io::stderr,
        std::io::stderr().is_terminal(),
    );
    tracing::subscriber::set_global_default(subscriber)
        .map_err(|_| "logging has already been started".to_owned())?;
    std::panic::set_hook(Box::new(report_panic));
    Ok(())
}

/// Reads a level.
///
/// # Errors
/// What is wrong with it and what would be right.
pub fn filter(level: &str) -> Result<EnvFilter, String> {
    const LEVELS: &[&str] = &["off", "error", "warn", "info", "debug", "trace"];
    let forms = "use error, warn, info, debug or trace, or a list such as info,upbeat::store=debug";
    let parts: Vec<&str> = level.split(',').map(str::trim).collect();
    for part in &parts {
        // By itself a word that is no level would be taken for the name of a module, and all others would fall silent.
        let is_level = LEVELS.iter().any(|known| known.eq_ignore_ascii_case(part));
        if !is_level && !part.contains(['=', '[']) {
            return Err(format!("{part:?} is no level of log lines; {forms}"));
        }
    }
    // The HTTP library tells of its threads at `info`, and calls every malformed request of any stranger an error; whoever wants
    // to see that names it.
    let mut all = parts.clone();
    for (library, quiet) in [
        ("actix_server", "actix_server=warn"),
        ("actix_http", "actix_http=off"),
    ] {
        let is_named = parts
            .iter()
            .any(|part| part.contains(library) || part.eq_ignore_ascii_case("off"));
        if !is_named {
            all.push(quiet);
        }
    }
    let all = all.join(",");
    EnvFilter::try_new(all)
        .map_err(|error| format!("{level:?} is no level of log lines: {error}; {forms}"))
}

fn subscriber<W>(
    format: Format,
    filter: EnvFilter,
    writer: W,
    has_colours: bool,
) -> Box<dyn Subscriber + Send + Sync>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(has_colours)
        .with_writer(writer);
    match format {
        Format::Text => Box::new(lines.finish()),
        Format::Json => Box::new(lines.json().flatten_event(true).finish()),
    }
}

/// Logs what a panic said and where, and nothing else: loading the symbols of a backtrace held its thread, with all the nodes
/// on it, for 63 ms.
fn report_panic(about: &PanicHookInfo<'_>) {
    let message = about.payload_as_str().unwrap_or("(not a text)");
    let location = about
        .location()
        .map(ToString::to_string)
        .unwrap_or_default();
    if tracing::dispatcher::has_been_set() {
        tracing::error!({ PANIC_MESSAGE } = ?message, { PANIC_LOCATION } = location, "panicked");
    } else {
        // Nowhere else to say it, and nobody to tell if that fails.
        let _ = writeln!(std::io::stderr(), "panicked at {location}: {message}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex, PoisonError};

    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let mut page = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            page.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// What `work` logs.
    fn logged(format: Format, level: &str, work: impl FnOnce()) -> String {
        let page = Page::default();
        let writer = page.clone();
        let subscriber = subscriber(
            format,
            filter(level).unwrap(),
            move || writer.clone(),
            false,
        );
        tracing::subscriber::with_default(subscriber, work);
        let bytes = page.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn json_lines_carry_the_fields_by_their_names() {
        let text = logged(Format::Json, "info", || {
            tracing::info!({ NODE_ID } = "n", { OUTCOME } = "alive", "stepped");
            tracing::debug!("not this");
        });
        let lines: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0]["node.id"], "n");
        assert_eq!(lines[0]["outcome"], "alive");
        assert_eq!(lines[0]["message"], "stepped");
        assert_eq!(lines[0]["level"], "INFO");
    }

    #[test]
    fn the_http_library_is_heard_only_when_it_matters_or_is_named() {
        let work = || {
            tracing::info!(target: "actix_server::worker", "shutting down idle worker");
            tracing::warn!(target: "actix_server::worker", "trouble");
            tracing::error!(target: "actix_http::h1::dispatcher", "stream error: invalid Header");
        };
        for (level, lines) in [
            ("info", 1),
            ("debug", 1),
            ("info,actix_server=info", 2),
            ("info,actix_http=error", 2),
            ("off", 0),
        ] {
            let text = logged(Format::Text, level, work);
            assert_eq!(text.lines().count(), lines, "{level}: {text}");
        }
    }

    #[test]
    fn text_lines_carry_them_too() {
        let text = logged(Format::Text, "warn,upbeat=info", || {
            tracing::info!({ COMMAND_ID } = 7, "sent");
        });
        assert!(text.contains("sent command.id=7"), "{text}");
        assert_eq!(text.lines().count(), 1);
    }

    #[test]
    fn a_level_that_is_none_is_told() {
        for wrong in ["inof", "", "info,verbose", "upbeat=loud", "info,"] {
            let error = filter(wrong).unwrap_err();
            assert!(error.contains("use error, warn"), "{wrong}: {error}");
        }
        for right in [
            "info",
            "WARN",
            "off",
            "info,upbeat::store=debug",
            "warn, upbeat=info",
        ] {
            assert!(filter(right).is_ok(), "{right}");
        }
        assert!(
            "xml"
                .parse::<Format>()
                .unwrap_err()
                .contains("text or json")
        );
        assert_eq!("json".parse(), Ok(Format::Json));
    }

    #[test]
    fn a_panic_is_one_line_with_its_place() {
        let text = logged(Format::Json, "error", || {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(report_panic));
            let caught = std::panic::catch_unwind(|| panic!("a\nb"));
            std::panic::set_hook(before);
            assert!(caught.is_err());
        });
        assert_eq!(text.lines().count(), 1, "{text}");
        let line: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(line[PANIC_MESSAGE], "\"a\\nb\"");
        let location = line[PANIC_LOCATION].as_str().unwrap();
        assert!(location.contains("trace.rs:"), "{location}");
    }
}
