//! A grant's bytes: version `u8`; names of columns, each of three strings ended by a zero
//! byte, with their number before them; entries: flags `u8` (1: standing), origins `u8`,
//! families `u8`, columns read, columns written; aliases: a column, and those that it stands
//! for; with version 2 then the columns that are created, and those of them that are claimed.
//! Numbers and places of columns among the names are varints.

use crate::{Column, Entry, Grant, family, origin};
use std::collections::{BTreeMap, BTreeSet};

const VERSION: u8 = 1;
/// Of a grant that creates columns.
const CREATES: u8 = 2;
const STANDING: u8 = 1;
/// More columns, entries or aliases than any statement has.
const COUNT_MAX: usize = 1 << 16;

/// The bytes are no grant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("malformed grant")]
pub struct Malformed;

fn put(out: &mut Vec<u8>, mut n: usize) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

fn put_columns(out: &mut Vec<u8>, names: &BTreeMap<&Column, usize>, columns: &BTreeSet<Column>) {
    put(out, columns.len());
    for column in columns {
        put(out, names.get(column).copied().unwrap_or(0));
    }
}

pub(crate) fn encode(grant: &Grant) -> Vec<u8> {
    let entries = grant.entries.iter();
    let mut all: BTreeSet<&Column> = entries
        .flat_map(|e| e.reads.iter().chain(&e.writes))
        .collect();
    for (column, of) in &grant.aliases {
        all.insert(column);
        all.extend(of);
    }
    all.extend(grant.creates.iter().chain(&grant.claims));
    let creates = !grant.creates.is_empty() || !grant.claims.is_empty();
    let mut out = vec![if creates { CREATES } else { VERSION }];
    put(&mut out, all.len());
    for column in &all {
        for name in [&column.schema, &column.relation, &column.column] {
            out.extend(name.bytes().filter(|byte| *byte != 0));
            out.push(0);
        }
    }
    let names: BTreeMap<&Column, usize> = (0..).zip(all).map(|(at, column)| (column, at)).collect();
    put(&mut out, grant.entries.len());
    for entry in &grant.entries {
        let flags = if entry.standing { STANDING } else { 0 };
        out.extend_from_slice(&[flags, entry.origins, entry.families]);
        put_columns(&mut out, &names, &entry.reads);
        put_columns(&mut out, &names, &entry.writes);
    }
    put(&mut out, grant.aliases.len());
    for (column, of) in &grant.aliases {
        put(&mut out, names.get(column).copied().unwrap_or(0));
        put_columns(&mut out, &names, of);
    }
    if creates {
        put_columns(&mut out, &names, &grant.creates);
        put_columns(&mut out, &names, &grant.claims);
    }
    out
}

struct Reader<'a> {
    rest: &'a [u8],
    names: Vec<Column>,
}

impl Reader<'_> {
    fn byte(&mut self) -> Result<u8, Malformed> {
        let (byte, rest) = self.rest.split_first().ok_or(Malformed)?;
        self.rest = rest;
        Ok(*byte)
    }

    fn bits(&mut self, known: u8) -> Result<u8, Malformed> {
        let bits = self.byte()?;
        if bits & !known == 0 {
            Ok(bits)
        } else {
            Err(Malformed)
        }
    }

    fn number(&mut self) -> Result<usize, Malformed> {
        let mut number = 0;
        for shift in [0, 7, 14] {
            let byte = self.byte()?;
            number |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return if number <= COUNT_MAX {
                    Ok(number)
                } else {
                    Err(Malformed)
                };
            }
        }
        Err(Malformed)
    }

    fn name(&mut self) -> Result<String, Malformed> {
        let end = self
            .rest
            .iter()
            .position(|byte| *byte == 0)
            .ok_or(Malformed)?;
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest.get(1..).unwrap_or_default();
        String::from_utf8(name.to_vec()).map_err(|_| Malformed)
    }

    fn column(&mut self) -> Result<Column, Malformed> {
        let at = self.number()?;
        self.names.get(at).cloned().ok_or(Malformed)
    }

    fn columns(&mut self) -> Result<BTreeSet<Column>, Malformed> {
        let count = self.number()?;
        (0..count).map(|_| self.column()).collect()
    }

    fn entry(&mut self) -> Result<Entry, Malformed> {
        Ok(Entry {
            standing: self.bits(STANDING)? != 0,
            origins: self.bits(origin::ALL)?,
            families: self.bits(family::ALL)?,
            reads: self.columns()?,
            writes: self.columns()?,
        })
    }
}

pub(crate) fn decode(bytes: &[u8]) -> Result<Grant, Malformed> {
    let mut reader = Reader {
        rest: bytes,
        names: Vec::new(),
    };
    let version = reader.byte()?;
    if version != VERSION && version != CREATES {
        return Err(Malformed);
    }
    for _ in 0..reader.number()? {
        let column = Column {
            schema: reader.name()?,
            relation: reader.name()?,
            column: reader.name()?,
        };
        reader.names.push(column);
    }
    let mut grant = Grant::default();
    for _ in 0..reader.number()? {
        let entry = reader.entry()?;
        grant.entries.push(entry);
    }
    for _ in 0..reader.number()? {
        let column = reader.column()?;
        grant.aliases.insert(column, reader.columns()?);
    }
    if version == CREATES {
        grant.creates = reader.columns()?;
        grant.claims = reader.columns()?;
        // Equal grants have equal bytes.
        if grant.creates.is_empty() && grant.claims.is_empty() {
            return Err(Malformed);
        }
    }
    match reader.rest {
        [] => Ok(grant),
        _ => Err(Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn column() -> impl Strategy<Value = Column> {
        ("[a-c]{1,2}", "[a-z]{0,5}", "[a-z]{1,9}").prop_map(|(s, r, c)| Column::new(&s, &r, &c))
    }

    fn columns() -> impl Strategy<Value = BTreeSet<Column>> {
        proptest::collection::btree_set(column(), 0..9)
    }

    fn grants() -> impl Strategy<Value = Grant> {
        let entry = (
            any::<bool>(),
            0..=origin::ALL,
            0..=family::ALL,
            columns(),
            columns(),
        );
        let entry = entry.prop_map(|(standing, origins, families, reads, writes)| Entry {
            standing,
            origins,
            families,
            reads,
            writes,
        });
        let entries = proptest::collection::vec(entry, 0..5);
        let aliases = proptest::collection::btree_map(column(), columns(), 0..4);
        (entries, aliases, columns(), columns()).prop_map(|(entries, aliases, creates, claims)| {
            Grant {
                entries,
                aliases,
                creates,
                claims,
            }
        })
    }

    proptest! {
        /// What is encoded comes back, and no part of it is a grant; with a bug in the
        /// format a keeper would allow something else than the client said.
        #[test]
        fn there_and_back(grant in grants(), cut in any::<proptest::sample::Index>()) {
            let bytes = grant.encode();
            prop_assert_eq!(Grant::decode(&bytes), Ok(grant));
            prop_assert_eq!(Grant::decode(&bytes[..cut.index(bytes.len())]), Err(Malformed));
            let more = [bytes.as_slice(), &[0]].concat();
            prop_assert_eq!(Grant::decode(&more), Err(Malformed));
        }

        /// Any bytes decode to a grant or to an error.
        #[test]
        fn hostile(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(grant) = Grant::decode(&bytes) {
                prop_assert_eq!(Grant::decode(&grant.encode()), Ok(grant));
            }
        }
    }

    /// A temporary table's schema has another name in each session; grants know one.
    #[test]
    fn temporary() {
        assert_eq!(
            Column::new("pg_temp_7", "t", "a"),
            Column::new("pg_temp", "t", "a")
        );
    }
}
