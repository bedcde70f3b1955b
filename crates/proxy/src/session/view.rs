//! The meaning of names in a session: the database's schema, the changes of the open transaction,
//! the search path.
//!
//! The server reports all of this on the session's own connection (`contract::report`), each change
//! before the answer to the statement that made it. Changes of the open transaction are private to
//! the session until the server reports that they are committed; then they are given to the other
//! sessions, before the client knows about the commit.
//!
//! Invariant: the result reflects the server's state when it sent the last answer that was read, or
//! [`View::behind`] says that the server must be asked.
use std::sync::Arc;

use client::Failure;
use rewrite::report::{Path, Record, Report, Settings};
use rewrite::{Catalog, ColumnType, Memo, Pin, Schema};

use super::{Step, Stop};
use crate::databases::{Databases, State};

/// Number of search paths that are remembered, so that a transaction may return to one.
const PATHS_MAX: usize = 8;

/// A session's view of the schema.
#[derive(Default)]
pub(super) struct View {
    database: String,
    /// The identity that the server reports for the database; empty if it sends no reports.
    identity: String,
    kept: bool,
    /// Parts of a complete schema.
    parts: Vec<Record>,
    /// The changes made by the open transaction.
    own: Vec<Record>,
    /// Data read in a transaction with its own changes, which is not shared: the complete schema,
    /// changes made by others, and their version.
    private: Option<Arc<Catalog>>,
    seen: Vec<Record>,
    seen_version: u64,

    settings: Settings,
    path: Option<Path>,
    paths: Vec<Path>,

    /// The database's catalog, from which the following are built.
    base: Option<Arc<Catalog>>,
    /// The catalog with the changes of the open transaction, if any.
    merged: Option<Catalog>,
    /// The schema for classifying statements, and the analyses made with it; built on demand.
    schema: Option<Arc<Schema>>,
    memo: Memo,
    /// The set of schemas that existed when the search paths were reported.
    places: Option<Arc<()>>,
}

impl View {
    pub(super) fn new(database: &str) -> View {
        View {
            database: database.to_owned(),
            ..View::default()
        }
    }

    /// The identity that the server reports for the database.
    pub(super) fn identity(&self) -> &str {
        &self.identity
    }

    /// Whether the server sends reports.
    pub(super) fn reports(&self) -> bool {
        !self.identity.is_empty()
    }

    /// Whether the session has anything that cannot be made again on another connection.
    pub(super) fn kept(&self) -> bool {
        self.kept
    }

    /// Whether the open transaction has changed the schema.
    pub(super) fn changed(&self) -> bool {
        !self.own.is_empty() || self.private.is_some()
    }

    /// Whether the server must be asked before a statement that uses names: it has reported a newer
    /// version than the known one, its schema is not kept any more, or the search path is unknown.
    pub(super) fn behind(&self, state: &State) -> bool {
        let version = state.version.max(self.seen_version);
        let forgotten = state.identity.is_empty() && self.private.is_none();
        let no_path = self.base.is_some() && self.path.is_none();
        self.reports() && (version < state.newest || forgotten || no_path)
    }

    /// Records a session setting reported by the server.
    pub(super) fn setting(&mut self, name: &str, value: &str) {
        let known = match name {
            "search_path" => &mut self.settings.search_path,
            "role" => &mut self.settings.role,
            "session_authorization" => &mut self.settings.session,
            _ => return,
        };
        if known != value {
            value.clone_into(known);
            let found = self.paths.iter().find(|p| p.settings == self.settings);
            self.path = found.cloned();
            self.schema = None;
        }
    }

    /// Processes a report of the server about a database with this pin. Returns true if a complete
    /// schema was read.
    pub(super) fn report(
        &mut self,
        value: &[u8],
        databases: &Databases,
        pin: impl FnOnce() -> Option<Arc<Pin>>,
    ) -> Step<bool> {
        let report = Report::read(value).map_err(|e| {
            Stop::Fatal(Failure::new(
                "08P01",
                format!("confide: report of the schema: {e}"),
            ))
        })?;
        let name = self.database.as_str();
        match report {
            Report::Part(records) => self.parts.extend(records),
            Report::Whole(head) => {
                let parts = std::mem::take(&mut self.parts);
                let catalog = Catalog::new(&parts, pin());
                if head.own {
                    databases.told(&head.identity, head.to);
                    self.read_within(Some(Arc::new(catalog)), Vec::new(), head.to);
                } else {
                    databases.whole(name, &head, Some(catalog));
                }
                self.identity = head.identity;
                return Ok(true);
            }
            Report::Since(head, records) => {
                if head.own {
                    databases.told(&head.identity, head.to);
                    self.read_within(None, records, head.to);
                } else {
                    databases.since(&head, &records);
                }
                self.identity = head.identity;
            }
            Report::Version(head) => databases.told(&head.identity, head.to),
            Report::Without(head) => {
                databases.whole(name, &head, None);
                self.identity = head.identity;
            }
            Report::Own(records) => self.change(records),
            Report::Done { version, complete } => {
                let own = std::mem::take(&mut self.own);
                let records = complete.then_some(own);
                databases.committed(&self.identity, version, records);
                self.transaction_over();
            }
            Report::Undone => self.transaction_over(),
            Report::Kept(kept) => self.kept = kept,
            Report::Path(path) => {
                let known = databases.state(&self.identity).catalog;
                self.places = known.map(|catalog| catalog.places().clone());
                self.take_path(path);
            }
        }
        Ok(false)
    }

    /// Takes what was read in a transaction with changes of its own. The server does not report that
    /// version again, so the caller has noted it: after a rollback the server must be asked.
    fn read_within(&mut self, whole: Option<Arc<Catalog>>, others: Vec<Record>, version: u64) {
        if whole.is_some() {
            self.private = whole;
            self.seen.clear();
        }
        self.seen.extend(others);
        self.seen_version = version;
        self.forget_merged();
    }

    fn change(&mut self, records: Vec<Record>) {
        match &mut self.merged {
            Some(merged) => merged.apply(&records),
            None => self.base = None,
        }
        self.schema = None;
        self.own.extend(records);
    }

    fn forget_merged(&mut self) {
        self.merged = None;
        self.base = None;
        self.schema = None;
    }

    /// The transaction has ended: no changes are open any more.
    pub(super) fn transaction_over(&mut self) {
        if self.changed() || self.merged.is_some() || self.seen_version != 0 {
            self.own.clear();
            self.private = None;
            self.seen.clear();
            self.seen_version = 0;
            self.forget_merged();
        }
    }

    fn take_path(&mut self, path: Path) {
        // A new schema would discard all analyses.
        if self.path.as_ref() == Some(&path) && self.settings == path.settings {
            return;
        }
        self.paths.retain(|p| p.settings != path.settings);
        if self.paths.len() >= PATHS_MAX {
            self.paths.remove(0);
        }
        self.paths.push(path.clone());
        self.settings = path.settings.clone();
        self.path = Some(path);
        self.schema = None;
    }

    /// Returns the schema for classifying statements. `None`: the database does not have Confide,
    /// or its server does not report.
    pub(super) fn schema(&mut self, state: &State) -> Option<Arc<Schema>> {
        let base = self.private.as_ref().or(state.catalog.as_ref())?.clone();
        if !self.base.as_ref().is_some_and(|b| Arc::ptr_eq(b, &base)) {
            self.rebase(base);
        }
        if self.schema.is_none() {
            let (schema, memo) = self.make()?;
            self.schema = Some(schema);
            self.memo = memo;
        }
        self.schema.clone()
    }

    /// The analyses made with the schema that was returned last.
    pub(super) fn memo(&self) -> &Memo {
        &self.memo
    }

    /// OIDs of the protected types in the schema that was returned last.
    pub(super) fn protected(&self) -> Option<&Arc<Vec<(u32, ColumnType)>>> {
        let catalog = self.merged.as_ref().or(self.base.as_deref());
        catalog.map(Catalog::protected)
    }

    /// Whether statements may need the keeper that do not mention the extension.
    pub(super) fn needs_keeper(&self) -> bool {
        let catalog = self.merged.as_ref().or(self.base.as_deref());
        catalog.is_none_or(Catalog::needs_keeper)
    }

    fn rebase(&mut self, base: Arc<Catalog>) {
        // The meaning of a path depends on which schemas exist.
        let places = self.places.replace(base.places().clone());
        if places.is_some_and(|was| !Arc::ptr_eq(&was, base.places())) {
            self.path = None;
            self.paths.clear();
        }
        let changed = !self.own.is_empty() || !self.seen.is_empty();
        self.merged = changed.then(|| {
            let mut merged = (*base).clone();
            merged.apply(&self.seen);
            merged.apply(&self.own);
            merged
        });
        self.base = Some(base);
        self.schema = None;
    }

    /// Without changes or temporary objects of its own, a session shares both with others.
    fn make(&self) -> Option<(Arc<Schema>, Memo)> {
        let catalog = self.merged.as_ref().or(self.base.as_deref())?;
        let schemas = self.path.as_ref().map_or(&[][..], |path| &path.schemas);
        let temporary = self.path.as_ref().and_then(|path| path.temporary.clone());
        if self.merged.is_none() && temporary.is_none() {
            return Some(catalog.meaning(schemas));
        }
        let mut schema = catalog.schema().clone();
        schema.set_search_path(schemas.iter().cloned());
        schema.set_temp(temporary);
        Some((Arc::new(schema), catalog.memo()))
    }
}
