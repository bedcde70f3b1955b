//! `confide-proxy`: a proxy for the PostgreSQL protocol on the application's side of the trust
//! boundary. It seals literals, parameters and COPY data that are combined with protected columns,
//! opens results, and refuses what it cannot classify.
//!
//! Exit codes: 0 stopped, 1 runtime failure, 2 wrong arguments or configuration.
//!
//! Invariant: no value and no statement text is ever logged.
#![forbid(unsafe_code)]

mod admin;
mod attestation;
mod authentication;
mod charset;
mod config;
mod databases;
mod dial;
mod gate;
mod keys;
mod listener;
mod live;
mod logging;
mod metrics;
mod quiet;
mod reconnect;
mod relay;
mod session;
mod shared;
mod sockets;
mod startup;
mod tls;
mod upstream;
mod wire;
mod workers;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use envelope::{PublicKey, Role, SecretKey};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::attestation::Attestation;
use crate::config::Config;
use crate::live::Live;
use crate::shared::Shared;
use crate::sockets::Listeners;
use crate::tls::Tls;
use crate::upstream::Servers;
use crate::workers::Workers;

/// PostgreSQL wire proxy of Confide.
#[derive(Parser)]
#[command(name = "confide-proxy", version)]
struct Arguments {
    /// Configuration file (TOML); settings can be overridden by CONFIDE_PROXY_*.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Starts without the keeper's public key or without a pin, like insecure = true.
    #[arg(long)]
    insecure: bool,
    /// Prints the configuration that is in force and stops.
    #[arg(long)]
    print_config: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mut config = match Config::load(arguments.config.as_deref(), std::env::vars()) {
        Ok(config) => config,
        Err(message) => return wrong(&message),
    };
    config.insecure |= arguments.insecure;
    if arguments.print_config {
        print!("{}", config.print());
        return ExitCode::SUCCESS;
    }
    let shared = match prepare(config, arguments.config) {
        Ok(shared) => shared,
        Err(message) => return wrong(&message),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("confide-proxy: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(serve(Arc::new(shared))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("confide-proxy: {message}");
            ExitCode::FAILURE
        }
    }
}

fn wrong(message: &str) -> ExitCode {
    eprintln!("confide-proxy: {message}");
    ExitCode::from(2)
}

/// Reads keys and starts logging.
fn prepare(config: Config, source: Option<PathBuf>) -> Result<Shared, String> {
    logging::start(&config)?;
    let upstream = Servers::of(&config)?;
    if upstream.exposed() {
        tracing::warn!("a server is another machine's, and TLS to it is not required");
    }
    if config.client_key.as_os_str().is_empty() && !config.software {
        return Err(
            "client_key is not set: make one with `confide keygen client --out FILE`".into(),
        );
    }
    let secret = match config.software {
        true => SecretKey::generate().map_err(|e| e.to_string())?,
        false => SecretKey::read_file(Role::Client, &config.client_key)
            .map_err(|e| format!("{}: {e}", config.client_key.display()))?,
    };
    let soft = master_key(&config)?;
    let keeper = match config.keeper_key.trim() {
        "" => None,
        text => Some(
            text.parse::<PublicKey>()
                .map_err(|e| format!("keeper_key: {e}"))?,
        ),
    };
    safe(&config)?;
    let live = Live::read(&config)?;
    if !config.users_file.as_os_str().is_empty() {
        login::Users::read(&config.users_file)?;
    }
    let tls = Tls::of(&config)?;
    let attestation = Attestation::new(config.attest, &config.attest_policy)?;
    let shared = Shared::new(config, upstream, secret, keeper);
    let shared = shared.with_live(source, live).with_tls(tls);
    Ok(shared.with_attestation(attestation).with_soft(soft))
}

/// Reads the keys of the family `soft_`.
fn master_key(config: &Config) -> Result<Option<client::soft::Keyring>, String> {
    let path = &config.soft_key_file;
    if path.as_os_str().is_empty() {
        return match config.software {
            true => Err("software = true needs soft_key_file".into()),
            false => Ok(None),
        };
    }
    let place = path.display();
    let text = std::fs::read_to_string(path).map_err(|e| format!("{place}: {e}"))?;
    let mut key = [0; 32];
    let digits = text.trim().as_bytes();
    let wrong = || format!("{place}: expected 64 hexadecimal digits");
    if digits.len() != 64 {
        return Err(wrong());
    }
    for (byte, pair) in key.iter_mut().zip(digits.chunks(2)) {
        let pair = std::str::from_utf8(pair).map_err(|_| wrong())?;
        *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong())?;
    }
    Ok(Some(client::soft::Keyring::new(key)))
}

/// If the configuration contains neither the keeper's key nor the protected columns, the database
/// server could deceive the proxy: this is an error, or a warning if `insecure` is set.
fn safe(config: &Config) -> Result<(), String> {
    if config.keeper_key.trim().is_empty() && !config.software {
        if !config.insecure {
            return Err(
                "keeper_key is not set: whoever controls the database server could show a key of \
                 his own. Set it (`confide pubkey FILE` shows it), or say insecure = true"
                    .into(),
            );
        }
        tracing::warn!("keeper_key is not set: the first keeper seen will be trusted");
    }
    if config.pin_file.as_os_str().is_empty() {
        if !config.insecure {
            return Err(
                "pin_file is not set: whoever controls the database server could say that columns \
                 are not protected, and get their values. Make one (`confide pin FILE`), or say \
                 insecure = true"
                    .into(),
            );
        }
        tracing::warn!("pin_file is not set: which columns are protected the database says");
    }
    if !config.users.is_empty() {
        tracing::warn!(
            "users are served that users_file may not have: whoever controls the database server \
             controls who they are"
        );
    }
    Ok(())
}

/// Serves monitoring, if configured.
async fn monitor(shared: &Arc<Shared>) -> Result<(), String> {
    let address = &shared.config.metrics_listen;
    if address.is_empty() {
        return Ok(());
    }
    let listener = TcpListener::bind(address).await;
    let listener = listener.map_err(|e| format!("cannot listen on {address}: {e}"))?;
    tokio::spawn(metrics::serve(shared.clone(), listener));
    Ok(())
}

/// Reads the configuration again whenever the process receives SIGHUP.
fn reload_on_hangup(shared: Arc<Shared>) -> Result<impl Future<Output = ()>, String> {
    let mut hangup = signal(SignalKind::hangup()).map_err(|e| e.to_string())?;
    Ok(async move {
        while hangup.recv().await.is_some() {
            match shared.reload() {
                Ok(waiting) => {
                    tracing::info!(need_a_restart = ?waiting, "configuration read again");
                }
                Err(message) => tracing::error!(message, "configuration not read again"),
            }
        }
    })
}

async fn serve(shared: Arc<Shared>) -> Result<(), String> {
    let listen = shared.config.listen.clone();
    let socket = shared.config.socket()?;
    let listeners = Listeners::bind(&listen, socket).await?;
    let mut terminate = signal(SignalKind::terminate()).map_err(|e| e.to_string())?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(|e| e.to_string())?;
    let (stop, stopped) = watch::channel(false);
    let address = listeners.address().map_err(|e| e.to_string())?;
    monitor(&shared).await?;
    tokio::spawn(reload_on_hangup(shared.clone())?);
    tracing::info!(%address, "ready to accept connections");
    let workers = Workers::start().map_err(|e| format!("cannot start threads: {e}"))?;
    let run = listener::run(shared, listeners, workers, stopped);
    tokio::pin!(run);
    tokio::select! {
        () = &mut run => return Ok(()),
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("stopping");
    let _ = stop.send(true);
    tokio::select! {
        () = &mut run => {}
        // A second signal stops immediately.
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("stopped");
    Ok(())
}
