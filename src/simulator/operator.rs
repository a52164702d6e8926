//! The people and programs that use the node: deploy it, use it for a while, give it back; and disturb it at bad moments.

use serde_json::{Value, json};

use super::faults::Fault;
use super::queue::Happening;
use super::shell::Caller;
use super::world::World;
use crate::node::hardware::recorded::BootDevice;
use crate::node::steps::WorkStep;
use crate::node::work::{Work, WorkPhase};
use crate::node::{
    Event, HardwareRequest, Object, PatchOp, PatchOperation, PowerRequest, PowerState,
    ProvisionOptions, ProvisionState as S, Verb,
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

fn rescue() -> Event {
    Event::Provision {
        verb: Verb::Rescue,
        options: ProvisionOptions {
            rescue_password_hash: Some("$6$salt$hash".to_owned()),
            ..ProvisionOptions::default()
        },
    }
}

impl World<'_> {
    /// Somebody looks at the node and wants something of it.
    pub(super) fn operator_comes(&mut self) {
        if self.injector.is_over {
            self.end_the_hold();
            return;
        }
        let node = self.node();
        let rest = self.setup.use_ms;
        let mut next = self.random.between(30_000, 300_000);
        let disturbs = self.injector.strikes(Fault::Operator);
        if node.maintenance.is_some() && (!node.is_at_work() || node.is_queued()) {
            // Somebody has looked at it.
            self.operator_asks(Event::Maintenance {
                on: false,
                reason: None,
            });
            next = 10_000;
            self.queue.plan(self.now + next, Happening::Operator);
            return;
        }
        match node.provision_state() {
            S::Enroll => self.operator_asks(verb(Verb::Manage)),
            S::Manageable => {
                let wish = match self.random.between(0, 7) {
                    0 => verb(Verb::Inspect),
                    1 | 2 => self.with_steps(Verb::Clean),
                    3 => verb(Verb::Adopt),
                    _ => verb(Verb::Provide),
                };
                self.begins(wish);
            }
            S::CleanFailed => self.operator_asks(verb(Verb::Manage)),
            S::InspectFailed => {
                let wish = self.one_of(Verb::Manage, Verb::Inspect);
                self.begins(verb(wish));
            }
            S::AdoptFailed => {
                let wish = self.one_of(Verb::Manage, Verb::Adopt);
                self.begins(verb(wish));
            }
            S::Available => {
                if node.attributes.instance_info.is_empty() {
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
                } else if self.random.chance(100) {
                    self.operator_asks(verb(Verb::Manage));
                } else {
                    self.operator.deploys_asked += 1;
                    let wish = self.deploy();
                    self.begins(wish);
                    next = 60_000;
                }
            }
            S::Active => {
                let wish = match self.random.between(0, 9) {
                    0..=2 => verb(Verb::Rebuild),
                    3 => self.with_steps(Verb::Service),
                    4 => rescue(),
                    _ => verb(Verb::Deleted),
                };
                self.begins(wish);
                next = self.random.around(rest);
            }
            S::Rescue | S::RescueFailed | S::UnrescueFailed => {
                let wish = match self.random.between(0, 3) {
                    0 => rescue(),
                    1 => verb(Verb::Deleted),
                    _ => verb(Verb::Unrescue),
                };
                self.begins(wish);
                next = self.random.around(rest / 4);
            }
            S::ServiceFailed => {
                let wish = match self.random.between(0, 3) {
                    0 => verb(Verb::Abort),
                    1 => self.with_steps(Verb::Service),
                    2 => rescue(),
                    _ => verb(Verb::Deleted),
                };
                self.begins(wish);
                next = self.random.around(rest / 4);
            }
            S::DeployFailed | S::Error => {
                let wish = self.one_of(Verb::Rebuild, Verb::Deleted);
                self.begins(verb(wish));
                next = self.random.around(rest / 4);
            }
            S::CleanHold | S::DeployHold | S::ServiceHold => {
                let wish = match self.random.between(0, 2) {
                    0 if disturbs => verb(Verb::Abort),
                    // A new service takes the place of a held one; elsewhere it is refused.
                    1 if disturbs => self.with_steps(Verb::Service),
                    2 if disturbs => Event::power(PowerRequest::Reboot),
                    _ => verb(Verb::Unhold),
                };
                self.begins(wish);
                next = 60_000;
            }
            S::Verifying
            | S::Adopting
            | S::Inspecting
            | S::InspectWait
            | S::Cleaning
            | S::CleanWait
            | S::Deploying
            | S::WaitCallBack
            | S::Servicing
            | S::ServiceWait
            | S::Rescuing
            | S::RescueWait
            | S::Unrescuing
            | S::Deleting => {
                next = self.random.around(rest / 4);
                if disturbs {
                    let wish = match self.injector.between(Fault::Operator, 0, 7) {
                        0 => verb(Verb::Abort),
                        1 => verb(Verb::Deleted),
                        2 => Event::power(PowerRequest::Set(PowerState::Off)),
                        3 => Event::power(PowerRequest::Reboot),
                        4 => verb(Verb::Rebuild),
                        5 => Event::Hardware(HardwareRequest::BootDevice(BootDevice {
                            device: "disk".to_owned(),
                            persistent: false,
                        })),
                        on => Event::Maintenance {
                            on: on == 6,
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

    /// Asks for work.
    fn begins(&mut self, wish: Event) {
        self.hostile_before_deploy = self.machine_is_suspect();
        self.operator_asks(wish);
    }

    /// Holds are people's to end, in peace too.
    fn end_the_hold(&mut self) {
        let is_held = |work: &Work| work.phase == WorkPhase::Held;
        if self.node().work().is_some_and(is_held) {
            self.deliver(verb(Verb::Unhold), None, Caller::Operator);
        }
        // So is a maintenance, and who waits to begin waits for its end.
        if self.node().maintenance.is_some() && self.node().is_queued() {
            let off = Event::Maintenance {
                on: false,
                reason: None,
            };
            self.deliver(off, None, Caller::Operator);
        }
        if self.node().is_at_work() {
            self.queue.plan(self.now + 60_000, Happening::Operator);
        }
    }

    fn one_of(&mut self, one: Verb, other: Verb) -> Verb {
        if self.random.chance(500) { one } else { other }
    }

    /// A deploy, sometimes with a pause that somebody has to end.
    fn deploy(&mut self) -> Event {
        let mut options = ProvisionOptions::default();
        if self.random.chance(100) {
            let priority = if self.random.chance(500) { 90 } else { 50 };
            options.steps = vec![WorkStep::named("deploy", "hold", priority)];
        }
        Event::Provision {
            verb: Verb::Active,
            options,
        }
    }

    /// A cleaning or a service with some of the steps agents have, a pause and a hold.
    fn with_steps(&mut self, verb: Verb) -> Event {
        let mut steps = Vec::new();
        for (interface, step, per_mille) in [
            ("deploy", "erase_devices_metadata", 500),
            ("power", "wait", 200),
            ("raid", "create_configuration", 300),
            ("power", "hold", 200),
            ("deploy", "burn_in", 300),
            ("power", "reboot", 100),
            ("management", "reset_bmc", 100),
            ("deploy", "erase_devices", 400),
        ] {
            if self.random.chance(per_mille) {
                let mut step = WorkStep::named(interface, step, 0);
                if step.step == "wait" && self.random.chance(500) {
                    step.args.insert("seconds".to_owned(), json!(90));
                }
                steps.push(step);
            }
        }
        if steps.is_empty() {
            steps.push(WorkStep::named("deploy", "erase_devices_metadata", 0));
        }
        Event::Provision {
            verb,
            options: ProvisionOptions {
                steps,
                ..ProvisionOptions::default()
            },
        }
    }

    /// True while earlier calls to the power control may still come to act on the machine.
    fn machine_is_suspect(&self) -> bool {
        self.injector.hostile > 0
    }

    /// The same as before, since there was no answer then.
    pub(super) fn operator_asks_again(&mut self, event: Event) {
        let ends_work = matches!(
            &event,
            Event::Provision {
                verb: Verb::Abort | Verb::Deleted,
                ..
            }
        );
        // By now it may meet other work than it was meant for.
        self.injector.hostile += u64::from(ends_work);
        self.operator_asks(event);
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
