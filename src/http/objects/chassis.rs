//! Chassis.

use serde_json::json;

use super::{Served, fields_of};
use crate::catalog::{Chassis, Record};
use crate::http::view::{Shown, links, short, shown, unasked};

impl Served for Chassis {
    const PLURAL: &'static str = "chassis";
    const SHOWN: &'static [Shown<Record<Chassis>>] = fields_of!(
        Chassis,
        "chassis",
        short(shown("description", 1, |of: &Record<Chassis>, _| {
            json!(of.is.description)
        })),
        shown("extra", 1, |of: &Record<Chassis>, _| json!(of.is.extra)),
        unasked(shown("nodes", 1, |of: &Record<Chassis>, frame| {
            links(frame.base, &format!("chassis/{}/nodes", of.id))
        })),
    );
}
