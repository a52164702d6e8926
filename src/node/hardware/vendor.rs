//! What the vendor interface of `fake-hardware` offers beyond the API: methods that do nothing but compare their argument, for
//! trying out the ways to call them, and those for event subscriptions. Data and pure rules.

use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::flow::changed;
use super::recorded::Subscription;
use super::{subscriptions, uses};
use crate::node::effect::{Severity, Step};
use crate::node::outcome::Outcome;
use crate::node::refused::Refused;
use crate::node::state::{Attributes, Node, Object};
use crate::node::turn::Turn;
use crate::node::values::bad;

/// One method.
#[derive(Debug)]
struct VendorMethod {
    name: &'static str,
    description: &'static str,
    http_method: &'static str,
    does: Does,
    /// Its answer is not waited for.
    is_async: bool,
    /// Not while something else is done to the node.
    needs_lock: bool,
}

#[derive(Debug, Clone, Copy)]
enum Does {
    /// Compare the argument `bar` with this.
    Compare(&'static str),
    Subscribe,
    Unsubscribe,
    ShowSubscription,
    ListSubscriptions,
}

const METHODS: &[VendorMethod] = &[
    VendorMethod {
        name: "first_method",
        description: "Answers whether its argument bar is baz.",
        http_method: "POST",
        does: Does::Compare("baz"),
        is_async: true,
        needs_lock: true,
    },
    VendorMethod {
        name: "second_method",
        description: "Answers whether its argument bar is kazoo.",
        http_method: "POST",
        does: Does::Compare("kazoo"),
        is_async: true,
        needs_lock: true,
    },
    VendorMethod {
        name: "third_method_sync",
        description: "Answers whether its argument bar is meow.",
        http_method: "POST",
        does: Does::Compare("meow"),
        is_async: false,
        needs_lock: true,
    },
    VendorMethod {
        name: "fourth_method_shared_lock",
        description: "Answers whether its argument bar is woof.",
        http_method: "POST",
        does: Does::Compare("woof"),
        is_async: true,
        needs_lock: false,
    },
    VendorMethod {
        name: "create_subscription",
        description: "Subscribes Destination (a URL) to the events of the node. May be given: EventTypes, Context, Protocol, \
                      HttpHeaders.",
        http_method: "POST",
        does: Does::Subscribe,
        is_async: false,
        needs_lock: true,
    },
    VendorMethod {
        name: "delete_subscription",
        description: "Removes the event subscription id.",
        http_method: "DELETE",
        does: Does::Unsubscribe,
        is_async: false,
        needs_lock: true,
    },
    VendorMethod {
        name: "get_subscription",
        description: "Shows the event subscription id.",
        http_method: "GET",
        does: Does::ShowSubscription,
        is_async: false,
        needs_lock: false,
    },
    VendorMethod {
        name: "get_all_subscriptions",
        description: "Lists the event subscriptions of the node.",
        http_method: "GET",
        does: Does::ListSubscriptions,
        is_async: false,
        needs_lock: false,
    },
];

/// What a checked call comes to.
#[derive(Debug)]
pub struct VendorCall {
    /// What the node must do before the call is answered; none if nothing.
    pub request: Option<VendorRequest>,
    /// The answer; none if it is not waited for.
    pub answer: Option<Value>,
}

/// What a vendor method does to a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VendorRequest {
    /// Nothing but a line in its history: the method of this name was called.
    Noted(&'static str),
    /// Subscribe to its events.
    Subscribe(Subscription),
    /// Remove the subscription with this id.
    Unsubscribe(String),
}

/// The methods of a node with these attributes, as the API lists them.
///
/// # Errors
/// [`Refused::Unsupported`] where there is no vendor interface.
pub fn vendor_methods(attributes: &Attributes) -> Result<Value, Refused> {
    check_interface(attributes)?;
    let told: Map<String, Value> = METHODS
        .iter()
        .map(|method| {
            let told = json!({
                "http_methods": [method.http_method],
                "async": method.is_async,
                "attach": false,
                "description": method.description,
                "require_exclusive_lock": method.needs_lock,
            });
            (method.name.to_owned(), told)
        })
        .collect();
    Ok(Value::Object(told))
}

/// Checks a call. `id` is for what the call makes, if it makes something.
///
/// # Errors
/// [`Refused::Unsupported`] where there is no vendor interface; [`Refused::BadValue`] for what it doesn't have or understand;
/// [`Refused::NotFound`] for a subscription that is not there.
pub fn call_vendor_method(
    node: &Node,
    name: &str,
    http_method: &str,
    arguments: &Object,
    id: Uuid,
) -> Result<VendorCall, Refused> {
    check_interface(&node.attributes)?;
    let method = METHODS
        .iter()
        .find(|method| method.name == name)
        .ok_or_else(|| {
            let known: Vec<&str> = METHODS.iter().map(|method| method.name).collect();
            let known = known.join(", ");
            bad(
                "method",
                &format!("no vendor method {name:?}; this node has {known}"),
            )
        })?;
    if http_method != method.http_method {
        let only = method.http_method;
        return Err(bad(
            "method",
            &format!("{name} can be called with {only} only, not with {http_method}"),
        ));
    }
    let (request, answer) = match method.does {
        Does::Compare(expected) => {
            let noted = VendorRequest::Noted(method.name);
            let is_equal = read_bar(name, arguments)? == expected;
            (method.needs_lock.then_some(noted), json!(is_equal))
        }
        Does::Subscribe => {
            let made = subscriptions::read(arguments, id)?;
            let answer = subscriptions::told(&made);
            (Some(VendorRequest::Subscribe(made)), answer)
        }
        Does::Unsubscribe => {
            let id = subscriptions::named(node, arguments)?.id.clone();
            (Some(VendorRequest::Unsubscribe(id)), Value::Null)
        }
        Does::ShowSubscription => {
            let known = subscriptions::named(node, arguments)?;
            (None, subscriptions::told(known))
        }
        Does::ListSubscriptions => (None, subscriptions::told_all(node)),
    };
    let answer = (!method.is_async).then_some(answer);
    Ok(VendorCall { request, answer })
}

/// Does what a vendor method does to the node.
pub(super) fn requested(mut turn: Turn<'_>, request: VendorRequest) -> Step {
    match request {
        VendorRequest::Noted(name) => {
            turn.note(Severity::Info, "vendor", format!("{name} called"));
            turn.done(Outcome::Changed)
        }
        VendorRequest::Subscribe(made) => {
            let most = subscriptions::SUBSCRIPTIONS_MAX;
            if turn.node.hardware.subscriptions.len() >= most {
                return turn.refuse(Refused::Conflict {
                    text: format!("The node has {most} event subscriptions; delete one first."),
                });
            }
            changed(turn, |hardware| hardware.subscriptions.push(made))
        }
        VendorRequest::Unsubscribe(id) => {
            if let Err(why) = subscriptions::find(&turn.node, &id) {
                return turn.refuse(why);
            }
            changed(turn, |hardware| {
                hardware.subscriptions.retain(|known| known.id != id)
            })
        }
    }
}

fn read_bar<'a>(method: &str, arguments: &'a Object) -> Result<&'a str, Refused> {
    if let Some(other) = arguments.keys().find(|key| *key != "bar") {
        return Err(bad(other, &format!("{method} has no such argument")));
    }
    arguments.get("bar").and_then(Value::as_str).ok_or_else(|| {
        bad(
            "bar",
            &format!("{method} needs it, and it must be a string"),
        )
    })
}

fn check_interface(attributes: &Attributes) -> Result<(), Refused> {
    if uses(attributes, "vendor", "fake") {
        return Ok(());
    }
    Err(Refused::Unsupported {
        what: "The node has no vendor interface (its vendor_interface is no-vendor), so it has no vendor methods.".to_owned(),
    })
}
