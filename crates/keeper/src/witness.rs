//! Calls of operators as they are made, for a client who has asked for a log of them
//! (docs/maintenance.md).
//!
//! A thread serves one channel. Between [`begin`] and [`end`] of a request `program::vector` tells
//! each call before it is made, and what came of it afterwards: so a call that does not come back
//! is in the log, too. An operand is told with the column that it is from.
//!
//! Not here: who may have a log of calls (`dispatch/recorded.rs`).
//!
//! Invariants: nothing is told but between [`begin`] and [`end`]; an operand counts as a constant
//! only if nothing but constants of the client went into it.

use crate::provenance::CLIENT;
use crate::signatures::Operation;
use crate::space::Space;
use crate::tape::Tape;
use calls::{Call, Operand, Outcome};
use contract::Fid;
use std::cell::RefCell;
use std::sync::Arc;
use store::{ColumnId, Label};
use values::{Error, Value};

/// What a column of a batch was read from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// Nothing that is known.
    Nothing,
    /// A column's partition.
    Stored(ColumnId),
    /// Temporary values that were made of this.
    Made(Label),
}

impl Source {
    /// What stands for both: a column if there is one; a constant only if both are.
    pub fn with(self, other: Source) -> Source {
        match (self, other) {
            (Source::Stored(_), _) => self,
            (_, Source::Stored(_)) => other,
            (Source::Made(a), Source::Made(b)) => Source::Made(a.max(b)),
            (Source::Made(CLIENT), _) | (_, Source::Made(CLIENT)) => Source::Nothing,
            (Source::Made(_), _) => self,
            _ => other,
        }
    }
}

/// The name of what an operand is from; none: a constant of the client.
pub type Namer = Box<dyn Fn(Source) -> Option<String>>;

struct Witness {
    tape: Arc<Tape>,
    name: Namer,
}

thread_local! {
    static WITNESS: RefCell<Option<Witness>> = const { RefCell::new(None) };
}

/// A request begins whose calls go to a tape.
pub fn begin(tape: Arc<Tape>, name: Namer) {
    WITNESS.set(Some(Witness { tape, name }));
}

/// The request ends.
pub fn end() {
    WITNESS.set(None);
}

/// Whether calls are told.
#[inline]
pub fn on() -> bool {
    WITNESS.with_borrow(Option::is_some)
}

/// What values under FIDs were read from, all of them.
#[cold]
pub fn source(space: &Space, fids: &[Fid]) -> Source {
    let one = |fid: &Fid| match fid.is_temporary() {
        false => space
            .store
            .get(fid.partition())
            .and_then(|partition| partition.column())
            .map_or(Source::Nothing, |(id, _)| Source::Stored(id)),
        true => {
            let label = space.with_arena(fid.partition(), |arena| arena.read().label(fid.slot()));
            let label = label.ok().flatten();
            label.map_or(Source::Nothing, Source::Made)
        }
    };
    let mut found = None;
    for fid in fids.iter().filter(|fid| **fid != Fid::INVALID) {
        let source = one(fid);
        if *found.get_or_insert(source) != source {
            return Source::Nothing;
        }
    }
    found.unwrap_or(Source::Nothing)
}

/// Tells a call that is about to be made, and, when it has been, what came of it.
pub fn watch<R>(
    operation: &Operation,
    immediate: i32,
    operands: &[(&Value, Source)],
    call: impl FnOnce() -> Result<R, Error>,
    outcome: impl FnOnce(&R) -> Outcome,
) -> Result<R, Error> {
    WITNESS.with_borrow(|witness| {
        if let Some(Witness { tape, name }) = witness {
            let operand = |(value, source): &(&Value, Source)| Operand {
                column: name(*source),
                value: (*value).clone(),
            };
            let call = Call {
                op: operation.op,
                ret: operation.ret,
                immediate,
                outcome: Outcome::Unknown,
                operands: operands.iter().map(operand).collect(),
            };
            tape.tell(recording::CALL, call.to_string().as_bytes());
        }
    });
    let came = call();
    let outcome = match &came {
        Ok(made) => outcome(made),
        Err(error) if error.is_null() => Outcome::Null,
        Err(error) => Outcome::Error(error.sqlstate_str().into()),
    };
    WITNESS.with_borrow(|witness| {
        if let Some(Witness { tape, .. }) = witness {
            tape.tell(recording::CAME, outcome.to_string().as_bytes());
        }
    });
    came
}
