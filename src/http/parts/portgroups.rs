//! Port groups, and the ports of one.

use serde_json::json;

use super::{Served, fields_of, find, node_uuid};
use crate::http::error::Error;
use crate::http::nodes::split;
use crate::http::ports;
use crate::http::reply::Reply;
use crate::http::request::{Arguments, Request};
use crate::http::view::{Shown, links, short, shown, unasked};
use crate::node::portgroups::Portgroup;
use crate::node::values::{is_name, mac_address};
use crate::store::{PartFilter, PartOfNode};

macro_rules! own {
    ($name:ident, $since:literal) => {
        shown(
            stringify!($name),
            $since,
            |of: &PartOfNode<Portgroup>, _| json!(of.part.is.$name),
        )
    };
}

impl Served for Portgroup {
    const PLURAL: &'static str = "portgroups";
    const PATH: &'static str = "portgroups";
    const SHOWN: &'static [Shown<PartOfNode<Portgroup>>] = fields_of!(
        Portgroup,
        "portgroups",
        short(own!(address, 1)),
        own!(extra, 1),
        shown("internal_info", 1, |_: &PartOfNode<Portgroup>, _| json!({})),
        own!(mode, 26),
        short(own!(name, 1)),
        own!(properties, 26),
        own!(standalone_ports_supported, 1),
        shown("node_uuid", 1, |of: &PartOfNode<Portgroup>, _| node_uuid(
            of.node
        )),
        own!(physical_network, 102),
        own!(category, 103),
        // Groups are made by operators only.
        shown(
            "dynamic_portgroup",
            111,
            |_: &PartOfNode<Portgroup>, _| json!(false)
        ),
        unasked(shown("ports", 1, |of: &PartOfNode<Portgroup>, frame| {
            links(frame.base, &format!("portgroups/{}/ports", of.part.id))
        })),
    );
    const SORT_KEYS: &'static [&'static str] =
        &["uuid", "address", "name", "created_at", "updated_at"];

    fn is_name(text: &str) -> bool {
        is_name(text)
    }

    fn filter(request: &Request, arguments: &mut Arguments) -> Result<Option<PartFilter>, Error> {
        let mut filter = PartFilter::default();
        if let Some(address) = arguments.take_text("address")? {
            let address = mac_address(&address).ok_or_else(|| {
                Error::Bad(format!(
                    "address: expected a MAC address but received {address}."
                ))
            })?;
            filter.claim = Some(address);
        }
        if let Some(list) = arguments.take_text("shard")? {
            filter.shards = Some(split(&list));
        }
        if let Some(list) = arguments.take_text("conductor_groups")?
            && !ports::has_own_group(request, &list)
        {
            return Ok(None);
        }
        Ok(Some(filter))
    }
}

/// `GET /v1/portgroups/{portgroup}/ports`, and with `/detail`
pub async fn list_ports(request: &Request, ident: &str, is_detail: bool) -> Result<Reply, Error> {
    let group = find::<Portgroup>(request, ident).await?.part.id;
    ports::list_of_group(request, group, is_detail).await
}
