//! The future around every actor: a panic costs one message and a restart with a pause, never the actor.
//!
//! actix itself catches nothing: a panic in a handler, a timer, a spawned future or `started` ends the actor for good and closes
//! its address. Here the actor's context is polled inside `catch_unwind`; after a panic it is restarted on the same struct, with
//! its mailbox and addresses alive, after a growing pause. More than [`Intensity::restarts_max`] restarts within
//! [`Intensity::window`] are too many: the actor ends and its watcher is told why.
//!
//! An actor that ends itself with `ctx.stop()` has ended on purpose and is not restarted. Since a panic may come from anywhere,
//! actors keep `stopping` and `stopped` empty, and `started` must bring back everything they know.

use std::collections::VecDeque;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};
use std::time::{Duration, Instant};

use actix::dev::{ContextFut, channel};
use actix::{Actor, Addr, ArbiterHandle, Context, Supervised};

use crate::retry::Pauses;

/// How many restarts are too many.
#[derive(Debug, Clone, Copy)]
pub struct Intensity {
    /// So many are still fine ...
    pub restarts_max: usize,
    /// ... within this time.
    pub window: Duration,
}

/// What is told about a supervised actor's troubles.
pub trait Watcher: 'static {
    /// How many restarts are too many.
    fn intensity(&self) -> Intensity;
    /// It panicked and will be restarted.
    fn restarted(&self, cause: &str);
    /// It panicked too often and has ended; `cause` is the last panic's message.
    fn gave_up(&self, cause: &str);
}

/// Starts an actor on `arbiter`, under supervision, with a mailbox for `capacity` messages.
pub fn start<A, W>(
    arbiter: &ArbiterHandle,
    capacity: usize,
    make: impl FnOnce(&mut Context<A>) -> (A, W) + Send + 'static,
) -> Addr<A>
where
    A: Actor<Context = Context<A>> + Supervised,
    W: Watcher,
{
    let (sender, receiver) = channel::channel(capacity);
    arbiter.spawn_fn(move || {
        let mut context = Context::with_receiver(receiver);
        let (actor, watcher) = make(&mut context);
        actix_rt::spawn(SupervisedActor {
            future: context.into_future(actor),
            watcher,
            troubles: None,
        });
    });
    Addr::new(sender)
}

struct SupervisedActor<A, W>
where
    A: Actor<Context = Context<A>> + Supervised,
{
    future: ContextFut<A, Context<A>>,
    watcher: W,
    /// Those it had, if any.
    troubles: Option<Box<Troubles>>,
}

/// When an actor panicked, and what follows.
struct Troubles {
    pauses: Pauses,
    recent: VecDeque<Instant>,
    restart_at: Option<Pin<Box<tokio::time::Sleep>>>,
}

impl Troubles {
    fn none() -> Box<Troubles> {
        Box::new(Troubles {
            pauses: Pauses::new(Duration::from_millis(10), Duration::from_secs(5)),
            recent: VecDeque::new(),
            restart_at: None,
        })
    }
}

impl<A, W> Unpin for SupervisedActor<A, W> where A: Actor<Context = Context<A>> + Supervised {}

impl<A, W> Future for SupervisedActor<A, W>
where
    A: Actor<Context = Context<A>> + Supervised,
    W: Watcher,
{
    type Output = ();

    fn poll(self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<()> {
        let this = self.get_mut();
        loop {
            if let Some(troubles) = &mut this.troubles
                && let Some(pause) = &mut troubles.restart_at
            {
                if pause.as_mut().poll(task).is_pending() {
                    return Poll::Pending;
                }
                troubles.restart_at = None;
                // `restarting` is the actor's own code and may panic too.
                match catch_unwind(AssertUnwindSafe(|| this.future.restart())) {
                    Ok(true) => {}
                    // Nobody holds an address any more.
                    Ok(false) => return Poll::Ready(()),
                    Err(panic) => {
                        if !this.pause_or_give_up(&message_of(&*panic)) {
                            return Poll::Ready(());
                        }
                        continue;
                    }
                }
            }
            match catch_unwind(AssertUnwindSafe(|| Pin::new(&mut this.future).poll(task))) {
                Ok(Poll::Pending) => return Poll::Pending,
                Ok(Poll::Ready(())) => return Poll::Ready(()),
                Err(panic) => {
                    if !this.pause_or_give_up(&message_of(&*panic)) {
                        return Poll::Ready(());
                    }
                }
            }
        }
    }
}

impl<A, W> SupervisedActor<A, W>
where
    A: Actor<Context = Context<A>> + Supervised,
    W: Watcher,
{
    /// Plans the restart; false when there were too many.
    fn pause_or_give_up(&mut self, cause: &str) -> bool {
        let now = Instant::now();
        let Intensity {
            restarts_max,
            window,
        } = self.watcher.intensity();
        let troubles = self.troubles.get_or_insert_with(Troubles::none);
        while troubles
            .recent
            .front()
            .is_some_and(|earliest| now.duration_since(*earliest) > window)
        {
            troubles.recent.pop_front();
        }
        if troubles.recent.is_empty() {
            troubles.pauses.reset();
        }
        if troubles.recent.len() >= restarts_max {
            self.watcher.gave_up(cause);
            return false;
        }
        troubles.recent.push_back(now);
        self.watcher.restarted(cause);
        let pause = troubles.pauses.next_pause();
        troubles.restart_at = Some(Box::pin(tokio::time::sleep(pause)));
        true
    }
}

/// The words of a panic, if it had any.
pub fn message_of(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}
