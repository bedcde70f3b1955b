//! Logging to standard error: text on a terminal, JSON otherwise.
use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

use crate::config::Config;

/// Starts logging.
pub fn start(config: &Config) -> Result<(), String> {
    let filter = EnvFilter::try_new(&config.log_level).map_err(|e| format!("log_level: {e}"))?;
    let json = match config.log_format.as_str() {
        "json" => true,
        "text" => false,
        _ => !std::io::stderr().is_terminal(),
    };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    let started = if json {
        builder.json().flatten_event(true).try_init()
    } else {
        builder.try_init()
    };
    started.map_err(|e| e.to_string())
}
