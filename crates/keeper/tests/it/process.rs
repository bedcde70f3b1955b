//! The program itself: its command line, its start, its end, what it keeps to
//! itself.

use crate::common::{TIMEOUT, hello};
use channel::BackendEnd;
use contract::Kind;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

fn program(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_confide-keeper"));
    let config = format!(
        "socket = \"{0}/socket\"\nkey_file = \"{0}/key\"\nroot_key_file = \"{0}/root\"\n\
         clients_file = \"{0}/clients\"\npid_file = \"{0}/pid\"\nusers = []\n",
        dir.display()
    );
    std::fs::write(dir.join("keeper.toml"), config).unwrap();
    command.arg("--config").arg(dir.join("keeper.toml"));
    command.stderr(Stdio::null());
    command
}

/// Starts the program and waits until it says that it is ready.
fn start(dir: &Path) -> Child {
    let mut child = program(dir).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let out = child.stdout.take().unwrap();
    BufReader::new(out).read_line(&mut line).unwrap();
    assert!(line.starts_with("confide-keeper ready on "), "{line}");
    child
}

#[test]
fn command_line() {
    let dir = tempfile::tempdir().unwrap();
    let output = program(dir.path()).arg("--print-config").output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("max_channels = "));
    let misspelt = program(dir.path())
        .env("CONFIDE_KEEPER_SOKET", "x")
        .output()
        .unwrap();
    assert_eq!(misspelt.status.code(), Some(2));
    let missing = Command::new(env!("CARGO_BIN_EXE_confide-keeper"))
        .args(["--config", "/nonexistent"])
        .output()
        .unwrap();
    assert_eq!(missing.status.code(), Some(2));
}

/// SIGTERM with a backend connected: the backend sees the end, the files go, the
/// exit is clean. And before that: keys are private, memory cannot be dumped.
#[test]
fn life() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    let mut child = start(dir.path());
    let pid = std::fs::read_to_string(file("pid")).unwrap();
    assert_eq!(pid.trim(), child.id().to_string());
    for key in ["key", "root"] {
        assert_eq!(std::fs::metadata(file(key)).unwrap().mode() & 0o777, 0o600);
    }
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
    let core = limits.lines().find(|l| l.starts_with("Max core file size"));
    assert_eq!(core.unwrap().split_ascii_whitespace().nth(4), Some("0"));

    let mut backend = BackendEnd::connect(&file("socket"), hello(0, [0; 16]), TIMEOUT).unwrap();
    assert!(backend.call(Kind::Ping, &[]).is_ok());
    let second = program(dir.path()).stdout(Stdio::null()).status().unwrap();
    assert_eq!(second.code(), Some(1), "the socket is taken");

    let started = Instant::now();
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(started.elapsed() < TIMEOUT);
    assert!(backend.call(Kind::Ping, &[]).is_err());
    assert!(!file("pid").exists());
    assert!(!file("socket").exists());
}
