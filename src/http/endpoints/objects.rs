//! Objects that stand for themselves: chassis, deploy templates, runbooks, inspection rules, allocations.

use super::endpoint::{Endpoint, TooOld, delete, get, patch, post, put};
use super::nodes::FILTERS as NODE_FILTERS;
use super::parameter::{DETAIL, FIELDS, Holds, PAGE, Parameter, parameter};
use crate::catalog::{Allocation, Chassis, DeployTemplate, InspectionRule, Runbook};
use crate::http::nodes;
use crate::http::objects::{self, allocations, runbooks};

const ALLOCATION_FILTERS: &[Parameter] = &[
    parameter("node", Holds::Ident, 52, "The allocation of this node."),
    parameter(
        "resource_class",
        Holds::Text,
        52,
        "Allocations of this resource class.",
    ),
    parameter(
        "state",
        Holds::OneOf(&["allocating", "active", "error"]),
        52,
        "Allocations in this state.",
    ),
    parameter("owner", Holds::Text, 60, "Allocations of this owner."),
];

const RUNBOOK_FILTERS: &[Parameter] = &[parameter(
    "owner",
    Holds::Text,
    92,
    "Runbooks of this owner.",
)];

/// The rows.
pub const ENDPOINTS: &[Endpoint] = &[
    get("/v1/chassis", "Lists chassis.", |r, _| {
        Box::pin(objects::list::<Chassis>(r, false))
    })
    .query(&[FIELDS, DETAIL, PAGE])
    .lists("chassis", "Chassis"),
    post("/v1/chassis", "Creates a chassis.", |r, _| {
        Box::pin(objects::create::<Chassis>(r))
    })
    .takes("NewChassis")
    .shows("Chassis")
    .errors(&[409]),
    get(
        "/v1/chassis/detail",
        "Lists chassis with all their fields.",
        |r, _| Box::pin(objects::list::<Chassis>(r, true)),
    )
    .query(&[PAGE])
    .lists("chassis", "Chassis"),
    get("/v1/chassis/{chassis}", "Shows a chassis.", |r, of| {
        Box::pin(objects::show::<Chassis>(r, of.first()))
    })
    .query(&[FIELDS])
    .shows("Chassis"),
    patch("/v1/chassis/{chassis}", "Changes a chassis.", |r, of| {
        Box::pin(objects::change::<Chassis>(r, of.first()))
    })
    .shows("Chassis"),
    delete(
        "/v1/chassis/{chassis}",
        "Removes an empty chassis.",
        |r, of| Box::pin(objects::delete::<Chassis>(r, of.first())),
    ),
    get(
        "/v1/chassis/{chassis}/nodes",
        "Lists the nodes in a chassis.",
        |r, of| Box::pin(nodes::list_of_chassis(r, of.first(), false)),
    )
    .query(&[NODE_FILTERS, FIELDS, DETAIL, PAGE])
    .lists("nodes", "Node"),
    get(
        "/v1/chassis/{chassis}/nodes/detail",
        "Lists the nodes in a chassis with all their fields.",
        |r, of| Box::pin(nodes::list_of_chassis(r, of.first(), true)),
    )
    .query(&[NODE_FILTERS, PAGE])
    .lists("nodes", "Node"),
    get("/v1/deploy_templates", "Lists deploy templates.", |r, _| {
        Box::pin(objects::list::<DeployTemplate>(r, false))
    })
    .since(55)
    .query(&[FIELDS, DETAIL, PAGE])
    .lists("deploy_templates", "DeployTemplate"),
    post(
        "/v1/deploy_templates",
        "Creates a deploy template.",
        |r, _| Box::pin(objects::create::<DeployTemplate>(r)),
    )
    .since(55)
    .too_old(TooOld::MethodNotAllowed)
    .takes("NewDeployTemplate")
    .shows("DeployTemplate")
    .errors(&[409]),
    get(
        "/v1/deploy_templates/{template}",
        "Shows a deploy template.",
        |r, of| Box::pin(objects::show::<DeployTemplate>(r, of.first())),
    )
    .since(55)
    .query(&[FIELDS])
    .shows("DeployTemplate"),
    patch(
        "/v1/deploy_templates/{template}",
        "Changes a deploy template.",
        |r, of| Box::pin(objects::change::<DeployTemplate>(r, of.first())),
    )
    .since(55)
    .too_old(TooOld::MethodNotAllowed)
    .shows("DeployTemplate")
    .errors(&[409]),
    delete(
        "/v1/deploy_templates/{template}",
        "Removes a deploy template.",
        |r, of| Box::pin(objects::delete::<DeployTemplate>(r, of.first())),
    )
    .since(55)
    .too_old(TooOld::MethodNotAllowed),
    get("/v1/runbooks", "Lists runbooks.", |r, _| {
        Box::pin(objects::list::<Runbook>(r, false))
    })
    .since(92)
    .query(&[RUNBOOK_FILTERS, FIELDS, DETAIL, PAGE])
    .lists("runbooks", "Runbook"),
    post("/v1/runbooks", "Creates a runbook.", |r, _| {
        Box::pin(objects::create::<Runbook>(r))
    })
    .since(92)
    .takes("NewRunbook")
    .shows("Runbook")
    .errors(&[409]),
    get("/v1/runbooks/{runbook}", "Shows a runbook.", |r, of| {
        Box::pin(objects::show::<Runbook>(r, of.first()))
    })
    .since(92)
    .query(&[FIELDS])
    .shows("Runbook"),
    patch("/v1/runbooks/{runbook}", "Changes a runbook.", |r, of| {
        Box::pin(objects::change::<Runbook>(r, of.first()))
    })
    .since(92)
    .shows("Runbook")
    .errors(&[409]),
    delete("/v1/runbooks/{runbook}", "Removes a runbook.", |r, of| {
        Box::pin(objects::delete::<Runbook>(r, of.first()))
    })
    .since(92),
    get(
        "/v1/runbooks/{runbook}/traits",
        "Lists the traits of a runbook.",
        |r, of| Box::pin(runbooks::list_traits(r, of.first())),
    )
    .since(112)
    .shows("Traits"),
    put(
        "/v1/runbooks/{runbook}/traits",
        "Sets the traits of a runbook.",
        |r, of| Box::pin(runbooks::set_traits(r, of.first())),
    )
    .since(112)
    .takes("Traits")
    .status(204),
    delete(
        "/v1/runbooks/{runbook}/traits",
        "Takes all traits off a runbook.",
        |r, of| Box::pin(runbooks::remove_traits(r, of.first(), None)),
    )
    .since(112),
    put(
        "/v1/runbooks/{runbook}/traits/{trait}",
        "Gives a runbook one more trait.",
        |r, of| Box::pin(runbooks::add_trait(r, of.first(), of.second())),
    )
    .since(112)
    .status(204),
    delete(
        "/v1/runbooks/{runbook}/traits/{trait}",
        "Takes one trait off a runbook.",
        |r, of| Box::pin(runbooks::remove_traits(r, of.first(), Some(of.second()))),
    )
    .since(112),
    get("/v1/inspection_rules", "Lists inspection rules.", |r, _| {
        Box::pin(objects::list::<InspectionRule>(r, false))
    })
    .since(96)
    .query(&[FIELDS, DETAIL, PAGE])
    .lists("inspection_rules", "InspectionRule"),
    post(
        "/v1/inspection_rules",
        "Creates an inspection rule.",
        |r, _| Box::pin(objects::create::<InspectionRule>(r)),
    )
    .since(96)
    .too_old(TooOld::MethodNotAllowed)
    .takes("NewInspectionRule")
    .shows("InspectionRule")
    .errors(&[409]),
    delete(
        "/v1/inspection_rules",
        "Removes all inspection rules.",
        |r, _| Box::pin(objects::delete_all::<InspectionRule>(r)),
    )
    .since(96)
    .too_old(TooOld::MethodNotAllowed),
    get(
        "/v1/inspection_rules/{rule}",
        "Shows an inspection rule.",
        |r, of| Box::pin(objects::show::<InspectionRule>(r, of.first())),
    )
    .since(96)
    .query(&[FIELDS])
    .shows("InspectionRule"),
    patch(
        "/v1/inspection_rules/{rule}",
        "Changes an inspection rule.",
        |r, of| Box::pin(objects::change::<InspectionRule>(r, of.first())),
    )
    .since(96)
    .too_old(TooOld::MethodNotAllowed)
    .shows("InspectionRule"),
    delete(
        "/v1/inspection_rules/{rule}",
        "Removes an inspection rule.",
        |r, of| Box::pin(objects::delete::<InspectionRule>(r, of.first())),
    )
    .since(96)
    .too_old(TooOld::MethodNotAllowed),
    get("/v1/allocations", "Lists allocations.", |r, _| {
        Box::pin(objects::list::<Allocation>(r, false))
    })
    .since(52)
    .query(&[ALLOCATION_FILTERS, FIELDS, DETAIL, PAGE])
    .lists("allocations", "Allocation"),
    post(
        "/v1/allocations",
        "Asks for a node of a resource class.",
        |r, _| Box::pin(allocations::create(r)),
    )
    .since(52)
    .too_old(TooOld::MethodNotAllowed)
    .takes("NewAllocation")
    .shows("Allocation")
    .errors(&[409]),
    get(
        "/v1/allocations/{allocation}",
        "Shows an allocation.",
        |r, of| Box::pin(objects::show::<Allocation>(r, of.first())),
    )
    .since(52)
    .query(&[FIELDS])
    .shows("Allocation"),
    patch(
        "/v1/allocations/{allocation}",
        "Changes the name or the extra of an allocation.",
        |r, of| Box::pin(objects::change::<Allocation>(r, of.first())),
    )
    .since(57)
    .too_old(TooOld::MethodNotAllowed)
    .shows("Allocation")
    .errors(&[409]),
    delete(
        "/v1/allocations/{allocation}",
        "Ends an allocation and frees its node.",
        |r, of| Box::pin(allocations::delete(r, of.first())),
    )
    .since(52)
    .too_old(TooOld::MethodNotAllowed)
    .errors(&[409]),
    get(
        "/v1/nodes/{node}/allocation",
        "Shows the allocation of a node.",
        |r, of| Box::pin(allocations::show_of_node(r, of.first())),
    )
    .since(52)
    .shows("Allocation"),
    delete(
        "/v1/nodes/{node}/allocation",
        "Ends the allocation of a node.",
        |r, of| Box::pin(allocations::delete_of_node(r, of.first())),
    )
    .since(52)
    .too_old(TooOld::MethodNotAllowed)
    .errors(&[409]),
];
