//! Puts stars in the place of secrets before anything of a node is shown.

use serde_json::Value;

use super::state::Object;

/// What is shown instead of a secret.
const STARS: &str = "******";

const SECRET_WORDS: &[&str] = &[
    "password",
    "adminpass",
    "admin_pass",
    "new_pass",
    "secret",
    "token",
    "sys_pswd",
    "configdrive",
    "encrypted_key",
    "private_key",
    "fernetkey",
    "sslkey",
    "passphrase",
    "snmp_auth_key",
    "snmp_priv_key",
];

/// The object with the values of all keys that look like secrets replaced, however deep.
pub fn masked(object: &Object) -> Object {
    object
        .iter()
        .map(|(key, value)| {
            let lower = key.to_lowercase();
            let shown = if SECRET_WORDS.iter().any(|word| lower.contains(word)) {
                Value::String(STARS.to_owned())
            } else {
                masked_value(value)
            };
            (key.clone(), shown)
        })
        .collect()
}

fn masked_value(value: &Value) -> Value {
    match value {
        Value::Object(object) => Value::Object(masked(object)),
        Value::Array(items) => Value::Array(items.iter().map(masked_value).collect()),
        other => other.clone(),
    }
}
