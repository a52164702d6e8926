//! A conductor whose store is slow: `upbeat serve`, but each commit takes longer.

use std::sync::Arc;
use std::time::Duration;

use crate::config::{self, Overrides};
use crate::observe::trace;
use crate::serve::{self, Hooks};

/// How much longer.
const SLOWED_BY: Duration = Duration::from_millis(50);

/// Serves with settings `section.key=value` until the process is ended.
///
/// # Errors
/// What is wrong with the settings, or why it does not start.
pub async fn serve(settings: &[String]) -> Result<(), String> {
    let mut overrides = Overrides::from_environment();
    for setting in settings {
        let (key, value) = setting
            .split_once('=')
            .ok_or_else(|| format!("{setting}: write section.key=value"))?;
        overrides.settings.push((key.to_owned(), value.to_owned()));
    }
    let config = config::load(None, &overrides).map_err(|faults| faults.to_string())?;
    trace::start(trace::Format::Json, &config.log.level)?;
    let hooks = Hooks {
        on_commit: Some(Arc::new(|_| std::thread::sleep(SLOWED_BY))),
        ..Hooks::default()
    };
    let ended = serve::start_with(&config, hooks).await?.ended().await;
    Err(format!("{ended:?}"))
}
