//! Connects to one of the servers that the configuration names, and authenticates there.
//!
//! The servers are tried in their order. One that does not answer, is starting or stopping, or is
//! not of the kind that `target_session_attrs` requires is skipped. For a user whom the server
//! authenticates itself the kind is known only when the client is connected: such a client is
//! refused, and the next one is connected to the next server.
//!
//! Invariant: a client is never served by a server of the wrong kind.
use std::time::Duration;

use bytes::BytesMut;
use client::Failure;
use login::User;
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use crate::authentication;
use crate::config::Target;
use crate::shared::Shared;
use crate::sockets::{Connection, Stream};
use crate::wire::{backend, frame};

/// Maximum length of what a server sends before it is ready.
const START_MAX: usize = 1 << 24;

/// A connection to a server.
pub struct Dialled {
    /// The connection.
    pub server: Connection,
    /// Position of the server in the configuration.
    pub place: usize,
    /// Notices for the client.
    pub said: BytesMut,
    /// What the server has sent after authentication.
    pub from_server: BytesMut,
}

/// What a server reports about its kind.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Kind {
    /// `in_hot_standby`.
    pub standby: bool,
    /// `default_transaction_read_only`.
    pub read_only: bool,
}

impl Kind {
    /// Notes a reported setting.
    pub fn setting(&mut self, name: &str, value: &str) {
        match name {
            "in_hot_standby" => self.standby = value == "on",
            "default_transaction_read_only" => self.read_only = value == "on",
            _ => {}
        }
    }

    /// Whether a server of this kind is wanted.
    pub fn is(self, target: Target) -> bool {
        let writes = !self.standby && !self.read_only;
        match target {
            Target::Any | Target::PreferStandby => true,
            Target::ReadWrite => writes,
            Target::ReadOnly => !writes,
            Target::Primary => !self.standby,
            Target::Standby => self.standby,
        }
    }
}

/// The refusal of a server of another kind.
pub fn wrong_kind(target: Target) -> Failure {
    Failure::new("08001", format!("confide: no server is {}", target.name()))
        .hint("Check upstream and target_session_attrs in the proxy's configuration.")
}

/// Whether another server, or the same one later, may take the client.
pub fn passes(failure: &Failure) -> bool {
    let code = failure.sqlstate.as_str();
    code.starts_with("08") && code != "08P01" || code.starts_with("57P")
}

/// Connects and sends the client's startup packet; as a user of the proxy's list also
/// authenticates.
pub async fn dial(shared: &Shared, raw: &[u8], user: Option<&User>) -> Result<Dialled, Failure> {
    let target = shared.config.target_session_attrs;
    if target == Target::PreferStandby && user.is_some() {
        let standby = among(shared, raw, user, Target::Standby).await;
        if standby.is_ok() {
            return standby;
        }
    }
    among(shared, raw, user, target).await
}

async fn among(
    shared: &Shared,
    raw: &[u8],
    user: Option<&User>,
    target: Target,
) -> Result<Dialled, Failure> {
    let mut failure = wrong_kind(target);
    for place in shared.upstream.order(user.is_none()) {
        match one(shared, raw, user, target, place).await {
            Ok(dialled) => return Ok(dialled),
            Err(error) if passes(&error) => failure = error,
            Err(error) => return Err(error),
        }
    }
    Err(failure)
}

async fn one(
    shared: &Shared,
    raw: &[u8],
    user: Option<&User>,
    target: Target,
    place: usize,
) -> Result<Dialled, Failure> {
    let wait = Duration::from_secs(shared.config.connect_timeout_seconds);
    let late = || Failure::new("08006", "confide: authentication took too long");
    let mut server = connected(shared, raw, place).await?;
    let (mut said, mut from_server) = (BytesMut::new(), BytesMut::new());
    if let Some(user) = user {
        let proof = authentication::server(&mut server.stream, user, &mut said);
        from_server = timeout(wait, proof).await.map_err(|_| late())??;
        if target != Target::Any || shared.upstream.several() {
            let kind = kind_of(&mut server.stream, &mut from_server);
            let kind = timeout(wait, kind).await.map_err(|_| late())??;
            if !kind.is(target) {
                return Err(wrong_kind(target));
            }
        }
    }
    Ok(Dialled {
        server,
        place,
        said,
        from_server,
    })
}

async fn connected(shared: &Shared, raw: &[u8], place: usize) -> Result<Connection, Failure> {
    let wait = Duration::from_secs(shared.config.connect_timeout_seconds);
    let why = match timeout(wait, shared.upstream.connect(place, raw)).await {
        Ok(Ok(server)) => return Ok(server),
        // For system errors the kind is reported; our errors and TLS errors explain themselves.
        Ok(Err(error)) => match error.get_ref() {
            Some(ours) => ours.to_string(),
            None => error.kind().to_string(),
        },
        Err(_) => "timed out".to_owned(),
    };
    let message = format!("confide: cannot connect to the server: {why}");
    Err(Failure::new("08001", message))
}

/// Reads, without consuming it, what the server sends until it is ready.
async fn kind_of(stream: &mut Box<dyn Stream>, input: &mut BytesMut) -> Result<Kind, Failure> {
    let mut kind = Kind::default();
    let mut at = 0;
    loop {
        let rest = BytesMut::from(input.get(at..).unwrap_or_default());
        let malformed = |e: crate::wire::Malformed| Failure::new("08P01", e.to_string());
        let Some(length) = frame::first(&rest, START_MAX).map_err(malformed)? else {
            match stream.read_buf(input).await {
                Ok(n) if n > 0 => continue,
                _ => return Err(authentication::gone()),
            }
        };
        let message = rest.get(..length).unwrap_or_default();
        match message.first() {
            Some(b'Z') => return Ok(kind),
            Some(b'E') => return Err(authentication::refused(frame::body(message))),
            Some(b'S') => {
                if let Ok((name, value)) = backend::parameter_status(frame::body(message)) {
                    kind.setting(name, value);
                }
            }
            _ => {}
        }
        at += length;
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Target};

    #[test]
    fn kinds() {
        let kind = |standby, read_only| Kind { standby, read_only };
        let is = |target| {
            [(false, false), (false, true), (true, true)].map(|(s, r)| kind(s, r).is(target))
        };
        assert_eq!(is(Target::Any), [true, true, true]);
        assert_eq!(is(Target::ReadWrite), [true, false, false]);
        assert_eq!(is(Target::ReadOnly), [false, true, true]);
        assert_eq!(is(Target::Primary), [true, true, false]);
        assert_eq!(is(Target::Standby), [false, false, true]);
    }
}
