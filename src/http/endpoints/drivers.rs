//! Hardware types and conductors.

use super::endpoint::{Endpoint, get};
use super::parameter::{DETAIL, FIELDS, Holds, PAGE, Parameter, parameter};
use crate::http::{conductors, drivers};

const DRIVER_FIELDS: &[Parameter] = &[parameter(
    "fields",
    Holds::Texts,
    77,
    "Only these fields; the links are always there.",
)];

const DRIVERS: &[Parameter] = &[
    parameter(
        "type",
        Holds::OneOf(&["classic", "dynamic"]),
        30,
        "Drivers of this kind; all are dynamic.",
    ),
    parameter("detail", Holds::Bool, 30, "Show the interfaces too."),
];

/// The rows.
pub const ENDPOINTS: &[Endpoint] = &[
    get("/v1/drivers", "Lists the hardware types.", |r, _| {
        Box::pin(drivers::list(r))
    })
    .query(&[DRIVERS, DRIVER_FIELDS])
    .lists("drivers", "Driver"),
    get("/v1/drivers/{driver}", "Shows a hardware type.", |r, of| {
        Box::pin(drivers::show(r, of.first()))
    })
    .query(&[DRIVER_FIELDS])
    .shows("Driver"),
    get(
        "/v1/drivers/{driver}/properties",
        "What a hardware type wants to know of a machine.",
        |r, of| Box::pin(drivers::properties(r, of.first())),
    )
    .shows("DriverProperties"),
    get("/v1/conductors", "Lists the conductors.", |r, _| {
        Box::pin(conductors::list(r))
    })
    .since(49)
    .query(&[FIELDS, DETAIL, PAGE])
    .lists("conductors", "Conductor"),
    get("/v1/conductors/{host}", "Shows a conductor.", |r, of| {
        Box::pin(conductors::show(r, of.first()))
    })
    .since(49)
    .query(&[FIELDS])
    .shows("Conductor"),
];
