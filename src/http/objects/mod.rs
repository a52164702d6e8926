//! Objects that stand for themselves, as clients see them: chassis, deploy templates, runbooks, inspection rules, allocations.
//!
//! What all of them have in common is here; each kind adds its table of fields, and what is special about it.

pub mod allocations;
pub mod chassis;
pub mod deploy_templates;
pub mod inspection_rules;
pub mod runbooks;

use uuid::Uuid;

use super::error::Error;
use super::lists;
use super::nodes::frame;
use super::patch;
use super::reply::{Document, Reply, json_text};
use super::request::{Arguments, Request, refuse_young_field, uuid_or_name};
use super::view::{self, Selection, Shown};
use crate::catalog::{self, Kind, Record};
use crate::conductor::DeliverError;
use crate::node::{Object, fields};
use crate::store::{Page, RECORD_SORT_KEYS, RecordFilter};

/// A kind of objects that has endpoints.
pub trait Served: Kind {
    /// The key of lists and the word in paths.
    const PLURAL: &'static str;
    /// Its fields.
    const SHOWN: &'static [Shown<Record<Self>>];

    /// How a path may name one besides by its UUID.
    fn is_name(_: &str) -> bool {
        false
    }

    /// The filters of its lists; those it does not take are refused afterwards.
    fn filter(_: &Request, _: &mut Arguments) -> impl Future<Output = Result<RecordFilter, Error>> {
        std::future::ready(Ok(RecordFilter::default()))
    }
}

/// `POST /v1/{plural}`
pub async fn create<T: Served>(request: &Request) -> Result<Reply, Error> {
    let (id, is) = read_new::<T>(request, request.description()?)?;
    let id = id.unwrap_or_else(Uuid::new_v4);
    let record = request.api.conductor.create_record(id, is).await?;
    Ok(created(request, &record))
}

/// The UUID a document asks for, and what it describes.
///
/// # Errors
/// [`Error::TooNew`]; whatever is wrong with it.
pub fn read_new<T: Kind>(request: &Request, document: Object) -> Result<(Option<Uuid>, T), Error> {
    let minor = request.microversion.0;
    refuse_young_field(fields::too_new(T::FIELDS, &document, minor))?;
    Ok(catalog::read_new(&document, minor)?)
}

/// The answer once it is there.
pub fn created<T: Served>(request: &Request, record: &Record<T>) -> Reply {
    Reply::Created {
        body: json_text(&full(request, record)),
        location: format!("{}/v1/{}/{}", request.base, T::PLURAL, record.id),
    }
}

/// `GET /v1/{plural}`, and with `/detail` where there is that.
pub async fn list<T: Served>(request: &Request, is_detail: bool) -> Result<Reply, Error> {
    let mut arguments = request.query_arguments()?;
    let filter = T::filter(request, &mut arguments).await?;
    let wish = lists::wish(
        request,
        &mut arguments,
        T::SHOWN,
        RECORD_SORT_KEYS,
        is_detail,
    )?;
    arguments.finish()?;
    let reader = request.api.conductor.reader();
    let found: Vec<Record<T>> = reader.records(filter, wish.page.clone()).await?;
    let path = if is_detail {
        format!("{}/detail", T::PLURAL)
    } else {
        T::PLURAL.to_owned()
    };
    Ok(lists::answer(
        request,
        T::PLURAL,
        &path,
        &wish,
        T::SHOWN,
        &found,
        |record| record.id,
    ))
}

/// `GET /v1/{plural}/{ident}`
pub async fn show<T: Served>(request: &Request, ident: &str) -> Result<Reply, Error> {
    let mut arguments = request.query_arguments()?;
    let selection = lists::chosen(request, &mut arguments, T::SHOWN)?;
    arguments.finish()?;
    let record = find::<T>(request, ident).await?;
    Ok(Reply::body(&view::document(
        T::SHOWN,
        &record,
        &selection,
        frame(request),
    )))
}

/// `PATCH /v1/{plural}/{ident}`
pub async fn change<T: Served>(request: &Request, ident: &str) -> Result<Reply, Error> {
    request.query_arguments()?.finish()?;
    let minor = request.microversion.0;
    let operations = patch::operations(&request.document()?, minor)?;
    refuse_young_field(fields::patch_too_new(T::FIELDS, &operations, minor))?;
    let id = find::<T>(request, ident).await?.id;
    let changing = request
        .api
        .conductor
        .change_record(id, |old: &T| catalog::patched(old, &operations, minor));
    let record = changing.await.map_err(|error| told::<T>(ident, error))?;
    Ok(Reply::body(&full(request, &record)))
}

/// `DELETE /v1/{plural}/{ident}`
pub async fn delete<T: Served>(request: &Request, ident: &str) -> Result<Reply, Error> {
    request.arguments()?.finish()?;
    let id = find::<T>(request, ident).await?.id;
    let removing = request.api.conductor.remove_record::<T>(id, |_| Ok(()));
    removing.await.map_err(|error| told::<T>(ident, error))?;
    Ok(Reply::Nothing)
}

/// `DELETE /v1/{plural}`, where clients can remove all at once.
pub async fn delete_all<T: Served>(request: &Request) -> Result<Reply, Error> {
    request.arguments()?.finish()?;
    let conductor = &request.api.conductor;
    let page = Page::by_age(request.api.settings.page_items_max, None);
    loop {
        let filter = RecordFilter::default();
        let found: Vec<Record<T>> = conductor.reader().records(filter, page.clone()).await?;
        for record in &found {
            match conductor.remove_record::<T>(record.id, |_| Ok(())).await {
                Ok(()) | Err(DeliverError::NotFound) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if found.len() < page.limit {
            return Ok(Reply::Nothing);
        }
    }
}

/// The object a path names.
///
/// # Errors
/// [`Error::BadIdentifier`], [`Error::NotFound`], [`Error::NotRead`].
pub async fn find<T: Served>(request: &Request, text: &str) -> Result<Record<T>, Error> {
    let ident = uuid_or_name(text, T::is_name)?;
    let found = request.api.conductor.reader().record(ident).await?;
    found.ok_or_else(|| no_such::<T>(text))
}

/// The sentence clients know.
pub fn no_such<T: Kind>(name: &str) -> Error {
    Error::NotFound(format!("{} {name} could not be found.", T::TITLE))
}

/// What came of a change: it may have gone in the meantime.
fn told<T: Kind>(ident: &str, error: DeliverError) -> Error {
    match error {
        DeliverError::NotFound => no_such::<T>(ident),
        other => other.into(),
    }
}

/// All fields of an object.
pub fn full<T: Served>(request: &Request, record: &Record<T>) -> Document {
    view::document(T::SHOWN, record, &Selection::Full, frame(request))
}

/// The fields every kind has: UUID and times at the beginning, links at the end.
macro_rules! fields_of {
    ($kind:ty, $path:literal, $($field:expr),+ $(,)?) => {
        &[
            $crate::http::view::short($crate::http::view::shown("uuid", 1, |record: &Record<$kind>, _| {
                serde_json::json!(record.id.to_string())
            })),
            $crate::http::view::unasked($crate::http::view::shown("created_at", 1, |record: &Record<$kind>, _| {
                $crate::http::view::time(Some(record.created_at))
            })),
            $crate::http::view::unasked($crate::http::view::shown("updated_at", 1, |record: &Record<$kind>, _| {
                $crate::http::view::time(record.updated_at)
            })),
            $($field,)+
            $crate::http::view::short($crate::http::view::shown("links", 1, |record: &Record<$kind>, frame| {
                $crate::http::view::links(frame.base, &format!(concat!($path, "/{}"), record.id))
            })),
        ]
    };
}
pub(super) use fields_of;
