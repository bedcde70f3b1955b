//! What stands in a frame: chunks, each of messages of one channel in their order.
//!
//! A chunk: session `u64`, channel `u32`, database `u32`, messages that were lost before it `u64`,
//! length `u32`, events. An event: microseconds since the recording began `u64`, how many it took
//! `u32`, kind `u16`, what came of it `u8`, zero `u8`, lengths of body and answer `u32`, body,
//! answer; the last two rearranged (`spread`).

use crate::order::take;
use crate::spread::{gather, spread};

/// What came of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome<'a> {
    /// Nothing: its kind has no answer.
    OneWay,
    /// An answer's body.
    Answer(&'a [u8]),
    /// An error's body.
    Error(&'a [u8]),
}

/// A request and what came of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event<'a> {
    /// When, in microseconds since the recording began.
    pub at: u64,
    /// Microseconds until it was answered, or done.
    pub took: u32,
    /// Code of its kind.
    pub kind: u16,
    /// Its body.
    pub body: &'a [u8],
    /// What came of it.
    pub outcome: Outcome<'a>,
}

/// Kind of an event that no message is: a call of an operator, as a line of `crates/calls` without
/// its outcome. Logs of calls have these, recordings do not.
pub const CALL: u16 = 0xfff0;
/// What came of the channel's last call.
pub const CAME: u16 = 0xfff1;

/// Kind of an event that no message is: at an LSN (`u64`), these FIDs (each `u64`) were freed, whoever did
/// it. In a chunk of session 0.
pub const FREED: u16 = 0xfff2;

/// Size of what stands before an event's body.
const EVENT_BYTES: usize = 24;

fn length(bytes: &[u8]) -> [u8; 4] {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes()
}

impl<'a> Event<'a> {
    /// Bytes that it takes.
    #[must_use]
    pub fn size(&self) -> usize {
        let (_, answer) = self.answer();
        EVENT_BYTES + self.body.len() + answer.len()
    }

    fn answer(&self) -> (u8, &'a [u8]) {
        match self.outcome {
            Outcome::OneWay => (0, &[]),
            Outcome::Answer(bytes) => (1, bytes),
            Outcome::Error(bytes) => (2, bytes),
        }
    }

    /// Appends it, as [`Chunk::events`] has it.
    pub fn put(&self, out: &mut Vec<u8>) {
        let (_, answer) = self.answer();
        out.reserve(self.size());
        self.put_head(out);
        out.extend(self.body);
        out.extend(answer);
    }

    /// Appends it with body and answer rearranged one way or the other.
    fn put_with(&self, rearrange: fn(&[u8], &mut Vec<u8>), out: &mut Vec<u8>) {
        let (_, answer) = self.answer();
        self.put_head(out);
        rearrange(self.body, out);
        rearrange(answer, out);
    }

    fn put_head(&self, out: &mut Vec<u8>) {
        let (outcome, answer) = self.answer();
        out.extend(self.at.to_le_bytes());
        out.extend(self.took.to_le_bytes());
        out.extend(self.kind.to_le_bytes());
        out.extend([outcome, 0]);
        out.extend(length(self.body));
        out.extend(length(answer));
    }

    fn take(rest: &mut &'a [u8]) -> Option<Event<'a>> {
        let at = u64::from_le_bytes(take(rest)?);
        let took = u32::from_le_bytes(take(rest)?);
        let kind = u16::from_le_bytes(take(rest)?);
        let [outcome, 0] = take(rest)? else {
            return None;
        };
        let body = u32::from_le_bytes(take(rest)?) as usize;
        let answer = u32::from_le_bytes(take(rest)?) as usize;
        let (body, tail) = rest.split_at_checked(body)?;
        let (answer, tail) = tail.split_at_checked(answer)?;
        *rest = tail;
        let outcome = match outcome {
            0 if answer.is_empty() => Outcome::OneWay,
            1 => Outcome::Answer(answer),
            2 => Outcome::Error(answer),
            _ => return None,
        };
        Some(Event {
            at,
            took,
            kind,
            body,
            outcome,
        })
    }
}

/// Messages of one channel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chunk {
    /// Its session.
    pub session: u64,
    /// Its number within the recording.
    pub channel: u32,
    /// OID of the session's database.
    pub database: u32,
    /// Messages before these that there was no room for.
    pub lost: u64,
    /// Events, as [`Event::put`] makes them.
    pub events: Vec<u8>,
}

impl Chunk {
    /// Appends it.
    pub fn put(&self, out: &mut Vec<u8>) {
        out.extend(self.session.to_le_bytes());
        out.extend(self.channel.to_le_bytes());
        out.extend(self.database.to_le_bytes());
        out.extend(self.lost.to_le_bytes());
        out.extend(length(&self.events));
        out.reserve(self.events.len());
        let mut rest = self.events.as_slice();
        while let Some(event) = Event::take(&mut rest) {
            event.put_with(spread, out);
        }
    }

    /// The next one.
    pub(crate) fn take(rest: &mut &[u8]) -> Option<Chunk> {
        let session = u64::from_le_bytes(take(rest)?);
        let channel = u32::from_le_bytes(take(rest)?);
        let database = u32::from_le_bytes(take(rest)?);
        let lost = u64::from_le_bytes(take(rest)?);
        let length = u32::from_le_bytes(take(rest)?) as usize;
        let (mut spreaded, tail) = rest.split_at_checked(length)?;
        *rest = tail;
        let mut events = Vec::with_capacity(length);
        while !spreaded.is_empty() {
            Event::take(&mut spreaded)?.put_with(gather, &mut events);
        }
        Some(Chunk {
            session,
            channel,
            database,
            lost,
            events,
        })
    }

    /// Its events; none if they are malformed, which no frame that was read has.
    #[must_use]
    pub fn events(&self) -> Option<Vec<Event<'_>>> {
        let mut rest = self.events.as_slice();
        let mut found = Vec::new();
        while !rest.is_empty() {
            found.push(Event::take(&mut rest)?);
        }
        Some(found)
    }
}
