//! Messages of the server: which entry of the queue they answer, and what the client sees of them.
use std::sync::atomic::Ordering;

use client::Failure;
use client::description;
use rewrite::PositionMap;

use super::explain::is_for_us;
use super::queue::{Expect, InternalState, ParseState, out_of_order};
use super::rows::{map_row, row_columns};
use super::{Core, Phase, Step, Stop};
use crate::dial::wrong_kind;
use crate::shared::Stats;
use crate::wire::{backend, frame};

/// The server's answer to CopyFail.
const COPY_FAILED: &[u8] = b"57014";

/// An error of the server, and what replaces it.
struct Told<'a> {
    fields: &'a [(u8, &'a [u8])],
    /// The proxy's own reason, which takes precedence over the server's.
    ours: Option<Failure>,
    context: Option<&'a str>,
    /// Positions refer to the text that was sent.
    mapped: bool,
}

impl Core {
    /// Processes one frame from the server.
    pub(super) fn on_server(&mut self, message: &mut [u8]) -> Step {
        let tag = message.first().copied().unwrap_or(0);
        match tag {
            // Notices and notifications may come at any time.
            b'N' if self.is_reviving() => {}
            b'N' => self.tell(&backend::fields(frame::body(message))?, b'N', None),
            b'A' => self.pass(message),
            b'S' => self.on_parameter(message)?,
            _ if self.phase == Phase::Startup => return self.on_startup(tag, message),
            b'E' => return self.on_error(message),
            b'Z' => return self.on_ready(message),
            _ => return self.on_answer(tag, message),
        }
        Ok(())
    }

    fn pass(&mut self, message: &[u8]) {
        self.to_client.extend_from_slice(message);
    }

    fn on_parameter(&mut self, message: &[u8]) -> Step {
        let body = frame::body(message);
        if let Some(rest) = body.strip_prefix(contract::report::SETTING.as_bytes())
            && let [0, value @ .., 0] = rest
        {
            let pin = || self.shared.pin_of(&self.database);
            let whole = self.view.report(value, &self.shared.databases, pin)?;
            Stats::add(&self.shared.stats.schema_loads, u64::from(whole));
            Stats::add(&self.shared.stats.schema_bytes, value.len() as u64);
            return Ok(());
        }
        let (name, value) = backend::parameter_status(body)?;
        if name == "client_encoding" {
            self.on_encoding(value)?;
        }
        if name == "standard_conforming_strings" {
            self.escapes = value == "off";
            self.escaped_once |= self.escapes;
        }
        self.kind.setting(name, value);
        self.view.setting(name, value);
        self.session.parameter_status(name, value);
        let start = self.phase == Phase::Startup;
        if !self.reported_anew(name, value) && self.settings.reported(name, value, start) {
            self.pass(message);
        }
        Ok(())
    }

    /// Before the first ReadyForQuery everything is relayed; that message is held until the session
    /// is prepared.
    fn on_startup(&mut self, tag: u8, message: &[u8]) -> Step {
        if self.is_reviving() {
            return self.on_revival(tag, message);
        }
        if tag == b'K' {
            self.key.sent(frame::body(message));
        }
        if tag == b'R' && self.authenticated {
            let failure = Failure::new("08P01", "confide: the server asks for a password again");
            return Err(Stop::Fatal(failure));
        }
        if tag != b'Z' {
            match (tag == b'R')
                .then(|| backend::without_binding(message))
                .flatten()
            {
                Some(message) => self.to_client.extend_from_slice(&message),
                None => self.pass(message),
            }
            return Ok(());
        }
        let target = self.shared.config.target_session_attrs;
        if !self.kind.is(target) {
            self.shared.upstream.skip(self.place);
            return Err(Stop::Fatal(wrong_kind(target)));
        }
        self.phase = Phase::Preparing;
        self.start(super::internal::Purpose::Startup)
    }

    fn on_ready(&mut self, message: &[u8]) -> Step {
        self.status = frame::body(message).first().copied().unwrap_or(b'I');
        self.escapes_stale = false;
        self.signed &= self.status != b'I';
        self.copy_in = None;
        self.copy_out = None;
        self.copy_refused = super::copy::Refused::Plain;
        self.override_error = None;
        if self.status == b'I' {
            self.portals.clear();
            self.cursors.end();
            self.view.transaction_over();
        }
        let entry = self.queue.pop_front();
        if self.queue.is_empty() {
            self.session.all_answered();
        }
        if std::mem::take(&mut self.litter) {
            self.sweep();
        }
        match entry {
            Some(Expect::Query(_) | Expect::Sync) if self.repeat() => Ok(()),
            Some(Expect::Query(state)) if state.refusal.is_some() => {
                Err(out_of_order(b'Z', Some(&Expect::Query(state))))
            }
            Some(entry @ (Expect::Query(_) | Expect::Sync)) => {
                if !self.is_unfinished(entry) {
                    self.pass(message);
                }
                Ok(())
            }
            Some(Expect::Internal(state)) if state.unawaited => Ok(()),
            Some(Expect::Internal(state)) => {
                let InternalState { rows, error, .. } = *state;
                self.advance(error.map_or(Ok(rows), Err))
            }
            entry => Err(out_of_order(b'Z', entry.as_ref())),
        }
    }

    /// Processes ErrorResponse.
    fn on_error(&mut self, message: &[u8]) -> Step {
        self.copy_in = None;
        self.copy_out = None;
        self.cursors.doubt();
        let fields = backend::fields(frame::body(message))?;
        let field = |tag: u8| fields.iter().find(|(t, _)| *t == tag).map(|(_, v)| *v);
        self.session.carried_in_vain();
        if self.repeats(&fields) {
            return Ok(());
        }
        let fatal = matches!(field(b'V'), Some(b"FATAL" | b"PANIC"));
        if fatal && self.is_reviving() {
            return Err(Stop::Fatal(server_failure(&fields)));
        }
        if self.ends(&fields, message) {
            return Ok(());
        }
        if !fatal && self.is_mute_error() {
            return Ok(());
        }
        // The server's errors about the rows before the refused one come first.
        let ours = self.override_error.take();
        let ours = ours.filter(|_| field(b'C') == Some(COPY_FAILED));
        let context = ours
            .as_ref()
            .and_then(|(_, line)| at_the_line(field(b'W')?, line));
        let ours = ours.map(|(failure, _)| failure);
        let explained = self.explain(&fields);
        let told = explained.as_ref().map(|e| e.fields(&fields));
        let fields = super::nearest::with_nearest_way(told.unwrap_or(fields));
        let told = Told {
            fields: &fields,
            ours,
            context: context.as_deref(),
            mapped: explained.is_none(),
        };
        if self.tell_of_front(told, fatal) && !fatal {
            self.drop_until_sync();
        }
        Ok(())
    }

    /// Reports an error to the client according to the first expected answer; returns whether what
    /// follows up to Sync is dropped.
    fn tell_of_front(&mut self, told: Told<'_>, fatal: bool) -> bool {
        let Told {
            fields,
            ours,
            context,
            mapped,
        } = told;
        match self.queue.front_mut() {
            Some(Expect::Internal(state)) if !fatal => {
                self.litter = true;
                state.error = Some(server_failure(fields));
                if state.sync {
                    return false;
                }
                // Within the client's pipeline: its transaction has failed.
                self.task = None;
                self.tell(fields, b'E', None);
            }
            Some(Expect::Query(state)) => {
                let ours = state.refusal.take().or(ours);
                let positions = state.positions.take().filter(|_| mapped);
                self.tell_or(ours, context, fields, positions.as_ref());
                return false;
            }
            Some(Expect::Refusal(failure)) => {
                let failure = (**failure).clone();
                self.tell_or(Some(failure), None, fields, None);
            }
            // With all messages so far answered, an error is about the next one: the server has
            // raised it while it waited, and skips what comes before Sync.
            front @ (Some(Expect::Sync) | None) => {
                let waited = front.is_none() && self.pipeline;
                self.tell(fields, b'E', None);
                return waited;
            }
            Some(entry) => {
                let positions = positions_of(entry).filter(|_| mapped);
                self.tell_or(ours, context, fields, positions.as_ref());
            }
        }
        true
    }

    /// The server skips everything up to Sync, so no answers to it are expected.
    pub(super) fn drop_until_sync(&mut self) {
        let sync = |entry: &Expect| matches!(entry, Expect::Sync);
        let behind = self.queue.iter().position(sync);
        self.discarding |= behind.is_none();
        let dropped = behind.unwrap_or(self.queue.len());
        let dropped: Vec<_> = self.queue.drain(..dropped).collect();
        // In reverse order: the previous statements of the names are restored.
        for entry in dropped.into_iter().rev() {
            match entry {
                Expect::Parse(state) => self.unprepare(*state),
                // The description never arrives: forget that it was requested.
                Expect::DescribeStatement {
                    statement: Some(statement),
                    ..
                } => {
                    statement.asked.store(false, Ordering::Relaxed);
                }
                Expect::Internal(_) => self.task = None,
                _ => {}
            }
        }
    }

    /// Parse has failed: restores the previous meaning of its name.
    fn unprepare(&mut self, failed: ParseState) {
        let name = failed.name;
        self.registry.remove(&name);
        let Some(previous) = failed.previous else {
            self.statements.remove(&name);
            return;
        };
        if !name.is_empty() {
            self.registry.insert(name.clone(), previous.info());
        }
        self.statements.insert(name, previous);
    }

    /// Reports an error to the client: ours, or otherwise the server's.
    fn tell_or(
        &mut self,
        ours: Option<Failure>,
        context: Option<&str>,
        fields: &[(u8, &[u8])],
        positions: Option<&PositionMap>,
    ) {
        match ours {
            Some(failure) => {
                backend::error_in(&mut self.to_client, "ERROR", &failure, context);
            }
            None => self.tell(fields, b'E', positions),
        }
    }

    /// Reports the server's error or notice to the client, with its position in the client's text
    /// and the values that it quotes opened (as in `Key (name)=(…) already exists`): those that the
    /// keeper has sealed for messages, and cells if the statement touches something protected.
    fn tell(&mut self, fields: &[(u8, &[u8])], tag: u8, positions: Option<&PositionMap>) {
        let cells = self.queue.front().is_some_and(Expect::touches);
        let mapped = |text: &[u8]| {
            let at = std::str::from_utf8(text).ok()?.parse::<usize>().ok()?;
            Some(positions?.original(at).to_string().into_bytes())
        };
        let told = |(field, text): &&(u8, &[u8])| !is_for_us(*field, text);
        let readable: Vec<(u8, Vec<u8>)> = fields
            .iter()
            .filter(told)
            .map(|(field, text)| {
                let mut shown = Vec::with_capacity(text.len());
                match field {
                    b'P' => shown = mapped(text).unwrap_or_else(|| text.to_vec()),
                    _ => self.session.open_quoted(text, cells, &mut shown),
                }
                // A field ends at its first zero byte; no text value contains one.
                shown.retain(|byte| *byte != 0);
                (*field, shown)
            })
            .collect();
        let fields: Vec<(u8, &[u8])> = readable.iter().map(|(f, t)| (*f, t.as_slice())).collect();
        backend::write_fields(&mut self.to_client, tag, &fields);
    }

    /// Processes an answer to the first entry of the queue.
    fn on_answer(&mut self, tag: u8, message: &mut [u8]) -> Step {
        if self.is_mute(tag) {
            return Ok(());
        }
        let charset = self.encoding.charset();
        let Some(front) = self.queue.front_mut() else {
            // A message that answers nothing, which the protocol may add in the future.
            self.pass(message);
            return Ok(());
        };
        match front {
            Expect::Internal(state) => {
                if tag == b'D' {
                    let row = backend::row(frame::body(message))?;
                    let text = |v: Option<&[u8]>| v.map(|v| Core::string_from_server(charset, v));
                    state.rows.push(row.into_iter().map(text).collect());
                }
                state.closes -= u8::from(tag == b'3' && state.closes > 0);
                if state.closes > 0 || state.sync {
                    return Ok(());
                }
                let rows = std::mem::take(&mut state.rows);
                self.queue.pop_front();
                self.advance(Ok(rows))
            }
            Expect::Query(_) => self.on_query_answer(tag, message),
            Expect::Execute { .. } => self.on_execute_answer(tag, message),
            Expect::Parse(state) if tag == b'1' => {
                let hidden = state.hidden;
                self.settle(message, hidden)
            }
            Expect::Bind(_) if tag == b'2' => self.settle(message, false),
            Expect::Close { hidden } if tag == b'3' => {
                let hidden = *hidden;
                self.settle(message, hidden)
            }
            Expect::DescribeStatement { .. } | Expect::DescribePortal { .. } => {
                self.on_description(tag, message)
            }
            entry => Err(out_of_order(tag, Some(entry))),
        }
    }

    /// The database returns protected values where plain ones are expected.
    fn unexpected(&mut self) -> Stop {
        self.shared.databases.doubt(self.view.identity());
        let what = "confide: a result is protected where the statement reads something plain";
        Stop::Fatal(
            Failure::new("55000", what)
                .detail("The proxy opens only what it knows to be protected; of a routine's cursor, what it reads in the body of the routine that was called.")
                .hint("If the schema was changed on purpose, connect again. Declare a cursor whose query is not written in the routine yourself."),
        )
    }

    /// The first entry has been answered.
    fn settle(&mut self, message: &[u8], hidden: bool) -> Step {
        self.queue.pop_front();
        if !hidden {
            self.pass(message);
        }
        Ok(())
    }

    fn on_description(&mut self, tag: u8, message: &mut [u8]) -> Step {
        let types = &self.session.types;
        let body = message.get_mut(frame::HEADER..).unwrap_or_default();
        let (hidden, last) = match (self.queue.front(), tag) {
            (Some(Expect::DescribeStatement { statement, hidden }), b't') => {
                let oids = description::parameters(body, types).map_err(Stop::Fatal)?;
                let hidden = *hidden;
                if let Some(statement) = statement.clone() {
                    // The client is told what it has declared.
                    for (at, declared) in statement.declared.iter().enumerate() {
                        if self
                            .session
                            .narrower(Some(*declared), statement.fit(at))
                            .is_some()
                        {
                            description::set_parameter(body, at, *declared);
                        }
                    }
                    self.learn(&statement, oids);
                }
                (hidden, false)
            }
            (Some(Expect::DescribeStatement { statement, hidden }), b'T' | b'n') => {
                if let Some(statement) = statement {
                    let columns = row_columns(tag, body, &self.session)?;
                    if !self.cursors.permit(Some(statement), &columns) {
                        return Err(self.unexpected());
                    }
                    let _ = statement
                        .fields
                        .set(columns.iter().map(|c| c.protected).collect());
                }
                (*hidden, true)
            }
            (Some(Expect::DescribePortal { portal, hidden }), b'T' | b'n') => {
                let columns = row_columns(tag, body, &self.session)?;
                if let Some(portal) = portal {
                    if !self.cursors.permit(portal.statement.as_deref(), &columns) {
                        return Err(self.unexpected());
                    }
                    let _ = portal.columns.set(columns);
                }
                (*hidden, true)
            }
            (entry, _) => return Err(out_of_order(tag, entry)),
        };
        if last {
            self.queue.pop_front();
        }
        if !hidden {
            self.pass(message);
        }
        Ok(())
    }

    fn on_query_answer(&mut self, tag: u8, message: &mut [u8]) -> Step {
        let charset = self.charset_of_values();
        let state = match self.queue.front_mut() {
            Some(Expect::Query(state)) if state.refusal.is_none() => state,
            entry => return Err(out_of_order(tag, entry.as_deref())),
        };
        match tag {
            b'T' => {
                let body = message.get_mut(frame::HEADER..).unwrap_or_default();
                let columns = row_columns(tag, body, &self.session)?;
                if !self.cursors.permit_rows(state.results.front(), &columns) {
                    return Err(self.unexpected());
                }
                state.columns = columns
                    .iter()
                    .any(|c| c.protected.is_some())
                    .then_some(columns);
            }
            b'D' => {
                if let Some(columns) = &state.columns {
                    let at = |n: usize| columns.get(n).copied();
                    let by = (&self.session, charset);
                    let opened = map_row(by, message, at, &mut self.to_client)?;
                    return self.opened(opened);
                }
            }
            b'C' => {
                state.columns = None;
                state.results.pop_front();
                state.copies.pop_front();
                let effect = state.effects.pop_front().flatten();
                if let Some(effect) = effect {
                    self.succeeded(effect);
                }
                if let Some(completion) = self.completion(message) {
                    self.pass(&completion);
                }
                return Ok(());
            }
            b'G' => {
                let plan = state.copies.front_mut().and_then(Option::take);
                self.begin_copy_in(plan, false)?;
            }
            b'H' => {
                let plan = state.copies.front_mut().and_then(Option::take);
                self.begin_copy_out(plan)?;
            }
            b'd' => return self.copy_output(message),
            b'c' => self.end_copy_out()?,
            _ => {}
        }
        self.pass(message);
        Ok(())
    }

    /// A row was opened, or not.
    fn opened(&mut self, opened: Result<u64, Failure>) -> Step {
        match opened {
            Ok(opened) => Stats::add(&self.shared.stats.opened, opened),
            Err(failure) => self.fails_late(failure)?,
        }
        Ok(())
    }

    fn on_execute_answer(&mut self, tag: u8, message: &mut [u8]) -> Step {
        let charset = self.charset_of_values();
        let Some(Expect::Execute { portal, copy }) = self.queue.front_mut() else {
            return Err(out_of_order(tag, None));
        };
        match tag {
            b'D' => {
                if let Some(portal) = portal
                    && portal.protected()
                {
                    let at = |n: usize| Some(portal.column(n));
                    let by = (&self.session, charset);
                    let opened = map_row(by, message, at, &mut self.to_client)?;
                    return self.opened(opened);
                }
            }
            b'C' | b'I' | b's' => {
                self.queue.pop_front();
            }
            b'G' => {
                let plan = copy.take().map(|plan| *plan);
                self.begin_copy_in(plan, true)?;
            }
            b'H' => {
                let plan = copy.take().map(|plan| *plan);
                self.begin_copy_out(plan)?;
            }
            b'd' => return self.copy_output(message),
            b'c' => self.end_copy_out()?,
            _ => return Err(out_of_order(tag, self.queue.front())),
        }
        self.pass(message);
        Ok(())
    }
}

/// Returns the line of a COPY that we refused: the server knows its number, we know its contents.
fn at_the_line(place: &[u8], line: &str) -> Option<String> {
    let place = std::str::from_utf8(place).ok()?;
    Some(format!("{place}{line}"))
}

fn server_failure(fields: &[(u8, &[u8])]) -> Failure {
    let text = |tag: u8| {
        fields
            .iter()
            .find(|(t, _)| *t == tag)
            .map(|(_, v)| String::from_utf8_lossy(v).into_owned())
    };
    let mut failure = Failure::new(
        &text(b'C').unwrap_or_else(|| "XX000".into()),
        text(b'M').unwrap_or_default(),
    );
    failure.detail = text(b'D');
    failure.hint = text(b'H');
    failure
}

/// The position mapping of the text that an answer is about.
fn positions_of(entry: &Expect) -> Option<PositionMap> {
    let statement = match entry {
        Expect::Parse(state) => state.statement.as_ref(),
        Expect::Bind(Some(portal)) => portal.statement.as_ref(),
        Expect::DescribeStatement { statement, .. } => statement.as_ref(),
        Expect::Execute {
            portal: Some(portal),
            ..
        } => portal.statement.as_ref(),
        _ => None,
    };
    statement?.positions.clone()
}
