//! The role that executes templates, and exactly what it may.

use crate::name::quoted;
use crate::setting::SETTINGS;
use std::fmt::Write;

/// The role that the agent logs in as.
pub const AGENT: &str = "confide_fix";
/// Through which it becomes an owner of tables, and inherits nothing of theirs.
const OWNERS: &str = "confide_fix_owners";

/// Lines for the host's sudoers: what only root does, this user has done by this program, which checks
/// it again.
pub fn host_rights(user: &str, program: &str) -> String {
    format!("{user} ALL=(root) NOPASSWD: {program} fix host *")
}

/// A script for a superuser: makes the role, which maintains what these roles own.
pub fn rights(owners: &[String]) -> String {
    let mut out = String::from("BEGIN;\n");
    for (role, attributes) in [(OWNERS, "NOLOGIN NOINHERIT"), (AGENT, "LOGIN INHERIT")] {
        let _ = writeln!(
            out,
            "DO $$ BEGIN CREATE ROLE {role}; EXCEPTION WHEN duplicate_object THEN NULL; END $$;\n\
             ALTER ROLE {role} WITH {attributes} NOSUPERUSER NOCREATEDB NOCREATEROLE \
             NOREPLICATION NOBYPASSRLS;"
        );
    }
    let _ = writeln!(
        out,
        "ALTER ROLE {AGENT} SET search_path = pg_catalog;\n\
         GRANT pg_monitor, pg_signal_backend, {OWNERS} TO {AGENT};\n\
         GRANT EXECUTE ON FUNCTION pg_catalog.pg_reload_conf(), \
         pg_catalog.pg_rotate_logfile() TO {AGENT};"
    );
    for owner in owners {
        let _ = writeln!(out, "GRANT {} TO {OWNERS};", quoted(owner));
    }
    for setting in SETTINGS {
        let _ = writeln!(
            out,
            "GRANT ALTER SYSTEM ON PARAMETER {} TO {AGENT};",
            setting.name
        );
    }
    out.push_str("COMMIT;\n");
    out
}
