//! `confide mode`: shows whether superusers can log in (docs/maintenance.md), for any role and also
//! through the proxy. Switches the mode with the privileges of `confide fix`, and in its log.
//!
//! What it shows is the server's own statement.

use crate::fix::{self, Place};
use std::thread::sleep;
use std::time::Duration;

/// Arguments of the command.
#[derive(clap::Args)]
pub struct Arguments {
    /// The mode to switch to; without it, show the mode.
    to: Option<Mode>,
    #[command(flatten)]
    place: Place,
}

/// A mode.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Mode {
    /// No superuser can log in.
    Execution,
    /// Superusers can log in.
    Maintenance,
}

/// Roles that can become superuser count as superusers, as in the extension's `mode.c`. A standby's
/// walreceiver has a session, too.
const ASK: &str = "SELECT current_setting('confide.mode'), (SELECT count(*) FROM pg_stat_activity s \
    WHERE s.backend_type IN ('client backend', 'walsender') AND EXISTS (SELECT FROM pg_roles r \
    WHERE (r.rolsuper OR r.rolcreaterole OR r.rolname IN ('pg_write_server_files', \
    'pg_execute_server_program')) AND pg_has_role(s.usesysid, r.oid, 'MEMBER')))";

/// Number of checks whether the server has reloaded its configuration and sessions have ended.
const LOOKS: u32 = 300;

/// Shows or switches the mode; returns the present one.
pub fn run(arguments: &Arguments) -> Result<String, String> {
    let place = &arguments.place;
    let Some(to) = arguments.to else {
        let (mode, sessions) = ask(place)?;
        return Ok(shown(&mode, &sessions));
    };
    let name = match to {
        Mode::Execution => "execution",
        Mode::Maintenance => "maintenance",
    };
    fix::switch(name, place)?;
    let mut now = ask(place)?;
    for _ in 0..LOOKS {
        let (mode, sessions) = &now;
        if mode == name && (sessions == "0" || matches!(to, Mode::Maintenance)) {
            return Ok(shown(mode, sessions));
        }
        if mode == name {
            place.ask("SELECT confide.end_superusers()")?;
        }
        sleep(Duration::from_millis(100));
        now = ask(place)?;
    }
    let (mode, sessions) = now;
    Err(format!("{}\nafter 30 seconds", shown(&mode, &sessions)))
}

fn ask(place: &Place) -> Result<(String, String), String> {
    let rows = place.ask(ASK)?;
    match rows.first().map(Vec::as_slice) {
        Some([Some(mode), Some(sessions)]) => Ok((mode.clone(), sessions.clone())),
        _ => Err("the server does not say its mode".into()),
    }
}

fn shown(mode: &str, sessions: &str) -> String {
    format!("mode {mode}\nsessions of superusers {sessions}")
}
