//! Logs: text on a terminal, JSON elsewhere; on standard error. And what a panic
//! may say: its place, never its message, which could hold a value.

use std::io::IsTerminal;
use std::panic::PanicHookInfo;
use tracing_subscriber::EnvFilter;

/// Begins to log. An invalid filter is an error.
pub fn start(filter: &str) -> Result<(), String> {
    let filter = EnvFilter::builder()
        .parse(filter)
        .map_err(|_| "log: expected error, warn, info or debug".to_string())?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    let done = if std::io::stderr().is_terminal() {
        log.try_init()
    } else {
        log.json().with_ansi(false).try_init()
    };
    done.map_err(|_| "logging is already started".to_string())
}

/// Makes panics silent about everything but their place.
pub fn quiet_panics() {
    std::panic::set_hook(Box::new(|info: &PanicHookInfo<'_>| {
        let place = info.location();
        tracing::error!(
            file = place.map_or("?", |p| p.file()),
            line = place.map_or(0, |p| p.line()),
            "panic"
        );
    }));
}
