//! Hostile and dying peers. Right answer: the error that names the fault, soon, and
//! a closed channel; never a hang, a panic, a large allocation or a byte from
//! outside of the ring.
#![allow(missing_docs)]

mod common;

use channel::{BackendEnd, ConnectError, Error, KeeperEnd, Listener, Violation};
use common::{Raw, SOON, fill, hello, keeper, memfd, pair, read_hello, send_fd, welcome};
use contract::message::BODY_MAX;
use contract::ring::{
    ANSWER_CONTROL, BESIDE_BYTES, BESIDE_WORDS, MAGIC, MAPPING_BYTES, REQUEST_CONTROL,
    REQUEST_DATA, REQUEST_RING_BYTES, TAG_SHIFT, control, tag,
};
use contract::{Header, Kind};
use std::io::Write;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const REQUEST_WRITTEN: usize = REQUEST_CONTROL + control::WRITTEN;
const ANSWER_READ: usize = ANSWER_CONTROL + control::READ;

fn violation(result: Result<Header, Error>) -> Violation {
    match result {
        Err(Error::Violation(violation)) => violation,
        other => panic!("no violation but {other:?}"),
    }
}

/// Lets the keeper see bytes at the start of the request ring.
fn say(raw: &Raw, bytes: &[u8]) {
    raw.put(REQUEST_DATA, bytes);
    raw.store(REQUEST_WRITTEN, bytes.len() as u64);
    raw.wake();
}

fn header(length: u32, kind: u16) -> [u8; 16] {
    Header {
        length,
        kind,
        sequence: 1,
    }
    .encode()
}

/// After a violation nothing works any more, for either side.
fn assert_closed(keeper: &mut KeeperEnd, raw: &Raw) {
    let mut body = Vec::new();
    assert_eq!(keeper.next(&mut body), Err(Error::Closed));
    assert_eq!(keeper.try_next(&mut body), Err(Error::Closed));
    assert_eq!(keeper.answer(1, &[]), Err(Error::Closed));
    let end = std::io::Read::read(&mut &raw.stream, &mut [0; 1]);
    assert!(!matches!(end, Ok(1)), "the socket is still open");
}

#[test]
fn positions_beyond_the_ring() {
    for written in [REQUEST_RING_BYTES as u64 + 1, u64::MAX, 1 << 55] {
        let (mut keeper, raw) = Raw::pair();
        raw.store(REQUEST_WRITTEN, written);
        raw.wake();
        let result = keeper.next(&mut Vec::new());
        assert_eq!(violation(result), Violation::Position);
        assert_closed(&mut keeper, &raw);
    }
}

#[test]
fn positions_running_backwards() {
    let (mut keeper, raw) = Raw::pair();
    say(&raw, &header(0, Kind::Ping as u16));
    keeper.next(&mut Vec::new()).unwrap();
    raw.store(REQUEST_WRITTEN, 15);
    let result = keeper.try_next(&mut Vec::new());
    let result = result
        .map(|_| header(0, 0))
        .map(|bytes| Header::decode(&bytes));
    assert_eq!(violation(result), Violation::Position);
    assert_closed(&mut keeper, &raw);
}

/// Bytes beside the position: the words' tags, the word at `WRITTEN`, the ring's.
fn say_beside(raw: &Raw, bytes: &[u8], tags: [u64; 2], ring: &[u8]) {
    raw.put(REQUEST_DATA, ring);
    for n in 0..BESIDE_WORDS {
        let seven = bytes.iter().skip(7 * n).take(7).rev();
        let word = seven.fold(0, |word, byte| word << 8 | u64::from(*byte));
        let at = REQUEST_CONTROL + control::BESIDE + 8 * n;
        raw.store(at, word | tags[0] << TAG_SHIFT);
    }
    raw.store(REQUEST_WRITTEN, ring.len() as u64 | tags[1] << TAG_SHIFT);
    raw.wake();
}

fn ping(content: u8) -> Vec<u8> {
    let mut bytes = header(8, Kind::Ping as u16).to_vec();
    bytes.extend_from_slice(&[content; 8]);
    bytes
}

/// What stands beside the position is delivered if it is whole, and the ring's
/// bytes if not.
#[test]
fn bytes_beside_the_position() {
    let right = tag(24, 1);
    for (tags, content) in [
        ([right, right], 1),
        ([tag(24, 0), right], 2),
        ([tag(23, 1), right], 2),
        ([right, tag(0, 1)], 2),
        ([tag(25, 1), tag(25, 1)], 2),
        ([tag(17, 1), tag(17, 1)], 2),
    ] {
        let (mut keeper, raw) = Raw::pair();
        say_beside(&raw, &ping(1), tags, &ping(2));
        let mut body = Vec::new();
        keeper.next(&mut body).unwrap();
        assert_eq!(body, [content; 8], "{tags:?}");
    }
}

/// More bytes beside the position than there is room for.
#[test]
fn impossible_tags() {
    for bytes in [BESIDE_BYTES + 1, 63] {
        let (mut keeper, raw) = Raw::pair();
        say_beside(&raw, &ping(1), [tag(bytes, 1); 2], &[0; 64][..bytes]);
        let result = keeper.next(&mut Vec::new());
        assert_eq!(violation(result), Violation::Position);
        assert_closed(&mut keeper, &raw);
    }
}

/// Lies beside the position are found like lies in the ring.
#[test]
fn lies_beside_the_position() {
    let whole = tag(24, 1);
    for (lie, found) in [
        (header(u32::MAX, Kind::Ping as u16), Violation::Length),
        (header(8, 7), Violation::Kind),
        (header(8, Kind::Declassify as u16), Violation::Short),
    ] {
        let (mut keeper, raw) = Raw::pair();
        say_beside(&raw, &[&lie[..], &[0; 8]].concat(), [whole; 2], &ping(1));
        let result = keeper.next(&mut Vec::new());
        assert_eq!(violation(result), found);
        assert_closed(&mut keeper, &raw);
    }
}

/// The reader of answers lies about how much it has read.
#[test]
fn read_positions_that_cannot_be() {
    for read in [1 << 40, u64::MAX] {
        let (mut keeper, raw) = Raw::pair();
        raw.store(ANSWER_READ, read);
        let result = keeper.answer(1, &[&vec![0; 2 * REQUEST_RING_BYTES]]);
        assert_eq!(result, Err(Error::Violation(Violation::Position)));
        assert_closed(&mut keeper, &raw);
    }
}

#[test]
fn lengths_above_the_limit() {
    for length in [BODY_MAX as u32 + 1, u32::MAX] {
        let (mut keeper, raw) = Raw::pair();
        say(&raw, &header(length, Kind::Ping as u16));
        let mut body = Vec::new();
        assert_eq!(violation(keeper.next(&mut body)), Violation::Length);
        assert_eq!(body.capacity(), 0);
        assert_closed(&mut keeper, &raw);
    }
}

/// A length within the limit that nothing follows: truncated, then the end.
#[test]
fn lying_length_costs_no_memory() {
    let (mut keeper, raw) = Raw::pair();
    let mut bytes = header(BODY_MAX as u32, Kind::Ping as u16).to_vec();
    bytes.resize(5000, 1);
    say(&raw, &bytes);
    drop(raw);
    let mut body = Vec::new();
    assert_eq!(keeper.next(&mut body), Err(Error::Closed));
    assert!(body.capacity() < 20_000, "{}", body.capacity());
}

#[test]
fn kinds_that_no_backend_sends() {
    let unknown = (0..=u16::MAX).filter(|kind| Kind::from_u16(*kind).is_none());
    let from_keeper = [Kind::Answer as u16, Kind::Error as u16];
    for kind in unknown.step_by(5001).chain(from_keeper) {
        let (mut keeper, raw) = Raw::pair();
        say(&raw, &header(0, kind));
        let result = keeper.next(&mut Vec::new());
        assert_eq!(violation(result), Violation::Kind);
        assert_closed(&mut keeper, &raw);
    }
}

#[test]
fn bodies_without_their_fixed_part() {
    for kind in Kind::ALL.iter().filter(|kind| kind.fixed_bytes() > 0) {
        if matches!(kind, Kind::Answer | Kind::Error) {
            continue;
        }
        let (mut keeper, raw) = Raw::pair();
        let mut bytes = header(kind.fixed_bytes() as u32 - 1, *kind as u16).to_vec();
        bytes.resize(200, 0);
        say(&raw, &bytes);
        let result = keeper.next(&mut Vec::new());
        assert_eq!(violation(result), Violation::Short);
    }
}

#[test]
fn truncated_header_then_end() {
    let (mut keeper, raw) = Raw::pair();
    say(&raw, &header(0, Kind::Ping as u16)[..7]);
    drop(raw);
    assert_eq!(keeper.next(&mut Vec::new()), Err(Error::Closed));
}

/// Whoever keeps the memory but closes the socket cannot feed the keeper for ever.
#[test]
fn memory_outlives_the_socket() {
    let (mut keeper, raw) = Raw::pair();
    say(&raw, &header(0, Kind::Ping as u16));
    raw.stream.shutdown(std::net::Shutdown::Both).unwrap();
    let mut body = Vec::new();
    assert!(keeper.next(&mut body).is_ok());
    let result = keeper.next(&mut body);
    assert_eq!(result, Err(Error::Closed));
    raw.store(REQUEST_WRITTEN, 32);
    assert_eq!(keeper.next(&mut body), Err(Error::Closed));
}

/// Bytes on the socket without a reason wake, and harm nothing.
#[test]
fn needless_wake_ups() {
    let (mut keeper, raw) = Raw::pair();
    let thread = std::thread::spawn(move || {
        for _ in 0..2000 {
            raw.wake();
        }
        say(&raw, &header(0, Kind::Ping as u16));
        raw
    });
    assert!(keeper.next(&mut Vec::new()).is_ok());
    thread.join().unwrap();
}

/// A backend that never reads what wakes it must not block the keeper: ringing
/// into a full socket is no error and no wait.
#[test]
fn peer_that_never_takes_its_wake_ups() {
    let (mut keeper, raw) = Raw::pair();
    for sequence in 0..5000 {
        raw.store(ANSWER_CONTROL + control::READER_SLEEPS, 1);
        keeper.answer(sequence, &[b"12345678"]).unwrap();
    }
}

/// Runs one backend against something that is no good keeper.
fn connect_to(answer: impl FnOnce(&mut UnixStream) + Send + 'static) -> ConnectError {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keeper");
    let listener = UnixListener::bind(&path).unwrap();
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        read_hello(&mut stream);
        answer(&mut stream);
    });
    let error = BackendEnd::connect(&path, hello(), SOON).err().unwrap();
    thread.join().unwrap();
    error
}

const SEALS: i32 = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

fn io_message(error: ConnectError) -> String {
    match error {
        ConnectError::Io(error) => error.to_string(),
        other => panic!("no I/O error but {other:?}"),
    }
}

#[test]
fn shared_memory_that_is_not_as_agreed() {
    let good = [MAGIC.to_le_bytes(), contract::VERSION.to_le_bytes()].concat();
    for (size, seals, start, complaint) in [
        (MAPPING_BYTES, 0, good.clone(), "not sealed"),
        (MAPPING_BYTES, libc::F_SEAL_SEAL, good.clone(), "not sealed"),
        (
            MAPPING_BYTES,
            SEALS & !libc::F_SEAL_SHRINK,
            good.clone(),
            "not sealed",
        ),
        (MAPPING_BYTES - 4096, SEALS, good.clone(), "wrong size"),
        (MAPPING_BYTES + 4096, SEALS, good.clone(), "wrong size"),
        (MAPPING_BYTES, SEALS, vec![0; 8], "wrong magic"),
    ] {
        let error = connect_to(move |stream| {
            let fd = memfd(size, seals);
            fill(&fd, &start);
            send_fd(stream, &welcome().encode(), &fd);
        });
        let message = io_message(error);
        assert!(message.contains(complaint), "{message}");
    }
}

#[test]
fn keepers_that_do_not_speak_the_contract() {
    let error = connect_to(|stream| stream.write_all(&welcome().encode()).unwrap());
    assert!(matches!(error, ConnectError::Malformed(_)), "no descriptor");
    let error = connect_to(|stream| stream.write_all(&[9; 64]).unwrap());
    assert!(matches!(error, ConnectError::Malformed(_)), "no magic");
    let error = connect_to(|stream| stream.write_all(&[9; 10]).unwrap());
    assert!(matches!(error, ConnectError::Io(_)), "too short");
    let error = connect_to(|stream| {
        let mut other = welcome();
        other.version += 1;
        let fd = memfd(MAPPING_BYTES, SEALS);
        send_fd(stream, &other.encode(), &fd);
    });
    assert!(matches!(error, ConnectError::Refused(..)), "other version");
}

const ROLE: &str = "CONFIDE_TEST_ROLE";
const SOCKET: &str = "CONFIDE_TEST_SOCKET";

/// Not a test: the body of a child process that gets killed.
#[test]
#[ignore = "child process of other tests"]
fn child() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let path = PathBuf::from(std::env::var_os(SOCKET).unwrap());
    let sleep = || std::thread::sleep(SOON);
    if role == "backend" {
        let _end = BackendEnd::connect(&path, hello(), SOON).unwrap();
        sleep();
    } else {
        let listener = Listener::bind(&path, 0o600).unwrap();
        let _end = keeper(&listener);
        sleep();
    }
}

fn start_child(role: &str, path: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--ignored"])
        .env(ROLE, role)
        .env(SOCKET, path)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Kills the child while this side waits, and waits until that was noticed.
fn kill_while(mut child: Child, wait: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let waiting = scope.spawn(wait);
        std::thread::sleep(Duration::from_millis(100));
        assert!(!waiting.is_finished(), "it does not wait");
        child.kill().unwrap();
        waiting.join().unwrap();
        child.wait().unwrap();
    });
}

#[test]
fn killed_backend_is_noticed() {
    for for_room in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keeper");
        let listener = Listener::bind(&path, 0o600).unwrap();
        let child = start_child("backend", &path);
        let mut end = keeper(&listener);
        kill_while(child, || {
            let result = if for_room {
                end.answer(1, &[&vec![0; 2 * REQUEST_RING_BYTES]])
            } else {
                end.next(&mut Vec::new()).map(|_| ())
            };
            assert_eq!(result, Err(Error::Closed));
        });
    }
}

#[test]
fn killed_keeper_is_noticed() {
    for for_room in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keeper");
        let child = start_child("keeper", &path);
        let start = Instant::now();
        let mut end = loop {
            match BackendEnd::connect(&path, hello(), SOON) {
                Ok(end) => break end,
                Err(error) => assert!(start.elapsed() < SOON, "{error}"),
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        kill_while(child, || {
            let result = if for_room {
                end.send(Kind::Settings, &[&vec![0; 2 * REQUEST_RING_BYTES]])
            } else {
                end.call(Kind::Ping, &[]).map(|_| ())
            };
            assert_eq!(result, Err(Error::Closed));
        });
    }
}

/// An answer to another request is a violation, seen from the backend.
#[test]
fn answers_out_of_sequence() {
    let (mut keeper, mut backend) = pair();
    let thread = std::thread::spawn(move || {
        let header = keeper.next(&mut Vec::new()).unwrap();
        keeper.answer(header.sequence + 1, &[]).unwrap();
        keeper
    });
    let result = backend.call(Kind::Ping, &[]);
    assert_eq!(result, Err(Error::Violation(Violation::Sequence)));
    thread.join().unwrap();
}
