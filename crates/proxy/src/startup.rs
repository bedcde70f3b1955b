//! The start of a connection: encryption, cancel requests, the startup packet, authentication of
//! the client, the connection to the server.
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{BufMut, BytesMut};
use client::Failure;
use nix::unistd::{Uid, User};
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::admin;
use crate::authentication::{self, Origin};
use crate::dial::{Dialled, dial};
use crate::quiet::Quiet;
use crate::reconnect::Link;
use crate::relay;
use crate::session::Core;
use crate::shared::{ClientInfo, Shared};
use crate::sockets::{Client, Connection, Stream};
use crate::tls;
use crate::wire::backend;
use crate::wire::startup::{MAX, Packet, parse};

/// Maximum time between connecting and the request to the server.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where a cancel request has its key.
const KEY: usize = 8;

/// A client that is not served yet.
struct Arrival {
    stream: Box<dyn Stream>,
    address: Option<SocketAddr>,
    origin: Origin,
}

impl Arrival {
    fn of(client: Client) -> std::io::Result<Arrival> {
        let mut origin = Origin::default();
        let (stream, address): (Box<dyn Stream>, _) = match client {
            Client::Tcp(stream, address) => (Box::new(stream), Some(address)),
            Client::Unix(stream) => {
                let uid = stream.peer_cred().map(|peer| Uid::from_raw(peer.uid()));
                let user = uid.ok().and_then(|uid| User::from_uid(uid).ok().flatten());
                origin.peer = user.map(|user| user.name);
                (Box::new(Quiet::new(stream)?), None)
            }
        };
        Ok(Arrival {
            stream,
            address,
            origin,
        })
    }

    fn is_local(&self) -> bool {
        self.address
            .is_none_or(|address| address.ip().is_loopback())
    }

    fn place(&self) -> String {
        self.address
            .map_or_else(|| "local".to_owned(), |address| address.to_string())
    }
}

/// What a client requests.
struct Wish {
    user: String,
    database: String,
    application: String,
    replication: Option<String>,
    raw: BytesMut,
}

impl Wish {
    fn of(parameters: &[(String, String)], raw: BytesMut) -> Wish {
        let get = |name: &str| {
            let found = parameters.iter().find(|(n, _)| n == name);
            found.map(|(_, v)| v.clone())
        };
        let user = get("user").unwrap_or_default();
        Wish {
            database: get("database").unwrap_or_else(|| user.clone()),
            user,
            application: get("application_name").unwrap_or_default(),
            replication: get("replication"),
            raw,
        }
    }
}

/// Serves one accepted connection.
pub async fn serve(shared: Arc<Shared>, client: Client, mut stop: watch::Receiver<bool>) {
    let Ok(mut arrival) = Arrival::of(client) else {
        return;
    };
    let first = timeout(PATIENCE, first_packet(&shared, &mut arrival)).await;
    let Ok(Some((packet, raw))) = first else {
        return;
    };
    let wish = match packet {
        Packet::Cancel => return cancel(&shared, &raw).await,
        Packet::Startup(parameters) => Wish::of(&parameters, raw),
        _ => return,
    };
    let admin = &shared.config.admin_database;
    if !admin.is_empty() && wish.database == *admin {
        if !arrival.is_local() {
            let failure = Failure::new("28000", "the admin console is for local clients");
            return fail(arrival.stream, &failure).await;
        }
        return admin::serve(&shared, arrival.stream).await;
    }
    tokio::select! {
        () = shared.gate.opened() => {}
        _ = stop.wait_for(|stop| *stop) => {}
    }
    let (core, server, from_server, listed) = match open(&shared, &mut arrival, &wish).await {
        Ok(opened) => opened,
        Err(failure) => {
            tracing::warn!(address = %arrival.place(), sqlstate = %failure.sqlstate, message = %failure.message, "a client is not served");
            return fail(arrival.stream, &failure).await;
        }
    };
    let link = Link {
        raw: wish.raw,
        user: wish.user.clone(),
        listed,
    };
    let id = shared.enter(ClientInfo {
        address: arrival.place(),
        database: wish.database,
        user: wish.user,
        application: wish.application,
        since: Instant::now(),
    });
    let (client, encrypted) = (arrival.stream, arrival.origin.encrypted);
    let client = (client, encrypted);
    relay::run(&shared, core, client, (server, from_server), link, stop).await;
    shared.leave(id);
}

/// Authenticates the client and connects to the server; returns the state of the connection, the
/// server, what it has already sent, and whether the proxy has authenticated the client.
async fn open(
    shared: &Arc<Shared>,
    arrival: &mut Arrival,
    wish: &Wish,
) -> Result<(Core, Connection, BytesMut, bool), Failure> {
    if let Some(failure) = refusal(shared, arrival, wish) {
        return Err(failure);
    }
    let plain = shared.config.shows_plain(&wish.user, &wish.application);
    let core = Core::new(shared.clone(), &wish.database, &wish.user).showing_plain(plain);
    let Some(user) = authentication::entry(shared, &wish.user)? else {
        if !shared.config.serves(&wish.user) {
            return Err(unserved());
        }
        let Dialled { server, place, .. } = dial(shared, &wish.raw, None).await?;
        return Ok((core.at(place), server, BytesMut::new(), false));
    };
    let Arrival { stream, origin, .. } = arrival;
    let proof = authentication::client(shared, stream, origin, &wish.user, &user);
    let late = || Failure::new("08006", "confide: authentication took too long");
    timeout(PATIENCE, proof).await.map_err(|_| late())??;
    let dialled = dial(shared, &wish.raw, Some(&user)).await?;
    let core = core.at(dialled.place).authenticated(dialled.said);
    Ok((core, dialled.server, dialled.from_server, true))
}

/// Returns the reason why this proxy refuses a client regardless of its identity, if any.
fn refusal(shared: &Shared, arrival: &Arrival, wish: &Wish) -> Option<Failure> {
    let replication = wish.replication.as_deref();
    if replication.is_some_and(|v| !matches!(v, "" | "0" | "off" | "false" | "no")) {
        let failure = Failure::new(
            "0A000",
            "confide: replication connections are not supported",
        );
        return Some(failure.hint(
            "Connect to the server itself: what it replicates is protected as it is stored.",
        ));
    }
    let safe = arrival.address.is_none() || arrival.origin.encrypted;
    if shared.config.tls_required && !safe {
        let failure = Failure::new(
            "28000",
            "confide: this proxy serves encrypted connections only",
        );
        return Some(failure.hint("Say sslmode=verify-full in the connection string."));
    }
    None
}

fn unserved() -> Failure {
    Failure::new("28000", "confide: this proxy does not serve the role")
        .detail("Roles that the database alone knows are not served.")
        .hint("Add it with \"confide user add\", or to \"users\" in the proxy's configuration.")
}

/// Tells a client that it cannot be served.
pub async fn fail(mut client: impl AsyncWrite + Unpin, failure: &Failure) {
    let mut out = BytesMut::new();
    backend::error(&mut out, "FATAL", failure);
    let _ = client.write_all_buf(&mut out).await;
    let _ = client.shutdown().await;
}

/// Answers requests for encryption and returns the first other packet, with its bytes.
async fn first_packet(shared: &Shared, arrival: &mut Arrival) -> Option<(Packet, BytesMut)> {
    // A client asks for TLS and for GSS at most once each.
    for _ in 0..3 {
        let client = &mut arrival.stream;
        let length = client.read_u32().await.ok()?;
        let size = usize::try_from(length).ok()?;
        if !(8..=MAX).contains(&size) {
            return None;
        }
        let mut raw = BytesMut::zeroed(size);
        raw.get_mut(..4)?.copy_from_slice(&length.to_be_bytes());
        client.read_exact(raw.get_mut(4..)?).await.ok()?;
        match parse(raw.get(4..)?) {
            Ok(Packet::Ssl) => encrypt(shared, arrival).await?,
            Ok(Packet::Gss) => client.write_all(b"N").await.ok()?,
            Ok(packet) => return Some((packet, raw)),
            Err(malformed) => {
                let mut out = BytesMut::new();
                let failure = Failure::new("08P01", malformed.to_string());
                backend::error(&mut out, "FATAL", &failure);
                client.write_all_buf(&mut out).await.ok()?;
                return None;
            }
        }
    }
    None
}

/// Starts TLS if there is a certificate; not on the Unix socket, and not twice. No earlier input
/// can be taken for encrypted input: it was read to its last byte.
async fn encrypt(shared: &Shared, arrival: &mut Arrival) -> Option<()> {
    let tls = shared.tls.as_ref();
    let tls = tls.filter(|_| arrival.address.is_some() && !arrival.origin.encrypted);
    let Some(tls) = tls else {
        return arrival.stream.write_all(b"N").await.ok();
    };
    arrival.stream.write_all(b"S").await.ok()?;
    let nobody: Box<dyn Stream> = Box::new(tokio::io::empty());
    let plain = std::mem::replace(&mut arrival.stream, nobody);
    match tls.acceptor.accept(plain).await {
        Ok(stream) => {
            arrival.origin.encrypted = true;
            arrival.origin.certificate = tls::client_name(stream.get_ref().1);
            arrival.stream = Box::new(stream);
            Some(())
        }
        Err(error) => {
            tracing::warn!(address = %arrival.place(), %error, "TLS with a client has failed");
            None
        }
    }
}

/// Whether a server accepts connections.
pub async fn reachable(shared: &Shared) -> bool {
    let wait = Duration::from_secs(shared.config.connect_timeout_seconds);
    for place in shared.upstream.order(false) {
        let connected = timeout(wait, shared.upstream.connect(place, &[])).await;
        if matches!(connected, Ok(Ok(_))) {
            return true;
        }
    }
    false
}

/// Forwards a cancel request on separate connections. Only the server that gave its key acts on it.
async fn cancel(shared: &Shared, raw: &[u8]) {
    let (head, key) = raw.split_at_checked(KEY).unwrap_or((raw, &[]));
    let now = shared.keys.now(key);
    let raw = &[head, now.as_deref().unwrap_or(key)].concat();
    let wait = Duration::from_secs(shared.config.connect_timeout_seconds);
    for place in shared.upstream.order(false) {
        let forward = async {
            let mut server = shared.upstream.connect(place, raw).await?.stream;
            // The server closes the connection when it has processed the request; the client waits
            // for that.
            let mut end = BytesMut::with_capacity(1);
            server.read_buf(&mut (&mut end).limit(1)).await
        };
        let _ = timeout(wait, forward).await;
    }
}
