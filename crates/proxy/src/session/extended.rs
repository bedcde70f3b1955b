//! The extended protocol: Parse, Bind, Describe, Execute, Close.
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use client::{Failure, Protected};
use contract::TypeCode;
use contract::soft::{Purpose, factor_rank};
use rewrite::{ParamUse, PreparedInfo, StatementKind};

use super::analysis::{Outcome, Text};
use super::explain;
use super::queue::{Expect, InternalState, ParseState};
use super::statement::{Effect, Portal, Statement};
use super::{Core, Flow, Step, Wait};
use crate::shared::Stats;
use crate::wire::{Reader, frame, frontend};

/// Number of texts whose parameter types are remembered, and the maximum length of such a text.
const KNOWN_MAX: usize = 512;
const KNOWN_TEXT_MAX: usize = 8 * 1024;

impl Core {
    pub(super) fn on_parse(&mut self, message: &Bytes) -> Step<Flow> {
        let body = frame::body(message);
        if !self.enabled {
            let mut reader = Reader::new(body, "Parse");
            let name = String::from_utf8_lossy(reader.cstr()?).into_owned();
            if self.look_again()? == Flow::Wait {
                return Ok(Flow::Wait);
            }
            if !self.enabled {
                self.forward(
                    message,
                    Expect::Parse(Box::new(ParseState {
                        name,
                        statement: None,
                        previous: None,
                        hidden: false,
                    })),
                );
                return Ok(Flow::Done);
            }
        }
        let Ok(parse) = frontend::Parse::read(body) else {
            return Ok(self.refuse_extended(super::simple::not_utf8()));
        };
        let (name, sql, declared) = (parse.name, parse.sql, parse.types);
        self.send_parse((name, sql, &declared), &[], false)
    }

    /// Analyses a text and sends Parse. `sealing` lists parameters to seal regardless of what they
    /// are combined with. `hidden` says that the client does not know about this Parse.
    fn send_parse(
        &mut self,
        (name, sql, declared): (&str, &str, &[u32]),
        sealing: &[u32],
        hidden: bool,
    ) -> Step<Flow> {
        self.sealing = sealing.to_vec();
        let mut text = match self.analyse(sql, true)? {
            Outcome::Wait => return Ok(Flow::Wait),
            Outcome::Refuse(failure) => return Ok(self.refuse_extended(failure)),
            Outcome::Recode(_) => return Ok(self.refuse_extended(super::recode::alone())),
            Outcome::Send(text) => text,
        };
        let statement = Statement {
            sealing: sealing.to_vec(),
            ..self.prepared(name, sql, declared, &text)
        };
        let types = match self.twins(declared, &statement) {
            Ok(types) => types,
            Err(failure) => return Ok(self.refuse_extended(failure)),
        };
        // Only now, when it is certain that the new one replaces it, or what a first attempt has made.
        if (hidden || self.again.is_second()) && !name.is_empty() {
            frontend::targeted(&mut self.to_server, b'C', b'S', name);
            self.queue.push_back(Expect::Close { hidden: true });
        }
        self.sign_text(&mut text);
        frontend::parse(&mut self.to_server, name, &text.sql, &types);
        self.pipeline = true;
        let statement = Arc::new(statement);
        let previous = self.statements.insert(name.to_owned(), statement.clone());
        if !name.is_empty() {
            self.registry.insert(name, statement.info());
        }
        self.queue.push_back(Expect::Parse(Box::new(ParseState {
            name: name.to_owned(),
            statement: Some(statement.clone()),
            previous,
            hidden,
        })));
        if statement.touches {
            // If the types are known, Bind need not wait; the answer still provides the result
            // columns.
            let key = (sql.to_owned(), declared.to_vec());
            let known = self.known_types.get(&key);
            if let Some(types) = known.filter(|_| sealing.is_empty()) {
                let _ = statement.params.set(types.clone());
            }
            self.ask_statement(&statement);
        }
        Ok(Flow::Done)
    }

    /// The server has reported the parameter types of a statement.
    pub(super) fn learn(&mut self, statement: &Statement, types: Vec<u32>) {
        let Some(sql) = statement
            .sql
            .as_ref()
            .filter(|_| statement.sealing.is_empty())
        else {
            let _ = statement.params.set(types);
            return;
        };
        let key = (sql.clone(), statement.declared.clone());
        if statement.params.get().is_some_and(|known| *known != types) {
            // The schema has changed without our knowledge.
            self.known_types.clear();
            return;
        }
        let _ = statement.params.set(types.clone());
        if self.known_types.len() >= KNOWN_MAX {
            self.known_types.clear();
        }
        if sql.len() <= KNOWN_TEXT_MAX {
            self.known_types.insert(key, types);
        }
    }

    fn prepared(&self, name: &str, sql: &str, declared: &[u32], text: &Text) -> Statement {
        let analysed = text.statements.first().cloned();
        let opaque = analysed.as_ref().is_some_and(|s| {
            matches!(
                s.kind,
                StatementKind::Fetch { .. } | StatementKind::Execute { .. } | StatementKind::Call
            )
        });
        // Grants are known to one session only, like envelopes.
        let keeper = text.touches && !self.shared.config.software;
        Statement {
            name: name.to_owned(),
            sql: Some(sql.to_owned()),
            declared: declared.to_vec(),
            link: self.link,
            sealed_in: (text.sealed || keeper).then(|| self.session.generation()),
            uses: text
                .statements
                .iter()
                .flat_map(|s| s.params.iter().map(|(n, u)| (*n, *u)))
                .collect(),
            touches: text.touches,
            late: analysed.as_ref().map(|s| s.late).unwrap_or_default(),
            opaque,
            positions: text.positions.clone(),
            analysed,
            ..Statement::default()
        }
    }

    /// Returns the declared types for the server: protected counterparts for parameters combined
    /// with something protected.
    fn twins(&self, declared: &[u32], statement: &Statement) -> Result<Vec<u32>, Failure> {
        let types = &self.session.types;
        let twin = |(at, oid): (usize, &u32)| {
            let used = statement.uses.get(&(at as u32 + 1));
            let protected = matches!(
                used,
                Some(ParamUse::Protected { .. } | ParamUse::ProtectedArray { .. })
            );
            // The statement contains a cast for it.
            if matches!(used, Some(ParamUse::Soft { .. })) {
                return Ok(0);
            }
            // 705 is `unknown`, which is equivalent to undeclared.
            if !protected || *oid == 0 || *oid == 705 || types.get(*oid).is_some() {
                return Ok(*oid);
            }
            let fit = statement.fit(at);
            let narrower = self.session.narrower(Some(*oid), fit).and(fit);
            let oid = narrower.map_or(*oid, |fit| fit.code.plain_oid());
            types.twin(oid).ok_or_else(|| {
                Failure::new(
                    "42804",
                    format!("confide: parameter ${} meets a protected column and is declared with a type that has no protected twin", at + 1),
                )
                .hint("Leave the type of the parameter undeclared.")
            })
        };
        declared.iter().enumerate().map(twin).collect()
    }

    /// Asks the server for the parameter types and result columns of the statement.
    fn ask_statement(&mut self, statement: &Arc<Statement>) {
        if statement.ask() {
            return;
        }
        frontend::targeted(&mut self.to_server, b'D', b'S', &statement.name);
        self.pipeline = true;
        self.queue.push_back(Expect::DescribeStatement {
            statement: Some(statement.clone()),
            hidden: true,
        });
    }

    pub(super) fn on_bind(&mut self, message: &Bytes) -> Step<Flow> {
        if !self.enabled {
            self.forward(message, Expect::Bind(None));
            return Ok(Flow::Done);
        }
        let bind = frontend::Bind::read(frame::body(message))?;
        let statement = self.statement(bind.statement);
        let lost = statement.touches
            && statement
                .sealed_in
                .is_some_and(|g| g != self.session.generation() || !self.session.is_open());
        if lost || statement.link != self.link {
            return self.prepare_again(&statement, &statement.sealing);
        }
        let portal = Portal {
            statement: Some(statement.clone()),
            results: bind.results.clone(),
            ..Portal::default()
        };
        if !statement.touches || bind.values.is_empty() {
            return Ok(self.bind_plain(message, &bind, portal));
        }
        let Some(oids) = statement.params.get() else {
            self.ask_statement(&statement);
            frontend::bare(&mut self.to_server, b'H');
            return Ok(self.wait_for(Wait::Params(statement)));
        };
        let types = &self.session.types;
        let protected = |at: usize| oids.get(at).and_then(|oid| types.get(*oid));
        let values = match self.values_from_client(&bind, protected) {
            Ok(values) => values,
            Err(failure) => return Ok(self.refuse_extended(failure)),
        };
        let seen: Vec<Option<&[u8]>> = values.iter().map(Option::as_deref).collect();
        let sealed = match self.seal_parameters((&bind, &seen), oids, &statement) {
            Ok(sealed) => sealed,
            Err(failure) => return Ok(self.refuse_extended(failure)),
        };
        let echoes = self.echoes(&seen, &sealed, oids, &statement);
        if !echoes.is_empty() {
            let all = [statement.sealing.as_slice(), &echoes].concat();
            return self.prepare_again(&statement, &all);
        }
        Ok(self.bind_sealed(message, &bind, &sealed, portal))
    }

    /// Makes sure that the process that executes a statement which was prepared earlier serves this client.
    fn sign(&mut self) {
        if self.signed || !self.pooled() {
            return;
        }
        let text = ["SELECT", self.signature(false)].concat();
        let out = &mut self.to_server;
        frontend::parse(out, super::internal::NAME, &text, &[]);
        frontend::targeted(out, b'C', b'S', super::internal::NAME);
        self.queue
            .push_back(Expect::Internal(Box::new(InternalState {
                closes: 1,
                unawaited: true,
                ..InternalState::default()
            })));
        self.signed = true;
    }

    fn bind_sealed(
        &mut self,
        message: &Bytes,
        bind: &frontend::Bind<'_>,
        sealed: &[Option<Vec<u8>>],
        mut portal: Portal,
    ) -> Flow {
        let plain = bind.values.iter().zip(sealed);
        let plain = plain.filter_map(|(given, sealed)| given.filter(|_| sealed.is_none()));
        if let Some(failure) = self.sql_in_values(plain) {
            return self.refuse_extended(failure);
        }
        let values: Vec<Option<&[u8]>> = bind
            .values
            .iter()
            .zip(sealed)
            .map(|(given, sealed)| sealed.as_deref().or(*given))
            .collect();
        self.sign();
        frontend::bind(
            &mut self.to_server,
            bind.portal,
            bind.statement,
            &bind.formats,
            &values,
            &bind.results,
        );
        self.pipeline = true;
        portal.bind = sealed
            .iter()
            .any(Option::is_some)
            .then(|| explain::kept(message));
        let portal = Arc::new(portal);
        self.queue.push_back(Expect::Bind(Some(portal.clone())));
        self.portals.insert(bind.portal.to_owned(), portal);
        Flow::Done
    }

    fn bind_plain(&mut self, message: &Bytes, bind: &frontend::Bind<'_>, portal: Portal) -> Flow {
        if let Some(failure) = self.sql_in_values(bind.values.iter().copied().flatten()) {
            return self.refuse_extended(failure);
        }
        let portal = Arc::new(portal);
        self.sign();
        self.forward(message, Expect::Bind(Some(portal.clone())));
        self.portals.insert(bind.portal.to_owned(), portal);
        Flow::Done
    }

    /// Values that are sent in the clear must not be SQL that is parsed later and contains
    /// constants that would be sealed.
    fn sql_in_values<'v>(&self, values: impl Iterator<Item = &'v [u8]>) -> Option<Failure> {
        let schema = self.schema.as_ref();
        let charset = self.encoding.charset();
        let hides = |value: &'v [u8]| {
            let text = charset.and_then(|charset| charset.decode(value).ok());
            let text = std::str::from_utf8(text.as_deref().unwrap_or(value));
            text.is_ok_and(|text| rewrite::hides_secrets(text, schema))
        };
        let mut values = values;
        values
            .any(hides)
            .then(|| {
                Failure::new(
                    "0A000",
                    "confide: a parameter holds SQL that names something protected, with constants in it",
                )
                .hint("Send the statement itself, or pass the values as arguments of protected types.")
            })
    }

    /// Returns what is known about a statement. The server is asked about a statement whose
    /// preparation was not seen (SQL PREPARE, or before the database had Confide).
    fn statement(&mut self, name: &str) -> Arc<Statement> {
        if let Some(known) = self.statements.get(name) {
            return known.clone();
        }
        // What a routine has prepared, say, has no results that are expected to be protected.
        let info = self.registry.get(name).cloned();
        let info = info.unwrap_or_else(|| PreparedInfo {
            results: Some(Vec::new()),
            ..PreparedInfo::default()
        });
        let statement = Arc::new(Statement {
            name: name.to_owned(),
            prepared: info.results,
            late: info.late,
            uses: info.params,
            touches: true,
            link: self.link,
            ..Statement::default()
        });
        self.statements.insert(name.to_owned(), statement.clone());
        statement
    }

    /// Returns the envelopes for the parameters that need them.
    fn seal_parameters(
        &self,
        (bind, values): (&frontend::Bind<'_>, &[Option<&[u8]>]),
        oids: &[u32],
        statement: &Statement,
    ) -> Result<Vec<Option<Vec<u8>>>, Failure> {
        let mut sealed = Vec::with_capacity(values.len());
        for (at, value) in values.iter().enumerate() {
            let target = oids.get(at).and_then(|oid| self.session.types.get(*oid));
            let used = statement.uses.get(&(at as u32 + 1));
            let agrees = match used {
                // An array is allowed if it is only tested for NULL.
                Some(ParamUse::Protected { .. }) => {
                    matches!(target, Some(Protected::Scalar(_) | Protected::Array(_)))
                }
                Some(ParamUse::Soft {
                    column,
                    purpose: Purpose::Each,
                    ..
                }) => matches!(target, Some(Protected::SoftArray(code)) if code == column.code),
                Some(ParamUse::Soft { column, .. }) => {
                    matches!(target, Some(Protected::Soft(code, _)) if code == column.code)
                }
                Some(ParamUse::ProtectedArray { .. }) => {
                    matches!(target, Some(Protected::Array(_)))
                }
                _ => true,
            };
            if !agrees {
                return Err(Failure::new(
                    "42P18",
                    format!(
                        "confide: the server disagrees about the type of parameter ${}",
                        at + 1
                    ),
                )
                .detail("It meets a protected column, and the server takes it for plain.")
                .hint("Write a cast to the column's type."));
            }
            let (Some(target), Some(value)) = (target, value) else {
                sealed.push(None);
                continue;
            };
            let mut out = Vec::new();
            let declared = statement.declared.get(at).copied();
            let format = bind.format(at);
            if let Some(used @ ParamUse::Soft { .. }) = used {
                self.encode_parameter(*used, declared, (format, value), &mut out)?;
                sealed.push(Some(out));
                continue;
            }
            let goes = (target, statement.fit(at), declared);
            self.session.seal_assigned(goes, format, value, &mut out)?;
            Stats::add(&self.shared.stats.sealed, 1);
            sealed.push(Some(out));
        }
        Ok(sealed)
    }

    /// Appends the cell for a parameter, of the type declared by the client or specified by a cast.
    fn encode_parameter(
        &self,
        used: ParamUse,
        declared: Option<u32>,
        given: (i16, &[u8]),
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let ParamUse::Soft {
            column,
            purpose,
            said,
        } = used
        else {
            return Ok(());
        };
        let plain = |oid: u32| match purpose {
            Purpose::Each => client::element_of(oid),
            _ => TypeCode::ALL.iter().copied().find(|t| t.plain_oid() == oid),
        };
        let code = match declared {
            // Undeclared or unknown.
            None | Some(0 | 705) => said.unwrap_or(column.code),
            Some(oid) => match plain(oid) {
                // Strings sent by drivers that know no other type.
                Some(TypeCode::Text | TypeCode::Varchar) if given.0 == client::TEXT => {
                    said.unwrap_or(column.code)
                }
                Some(code) => code,
                None => return Err(Failure::new(
                    "42804",
                    "confide: a parameter meets a column of the family soft_ and is declared with another type",
                )
                .hint("Leave the type of the parameter undeclared.")),
            },
        };
        // The server takes it for the column's type, and PostgreSQL's product would have a wider one.
        if purpose == Purpose::Multiply
            && said.is_none()
            && factor_rank(code) > factor_rank(column.code)
        {
            let (name, other) = (column.code.plain_name(), code.plain_name());
            return Err(Failure::new(
                "0A000",
                format!("confide: a parameter of type {other} is multiplied with a column of type {name}"),
            )
            .hint(format!("Write its type behind it: ::{other}.")));
        }
        Stats::add(&self.shared.stats.sealed, 1);
        self.session.encode(column, (purpose, code), given, out)
    }

    /// Prepares the statement again because its envelopes belong to a session that no longer
    /// exists, because the session continues on another connection, or because more of its parameters must be sealed.
    fn prepare_again(&mut self, statement: &Arc<Statement>, sealing: &[u32]) -> Step<Flow> {
        let Some(sql) = statement.sql.clone() else {
            return Ok(self.refuse_extended(Failure::no_session()));
        };
        let (name, declared) = (statement.name.clone(), statement.declared.clone());
        match self.send_parse((&name, &sql, &declared), sealing, true)? {
            // Refused: the client's Bind is dropped with the rest.
            Flow::Done if self.discarding => Ok(Flow::Done),
            _ => Ok(Flow::Wait),
        }
    }

    pub(super) fn on_describe(&mut self, message: &Bytes) -> Step<Flow> {
        let (kind, name) = frontend::target(frame::body(message))?;
        let expect = if kind == b'S' {
            let known = self.enabled.then(|| self.statement(name));
            if let Some(known) = known.as_ref().filter(|s| s.link != self.link) {
                return self.prepare_again(known, &known.sealing);
            }
            if let Some(known) = &known {
                known.ask();
            }
            Expect::DescribeStatement {
                statement: known,
                hidden: false,
            }
        } else {
            let portal = self.portals.get(name).cloned();
            if let Some(portal) = &portal {
                portal.asked.store(true, Ordering::Relaxed);
            }
            Expect::DescribePortal {
                portal,
                hidden: false,
            }
        };
        self.forward(message, expect);
        Ok(Flow::Done)
    }

    pub(super) fn on_execute(&mut self, message: &Bytes) -> Step<Flow> {
        Stats::add(&self.shared.stats.statements, 1);
        let name = frontend::execute_portal(frame::body(message))?;
        let mut portal = self.portals.get(name).cloned();
        if self.enabled {
            let known = portal.get_or_insert_with(Arc::default).clone();
            let statement = known.statement.as_ref();
            let ask = statement
                .is_none_or(|s| s.opaque || (s.touches && !s.asked.load(Ordering::Relaxed)));
            if ask && !known.asked.swap(true, Ordering::Relaxed) {
                frontend::targeted(&mut self.to_server, b'D', b'P', name);
                self.queue.push_back(Expect::DescribePortal {
                    portal: portal.clone(),
                    hidden: true,
                });
            }
            if let Some(analysed) = statement.and_then(|s| s.analysed.as_ref()) {
                let sql = statement.and_then(|s| s.sql.as_deref());
                self.sent(analysed, sql.unwrap_or_default());
                if let Some(effect) = Effect::of(analysed) {
                    self.succeeded(effect);
                }
            }
        }
        let statement = portal.as_ref().and_then(|p| p.statement.as_ref());
        let copy = statement.and_then(|s| s.copy()).map(Box::new);
        let executed = portal.clone();
        self.forward(message, Expect::Execute { portal, copy });
        self.executes(executed.as_ref().and_then(|p| p.statement.as_deref()));
        Ok(Flow::Done)
    }

    pub(super) fn on_close(&mut self, message: &Bytes) -> Step<Flow> {
        let (kind, name) = frontend::target(frame::body(message))?;
        if kind == b'S' {
            self.statements.remove(name);
            self.registry.remove(name);
        } else {
            self.portals.remove(name);
        }
        self.forward(message, Expect::Close { hidden: false });
        Ok(Flow::Done)
    }

    /// Forwards a message unchanged.
    fn forward(&mut self, message: &Bytes, expect: Expect) {
        self.to_server.extend_from_slice(message);
        self.pipeline = true;
        self.queue.push_back(expect);
    }
}
