//! A hostile backend that knows the table of messages: bodies have the form that the table
//! gives them, so that they get past the decoders, and numbers are what the keeper has answered
//! before, identifiers that may exist, or extremes. Sometimes a byte is changed, or the end is
//! missing.
//!
//! `CONFIDE_FUZZ_MESSAGES` says how many, `CONFIDE_SEED` which (`make fuzz-channel`). A failure
//! names the seed and the number of the message.

use crate::common::{Running, target};
use contract::describe::{Form, Message, Number, Structure};
use contract::envelope::FLAG_TEXT;
use contract::message::column;
use contract::message::table::MESSAGES;
use contract::{Fid, Kind, TypeCode};
use envelope::Sealer;
use keeper::Connection;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Of the short form.
const MESSAGES_DEFAULT: u64 = 60_000;
/// After so many messages the connection is another one.
const CONVERSATION: u64 = 400;
/// Numbers that were answered, the newest.
const REMEMBERED: usize = 64;
/// What the keeper may hold for such backends.
const MEMORY_MAX: usize = 192 << 20;
/// The longest list, but for one in some hundred.
const LIST_MAX: u64 = 5;

/// Chooses, the same with the same seed (xorshift).
struct Choice(u64);

impl Choice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize]
    }
}

/// Makes bodies.
struct Writer {
    choice: Choice,
    /// Numbers that the keeper gave: handles, identifiers, counts.
    seen: Vec<u64>,
    /// The first arena of the session.
    arena: u32,
}

impl Writer {
    fn remember(&mut self, answer: &[u8]) {
        for size in [4, 8] {
            for word in answer.chunks_exact(size).take(4) {
                let mut bytes = [0; 8];
                bytes[..size].copy_from_slice(word);
                let at = self.choice.below(REMEMBERED as u64) as usize;
                match self.seen.get_mut(at) {
                    Some(old) => *old = u64::from_le_bytes(bytes),
                    None => self.seen.push(u64::from_le_bytes(bytes)),
                }
            }
        }
    }

    fn fid(&mut self) -> u64 {
        let base = self.arena;
        let partition = self.choice.below(4) as u32;
        let slot = self.choice.below(6);
        match self.choice.below(8) {
            0 => 0,
            1 => self.choice.next(),
            2 | 3 => Fid::new(partition, slot).0,
            _ => Fid::new(base + partition, slot).0,
        }
    }

    fn number(&mut self, number: Number) -> u64 {
        match number {
            Number::Fid => self.fid(),
            Number::Type | Number::TypeOrNone => self.choice.below(19),
            _ => match self.choice.below(12) {
                0 => u64::MAX,
                1 => 1 << self.choice.below(64),
                2 => self.choice.next(),
                3 => self.fid(),
                // A function by its number.
                4 => self.choice.below(500),
                5..=7 if !self.seen.is_empty() => {
                    let at = self.choice.below(self.seen.len() as u64) as usize;
                    self.seen[at]
                }
                _ => self.choice.below(10),
            },
        }
    }

    fn put(&mut self, out: &mut Vec<u8>, number: Number, value: u64) {
        out.extend_from_slice(&value.to_le_bytes()[..number.bytes()]);
    }

    fn count(&mut self) -> u64 {
        match self.choice.below(200) {
            0 => 3000,
            _ => self.choice.below(LIST_MAX),
        }
    }

    /// Fields first, then what follows, of which fields may tell the size.
    fn structure(&mut self, out: &mut Vec<u8>, structure: &Structure) {
        let mut counts = Vec::new();
        for field in structure.fields {
            let counted = structure
                .tails
                .iter()
                .any(|t| t.counts.contains(&field.name));
            match field.form {
                Form::Number(number) => {
                    let value = if counted {
                        self.count()
                    } else {
                        self.number(number)
                    };
                    counts.push((field.name, value));
                    self.put(out, number, value);
                }
                Form::Structure(inner) => self.structure(out, inner),
                other => self.bytes(out, other.bytes() as u64),
            }
            out.resize(out.len() + field.zeros, 0);
        }
        for tail in structure.tails {
            let of = |name: &&str| counts.iter().find(|(n, _)| n == name).map_or(1, |c| c.1);
            let told = (!tail.counts.is_empty()).then(|| tail.counts.iter().map(of).product());
            let rows = told.unwrap_or_else(|| self.count());
            self.tail(out, &tail.form, rows);
        }
    }

    fn tail(&mut self, out: &mut Vec<u8>, form: &Form, count: u64) {
        match form {
            Form::Number(number) => {
                let value = self.number(*number);
                self.put(out, *number, value);
            }
            Form::Structure(inner) => self.structure(out, inner),
            Form::List(of) | Form::Each(of) => (0..count).for_each(|_| self.tail(out, of, 1)),
            Form::Optional(of) if self.choice.below(2) == 0 => self.tail(out, of, count),
            Form::Optional(_) => {}
            Form::Text => {
                let length = self.choice.below(12);
                out.extend((0..length).map(|n| b'a' + n as u8));
                out.push(0);
            }
            Form::Columns => (0..self.choice.below(3)).for_each(|_| self.column(out, count)),
            Form::Array(length) => self.bytes(out, *length as u64),
            Form::Bytes => self.bytes(out, count),
        }
    }

    fn column(&mut self, out: &mut Vec<u8>, rows: u64) {
        let forms = [
            column::LIST,
            column::RUNS,
            column::BOOLS,
            column::RAW,
            column::VALUES,
        ];
        let form = self.choice.of(&forms);
        let runs = rows.min(1);
        let count = if form == column::RUNS { runs } else { rows };
        self.put(out, Number::U32, u64::from(form));
        self.put(out, Number::U32, count);
        for _ in 0..count {
            match form {
                column::BOOLS => out.push(self.choice.below(3) as u8),
                column::RUNS => {
                    let first = self.fid();
                    let stride = self.choice.below(2);
                    self.put(out, Number::Fid, first);
                    self.put(out, Number::U32, rows);
                    self.put(out, Number::U32, stride);
                }
                _ => {
                    let fid = self.fid();
                    self.put(out, Number::Fid, fid);
                }
            }
        }
        if form == column::RAW {
            out.resize(out.len() + count as usize, 0);
        }
    }

    fn bytes(&mut self, out: &mut Vec<u8>, length: u64) {
        for _ in 0..length {
            let byte = self.choice.next() as u8;
            out.push(if byte < 128 { byte % 10 } else { byte });
        }
    }

    fn body(&mut self, message: &Message) -> Vec<u8> {
        let mut out = Vec::new();
        self.structure(&mut out, message.body);
        let at = self.choice.below(out.len() as u64) as usize;
        match self.choice.below(12) {
            0 if !out.is_empty() => out[at] = self.choice.next() as u8,
            1 => out.truncate(at),
            2 => out.push(0),
            _ => {}
        }
        out
    }
}

/// Another backend; with a client, it has some of the client's values at the beginning of its
/// first arena.
fn connection(running: &Running, with_client: bool) -> Connection {
    if !with_client {
        return running.direct();
    }
    let (mut connection, sealer, _) = running.direct_client();
    put_values(&mut connection, &sealer);
    connection
}

fn put_values(connection: &mut Connection, sealer: &Sealer) {
    let texts = [
        (TypeCode::Int4, "7"),
        (TypeCode::Text, "ab%"),
        (TypeCode::Numeric, "1e300"),
        (TypeCode::Float8, "nan"),
        (TypeCode::Timestamptz, "infinity"),
        (TypeCode::Bool, "t"),
    ];
    for (slot, (t, text)) in texts.iter().enumerate() {
        let mut envelope = Vec::new();
        let sealed = sealer.seal(0, FLAG_TEXT, text.as_bytes(), &mut envelope);
        sealed.unwrap();
        let fid = Fid::new(connection.welcome().arena, slot as u64);
        let body = [&target(fid, *t, -1)[..], &envelope].concat();
        assert!(connection.handle(Kind::PutEnvelope, &body).is_none());
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// Mechanism: each message, in form. Right answer: an answer to what is answered, with a SQLSTATE
/// if it is an error, and memory within bounds. A bug would be a panic (which ends a client's
/// channel), an answer too many, or memory that a backend can use up.
#[test]
fn messages_in_form() {
    let running = Running::start();
    let seed = setting("CONFIDE_SEED", 1);
    let wanted = setting("CONFIDE_FUZZ_MESSAGES", MESSAGES_DEFAULT);
    let mut writer = Writer {
        choice: Choice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
        seen: Vec::new(),
        arena: contract::fid::ARENA_BASE,
    };
    let sent: Vec<&Message> = MESSAGES
        .iter()
        .filter(|m| !matches!(Kind::from_u16(m.code), Some(Kind::Answer | Kind::Error)))
        .collect();
    let (mut done, mut connection_now) = ([0u64; 2], None);
    for number in 0..wanted {
        if number % CONVERSATION == 0 {
            let opened = connection(&running, writer.choice.below(2) == 0);
            writer.arena = opened.welcome().arena;
            connection_now = Some(opened);
        }
        let connection = connection_now.as_mut().unwrap();
        let message = writer.choice.of(&sent);
        let body = writer.body(message);
        let kind = Kind::from_u16(message.code).unwrap();
        let at = format!(
            "seed {seed}, message {number}: {} {body:02x?}",
            message.name
        );
        let outcome = catch_unwind(AssertUnwindSafe(|| connection.handle(kind, &body)));
        let Ok(outcome) = outcome else { panic!("{at}") };
        assert_eq!(outcome.is_some(), kind.is_answered(), "{at}");
        match outcome {
            Some(Err(error)) => {
                assert!(error.sqlstate.iter().all(u8::is_ascii_alphanumeric), "{at}");
                assert!(!error.message.is_empty(), "{at}");
                done[1] += 1;
            }
            Some(Ok(())) => {
                let reply = connection.reply().to_vec();
                writer.remember(&reply);
                done[0] += 1;
            }
            None => {}
        }
        connection.settle();
        let used = running.server.keeper().store.budget().used();
        assert!(used < MEMORY_MAX, "{at}: {used} bytes");
        if number % 100_000 == 99_999 {
            eprintln!(
                "{} of {wanted} messages: {} answers, {} errors",
                number + 1,
                done[0],
                done[1]
            );
        }
    }
    // Not all of them are refused: the decoders are not all that is tried.
    assert!(done[0] * 20 > done[1], "{done:?}");
}
