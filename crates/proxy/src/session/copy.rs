//! COPY in both directions.
use std::borrow::Cow;

use bytes::Bytes;
use client::Failure;
use client::copy::CopyStream;
use rewrite::{CopyPlan, Direction};

use super::queue::Expect;
use super::{Core, Flow, Step, Stop, Wait};
use crate::charset::Charset;
use crate::wire::{frame, frontend};

/// COPY from the client.
pub(super) struct In {
    /// The stream that seals the data; `None` if nothing is protected.
    stream: Option<CopyStream>,
    /// The encoding of the data, of client and server, if it is not UTF-8.
    charsets: Charsets,
    /// The beginning of a character whose end is in the next message.
    partial: Vec<u8>,
    /// Started by Execute.
    pub(super) extended: bool,
}

/// COPY of protected columns to the client.
pub(super) struct Out {
    stream: CopyStream,
    charsets: Charsets,
}

/// The encodings of the data on both sides; `None` for UTF-8.
#[derive(Clone, Copy, Default)]
struct Charsets {
    client: Option<Charset>,
    server: Option<Charset>,
}

fn decoded(charset: Option<Charset>, data: &[u8]) -> Result<Cow<'_, [u8]>, Failure> {
    charset.map_or(Ok(Cow::Borrowed(data)), |charset| charset.decode(data))
}

fn encoded(charset: Option<Charset>, data: &[u8]) -> Result<Cow<'_, [u8]>, Failure> {
    charset.map_or(Ok(Cow::Borrowed(data)), |charset| charset.encode(data))
}

/// The data up to its last whole character, after the beginning of one that was left before; what is
/// behind it is left in turn.
fn whole<'a>(charset: Option<Charset>, partial: &mut Vec<u8>, data: &'a [u8]) -> Cow<'a, [u8]> {
    let Some(charset) = charset else {
        return Cow::Borrowed(data);
    };
    let mut data = match partial.is_empty() {
        true => Cow::Borrowed(data),
        false => Cow::Owned([partial.as_slice(), data].concat()),
    };
    let end = charset.whole(&data);
    *partial = data.get(end..).unwrap_or_default().to_vec();
    if !partial.is_empty() {
        data.to_mut().truncate(end);
    }
    data
}

/// What is known about the data of the last COPY from the client if it fails.
pub(super) enum Refused {
    /// None of the data was sealed.
    Plain,
    /// The first value that its type does not accept, if any.
    Sealed(Option<client::copy::Refused>),
}

impl Core {
    /// Processes CopyData, CopyDone and CopyFail from the client.
    pub(super) fn on_copy_input(&mut self, tag: u8, message: &Bytes) -> Step<Flow> {
        let Some(copy) = &mut self.copy_in else {
            if self.queue.is_empty() {
                // The COPY is over (it failed): ignore the rest, like the server.
                return Ok(Flow::Done);
            }
            return Ok(self.wait_for(Wait::CopyStart));
        };
        let Some(stream) = &mut copy.stream else {
            self.to_server.extend_from_slice(message);
            if tag != b'd' {
                self.copy_in = None;
            }
            return Ok(Flow::Done);
        };
        let mut out = Vec::new();
        let made = match tag {
            b'd' => {
                let data = whole(
                    copy.charsets.client,
                    &mut copy.partial,
                    frame::body(message),
                );
                decoded(copy.charsets.client, &data)
                    .and_then(|data| stream.push(&self.session, &data, &mut out))
            }
            b'c' => decoded(copy.charsets.client, &copy.partial)
                .and_then(|_| stream.finish(&self.session, &mut out)),
            _ => Ok(()),
        };
        if let Refused::Sealed(none @ None) = &mut self.copy_refused {
            *none = stream.refused();
        }
        if !out.is_empty() {
            let out = encoded(copy.charsets.server, &out).map_err(Stop::Fatal)?;
            frontend::copy_data(&mut self.to_server, &out);
        }
        if let Err(failure) = made {
            let line = stream.failed().unwrap_or_default();
            frontend::copy_fail(&mut self.to_server, "confide: refused");
            self.override_error = Some((failure, line));
            self.copy_in = None;
            return Ok(Flow::Done);
        }
        if tag != b'd' {
            self.to_server.extend_from_slice(message);
            self.copy_in = None;
        }
        Ok(Flow::Done)
    }

    /// CopyInResponse: the client may send data.
    pub(super) fn begin_copy_in(&mut self, plan: Option<CopyPlan>, extended: bool) -> Step {
        let charsets = self.charsets(plan.as_ref());
        let stream = self.stream(plan, Direction::From)?;
        self.copy_refused = match &stream {
            Some(_) => Refused::Sealed(None),
            None => Refused::Plain,
        };
        self.copy_in = Some(In {
            stream,
            charsets,
            partial: Vec::new(),
            extended,
        });
        if extended {
            // The server ignores a Sync received during COPY.
            self.queue.retain(|e| !matches!(e, Expect::Sync));
            self.pipeline = true;
        }
        Ok(())
    }

    /// CopyOutResponse: data follows.
    pub(super) fn begin_copy_out(&mut self, plan: Option<CopyPlan>) -> Step {
        let charsets = self.charsets(plan.as_ref());
        let stream = self.stream(plan, Direction::To)?;
        self.copy_out = stream.map(|stream| Out { stream, charsets });
        Ok(())
    }

    /// With the option ENCODING, which only UTF-8 passes, the data is not in the client's encoding.
    fn charsets(&self, plan: Option<&CopyPlan>) -> Charsets {
        if plan.is_none_or(|plan| plan.options.encoding.is_some()) {
            return Charsets::default();
        }
        Charsets {
            client: self.charset_of_values(),
            server: self.encoding.charset(),
        }
    }

    fn stream(&self, plan: Option<CopyPlan>, direction: Direction) -> Step<Option<CopyStream>> {
        let Some(plan) = plan else {
            if self.enabled {
                return Err(Stop::Fatal(Failure::new(
                    "08P01",
                    "confide: the server began a COPY that was not asked for",
                )));
            }
            return Ok(None);
        };
        if plan.direction != direction {
            return Err(Stop::Fatal(Failure::new(
                "08P01",
                "confide: the server began a COPY in the other direction",
            )));
        }
        CopyStream::new(&plan).map_err(Stop::Fatal)
    }

    /// Processes CopyData from the server.
    pub(super) fn copy_output(&mut self, message: &[u8]) -> Step {
        let Some(Out { stream, charsets }) = &mut self.copy_out else {
            self.to_client.extend_from_slice(message);
            return Ok(());
        };
        let mut out = Vec::new();
        decoded(charsets.server, frame::body(message))
            .and_then(|data| stream.push(&self.session, &data, &mut out))
            .map_err(Stop::Fatal)?;
        if !out.is_empty() {
            let out = encoded(charsets.client, &out).map_err(Stop::Fatal)?;
            frontend::copy_data(&mut self.to_client, &out);
        }
        Ok(())
    }

    /// Processes CopyDone from the server.
    pub(super) fn end_copy_out(&mut self) -> Step {
        if let Some(Out {
            mut stream,
            charsets,
        }) = self.copy_out.take()
        {
            let mut out = Vec::new();
            stream
                .finish(&self.session, &mut out)
                .map_err(Stop::Fatal)?;
            if !out.is_empty() {
                let out = encoded(charsets.client, &out).map_err(Stop::Fatal)?;
                frontend::copy_data(&mut self.to_client, &out);
            }
        }
        Ok(())
    }
}
