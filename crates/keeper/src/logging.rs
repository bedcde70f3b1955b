//! Logging to standard error: text on a terminal, JSON otherwise. A panic logs its location but
//! never its message, which could contain a value.

use std::io::IsTerminal;
use std::panic::PanicHookInfo;
use tracing_subscriber::EnvFilter;

/// Initialises logging. An invalid filter is an error.
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

/// Makes panics report nothing but their location.
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
