//! Authentication of clients by the proxy's own list of users, and authentication of the proxy to
//! the server on a user's behalf.
//!
//! A user in `users_file` presents a certificate, or connects as an operating system user, or
//! proves by SCRAM that it knows its password; only then is the server contacted. This does not
//! apply to users listed only in `users`: their authentication is relayed to the server.
//!
//! Invariant: a client's credentials are never sent to the server, and a server password is sent to
//! the server neither in the clear nor as MD5.
use bytes::{BufMut, BytesMut};
use client::Failure;
use login::scram::{self, Channel};
use login::{User, Users};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::shared::Shared;
use crate::sockets::Stream;
use crate::wire::{Reader, backend, frame};

/// Maximum length of a message before a client or server is authenticated.
const MESSAGE_MAX: usize = 16 * 1024;

/// What is known about the other end before it has sent anything.
#[derive(Clone, Default)]
pub struct Origin {
    /// The connection uses TLS.
    pub encrypted: bool,
    /// The connection came through the Unix socket, from this operating system user.
    pub peer: Option<String>,
    /// The name in its certificate.
    pub certificate: Option<String>,
}

/// Returns the user's entry in the proxy's list; `None` if the server authenticates the user.
pub fn entry(shared: &Shared, name: &str) -> Result<Option<User>, Failure> {
    let file = &shared.config.users_file;
    if file.as_os_str().is_empty() {
        return Ok(None);
    }
    // The file is read each time, so that a user removed from the list is rejected from then on.
    let mut users = Users::read(file).map_err(|message| {
        tracing::error!(message, "users_file cannot be used");
        Failure::new("28000", "confide: the proxy's list of users cannot be read")
    })?;
    Ok(users.0.remove(name))
}

/// Authenticates a client as this user.
pub async fn client(
    shared: &Shared,
    stream: &mut Box<dyn Stream>,
    origin: &Origin,
    name: &str,
    user: &User,
) -> Result<(), Failure> {
    let same = |wanted: &Option<String>, found: &Option<String>| {
        wanted.as_ref().is_some_and(|w| Some(w) == found.as_ref())
    };
    if same(&user.peer, &origin.peer) || same(&user.certificate, &origin.certificate) {
        return Ok(());
    }
    let Some(verifier) = user.verifier() else {
        let message = format!("confide: authentication failed for user \"{name}\"");
        return Err(Failure::new("28000", message).hint(
            "The user has no password at the proxy; it needs its certificate or its Unix user.",
        ));
    };
    let tls = shared.tls.as_ref().filter(|_| origin.encrypted);
    let channel = Channel {
        end_point: tls.and_then(|tls| tls.end_point.clone()),
    };
    let failed = |error: scram::Error| {
        let code = if error == scram::Error::Malformed {
            "08P01"
        } else {
            "28P01"
        };
        Failure::new(code, format!("confide: {error} for user \"{name}\""))
    };
    let mut out = BytesMut::new();
    frame::write(&mut out, b'R', |b| {
        b.put_i32(10);
        if channel.end_point.is_some() {
            frame::cstr(b, scram::PLUS.as_bytes());
        }
        frame::cstr(b, scram::PLAIN.as_bytes());
        b.put_u8(0);
    });
    let mut input = BytesMut::new();
    let message = exchange(stream, &mut out, &mut input).await?;
    let (mechanism, first) = initial(&message)?;
    let begun = scram::Server::begin(verifier, &channel, mechanism, first);
    let (server, answer) = begun.map_err(failed)?;
    put_sasl(&mut out, 11, &answer);
    let message = exchange(stream, &mut out, &mut input).await?;
    let last = server.finish(password(&message)?).map_err(failed)?;
    // A client that continues before it is told to is violating the protocol.
    if !input.is_empty() {
        return Err(strange());
    }
    put_sasl(&mut out, 12, &last);
    stream.write_all_buf(&mut out).await.map_err(|_| gone())
}

/// SASLInitialResponse: mechanism and first message.
fn initial(message: &[u8]) -> Result<(&str, &[u8]), Failure> {
    let read = || {
        let mut reader = Reader::new(password(message).ok()?, "SASLInitialResponse");
        let mechanism = reader.str().ok()?;
        Some((mechanism, reader.value().ok()??))
    };
    read().ok_or_else(strange)
}

/// The contents of a message of the type used for passwords.
fn password(message: &[u8]) -> Result<&[u8], Failure> {
    match message.first() {
        Some(b'p') => Ok(frame::body(message)),
        _ => Err(strange()),
    }
}

fn strange() -> Failure {
    Failure::new("08P01", "confide: expected a SASL response")
}

/// The other side has closed the connection.
pub fn gone() -> Failure {
    Failure::new(
        "08006",
        "confide: the connection was closed during authentication",
    )
}

fn put_sasl(out: &mut BytesMut, code: i32, text: &str) {
    frame::write(out, b'R', |b| {
        b.put_i32(code);
        b.put_slice(text.as_bytes());
    });
}

/// Sends a message and receives the next one.
async fn exchange(
    stream: &mut Box<dyn Stream>,
    out: &mut BytesMut,
    input: &mut BytesMut,
) -> Result<BytesMut, Failure> {
    stream.write_all_buf(out).await.map_err(|_| gone())?;
    stream.flush().await.map_err(|_| gone())?;
    loop {
        let malformed = |e: crate::wire::Malformed| Failure::new("08P01", e.to_string());
        if let Some(length) = frame::first(input, MESSAGE_MAX).map_err(malformed)? {
            return Ok(input.split_to(length));
        }
        match stream.read_buf(input).await {
            Ok(n) if n > 0 => {}
            _ => return Err(gone()),
        }
    }
}

/// Authenticates to the server, which has received the startup packet, on the user's behalf;
/// returns the remaining input from the server.
pub async fn server(
    stream: &mut Box<dyn Stream>,
    user: &User,
    to_client: &mut BytesMut,
) -> Result<BytesMut, Failure> {
    let (mut out, mut input) = (BytesMut::new(), BytesMut::new());
    let mut state = Proof::None;
    loop {
        let message = exchange(stream, &mut out, &mut input).await?;
        let body = frame::body(&message);
        match message.first() {
            Some(b'R') => {}
            Some(b'E') => return Err(refused(body)),
            // Forward notices to the client.
            Some(b'N') => {
                to_client.extend_from_slice(&message);
                continue;
            }
            _ => return Err(hostile()),
        }
        let (code, data) = body.split_first_chunk::<4>().ok_or_else(hostile)?;
        state = match (i32::from_be_bytes(*code), state) {
            (0, Proof::None | Proof::Done) => return Ok(input),
            (10, Proof::None) => Proof::Begun(begin(&mut out, data)?),
            (11, Proof::Begun(client)) => {
                let password = user.server_password.as_deref().ok_or_else(unknown)?;
                let (proved, last) = client.prove(password, data).map_err(|_| hostile())?;
                frame::write(&mut out, b'p', |b| b.put_slice(last.as_bytes()));
                Proof::Given(proved)
            }
            (12, Proof::Given(proved)) => {
                proved.finish(data).map_err(|_| hostile())?;
                Proof::Done
            }
            (3 | 5, Proof::None) => return Err(weak()),
            _ => return Err(hostile()),
        };
    }
}

/// The state of the authentication to the server.
enum Proof {
    None,
    Begun(scram::Client),
    Given(scram::Proved),
    Done,
}

fn begin(out: &mut BytesMut, mechanisms: &[u8]) -> Result<scram::Client, Failure> {
    if !mechanisms
        .split(|b| *b == 0)
        .any(|m| m == scram::PLAIN.as_bytes())
    {
        return Err(weak());
    }
    let (client, first) = scram::Client::begin().map_err(|_| hostile())?;
    frame::write(out, b'p', |b| {
        frame::cstr(b, scram::PLAIN.as_bytes());
        b.put_i32(i32::try_from(first.len()).unwrap_or(0));
        b.put_slice(first.as_bytes());
    });
    Ok(client)
}

/// The server's own error, for the client.
pub fn refused(body: &[u8]) -> Failure {
    let fields = backend::fields(body).unwrap_or_default();
    let text = |tag: u8| {
        let found = fields.iter().find(|(t, _)| *t == tag);
        found.map(|(_, v)| String::from_utf8_lossy(v).into_owned())
    };
    let code = text(b'C').unwrap_or_else(|| "08004".to_owned());
    let message = text(b'M').unwrap_or_default();
    Failure::new(
        &code,
        format!("confide: the server refuses the proxy's connection: {message}"),
    )
}

fn hostile() -> Failure {
    Failure::new(
        "08P01",
        "confide: the server does not follow the protocol of authentication",
    )
}

fn unknown() -> Failure {
    Failure::new(
        "28000",
        "confide: the server wants a password, and the proxy has none for the user",
    )
    .hint("Give it one with \"confide user add --server-password-file\".")
}

fn weak() -> Failure {
    Failure::new(
        "28000",
        "confide: the server wants a password in the clear or as MD5",
    )
    .hint("Set password_encryption to scram-sha-256 at the server, and the role's password anew.")
}
