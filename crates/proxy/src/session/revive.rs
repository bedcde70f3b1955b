//! Continues a session on another connection after its own has ended, which happens when the server
//! is restarted. The client does not learn about it.
//!
//! What a session has at the server is made again: the settings, which the server reports whenever
//! they change; the session with the keeper, by a handshake; prepared statements, each when it is
//! used next, until when a statement of the same name stands in for it. The server reports as well whether there is
//! anything else (`contract::report::KEPT`): then the session ends with its connection. What was sent and failed as
//! a whole is sent again (`again`).
//!
//! Invariant: a session is continued only if the server was restarted, no transaction was open, nothing of what was
//! sent had an effect, and all that it had is there again. In all other cases the client gets the server's last error.
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use client::{Failure, TypeMap};

use super::encoding::ClientEncoding;
use super::internal::Purpose;
use super::view::View;
use super::{Core, Phase, Step, Stop, Tried, Wait};
use crate::shared::Stats;
use crate::wire::{backend, frontend};

/// Settings that cannot be set.
const FIXED: [&str; 5] = [
    "in_hot_standby",
    "integer_datetimes",
    "is_superuser",
    "server_encoding",
    "server_version",
];

/// Settings that determine what else may be set, in the order in which they are set after all others.
const LAST: [&str; 2] = ["session_authorization", "role"];

/// The settings that the server has reported.
#[derive(Default)]
pub(super) struct Settings {
    /// What the client was told last, of those that it is told about: those that were reported at the start.
    told: HashMap<String, String>,
    /// Those that have changed since the start.
    changed: BTreeMap<String, String>,
}

impl Settings {
    /// A setting is reported, at the start or later; returns whether the client is told.
    pub(super) fn reported(&mut self, name: &str, value: &str, start: bool) -> bool {
        if !start {
            self.changed.insert(name.to_owned(), value.to_owned());
        }
        let shown = start || self.told.contains_key(name);
        if shown {
            self.told.insert(name.to_owned(), value.to_owned());
        }
        shown
    }

    /// The query that sets them again where they are different.
    fn query(&self) -> String {
        let rank = |name: &str| LAST.iter().position(|last| *last == name);
        let mut all: Vec<_> = self.changed.iter().collect();
        all.retain(|(name, _)| !FIXED.contains(&name.as_str()));
        all.sort_by_key(|(name, _)| rank(name));
        let set = |(name, value): &(&String, &String)| {
            let (name, value) = (quoted(name), quoted(value));
            format!(
                "CASE WHEN (SELECT setting FROM pg_catalog.pg_settings s WHERE s.name OPERATOR(pg_catalog.=) {name}) \
                 IS DISTINCT FROM {value} THEN pg_catalog.set_config({name}, {value}, false) END"
            )
        };
        let sets: Vec<String> = all.iter().map(set).collect();
        ["SELECT ", &sets.join(", ")].concat()
    }
}

fn quoted(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('\'', "''");
    format!("E'{text}'")
}

/// What is known of a session whose connection has ended.
pub(super) struct Lost {
    /// The server's last error, as the client would have got it.
    last: Option<Bytes>,
    /// The identity of the database that the server reported.
    identity: String,
    /// Settings reported by the new server.
    reported: HashMap<String, String>,
}

impl Core {
    /// The server ends the session with this error: whether the session can be continued.
    pub(super) fn ends(&mut self, fields: &[(u8, &[u8])], message: &[u8]) -> bool {
        let is = |tag: u8, text: &[u8]| fields.iter().any(|(t, v)| *t == tag && *v == text);
        let shut_down = is(b'V', b"FATAL") && is(b'C', b"57P01");
        let can = shut_down && self.can_continue() && (self.is_quiet() || self.again.is_whole());
        if can {
            self.lose(Some(Bytes::copy_from_slice(message)));
        }
        can
    }

    /// The connection to the server has ended: whether the session can be continued.
    pub fn is_lost(&mut self) -> bool {
        // What was sent may have been executed, unless the server has said that it was not.
        if self.lost.is_none() && self.can_continue() && self.is_quiet() {
            self.lose(None);
        }
        self.lost.is_some() && self.phase == Phase::Running
    }

    fn lose(&mut self, last: Option<Bytes>) {
        let identity = self.view.identity().to_owned();
        self.lost = Some(Box::new(Lost {
            last,
            identity,
            reported: HashMap::new(),
        }));
    }

    fn can_continue(&self) -> bool {
        self.shared.config.reconnect_seconds > 0
            && self.phase == Phase::Running
            && self.lost.is_none()
            && self.enabled
            && self.status == b'I'
            && self.script.is_none()
            && self.copy_in.is_none()
            && self.view.reports()
            && !self.view.kept()
            && !matches!(self.encoding, ClientEncoding::Other)
    }

    fn is_quiet(&self) -> bool {
        self.idle() && self.task.is_none()
    }

    /// There is another connection: prepares the session there. See [`Core::is_revived`].
    pub fn revive(&mut self, place: usize) {
        if self.again.is_whole() {
            self.again.fail();
        }
        self.place = place;
        self.link += 1;
        self.to_server = BytesMut::new();
        self.phase = Phase::Startup;
        self.held = None;
        self.wait = Wait::Nothing;
        self.queue.clear();
        self.pipeline = false;
        self.discarding = false;
        self.must_drain = false;
        self.litter = false;
        self.task = None;
        self.tried = Tried::default();
        self.portals.clear();
        self.cursors.clear();
        self.override_error = None;
        self.session.lose();
        self.session.carried_in_vain();
        self.session.all_answered();
        self.view = View::new(&self.database);
        self.schema = Arc::default();
        self.types = Arc::default();
        self.session.types = TypeMap::new(&[]);
    }

    /// Processes a message of the new server before it is ready.
    pub(super) fn on_revival(&mut self, tag: u8, message: &[u8]) -> Step {
        match tag {
            b'K' => self.key.sent(crate::wire::frame::body(message)),
            b'Z' => {
                self.phase = Phase::Preparing;
                self.start(Purpose::Startup)?;
            }
            _ => return Err(ended()),
        }
        Ok(())
    }

    /// A setting is reported while the session is prepared on another connection; returns whether it was.
    pub(super) fn reported_anew(&mut self, name: &str, value: &str) -> bool {
        let Some(lost) = &mut self.lost else {
            return false;
        };
        lost.reported.insert(name.to_owned(), value.to_owned());
        true
    }

    /// The session is prepared but for its settings and statements.
    pub(super) fn restore(&mut self) -> Step {
        let same = |lost: &Lost| lost.identity == self.view.identity();
        // The session was ended, not the server.
        if !self.enabled || !self.view.reports() || self.lost.as_deref().is_none_or(same) {
            return Err(ended());
        }
        let stale = |(name, s): (&String, &Arc<super::Statement>)| {
            (s.sql.is_some() && !name.is_empty()).then(|| name.clone())
        };
        let names: Vec<String> = self.statements.iter().filter_map(stale).collect();
        for name in names {
            frontend::parse(&mut self.to_server, &name, "SELECT", &[]);
        }
        self.start(Purpose::Settings)
    }

    /// The query that sets the session's settings.
    pub(super) fn settings(&self) -> String {
        self.settings.query()
    }

    /// Everything is there again.
    pub(super) fn revived(&mut self) {
        let Some(lost) = self.lost.take() else {
            return;
        };
        self.phase = Phase::Running;
        for (name, value) in lost.reported {
            let told = self.settings.told.get_mut(&name);
            if let Some(told) = told.filter(|told| **told != value) {
                backend::parameter(&mut self.to_client, &name, &value);
                *told = value;
            }
        }
        Stats::add(&self.shared.stats.reconnections, 1);
        tracing::info!(user = self.user, "session continued on another connection");
        self.repeat();
    }

    /// Whether the session is without a connection, or is being prepared on another one.
    pub fn is_reviving(&self) -> bool {
        self.lost.is_some()
    }

    /// The session cannot be continued: the client gets the server's last error.
    pub fn give_up(&mut self) {
        self.mark();
        self.to_server.clear();
        if let Some(last) = self.lost.take().and_then(|lost| lost.last) {
            self.to_client.extend_from_slice(&last);
        }
        self.converted.1 = 0;
        // A message that the client's encoding has no characters for is left out.
        let _ = self.convert();
    }
}

fn ended() -> Stop {
    Stop::Fatal(Failure::new("57P01", "confide: the session has ended"))
}

#[cfg(test)]
mod tests {
    use super::Settings;

    #[test]
    fn settings_are_set_in_order() {
        let mut settings = Settings::default();
        assert!(settings.reported("TimeZone", "UTC", true));
        assert!(settings.reported("role", "a'b\\", true));
        assert!(!settings.reported("work_mem", "64", false));
        for (name, value) in [("role", "a'b\\"), ("is_superuser", "on")] {
            settings.reported(name, value, false);
        }
        assert!(settings.reported("TimeZone", "CET", false));
        let query = settings.query();
        let at = |text: &str| query.find(text).unwrap_or(usize::MAX);
        assert!(
            at("set_config(E'work_mem', E'64', false)")
                < at("set_config(E'role', E'a''b\\\\', false)")
        );
        assert!(at("set_config(E'TimeZone', E'CET', false)") < at("E'role'"));
        assert!(!query.contains("is_superuser"));
    }
}
