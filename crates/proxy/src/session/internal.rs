//! Queries of the proxy's own on the application's connection: which types are
//! protected, the handshake with the keeper, the schema.
//!
//! They use the extended protocol under a name of their own, so that the client's
//! unnamed statement survives; within a client's pipeline they end with Flush,
//! because a Sync would commit.
use std::sync::Arc;
use std::time::Instant;

use client::{Failure, Handshake, Offer, TypeMap};
use rewrite::{Row, SCHEMA_QUERIES, Schema};

use super::queue::{Expect, InternalState};
use super::{Core, Phase, Step, Stop, Wait};
use crate::shared::{Snapshot, Stats};
use crate::wire::{backend, frontend};

/// Name of the proxy's statement and portal.
const NAME: &str = "confide_internal";

/// Why a task runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    /// The session begins.
    Startup,
    /// The database may have got Confide.
    Enable,
    /// The schema may have changed.
    Refresh,
    /// There is no session with the keeper.
    Handshake,
}

/// A task: a few queries, one after another.
pub(super) struct Task {
    purpose: Purpose,
    at: At,
    generation: u64,
    cached: Option<Snapshot>,
    types: Arc<TypeMap>,
    results: Vec<Vec<Row>>,
}

/// Which answer a task waits for.
enum At {
    Begin,
    Types,
    First(Box<Handshake>),
    Second(Box<Offer>),
    Schema,
}

impl Core {
    /// Starts a task; the client's frame waits for it, and tries again when the
    /// connection is not ready for one.
    pub(super) fn start(&mut self, purpose: Purpose) -> Step {
        if !self.pipeline && !self.queue.is_empty() {
            self.tried = super::Tried::default();
            self.wait = Wait::Drain;
            return Ok(());
        }
        self.wait = Wait::Task;
        self.recheck = false;
        let generation = self.shared.generation(&self.key.0);
        let own_changes = self.changed_schema;
        // What we found unknown or stale ourselves is not in the shared copy.
        let may_share = !own_changes && (!self.stale || self.schema.is_none());
        let cached = may_share
            .then(|| self.shared.snapshot(&self.key, generation))
            .flatten();
        self.task = Some(Task {
            purpose,
            at: At::Begin,
            generation,
            cached,
            types: Arc::default(),
            results: Vec::new(),
        });
        self.advance(Ok(Vec::new()))
    }

    /// The answer to the task's query has come.
    pub(super) fn advance(&mut self, answer: Result<Vec<Row>, Failure>) -> Step {
        let Some(mut task) = self.task.take() else {
            return Ok(());
        };
        match self.next_query(&mut task, answer) {
            Ok(Some(sql)) => {
                self.task = Some(task);
                self.ask(&sql);
                Ok(())
            }
            Ok(None) => self.finished(task, None),
            Err(Stop::Fatal(failure)) if task.purpose != Purpose::Startup => {
                self.finished(task, Some(failure))
            }
            Err(stop) => Err(stop),
        }
    }

    /// The next query of a task, from the answer to the last.
    fn next_query(
        &mut self,
        task: &mut Task,
        answer: Result<Vec<Row>, Failure>,
    ) -> Step<Option<String>> {
        match std::mem::replace(&mut task.at, At::Begin) {
            At::Begin if task.purpose == Purpose::Handshake => self.first_message(task).map(Some),
            At::Begin => match &task.cached {
                Some(cached) => {
                    task.types = cached.types.clone();
                    self.after_types(task)
                }
                None => {
                    task.at = At::Types;
                    Ok(Some(TypeMap::QUERY.to_owned()))
                }
            },
            At::Types => {
                let rows = answer.map_err(Stop::Fatal)?;
                task.types = Arc::new(TypeMap::from_rows(&rows).map_err(Stop::Fatal)?);
                self.after_types(task)
            }
            At::First(handshake) => match answer {
                Err(failure) => self.no_keeper(task, failure),
                Ok(rows) => self.second_message(task, *handshake, &rows).map(Some),
            },
            At::Second(offer) => match answer {
                Err(failure) => self.no_keeper(task, failure),
                Ok(_) => {
                    tracing::debug!(
                        session = offer.keeper.evidence.session,
                        "session with the keeper"
                    );
                    Stats::add(&self.shared.stats.handshakes, 1);
                    self.session.begin(*offer);
                    Ok(self.after_handshake(task))
                }
            },
            At::Schema => {
                task.results.push(answer.map_err(Stop::Fatal)?);
                Ok(self.next_schema_query(task))
            }
        }
    }

    fn after_types(&mut self, task: &mut Task) -> Step<Option<String>> {
        self.session.types = (*task.types).clone();
        self.enabled = !task.types.is_empty();
        if !self.enabled {
            return Ok(None);
        }
        let greet = matches!(task.purpose, Purpose::Startup | Purpose::Enable);
        if greet && !self.session.is_open() {
            return self.first_message(task).map(Some);
        }
        Ok(self.next_schema_query(task))
    }

    fn first_message(&mut self, task: &mut Task) -> Step<String> {
        let handshake = Handshake::new(&self.shared.secret).map_err(Stop::Fatal)?;
        let sql = handshake.first_sql();
        task.at = At::First(Box::new(handshake));
        Ok(sql)
    }

    fn second_message(
        &mut self,
        task: &mut Task,
        handshake: Handshake,
        rows: &[Row],
    ) -> Step<String> {
        let field = match rows {
            [row] => row.first().and_then(Option::as_deref),
            _ => None,
        };
        let field = field.ok_or(Stop::Fatal(Failure::protocol("handshake")))?;
        let offer = handshake.offer(field).map_err(Stop::Fatal)?;
        if !self.shared.trusts(&offer.keeper.key) {
            tracing::error!(
                found = %offer.keeper.key,
                pinned = self.shared.pinned(),
                "the keeper is not the one that is trusted"
            );
            return Err(Stop::Fatal(
                Failure::new("28000", "confide: the keeper is not the one that is trusted")
                    .detail("It shows another public key than the proxy's configuration or than it did before.")
                    .hint("If the keeper's key was changed on purpose, set keeper_key and restart the proxy."),
            ));
        }
        let sql = offer.sql();
        task.at = At::Second(Box::new(offer));
        Ok(sql)
    }

    /// The keeper does not answer. A session may begin without it: what touches
    /// nothing protected works.
    fn no_keeper(&mut self, task: &mut Task, failure: Failure) -> Step<Option<String>> {
        tracing::warn!(sqlstate = %failure.sqlstate, "no session with the keeper");
        if task.purpose == Purpose::Startup {
            backend::notice(
                &mut self.to_client,
                "01000",
                "confide: no session with the keeper yet; protected columns are not available",
            );
            return Ok(self.after_handshake(task));
        }
        Err(Stop::Fatal(failure))
    }

    fn after_handshake(&mut self, task: &mut Task) -> Option<String> {
        match task.purpose {
            Purpose::Handshake => None,
            _ => self.next_schema_query(task),
        }
    }

    fn next_schema_query(&mut self, task: &mut Task) -> Option<String> {
        let at = task.results.len();
        let known = if task.cached.is_some() {
            1
        } else {
            SCHEMA_QUERIES.len()
        };
        if at >= known {
            return None;
        }
        task.at = At::Schema;
        SCHEMA_QUERIES.get(at).map(|sql| (*sql).to_owned())
    }

    /// All answers have come, or one has failed.
    fn finished(&mut self, task: Task, failure: Option<Failure>) -> Step {
        let purpose = task.purpose;
        match failure {
            Some(failure) => self.tried.failure = Some(failure),
            None if purpose == Purpose::Handshake => {}
            None if self.enabled => self.adopt(task)?,
            None if self.shared.config.require_confide => {
                return Err(Stop::Fatal(
                    Failure::new("55000", "confide: the database does not have Confide")
                        .hint("Unset require_confide to reach it through the proxy."),
                ));
            }
            None if self.shared.pins.of(&self.key.0).is_some() => {
                return Err(Stop::Fatal(
                    Failure::new("55000", "confide: the database does not have Confide")
                        .detail("Columns of it are pinned.")
                        .hint("Take its columns out of pin_file to reach it through the proxy."),
                ));
            }
            None => {
                self.generation = task.generation;
                self.stale = true;
            }
        }
        if self.phase == Phase::Preparing {
            self.release();
        }
        Ok(())
    }

    /// Takes over the schema of a task.
    fn adopt(&mut self, task: Task) -> Step {
        let mut results = task.results.into_iter();
        let settings = results.next().unwrap_or_default();
        let mut snapshot = match task.cached {
            Some(cached) => cached,
            None => {
                Stats::add(&self.shared.stats.schema_loads, 1);
                Snapshot {
                    generation: task.generation,
                    loaded: Instant::now(),
                    types: task.types,
                    rows: Arc::new(results.collect()),
                    built: Vec::new(),
                }
            }
        };
        let built = snapshot.built.iter().find(|(rows, _)| *rows == settings);
        let schema = match built {
            Some((_, schema)) => schema.clone(),
            None => {
                let mut rows = vec![settings.clone()];
                rows.extend(snapshot.rows.iter().cloned());
                let mut schema = Schema::from_rows(&rows).map_err(|e| {
                    Stop::Fatal(Failure::new("XX000", format!("confide: schema: {e}")))
                })?;
                schema.set_pin(self.shared.pins.of(&self.key.0));
                let schema = Arc::new(schema);
                // Few search paths are in use; do not keep them all.
                if snapshot.built.len() >= 8 {
                    snapshot.built.remove(0);
                }
                snapshot.built.push((settings, schema.clone()));
                schema
            }
        };
        if !self.changed_schema {
            self.shared.store(self.key.clone(), snapshot);
        }
        self.schema = Some(schema);
        self.known_types.clear();
        self.generation = task.generation;
        self.stale = false;
        self.path_stale = false;
        Ok(())
    }

    /// Sends a query of the proxy's.
    fn ask(&mut self, sql: &str) {
        let sync = !self.pipeline;
        let out = &mut self.to_server;
        frontend::targeted(out, b'C', b'P', NAME);
        frontend::targeted(out, b'C', b'S', NAME);
        frontend::parse(out, NAME, sql, &[]);
        frontend::bind(out, NAME, NAME, &[], &[], &[]);
        frontend::execute(out, NAME);
        frontend::bare(out, if sync { b'S' } else { b'H' });
        self.queue
            .push_back(Expect::Internal(Box::new(InternalState {
                sync,
                ..InternalState::default()
            })));
    }
}
