//! What all lists have in common: which fields, which page, in which order, and the address of the next page.

use uuid::Uuid;

use super::error::Error;
use super::nodes::frame;
use super::reply::{Document, Reply, json_text};
use super::request::{Arguments, Request};
use super::view::{self, Selection, Shown};
use crate::store::Page;

/// How long a list a client gets and what of each item.
pub struct Wish {
    /// Which part.
    pub page: Page,
    /// Which fields.
    pub selection: Selection,
}

/// Reads the parameters all lists have. `is_detail`: the path itself asks for full objects.
///
/// # Errors
/// [`Error::Bad`], [`Error::TooNew`].
pub fn wish<T>(
    request: &Request,
    arguments: &mut Arguments,
    fields: &[Shown<T>],
    sort_keys: &[&str],
    is_detail: bool,
) -> Result<Wish, Error> {
    let wish = Wish {
        selection: selection(request, arguments, fields, is_detail)?,
        page: page(request, arguments, sort_keys)?,
    };
    let key = wish.page.sort_key.as_deref();
    if let Some(field) = fields.iter().find(|field| Some(field.name) == key) {
        request.need(field.since, &format!("sort_key {}", field.name))?;
    }
    Ok(wish)
}

/// Reads which fields of each item are wanted.
///
/// # Errors
/// [`Error::Bad`], [`Error::TooNew`].
pub fn selection<T>(
    request: &Request,
    arguments: &mut Arguments,
    fields: &[Shown<T>],
    is_detail: bool,
) -> Result<Selection, Error> {
    let asked = arguments.take_text("fields")?;
    if is_detail {
        return match asked {
            None => Ok(Selection::Full),
            Some(_) => Err(Error::Bad(
                "fields can't be chosen where full objects are shown.".to_owned(),
            )),
        };
    }
    let detail = arguments.take_bool("detail")?;
    match (asked, detail.unwrap_or(false)) {
        (Some(_), true) => Err(Error::Bad(
            "Can't fetch a subset of fields with 'detail' set".to_owned(),
        )),
        (Some(list), false) => view::asked(fields, &list, request.microversion),
        (None, true) => Ok(Selection::Full),
        (None, false) => Ok(Selection::Short),
    }
}

/// Which fields of one object a request asks for.
///
/// # Errors
/// [`Error::Bad`], [`Error::TooNew`].
pub fn chosen<T>(
    request: &Request,
    arguments: &mut Arguments,
    fields: &[Shown<T>],
) -> Result<Selection, Error> {
    match arguments.take_text("fields")? {
        None => Ok(Selection::Full),
        Some(list) => view::asked(fields, &list, request.microversion),
    }
}

/// Reads limit, marker and order.
///
/// # Errors
/// [`Error::Bad`].
pub fn page(
    request: &Request,
    arguments: &mut Arguments,
    sort_keys: &[&str],
) -> Result<Page, Error> {
    let most = request.api.settings.page_items_max;
    let limit = match arguments.take_integer("limit")? {
        None => most,
        Some(number) if number >= 1 => usize::try_from(number).unwrap_or(most).min(most),
        Some(_) => return Err(Error::Bad("limit must be positive.".to_owned())),
    };
    let sort_key = match arguments.take_text("sort_key")? {
        None => None,
        Some(key) if key == "id" => None,
        Some(key) if sort_keys.contains(&key.as_str()) => Some(key),
        Some(key) => {
            return Err(Error::Bad(format!(
                "sort_key {key:?} is not one that can be sorted by; use id, {}.",
                sort_keys.join(", ")
            )));
        }
    };
    let descending = match arguments.take_text("sort_dir")?.as_deref() {
        None | Some("asc") => false,
        Some("desc") => true,
        Some(other) => {
            return Err(Error::Bad(format!(
                "Invalid sort direction: {other}. Acceptable values are 'asc' or 'desc'"
            )));
        }
    };
    Ok(Page {
        limit,
        marker: arguments.take_uuid("marker")?,
        sort_key,
        descending,
    })
}

/// The answer with one page of what was found. `plural`: the list's key; `path`: where it is, without `/v1/`; `id`: an item's UUID.
pub fn answer<T>(
    request: &Request,
    plural: &'static str,
    path: &str,
    wish: &Wish,
    fields: &'static [Shown<T>],
    found: &[T],
    id: impl Fn(&T) -> Uuid,
) -> Reply {
    let next = next(request, path, &wish.page, found.len(), found.last().map(id));
    let shown: Vec<Document> = found
        .iter()
        .map(|item| view::document(fields, item, &wish.selection, frame(request)))
        .collect();
    Reply::Body(list_text(plural, &shown, next))
}

/// The text of a list's answer.
pub fn list_text(plural: &'static str, items: &[Document], next: Option<String>) -> String {
    let mut text = format!("{{\"{plural}\":{}", json_text(&items));
    if let Some(next) = next {
        text.push_str(",\"next\":");
        text.push_str(&json_text(&next));
    }
    text.push('}');
    text
}

/// The address of the next page, if this one is full. All parameters of the request are kept.
pub fn next(
    request: &Request,
    path: &str,
    page: &Page,
    shown: usize,
    last: Option<Uuid>,
) -> Option<String> {
    let last = last.filter(|_| shown >= page.limit)?;
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    for (key, value) in &request.query {
        if key != "marker" && key != "limit" {
            query.append_pair(key, value);
        }
    }
    query.append_pair("limit", &page.limit.to_string());
    query.append_pair("marker", &last.to_string());
    Some(format!("{}/v1/{path}?{}", request.base, query.finish()))
}
