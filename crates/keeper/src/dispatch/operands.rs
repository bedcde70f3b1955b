//! What operands were computed from: labels of slots and of columns, run by run.
//!
//! Not here: whether a grant covers it (`authorise`).
//!
//! Invariant: no operand is left out. FIDs are looked at together only where they are known to be
//! of one partition.

use super::Connection;
use crate::fail::Failure;
use crate::program::encoded::Encoded;
use crate::program::load::Named;
use crate::provenance::{self, UNKNOWN};
use contract::Fid;
use store::{Label, Window};

/// Operands up to this number are looked at one by one.
const FEW: usize = 2;
/// Maximum number of different labels of one run that are united one by one.
const DISTINCT_MAX: usize = 64;

/// Operands, as far as they matter for grants.
#[derive(Clone, Copy, Default)]
pub(super) struct Operands {
    /// What they were computed from.
    pub label: Label,
    /// They are stored values of one column.
    pub one_column: bool,
}

impl Operands {
    /// No operands.
    pub(super) const NONE: Operands = Operands {
        label: provenance::EMPTY,
        one_column: true,
    };
    /// Of a session in which nothing is labelled.
    const UNBOUND: Operands = Operands {
        label: 0,
        one_column: false,
    };
}

/// What is known of operands, run by run.
struct Gathered {
    operands: Operands,
    /// Where the last ones are.
    partition: Option<u32>,
}

impl Gathered {
    const NONE: Gathered = Gathered {
        operands: Operands::NONE,
        partition: None,
    };

    /// Further operands are of this partition. Returns false if they are NULL.
    #[inline]
    fn meets(&mut self, partition: u32) -> bool {
        if partition == 0 {
            return false;
        }
        let stored = !Fid::new(partition, 0).is_temporary();
        self.operands.one_column &= stored && self.partition.is_none_or(|p| p == partition);
        self.partition = Some(partition);
        true
    }
}

impl Connection {
    /// Returns what the operands were computed from.
    pub(super) fn operands(&self, fids: &[Fid]) -> Result<Operands, Failure> {
        if !self.is_bound() {
            return Ok(Operands::UNBOUND);
        }
        // Most often there are one or two.
        if fids.len() <= FEW {
            return self.operands_of_row(fids);
        }
        let mut all = Gathered::NONE;
        self.gather_named(&mut all, Named::new(fids))?;
        Ok(all.operands)
    }

    /// Like [`Self::operands`], of a session in which values are labelled.
    #[inline]
    pub(super) fn operands_of_row(&self, fids: &[Fid]) -> Result<Operands, Failure> {
        let first = fids.first().map_or(0, |fid| fid.partition());
        let same = |fid: &Fid| fid.partition() == first && !fid.is_temporary();
        if first != 0 && fids.iter().all(same) {
            return Ok(Operands {
                label: self.label_of_column(first)?,
                one_column: true,
            });
        }
        let mut all = Gathered::NONE;
        for fid in fids {
            if all.meets(fid.partition()) {
                let label = self.label_of_one(*fid)?;
                all.operands.label = self.union(all.operands.label, label)?;
            }
        }
        Ok(all.operands)
    }

    /// Like [`Self::operands`], for the columns of a batch.
    pub(super) fn operands_of_columns(&self, columns: &[Named<'_>]) -> Result<Operands, Failure> {
        if !self.is_bound() {
            return Ok(Operands::UNBOUND);
        }
        let mut all = Gathered::NONE;
        let mut each = columns.iter();
        each.try_for_each(|column| self.gather_named(&mut all, *column))?;
        Ok(all.operands)
    }

    fn gather_named(&self, all: &mut Gathered, mut fids: Named<'_>) -> Result<(), Failure> {
        while let Some((partition, run)) = fids.take_run() {
            self.gather_run(all, partition, run.iter().map(|fid| fid.slot()))?;
        }
        Ok(())
    }

    fn gather_run(
        &self,
        all: &mut Gathered,
        partition: u32,
        slots: impl Iterator<Item = u64>,
    ) -> Result<(), Failure> {
        if all.meets(partition) {
            let label = self.label_of_run(partition, slots)?;
            all.operands.label = self.union(all.operands.label, label)?;
        }
        Ok(())
    }

    /// Returns what the previous operands together with these were computed from.
    pub(super) fn more_operands(
        &self,
        before: Operands,
        fids: Named<'_>,
    ) -> Result<Operands, Failure> {
        let now = self.operands_of_columns(&[fids])?;
        let label = self.union(before.label, now.label)?;
        let one = before.label == provenance::EMPTY || before.label == label;
        Ok(Operands {
            label,
            one_column: before.one_column && now.one_column && one,
        })
    }

    /// Returns what one operand was computed from.
    #[inline]
    pub(super) fn label_of_one(&self, fid: Fid) -> Result<Label, Failure> {
        if !fid.is_temporary() {
            return self.label_of_column(fid.partition());
        }
        let label = |arena: &store::Arena| arena.read().label(fid.slot());
        let label = self.space.with_arena(fid.partition(), label)?;
        Ok(label.unwrap_or(UNKNOWN))
    }

    pub(super) fn label_of_run(
        &self,
        partition: u32,
        slots: impl Iterator<Item = u64>,
    ) -> Result<Label, Failure> {
        if !Fid::new(partition, 0).is_temporary() {
            return self.label_of_column(partition);
        }
        let distinct = self
            .space
            .with_arena(partition, |arena| distinct(&arena.read(), slots))?;
        distinct
            .into_iter()
            .try_fold(provenance::EMPTY, |all, label| self.union(all, label))
    }

    /// Returns what the rows of a batch's column were computed from.
    pub(super) fn column_operands(&self, column: &Encoded<'_>) -> Result<Operands, Failure> {
        if !self.is_bound() {
            return Ok(Operands::NONE);
        }
        if let Encoded::Cells(cells) = column {
            return Ok(Operands {
                label: self.label_of_each(cells.iter().copied())?,
                one_column: false,
            });
        }
        let mut all = Gathered::NONE;
        column.each_run(|partition, slots| self.gather_run(&mut all, partition, slots.iter()))?;
        Ok(all.operands)
    }
}

/// The labels of slots; if there are too many, they are treated as unknown.
fn distinct(window: &Window, slots: impl Iterator<Item = u64>) -> Vec<Label> {
    let mut labels: Vec<Label> = Vec::new();
    let mut last = None;
    for slot in slots {
        let label = window.label(slot).unwrap_or(UNKNOWN);
        if last != Some(label) {
            last = Some(label);
            if !labels.contains(&label) {
                labels.push(label);
            }
            if labels.len() > DISTINCT_MAX {
                return vec![UNKNOWN];
            }
        }
    }
    labels
}
