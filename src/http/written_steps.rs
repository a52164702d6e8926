//! Steps that somebody wrote down before a verb is asked for: those of deploy templates and of runbooks.
//!
//! They are looked up when the verb is asked for and handed to the node with it, so that what is changed afterwards changes nothing
//! of the work in progress.

use serde_json::Value;

use super::error::Error;
use super::objects;
use super::request::Request;
use crate::catalog::{DeployTemplate, Record, Runbook};
use crate::node::steps::WorkStep;
use crate::node::traits::instance_traits;
use crate::node::{Node, RunbookSteps};
use crate::store::{Page, RecordFilter};

/// The steps of every deploy template whose name is a trait that the node's instance asks for.
///
/// # Errors
/// [`Error::NotRead`].
pub async fn of_templates(request: &Request, node: &Node) -> Result<Vec<WorkStep>, Error> {
    let names = instance_traits(node);
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let filter = RecordFilter {
        names: Some(names),
        ..RecordFilter::default()
    };
    let page = Page {
        limit: usize::MAX,
        marker: None,
        sort_key: Some("name".to_owned()),
        descending: false,
    };
    let reader = request.api.conductor.reader();
    let templates: Vec<Record<DeployTemplate>> = reader.records(filter, page).await?;
    Ok(templates
        .iter()
        .flat_map(|template| &template.is.steps)
        .map(WorkStep::from)
        .collect())
}

/// The steps of the runbook that a request names.
///
/// # Errors
/// [`Error::NotFound`], [`Error::Bad`].
pub async fn of_runbook(request: &Request, ident: &Value) -> Result<RunbookSteps, Error> {
    let Value::String(ident) = ident else {
        return Err(Error::Bad(
            "runbook: must be the UUID or the name of a runbook.".to_owned(),
        ));
    };
    let runbook = match objects::find::<Runbook>(request, ident).await {
        Err(Error::BadIdentifier(text)) => return Err(Error::Bad(text)),
        other => other?.is,
    };
    Ok(RunbookSteps {
        traits: runbook.traits_of_nodes(),
        steps: runbook.work_steps(),
        disable_ramdisk: runbook.disable_ramdisk,
        name: runbook.name,
    })
}
