//! The simple protocol, and function calls.
use std::collections::VecDeque;

use bytes::Bytes;
use client::Failure;

use super::analysis::Outcome;
use super::explain;
use super::internal::Purpose;
use super::queue::{Expect, Literals, QueryState, Rows};
use super::statement::Effect;
use super::{Core, Flow, Step};
use crate::shared::Stats;
use crate::wire::{Reader, frame, frontend};

/// OIDs of PostgreSQL's own large object functions, which libpq calls by message.
const LARGE_OBJECTS: [u32; 16] = [
    715, 764, 765, 767, 952, 953, 954, 955, 956, 957, 958, 964, 1004, 3170, 3171, 3172,
];

impl Core {
    pub(super) fn on_query(&mut self, message: &Bytes) -> Step<Flow> {
        let mut reader = Reader::new(frame::body(message), "Query");
        if !self.enabled {
            if self.look_again()? == Flow::Wait {
                return Ok(Flow::Wait);
            }
            if !self.enabled {
                Stats::add(&self.shared.stats.statements, 1);
                self.to_server.extend_from_slice(message);
                self.pipeline = false;
                self.queue.push_back(Expect::Query(Box::default()));
                return Ok(Flow::Done);
            }
        }
        let Ok(sql) = reader.str() else {
            return Ok(self.refuse_query(not_utf8()));
        };
        self.sealing.clear();
        let mut text = match self.analyse(sql, false)? {
            Outcome::Wait => return Ok(Flow::Wait),
            Outcome::Refuse(failure) => return Ok(self.refuse_query(failure)),
            Outcome::Recode(recoding) => return Ok(self.recode(*recoding)),
            Outcome::Send(text) => text,
        };
        let end = self.enclose(&text.statements);
        self.sign_text(&mut text);
        Stats::add(&self.shared.stats.statements, 1);
        text.statements.iter().for_each(|s| self.sent(s, sql));
        if text.changed {
            frontend::query(&mut self.to_server, &text.sql);
        } else {
            self.to_server.extend_from_slice(message);
        }
        self.pipeline = false;
        let literals = text.sealed.then(|| {
            let of = |s: &mut rewrite::Statement| Literals {
                range: s.range.clone(),
                edits: std::mem::take(&mut s.edits),
            };
            (
                explain::kept(message),
                text.statements.iter_mut().map(of).collect(),
            )
        });
        self.queue.push_back(Expect::Query(Box::new(QueryState {
            positions: text.positions,
            literals,
            effects: text.statements.iter().map(Effect::of).collect(),
            results: text.statements.iter().map(Rows::of).collect(),
            copies: with_client(text.statements),
            touches: text.touches,
            end,
            ..QueryState::default()
        })));
        Ok(Flow::Done)
    }

    /// For a session of a database without Confide: checks whether the database now has it.
    pub(super) fn look_again(&mut self) -> Step<Flow> {
        let state = self.adopt();
        let behind = self.view.behind(&state);
        if behind && !self.tried.refresh && self.status != b'E' {
            self.tried.refresh = true;
            self.start(Purpose::Ask)?;
            return Ok(Flow::Wait);
        }
        Ok(Flow::Done)
    }

    /// Large objects contain nothing protected, so their functions are allowed.
    pub(super) fn on_function_call(&mut self, message: &Bytes) -> Step<Flow> {
        let function = Reader::new(frame::body(message), "FunctionCall").u32()?;
        if !self.enabled || LARGE_OBJECTS.contains(&function) {
            self.to_server.extend_from_slice(message);
            self.pipeline = false;
            self.queue.push_back(Expect::Query(Box::default()));
            return Ok(Flow::Done);
        }
        Ok(self.refuse_query(
            Failure::new("0A000", "confide: function call messages are not supported")
                .hint("Call the function with SELECT."),
        ))
    }
}

/// For each statement its COPY from or to the client, if it is one.
fn with_client(statements: Vec<rewrite::Statement>) -> VecDeque<Option<rewrite::CopyPlan>> {
    let client = |c: &rewrite::CopyPlan| c.endpoint == rewrite::Endpoint::Client;
    statements
        .into_iter()
        .map(|s| s.copy.filter(client))
        .collect()
}

pub(super) fn not_utf8() -> Failure {
    Failure::new("22021", "confide: statement is not valid UTF-8")
        .hint("SET client_encoding TO 'UTF8'.")
}
