//! Restore tickets: what their owner lets somebody take in from export envelopes, where, how
//! often and until when.
//!
//! Bytes: version (1), flags (1: other columns), number (16), expiry and uses (`u64`, `u32`),
//! the database's name, then for each place three strings; strings end with a zero byte.
//!
//! Not here: keys (crate `envelope`), and what the keeper does with it.

use crate::Malformed;

const VERSION: u8 = 1;
const OTHER_COLUMNS: u8 = 1;
/// Size of a ticket's number.
pub const NUMBER_BYTES: usize = 16;
/// More places than any ticket names.
const PLACES_MAX: usize = 4096;

/// A table, or a column of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// Schema of the table.
    pub schema: String,
    /// The table.
    pub relation: String,
    /// The column; none: all of the table.
    pub column: Option<String>,
}

impl Place {
    /// Whether a column is there.
    #[must_use]
    pub fn holds(&self, schema: &str, relation: &str, column: &str) -> bool {
        self.schema == schema
            && self.relation == relation
            && self.column.as_deref().is_none_or(|name| name == column)
    }

    /// Reads `schema.table` or `schema.table.column`.
    pub fn read(text: &str) -> Option<Place> {
        let mut names = text.split('.').map(str::to_owned);
        let place = Place {
            schema: names.next()?,
            relation: names.next()?,
            column: names.next(),
        };
        let parts = [
            Some(&place.schema),
            Some(&place.relation),
            place.column.as_ref(),
        ];
        let empty = parts.iter().flatten().any(|name| name.is_empty());
        (names.next().is_none() && !empty).then_some(place)
    }
}

/// What a ticket says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ticket {
    /// Which one it is.
    pub number: [u8; NUMBER_BYTES],
    /// From when on it is good for nothing: seconds since 1970.
    pub expires: u64,
    /// Sessions that may use it; 0: any number, until it expires.
    pub uses: u32,
    /// Values may go into other columns than the ones they came from, and envelopes count that
    /// do not say where they belong.
    pub other_columns: bool,
    /// Name of the database that values go into.
    pub database: String,
    /// Where they may go; empty: anywhere in the database.
    pub places: Vec<Place>,
}

fn put(out: &mut Vec<u8>, text: &str) {
    out.extend(text.bytes().filter(|byte| *byte != 0));
    out.push(0);
}

fn take<'a, const N: usize>(rest: &mut &'a [u8]) -> Result<&'a [u8; N], Malformed> {
    let (head, tail) = rest.split_first_chunk().ok_or(Malformed)?;
    *rest = tail;
    Ok(head)
}

fn take_text(rest: &mut &[u8]) -> Result<String, Malformed> {
    let end = rest.iter().position(|byte| *byte == 0).ok_or(Malformed)?;
    let (text, tail) = rest.split_at(end);
    *rest = tail.get(1..).unwrap_or_default();
    String::from_utf8(text.to_vec()).map_err(|_| Malformed)
}

impl std::fmt::Display for Ticket {
    /// For people.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "database {}", self.database)?;
        for Place {
            schema,
            relation,
            column,
        } in &self.places
        {
            write!(f, ", {schema}.{relation}")?;
            if let Some(column) = column {
                write!(f, ".{column}")?;
            }
        }
        if self.other_columns {
            f.write_str(", into other columns, too")?;
        }
        match self.uses {
            0 => write!(f, ", until {}", self.expires),
            n => write!(f, ", {n} uses until {}", self.expires),
        }
    }
}

impl Ticket {
    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let flags = if self.other_columns { OTHER_COLUMNS } else { 0 };
        let mut out = vec![VERSION, flags];
        out.extend_from_slice(&self.number);
        out.extend_from_slice(&self.expires.to_le_bytes());
        out.extend_from_slice(&self.uses.to_le_bytes());
        put(&mut out, &self.database);
        for place in &self.places {
            put(&mut out, &place.schema);
            put(&mut out, &place.relation);
            put(&mut out, place.column.as_deref().unwrap_or(""));
        }
        out
    }

    /// The ticket with these bytes.
    pub fn decode(mut bytes: &[u8]) -> Result<Ticket, Malformed> {
        let rest = &mut bytes;
        let [version, flags] = *take::<2>(rest)?;
        if version != VERSION || flags & !OTHER_COLUMNS != 0 {
            return Err(Malformed);
        }
        let mut ticket = Ticket {
            number: *take(rest)?,
            expires: u64::from_le_bytes(*take(rest)?),
            uses: u32::from_le_bytes(*take(rest)?),
            other_columns: flags & OTHER_COLUMNS != 0,
            database: take_text(rest)?,
            places: Vec::new(),
        };
        while !rest.is_empty() {
            if ticket.places.len() >= PLACES_MAX {
                return Err(Malformed);
            }
            let place = Place {
                schema: take_text(rest)?,
                relation: take_text(rest)?,
                column: Some(take_text(rest)?).filter(|name| !name.is_empty()),
            };
            ticket.places.push(place);
        }
        Ok(ticket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// What is encoded comes back; any other bytes are refused or read as what they say.
        #[test]
        fn there_and_back(
            number in any::<[u8; NUMBER_BYTES]>(), expires in any::<u64>(), uses in any::<u32>(),
            other_columns in any::<bool>(), database in "[a-z]{0,5}",
            places in proptest::collection::vec("[a-z]{1,4}[.][a-z]{1,4}([.][a-z]{1,4})?", 0..4),
            junk in proptest::collection::vec(any::<u8>(), 0..60),
        ) {
            let places: Vec<Place> = places.iter().filter_map(|p| Place::read(p)).collect();
            let ticket = Ticket { number, expires, uses, other_columns, database, places };
            prop_assert_eq!(Ticket::decode(&ticket.encode()), Ok(ticket));
            if let Ok(read) = Ticket::decode(&junk) {
                prop_assert_eq!(Ticket::decode(&read.encode()), Ok(read));
            }
        }
    }

    #[test]
    fn places() {
        let read = |text| Place::read(text);
        assert!(read("s.t").is_some_and(|p| p.holds("s", "t", "a") && !p.holds("s", "u", "a")));
        assert!(read("s.t.a").is_some_and(|p| p.holds("s", "t", "a") && !p.holds("s", "t", "b")));
        for text in ["", "t", "s.t.a.b", "s..a", ".t", "s.t."] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
