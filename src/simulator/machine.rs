//! The machine and its power control: what driver calls do to it, how it boots, how it fails.

use super::agent::Agent;
use super::faults::Fault;
use super::queue::Happening;
use super::work::PendingSync;
use super::world::World;
use crate::node::{DriverAnswer, DriverCall, DriverRequest, PowerState};

#[derive(Debug, Default)]
pub(super) struct Machine {
    pub(super) is_on: bool,
    /// Some operating system runs on it, the ramdisk or what was deployed.
    pub(super) is_up: bool,
    /// It never comes up again.
    pub(super) is_dead: bool,
    boots_from_disk: bool,
    /// Counts boots; what belongs to an earlier one is void.
    pub(super) boot: u32,
    /// Counts processes of the agent.
    pub(super) processes: u32,
    pub(super) agent: Option<Agent>,
    pub(super) pending_sync: Option<PendingSync>,
    /// Last part of its address, which may change with a boot.
    pub(super) address: i64,
    /// The power control does one thing after the other.
    control_free_at: i64,
}

impl World<'_> {
    /// The conductor's driver begins with a call.
    pub(super) fn call_driver(&mut self, call: DriverCall) {
        self.tally.driver_calls += 1;
        let (acts, answers) = (
            self.random.between(50, 8_000),
            self.random.between(10, 2_000),
        );
        let mut acts_at = Some(self.machine.control_free_at.max(self.now) + acts);
        let mut answers_at = acts_at.map(|at| at + answers);
        let mut error = None;
        if self.injector.strikes(Fault::Driver) {
            match self.injector.between(Fault::Driver, 0, 4) {
                0 => {
                    acts_at = None;
                    error = Some("the power control refused".to_owned());
                }
                1 => error = Some("the power control closed the connection".to_owned()),
                2 => answers_at = None,
                3 => {
                    (acts_at, answers_at) = (None, None);
                }
                _ => {
                    let slow = self.injector.between(Fault::Driver, 10_000, 90_000);
                    acts_at = acts_at.map(|at| at + slow);
                    answers_at = answers_at.map(|at| at + slow);
                }
            }
        }
        self.trace(|| format!("driver: call {} {}", call.number, call.request.name()));
        if let Some(at) = acts_at {
            self.machine.control_free_at = at;
            self.queue.plan(at, Happening::DriverActs(call.request));
        }
        let Some(at) = answers_at else {
            return;
        };
        let answer = match error {
            Some(why) => Err(why),
            None => Ok(DriverAnswer { power: None }),
        };
        let life = self.conductor.life;
        let call = call.number;
        self.queue
            .plan(at, Happening::DriverAnswers { life, call, answer });
    }

    /// What a good answer says of the power, as seen when it is given.
    pub(super) fn with_power(
        &self,
        answer: Result<DriverAnswer, String>,
    ) -> Result<DriverAnswer, String> {
        answer.map(|_| DriverAnswer {
            power: Some(if self.machine.is_on {
                PowerState::On
            } else {
                PowerState::Off
            }),
        })
    }

    pub(super) fn driver_acts(&mut self, request: DriverRequest) {
        match request {
            DriverRequest::Verify
            | DriverRequest::ReadPower
            | DriverRequest::SetBootDevice
            | DriverRequest::SetBootMode
            | DriverRequest::SetSecureBoot
            | DriverRequest::SetMedia
            | DriverRequest::SetConsole
            | DriverRequest::InjectNmi
            | DriverRequest::HardwareStep => {}
            DriverRequest::BootFromDisk => self.machine.boots_from_disk = true,
            DriverRequest::PowerOff | DriverRequest::SoftPowerOff => self.switch_off(),
            DriverRequest::PowerOn => self.switch_on(),
            DriverRequest::Reboot | DriverRequest::SoftReboot => {
                self.switch_off();
                self.switch_on();
            }
            DriverRequest::RebootToInstance => {
                self.machine.boots_from_disk = true;
                self.switch_off();
                self.switch_on();
            }
            DriverRequest::RebootToRamdisk => {
                self.machine.boots_from_disk = false;
                self.switch_off();
                if !self.injector.is_over && self.injector.strikes(Fault::MachineDeath) {
                    // It is on, and that is all.
                    self.machine.is_dead = true;
                } else {
                    self.machine.is_dead = false;
                }
                self.switch_on();
            }
        }
    }

    fn switch_off(&mut self) {
        self.agent_ends();
        if self.machine.is_on {
            self.trace(|| "machine: off".to_owned());
        }
        self.machine.is_on = false;
        self.machine.is_up = false;
        self.machine.boot += 1;
    }

    fn switch_on(&mut self) {
        if self.machine.is_on {
            return;
        }
        self.machine.is_on = true;
        self.machine.boot += 1;
        let boot = self.machine.boot;
        let takes = self.random.around(self.kind.boot_ms);
        self.trace(|| "machine: on".to_owned());
        self.queue.plan(self.now + takes, Happening::Boots { boot });
    }

    pub(super) fn boots(&mut self, boot: u32) {
        let machine = &mut self.machine;
        if machine.boot != boot || !machine.is_on || machine.is_dead {
            return;
        }
        machine.is_up = true;
        if machine.boots_from_disk {
            return;
        }
        self.process_starts(boot);
    }

    pub(super) fn goes_off(&mut self, boot: u32) {
        if self.machine.boot == boot && self.machine.is_on {
            self.switch_off();
        }
    }

    pub(super) fn machine_reboots(&mut self) {
        self.switch_off();
        self.switch_on();
    }

    pub(super) fn machine_dies(&mut self) {
        self.agent_ends();
        self.machine.is_dead = true;
        self.machine.is_up = false;
        self.machine.boot += 1;
    }
}
