//! The thread on which agents are called. Handshakes and long answers take time on the processor, and a thousand calls may begin at
//! once; on a thread of their own they keep nobody else waiting.

use std::future::pending;
use std::panic::resume_unwind;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// Runs what is given to it, until dropped.
pub(super) struct CallingThread {
    runtime: Handle,
    /// The thread ends when this is dropped.
    _hold: oneshot::Sender<()>,
}

impl CallingThread {
    /// Starts it.
    ///
    /// # Errors
    /// The operating system has no thread to spare.
    pub(super) fn start() -> Result<CallingThread, String> {
        let failed = |error| format!("the thread that calls agents can't be started: {error}");
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        let handle = runtime.handle().clone();
        let (hold, held) = oneshot::channel::<()>();
        std::thread::Builder::new()
            .name("upbeat-agents".to_owned())
            .spawn(move || {
                // Nothing is ever sent.
                let _ = runtime.block_on(held);
                // Looking up a name may still be under way, and nobody waits for it.
                runtime.shutdown_background();
            })
            .map_err(failed)?;
        Ok(CallingThread {
            runtime: handle,
            _hold: hold,
        })
    }

    /// Returns what `call` returns. Dropping this future ends the call.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        call: impl Future<Output = T> + Send + 'static,
    ) -> T {
        let mut one = JoinSet::new();
        one.spawn_on(call, &self.runtime);
        match one.join_next().await {
            Some(Ok(returned)) => returned,
            Some(Err(error)) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                // Only whoever drops this future cancels it.
                Err(_) => pending().await,
            },
            None => pending().await,
        }
    }
}
