//! The admin console: `psql -h ... -p 6432 confide`. Knows `SHOW VERSION`,
//! `SHOW CLIENTS`, `SHOW STATS`, `SHOW CONFIG`, `SHOW ATTESTATION`, `SHOW HELP`. Local clients only;
//! shows no statement and no value.
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::{BufMut, BytesMut};
use client::Failure;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::attestation::Attestation;
use crate::relay::Stream;
use crate::shared::Shared;
use crate::wire::{Reader, backend, frame};

const COMMANDS: [&str; 5] = [
    "SHOW VERSION",
    "SHOW CLIENTS",
    "SHOW STATS",
    "SHOW CONFIG",
    "SHOW ATTESTATION",
];
/// No query of the console is longer.
const QUERY_MAX: usize = 16 * 1024;

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
                answer(shared, text, &mut out);
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

fn answer(shared: &Shared, text: &str, out: &mut BytesMut) {
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
        ["SHOW", "HELP"] | ["SHOW"] => table(
            out,
            &["command"],
            COMMANDS.iter().map(|c| vec![(*c).to_owned()]).collect(),
        ),
        [] => frame::write(out, b'I', |_| {}),
        _ => {
            let failure = Failure::new("42601", "unknown command of the admin console")
                .hint("SHOW HELP lists the commands.");
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
    let s = &shared.stats;
    let mut rows: Vec<Vec<String>> = [
        ("confide_proxy_connections_total", &s.connections),
        ("confide_proxy_statements_total", &s.statements),
        ("confide_proxy_refused_total", &s.refused),
        ("confide_proxy_sealed_total", &s.sealed),
        ("confide_proxy_opened_total", &s.opened),
        ("confide_proxy_handshakes_total", &s.handshakes),
        ("confide_proxy_schema_loads_total", &s.schema_loads),
        ("confide_proxy_schema_questions_total", &s.schema_questions),
        ("confide_proxy_schema_report_bytes", &s.schema_bytes),
        ("confide_proxy_to_server_bytes", &s.bytes_to_server),
        ("confide_proxy_to_client_bytes", &s.bytes_to_client),
    ]
    .iter()
    .map(|(name, counter)| {
        vec![
            (*name).to_owned(),
            counter.load(Ordering::Relaxed).to_string(),
        ]
    })
    .collect();
    rows.push(vec![
        "confide_proxy_clients".into(),
        shared.clients().len().to_string(),
    ]);
    rows
}

fn table(out: &mut BytesMut, columns: &[&str], rows: Vec<Vec<String>>) {
    backend::text_columns(out, columns);
    for row in &rows {
        backend::text_row(out, row);
    }
    backend::complete(out, "SHOW");
}
