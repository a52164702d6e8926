//! Runbooks, and the traits of one.

use serde_json::{Value, json};

use super::{Served, fields_of, find, told};
use crate::catalog::{Record, Runbook};
use crate::http::error::Error;
use crate::http::reply::Reply;
use crate::http::request::{Arguments, Request};
use crate::http::traits;
use crate::http::view::{Shown, short, shown};
use crate::node::masking::masked;
use crate::node::traits::{TraitChange, changed};
use crate::store::RecordFilter;

impl Served for Runbook {
    const PLURAL: &'static str = "runbooks";
    const SHOWN: &'static [Shown<Record<Runbook>>] = fields_of!(
        Runbook,
        "runbooks",
        short(shown("name", 1, |of: &Record<Runbook>, _| {
            json!(of.is.name)
        })),
        shown("steps", 1, |of: &Record<Runbook>, _| steps(&of.is)),
        shown("extra", 1, |of: &Record<Runbook>, _| json!(of.is.extra)),
        shown("public", 1, |of: &Record<Runbook>, _| json!(of.is.public)),
        short(shown("owner", 1, |of: &Record<Runbook>, _| {
            json!(of.is.owner)
        })),
        shown("disable_ramdisk", 1, |of: &Record<Runbook>, _| {
            json!(of.is.disable_ramdisk)
        }),
        shown("description", 112, |of: &Record<Runbook>, _| {
            json!(of.is.description)
        }),
        shown("traits", 112, |of: &Record<Runbook>, _| json!(of.is.traits)),
    );

    /// Names are free, so anything may be one.
    fn is_name(text: &str) -> bool {
        !text.is_empty()
    }

    async fn filter(_: &Request, arguments: &mut Arguments) -> Result<RecordFilter, Error> {
        Ok(RecordFilter {
            owner: arguments.take_text("owner")?,
            ..RecordFilter::default()
        })
    }
}

fn steps(runbook: &Runbook) -> Value {
    let shown = runbook.steps.iter().map(|step| {
        json!({
            "interface": step.interface,
            "step": step.step,
            "args": masked(&step.args),
            "order": step.order,
        })
    });
    Value::Array(shown.collect())
}

/// `GET /v1/runbooks/{runbook}/traits`
pub async fn list_traits(request: &Request, ident: &str) -> Result<Reply, Error> {
    request.query_arguments()?.finish()?;
    let runbook = find::<Runbook>(request, ident).await?;
    Ok(Reply::body(&json!({"traits": runbook.is.traits})))
}

/// `PUT /v1/runbooks/{runbook}/traits`
pub async fn set_traits(request: &Request, ident: &str) -> Result<Reply, Error> {
    change_traits(request, ident, traits::set(request)?).await
}

/// `PUT /v1/runbooks/{runbook}/traits/{trait}`
pub async fn add_trait(request: &Request, ident: &str, name: &str) -> Result<Reply, Error> {
    request.arguments()?.finish()?;
    change_traits(request, ident, TraitChange::Add(name.to_owned())).await
}

/// `DELETE /v1/runbooks/{runbook}/traits`, and with `/{trait}`
pub async fn remove_traits(
    request: &Request,
    ident: &str,
    name: Option<&str>,
) -> Result<Reply, Error> {
    request.arguments()?.finish()?;
    change_traits(request, ident, traits::less(name)).await
}

async fn change_traits(
    request: &Request,
    ident: &str,
    change: TraitChange,
) -> Result<Reply, Error> {
    let id = find::<Runbook>(request, ident).await?.id;
    let whose = format!("runbook {id}");
    let changing = request.api.conductor.change_record(id, |old: &Runbook| {
        Ok(Runbook {
            traits: changed(&whose, &old.traits, change.clone())?,
            ..old.clone()
        })
    });
    changing
        .await
        .map_err(|error| told::<Runbook>(ident, error))?;
    Ok(Reply::Nothing)
}
