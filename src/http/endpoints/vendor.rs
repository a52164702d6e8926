//! What vendors add, of nodes and of hardware types: methods that are called with any HTTP method, by path or by query.

use super::endpoint::{Endpoint, delete, get, patch, post, put};
use super::parameter::{Holds, Parameter, parameter};
use crate::http::vendor;

const METHOD: &[Parameter] = &[parameter(
    "method",
    Holds::Text,
    1,
    "The name of the vendor method.",
)];

const CALL: &str =
    "Calls a vendor method; answers 202 instead where the method's answer is not waited for.";
const CALL_OF_DRIVER: &str = "Calls a vendor method of a hardware type.";

/// What all calls of a node's methods have in common.
const fn of_node(row: Endpoint) -> Endpoint {
    row.status(200)
        .shows("VendorAnswer")
        .or_accepted()
        .errors(&[409])
}

/// What all calls of a hardware type's methods have in common.
const fn of_driver(row: Endpoint) -> Endpoint {
    row.status(200).shows("VendorAnswer")
}

/// The rows: both lists of methods, and for each HTTP method the calls by query and by path.
macro_rules! rows {
    ($($make:ident $name:literal),+ $(,)?) => {
        &[
            get(
                "/v1/nodes/{node}/vendor_passthru/methods",
                "Lists the vendor methods of a node.",
                |r, of| Box::pin(vendor::methods(r, of.first())),
            )
            .shows("VendorMethods"),
            $(
                of_node($make("/v1/nodes/{node}/vendor_passthru", CALL, |r, of| {
                    Box::pin(vendor::call(r, of.first(), $name, None))
                }))
                .query(&[METHOD]).may_take("VendorArguments"),
                of_node($make("/v1/nodes/{node}/vendor_passthru/{method}", CALL, |r, of| {
                    Box::pin(vendor::call(r, of.first(), $name, Some(of.second())))
                })).may_take("VendorArguments"),
            )+
            get(
                "/v1/drivers/{driver}/vendor_passthru/methods",
                "Lists the vendor methods of a hardware type.",
                |r, of| Box::pin(vendor::methods_of_driver(r, of.first())),
            )
            .shows("VendorMethods"),
            $(
                of_driver($make("/v1/drivers/{driver}/vendor_passthru", CALL_OF_DRIVER, |r, of| {
                    Box::pin(vendor::call_of_driver(r, of.first()))
                }))
                .query(&[METHOD]).may_take("VendorArguments"),
                of_driver($make(
                    "/v1/drivers/{driver}/vendor_passthru/{method}",
                    CALL_OF_DRIVER,
                    |r, of| Box::pin(vendor::call_of_driver(r, of.first())),
                )).may_take("VendorArguments"),
            )+
        ]
    };
}

/// The rows.
pub const ENDPOINTS: &[Endpoint] = rows![
    get "GET",
    post "POST",
    put "PUT",
    patch "PATCH",
    delete "DELETE",
];
