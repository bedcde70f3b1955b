//! The admin console: `psql -h ... -p 6432 confide`; `SHOW HELP` lists its commands. It accepts
//! local clients only and shows neither statements nor values.
use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use client::Failure;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::attestation::Attestation;
use crate::shared::Shared;
use crate::sockets::Stream;
use crate::wire::{Reader, backend, frame};

/// Maximum length of a query of the console.
const QUERY_MAX: usize = 16 * 1024;

const COMMANDS: [(&str, &str); 9] = [
    ("SHOW VERSION", "the proxy's version"),
    ("SHOW CLIENTS", "connections, without their statements"),
    ("SHOW STATS", "counters, as in /metrics"),
    ("SHOW CONFIG", "the configuration in force"),
    ("SHOW ATTESTATION", "what the keeper's evidence says"),
    ("SHOW HELP", "this list"),
    (
        "PAUSE",
        "waits until no transaction is open; statements and connections wait from now on",
    ),
    ("RESUME", "ends PAUSE"),
    (
        "RELOAD",
        "reads pin_file and principals again, for new connections",
    ),
];

/// Serves the console.
pub async fn serve(shared: &Arc<Shared>, mut client: Box<dyn Stream>) {
    let mut out = BytesMut::new();
    frame::write(&mut out, b'R', |b| b.put_i32(0));
    for (name, value) in [
        ("server_version", "15.0"),
        ("client_encoding", "UTF8"),
        ("server_encoding", "UTF8"),
        ("DateStyle", "ISO, MDY"),
        ("integer_datetimes", "on"),
        ("standard_conforming_strings", "on"),
    ] {
        backend::parameter(&mut out, name, value);
    }
    backend::ready(&mut out, b'I');
    let mut input = BytesMut::new();
    loop {
        if client.write_all_buf(&mut out).await.is_err() || client.flush().await.is_err() {
            return;
        }
        let length = match frame::first(&input, QUERY_MAX) {
            Err(_) => return,
            Ok(None) => match client.read_buf(&mut input).await {
                Ok(n) if n > 0 => continue,
                _ => return,
            },
            Ok(Some(length)) => length,
        };
        let message = input.split_to(length);
        match message.first() {
            Some(b'X') | None => return,
            Some(b'Q') => {
                let text = Reader::new(frame::body(&message), "Query")
                    .str()
                    .unwrap_or_default();
                answer(shared, text, &mut out).await;
                backend::ready(&mut out, b'I');
            }
            Some(b'S') => backend::ready(&mut out, b'I'),
            Some(_) => {
                let failure =
                    Failure::new("0A000", "the admin console speaks the simple protocol only");
                backend::error(&mut out, "ERROR", &failure);
            }
        }
    }
}

async fn answer(shared: &Shared, text: &str, out: &mut BytesMut) {
    let words: Vec<String> = text
        .trim_end_matches(|c: char| c == ';' || c.is_whitespace())
        .split_whitespace()
        .map(str::to_ascii_uppercase)
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["SHOW", "VERSION"] => table(out, &["version"], vec![vec![version()]]),
        ["SHOW", "CLIENTS"] => table(
            out,
            &[
                "id",
                "address",
                "database",
                "user",
                "application_name",
                "seconds",
            ],
            shared
                .clients()
                .into_iter()
                .map(|(id, c)| {
                    vec![
                        id.to_string(),
                        c.address,
                        c.database,
                        c.user,
                        c.application,
                        c.since.elapsed().as_secs().to_string(),
                    ]
                })
                .collect(),
        ),
        ["SHOW", "ATTESTATION"] => {
            let rows = shared.attestation.as_ref().map(Attestation::rows);
            table(out, &["name", "value"], rows.unwrap_or_default());
        }
        ["SHOW", "STATS"] => table(out, &["name", "value"], stats(shared)),
        ["SHOW", "CONFIG"] => table(out, &["key", "value"], settings(shared)),
        ["SHOW", "HELP"] | ["SHOW"] => {
            let rows = COMMANDS.map(|(command, what)| vec![command.into(), what.into()]);
            table(out, &["command", "what it does"], rows.into());
        }
        ["RELOAD"] => reload(shared, out),
        ["PAUSE"] => pause(shared, out).await,
        ["RESUME"] => {
            shared.gate.resume();
            backend::complete(out, "RESUME");
        }
        [] => frame::write(out, b'I', |_| {}),
        _ => {
            let failure = Failure::new("42601", "unknown command of the admin console")
                .hint("SHOW HELP lists the commands.");
            backend::error(out, "ERROR", &failure);
        }
    }
}

async fn pause(shared: &Shared, out: &mut BytesMut) {
    match shared.gate.pause().await {
        true => backend::complete(out, "PAUSE"),
        false => {
            let failure = Failure::new("57014", "PAUSE was ended by RESUME");
            backend::error(out, "ERROR", &failure);
        }
    }
}

fn settings(shared: &Shared) -> Vec<Vec<String>> {
    let text = shared.config.print();
    let pairs = text.lines().filter_map(|line| line.split_once(" = "));
    pairs.map(|(k, v)| vec![k.into(), v.into()]).collect()
}

/// The proxy's name and version.
pub fn version() -> String {
    format!(
        "confide-proxy {} (contract {})",
        env!("CARGO_PKG_VERSION"),
        contract::VERSION
    )
}

fn stats(shared: &Shared) -> Vec<Vec<String>> {
    let metrics = shared.metrics().into_iter();
    metrics.map(|m| vec![m.name, m.value.to_string()]).collect()
}

fn reload(shared: &Shared, out: &mut BytesMut) {
    match shared.reload() {
        Ok(waiting) => {
            for name in waiting {
                let text = format!("setting \"{name}\" cannot be changed without a restart");
                backend::notice(out, "WARNING", "55P02", &text);
            }
            backend::complete(out, "RELOAD");
        }
        Err(message) => {
            let failure = Failure::new("F0000", "the configuration is not read again");
            let failure = failure.detail(message);
            backend::error(
                out,
                "ERROR",
                &failure.hint("What was in force stays in force."),
            );
        }
    }
}

fn table(out: &mut BytesMut, columns: &[&str], rows: Vec<Vec<String>>) {
    backend::text_columns(out, columns);
    for row in &rows {
        backend::text_row(out, row);
    }
    backend::complete(out, "SHOW");
}
