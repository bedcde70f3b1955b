//! The client's encoding. The server converts to and from it; the connection's analysis, and all
//! values that are sealed and opened, are in UTF-8.
//!
//! Strings of messages are converted where messages come in, and back where they leave: statements,
//! names, errors. Values are converted where they are sealed and opened (`values_from_client`,
//! `value_to_client`); those that only pass through stay as they are.
//!
//! Invariant: what was appended to `to_client` and `to_server` before this call of the state machine
//! is converted already.
use std::borrow::Cow;

use bytes::{Bytes, BytesMut};
use client::{Failure, Protected};
use contract::TypeCode;
use contract::report::SETTING;

use super::{Core, Flow, Step, Stop};
use crate::charset::Charset;
use crate::wire::frame::body;
use crate::wire::frontend::Bind;
use crate::wire::strings::{convert_from, converted, of_backend, of_frontend};

/// The client's encoding, as the server reports it.
#[derive(Clone, Copy)]
pub(super) enum ClientEncoding {
    Utf8,
    Charset(Charset),
    /// One that the proxy cannot convert.
    Other,
}

impl ClientEncoding {
    pub(super) fn named(name: &str) -> ClientEncoding {
        if name.eq_ignore_ascii_case("utf8") || name.eq_ignore_ascii_case("sql_ascii") {
            return ClientEncoding::Utf8;
        }
        Charset::named(name).map_or(ClientEncoding::Other, ClientEncoding::Charset)
    }

    pub(super) fn charset(self) -> Option<Charset> {
        match self {
            ClientEncoding::Charset(charset) => Some(charset),
            ClientEncoding::Utf8 | ClientEncoding::Other => None,
        }
    }
}

/// The refusal of what the client's encoding does not allow.
pub(super) fn needs_utf8(what: &str) -> Failure {
    let message = format!("confide: client_encoding must be UTF8 for {what}");
    Failure::new("0A000", message).hint("SET client_encoding TO 'UTF8'.")
}

/// Whether a failure is about text that cannot be converted.
fn is_of_text(failure: &Failure) -> bool {
    matches!(&*failure.sqlstate, "22P05" | "22021")
}

/// Whether values of a type are text in the binary format, too.
fn is_text(code: TypeCode) -> bool {
    use TypeCode::{Bpchar, Json, Jsonb, Text, Varchar};
    matches!(code, Text | Varchar | Bpchar | Json | Jsonb)
}

/// Whether a value is text in the client's encoding. An array in the binary format is refused if it may have
/// such text in it.
fn has_text(of: Protected, format: i16, value: &[u8]) -> Result<bool, Failure> {
    if format == client::TEXT {
        return Ok(true);
    }
    match of {
        Protected::Scalar(code) | Protected::Soft(code, _) => Ok(is_text(code)),
        Protected::Array(code) | Protected::SoftArray(code)
            if is_text(code) && !value.is_ascii() =>
        {
            Err(needs_utf8("protected arrays in binary format"))
        }
        _ => Ok(false),
    }
}

impl Core {
    /// From here on what is appended for both sides is not converted yet.
    pub(super) fn mark(&mut self) {
        self.converted = (self.to_client.len(), self.to_server.len());
    }

    /// Converts what was appended since [`Core::mark`].
    pub(super) fn convert(&mut self) -> Step {
        let (client, server) = self.converted;
        if let Some(charset) = self.encoding.charset() {
            convert_from(&mut self.to_client, client, of_backend, |text| {
                Ok::<_, Stop>(charset.encode_message(text).into_owned())
            })?;
            convert_from(&mut self.to_server, server, of_frontend, |text| {
                let text = charset.encode(text).map_err(Stop::Fatal)?;
                Ok::<_, Stop>(text.into_owned())
            })?;
        }
        self.mark();
        Ok(())
    }

    /// The server has reported the client's encoding.
    pub(super) fn on_encoding(&mut self, name: &str) -> Step {
        self.convert()?;
        self.encoding = ClientEncoding::named(name);
        Ok(())
    }

    /// The client's message with its strings in UTF-8; a refusal if that is not possible.
    pub(super) fn utf8_of_client(&self, message: Bytes) -> Step<Result<Bytes, Failure>> {
        let Some(charset) = self.encoding.charset() else {
            return Ok(Ok(message));
        };
        let text = |text| charset.decode(text).map_err(Stop::Fatal);
        match converted(&message, of_frontend, text) {
            Ok(Some(made)) => Ok(Ok(made.freeze())),
            Ok(None) => Ok(Ok(message)),
            Err(Stop::Fatal(failure)) if is_of_text(&failure) => Ok(Err(failure)),
            Err(stop) => Err(stop),
        }
    }

    /// Answers a message that is not in the client's encoding.
    pub(super) fn refuse_strings(&mut self, tag: u8, failure: Failure) -> Step<Flow> {
        match tag {
            b'Q' => Ok(self.refuse_query(failure)),
            b'P' | b'B' | b'D' | b'E' | b'C' => Ok(self.refuse_extended(failure)),
            _ => Err(Stop::Fatal(failure)),
        }
    }

    /// The server's message with its strings in UTF-8; `None` if they are.
    pub(super) fn utf8_of_server(&self, message: &[u8]) -> Step<Option<BytesMut>> {
        let Some(charset) = self.encoding.charset() else {
            return Ok(None);
        };
        // The extension sends its reports as they are.
        if message.first() == Some(&b'S') && body(message).starts_with(SETTING.as_bytes()) {
            return Ok(None);
        }
        converted(message, of_backend, |text| {
            charset.decode(text).map_err(Stop::Fatal)
        })
    }

    /// A string that the server has sent as a value to the proxy itself.
    pub(super) fn string_from_server(charset: Option<Charset>, value: &[u8]) -> String {
        let text = charset.and_then(|charset| charset.decode(value).ok());
        String::from_utf8_lossy(text.as_deref().unwrap_or(value)).into_owned()
    }

    /// The encoding that the client's values are converted from and to. While the proxy acts as the client they
    /// stay in UTF-8.
    pub(super) fn charset_of_values(&self) -> Option<Charset> {
        self.encoding.charset().filter(|_| self.script.is_none())
    }

    /// The values of a Bind as they are sealed: in UTF-8. `types` has the protected types of those that are
    /// sealed.
    pub(super) fn values_from_client<'a>(
        &self,
        bind: &Bind<'a>,
        protected: impl Fn(usize) -> Option<Protected>,
    ) -> Result<Vec<Option<Cow<'a, [u8]>>>, Failure> {
        let charset = self.charset_of_values();
        let convert = |(at, value): (usize, &Option<&'a [u8]>)| {
            let Some(value) = *value else {
                return Ok(None);
            };
            let (Some(charset), format) = (charset, bind.format(at)) else {
                return Ok(Some(Cow::Borrowed(value)));
            };
            Ok(Some(match protected(at) {
                Some(of) if has_text(of, format, value)? => charset.decode(value)?,
                Some(_) => Cow::Borrowed(value),
                // It is only looked at.
                None => charset.decode(value).unwrap_or(Cow::Borrowed(value)),
            }))
        };
        bind.values.iter().enumerate().map(convert).collect()
    }
}

/// An opened value as the client gets it.
pub(super) fn value_to_client(
    charset: Option<Charset>,
    (of, format): (Protected, i16),
    value: &[u8],
) -> Result<Cow<'_, [u8]>, Failure> {
    match charset {
        Some(charset) if has_text(of, format, value)? => charset.encode(value),
        _ => Ok(Cow::Borrowed(value)),
    }
}
