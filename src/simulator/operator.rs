//! The people and programs that use the node: deploy it, use it for a while, give it back; and disturb it at bad moments.

use serde_json::{Value, json};

use super::faults::Fault;
use super::queue::Happening;
use super::shell::Caller;
use super::world::World;
use crate::node::{
    Event, Object, PatchOp, PatchOperation, PowerRequest, PowerState, Provision, ProvisionOptions,
    Verb,
};

/// What they remember.
#[derive(Debug, Default)]
pub(super) struct Operator {
    deploys_asked: u64,
}

/// A good whole-disk image.
pub(super) fn instance_info() -> Object {
    let info = json!({
        "image_source": "http://images.example/cloud.raw",
        "image_os_hash_algo": "sha256",
        "image_os_hash_value": "a".repeat(64),
    });
    match info {
        Value::Object(info) => info,
        _ => Object::new(),
    }
}

fn verb(verb: Verb) -> Event {
    Event::Provision {
        verb,
        options: ProvisionOptions::default(),
    }
}

impl World<'_> {
    /// Somebody looks at the node and wants something of it.
    pub(super) fn operator_comes(&mut self) {
        if self.injector.is_over {
            return;
        }
        let node = self.node();
        let rest = self.setup.use_ms;
        let mut next = self.random.between(30_000, 300_000);
        let disturbs = self.injector.strikes(Fault::Operator);
        match &node.provision {
            Provision::Enroll => self.operator_asks(verb(Verb::Manage)),
            Provision::Manageable => self.operator_asks(verb(Verb::Provide)),
            Provision::Available => {
                if node.maintenance.is_some() {
                    self.operator_asks(Event::Maintenance {
                        on: false,
                        reason: None,
                    });
                    next = 10_000;
                } else if node.attributes.instance_info.is_empty() {
                    self.operator_asks(Event::Patch {
                        operations: vec![PatchOperation {
                            op: PatchOp::Add,
                            path: vec!["instance_info".to_owned()],
                            value: Value::Object(instance_info()),
                        }],
                        reset_interfaces: false,
                        microversion: 109,
                    });
                    next = 5_000;
                } else {
                    self.operator.deploys_asked += 1;
                    self.hostile_before_deploy = self.machine_is_suspect();
                    self.operator_asks(verb(Verb::Active));
                    next = 60_000;
                }
            }
            Provision::Active => {
                let wish = if self.random.chance(300) {
                    Verb::Rebuild
                } else {
                    Verb::Deleted
                };
                self.hostile_before_deploy = self.machine_is_suspect();
                self.operator_asks(verb(wish));
                next = self.random.around(rest);
            }
            Provision::DeployFailed | Provision::Error => {
                let wish = if self.random.chance(500) {
                    Verb::Rebuild
                } else {
                    Verb::Deleted
                };
                self.hostile_before_deploy = self.machine_is_suspect();
                self.operator_asks(verb(wish));
                next = self.random.around(rest / 4);
            }
            Provision::Deploying(_) | Provision::Verifying | Provision::Deleting => {
                next = self.random.around(rest);
                if disturbs {
                    let wish = match self.injector.between(Fault::Operator, 0, 6) {
                        0 => verb(Verb::Abort),
                        1 => verb(Verb::Deleted),
                        2 => Event::power(PowerRequest::Set(PowerState::Off)),
                        3 => Event::power(PowerRequest::Reboot),
                        4 => verb(Verb::Rebuild),
                        on => Event::Maintenance {
                            on: on == 5,
                            reason: None,
                        },
                    };
                    self.operator_asks(wish);
                    next = self.injector.between(Fault::Operator, 100, 300_000);
                }
            }
        }
        self.queue.plan(self.now + next, Happening::Operator);
    }

    /// True while earlier calls to the power control may still come to act on the machine.
    fn machine_is_suspect(&self) -> bool {
        self.injector.hostile > 0
    }

    pub(super) fn operator_asks(&mut self, event: Event) {
        if self.injector.is_over {
            return;
        }
        if !self.deliver(event.clone(), None, Caller::Operator) {
            self.fail_caller(Caller::Operator, Some(event));
        }
    }
}
