//! What is used of restore tickets and budgets, as redo records carry it to standbys' keepers and to those
//! that are restored (docs/durability.md): whoever takes a primary's place goes on from there.
//!
//! Each record has everything that is used. A keeper that hears it takes the larger of each two amounts. So
//! records may come again, and in any order, and one that was left out is made up for by the next.
//!
//! Not here: when something is used (`tickets`, `told`).
//!
//! Bytes: how many tickets `u32`; of each the number, when it expires `u64`, how often it was used `u32`; how
//! many budgets `u32`; of each the length of the principal `u32` and the principal, the column 16 bytes, the
//! budget's number `u64`, and an amount `u64` for each kind.
//!
//! Invariant: what decodes is what was encoded, with nothing left over.

use crate::limits::{Counts, KINDS};
use grant::NUMBER_BYTES;
use store::ColumnId;

/// Uses of a ticket.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OfTicket {
    /// The ticket's number.
    pub number: [u8; NUMBER_BYTES],
    /// When it expires.
    pub expires: u64,
    /// How often it was used.
    pub times: u32,
}

/// What is used of a budget.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OfBudget {
    /// Who has it.
    pub principal: String,
    /// Of which column.
    pub column: ColumnId,
    /// The change that set it.
    pub epoch: u64,
    /// How much counts as used.
    pub amounts: Counts,
}

/// The numbers of the last use of a ticket, and of a budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Point {
    /// Of a ticket.
    pub tickets: u64,
    /// Of a budget.
    pub budgets: u64,
}

impl Point {
    /// The later of each.
    pub fn max(self, other: Point) -> Point {
        Point {
            tickets: self.tickets.max(other.tickets),
            budgets: self.budgets.max(other.budgets),
        }
    }
}

/// What one record says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Used {
    /// Of tickets.
    pub tickets: Vec<OfTicket>,
    /// Of budgets.
    pub budgets: Vec<OfBudget>,
}

impl Used {
    /// The bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let length = |out: &mut Vec<u8>, n: usize| out.extend_from_slice(&(n as u32).to_le_bytes());
        length(&mut out, self.tickets.len());
        for one in &self.tickets {
            out.extend_from_slice(&one.number);
            out.extend_from_slice(&one.expires.to_le_bytes());
            out.extend_from_slice(&one.times.to_le_bytes());
        }
        length(&mut out, self.budgets.len());
        for one in &self.budgets {
            length(&mut out, one.principal.len());
            out.extend_from_slice(one.principal.as_bytes());
            out.extend_from_slice(&one.column);
            out.extend_from_slice(&one.epoch.to_le_bytes());
            for amount in one.amounts {
                out.extend_from_slice(&amount.to_le_bytes());
            }
        }
        out
    }

    /// The inverse.
    pub fn decode(mut bytes: &[u8]) -> Option<Used> {
        let from = &mut bytes;
        let mut used = Used::default();
        for _ in 0..small(from)? {
            used.tickets.push(OfTicket {
                number: array(from)?,
                expires: large(from)?,
                times: small(from)?,
            });
        }
        for _ in 0..small(from)? {
            let length = usize::try_from(small(from)?).ok()?;
            let principal = std::str::from_utf8(from.split_off(..length)?).ok()?;
            let (principal, column, epoch) = (principal.to_owned(), array(from)?, large(from)?);
            let mut amounts = [0; KINDS.len()];
            for amount in &mut amounts {
                *amount = large(from)?;
            }
            used.budgets.push(OfBudget {
                principal,
                column,
                epoch,
                amounts,
            });
        }
        bytes.is_empty().then_some(used)
    }
}

fn array<const N: usize>(from: &mut &[u8]) -> Option<[u8; N]> {
    from.split_off(..N)?.first_chunk().copied()
}

fn small(from: &mut &[u8]) -> Option<u32> {
    array(from).map(u32::from_le_bytes)
}

fn large(from: &mut &[u8]) -> Option<u64> {
    array(from).map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let used = Used {
            tickets: vec![OfTicket {
                number: [7; NUMBER_BYTES],
                expires: 9,
                times: 2,
            }],
            budgets: vec![OfBudget {
                principal: "ann".into(),
                column: [3; 16],
                epoch: 5,
                amounts: [1, 2, 3, 4, 5],
            }],
        };
        for used in [used, Used::default()] {
            let bytes = used.encode();
            assert_eq!(Used::decode(&bytes), Some(used));
            for length in 0..bytes.len() {
                assert_eq!(Used::decode(&bytes[..length]), None, "{length}");
            }
            assert_eq!(Used::decode(&[bytes.as_slice(), &[0]].concat()), None);
        }
    }
}
