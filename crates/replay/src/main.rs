//! `confide-replayer`: stands in for a keeper beside a clone (docs/maintenance.md).
#![forbid(unsafe_code)]

use channel::Listener;
use clap::Parser;
use recording::Key;
use replay::server::Replayer;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

/// Answers a clone's backends from a recording.
#[derive(Parser)]
#[command(name = "confide-replayer", version)]
struct Arguments {
    /// Directory of the recording.
    recording: PathBuf,
    /// File of its key.
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Socket that the clone connects to.
    #[arg(long, value_name = "FILE")]
    socket: PathBuf,
    /// Users, by name or number, whose processes may connect, besides this one's.
    #[arg(long, value_name = "NAME")]
    user: Vec<String>,
    /// How much of the recorded delays is reproduced, of each kind of message in the mean: 0 none,
    /// 1 as recorded.
    #[arg(long, value_name = "FACTOR", default_value_t = 0.0)]
    delay: f64,
    /// LSN up to which the clone has recovered, as a number.
    #[arg(long, value_name = "LSN")]
    position: Option<u64>,
    /// The recording may lack its end.
    #[arg(long)]
    unfinished: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("confide-replayer: {what}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), String> {
    let key = std::fs::read_to_string(&arguments.key)
        .map_err(|e| format!("{}: {e}", arguments.key.display()))?;
    let key = Key::parse(&key).map_err(|e| e.to_string())?;
    let recorded = recording::read(&arguments.recording, &key, arguments.unfinished)
        .map_err(|e| e.to_string())?;
    let mut users = vec![nix::unistd::geteuid().as_raw()];
    for user in &arguments.user {
        let named = || nix::unistd::User::from_name(user).ok().flatten();
        let id = user
            .parse()
            .ok()
            .or_else(|| named().map(|u| u.uid.as_raw()));
        users.push(id.ok_or_else(|| format!("there is no user {user}"))?);
    }
    let replayer = Arc::new(Replayer::new(
        &recorded,
        arguments.position,
        arguments.delay,
        true,
    ));
    let lost = recorded.lost();
    drop(recorded);
    let listener = Listener::bind(&arguments.socket, 0o660)
        .map_err(|e| format!("{}: {e}", arguments.socket.display()))?;
    println!("confide-replayer ready on {}", arguments.socket.display());
    if lost > 0 {
        eprintln!("confide-replayer: {lost} messages were not recorded");
    }
    replayer.serve(&listener, &users);
    Ok(())
}
