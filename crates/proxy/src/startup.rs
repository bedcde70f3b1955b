//! The beginning of a connection: encryption requests, cancel requests, the
//! startup packet, the connection to the server.
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{BufMut, BytesMut};
use client::Failure;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::admin;
use crate::config::Upstream;
use crate::relay::{self, Stream};
use crate::session::Core;
use crate::shared::{ClientInfo, Shared};
use crate::wire::backend;
use crate::wire::startup::{MAX, Packet, parse};

/// How long a client may take for its startup packet.
const PATIENCE: Duration = Duration::from_secs(60);

/// Serves one accepted connection.
pub async fn serve(
    shared: Arc<Shared>,
    mut client: TcpStream,
    address: std::net::SocketAddr,
    stop: watch::Receiver<bool>,
) {
    let _ = client.set_nodelay(true);
    let Ok(Some((packet, raw))) = timeout(PATIENCE, first_packet(&mut client)).await else {
        return;
    };
    let parameters = match packet {
        Packet::Cancel => return cancel(&shared, &raw).await,
        Packet::Startup(parameters) => parameters,
        _ => return,
    };
    let get = |name: &str| {
        let found = parameters.iter().find(|(n, _)| n == name);
        found.map(|(_, v)| v.clone())
    };
    let user = get("user").unwrap_or_default();
    let database = get("database").unwrap_or_else(|| user.clone());
    let admin = &shared.config.admin_database;
    if !admin.is_empty() && database == *admin {
        if !address.ip().is_loopback() {
            let failure = Failure::new("28000", "the admin console is for local clients");
            return fail(client, &failure).await;
        }
        return admin::serve(&shared, client).await;
    }
    let opened = match refusal(&shared, &user, get("replication").as_deref()) {
        None => upstream(&shared, &raw).await,
        Some(failure) => Err(failure),
    };
    let server = match opened {
        Ok(server) => server,
        Err(failure) => {
            tracing::warn!(%address, sqlstate = %failure.sqlstate, message = %failure.message, "a client is not served");
            return fail(client, &failure).await;
        }
    };
    let id = shared.enter(ClientInfo {
        address: address.to_string(),
        database: database.clone(),
        user: user.clone(),
        application: get("application_name").unwrap_or_default(),
        since: Instant::now(),
    });
    let core = Core::new(shared.clone(), &database, &user);
    relay::run(
        &shared,
        core,
        Box::new(client),
        server,
        BytesMut::new(),
        stop,
    )
    .await;
    shared.leave(id);
}

/// Why this proxy does not serve a client, if it does not.
fn refusal(shared: &Shared, user: &str, replication: Option<&str>) -> Option<Failure> {
    if replication.is_some_and(|v| !matches!(v, "" | "0" | "off" | "false" | "no")) {
        let failure = Failure::new(
            "0A000",
            "confide: replication connections are not supported",
        );
        return Some(failure.hint(
            "Connect to the server itself: what it replicates is protected as it is stored.",
        ));
    }
    if shared.config.serves(user) {
        return None;
    }
    let failure = Failure::new("28000", "confide: this proxy does not serve the role")
        .detail("Roles that the database alone knows are not served.")
        .hint("Add it to \"users\" in the proxy's configuration.");
    Some(failure)
}

/// A connection to the server, with the client's startup packet sent.
async fn upstream(shared: &Shared, raw: &[u8]) -> Result<Box<dyn Stream>, Failure> {
    let wait = Duration::from_secs(shared.config.connect_timeout_seconds);
    let why = match timeout(wait, connect(&shared.upstream, raw)).await {
        Ok(Ok(server)) => return Ok(server),
        Ok(Err(error)) => error.kind().to_string(),
        Err(_) => "timed out".to_owned(),
    };
    let message = format!("confide: cannot connect to the server: {why}");
    Err(Failure::new("08001", message))
}

/// Tells a client that it cannot be served.
pub async fn fail(mut client: TcpStream, failure: &Failure) {
    let mut out = BytesMut::new();
    backend::error(&mut out, "FATAL", failure);
    let _ = client.write_all_buf(&mut out).await;
    let _ = client.shutdown().await;
}

/// Answers requests for encryption (there is none) and gives the first packet
/// that is not one, with its bytes.
async fn first_packet(client: &mut TcpStream) -> Option<(Packet, BytesMut)> {
    // A client asks for TLS and for GSS at most once each.
    for _ in 0..3 {
        let length = client.read_u32().await.ok()?;
        let size = usize::try_from(length).ok()?;
        if !(8..=MAX).contains(&size) {
            return None;
        }
        let mut raw = BytesMut::zeroed(size);
        raw.get_mut(..4)?.copy_from_slice(&length.to_be_bytes());
        client.read_exact(raw.get_mut(4..)?).await.ok()?;
        match parse(raw.get(4..)?) {
            Ok(Packet::Ssl | Packet::Gss) => client.write_all(b"N").await.ok()?,
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

async fn connect(upstream: &Upstream, first: &[u8]) -> std::io::Result<Box<dyn Stream>> {
    let mut server: Box<dyn Stream> = match upstream {
        Upstream::Tcp(address) => {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            Box::new(stream)
        }
        Upstream::Unix(path) => Box::new(UnixStream::connect(path).await?),
    };
    server.write_all(first).await?;
    Ok(server)
}

/// Forwards a cancel request on a connection of its own.
async fn cancel(shared: &Shared, raw: &[u8]) {
    let wait = Duration::from_secs(shared.config.connect_timeout_seconds);
    let forward = async {
        let mut server = connect(&shared.upstream, raw).await?;
        // The server closes when it has dealt with it; the client waits for that.
        let mut end = BytesMut::with_capacity(1);
        server.read_buf(&mut (&mut end).limit(1)).await
    };
    let _ = timeout(wait, forward).await;
}
