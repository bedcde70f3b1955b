//! The keeper's end of a channel: receives requests and sends answers. The peer is hostile. The
//! meaning of requests is unknown here, except for the set of kinds and the length of their fixed
//! parts.
//!
//! Invariant: after a violation the channel is closed and stays closed.

use crate::mapping::{Mapping, Ring};
use crate::ring::{Reader, SMALL_BYTES, Words, Writer};
use crate::socket::{Line, Role, SocketBell};
use crate::{Error, Violation};
use contract::codec::Part;
use contract::message::{BODY_MAX, HEADER_BYTES};
use contract::ring::BESIDE_WORDS;
use contract::{Header, Kind, body};
use std::sync::Arc;
use std::time::Duration;

/// A larger buffer is released when a small message follows.
const KEEP_BYTES: usize = 1024 * 1024;
/// A request with a larger body is likely to take long.
const SHORT_BYTES: usize = 1024;

/// The keeper's end of one channel, served by a thread of its own.
pub struct KeeperEnd {
    requests: Reader<Ring>,
    answers: Writer<Ring>,
    bell: SocketBell,
    mapping: Arc<Mapping>,
}

/// Publishes the current delivery period to a channel's backend
/// ([`contract::ring::PERIOD_OFFSET`]), and what else stands in its header.
#[derive(Clone, Debug)]
pub struct Period(Arc<Mapping>);

impl Period {
    /// Publishes a period.
    pub fn tell(&self, period: u64) {
        self.0.set_period(period);
    }

    /// Publishes whether the channel is recorded ([`contract::ring::WATCH_OFFSET`]).
    pub fn watch(&self, word: u64) {
        self.0.set_watch(word);
    }

    /// Publishes whether the WAL lacks something ([`contract::ring::OWED_OFFSET`]).
    pub fn owe(&self, owed: bool) {
        self.0.set_owed(owed);
    }

    /// Publishes whether an error is to be asked for ([`contract::ring::FAILED_OFFSET`]).
    pub fn fail(&self, failed: bool) {
        self.0.set_failed(failed);
    }
}

/// Answers a request. Its body, which [`KeeperEnd::request`] has given, stays where it is.
pub struct Reply<'a> {
    answers: &'a mut Writer<Ring>,
    bell: &'a mut SocketBell,
}

/// Shows another thread how much the backend has sent.
#[derive(Clone, Debug)]
pub struct Backlog(Arc<Mapping>);

impl Backlog {
    /// Bytes that the backend has published since the channel was opened, as it says.
    pub fn sent(&self) -> u64 {
        self.0.sent()
    }
}

/// Shuts a channel down from another thread.
#[derive(Clone, Debug)]
pub struct Shutdown(Arc<Line>);

impl Shutdown {
    /// Ends the channel: its [`KeeperEnd`] returns [`Error::Closed`] from now on, even from a wait
    /// in progress, and the backend sees end of file.
    pub fn shutdown(&self) {
        self.0.shut_down();
    }
}

impl KeeperEnd {
    pub(crate) fn new(mapping: Arc<Mapping>, line: Arc<Line>) -> KeeperEnd {
        KeeperEnd {
            requests: Reader::new(Ring::request(&mapping)),
            answers: Writer::new(Ring::answer(&mapping)),
            bell: SocketBell::new(line, Role::Keeper),
            mapping,
        }
    }

    /// A handle with which another thread can publish the period.
    pub fn period(&self) -> Period {
        Period(Arc::clone(&self.mapping))
    }

    /// A handle with which another thread can see how much was sent.
    pub fn backlog(&self) -> Backlog {
        Backlog(Arc::clone(&self.mapping))
    }

    /// Bytes of requests that were taken from the ring.
    pub fn taken(&self) -> u64 {
        self.requests.position()
    }

    /// While nothing comes, looks in such intervals for what was sent without waking us; none: only
    /// when woken.
    pub fn look_every(&mut self, interval: Option<Duration>) {
        self.bell.look_every(interval);
    }

    /// For how long a wait may look for the next request before it sleeps, on a processor that nobody
    /// else wants (a thread that sleeps must be woken, which takes time of both sides); zero, as in the
    /// beginning: it sleeps soon.
    pub fn linger(&mut self, limit: Duration) {
        self.bell.linger(limit);
    }

    /// A handle with which another thread can end this channel.
    pub fn shutdown_handle(&self) -> Shutdown {
        Shutdown(Arc::clone(self.bell.line()))
    }

    /// Waits for the next request and returns its header and body, and what answers it. The body may
    /// be stored in `buffer`, whose contents are replaced. The kind is one that a backend may send,
    /// and the body has at least the fixed part of that kind. Complete requests of a backend that has
    /// exited are still delivered before [`Error::Closed`].
    #[inline]
    pub fn request<'a>(
        &'a mut self,
        buffer: &'a mut Vec<u8>,
    ) -> Result<(Header, &'a [u8], Reply<'a>), Error> {
        if self.bell.line().is_down() {
            return Err(Error::Closed);
        }
        let result = take(&mut self.requests, &mut self.bell, buffer, is_request);
        if let Err(Error::Closed | Error::Violation(_)) = result {
            self.bell.line().shut_down();
        }
        let (header, body) = result?;
        let reply = Reply {
            answers: &mut self.answers,
            bell: &mut self.bell,
        };
        Ok((header, body, reply))
    }

    /// Like [`KeeperEnd::request`], but always stores the body in `body`.
    pub fn next(&mut self, body: &mut Vec<u8>) -> Result<Header, Error> {
        if self.bell.line().is_down() {
            return Err(Error::Closed);
        }
        let result = self.copy(body);
        self.checked(result)
    }

    /// Like [`KeeperEnd::next`], but returns `None` if no request has begun to arrive.
    #[inline]
    pub fn try_next(&mut self, body: &mut Vec<u8>) -> Result<Option<Header>, Error> {
        if self.bell.line().is_down() {
            return Err(Error::Closed);
        }
        let result = match self.requests.has_bytes(&mut self.bell) {
            Ok(true) => self.copy(body).map(Some),
            Ok(false) => Ok(None),
            Err(error) => Err(error),
        };
        self.checked(result)
    }

    fn reply(&mut self) -> Reply<'_> {
        Reply {
            answers: &mut self.answers,
            bell: &mut self.bell,
        }
    }

    /// As [`Reply::answer`].
    pub fn answer(&mut self, sequence: u32, parts: &[&[u8]]) -> Result<(), Error> {
        self.reply().answer(sequence, parts)
    }

    /// As [`Reply::give_way`].
    pub fn give_way(&mut self) {
        self.reply().give_way();
    }

    /// As [`Reply::error`].
    pub fn error(&mut self, sequence: u32, error: &body::Error<'_>) -> Result<(), Error> {
        self.reply().error(sequence, error)
    }

    fn copy(&mut self, body: &mut Vec<u8>) -> Result<Header, Error> {
        copy(&mut self.requests, &mut self.bell, body, is_request)
    }

    #[inline]
    fn checked<T>(&mut self, result: Result<T, Error>) -> Result<T, Error> {
        if let Err(Error::Closed | Error::Violation(_)) = result {
            self.bell.line().shut_down();
        }
        result
    }
}

impl Reply<'_> {
    /// Answers the request with this sequence number. The body is the concatenation of the parts.
    pub fn answer(&mut self, sequence: u32, parts: &[&[u8]]) -> Result<(), Error> {
        self.send(Kind::Answer, sequence, parts)
    }

    /// Answers with an error.
    pub fn error(&mut self, sequence: u32, error: &body::Error<'_>) -> Result<(), Error> {
        let mut bytes = Vec::new();
        error.put(&mut bytes);
        self.send(Kind::Error, sequence, &[&bytes])
    }

    /// To be called after an answer that is followed by a longer wait of the backend's, as for the
    /// disk: lets the backend run first. What this thread does next, until it sleeps, it can do
    /// meanwhile.
    pub fn give_way(&mut self) {
        self.bell.give_way();
    }

    fn send(&mut self, kind: Kind, sequence: u32, parts: &[&[u8]]) -> Result<(), Error> {
        if self.bell.line().is_down() {
            return Err(Error::Closed);
        }
        let result = send(self.answers, self.bell, kind, sequence, parts);
        if let Err(Error::Closed | Error::Violation(_)) = result {
            self.bell.line().shut_down();
        }
        result
    }
}

impl Drop for KeeperEnd {
    fn drop(&mut self) {
        // Other handles may keep the socket open, but the backend must see the end now.
        self.bell.line().shut_down();
    }
}

/// Writes one message and publishes it.
#[inline]
pub(crate) fn send(
    writer: &mut Writer<Ring>,
    bell: &mut SocketBell,
    kind: Kind,
    sequence: u32,
    parts: &[&[u8]],
) -> Result<(), Error> {
    let mut length = 0usize;
    for part in parts {
        length = length.saturating_add(part.len());
    }
    if length > BODY_MAX {
        return Err(Error::TooLong);
    }
    let header = Header {
        length: length as u32,
        kind: kind as u16,
        sequence,
    };
    if HEADER_BYTES + length <= SMALL_BYTES {
        let words = small(&header, parts);
        let count = HEADER_BYTES + length;
        if kind.is_answered() || matches!(kind, Kind::Answer | Kind::Error) {
            return writer.send(bell, &words, count);
        }
        writer.write_small(bell, &words, count)?;
        return writer.publish(bell);
    }
    writer.write(bell, &header.encode())?;
    for part in parts {
        writer.write(bell, part)?;
    }
    writer.publish(bell)
}

/// A small message as words.
#[inline]
fn small(header: &Header, parts: &[&[u8]]) -> Words {
    let mut words = [0; BESIDE_WORDS];
    let word = |eight: &[u8; 8]| u64::from_le_bytes(*eight);
    let header = header.encode();
    let (eights, _) = header.as_chunks();
    let (start, body) = words.split_at_mut(eights.len());
    for (to, eight) in start.iter_mut().zip(eights) {
        *to = word(eight);
    }
    let joined;
    let bytes = match parts {
        [one] => one,
        _ => {
            joined = parts.concat();
            &*joined
        }
    };
    let (eights, rest) = bytes.as_chunks();
    for (to, eight) in body.iter_mut().zip(eights) {
        *to = word(eight);
    }
    if let Some(to) = body.get_mut(eights.len()) {
        *to = rest
            .iter()
            .rev()
            .fold(0, |word, byte| word << 8 | u64::from(*byte));
    }
    words
}

fn is_request(kind: Kind) -> bool {
    !matches!(kind, Kind::Answer | Kind::Error)
}

/// Checks a header.
#[inline]
fn check(header: &Header, expected: impl Fn(Kind) -> bool) -> Result<(), Error> {
    let length = header.length as usize;
    if length > BODY_MAX {
        return Err(Error::Violation(Violation::Length));
    }
    let kind = Kind::from_u16(header.kind)
        .filter(|kind| expected(*kind))
        .ok_or(Error::Violation(Violation::Kind))?;
    if length < kind.fixed_bytes() {
        return Err(Error::Violation(Violation::Short));
    }
    Ok(())
}

/// Receives one message: checks the header and returns the body, which is in `buffer` unless it was
/// sent inline.
#[inline]
pub(crate) fn take<'a>(
    reader: &'a mut Reader<Ring>,
    bell: &mut SocketBell,
    buffer: &'a mut Vec<u8>,
    expected: impl Fn(Kind) -> bool,
) -> Result<(Header, &'a [u8]), Error> {
    let whole = |bytes: &[u8]| {
        let header = bytes.first_chunk().map(Header::decode);
        header.is_some_and(|header| HEADER_BYTES + header.length as usize == bytes.len())
    };
    if let Some(count) = reader.take_beside(bell, whole)? {
        let (header, body) = reader
            .beside()
            .split_first_chunk()
            .unwrap_or((&[0; HEADER_BYTES], &[]));
        let header = Header::decode(header);
        check(&header, expected)?;
        return Ok((header, body.get(..count - HEADER_BYTES).unwrap_or(&[])));
    }
    let header = copy(reader, bell, buffer, expected)?;
    Ok((header, buffer))
}

/// Receives one message into `body`, checking its header.
pub(crate) fn copy(
    reader: &mut Reader<Ring>,
    bell: &mut SocketBell,
    body: &mut Vec<u8>,
    expected: impl Fn(Kind) -> bool,
) -> Result<Header, Error> {
    let mut bytes = [0; HEADER_BYTES];
    reader.read(bell, &mut bytes)?;
    let header = Header::decode(&bytes);
    check(&header, expected)?;
    let length = header.length as usize;
    if length > SHORT_BYTES {
        bell.rest();
    }
    body.clear();
    if body.capacity() > KEEP_BYTES && length <= KEEP_BYTES {
        body.shrink_to(KEEP_BYTES);
    }
    reader.append(bell, length, body)?;
    Ok(header)
}
