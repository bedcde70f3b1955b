//! COPY in both directions.
use bytes::Bytes;
use client::Failure;
use client::copy::CopyStream;
use rewrite::{CopyPlan, Direction};

use super::queue::Expect;
use super::{Core, Flow, Step, Stop, Wait};
use crate::wire::{frame, frontend};

/// COPY from the client.
pub(super) struct In {
    /// The stream that seals the data; `None` if nothing is protected.
    stream: Option<CopyStream>,
    /// Started by Execute.
    pub(super) extended: bool,
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
            b'd' => stream.push(&self.session, frame::body(message), &mut out),
            b'c' => stream.finish(&self.session, &mut out),
            _ => Ok(()),
        };
        if let Refused::Sealed(none @ None) = &mut self.copy_refused {
            *none = stream.refused();
        }
        if !out.is_empty() {
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
        let stream = self.stream(plan, Direction::From)?;
        self.copy_refused = match &stream {
            Some(_) => Refused::Sealed(None),
            None => Refused::Plain,
        };
        self.copy_in = Some(In { stream, extended });
        if extended {
            // The server ignores a Sync received during COPY.
            self.queue.retain(|e| !matches!(e, Expect::Sync));
            self.pipeline = true;
        }
        Ok(())
    }

    /// CopyOutResponse: data follows.
    pub(super) fn begin_copy_out(&mut self, plan: Option<CopyPlan>) -> Step {
        self.copy_out = self.stream(plan, Direction::To)?;
        Ok(())
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
        let Some(stream) = &mut self.copy_out else {
            self.to_client.extend_from_slice(message);
            return Ok(());
        };
        let mut out = Vec::new();
        stream
            .push(&self.session, frame::body(message), &mut out)
            .map_err(Stop::Fatal)?;
        if !out.is_empty() {
            frontend::copy_data(&mut self.to_client, &out);
        }
        Ok(())
    }

    /// Processes CopyDone from the server.
    pub(super) fn end_copy_out(&mut self) -> Step {
        if let Some(mut stream) = self.copy_out.take() {
            let mut out = Vec::new();
            stream
                .finish(&self.session, &mut out)
                .map_err(Stop::Fatal)?;
            if !out.is_empty() {
                frontend::copy_data(&mut self.to_client, &out);
            }
        }
        Ok(())
    }
}
