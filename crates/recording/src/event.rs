//! What stands in a frame: chunks, each of messages of one channel in their order.
//!
//! A chunk: session `u64`, channel `u32`, database `u32`, messages that were lost before it `u64`,
//! length `u32`, events. An event: microseconds since the recording began `u64`, how many it took
//! `u32`, kind `u16`, what came of it `u8`, zero `u8`, lengths of body and answer `u32`, body,
//! answer. In a frame the last two are shortened (`narrow`), and so is the chunk's length, but not theirs.

use crate::narrow::{narrow, widen};
use crate::order::take;

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
    /// Microseconds until it was done, and its answer ready to be sent.
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

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}

impl<'a> Event<'a> {
    /// Bytes that it takes.
    #[must_use]
    #[inline]
    pub fn size(&self) -> usize {
        let (_, answer) = self.answer();
        EVENT_BYTES + self.body.len() + answer.len()
    }

    #[inline]
    fn answer(&self) -> (u8, &'a [u8]) {
        match self.outcome {
            Outcome::OneWay => (0, &[]),
            Outcome::Answer(bytes) => (1, bytes),
            Outcome::Error(bytes) => (2, bytes),
        }
    }

    /// Appends it, as [`Chunk::events`] has it.
    #[inline]
    pub fn put(&self, out: &mut Vec<u8>) {
        let (_, answer) = self.answer();
        out.extend_from_slice(&self.head());
        out.extend_from_slice(self.body);
        out.extend_from_slice(answer);
    }

    /// Appends it with body and answer shortened.
    fn put_short(&self, out: &mut Vec<u8>) {
        let (_, answer) = self.answer();
        out.extend_from_slice(&self.head());
        narrow(self.body, out);
        narrow(answer, out);
    }

    /// What stands before its body.
    #[inline]
    fn head(&self) -> [u8; EVENT_BYTES] {
        let (outcome, answer) = self.answer();
        let words = [
            self.at,
            u64::from(self.took) | u64::from(self.kind) << 32 | u64::from(outcome) << 48,
            u64::from(length(self.body)) | u64::from(length(answer)) << 32,
        ];
        let mut head = [0; EVENT_BYTES];
        for (bytes, word) in head.as_chunks_mut().0.iter_mut().zip(words) {
            *bytes = word.to_le_bytes();
        }
        head
    }

    /// Lengths of body and answer, as the head says.
    fn lengths(head: &[u8; EVENT_BYTES]) -> [usize; 2] {
        let word = |at| head.get(at..).and_then(<[u8]>::first_chunk).copied();
        [16, 20].map(|at| word(at).map_or(0, u32::from_le_bytes) as usize)
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
        let begin = out.len() + size_of::<u32>();
        out.extend([0; size_of::<u32>()]);
        out.reserve(self.events.len());
        let mut rest = self.events.as_slice();
        while let Some(event) = Event::take(&mut rest) {
            event.put_short(out);
        }
        let short = length(out.get(begin..).unwrap_or_default()).to_le_bytes();
        if let Some(place) = out.get_mut(begin - short.len()..begin) {
            place.copy_from_slice(&short);
        }
    }

    /// The next one.
    pub(crate) fn take(rest: &mut &[u8]) -> Option<Chunk> {
        let session = u64::from_le_bytes(take(rest)?);
        let channel = u32::from_le_bytes(take(rest)?);
        let database = u32::from_le_bytes(take(rest)?);
        let lost = u64::from_le_bytes(take(rest)?);
        let length = u32::from_le_bytes(take(rest)?) as usize;
        let (mut short, tail) = rest.split_at_checked(length)?;
        *rest = tail;
        let mut events = Vec::with_capacity(length);
        while !short.is_empty() {
            let (head, tail) = short.split_first_chunk::<EVENT_BYTES>()?;
            short = tail;
            events.extend_from_slice(head);
            for length in Event::lengths(head) {
                widen(&mut short, length, &mut events)?;
            }
        }
        let chunk = Chunk {
            session,
            channel,
            database,
            lost,
            events,
        };
        chunk.events().is_some().then_some(chunk)
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
