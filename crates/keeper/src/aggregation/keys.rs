//! Groups: maps the keys of a row to the number of its group.
//!
//! Keys are compared by their row form ([`crate::program::rowform`]).
//!
//! Invariants: keys that are equal in PostgreSQL (NULL equals NULL, 1.0 equals 1.00, char(n)
//! without trailing blanks) have one group; a group's keys are those of its first row.

use super::part::Part;
use super::plan::{Key, Plan};
use super::{Input, NO_GROUP};
use crate::account::Account;
use crate::fail::{self, Failure};
use crate::program::column::Column;
use crate::program::rowform::{
    column_words, encode_row, encode_word, head_bytes, mark_null, put_words, truth_word,
};
use crate::program::strings::Strings;
use contract::Fid;
use values::Value;

/// Like [`encode_row`], for raw values.
pub fn encode_raw(input: &Input, row: usize, out: &mut Vec<u8>) -> bool {
    encode_word(input.raw(row), out)
}

/// One key of all groups.
enum Kept {
    Raw(Vec<u64>, Vec<u8>),
    Fids(Vec<Fid>),
    Values(Vec<Option<Value>>),
}

/// All groups.
pub struct Groups {
    strings: Strings,
    kept: Vec<Kept>,
    /// Memory per group in addition to its string.
    group_bytes: usize,
    /// The forms of a part's rows, concatenated, and where each ends.
    forms: Vec<u8>,
    ends: Vec<usize>,
    only: bool,
}

/// A column as it is read for a key.
enum Reading<'a> {
    Raw(&'a Input),
    Column(&'a Column),
}

impl Reading<'_> {
    /// The raw value that a group returns for a row; `None` for NULL.
    fn word(&self, part: &Part<'_>, row: usize) -> Option<u64> {
        match self {
            Reading::Raw(input) => input.raw(part.first() + row),
            Reading::Column(column) => truth_word(column, row),
        }
    }
}

fn lost() -> Failure {
    fail::internal("an aggregation has lost a key").into()
}

impl Groups {
    /// No groups yet.
    pub fn new(plan: &Plan) -> Groups {
        let kept = plan.keys.iter().map(|key| match key {
            Key::Raw(_) | Key::Truth(_) => Kept::Raw(Vec::new(), Vec::new()),
            Key::Column(..) => Kept::Fids(Vec::new()),
            Key::Value(..) => Kept::Values(Vec::new()),
        });
        Groups {
            strings: Strings::default(),
            kept: kept.collect(),
            group_bytes: plan.keys.len() * 48 + plan.states.len() * 64,
            forms: Vec::new(),
            ends: Vec::new(),
            only: false,
        }
    }

    /// Adds the only group of an aggregation without keys.
    pub fn insert_only(&mut self) {
        self.only = true;
    }

    /// Number of groups.
    pub fn len(&self) -> usize {
        match self.only {
            true => 1,
            false => self.strings.len(),
        }
    }

    /// Appends the group number of each row of a part.
    pub fn find(
        &mut self,
        plan: &Plan,
        part: &Part<'_>,
        account: &mut Account,
        full: &mut bool,
        numbers: &mut Vec<u32>,
    ) -> Result<(), Failure> {
        let readings = self.read(plan, part)?;
        self.encode(part, &readings);
        let forms = std::mem::take(&mut self.forms);
        let ends = std::mem::take(&mut self.ends);
        let mut start = 0;
        let mut last: (&[u8], u32) = (&[], NO_GROUP);
        for (row, end) in ends.iter().enumerate() {
            let form = forms.get(start..*end).unwrap_or(&[]);
            start = *end;
            // Consecutive rows often belong to the same group.
            if last.1 == NO_GROUP || last.0 != form {
                let number = match self.strings.find(form) {
                    Ok(number) => number,
                    Err(_) if *full => NO_GROUP,
                    Err(hash) => self.add(plan, &readings, part, row, hash, form, account, full)?,
                };
                last = (form, number);
            }
            numbers.push(last.1);
        }
        (self.forms, self.ends) = (forms, ends);
        // Do not retain the memory of an unusually long text.
        self.forms.shrink_to(1 << 20);
        Ok(())
    }

    fn read<'p>(&self, plan: &Plan, part: &'p Part<'_>) -> Result<Vec<Reading<'p>>, Failure> {
        let mut readings = Vec::with_capacity(plan.keys.len());
        for key in &plan.keys {
            let expression = key.expression();
            if let Key::Raw(_) = key {
                readings.push(Reading::Raw(part.raw_column(expression).ok_or_else(lost)?));
                continue;
            }
            let column = part.expression(expression)?;
            if let Some((_, failure)) = column.failures.first_key_value() {
                return Err(failure.clone());
            }
            readings.push(Reading::Column(column));
        }
        Ok(readings)
    }

    /// Encodes each row: a word that tells which keys are NULL (several for more than 64 keys),
    /// followed by the forms of the others.
    fn encode(&mut self, part: &Part<'_>, readings: &[Reading<'_>]) {
        if self.encode_words(part, readings) {
            return;
        }
        self.forms.clear();
        self.ends.clear();
        for row in 0..part.rows() {
            let head = self.forms.len();
            self.forms.resize(head + head_bytes(readings.len()), 0);
            for (number, reading) in readings.iter().enumerate() {
                let there = match reading {
                    Reading::Raw(input) => encode_raw(input, part.first() + row, &mut self.forms),
                    Reading::Column(column) => encode_row(column, row, &mut self.forms),
                };
                if !there {
                    mark_null(self.forms.get_mut(head..).unwrap_or(&mut []), number);
                    self.forms.extend_from_slice(&[0; 8]);
                }
            }
            self.ends.push(self.forms.len());
        }
    }

    /// The same, column by column, if every value is a single word. Returns false otherwise.
    fn encode_words(&mut self, part: &Part<'_>, readings: &[Reading<'_>]) -> bool {
        let head = head_bytes(readings.len());
        let stride = head + readings.len() * 8;
        self.forms.clear();
        self.forms.resize(part.rows() * stride, 0);
        for (number, reading) in readings.iter().enumerate() {
            let at = head + number * 8;
            let rows = self.forms.chunks_exact_mut(stride);
            let done = match reading {
                Reading::Raw(input) => {
                    put_words(rows, at, number, |row| Some(input.raw(part.first() + row)))
                }
                Reading::Column(column) => column_words(rows, at, number, column),
            };
            if !done {
                return false;
            }
        }
        self.ends.clear();
        self.ends.extend((1..=part.rows()).map(|row| row * stride));
        true
    }

    /// Charges the memory of one more group, if there is room.
    fn has_room(
        &self,
        form: &[u8],
        account: &mut Account,
        full: &mut bool,
    ) -> Result<bool, Failure> {
        let bytes = self.strings.cost(form) + self.group_bytes + form.len();
        let taken = account.take(bytes);
        if let Err(error) = taken {
            if self.strings.len() == 0 {
                // Without a single group there would be no progress.
                return Err(error.into());
            }
            *full = true;
        } else if self.strings.len() >= NO_GROUP as usize - 1 {
            *full = true;
        }
        Ok(!*full)
    }

    /// For each of the other's waiting groups, appends the number of the corresponding group here.
    /// Groups that do not fit have none.
    pub fn merge(
        &mut self,
        other: &Groups,
        waiting: &[bool],
        account: &mut Account,
        full: &mut bool,
        numbers: &mut Vec<u32>,
    ) -> Result<(), Failure> {
        if self.only {
            numbers.push(0);
            return Ok(());
        }
        for (group, waits) in waiting.iter().enumerate() {
            let form = other.strings.string(group as u32);
            let number = match self.strings.find(form) {
                _ if !waits => NO_GROUP,
                Ok(number) => number,
                Err(_) if *full => NO_GROUP,
                Err(_) if !self.has_room(form, account, full)? => NO_GROUP,
                Err(hash) => self.add_of(other, group, hash, form)?,
            };
            numbers.push(number);
        }
        Ok(())
    }

    /// Adds a group of another aggregation.
    fn add_of(
        &mut self,
        other: &Groups,
        group: usize,
        hash: u64,
        form: &[u8],
    ) -> Result<u32, Failure> {
        for (to, from) in self.kept.iter_mut().zip(&other.kept) {
            match (to, from) {
                (Kept::Raw(to, to_nulls), Kept::Raw(from, nulls)) => {
                    to.push(*from.get(group).ok_or_else(lost)?);
                    to_nulls.push(*nulls.get(group).ok_or_else(lost)?);
                }
                (Kept::Fids(to), Kept::Fids(from)) => to.push(*from.get(group).ok_or_else(lost)?),
                (Kept::Values(to), Kept::Values(from)) => {
                    to.push(from.get(group).ok_or_else(lost)?.clone());
                }
                _ => return Err(lost()),
            }
        }
        Ok(self.strings.add(hash, form))
    }

    /// Adds a group, if there is room.
    #[allow(clippy::too_many_arguments)]
    fn add(
        &mut self,
        plan: &Plan,
        readings: &[Reading<'_>],
        part: &Part<'_>,
        row: usize,
        hash: u64,
        form: &[u8],
        account: &mut Account,
        full: &mut bool,
    ) -> Result<u32, Failure> {
        if !self.has_room(form, account, full)? {
            return Ok(NO_GROUP);
        }
        for ((kept, key), reading) in self.kept.iter_mut().zip(&plan.keys).zip(readings) {
            if let Key::Truth(expression) = key {
                part.reveal(*expression, row);
            }
            match (kept, reading) {
                (Kept::Raw(to, nulls), reading) => {
                    let value = reading.word(part, row);
                    to.push(value.unwrap_or(0));
                    nulls.push(u8::from(value.is_none()));
                }
                (Kept::Fids(to), _) => {
                    let fids = part.fid_column(key.expression()).ok_or_else(lost)?;
                    to.push(fids.fid(part.first() + row));
                }
                (Kept::Values(to), Reading::Column(column)) => {
                    let value = match column.is_null(row) {
                        true => None,
                        false => column.value(row).map(|v| v.into_owned()),
                    };
                    to.push(value);
                }
                _ => return Err(lost()),
            }
        }
        Ok(self.strings.add(hash, form))
    }

    /// The FID of a key of a group.
    pub fn fid(&self, key: usize, group: usize) -> Fid {
        match self.kept.get(key) {
            Some(Kept::Fids(v)) => v.get(group).copied().unwrap_or(Fid::INVALID),
            _ => Fid::INVALID,
        }
    }

    /// The FIDs of a key of some groups.
    pub fn fids(&self, key: usize, groups: std::ops::Range<usize>) -> &[Fid] {
        match self.kept.get(key) {
            Some(Kept::Fids(v)) => v.get(groups).unwrap_or(&[]),
            _ => &[],
        }
    }

    /// The raw value of a key of a group, and whether it is NULL.
    pub fn raw(&self, key: usize, group: usize) -> (u64, bool) {
        match self.kept.get(key) {
            Some(Kept::Raw(v, nulls)) => (
                v.get(group).copied().unwrap_or(0),
                nulls.get(group).is_none_or(|null| *null != 0),
            ),
            _ => (0, true),
        }
    }

    /// The computed value of a key of a group; none for NULL.
    pub fn value(&self, key: usize, group: usize) -> Option<&Value> {
        match self.kept.get(key) {
            Some(Kept::Values(v)) => v.get(group)?.as_ref(),
            _ => None,
        }
    }
}
