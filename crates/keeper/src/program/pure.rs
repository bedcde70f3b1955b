//! Names all that the answer of a program about cells depends on, so that the same question is
//! answered from a cache (docs/families.md, "Caches").
//!
//! Permissions are not part of it: they are checked for every request, before.
//!
//! Invariants: two requests have the same name only if the program, the bytes of all cells, the values
//! of all constants, the settings of the session and the keys of columns are the same; a program
//! that could read the clock has none.

use super::Program;
use super::encoded::{Encoded, Fids, words};
use super::eval::Tools;
use crate::cells;
use crate::witness;
use aws_lc_rs::digest::{Context, SHA256};
use contract::message::program as code;
use contract::{Fid, OpResult, TypeCode};

/// Of a request.
pub type Name = [u8; 32];

/// A request to declassify.
pub struct Request<'a> {
    /// What is evaluated.
    pub program: &'a Program,
    /// About what.
    pub columns: &'a [Encoded<'a>],
    /// Number of rows.
    pub rows: usize,
    /// The number of true booleans after which the answer ends; 0: none.
    pub wanted: usize,
}

/// Whether an operation may find out what time it is: it reads a date or time.
fn reads_clock(args: &[TypeCode], ret: Option<TypeCode>) -> bool {
    use TypeCode::*;
    let timed = [Date, Time, Timestamp, Timestamptz, Interval];
    let counted = [Bool, Int2, Int4, Int8, Float4, Float8, Numeric];
    let known = |t: &TypeCode| timed.contains(t) || counted.contains(t);
    ret.is_some_and(|t| timed.contains(&t)) && !args.iter().all(known)
}

struct Digest(Context);

impl Digest {
    /// Each part with its length, so that no two sequences of parts have the same bytes.
    fn part(&mut self, bytes: &[u8]) {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    fn value(&mut self, tools: Tools<'_>, fid: Fid) -> Option<()> {
        match tools.space.value(fid, None).ok()? {
            None => self.part(&[]),
            Some(value) => {
                self.part(&[value.type_code() as u8]);
                self.part(&values::encode_binary(&value));
            }
        }
        Some(())
    }

    fn program(&mut self, tools: Tools<'_>, program: &Program) -> Option<()> {
        self.part(&(program.code.len() as u64).to_le_bytes());
        for step in &program.code {
            if step.code == code::CALL {
                let operation = tools.space.table.operation(u32::from(step.operand))?;
                if reads_clock(&operation.args, operation.ret) {
                    return None;
                }
            }
            self.0.update(&[step.code]);
            self.0.update(&step.operand.to_le_bytes());
            self.0.update(&step.immediate.to_le_bytes());
        }
        for t in &program.inputs {
            self.part(&[t.map_or(0, |t| t as u8)]);
        }
        for (fid, _) in &program.constants {
            self.value(tools, *fid)?;
        }
        Some(())
    }

    fn column(&mut self, tools: Tools<'_>, column: &Encoded<'_>, rows: usize) -> Option<usize> {
        match column {
            Encoded::Cells(cells) => {
                self.part(b"cells");
                for cell in cells {
                    // A loose cell is a value on its way, and no key of this keeper seals others.
                    if !cell.is_empty() && !cells::is_sealed(cell) {
                        return None;
                    }
                    self.part(cell);
                }
                return Some(cells.len());
            }
            Encoded::Bools(bytes) => {
                self.part(b"booleans");
                self.part(bytes);
            }
            Encoded::Raw(values, nulls) => {
                self.part(b"plain");
                self.part(values);
                self.part(nulls);
            }
            // A constant, or the elements of a list, but not a column of identifiers.
            Encoded::Values(_) | Encoded::List(..) | Encoded::Runs(_) => {
                self.part(b"values");
                let fids = match column {
                    Encoded::Values(bytes) => words(bytes).collect(),
                    Encoded::Runs(_) => match column.fids((0, rows)).ok()? {
                        Fids::Same(fid) => vec![fid],
                        Fids::Each(_) => return None,
                    },
                    _ => return None,
                };
                self.part(&(fids.len() as u64).to_le_bytes());
                for fid in fids.iter().filter(|fid| **fid != Fid::INVALID) {
                    if !fid.is_temporary() {
                        return None;
                    }
                    self.value(tools, *fid)?;
                }
                self.part(&(fids.contains(&Fid::INVALID) as u64).to_le_bytes());
            }
        }
        Some(0)
    }
}

impl Request<'_> {
    /// The name of the request; none if its answer must be computed.
    pub fn name(&self, tools: Tools<'_>) -> Option<Name> {
        if witness::on() || self.program.result == OpResult::Fid {
            return None;
        }
        let mut digest = Digest(Context::new(&SHA256));
        digest.part(tools.env.without_clock().as_bytes());
        digest.part(&tools.space.cells.era().to_le_bytes());
        digest.part(&(self.rows as u64).to_le_bytes());
        digest.part(&(self.wanted as u64).to_le_bytes());
        digest.program(tools, self.program)?;
        let mut found = 0;
        for column in self.columns {
            found += digest.column(tools, column, self.rows)?;
        }
        let digest = digest.0.finish();
        digest.as_ref().first_chunk().copied().filter(|_| found > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signatures::Table;
    use contract::Op;

    /// Whatever makes a date or time of a text may read "now" or "today"; comparisons and arithmetic do
    /// not. The bug this guards against: yesterday's answer about "today".
    #[test]
    fn clock() {
        let table = Table::new();
        let mut found = [0, 0];
        for number in 0..u32::from(u16::MAX) {
            let Some(operation) = table.operation(number) else {
                continue;
            };
            let reads = reads_clock(&operation.args, operation.ret);
            let from_text = operation.args.contains(&TypeCode::Text);
            match (operation.op, operation.ret) {
                (Op::Cast, Some(TypeCode::Date | TypeCode::Timestamptz)) if from_text => {
                    assert!(reads);
                    found[0] += 1;
                }
                (Op::Lt | Op::Add | Op::Like | Op::Sub, _) => {
                    assert!(!reads, "{operation:?}");
                    found[1] += 1;
                }
                _ => {}
            }
        }
        assert!(found[0] > 0 && found[1] > 50, "{found:?}");
    }
}
