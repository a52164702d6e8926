//! Takes secrets out of documents before they leave the conductor.
//!
//! Used for what the HTTP API shows and for the copy of a node that an agent is sent. Pure; it works on keys and on the text of
//! values, knows nothing of nodes, and never changes what is stored. The rule is that of the Bare Metal API: a value is hidden
//! when its key looks like the name of a secret, at any depth; `password=…` inside other texts is blanked as well.

use std::ops::Range;

use serde_json::Value;

use super::state::Object;

/// What is shown instead of a secret.
pub const STARS: &str = "******";

/// Parts of a lower-cased key that make it the name of a secret: general words first, then the keys of single products.
const SECRET_WORDS: &[&str] = &[
    "password",
    "passphrase",
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
    "snmp_auth_key",
    "snmp_priv_key",
    "image_request_authorization",
    "cephclusterfsid",
    "octaviaheartbeatkey",
    "rabbitcookie",
    "cephmanilaclientkey",
    "pacemakerremoteauthkey",
    "designaterndckey",
    "cephadminkey",
    "heatauthencryptionkey",
    "cephclientkey",
    "keystonecredential",
    "barbicansimplecryptokek",
    "cephrgwkey",
    "swifthashsuffix",
    "migrationsshkey",
    "cephmdskey",
    "cephmonkey",
];

/// Words after which `=` or `:` introduces a secret inside a text.
const SECRET_WORDS_IN_TEXT: &[&str] = &["password", "passphrase", "adminpass", "admin_pass"];

/// True when a value under `key` is to be hidden.
pub fn looks_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    SECRET_WORDS.iter().any(|word| key.contains(word))
}

/// A copy of `object` without its secrets. A secret that is null stays null: that there is none is no secret.
pub fn masked(object: &Object) -> Object {
    object
        .iter()
        .map(|(key, value)| {
            let shown = if looks_secret(key) && !value.is_null() {
                Value::from(STARS)
            } else {
                masked_value(value)
            };
            (key.clone(), shown)
        })
        .collect()
}

/// A copy of `value` without the secrets in its objects and texts.
pub fn masked_value(value: &Value) -> Value {
    match value {
        Value::Object(object) => Value::Object(masked(object)),
        Value::Array(values) => Value::Array(values.iter().map(masked_value).collect()),
        Value::String(text) => Value::String(masked_text(text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// `text` that somebody else wrote who knows these objects: without the secrets they hold, and without what looks like one.
pub fn masked_foreign_text(text: &str, knows: &[&Object]) -> String {
    let mut secrets = Vec::new();
    for object in knows {
        collect_secrets(object, &mut secrets);
    }
    // The longest first: one may be a part of another.
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    let mut shown = text.to_owned();
    for secret in secrets {
        if shown.contains(secret) {
            shown = shown.replace(secret, STARS);
        }
    }
    masked_text(&shown)
}

/// Shorter ones are words that stand in any text.
const SECRET_BYTES_MIN: usize = 4;

fn collect_secrets<'a>(object: &'a Object, secrets: &mut Vec<&'a str>) {
    for (key, value) in object {
        collect_values(value, looks_secret(key), secrets);
    }
}

fn collect_values<'a>(value: &'a Value, is_secret: bool, secrets: &mut Vec<&'a str>) {
    match value {
        Value::String(text) if is_secret && text.len() >= SECRET_BYTES_MIN => secrets.push(text),
        Value::Array(values) => {
            for value in values {
                collect_values(value, is_secret, secrets);
            }
        }
        Value::Object(object) if is_secret => {
            for value in object.values() {
                collect_values(value, true, secrets);
            }
        }
        Value::Object(object) => collect_secrets(object, secrets),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// `instance_info` as the API shows it: `configdrive` and `image_url` are always hidden, since the URL may carry a signature.
pub fn masked_instance_info(instance_info: &Object) -> Object {
    let mut shown = masked(instance_info);
    for key in ["configdrive", "image_url"] {
        if let Some(value) = shown.get_mut(key)
            && !value.is_null()
        {
            *value = Value::from(STARS);
        }
    }
    shown
}

/// `text` with the value after each `password=`, `passphrase: ` and the like replaced by stars, up to the closing quote of one in
/// quotes, otherwise up to the next blank or separator; and with the password inside each `scheme://user:password@host` replaced too.
pub fn masked_text(text: &str) -> String {
    let mut shown = mask_url_passwords(text);
    for word in SECRET_WORDS_IN_TEXT {
        shown = mask_after(&shown, word);
    }
    shown
}

fn mask_after(text: &str, word: &str) -> String {
    // ASCII lower case keeps every byte where it was, so positions hold for both texts.
    let lower = text.to_ascii_lowercase();
    let mut shown = String::with_capacity(text.len());
    let mut done = 0;
    for (at, _) in lower.match_indices(word) {
        let rest = text.get(at + word.len()..).unwrap_or_default();
        let secret = secret_in(rest).filter(|secret| !secret.is_empty() && at >= done);
        // Otherwise it is just a word, or stands inside a secret that is hidden already.
        if let Some(secret) = secret {
            let from = text.len() - rest.len() + secret.start;
            shown.push_str(text.get(done..from).unwrap_or_default());
            shown.push_str(STARS);
            done = from + secret.len();
        }
    }
    shown.push_str(text.get(done..).unwrap_or_default());
    shown
}

/// Where the secret stands in what follows its name: behind `=` or `:`, which may have blanks and the name's closing quote before
/// and blanks behind it; in quotes, or up to the next blank or separator.
fn secret_in(rest: &str) -> Option<Range<usize>> {
    let behind_sign = rest
        .trim_start_matches([' ', '"', '\''])
        .strip_prefix(['=', ':'])?
        .trim_start_matches(' ');
    let (secret, length) = match behind_sign.split_at_checked(1) {
        Some((quote @ ("\"" | "'"), inside)) => (inside, inside.find(quote)),
        _ => (
            behind_sign,
            behind_sign.find(|c: char| {
                c.is_whitespace()
                    || matches!(c, '"' | '\'' | ',' | ';' | '&' | '}' | ']' | ')' | '>')
            }),
        ),
    };
    let start = rest.len() - secret.len();
    Some(start..length.map_or(rest.len(), |length| start + length))
}

/// Where a URL leads, without whoever asks there and without its query, which may be a signature.
pub fn without_credentials(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            let (authority, path) = rest.split_at(end);
            let host = authority.rsplit('@').next().unwrap_or(authority);
            let path = path.split(['?', '#']).next().unwrap_or_default();
            format!("{scheme}://{host}{path}")
        }
        None => url.to_owned(),
    }
}

/// Hides `password` in every `://user:password@`.
pub fn mask_url_passwords(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("://") {
        let (head, tail) = rest.split_at(start + 3);
        shown.push_str(head);
        let end = tail
            .find(|c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\''))
            .unwrap_or(tail.len());
        let (authority, after) = tail.split_at(end);
        match authority
            .rsplit_once('@')
            .map(|(user, host)| (user.split_once(':'), host))
        {
            Some((Some((user, _)), host)) => {
                shown.push_str(&format!("{user}:{STARS}@{host}"));
            }
            _ => shown.push_str(authority),
        }
        rest = after;
    }
    shown.push_str(rest);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_are_hidden_at_any_depth_and_nothing_else_is() {
        let object = json!({
            "redfish_address": "https://10.0.0.1",
            "redfish_Password": "abc",
            "snmp_auth_key": "abc",
            "nested": {"list": [{"image_pull_secret": {"a": 1}}, "plain"], "deep": {"api_token": 7}},
            "ipmi_password": null,
            "count": 3,
        });
        let shown = Value::Object(masked(object.as_object().unwrap()));
        assert_eq!(
            shown,
            json!({
                "redfish_address": "https://10.0.0.1",
                "redfish_Password": "******",
                "snmp_auth_key": "******",
                "nested": {"list": [{"image_pull_secret": "******"}, "plain"], "deep": {"api_token": "******"}},
                "ipmi_password": null,
                "count": 3,
            })
        );
    }

    #[test]
    fn passwords_inside_texts_are_blanked() {
        for (text, shown) in [
            ("password=abc rest", "password=****** rest"),
            (
                "a Password: 'ab', password = c;d",
                "a Password: '******', password = ******;d",
            ),
            ("{\"admin_pass\": \"x\"}", "{\"admin_pass\": \"******\"}"),
            ("the password is wrong", "the password is wrong"),
            ("ends with password=", "ends with password="),
            ("größe password=ß ü", "größe password=****** ü"),
            (
                "password=my_password=x password = y",
                "password=****** password = ******",
            ),
            (
                "the password, then password=x",
                "the password, then password=******",
            ),
            ("(Passphrase: a)", "(Passphrase: ******)"),
            (
                "password=\"\" adminPass='b c'",
                "password=\"\" adminPass='******'",
            ),
            ("password==x", "password=******"),
            ("password='it is \"x\"' y", "password='******' y"),
            ("password='never closed x", "password='******"),
            ("password:", "password:"),
            ("password: ü", "password: ******"),
            (
                "(password=a)&<password:b>[password=c]",
                "(password=******)&<password:******>[password=******]",
            ),
            (
                "http://u:p:q@h/x http://h/a@b",
                "http://u:******@h/x http://h/a@b",
            ),
            ("postgres://u@h/db", "postgres://u@h/db"),
        ] {
            assert_eq!(masked_text(text), shown);
        }
    }

    #[test]
    fn instance_info_hides_the_config_drive_and_the_image_url() {
        let info = json!({"configdrive": {"user_data": "x"}, "image_url": "http://h/?sig=1", "image_source": "http://h/i"});
        let shown = Value::Object(masked_instance_info(info.as_object().unwrap()));
        assert_eq!(
            shown,
            json!({"configdrive": "******", "image_url": "******", "image_source": "http://h/i"})
        );
    }

    #[test]
    fn credentials_and_query_of_an_image_url_are_not_shown() {
        assert_eq!(
            without_credentials("https://user:pass@host:8/a/b.img?sig=secret#x"),
            "https://host:8/a/b.img"
        );
        assert_eq!(without_credentials("http://host"), "http://host");
    }

    #[test]
    fn what_an_agent_says_is_shown_without_what_it_was_told() {
        let value = json!({
            "redfish_password": "hunter22", "image_pull_secret": {"auth": "deep-secret"}, "port": 443,
            "name": "rack-1",
        });
        let knows = value.as_object().unwrap();
        let said =
            "GET http://us:er9@h/a failed with hunter22 and deep-secret on rack-1 password=x1";
        let shown = masked_foreign_text(said, &[knows]);
        for secret in ["hunter22", "deep-secret", "er9", "x1"] {
            assert!(!shown.contains(secret), "{shown}");
        }
        assert!(shown.contains("rack-1"), "{shown}");
    }
}
