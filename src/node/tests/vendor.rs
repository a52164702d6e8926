//! Vendor methods: what is asked of them, and event subscriptions.

use serde_json::json;
use uuid::Uuid;

use super::super::hardware::vendor::{VendorRequest, call_vendor_method, vendor_methods};
use super::hardware::{fake, manual, refusal};
use super::*;

/// Calls a vendor method as the API does, id 1 being for what it makes.
fn call(world: &mut World, http: &str, name: &str, told: Value) -> Result<Option<Value>, Refused> {
    let arguments = told.as_object().unwrap();
    let id = Uuid::from_u128(1);
    let called = call_vendor_method(&world.node, name, http, arguments, id)?;
    if let Some(request) = called.request {
        let step = world.wants(HardwareRequest::Vendor(request));
        if let Reply::Refused(why) = step.reply {
            return Err(why);
        }
    }
    Ok(called.answer)
}

#[test]
fn events_are_subscribed_to_and_no_more() {
    let mut world = fake();
    let id = Uuid::from_u128(1).to_string();
    let asked = json!({"Destination": "https://events.example/host-0", "Context": "c", "HttpHeaders": [{"Authorization": "Basic x"}]});
    let told = call(&mut world, "POST", "create_subscription", asked).unwrap();
    let whole = json!({"Id": id, "Context": "c", "Destination": "https://events.example/host-0", "Protocol": "Redfish",
        "EventTypes": ["Alert"]});
    assert_eq!(told.as_ref(), Some(&whole));
    let stored = serde_json::to_string(&world.node.hardware).unwrap();
    assert!(!stored.contains("Basic"), "{stored}");
    let shown = call(&mut world, "GET", "get_subscription", json!({"id": id}));
    assert_eq!(shown, Ok(Some(whole)));
    let all = call(&mut world, "GET", "get_all_subscriptions", json!({}))
        .unwrap()
        .unwrap();
    assert_eq!(all["Members@odata.count"], 1);
    assert!(
        all["Members"][0]["@odata.id"]
            .as_str()
            .unwrap()
            .ends_with(&id)
    );
    let gone = call(
        &mut world,
        "DELETE",
        "delete_subscription",
        json!({"id": id}),
    );
    assert_eq!(gone, Ok(Some(Value::Null)));
    for (http, name) in [
        ("DELETE", "delete_subscription"),
        ("GET", "get_subscription"),
    ] {
        let again = call(&mut world, http, name, json!({"id": id})).unwrap_err();
        assert_eq!(again.name(), "not_found");
    }
    // Two deletes that were checked at the same time: the second finds nothing to delete.
    let late = HardwareRequest::Vendor(VendorRequest::Unsubscribe(id));
    assert_eq!(refusal(&world.wants(late)), "not_found");
}

#[test]
fn a_machine_keeps_so_many_subscriptions() {
    let mut world = fake();
    let mut made = 0;
    let to = json!({"Destination": "http://events.example/"});
    while call(&mut world, "POST", "create_subscription", to.clone()).is_ok() {
        made += 1;
    }
    assert_eq!(made, 20);
}

#[test]
fn subscriptions_that_make_no_sense_are_refused_by_name() {
    let to = "http://events.example/";
    for (told, field) in [
        (json!({}), "Destination"),
        (json!({"Destination": "/only/a/path"}), "Destination"),
        (json!({"Destination": "file:///etc/passwd"}), "Destination"),
        (json!({"Destination": 5}), "Destination"),
        (json!({"Destination": to, "Context": 1}), "Context"),
        (json!({"Destination": to, "Protocol": null}), "Protocol"),
        (
            json!({"Destination": to, "EventTypes": ["Alert", "Weather"]}),
            "EventTypes",
        ),
        (
            json!({"Destination": to, "EventTypes": "Alert"}),
            "EventTypes",
        ),
        (
            json!({"Destination": to, "HttpHeaders": {"a": "b"}}),
            "HttpHeaders",
        ),
        (json!({"Destination": to, "Bar": 1}), "Bar"),
    ] {
        let refused = call(&mut fake(), "POST", "create_subscription", told).unwrap_err();
        assert!(
            format!("{refused:?}").contains(&format!("field: {field:?}")),
            "{refused:?}"
        );
    }
    for told in [json!({}), json!({"id": 7}), json!({"id": "x", "b": 1})] {
        let refused = call(&mut fake(), "DELETE", "delete_subscription", told).unwrap_err();
        assert_eq!(refused.name(), "bad_value");
    }
}

#[test]
fn vendor_methods_say_what_is_wrong_with_a_call() {
    let mut world = fake();
    let meow = call(
        &mut world,
        "POST",
        "third_method_sync",
        json!({"bar": "meow"}),
    );
    assert_eq!(meow, Ok(Some(json!(true))));
    let asynchronous = call(&mut world, "POST", "first_method", json!({"bar": "x"}));
    assert_eq!(asynchronous, Ok(None));
    for (name, method, arguments) in [
        ("fifth_method", "POST", json!({"bar": "x"})),
        ("first_method", "GET", json!({"bar": "x"})),
        ("first_method", "POST", json!({})),
        ("first_method", "POST", json!({"bar": 1})),
        ("first_method", "POST", json!({"bar": "x", "y": 1})),
    ] {
        assert_eq!(
            call(&mut world, method, name, arguments)
                .unwrap_err()
                .name(),
            "bad_value"
        );
    }
    assert_eq!(
        vendor_methods(&world.node.attributes)
            .unwrap()
            .as_object()
            .unwrap()
            .len(),
        8
    );
    let none = manual().node.attributes;
    assert_eq!(vendor_methods(&none).unwrap_err().name(), "unsupported");
}
