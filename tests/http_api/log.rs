//! The log of this process, as an operator would read it.

use std::sync::{Arc, Mutex, OnceLock};

/// What is logged from now on, by all tests of this process.
pub fn heard() -> Arc<Mutex<Vec<u8>>> {
    static LOG: OnceLock<Arc<Mutex<Vec<u8>>>> = OnceLock::new();
    let log = LOG.get_or_init(|| {
        let log = Arc::<Mutex<Vec<u8>>>::default();
        let writer = log.clone();
        tracing_subscriber::fmt()
            .with_max_level(tracing::Level::TRACE)
            .with_ansi(false)
            .with_writer(move || ToLog(writer.clone()))
            .init();
        log
    });
    log.clone()
}

struct ToLog(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for ToLog {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
