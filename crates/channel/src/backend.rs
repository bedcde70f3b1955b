//! The backend's end of a channel in Rust, for tests and benchmarks. The real one is written in C
//! and also handles PostgreSQL's interrupts, which this one does not.

use crate::keeper::{send, take};
use crate::mapping::{Mapping, Ring};
use crate::ring::{Reader, Writer};
use crate::socket::{self, Line, Role, SocketBell};
use crate::{Error, Violation};
use contract::codec::Part;
use contract::hello::{Hello, Status, WELCOME_BYTES, Welcome};
use contract::{Code, Kind, body};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Why no channel could be opened.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The keeper refused the connection: the reason, and the contract version that it speaks.
    #[error("the keeper (contract version {1}) refuses: {0:?}")]
    Refused(Status, u32),
    /// The socket or the shared memory failed, or a timeout expired.
    #[error("cannot connect to the keeper: {0}")]
    Io(#[from] io::Error),
    /// The peer does not speak the contract.
    #[error("no keeper answers on the socket: {0}")]
    Malformed(&'static str),
}

/// An answer of the keeper.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The result.
    Ok(Vec<u8>),
    /// An error, of this request or of an earlier one-way request.
    Err {
        /// SQLSTATE.
        sqlstate: [u8; 5],
        /// Error code, independent of the message texts.
        code: Code,
        /// What happened.
        message: String,
        /// Detail; may be empty.
        detail: String,
        /// Hint; may be empty.
        hint: String,
    },
}

/// The backend's end of one channel.
pub struct BackendEnd {
    requests: Writer<Ring>,
    answers: Reader<Ring>,
    bell: SocketBell,
    welcome: Welcome,
    sequence: u32,
    /// Reused for answers.
    buffer: Vec<u8>,
    mapping: Arc<Mapping>,
}

impl BackendEnd {
    /// Connects to a keeper. The timeout covers the whole procedure.
    pub fn connect(
        path: &Path,
        hello: Hello,
        timeout: Duration,
    ) -> Result<BackendEnd, ConnectError> {
        BackendEnd::connect_by(path, None, hello, timeout)
    }

    /// The same, with the device that is shared with the keeper.
    pub fn connect_by(
        path: &Path,
        device: Option<&File>,
        hello: Hello,
        timeout: Duration,
    ) -> Result<BackendEnd, ConnectError> {
        let deadline = Instant::now() + timeout;
        let stream = socket::connect(path, timeout)?;
        socket::send_with(&stream, &hello.encode(), None)?;
        let mut bytes = [0; WELCOME_BYTES];
        let fd = socket::receive_with(&stream, &mut bytes, deadline)?;
        let welcome =
            Welcome::decode(&bytes).ok_or(ConnectError::Malformed("this is no welcome"))?;
        if welcome.status != Status::Accepted {
            return Err(ConnectError::Refused(welcome.status, welcome.version));
        }
        if welcome.version != contract::VERSION {
            let status = Status::WrongVersion;
            return Err(ConnectError::Refused(status, welcome.version));
        }
        let mapping = match (fd, device, welcome.range) {
            (Some(fd), _, 0) => Mapping::open(fd.as_fd())?,
            (None, Some(device), 1..) => Mapping::open_in(device, welcome.range)?,
            _ => return Err(ConnectError::Malformed("there came no shared memory")),
        };
        let mapping = Arc::new(mapping);
        socket::no_deadline(&stream)?;
        Ok(BackendEnd {
            requests: Writer::new(Ring::request(&mapping)),
            answers: Reader::new(Ring::answer(&mapping)),
            bell: SocketBell::new(Line::new(stream), Role::Backend),
            welcome,
            sequence: 0,
            buffer: Vec::new(),
            mapping,
        })
    }

    /// The keeper's welcome message.
    pub fn welcome(&self) -> &Welcome {
        &self.welcome
    }

    /// The current delivery period ([`contract::ring::PERIOD_OFFSET`]).
    pub fn period(&self) -> u64 {
        self.mapping.period()
    }

    /// Sends a one-way request whose body is the concatenation of the parts.
    #[inline]
    pub fn send(&mut self, kind: Kind, parts: &[&[u8]]) -> Result<(), Error> {
        self.sequence = self.sequence.wrapping_add(1);
        let (requests, bell) = (&mut self.requests, &mut self.bell);
        let result = send(requests, bell, kind, self.sequence, parts);
        self.checked(result)
    }

    /// Sends an answered request and waits for its answer.
    pub fn call(&mut self, kind: Kind, parts: &[&[u8]]) -> Result<Answer, Error> {
        let mut body = Vec::new();
        let failed = self.call_into(kind, parts, &mut body)?;
        Ok(failed.unwrap_or(Answer::Ok(body)))
    }

    /// Like [`BackendEnd::call`], but stores the result in `body`, replacing its contents. Returns
    /// the answer only if it is an error.
    #[inline]
    pub fn call_into(
        &mut self,
        kind: Kind,
        parts: &[&[u8]],
        body: &mut Vec<u8>,
    ) -> Result<Option<Answer>, Error> {
        self.send(kind, parts)?;
        let result = self.answer(body);
        self.checked(result)
    }

    #[inline]
    fn answer(&mut self, body: &mut Vec<u8>) -> Result<Option<Answer>, Error> {
        let is_answer = |kind| matches!(kind, Kind::Answer | Kind::Error);
        let (answers, bell) = (&mut self.answers, &mut self.bell);
        let (header, bytes) = take(answers, bell, &mut self.buffer, is_answer)?;
        if header.sequence != self.sequence {
            return Err(Error::Violation(Violation::Sequence));
        }
        if header.kind == Kind::Answer as u16 {
            body.clear();
            body.extend_from_slice(bytes);
            return Ok(None);
        }
        let failed = failure(bytes).ok_or(Error::Violation(Violation::Short))?;
        Ok(Some(failed))
    }

    #[inline]
    fn checked<T>(&mut self, result: Result<T, Error>) -> Result<T, Error> {
        if let Err(Error::Closed | Error::Violation(_)) = result {
            self.bell.line().shut_down();
        }
        result
    }
}

impl Drop for BackendEnd {
    fn drop(&mut self) {
        self.bell.line().shut_down();
    }
}

/// Decodes the body of a [`Kind::Error`].
fn failure(body: &[u8]) -> Option<Answer> {
    let error = body::Error::decode(body).ok()?;
    Some(Answer::Err {
        sqlstate: error.sqlstate,
        code: Code::from_u16(error.code),
        message: error.message.to_owned(),
        detail: error.detail.to_owned(),
        hint: error.hint.to_owned(),
    })
}
