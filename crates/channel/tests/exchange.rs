//! Honest peers: what one end sends, the other gets, whatever the sizes, pauses
//! and order of one-way and answered messages; and connecting. Bugs would show as
//! bytes lost, changed or reordered, or as a test that hangs.
#![allow(missing_docs)]

mod common;

use channel::{Answer, BackendEnd, ConnectError, Error, KeeperEnd, Listener};
use common::{Raw, SOON, hello, keeper, on_one_processor, pair, sleeps, thread_time, welcome};
use contract::hello::Status;
use contract::message::BODY_MAX;
use contract::ring::{ANSWER_CONTROL, REQUEST_RING_BYTES, control};
use contract::{Code, Kind, body};
use proptest::prelude::*;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// One message of a plan that both sides know.
#[derive(Clone, Debug)]
struct Step {
    length: usize,
    /// Length of the answer; `None`: one-way.
    answer: Option<usize>,
    /// Where the body is cut into parts.
    cut: usize,
    /// Pauses of the backend and the keeper before this message.
    pauses: (u64, u64),
    /// Whether the keeper uses `try_next` first.
    polls: bool,
}

fn length() -> impl Strategy<Value = usize> {
    prop_oneof![
        4 => 0..200usize,
        2 => 0..REQUEST_RING_BYTES / 2,
        1 => REQUEST_RING_BYTES - 40..REQUEST_RING_BYTES + 40,
        1 => 0..3 * REQUEST_RING_BYTES,
    ]
}

fn pause() -> impl Strategy<Value = u64> {
    prop_oneof![6 => Just(0u64), 1 => 1..300u64]
}

fn step() -> impl Strategy<Value = Step> {
    let answer = prop::option::of(length());
    (
        length(),
        answer,
        any::<usize>(),
        (pause(), pause()),
        any::<bool>(),
    )
        .prop_map(|(length, answer, cut, pauses, polls)| Step {
            length,
            answer,
            cut: cut % (length + 1),
            pauses,
            polls,
        })
}

/// Bytes that tell where they belong.
fn content(number: usize, length: usize) -> Vec<u8> {
    let mut state = number as u64 ^ 0x9e37_79b9_7f4a_7c15;
    let next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}

fn rest(microseconds: u64) {
    if microseconds > 0 {
        std::thread::sleep(Duration::from_micros(microseconds));
    }
}

fn serve(mut end: KeeperEnd, plan: &[Step]) {
    let mut body = vec![1, 2, 3];
    let mut last = 0;
    for (number, step) in plan.iter().enumerate() {
        rest(step.pauses.1);
        let tried = if step.polls {
            end.try_next(&mut body).unwrap()
        } else {
            None
        };
        let header = match tried {
            Some(header) => header,
            None => end.next(&mut body).unwrap(),
        };
        assert_eq!(header.length as usize, step.length);
        assert!(header.sequence > last);
        last = header.sequence;
        assert!(body == content(number, step.length), "body of {number}");
        if let Some(length) = step.answer {
            assert_eq!(header.kind, Kind::Ping as u16);
            let answer = content(!number, length);
            let (a, b) = answer.split_at(length / 3);
            end.answer(header.sequence, &[a, b]).unwrap();
        }
    }
    assert_eq!(end.next(&mut body), Err(Error::Closed));
}

fn ask(mut end: BackendEnd, plan: &[Step]) {
    for (number, step) in plan.iter().enumerate() {
        rest(step.pauses.0);
        let body = content(number, step.length);
        let (a, b) = body.split_at(step.cut);
        match step.answer {
            None => end.send(Kind::Settings, &[a, b]).unwrap(),
            Some(length) => {
                let answer = end.call(Kind::Ping, &[a, &[], b]).unwrap();
                assert!(
                    answer == Answer::Ok(content(!number, length)),
                    "answer to {number}"
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn what_is_sent_arrives(plan in prop::collection::vec(step(), 1..40)) {
        let (keeper, backend) = pair();
        std::thread::scope(|scope| {
            scope.spawn(|| serve(keeper, &plan));
            scope.spawn(|| ask(backend, &plan));
        });
    }
}

/// A million small one-way messages against a reader that is now faster, now
/// slower; the last ones are read after the sender has gone.
#[test]
fn small_messages_in_masses() {
    let (mut keeper, mut backend) = pair();
    let n = 1_000_000u64;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for number in 0..n {
                backend
                    .send(Kind::Release, &[&number.to_le_bytes(), &[0; 8]])
                    .unwrap();
            }
        });
        let mut body = Vec::new();
        for number in 0..n {
            keeper.next(&mut body).unwrap();
            assert_eq!(body[..8], number.to_le_bytes());
            if number % 100_000 == 0 {
                rest(2000);
            }
        }
        assert_eq!(keeper.next(&mut body), Err(Error::Closed));
    });
}

/// The largest body arrives; a larger one is refused and harms nothing.
#[test]
fn largest_message() {
    let (mut keeper, mut backend) = pair();
    let thread = std::thread::spawn(move || {
        let mut body = Vec::new();
        let mut lengths = Vec::new();
        while let Ok(header) = keeper.next(&mut body) {
            lengths.push(body.len());
            if header.kind == Kind::Ping as u16 {
                let too_long = keeper.answer(header.sequence, &[&body, &[0]]);
                assert_eq!(too_long, Err(Error::TooLong));
                keeper.answer(header.sequence, &[&body]).unwrap();
            }
        }
        lengths
    });
    let body = vec![5; BODY_MAX];
    let too_long = backend.send(Kind::Settings, &[&body, &[0]]);
    assert_eq!(too_long, Err(Error::TooLong));
    assert!(backend.call(Kind::Ping, &[&body]).unwrap() == Answer::Ok(body));
    backend.send(Kind::Settings, &[b"x"]).unwrap();
    drop(backend);
    assert_eq!(thread.join().unwrap(), [BODY_MAX, 1]);
}

#[test]
fn errors_arrive_as_told() {
    let (mut keeper, mut backend) = pair();
    let thread = std::thread::spawn(move || {
        let header = keeper.next(&mut Vec::new()).unwrap();
        let error = body::Error {
            sqlstate: *b"22012",
            t: None,
            code: Code::NoClient as u16,
            message: "division by zero",
            detail: "",
            hint: "try zürich\0 again",
        };
        keeper.error(header.sequence, &error).unwrap();
        keeper
    });
    let right = Answer::Err {
        sqlstate: *b"22012",
        code: Code::NoClient,
        message: "division by zero".to_owned(),
        detail: String::new(),
        hint: "try zürich again".to_owned(),
    };
    assert_eq!(backend.call(Kind::Fence, &[]), Ok(right));
    thread.join().unwrap();
}

/// Mechanism: waiting sleeps in the kernel. With the bug an idle channel costs a
/// processor.
#[test]
fn idle_costs_nothing() {
    let (mut keeper, backend) = pair();
    let shutdown = keeper.shutdown_handle();
    let thread = std::thread::spawn(move || {
        let before = thread_time();
        assert_eq!(keeper.next(&mut Vec::new()), Err(Error::Closed));
        thread_time() - before
    });
    std::thread::sleep(Duration::from_millis(500));
    shutdown.shutdown();
    let spent = thread.join().unwrap();
    assert!(spent < Duration::from_millis(50), "{spent:?}");
    drop(backend);
}

/// Mechanism: who sleeps is woken for what it sleeps for. With the bug the keeper is
/// woken, too, whenever the backend takes the byte from the socket that it was woken with.
#[test]
fn taking_a_wake_up_wakes_nobody() {
    const BYTES: usize = 200;
    let (mut keeper, mut backend) = Raw::pair();
    for sequence in 0..BYTES as u32 {
        backend.store(ANSWER_CONTROL + control::READER_SLEEPS, 1);
        keeper.answer(sequence, &[]).unwrap();
    }
    let shutdown = keeper.shutdown_handle();
    let thread = std::thread::spawn(move || {
        let before = sleeps();
        assert_eq!(keeper.next(&mut Vec::new()), Err(Error::Closed));
        sleeps() - before
    });
    for _ in 0..BYTES {
        rest(2000);
        backend.stream.read_exact(&mut [0]).unwrap();
    }
    rest(2000);
    shutdown.shutdown();
    let slept = thread.join().unwrap();
    // A signal that stops the process wakes it, too.
    assert!(slept < BYTES as u64 / 2, "{slept}");
}

/// Mechanism: whoever waits for an answer runs before what the keeper does after it gives way. With
/// the bug a backend whose processor the keeper has taken waits until the keeper sleeps.
#[test]
fn who_is_answered_runs_first() {
    const CALLS: usize = 200;
    let (mut keeper, mut backend) = pair();
    let done = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&done);
    let thread = std::thread::spawn(move || {
        on_one_processor();
        let mut body = Vec::new();
        while let Ok(header) = keeper.next(&mut body) {
            keeper.answer(header.sequence, &[]).unwrap();
            keeper.give_way();
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    on_one_processor();
    let mut first = 0;
    for call in 0..CALLS {
        // Meanwhile the keeper has fallen asleep.
        rest(2000);
        backend.call(Kind::Ping, &[]).unwrap();
        first += usize::from(done.load(Ordering::Relaxed) == call);
    }
    drop(backend);
    thread.join().unwrap();
    assert!(first > CALLS / 2, "{first}");
}

/// Mechanism: a thread that lingers finds a request that comes later than anybody spins; not each one,
/// since others may want its processor. With the bug it sleeps before each request.
#[test]
fn who_lingers_need_not_be_woken() {
    if std::thread::available_parallelism().unwrap().get() < 2 {
        return;
    }
    let (mut keeper, mut backend) = pair();
    keeper.linger(Duration::from_secs(5));
    let found = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&found);
    let thread = std::thread::spawn(move || {
        let mut body = Vec::new();
        loop {
            let before = sleeps();
            let Ok(header) = keeper.next(&mut body) else {
                return;
            };
            count.fetch_add(usize::from(sleeps() == before), Ordering::Relaxed);
            keeper.answer(header.sequence, &[]).unwrap();
        }
    });
    let mut calls = 0;
    while found.load(Ordering::Relaxed) < 10 && calls < 10_000 {
        rest(2000);
        backend.call(Kind::Ping, &[]).unwrap();
        calls += 1;
    }
    drop(backend);
    thread.join().unwrap();
    assert!(calls < 10_000);
}

/// Another thread ends a channel: both sides see it, waiting or not, and what is
/// still in the ring is not delivered.
#[test]
fn shutdown_ends_both_sides() {
    let (mut keeper, mut backend) = pair();
    let shutdown = keeper.shutdown_handle();
    let asker = std::thread::spawn(move || backend.call(Kind::Ping, &[]));
    keeper.next(&mut Vec::new()).unwrap();
    std::thread::sleep(Duration::from_millis(20));
    shutdown.shutdown();
    assert_eq!(asker.join().unwrap(), Err(Error::Closed));
    assert_eq!(keeper.answer(1, &[]), Err(Error::Closed));
    assert_eq!(keeper.next(&mut Vec::new()), Err(Error::Closed));
    assert_eq!(keeper.try_next(&mut Vec::new()), Err(Error::Closed));

    let (mut keeper, mut backend) = pair();
    backend.send(Kind::Forget, &[]).unwrap();
    keeper.shutdown_handle().shutdown();
    assert_eq!(keeper.next(&mut Vec::new()), Err(Error::Closed));
}

#[test]
fn hello_and_welcome_tell_the_truth() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keeper");
    let listener = Listener::bind(&path, 0o640).unwrap();
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    let thread = std::thread::spawn(move || {
        let mut pending = listener.accept().unwrap();
        let (got, peer) = pending.hello(SOON).unwrap();
        assert_eq!(got, hello());
        assert_eq!(peer.pid as u32, std::process::id());
        pending.accept(welcome(), None).unwrap()
    });
    let backend = BackendEnd::connect(&path, hello(), SOON).unwrap();
    assert_eq!(backend.welcome(), &welcome());
    thread.join().unwrap();
    assert!(!path.exists(), "the listener takes its socket away");
}

#[test]
fn refusals_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keeper");
    let listener = Listener::bind(&path, 0o600).unwrap();
    let thread = std::thread::spawn(move || {
        let mut pending = listener.accept().unwrap();
        pending.hello(SOON).unwrap();
        pending.refuse(Status::TooManyChannels).unwrap();
        // Another version is refused even by a keeper that does not look.
        let mut pending = listener.accept().unwrap();
        pending.hello(SOON).unwrap();
        let error = pending.accept(welcome(), None).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
    });
    let refused = BackendEnd::connect(&path, hello(), SOON).err();
    let status = Status::TooManyChannels;
    assert!(matches!(refused, Some(ConnectError::Refused(s, contract::VERSION)) if s == status));
    let mut other = hello();
    other.version += 1;
    let refused = BackendEnd::connect(&path, other, SOON).err();
    let status = Status::WrongVersion;
    assert!(matches!(refused, Some(ConnectError::Refused(s, contract::VERSION)) if s == status));
    thread.join().unwrap();
}

/// A peer that says nothing, too little or nonsense does not hold up the keeper,
/// and a keeper that says nothing does not hold up the backend.
#[test]
fn silence_and_nonsense_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keeper");
    let listener = Listener::bind(&path, 0o600).unwrap();
    let short = Duration::from_millis(50);

    let mut stream = UnixStream::connect(&path).unwrap();
    stream.write_all(&[0; 20]).unwrap();
    assert!(listener.accept().unwrap().hello(short).is_err());

    let mut stream = UnixStream::connect(&path).unwrap();
    stream.write_all(&[7; 48]).unwrap();
    let result = listener.accept().unwrap().hello(SOON);
    assert!(matches!(result, Err(channel::HelloError::Malformed)));

    let result = BackendEnd::connect(&path, hello(), short).err();
    let timed_out = |error: &std::io::Error| error.kind() == ErrorKind::TimedOut;
    assert!(matches!(result, Some(ConnectError::Io(error)) if timed_out(&error)));
}

/// A dead socket is replaced; a live one and other files are left alone.
#[test]
fn bind_takes_nothing_away() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keeper");
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let listener = Listener::bind(&path, 0o600).unwrap();
    let error = Listener::bind(&path, 0o600).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    // The probe of the second bind waits in the queue; then comes the backend.
    let thread = std::thread::spawn({
        let path = path.clone();
        move || BackendEnd::connect(&path, hello(), SOON).unwrap()
    });
    assert!(listener.accept().unwrap().hello(SOON).is_err());
    let _keeper = keeper(&listener);
    thread.join().unwrap();

    let file = folder.path().join("file");
    std::fs::write(&file, "mine").unwrap();
    let error = Listener::bind(&file, 0o600).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
}

/// Whoever finds the path finds a socket that listens and has its permissions. Otherwise a backend
/// of another user that connects while the keeper starts is told that it may not.
#[test]
fn the_path_comes_last() {
    for _ in 0..200 {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keeper");
        std::thread::scope(|scope| {
            let seen = scope.spawn(|| {
                loop {
                    if let Ok(data) = std::fs::symlink_metadata(&path) {
                        break (
                            data.permissions().mode(),
                            UnixStream::connect(&path).is_ok(),
                        );
                    }
                }
            });
            // With the usual umask, bind alone gives the file fewer permissions.
            let listener = Listener::bind(&path, 0o666).unwrap();
            let (mode, answered) = seen.join().unwrap();
            assert_eq!(mode & 0o777, 0o666);
            assert!(answered);
            drop(listener);
        });
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

#[test]
fn close_ends_a_waiting_accept() {
    let folder = tempfile::tempdir().unwrap();
    let listener = Listener::bind(&folder.path().join("keeper"), 0o600).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| listener.accept().is_err());
        std::thread::sleep(Duration::from_millis(20));
        listener.close();
        assert!(waiting.join().unwrap());
    });
}
