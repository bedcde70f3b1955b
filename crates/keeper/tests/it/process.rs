//! The program itself: its command line, its start, its end, what it keeps to
//! itself.

use crate::common::{Backend, TIMEOUT, hello};
use channel::BackendEnd;
use contract::{Kind, Op, TypeCode};
use envelope::SecretKey;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;
use values::Value;

pub fn program(dir: &Path) -> Command {
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
    ready(program(dir))
}

pub fn ready(mut program: Command) -> Child {
    let mut child = program.stdout(Stdio::piped()).spawn().unwrap();
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

/// Starts the program where it must not start; its exit code and what it said.
fn refused(dir: &Path, source: &str) -> (Option<i32>, String) {
    let output = program(dir)
        .env("CONFIDE_KEEPER_DATA_DIR", dir.join("data"))
        .env("CONFIDE_KEEPER_ROOT_KEY_SOURCE", source)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let last = said.lines().rev().take(2).collect::<Vec<_>>();
    assert!(last[0].starts_with("Hint: "), "{said}");
    (output.status.code(), last[1].to_owned())
}

/// A root key that is lost, exchanged or not to be had: exit code 3, the reason, what to
/// do, and no new root key in its place.
#[test]
fn no_root_key() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    let mut child = program(dir.path())
        .env("CONFIDE_KEEPER_DATA_DIR", file("data"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let out = child.stdout.take().unwrap();
    BufReader::new(out).read_line(&mut line).unwrap();
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
    child.wait().unwrap();
    let expect = |source: &str, reason: &str| {
        let (code, said) = refused(dir.path(), source);
        assert_eq!(code, Some(3), "{said}");
        assert!(said.contains(reason), "{said}");
    };
    expect("passphrase:file=/nonexistent", "wrapped by \"file\"");
    expect("telepathy:", "neither file, passphrase nor pkcs11");
    std::fs::rename(file("root.wrap"), file("away.wrap")).unwrap();
    expect("file:", "root.wrap: missing");
    // Lost: no other one is made beside the store.
    std::fs::rename(file("root"), file("away")).unwrap();
    expect("file:", "root: missing");
    assert!(!file("root").exists());
    // Exchanged: both files are those of another keeper.
    let other = tempfile::tempdir().unwrap();
    let its = |name: &str| other.path().join(name);
    keeper::Keys::load(&its("key"), &its("root")).unwrap();
    for name in ["root", "root.wrap"] {
        std::fs::copy(its(name), file(name)).unwrap();
    }
    expect("file:", "is not that of data directory");
    std::fs::rename(file("away"), file("root")).unwrap();
    expect("file:", "does not open");
    std::fs::rename(file("away.wrap"), file("root.wrap")).unwrap();
    let mut child = start(dir.path());
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
    child.wait().unwrap();
}

/// Which of these bytes are in a process's memory, as root reads it. `None` if we may not read it.
pub fn found(child: &Child, wanted: &[&[u8]]) -> Option<Vec<bool>> {
    let file = |name: &str| format!("/proc/{}/{name}", child.id());
    let memory = std::fs::File::open(file("mem")).ok()?;
    let maps = std::fs::read_to_string(file("maps")).ok()?;
    let longest = wanted.iter().map(|bytes| bytes.len()).max()?;
    let mut found = vec![false; wanted.len()];
    for line in maps.lines().filter(|line| line.contains(" rw")) {
        let (from, to) = line.split(' ').next()?.split_once('-')?;
        let [from, to] = [from, to].map(|hex| u64::from_str_radix(hex, 16).unwrap());
        // Pages of the kernel's and hidden ones cannot be read.
        let mut page = vec![0; 4096 + longest];
        for at in (from..to).step_by(4096) {
            let read = memory.read_at(&mut page, at).unwrap_or(0);
            if page[..read].iter().all(|byte| *byte == 0) {
                continue;
            }
            for (bytes, found) in wanted.iter().zip(&mut found) {
                let mut windows = page[..read].windows(bytes.len());
                *found |= windows.any(|w| w[0] == bytes[0] && w == *bytes);
            }
        }
    }
    Some(found)
}

/// Whether bytes are in a process's memory, as root reads it. `None` if we may not read it.
fn in_memory(child: &Child, wanted: &[u8]) -> Option<bool> {
    Some(found(child, &[wanted])?[0])
}

pub fn ended(child: Child) {
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
    assert!({ child }.wait().unwrap().success());
}

/// Root looks for the root key in the keeper's memory. Right: it is there with `secret_memory = "off"`,
/// so that he would find it, and nowhere otherwise. Bug: a copy on the heap, or left on the stack.
#[test]
fn root_key_in_memory() {
    let dir = tempfile::tempdir().unwrap();
    let start = |wish: &str| {
        let mut command = program(dir.path());
        command.env("CONFIDE_KEEPER_DATA_DIR", dir.path().join("data"));
        command.env("CONFIDE_KEEPER_SECRET_MEMORY", wish);
        command
    };
    let child = ready(start("off"));
    let file = rootkey::RootKeyFile::new(dir.path().join("root"));
    let root = file.open(&*file.source("file:").unwrap()).unwrap();
    let found = in_memory(&child, root.expose().as_slice());
    ended(child);
    let Some(found) = found else {
        println!("not root: nothing was tried");
        return;
    };
    assert!(found, "the search does not find what is there");
    if channel::secret::Secret::new(&[1], channel::secret::Wish::Require).is_err() {
        println!("this kernel has no memfd_secret");
        assert_eq!(start("require").status().unwrap().code(), Some(1));
        return;
    }
    for wish in ["auto", "require"] {
        let child = ready(start(wish));
        assert_eq!(in_memory(&child, root.expose().as_slice()), Some(false));
        ended(child);
    }
}

/// Root looks for temporary values that a session has released. Right: they are there before, so that
/// he would find them, and nowhere afterwards. Bug: freed memory keeps what was in it.
#[test]
fn released_values_in_memory() {
    const SECRET: &str = "a value that is there for a while";
    let dir = tempfile::tempdir().unwrap();
    let client = SecretKey::generate().unwrap();
    let line = format!("{} test\n", client.public().unwrap());
    std::fs::write(dir.path().join("clients"), line).unwrap();
    let mut command = program(dir.path());
    command.env("CONFIDE_KEEPER_REQUIRE_GRANTS", "false");
    let child = ready(command);
    let mut backend = Backend::at(&dir.path().join("socket"), hello(0, [0; 16]));
    backend.handshake(&client).unwrap();
    let text = |text: String| Value::Text(text.into_bytes().into());
    for n in 0..100 {
        // The allocator itself writes at the beginning of what is freed.
        backend.put(&text(format!("number {n:32}: {SECRET}")));
    }
    // A comparison copies its first operand into a buffer of the channel.
    let [a, b] = [0, 1].map(|n| backend.put(&text(format!("operand {n:32}: {SECRET}"))));
    let less = backend.number(Op::Lt, &[TypeCode::Text; 2], None);
    assert_eq!(backend.declassify(less, 1, &[a, b]), Ok(vec![1]));
    backend.fence().unwrap();
    let found = in_memory(&child, SECRET.as_bytes());
    backend.end_statement();
    backend.fence().unwrap();
    let left = in_memory(&child, SECRET.as_bytes());
    drop(backend);
    ended(child);
    match found {
        None => println!("not root: nothing was tried"),
        Some(found) => assert_eq!((found, left), (true, Some(false))),
    }
}
