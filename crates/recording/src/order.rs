//! What an administrator says to begin and to end a recording, as text for people (`confide.record`)
//! and as the bytes that the client seals for the keeper.
//!
//! Bytes: `R`, 1 to start, 3 to start a log of calls, or 2 to stop, the key, database and role `u32`, seconds, bytes and ring `u64`,
//! number of statements `u32`, each of them `u64`, the principal's name. A grant or a command about viewers never begins like that.

use crate::Error;
use aws_lc_rs::digest::{SHA256, digest};
use zeroize::Zeroizing;

/// Size of a recording's key.
pub const KEY_BYTES: usize = 32;
const MARK: u8 = b'R';
const START: u8 = 1;
const STOP: u8 = 2;
const START_CALLS: u8 = 3;
/// Size of what stands before the name.
const FIXED_BYTES: usize = 2 + KEY_BYTES + 2 * 4 + 3 * 8 + 4;
/// Most statements of a scope.
pub const STATEMENTS_MAX: usize = 1000;

/// The key that seals a recording, and names it.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(Zeroizing<[u8; KEY_BYTES]>);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Key({})", self.name())
    }
}

impl Key {
    /// A fresh one.
    pub fn generate() -> Result<Key, Error> {
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        aws_lc_rs::rand::fill(bytes.as_mut()).map_err(|_| Error::new("no random numbers"))?;
        Ok(Key(bytes))
    }

    /// The key of this text, 64 hexadecimal digits.
    pub fn parse(text: &str) -> Result<Key, Error> {
        let bad = || Error::new("a recording's key has 64 hexadecimal digits");
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        let (pairs, rest) = text.trim().as_bytes().as_chunks::<2>();
        if pairs.len() != KEY_BYTES || !rest.is_empty() {
            return Err(bad());
        }
        let digit = |c: u8| char::from(c).to_digit(16);
        for ([high, low], byte) in pairs.iter().zip(bytes.iter_mut()) {
            let (high, low) = (digit(*high), digit(*low));
            let value = high.zip(low).map(|(high, low)| high * 16 + low);
            *byte = value.and_then(|v| u8::try_from(v).ok()).ok_or_else(bad)?;
        }
        Ok(Key(bytes))
    }

    /// Its text.
    #[must_use]
    pub fn to_text(&self) -> Zeroizing<String> {
        Zeroizing::new(hex(self.bytes()))
    }

    /// The name of the recording that it seals; it says nothing about the key.
    #[must_use]
    pub fn name(&self) -> String {
        let id = self.id();
        hex(&id)
    }

    pub(crate) fn id(&self) -> [u8; 8] {
        let text = [b"confide recording ".as_slice(), self.bytes()].concat();
        let hash = digest(&SHA256, &text);
        let mut id = [0; 8];
        id.copy_from_slice(hash.as_ref().first_chunk::<8>().unwrap_or(&[0; 8]));
        id
    }

    pub(crate) fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What is recorded, and how much of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Scope {
    /// Under which key.
    pub key: Key,
    /// Sessions of this database only, by its OID; 0: of all.
    pub database: u32,
    /// Sessions of this role only, by its OID; 0: of all.
    pub role: u32,
    /// For so long; 0: until it is stopped.
    pub seconds: u64,
    /// So many bytes on disk at most; 0: any number.
    pub bytes: u64,
    /// Only the last so many seconds are kept; 0: everything is.
    pub ring: u64,
    /// Sessions of this principal only; empty: of all.
    pub principal: String,
    /// These statements only, by the identifiers of their queries; empty: all.
    pub statements: Vec<u64>,
    /// Not messages, but the calls of operators, with their operands.
    pub calls: bool,
}

/// What is said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Order {
    /// Begin.
    Start(Scope),
    /// End the recording that runs.
    Stop,
}

impl Order {
    /// The order in words: `stop`, or `start` and what is in its scope, such as
    /// `start key=0f… database=16384 principal=ann seconds=60 bytes=1000000 ring=600 statement=-5`.
    pub fn read(text: &str) -> Result<Order, Error> {
        let mut words = text.split_ascii_whitespace();
        match (words.next(), text.trim()) {
            (Some("start"), _) => {}
            (_, "stop") => return Ok(Order::Stop),
            _ => return Err(Error::new("a recording is started or stopped")),
        }
        let mut key = None;
        let mut scope = Scope {
            key: Key(Zeroizing::new([0; KEY_BYTES])),
            database: 0,
            role: 0,
            seconds: 0,
            bytes: 0,
            ring: 0,
            principal: String::new(),
            statements: Vec::new(),
            calls: false,
        };
        for word in words {
            if word == "calls" {
                scope.calls = true;
                continue;
            }
            let bad = || {
                Error::new(format!(
                    "{}: no such scope",
                    word.split('=').next().unwrap_or_default()
                ))
            };
            let (name, value) = word.split_once('=').ok_or_else(bad)?;
            let number = || value.parse::<u64>().map_err(|_| bad());
            match name {
                "key" => key = Some(Key::parse(value)?),
                "database" => scope.database = value.parse().map_err(|_| bad())?,
                "role" => scope.role = value.parse().map_err(|_| bad())?,
                "principal" => scope.principal = value.to_owned(),
                "seconds" => scope.seconds = number()?,
                "bytes" => scope.bytes = number()?,
                "ring" => scope.ring = number()?,
                "statement" if scope.statements.len() < STATEMENTS_MAX => {
                    // With a sign, as PostgreSQL shows it; 0 is no statement's.
                    let query = value.parse::<i64>().ok().filter(|query| *query != 0);
                    scope
                        .statements
                        .push(query.ok_or_else(bad)?.cast_unsigned());
                }
                _ => return Err(bad()),
            }
        }
        scope.key = key.ok_or_else(|| Error::new("a recording has a key"))?;
        Ok(Order::Start(scope))
    }

    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> Zeroizing<Vec<u8>> {
        let Order::Start(scope) = self else {
            return Zeroizing::new(vec![MARK, STOP]);
        };
        let room = FIXED_BYTES + 8 * scope.statements.len() + scope.principal.len();
        let mut out = Zeroizing::new(Vec::with_capacity(room));
        out.extend([MARK, if scope.calls { START_CALLS } else { START }]);
        out.extend(scope.key.bytes());
        for oid in [scope.database, scope.role] {
            out.extend(oid.to_le_bytes());
        }
        for number in [scope.seconds, scope.bytes, scope.ring] {
            out.extend(number.to_le_bytes());
        }
        out.extend((scope.statements.len() as u32).to_le_bytes());
        for query in &scope.statements {
            out.extend(query.to_le_bytes());
        }
        out.extend(scope.principal.as_bytes());
        out
    }

    /// Whether these bytes are an order at all, well formed or not.
    #[must_use]
    pub fn is_one(bytes: &[u8]) -> bool {
        bytes.first() == Some(&MARK)
    }

    /// The order with these bytes.
    pub fn decode(bytes: &[u8]) -> Result<Order, Error> {
        let bad = || Error::new("the order is malformed");
        let (fixed, mut name) = match bytes {
            [MARK, STOP] => return Ok(Order::Stop),
            [MARK, START | START_CALLS, ..] => {
                bytes.split_first_chunk::<FIXED_BYTES>().ok_or_else(bad)?
            }
            _ => return Err(bad()),
        };
        let mut rest: &[u8] = fixed.get(2..).unwrap_or_default();
        let key = take::<KEY_BYTES>(&mut rest).ok_or_else(bad)?;
        let mut oid = || take(&mut rest).map(u32::from_le_bytes).ok_or_else(bad);
        let (database, role) = (oid()?, oid()?);
        let mut number = || take(&mut rest).map(u64::from_le_bytes).ok_or_else(bad);
        let (seconds, most, ring) = (number()?, number()?, number()?);
        let count = take(&mut rest).map(u32::from_le_bytes).ok_or_else(bad)? as usize;
        if count > STATEMENTS_MAX {
            return Err(bad());
        }
        let mut statements = Vec::with_capacity(count);
        for _ in 0..count {
            statements.push(take(&mut name).map(u64::from_le_bytes).ok_or_else(bad)?);
        }
        Ok(Order::Start(Scope {
            key: Key(Zeroizing::new(key)),
            database,
            role,
            seconds,
            bytes: most,
            ring,
            principal: String::from_utf8(name.to_vec()).map_err(|_| bad())?,
            statements,
            calls: bytes.get(1) == Some(&START_CALLS),
        }))
    }
}

/// The next bytes.
pub(crate) fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(*head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let key = Key::generate().expect("random bytes");
        let text = format!(
            "start key={} database=5 role=10 principal=ann seconds=6 bytes=7 ring=8 statement=-9 statement=10",
            *key.to_text()
        );
        let order = Order::read(&text).expect("an order");
        let bytes = order.encode();
        assert_eq!(Order::decode(&bytes), Ok(order));
        let calls = Order::read(&format!("{text} calls")).expect("an order");
        assert_eq!(Order::decode(&calls.encode()), Ok(calls));
        assert_eq!(
            Order::decode(&Order::Stop.encode()),
            Ok(Order::read("stop").expect("stop"))
        );
        for end in 0..FIXED_BYTES + 16 {
            assert!(Order::decode(&bytes[..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn refused() {
        for text in [
            "",
            "begin",
            "start",
            "start key=00",
            "stop now",
            "start color=red",
            "start statement=0",
            "start statement=x",
        ] {
            assert!(Order::read(text).is_err(), "{text}");
        }
    }
}
