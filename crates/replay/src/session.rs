//! What a session and its channels have at the moment: temporary values, programs, aggregations,
//! sets of rows that are ranked. The same for a session that was recorded and one that replays.

use crate::facts::{Facts, row};
use crate::program::{Cell, Program, Signatures, known};
use crate::term::{Maker, NULL, Quickly, Term};
use contract::Fid;
use contract::message::column::Column;
use contract::message::table::RankColumn;
use std::collections::HashMap;
use std::sync::Arc;

/// A session.
#[derive(Default)]
pub struct Session {
    /// Its number.
    pub id: u64,
    /// What temporary values were made of.
    pub values: Quickly<u64, Term>,
    /// Registered programs.
    pub programs: HashMap<u32, Arc<Program>>,
    /// Aggregations between two channels.
    pub handed: HashMap<u64, Aggregation>,
    /// States of aggregates that go row by row.
    pub states: HashMap<u64, (u64, Term)>,
}

/// What one channel has.
#[derive(Default)]
pub struct Channel {
    /// Aggregations, by handle.
    pub aggregations: HashMap<u32, Aggregation>,
    /// Sets of rows, by number.
    pub sets: HashMap<u32, Set>,
    /// Universes of tokens, by number.
    pub universes: HashMap<u64, u32>,
    /// LSN at which the last statement began that told it.
    pub position: u64,
    /// Pages of indexes that were sent, by number.
    pub pages: HashMap<u32, Page>,
}

/// A page of an index.
pub struct Page {
    /// How many keys it has.
    pub keys: usize,
    /// These, column by column.
    pub fids: Vec<Fid>,
}

/// An aggregation: what it is of, and the rows that went into it, in whatever order.
#[derive(Clone, Default)]
pub struct Aggregation {
    /// What was registered.
    pub registered: Term,
    /// How many aggregates it has.
    pub results: u64,
    /// Sum of the rows' terms.
    pub rows: Term,
    /// How often it was begun anew.
    pub pass: u64,
    /// How many answers were fetched.
    pub fetched: u64,
}

/// Rows that shall be ranked.
#[derive(Clone, Default)]
pub struct Set {
    /// The columns' types and flags.
    pub keys: Vec<RankColumn>,
    /// Of each row what its columns were made of.
    pub rows: Vec<Vec<Term>>,
    /// Of each row of a replay its first column, so that a refusal can name it.
    pub first: Vec<Fid>,
}

/// Everything at once.
pub struct World {
    /// What is known.
    pub facts: Facts,
    /// Sessions, by number.
    pub sessions: HashMap<u64, Session>,
    /// The catalog's signatures.
    pub signatures: Signatures,
}

impl World {
    /// What a value was made of.
    #[must_use]
    pub fn term(&self, session: u64, fid: Fid) -> Term {
        if fid == Fid::INVALID {
            return NULL;
        }
        if fid.is_temporary() {
            let known = self.sessions.get(&session);
            let known = known.and_then(|s| s.values.get(&fid.0));
            return known.copied().unwrap_or_else(|| {
                // Nothing is known of it, so nothing is known of what is made of it.
                let made = Maker::new("unknown").number(session).number(fid.0);
                made.computed()
            });
        }
        self.facts.stored.term(fid)
    }

    /// The session with this number.
    pub fn session(&mut self, id: u64) -> &mut Session {
        let session = self.sessions.entry(id).or_default();
        session.id = id;
        session
    }

    /// Says what a temporary value is made of.
    pub fn set(&mut self, session: u64, fid: u64, term: Term) {
        self.session(session).values.insert(fid, term);
    }

    /// Columns of a batch, row by row.
    pub fn rows<'a>(
        &mut self,
        session: u64,
        rows: usize,
        columns: impl Iterator<Item = Column<'a>>,
    ) -> Vec<Vec<Cell>> {
        let mut all = vec![Vec::new(); rows];
        for column in columns {
            if let Column::Values(list) = column {
                let list: Vec<Term> = list.iter().map(|fid| self.term(session, fid)).collect();
                all.iter_mut()
                    .for_each(|row| row.push(Cell::List(list.clone())));
                continue;
            }
            let terms = self.column(session, rows, column);
            for (row, term) in all.iter_mut().zip(terms) {
                row.push(Cell::One(term));
            }
        }
        all
    }

    fn column(&mut self, session: u64, rows: usize, column: Column<'_>) -> Vec<Term> {
        match column {
            Column::List(fids) | Column::Values(fids) => {
                fids.iter().map(|fid| self.term(session, fid)).collect()
            }
            Column::Runs(runs) => {
                let mut terms = Vec::with_capacity(rows);
                for run in runs.iter() {
                    for n in 0..u64::from(run.length).min(rows as u64) {
                        let fid = Fid(run.first.0 + n * u64::from(run.stride));
                        terms.push(self.term(session, fid));
                    }
                }
                terms
            }
            Column::Bools(bools) => bools.iter().map(|b| known(&mut self.facts, *b)).collect(),
            Column::Raw(values, nulls) => {
                let each = values.iter().zip(nulls);
                each.map(|(value, null)| match null {
                    0 => Maker::new("plain").number(value).solid(),
                    _ => NULL,
                })
                .collect()
            }
            Column::Cells(lengths, bytes) => {
                let mut rest = bytes;
                let each = lengths.iter().map(|length| {
                    let (cell, later) = rest.split_at_checked(length as usize)?;
                    rest = later;
                    (!cell.is_empty()).then(|| Maker::new("cell").bytes(cell).solid())
                });
                each.map(|term| term.unwrap_or(NULL)).collect()
            }
        }
    }

    /// What a program makes of a row.
    pub fn run(&mut self, program: &Program, row: &[Cell]) -> Option<(Term, contract::OpResult)> {
        program.run(&mut self.facts, &self.signatures, row)
    }
}

/// The term of a row of a batch.
#[must_use]
pub fn row_of(cells: &[Cell]) -> Term {
    row(cells.iter().map(|cell| match cell {
        Cell::One(term) => *term,
        Cell::List(list) => row(list.iter().copied()),
    }))
}
