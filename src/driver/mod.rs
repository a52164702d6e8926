//! What can be done to a machine from outside: power, boot device and modes, virtual media, console, out-of-band steps.
//!
//! A driver is called by the conductor for a node's [`DriverRequest`] and answers once. It decides nothing about the node, and a
//! repeated call must do no harm: every request names what shall be.

mod fake;
mod manual;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub use fake::{Fake, PowerHook, Switch};
pub use manual::Manual;

use crate::node::{DriverAnswer, DriverRequest, Node};

/// A driver's answer, when it comes.
pub type Answering = Pin<Box<dyn Future<Output = Result<DriverAnswer, String>> + Send>>;

/// One hardware type's way to its machines.
pub trait Driver: Send + Sync {
    /// Carries out `request` for `node`.
    ///
    /// # Errors
    /// What went wrong, in words for an operator, without secrets.
    fn call(&self, node: &Node, request: DriverRequest) -> Answering;
}

/// The drivers of this process, by hardware type.
#[derive(Clone)]
pub struct Drivers {
    fake: Arc<Fake>,
    manual: Arc<Manual>,
}

impl Drivers {
    /// All drivers; `hook` is told of every power change of `fake-hardware`.
    pub fn new(hook: Option<PowerHook>) -> Drivers {
        Drivers {
            fake: Arc::new(Fake::new(hook)),
            manual: Arc::new(Manual),
        }
    }

    /// Carries out `request` with the driver the node names.
    pub fn call(&self, node: &Node, request: DriverRequest) -> Answering {
        match node.attributes.driver.as_str() {
            "fake-hardware" => self.fake.call(node, request),
            "manual-management" => self.manual.call(node, request),
            other => {
                let why = format!("this conductor has no hardware type {other:?}");
                Box::pin(std::future::ready(Err(why)))
            }
        }
    }
}
