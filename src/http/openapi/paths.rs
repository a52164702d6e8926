//! The paths of the document: one operation per row.

use serde_json::{Map, Value, json};

use crate::http::endpoints::endpoint::{Access, Answer, Body};
use crate::http::endpoints::parameter::{Holds, Parameter};
use crate::http::endpoints::{self, Endpoint, Method, Versions};

/// Everything under `paths`.
pub fn paths() -> Map<String, Value> {
    let mut paths = Map::new();
    for row in endpoints::all() {
        let methods = paths
            .entry(row.path)
            .or_insert_with(|| Value::Object(Map::new()));
        methods[row.method.name().to_lowercase()] = operation(row);
    }
    paths
}

/// The header with the version, which most operations refer to.
pub fn microversion() -> Value {
    json!({
        "name": "X-OpenStack-Ironic-API-Version",
        "in": "header",
        "description": "The microversion, or latest.",
        "schema": {"type": "string", "pattern": r"^(1\.[1-9][0-9]*|latest)$", "default": "1.1"},
    })
}

fn operation(row: &Endpoint) -> Value {
    let mut parameters = Vec::new();
    if row.versions == Versions::Spoken {
        parameters.push(json!({"$ref": "#/components/parameters/Microversion"}));
    }
    for name in names(row.path) {
        parameters.push(json!({
            "name": name, "in": "path", "required": true, "schema": {"type": "string", "minLength": 1},
        }));
    }
    for parameter in row.query.iter().copied().flatten() {
        parameters.push(of_query(parameter));
    }
    let mut operation = json!({
        "operationId": operation_id(row),
        "summary": row.about,
        "tags": [tag(row)],
        "parameters": parameters,
        "responses": responses(row),
    });
    if row.versions != Versions::None {
        operation["x-since"] = json!(format!("1.{}", row.since));
        operation["x-older"] = json!(row.too_old.status());
    }
    match row.body {
        Body::None => {}
        Body::Document(name) => operation["requestBody"] = body(&schema(name), true),
        Body::Optional(name) => operation["requestBody"] = body(&schema(name), false),
        Body::Arguments(groups) => {
            let arguments: Vec<&Parameter> = groups.iter().copied().flatten().collect();
            let is_required = arguments.iter().any(|argument| argument.is_required);
            operation["requestBody"] = body(&of_arguments(&arguments), is_required);
        }
    }
    if row.access == Access::Users {
        // Where no user names are wanted, none are checked.
        operation["security"] = json!([{"basic": []}, {}]);
    }
    operation
}

fn names(path: &str) -> impl Iterator<Item = &str> {
    let parts = path.split('/');
    parts.filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

/// A name for programs that are made from the document.
fn operation_id(row: &Endpoint) -> String {
    let words = row
        .path
        .split('/')
        .filter(|word| !word.is_empty() && *word != "v1");
    let mut id = row.method.name().to_lowercase();
    for word in words {
        id.push('_');
        id.extend(
            word.chars()
                .filter(|c| !"{}".contains(*c))
                .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }),
        );
    }
    if row.path == "/v1" {
        id.push_str("_v1");
    }
    id
}

fn tag(row: &Endpoint) -> &str {
    let path = row.path.strip_prefix("/v1").unwrap_or("/server");
    match path.split('/').nth(1) {
        _ if row.access == Access::Agents => "agents",
        Some(word) if !word.is_empty() => word,
        _ => "server",
    }
}

fn body(schema: &Value, is_required: bool) -> Value {
    json!({"required": is_required, "content": {"application/json": {"schema": schema}}})
}

fn schema(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn of_query(parameter: &Parameter) -> Value {
    json!({
        "name": parameter.name,
        "in": "query",
        "required": parameter.is_required,
        "description": parameter.about,
        "schema": holds(parameter.holds),
        "x-since": format!("1.{}", parameter.since),
    })
}

fn of_arguments(arguments: &[&Parameter]) -> Value {
    let mut properties = Map::new();
    for argument in arguments {
        let mut schema = holds(argument.holds);
        schema["description"] = json!(argument.about);
        schema["x-since"] = json!(format!("1.{}", argument.since));
        properties.insert(argument.name.to_owned(), schema);
    }
    let required: Vec<&str> = arguments
        .iter()
        .filter(|argument| argument.is_required)
        .map(|argument| argument.name)
        .collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn holds(holds: Holds) -> Value {
    match holds {
        Holds::Text | Holds::Ident => json!({"type": "string"}),
        Holds::Texts => {
            json!({"type": "string", "description": "Several, with commas between them."})
        }
        Holds::Bool => json!({"type": "boolean"}),
        Holds::Count => json!({"type": "integer", "minimum": 1}),
        Holds::Uuid => json!({"type": "string", "format": "uuid"}),
        Holds::OneOf(words) => json!({"type": "string", "enum": words}),
        Holds::Any => json!({}),
    }
}

fn responses(row: &Endpoint) -> Value {
    let mut responses = Map::new();
    for status in row.statuses() {
        responses.insert(
            status.to_string(),
            json!({"$ref": "#/components/responses/Error"}),
        );
    }
    if row.may_be_accepted {
        let accepted = json!({"description": "All went well, and the work goes on."});
        responses.insert("202".to_owned(), accepted);
    }
    let mut success = json!({"description": "All went well."});
    match row.answer {
        Answer::Empty => {}
        Answer::One(name) => {
            success["content"] = json!({"application/json": {"schema": schema(name)}});
        }
        Answer::List { plural, item } => {
            success["content"] = json!({"application/json": {"schema": list(plural, item)}});
        }
        Answer::Text(content_type) => {
            success["content"] = json!({content_type: {"schema": {"type": "string"}}});
        }
    }
    if row.method == Method::POST && row.status == 201 {
        success["headers"] = json!({
            "Location": {"description": "Its address.", "schema": {"type": "string"}},
        });
    }
    responses.insert(row.status.to_string(), success);
    Value::Object(responses)
}

fn list(plural: &str, item: &str) -> Value {
    json!({
        "type": "object",
        "properties": {
            plural: {"type": "array", "items": schema(item)},
            "next": {"type": "string", "description": "The address of the next page, if there may be one."},
        },
        "required": [plural],
        "additionalProperties": false,
    })
}
