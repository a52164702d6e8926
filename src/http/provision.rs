//! `PUT /v1/nodes/{node}/states/provision`: provision verbs.
//!
//! Reads and checks what comes with a verb; whether the verb leads anywhere from the node's state is decided by the node.

use serde_json::Value;

use super::configdrive;
use super::error::Error;
use super::nodes::deliver;
use super::reply::Reply;
use super::request::Request;
use super::steps;
use super::view::states_address;
use super::written_steps;
use crate::node::{Event, ProvisionOptions, ProvisionState, Verb, attributes};

/// The verbs as clients spell them, with the version each is there since.
pub const VERBS: &[(&str, u16, Verb)] = &[
    ("manage", 4, Verb::Manage),
    ("provide", 4, Verb::Provide),
    ("inspect", 6, Verb::Inspect),
    ("clean", 15, Verb::Clean),
    ("active", 1, Verb::Active),
    ("deploy", 73, Verb::Active),
    ("rebuild", 1, Verb::Rebuild),
    ("deleted", 1, Verb::Deleted),
    ("undeploy", 73, Verb::Deleted),
    ("rescue", 38, Verb::Rescue),
    ("unrescue", 38, Verb::Unrescue),
    ("adopt", 17, Verb::Adopt),
    ("service", 87, Verb::Service),
    ("abort", 13, Verb::Abort),
    ("unhold", 85, Verb::Unhold),
];

/// The spellings alone.
pub const VERB_NAMES: [&str; VERBS.len()] = {
    let mut names = [""; VERBS.len()];
    let mut index = 0;
    while index < names.len() {
        names[index] = VERBS[index].0;
        index += 1;
    }
    names
};

/// What may come with some verb.
const OPTIONS: &[&str] = &[
    "configdrive",
    "deploy_steps",
    "clean_steps",
    "service_steps",
    "rescue_password",
    "disable_ramdisk",
    "runbook",
];

const ABORT_EVERYWHERE_SINCE: u16 = 110;

/// Longer ones are mistakes.
const RESCUE_PASSWORD_BYTES_MAX: usize = 1_024;

/// `PUT /v1/nodes/{node}/states/provision`
pub async fn change(request: &Request, ident: &str) -> Result<Reply, Error> {
    let mut arguments = request.arguments()?;
    let Some(target) = arguments.take_text("target")? else {
        return Err(Error::Bad("Missing mandatory parameter: target".to_owned()));
    };
    let verb = known_verb(request, &target)?;
    let mut options = ProvisionOptions::default();
    for name in OPTIONS.iter().copied() {
        let Some(value) = arguments.take(name) else {
            continue;
        };
        match (name, verb) {
            ("configdrive", Verb::Active | Verb::Rebuild) if target != "deploy" => {
                if verb == Verb::Rebuild {
                    request.need(35, "configdrive with rebuild")?;
                }
                options.configdrive = configdrive::read(request, ident, value).await?;
            }
            ("deploy_steps", Verb::Active | Verb::Rebuild) => {
                request.need(69, "deploy_steps")?;
                options.steps = steps::deploy_steps(&value).map_err(Error::Bad)?;
            }
            ("clean_steps", Verb::Clean) | ("service_steps", Verb::Service) => {
                options.steps = steps::ordered_steps(name, &value).map_err(Error::Bad)?;
            }
            ("disable_ramdisk", Verb::Clean | Verb::Service) => {
                let since = if verb == Verb::Clean { 70 } else { 108 };
                request.need(since, "disable_ramdisk")?;
                options.disable_ramdisk = attributes::boolean(&value).ok_or_else(|| {
                    Error::Bad("disable_ramdisk: must be true or false.".to_owned())
                })?;
            }
            ("runbook", Verb::Clean | Verb::Service) => {
                request.need(92, "runbook")?;
                options.runbook = Some(written_steps::of_runbook(request, &value).await?);
            }
            ("rescue_password", Verb::Rescue) => {
                let password = rescue_password(&value)?;
                options.rescue_password_hash = Some(hashed(password).await?);
            }
            _ => {
                return Err(Error::Bad(format!(
                    "{name} can't be given with the target \"{target}\"."
                )));
            }
        }
    }
    arguments.finish()?;
    if verb == Verb::Abort {
        check_abort(request, ident).await?;
    }
    if options.runbook.is_some() && !options.steps.is_empty() {
        return Err(Error::Bad(
            "Give either steps or a runbook, not both.".to_owned(),
        ));
    }
    if matches!(verb, Verb::Active | Verb::Rebuild) {
        let node = request.node(ident).await?;
        options.template_steps = written_steps::of_templates(request, &node).await?;
    }
    let node = deliver(request, ident, Event::Provision { verb, options }).await?;
    Ok(Reply::Accepted {
        location: Some(states_address(&request.base, node.id)),
    })
}

fn known_verb(request: &Request, target: &str) -> Result<Verb, Error> {
    let Some((_, since, verb)) = VERBS.iter().find(|(name, _, _)| *name == target) else {
        let known: Vec<&str> = VERBS.iter().map(|(name, _, _)| *name).collect();
        return Err(Error::Bad(format!(
            "The requested action \"{target}\" is not a provision verb; use one of {}.",
            known.join(", ")
        )));
    };
    request.need(*since, &format!("target \"{target}\""))?;
    Ok(*verb)
}

/// In some states abort is younger than the verb itself.
async fn check_abort(request: &Request, ident: &str) -> Result<(), Error> {
    if request.microversion.0 >= ABORT_EVERYWHERE_SINCE {
        return Ok(());
    }
    let state = request.node(ident).await?.provision_state();
    let since = match state {
        ProvisionState::InspectWait => 41,
        ProvisionState::WaitCallBack => ABORT_EVERYWHERE_SINCE,
        _ => return Ok(()),
    };
    request.need(since, &format!("abort in state \"{}\"", state.name()))
}

/// The password a user of the rescue ramdisk will log in with.
fn rescue_password(value: &Value) -> Result<String, Error> {
    match value {
        Value::String(text) if text.trim().is_empty() => {
            Err(Error::Bad("rescue_password: must not be empty.".to_owned()))
        }
        Value::String(text) if text.len() > RESCUE_PASSWORD_BYTES_MAX => Err(Error::Bad(format!(
            "rescue_password: is longer than {RESCUE_PASSWORD_BYTES_MAX} bytes."
        ))),
        Value::String(text) if text.chars().any(char::is_control) => Err(Error::Bad(
            "rescue_password: must not contain control characters.".to_owned(),
        )),
        Value::String(text) => Ok(text.clone()),
        _ => Err(Error::Bad("rescue_password: must be a string.".to_owned())),
    }
}

/// The password as it goes into the ramdisk's password file; nobody keeps it in clear text.
async fn hashed(password: String) -> Result<String, Error> {
    let hashing = tokio::task::spawn_blocking(move || {
        let params = sha_crypt::Sha512Params::default();
        sha_crypt::sha512_simple(&password, &params)
    });
    match hashing.await {
        Ok(Ok(hash)) => Ok(hash),
        Ok(Err(_)) | Err(_) => Err(Error::Bad(
            "rescue_password: can't be hashed; use another one.".to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_rescue_password_is_a_line_of_text() {
        assert!(rescue_password(&json!("correct horse")).is_ok());
        for wrong in [
            json!(""),
            json!("  "),
            json!(7),
            json!("a\nb"),
            json!("x".repeat(2_000)),
        ] {
            assert!(rescue_password(&wrong).is_err(), "{wrong}");
        }
    }

    #[tokio::test]
    async fn it_is_kept_as_a_salted_hash() {
        let (one, two) = (
            hashed("secret".to_owned()).await.unwrap(),
            hashed("secret".to_owned()).await.unwrap(),
        );
        assert!(one.starts_with("$6$"), "{one}");
        assert_ne!(one, two);
        assert!(sha_crypt::sha512_check("secret", &one).is_ok());
    }

    #[test]
    fn every_verb_has_a_spelling() {
        for verb in Verb::ALL {
            assert!(
                VERBS
                    .iter()
                    .any(|(name, _, known)| known == verb && *name == verb.name())
            );
        }
    }
}
