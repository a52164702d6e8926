//! Reads the documents of the agent's API: a command, the list of commands, the status, an error.
//!
//! Pure. Unknown keys are ignored and keys that only newer agents send may be missing; what is needed and isn't there is named in
//! the error. Called by the client and by the tests with recorded messages.

use serde_json::Value;

use crate::command::{Entry, Status};

/// Key inside a step by which a command of ours is recognised: agents ignore it and echo it with a success.
pub const OPERATION_KEY: &str = "upbeat_operation_id";

/// Agents use UUIDs.
const ID_BYTES_MAX: usize = 255;
/// For names of commands, words of status and classes of errors.
const WORD_CHARACTERS_MAX: usize = 255;
/// For explanations of errors, which may hold the output of a tool.
const MESSAGE_CHARACTERS_MAX: usize = 4_000;
/// Results are stored with the node; one nested without end could not be read again.
const RESULT_DEPTH_MAX: usize = 25;

/// Reads one command object.
///
/// # Errors
/// What is missing or has the wrong type.
pub fn entry(document: &Value) -> Result<Entry, String> {
    let object = document
        .as_object()
        .ok_or_else(|| format!("a command is {}, not an object", kind_of(document)))?;
    let text = |key: &str| {
        object
            .get(key)
            .and_then(Value::as_str)
            .ok_or_else(|| match object.get(key) {
                None => format!("a command without {key}"),
                Some(other) => format!("a command whose {key} is {}, not a string", kind_of(other)),
            })
    };
    let id = text("id")?;
    if id.len() > ID_BYTES_MAX {
        return Err(format!(
            "a command whose id is longer than {ID_BYTES_MAX} bytes"
        ));
    }
    let mut result = object.get("command_result").cloned().unwrap_or(Value::Null);
    let operation = operation_of(&result);
    drop_echo(&mut result);
    if is_deeper_than(&result, RESULT_DEPTH_MAX) {
        return Err(format!(
            "a command whose result is nested deeper than {RESULT_DEPTH_MAX} levels"
        ));
    }
    let (error_kind, error_message) = error_of(object.get("command_error").unwrap_or(&Value::Null));
    Ok(Entry {
        id: id.to_owned(),
        command_name: plain(text("command_name")?, WORD_CHARACTERS_MAX),
        status: status(text("command_status")?),
        error_kind,
        error_message,
        operation,
        result,
    })
}

/// Reads the list of commands, oldest first.
///
/// # Errors
/// What is missing or has the wrong type.
pub fn entries(document: &Value) -> Result<Vec<Entry>, String> {
    document
        .get("commands")
        .and_then(Value::as_array)
        .ok_or_else(|| "no list named commands".to_owned())?
        .iter()
        .map(entry)
        .collect()
}

/// Reads the status document: when the agent started, in its own text.
///
/// # Errors
/// What is missing or has the wrong type.
pub fn started_at(document: &Value) -> Result<String, String> {
    match document.get("started_at") {
        Some(Value::Number(seconds)) => Ok(seconds.to_string()),
        Some(Value::String(text)) if !text.is_empty() => Ok(plain(text, WORD_CHARACTERS_MAX)),
        Some(other) => Err(format!(
            "started_at is {}, not a number of seconds",
            kind_of(other)
        )),
        None => Err("a status without started_at".to_owned()),
    }
}

/// The text of an error envelope, if `document` is one: `faultstring` of the agent, or `error_message` of older ones.
pub fn fault(document: &Value) -> Option<&str> {
    ["faultstring", "error_message"]
        .iter()
        .find_map(|key| document.get(key))
        .and_then(Value::as_str)
}

/// Reads a `command_status`.
fn status(word: &str) -> Status {
    match word {
        "RUNNING" => Status::Running,
        "SUCCEEDED" => Status::Succeeded,
        "FAILED" => Status::Failed,
        "CLEAN_VERSION_MISMATCH" | "VERSION_MISMATCH" => Status::VersionMismatch,
        other => Status::Other(plain(other, WORD_CHARACTERS_MAX)),
    }
}

/// Class name and explanation of a `command_error`.
fn error_of(error: &Value) -> (String, String) {
    let (kind, message) = raw_error_of(error);
    (
        plain(&kind, WORD_CHARACTERS_MAX),
        plain(&message, MESSAGE_CHARACTERS_MAX),
    )
}

fn raw_error_of(error: &Value) -> (String, String) {
    let text = |key: &str| match error.get(key) {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) if text.is_empty() => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(other) => Some(other.to_string()),
    };
    match error {
        Value::Null => (String::new(), String::new()),
        Value::Object(_) => (
            text("type").unwrap_or_default(),
            text("details")
                .or_else(|| text("message"))
                .unwrap_or_default(),
        ),
        Value::String(text) => (String::new(), text.clone()),
        other => (String::new(), other.to_string()),
    }
}

/// The operation id echoed inside the step of a result.
/// Where an agent echoes the step it was given.
const ECHOES: [&str; 3] = ["deploy_step", "clean_step", "service_step"];

fn operation_of(result: &Value) -> Option<String> {
    ECHOES
        .iter()
        .find_map(|key| result.get(key)?.get(OPERATION_KEY)?.as_str())
        .map(str::to_owned)
}

/// Takes the echoed step out of a result: it tells nothing new, and it holds the config drive, which has no place in the ledger.
fn drop_echo(result: &mut Value) {
    if let Some(result) = result.as_object_mut() {
        result.retain(|key, _| !ECHOES.contains(&key.as_str()));
    }
}

/// Text of an agent as people and databases can take it: at most so many characters, and none that drive a terminal.
fn plain(text: &str, characters_max: usize) -> String {
    let mut characters = text.chars();
    let mut plain: String = characters
        .by_ref()
        .take(characters_max)
        .map(|c| if c.is_control() && c != '\n' { ' ' } else { c })
        .collect();
    if characters.next().is_some() {
        plain.push_str("...");
    }
    plain
}

fn is_deeper_than(value: &Value, levels: usize) -> bool {
    let below = levels.saturating_sub(1);
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(|item| is_deeper_than(item, below)),
        Value::Object(object) => {
            levels == 0 || object.values().any(|item| is_deeper_than(item, below))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_command_of_an_old_agent_is_read_too() {
        let old = json!({"id": "a", "command_name": "sync", "command_status": "RUNNING", "command_params": {}});
        let entry = entry(&old).unwrap();
        assert_eq!(entry.status, Status::Running);
        assert_eq!(entry.result, Value::Null);
        assert_eq!(entry.error_kind, "");
    }

    #[test]
    fn the_operation_is_found_in_any_kind_of_step() {
        for key in ["deploy_step", "clean_step", "service_step"] {
            let done = json!({"id": "a", "command_name": "x", "command_status": "SUCCEEDED",
                "command_result": {key: {"step": "s", OPERATION_KEY: "node/7"}}});
            assert_eq!(entry(&done).unwrap().operation.as_deref(), Some("node/7"));
        }
    }

    #[test]
    fn every_status_word_is_kept() {
        assert_eq!(status("CLEAN_VERSION_MISMATCH"), Status::VersionMismatch);
        assert_eq!(status("VERSION_MISMATCH"), Status::VersionMismatch);
        assert_eq!(status("running"), Status::Other("running".to_owned()));
    }

    #[test]
    fn details_are_preferred_to_the_message() {
        let failed = |error: Value| error_of(&error);
        assert_eq!(
            failed(json!({"type": "ImageWriteError", "code": 500, "message": "m", "details": "d"})),
            ("ImageWriteError".to_owned(), "d".to_owned())
        );
        assert_eq!(failed(json!({"message": "m", "details": ""})).1, "m");
        assert_eq!(failed(json!({"details": ["a"]})).1, "[\"a\"]");
        assert_eq!(failed(json!("text")).1, "text");
    }

    #[test]
    fn what_an_agent_says_is_bounded_and_plain() {
        let failed = json!({"type": "T".repeat(100_000), "details": format!("a\u{0}\u{1b}[2Jb\n{}", "d".repeat(100_000))});
        let (kind, message) = error_of(&failed);
        assert!(kind.len() < 300, "{}", kind.len());
        assert!(message.len() < 4_010, "{}", message.len());
        assert!(message.starts_with("a  [2Jb\nddd"), "{message}");
        let Status::Other(word) = status(&"S".repeat(100_000)) else {
            panic!("a status of its own");
        };
        assert!(word.len() < 300);
        let command = |id: &str, result: &Value| {
            entry(
                &json!({"id": id, "command_name": "x", "command_status": "SUCCEEDED", "command_result": result}),
            )
        };
        assert!(command("a", &json!({"a": [1]})).is_ok());
        let problem = command(&"a".repeat(1_000), &Value::Null).unwrap_err();
        assert!(problem.contains("id"), "{problem}");
        let nested = |levels| (0..levels).fold(json!(1), |below, _| json!([below]));
        assert!(command("a", &nested(25)).is_ok());
        let problem = command("a", &nested(26)).unwrap_err();
        assert!(problem.contains("deeper than 25"), "{problem}");
    }

    #[test]
    fn what_is_missing_is_named() {
        for (document, word) in [
            (json!({"commands": [{"id": 1}]}), "id is a number"),
            (json!({"commands": [{"id": "a"}]}), "without command_name"),
            (
                json!({"commands": [{"id": "a", "command_name": "x"}]}),
                "without command_status",
            ),
            (json!({"commands": [[]]}), "a list"),
            (json!({"commands": {}}), "commands"),
            (json!([]), "commands"),
        ] {
            let problem = entries(&document).unwrap_err();
            assert!(problem.contains(word), "{document}: {problem}");
        }
    }

    #[test]
    fn the_start_is_kept_in_the_agents_own_text() {
        assert_eq!(
            started_at(&json!({"started_at": 1796066135.25})).unwrap(),
            "1796066135.25"
        );
        assert!(started_at(&json!({"started_at": null})).is_err());
        assert!(started_at(&json!({"version": "1"})).is_err());
    }
}
