//! Answers requests from what is known, or refuses them, naming what was asked.
//!
//! Invariant: what is declassified was recorded, or follows from what was; no envelope of a column's
//! value, or of what was computed of one, is given out but one that was recorded for it.

use crate::ask;
use crate::here::Here;
use crate::program::{Cell, Program};
use crate::session::row_of;
use crate::term::{NULL, Term};
use contract::codec::{Each, Fixed, List, Part};
use contract::envelope::{MAGIC, NONCE_BYTES, Origin};
use contract::message::column::{self, Column, ColumnHead, Columns};
use contract::message::search::{ABOVE, BELOW, BESIDE, DESCENDING};
use contract::message::table::{Nulls, Place, Revealed, Sealed, Sought};
use contract::{Fid, Kind, OpResult, TypeCode, answer, body};
use std::cmp::Ordering;

/// What was asked and is not known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused(pub String);

/// The body of an answer, or of an error that was recorded.
pub enum Answer {
    /// An answer.
    Body(Vec<u8>),
    /// An error.
    Error(Vec<u8>),
}

/// The body of an answer.
pub(crate) type Answered = Result<Vec<u8>, Refused>;

/// Partitions of relations that the recording does not know count down from here.
const NEW_PARTITIONS: u32 = contract::fid::ARENA_BASE - 1;
/// New permanent values get slots from here on, where the recorded cluster had none.
const NEW_SLOTS: u64 = 1 << 43;

pub(crate) fn refuse<T>(what: impl Into<String>) -> Result<T, Refused> {
    Err(Refused(what.into()))
}

fn read<'a, T: Part<'a>>(bytes: &'a [u8]) -> Result<T, Refused> {
    T::decode(bytes).map_err(|what| Refused(what.0.into()))
}

pub(crate) fn name(fid: Fid) -> String {
    match fid {
        Fid::INVALID => "NULL".into(),
        fid => format!("{:016x}", fid.0),
    }
}

impl Here<'_> {
    /// What an answered request is answered with.
    pub fn answer(&mut self, kind: Kind, message: &[u8]) -> Answered {
        match kind {
            Kind::Ping | Kind::Fence | Kind::Policy | Kind::RecoveryDone | Kind::Announce => {
                Ok(Vec::new())
            }
            // No value is adopted while something is recorded.
            Kind::Confirm => Ok(Vec::new()),
            Kind::CheckpointBegin | Kind::Checkpoint | Kind::Follow | Kind::GarbageList => {
                Ok(Vec::new())
            }
            Kind::PolicyLog => Ok(vec![0; 8]), // no record
            Kind::Declassify => self.ask_declassify(&read(message)?),
            Kind::DeclassifyBatch => self.ask_batch(&read(message)?),
            Kind::EvalBatch => self.ask_eval(&read(message)?),
            Kind::DeclassifyGroups => self.ask_groups(&read(message)?),
            Kind::Search => self.ask_search(message),
            Kind::SearchMany => self.ask_searches(&read(message)?),
            Kind::Descend => Ok(vec![0; 8]), // no pages: backends ask about each
            Kind::Rank => self.ask_rank(&read(message)?),
            Kind::Tokens => self.ask_tokens(&read(message)?),
            Kind::GetEnvelope => self.ask_envelope(&read(message)?),
            Kind::GetEnvelopes => self.ask_envelopes(&read(message)?),
            Kind::ProgramRegister => self.give_program(),
            Kind::Promote => self.give_places(&read(message)?),
            Kind::PromoteRuns => Ok(ask::encoded(&answer::PromoteRuns {
                promoted: 0,
                columns: 0,
                runs: Each::new(&[]),
                record: &[],
            })),
            Kind::PartitionOpen => self.give_partition(&read(message)?),
            Kind::Orderable => Ok(ask::encoded(&answer::Orderable { allowed: 1 })),
            Kind::Resolve => Ok(ask::encoded(&answer::Resolve { unresolved: 0 })),
            Kind::Stats => Ok(b"replayer 1\n".to_vec()),
            Kind::SoftState => Ok(ask::no_keys()),
            Kind::AggregateRegister => self.give_aggregation(),
            Kind::AggregateReturn => self.ask_returned(message),
            Kind::AggregateFetch => self.ask_groups_of(&read(message)?),
            Kind::AggregateHandOver => self.give_number(),
            Kind::RecoveryState => Ok(ask::encoded(&answer::RecoveryState {
                standing: contract::message::STANDING_SERVES,
                timeline: 0,
                checkpoint: 0,
                applied: 0,
                store: 0,
            })),
            other => refuse(format!("a replayer does not answer {other:?}")),
        }
    }

    fn known(&self, term: Term, result: OpResult, what: impl Fn() -> String) -> Answered {
        match self.world.facts.ask(term, result) {
            Some(bytes) => Ok(bytes),
            None => refuse(what()),
        }
    }

    fn ask_declassify(&mut self, body: &body::Declassify<'_>) -> Answered {
        let shape = (body.program, body.immediate, body.rows, body.columns);
        let Some(rows) = ask::results(self, shape, &body.fids) else {
            return refuse("a program that was not registered");
        };
        let mut out = Vec::new();
        for (n, (term, result)) in rows.into_iter().enumerate() {
            let what = || {
                let signature = self.world.signatures.get(body.program);
                let operation = signature.map_or("a program".into(), |s| s.symbol());
                let operand = |c| body.fids.get(c * body.rows as usize + n);
                let operands = (0..body.columns as usize).filter_map(operand);
                let operands: Vec<String> = operands.map(name).collect();
                format!("{operation} of {}", operands.join(", "))
            };
            out.extend(self.known(term, result, what)?);
        }
        Ok(out)
    }

    fn ask_batch(&mut self, body: &body::DeclassifyBatch<'_>) -> Answered {
        let Some(program) = ask::program(self, body.program) else {
            return refuse("a program that was not registered");
        };
        let rows = self
            .world
            .rows(self.session, body.rows as usize, body.batch.iter());
        let (mut results, mut good, mut hits, mut width) = (Vec::new(), 0, 0, 1);
        let mut error = None;
        for (n, row) in rows.iter().enumerate() {
            let bytes = match self.of_row(&program, row, n)? {
                Answer::Body(bytes) => bytes,
                Answer::Error(known) => {
                    error = Some(known);
                    break;
                }
            };
            width = bytes.len();
            good += 1;
            hits += u32::from(bytes == [1]);
            results.extend(bytes);
            if body.wanted > 0 && hits == body.wanted {
                break;
            }
        }
        let revealed = Revealed {
            good,
            width: width as u32,
            results: &results,
            error: None,
        };
        let mut out = ask::encoded(&revealed);
        out.extend(error.unwrap_or_default());
        Ok(out)
    }

    /// What a program gives for a row. A row of a batch that was recorded as it is needs one look.
    fn of_row(&mut self, program: &Program, row: &[Cell], n: usize) -> Result<Answer, Refused> {
        let asked = ask::row_asked(program, row);
        if let Some(truth) = self.world.facts.rows.get(&asked) {
            return Ok(Answer::Body(vec![*truth]));
        }
        let Some((term, result)) = self.world.run(program, row) else {
            return refuse("a program that a replayer does not understand");
        };
        if let Some(known) = self.world.facts.errors.get(&term) {
            return Ok(Answer::Error(known.clone()));
        }
        let id = program.id;
        let what = || format!("whether row {n} of a batch passes program {id:032x}");
        self.known(term, result, what).map(Answer::Body)
    }

    fn ask_eval(&mut self, body: &body::EvalBatch<'_>) -> Answered {
        if self.world.facts.has_failed_batches {
            let whole = ask::whole(self, Kind::EvalBatch, &ask::encoded(body));
            if let Some(answer) = whole.and_then(|asked| self.world.facts.answers.get(&asked)) {
                return Ok(answer.clone());
            }
        }
        let rows = self
            .world
            .rows(self.session, body.rows as usize, body.batch.iter());
        let mut out = ask::encoded(&answer::EvalBatch {
            good: body.rows,
            programs: body.programs,
            nulls: Each::new(&[]),
            error: None,
        });
        for target in body.targets.iter() {
            let Some(program) = ask::program(self, target.program) else {
                return refuse("a program that was not registered");
            };
            let mut nulls = Vec::with_capacity(rows.len());
            for (n, row) in rows.iter().enumerate() {
                let made = self.world.run(&program, row);
                let null = made.and_then(|(term, _)| self.world.facts.is_null(term));
                let Some(null) = null else {
                    return refuse(format!(
                        "whether the result of program {:032x} is NULL in row {n} of a batch",
                        program.id
                    ));
                };
                nulls.push(u8::from(null));
            }
            let count = nulls.iter().map(|null| u32::from(*null)).sum();
            let rows = if count == 0 { &[] } else { nulls.as_slice() };
            Nulls {
                count,
                length: rows.len() as u32,
                rows,
            }
            .put(&mut out);
        }
        Ok(out)
    }

    fn ask_groups(&mut self, body: &body::DeclassifyGroups<'_>) -> Answered {
        let whole = ask::whole(self, Kind::DeclassifyGroups, &ask::encoded(body));
        let known = whole.and_then(|asked| self.world.facts.answers.get(&asked));
        if let Some(answer) = known {
            return Ok(answer.clone());
        }
        let what = "which groups of rows pass, of other rows than were recorded";
        let Some(groups) = ask::groups(self, body) else {
            return refuse(what);
        };
        let (mut results, mut hits) = (Vec::new(), 0);
        for rows in &groups {
            let Some(one) = self.one_holds(rows) else {
                return refuse(what);
            };
            let passes = one != (body.none == 1);
            results.push(u8::from(passes));
            hits += u32::from(passes);
            if body.wanted > 0 && hits == body.wanted {
                break;
            }
        }
        Ok(ask::encoded(&revealed(results.len() as u32, 1, &results)))
    }

    /// Whether one of these is true.
    fn one_holds(&self, terms: &[Term]) -> Option<bool> {
        let facts = &self.world.facts;
        let known: Vec<Option<bool>> = terms.iter().map(|term| facts.holds(*term)).collect();
        match (known.contains(&Some(true)), known.contains(&None)) {
            (true, _) => Some(true),
            (false, true) => None,
            (false, false) => Some(false),
        }
    }

    fn ask_search(&mut self, message: &[u8]) -> Answered {
        let whole = ask::whole(self, Kind::Search, message);
        if let Some(answer) = whole.and_then(|asked| self.world.facts.answers.get(&asked)) {
            return Ok(answer.clone());
        }
        let body: body::Search<'_> = read(message)?;
        let count = body.keys as usize;
        let keys: Vec<Fid> = body.columns.iter().collect();
        let (mut column, mut found, mut within) = (0, 0..count, 0..count);
        let mut out = Vec::new();
        for (n, sought) in body.sought.iter().enumerate() {
            if sought.flags & BESIDE == 0 {
                column = if n == 0 { 0 } else { column + 1 };
                within = found;
            }
            let keys = keys.get(column * count..).unwrap_or_default();
            let less = self.bound(&sought, keys, within.clone(), Ordering::Less)?;
            let up_to = self.bound(&sought, keys, less..within.end, Ordering::Equal)?;
            found = less..up_to;
            Place {
                less: less as u32,
                up_to: up_to as u32,
            }
            .put(&mut out);
        }
        Ok(out)
    }

    fn ask_searches(&mut self, body: &body::SearchMany<'_>) -> Answered {
        let Some(searches) = ask::single(body) else {
            return refuse("searches that a replayer does not understand");
        };
        let mut out = Vec::new();
        for message in &searches {
            out.extend(self.ask_search(message)?);
        }
        Ok(out)
    }

    /// The first key in a range whose order to the value is above this one.
    fn bound(
        &self,
        sought: &Sought,
        keys: &[Fid],
        within: std::ops::Range<usize>,
        limit: Ordering,
    ) -> Result<usize, Refused> {
        let signature = self.world.signatures.get(sought.program);
        let domain = signature.map_or(0, |s| crate::facts::domain(&s.args));
        let value = self.term(sought.fid);
        let (mut low, mut high) = (within.start, within.end);
        while low < high {
            let middle = low + (high - low) / 2;
            let key = keys.get(middle).copied().unwrap_or(Fid::INVALID);
            let order = match key.0 {
                BELOW => -1,
                ABOVE => 1,
                _ => {
                    let order = self.world.facts.compare(domain, self.term(key), value);
                    let Some(order) = order else {
                        let (key, value) = (name(key), name(sought.fid));
                        return refuse(format!("the order of {key} and {value}"));
                    };
                    if sought.flags & DESCENDING == 0 {
                        order
                    } else {
                        -order
                    }
                }
            };
            match order.cmp(&0) <= limit {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        Ok(low)
    }

    fn ask_tokens(&mut self, body: &body::Tokens<'_>) -> Answered {
        let rows = self
            .world
            .rows(self.session, body.rows as usize, body.batch.iter());
        let terms: Vec<Term> = rows.iter().map(|cells| row_of(cells)).collect();
        let facts = &self.world.facts;
        let known = self.channel.universes.get(&body.number).copied();
        let Some(universe) = known.or_else(|| facts.universe(&terms)) else {
            return match terms.is_empty() {
                true => Ok(ask::encoded(&revealed(0, 16, &[]))),
                false => refuse("which rows of a join or of groups are equal"),
            };
        };
        let token = |row: &Term| facts.token(*row, universe);
        let tokens: Option<Vec<[u8; 16]>> = terms.iter().map(token).collect();
        let Some(tokens) = tokens else {
            return refuse("which rows of a join or of groups are equal");
        };
        if !terms.is_empty() {
            self.channel.universes.insert(body.number, universe);
        }
        Ok(ask::encoded(&revealed(body.rows, 16, &tokens.concat())))
    }

    fn ask_envelope(&mut self, body: &body::GetEnvelope) -> Answered {
        let term = self.term(body.fid);
        let facts = &self.world.facts;
        match facts.envelopes.get(&term) {
            Some(envelope) => Ok(envelope.clone()),
            None if term == NULL => Ok(Vec::new()),
            None if facts.constants.contains(&term) => Ok(placeholder(body.t, term)),
            None => refuse(format!("the envelope of {}", name(body.fid))),
        }
    }

    fn ask_envelopes(&mut self, body: &body::GetEnvelopes<'_>) -> Answered {
        let mut out = Vec::new();
        for wanted in body.wanted.iter() {
            let known = self.world.facts.envelopes.get(&self.term(wanted.fid));
            match known {
                Some(envelope) if !envelope.is_empty() => Sealed {
                    length: envelope.len() as u32,
                    envelope,
                }
                .put(&mut out),
                // The backend asks for it alone, and is told.
                _ => break,
            }
        }
        Ok(out)
    }

    fn give_program(&mut self) -> Answered {
        let session = self.world.session(self.session);
        let first = contract::message::program::FIRST_HANDLE;
        let mut handles = first..u32::MAX;
        let free = handles.find(|handle| !session.programs.contains_key(handle));
        let program = free.unwrap_or(first);
        Ok(ask::encoded(&answer::ProgramRegister { program }))
    }

    fn give_places(&mut self, body: &body::Promote<'_>) -> Answered {
        let facts = &self.world.facts;
        let mut fids = Vec::new();
        let mut next = facts.stored.count() + NEW_SLOTS;
        for moved in body.moves.iter() {
            while facts.stored.has(Fid::new(moved.partition, next)) {
                next += 1;
            }
            Fid::new(moved.partition, next).put(&mut fids);
            next += 1;
        }
        Ok(ask::encoded(&answer::Promote {
            count: body.count,
            length: 0,
            period: 0,
            fids: List::new(&fids),
            record: &[],
            envelopes: Each::new(&[]),
        }))
    }

    fn give_partition(&mut self, body: &body::PartitionOpen<'_>) -> Answered {
        let partitions = &self.world.facts.partitions;
        let known = partitions.get(&(body.database, body.relation, body.attribute));
        let partition = known.copied().unwrap_or_else(|| {
            let taken = |number: u32| partitions.values().any(|known| *known == number);
            let mut free = (1..NEW_PARTITIONS).rev();
            free.find(|number| !taken(*number))
                .unwrap_or(NEW_PARTITIONS)
        });
        Ok(ask::encoded(&answer::PartitionOpen {
            partition,
            record: &[],
        }))
    }

    fn give_aggregation(&mut self) -> Answered {
        let last = self.channel.aggregations.keys().max();
        let handle = last.map_or(1, |last| last.wrapping_add(1));
        Ok(ask::encoded(&answer::AggregateRegister { handle }))
    }

    fn give_number(&mut self) -> Answered {
        let session = self.world.session(self.session);
        let number = session.handed.keys().max().map_or(1, |last| last + 1);
        Ok(ask::encoded(&answer::AggregateHandOver { number }))
    }

    /// Rows are given back as they were; where the rows are others, there is room for all.
    fn ask_returned(&mut self, message: &[u8]) -> Answered {
        let whole = ask::whole(self, Kind::AggregateReturn, message);
        if let Some(answer) = whole.and_then(|asked| self.world.facts.answers.get(&asked)) {
            let returned: answer::AggregateReturn<'_> = read(answer)?;
            if returned.rows == 0 {
                return Ok(answer.clone());
            }
            return refuse("rows that an aggregation had no room for");
        }
        Ok(ask::encoded(&answer::AggregateReturn {
            allowance: 1 << 20,
            rows: 0,
            more: 0,
            columns: Columns::NONE,
        }))
    }

    fn ask_groups_of(&mut self, body: &body::AggregateFetch<'_>) -> Answered {
        let asked = ask::fetching(self, body);
        let known = asked.and_then(|asked| self.world.facts.fetched.get(&asked).cloned());
        let Some(fetched) = known else {
            return refuse("the groups of an aggregation of other rows than were recorded");
        };
        let answer: answer::AggregateFetch<'_> = read(&fetched.answer)?;
        let mut out = ask::encoded(&answer::AggregateFetch {
            columns: Columns::NONE,
            ..answer
        });
        for column in answer.columns.iter() {
            let Column::List(values) = column else {
                column.put(&mut out);
                continue;
            };
            let (form, count) = (column::LIST, values.len() as u32);
            ColumnHead { form, count }.put(&mut out);
            for value in values.iter() {
                let moved = match ask::is_result(Fid(fetched.first), value) {
                    true => Fid(value.0 - fetched.first + body.first.0),
                    false => value,
                };
                moved.put(&mut out);
            }
        }
        Ok(out)
    }
}

/// Stands in for the envelope of a constant that was computed, as EXPLAIN shows it: no value of a
/// column went into it, and nobody can open it.
fn placeholder(t: TypeCode, term: Term) -> Vec<u8> {
    let mut out = vec![MAGIC, Origin::Keeper as u8, t as u8, 0];
    out.extend([0; NONCE_BYTES]);
    out.extend(term.to_le_bytes());
    out
}

fn revealed(good: u32, width: u32, results: &[u8]) -> Revealed<'_> {
    Revealed {
        good,
        width,
        results,
        error: None,
    }
}
