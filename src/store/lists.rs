//! What lists of nodes are made from: the outlines of all nodes, kept in memory.
//!
//! Going through them takes a few milliseconds for 100,000 nodes, whatever the filter and the order; a database takes many times as
//! long wherever no index fits, and pays for each index with every change. The thread that writes, which alone changes nodes, puts
//! each change here after its commit and before its answer: so whoever was answered finds it in the next list.
//!
//! Pure, besides [`Published`]. Asked by `reader`, kept by `writer`.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use imbl::{HashMap, OrdMap};

use super::fault::ReadFault;
use super::nodes::unsortable;
use super::rows::folded;
use super::types::{NodeFilter, NodeOutline, Page, ReadError};
use crate::node::{NodeId, ProvisionState};

/// The lists as the last commit left them, for many to look at.
#[derive(Default)]
pub(super) struct Published(Mutex<Lists>);

impl Published {
    /// As they are now; what is changed later does not show in it.
    pub(super) fn now(&self) -> Lists {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Whether there is such a node.
    pub(super) fn has(&self, id: NodeId) -> bool {
        let lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lists.ages.contains_key(&id)
    }

    /// Changes them; what is changed shows all at once.
    pub(super) fn change(&self, change: impl FnOnce(&mut Lists)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// The outlines of all nodes. Copies cost nothing: they have everything in common that neither of them changes.
#[derive(Clone, Default)]
pub(super) struct Lists {
    /// By their numbers in the order of creation.
    by_age: OrdMap<u64, Arc<NodeOutline>>,
    ages: HashMap<NodeId, u64>,
}

/// A node with its number.
type Aged<'a> = (u64, &'a Arc<NodeOutline>);

impl Lists {
    /// Adds a node behind all others, or puts it in its own place if it is there.
    pub(super) fn put(&mut self, outline: Arc<NodeOutline>) {
        let newest = self.by_age.get_max().map_or(0, |(age, _)| *age);
        let age = self.ages.entry(outline.id).or_insert(newest + 1);
        self.by_age.insert(*age, outline);
    }

    /// Takes a node away.
    pub(super) fn remove(&mut self, id: NodeId) {
        if let Some(age) = self.ages.remove(&id) {
            self.by_age.remove(&age);
        }
    }

    /// One page of the nodes a filter lets through.
    pub(super) fn page(
        &self,
        filter: &NodeFilter,
        page: &Page,
    ) -> Result<Vec<Arc<NodeOutline>>, ReadFault> {
        let marker = page.marker.map(|id| self.aged(NodeId(id))).transpose()?;
        let filter = Prepared::from(filter);
        let found = match page.sort_key.as_deref() {
            None => self.by_age(&filter, marker, page),
            Some(key) => {
                let by = comparison(key).ok_or_else(|| unsortable("nodes", key))?;
                self.sorted(&filter, marker, page, by)
            }
        };
        Ok(found)
    }

    fn aged(&self, id: NodeId) -> Result<Aged<'_>, ReadFault> {
        let age = self.ages.get(&id);
        age.and_then(|age| Some((*age, self.by_age.get(age)?)))
            .ok_or(ReadFault::Read(ReadError::UnknownMarker))
    }

    /// The usual order needs no more than the nodes of the page and those that are left out between them.
    fn by_age(
        &self,
        filter: &Prepared<'_>,
        marker: Option<Aged<'_>>,
        page: &Page,
    ) -> Vec<Arc<NodeOutline>> {
        let outlines = |(_, outline)| outline;
        let wanted = |outline: &&Arc<NodeOutline>| filter.lets_through(outline);
        match (page.descending, marker) {
            (false, marker) => {
                let from = marker.map_or(0, |(age, _)| age + 1);
                let after = self.by_age.range(from..).map(outlines).filter(wanted);
                after.take(page.limit).cloned().collect()
            }
            (true, marker) => {
                let to = marker.map_or(u64::MAX, |(age, _)| age);
                let before = self.by_age.range(..to).rev().map(outlines).filter(wanted);
                before.take(page.limit).cloned().collect()
            }
        }
    }

    fn sorted<'a>(
        &'a self,
        filter: &Prepared<'_>,
        marker: Option<Aged<'a>>,
        page: &Page,
        by: Comparison,
    ) -> Vec<Arc<NodeOutline>> {
        let compare = |a: &Aged<'_>, b: &Aged<'_>| {
            let order = by(a.1, b.1).then(a.0.cmp(&b.0));
            if page.descending {
                order.reverse()
            } else {
                order
            }
        };
        let mut found: Vec<Aged<'a>> = Vec::new();
        // The last one that may still be wanted, once there are more than enough.
        let mut worst: Option<Aged<'a>> = None;
        let mut consider = |aged: Aged<'a>| {
            let wanted = filter.lets_through(aged.1)
                && marker.is_none_or(|marker| compare(&marker, &aged).is_lt())
                && worst.is_none_or(|worst| compare(&aged, &worst).is_lt());
            if wanted {
                found.push(aged);
                if found.len() > page.limit.saturating_mul(2) {
                    worst = keep_first(&mut found, page.limit, compare);
                }
            }
        };
        // What was made one after the other often has its names in that order, too.
        let all = self.by_age.iter().map(|(age, outline)| (*age, outline));
        if page.descending {
            all.rev().for_each(&mut consider);
        } else {
            all.for_each(&mut consider);
        }
        keep_first(&mut found, page.limit, compare);
        found.sort_unstable_by(compare);
        found.into_iter().map(|aged| Arc::clone(aged.1)).collect()
    }

    /// How many nodes are in each state that any node is in.
    pub(super) fn count_by_state(&self) -> Vec<(ProvisionState, u64)> {
        self.count_by(|outline| outline.provision_state)
    }

    /// How many nodes are in each shard, by its name; first those in none.
    pub(super) fn count_by_shard(&self) -> Vec<(Option<String>, u64)> {
        let counts = self.count_by(|outline| outline.shard.as_deref());
        let owned = |(shard, count): (Option<&str>, u64)| (shard.map(str::to_owned), count);
        counts.into_iter().map(owned).collect()
    }

    fn count_by<'a, K: Ord>(&'a self, key: impl Fn(&'a NodeOutline) -> K) -> Vec<(K, u64)> {
        let mut counts = BTreeMap::new();
        for outline in self.by_age.values() {
            *counts.entry(key(outline)).or_insert(0) += 1;
        }
        counts.into_iter().collect()
    }
}

/// Leaves the first `limit` of them, in any order; returns the one behind them.
fn keep_first<T: Copy>(
    of: &mut Vec<T>,
    limit: usize,
    compare: impl Fn(&T, &T) -> Ordering,
) -> Option<T> {
    if of.len() <= limit {
        return None;
    }
    let (_, behind, _) = of.select_nth_unstable_by(limit, compare);
    let behind = *behind;
    of.truncate(limit);
    Some(behind)
}

type Comparison = fn(&NodeOutline, &NodeOutline) -> Ordering;

/// The order of each of [`NODE_SORT_KEYS`](super::NODE_SORT_KEYS); where there is nothing to compare comes first.
fn comparison(key: &str) -> Option<Comparison> {
    Some(match key {
        "uuid" => |a, b| a.id.cmp(&b.id),
        "name" => |a, b| a.name.cmp(&b.name),
        "provision_state" => |a, b| a.provision_state.name().cmp(b.provision_state.name()),
        "power_state" => |a, b| {
            let name = |of: &NodeOutline| of.power_state.map(|state| state.name());
            name(a).cmp(&name(b))
        },
        "driver" => |a, b| a.driver.cmp(&b.driver),
        "instance_uuid" => |a, b| a.instance_uuid.cmp(&b.instance_uuid),
        "resource_class" => |a, b| a.resource_class.cmp(&b.resource_class),
        "maintenance" => |a, b| a.maintenance.cmp(&b.maintenance),
        "created_at" => |a, b| a.created_at.cmp(&b.created_at),
        "updated_at" => |a, b| a.updated_at.cmp(&b.updated_at),
        _ => return None,
    })
}

impl NodeFilter {
    /// Whether a node belongs into the list.
    pub(super) fn lets_through(&self, node: &NodeOutline) -> bool {
        Prepared::from(self).lets_through(node)
    }
}

/// A filter with what need not be done for each node.
struct Prepared<'a> {
    filter: &'a NodeFilter,
    description_contains: Option<String>,
}

impl<'a> From<&'a NodeFilter> for Prepared<'a> {
    fn from(filter: &'a NodeFilter) -> Prepared<'a> {
        Prepared {
            filter,
            description_contains: filter.description_contains.as_deref().map(folded),
        }
    }
}

impl Prepared<'_> {
    fn lets_through(&self, node: &NodeOutline) -> bool {
        // Taken apart, so that a condition that is added can't be forgotten here.
        let NodeFilter {
            provision_state,
            maintenance,
            associated,
            instance_uuid,
            instance_name,
            driver,
            resource_class,
            conductor_group,
            owner,
            lessee,
            project,
            fault,
            retired,
            description_contains: _,
            shards,
            sharded,
            parent_node,
            chassis_uuid,
            include_children,
        } = self.filter;
        is(provision_state, &node.provision_state)
            && is(maintenance, &node.maintenance)
            && is(retired, &node.retired)
            && is(associated, &node.instance_uuid.is_some())
            && is(sharded, &node.shard.is_some())
            && has(driver, Some(&node.driver))
            && has(conductor_group, Some(&node.conductor_group))
            && has(instance_uuid, node.instance_uuid.as_deref())
            && has(instance_name, node.instance_name.as_deref())
            && has(resource_class, node.resource_class.as_deref())
            && has(owner, node.owner.as_deref())
            && has(lessee, node.lessee.as_deref())
            && has(fault, node.fault.as_deref())
            && has(parent_node, node.parent_node.as_deref())
            && has(chassis_uuid, node.chassis_uuid.as_deref())
            && (has(project, node.owner.as_deref()) || has(project, node.lessee.as_deref()))
            && (*include_children || parent_node.is_some() || node.parent_node.is_none())
            && shards.as_ref().is_none_or(|shards| {
                let shard = node.shard.as_deref();
                shard.is_some_and(|shard| shards.iter().any(|one| one == shard))
            })
            && self.description_contains.as_ref().is_none_or(|part| {
                let description = node.description.as_ref();
                description.is_some_and(|description| description.contains(part))
            })
    }
}

/// Nothing is wished, or just this.
fn is<T: PartialEq>(wished: &Option<T>, is: &T) -> bool {
    wished.as_ref().is_none_or(|wished| wished == is)
}

/// Nothing is wished, or it is there and just this.
fn has(wished: &Option<String>, has: Option<&str>) -> bool {
    wished.is_none() || wished.as_deref() == has
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{Attributes, Node};
    use crate::timestamp::Timestamp;
    use uuid::Uuid;

    fn outline(number: u128, description: &str) -> Arc<NodeOutline> {
        let attributes = Attributes {
            description: Some(description.to_owned()),
            ..Attributes::default()
        };
        let id = NodeId(Uuid::from_u128(number));
        NodeOutline::from(&Node::enrolled(id, attributes, Timestamp(0))).into()
    }

    fn ids(lists: &Lists, page: &Page) -> Vec<u128> {
        let found = lists.page(&NodeFilter::default(), page).unwrap();
        found.iter().map(|outline| outline.id.0.as_u128()).collect()
    }

    #[test]
    fn a_node_keeps_its_place_and_a_picture_stays_as_it_was() {
        let published = Published::default();
        published.change(|lists| {
            for number in [3, 1, 2] {
                lists.put(outline(number, "old"));
            }
        });
        let before = published.now();
        published.change(|lists| {
            lists.put(outline(3, "new"));
            lists.remove(NodeId(Uuid::from_u128(1)));
            lists.put(outline(4, "new"));
        });
        let all = Page::by_age(9, None);
        assert_eq!(ids(&before, &all), [3, 1, 2]);
        let after = published.now();
        assert_eq!(ids(&after, &all), [3, 2, 4]);
        let filter = NodeFilter {
            description_contains: Some("NEW".to_owned()),
            ..NodeFilter::default()
        };
        assert_eq!(before.page(&filter, &all).unwrap().len(), 0);
        assert_eq!(after.page(&filter, &all).unwrap().len(), 2);
        let gone = Page::by_age(9, Some(Uuid::from_u128(1)));
        assert!(after.page(&filter, &gone).is_err());
        assert_eq!(ids(&before, &gone), [2]);
    }

    #[test]
    fn a_page_is_what_is_wanted_of_all_that_are_sorted() {
        let mut lists = Lists::default();
        for number in [5, 3, 9, 1, 7, 2] {
            lists.put(outline(number, ""));
        }
        let page = |limit, marker: Option<u128>, sort_key: Option<&str>, descending| Page {
            limit,
            marker: marker.map(Uuid::from_u128),
            sort_key: sort_key.map(str::to_owned),
            descending,
        };
        for (wanted, expected) in [
            (page(2, None, None, false), vec![5, 3]),
            (page(2, Some(3), None, false), vec![9, 1]),
            (page(2, Some(3), None, true), vec![5]),
            (page(2, None, None, true), vec![2, 7]),
            (page(2, None, Some("uuid"), false), vec![1, 2]),
            (page(2, Some(2), Some("uuid"), false), vec![3, 5]),
            (page(9, Some(5), Some("uuid"), true), vec![3, 2, 1]),
            (page(0, None, Some("uuid"), true), vec![]),
            // All are equal in it, so they stay in the order of creation.
            (page(3, Some(3), Some("driver"), false), vec![9, 1, 7]),
            (page(3, Some(9), Some("driver"), true), vec![3, 5]),
        ] {
            assert_eq!(ids(&lists, &wanted), expected, "{wanted:?}");
        }
    }
}
