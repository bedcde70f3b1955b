//! Channels whose memory is on a device that both sides map, and whose sockets only carry bytes: a
//! relay between them passes no descriptor, as between two guests. A file on tmpfs stands for the
//! device.
//!
//! Bugs would show as two channels in one range, as bytes of an earlier channel, as a sleeper whom
//! no byte of the relay wakes, or as an access beyond the device's end, which ends the test by a
//! signal.
#![allow(missing_docs)]

mod common;

use channel::{Answer, BackendEnd, ConnectError, Device, KeeperEnd, Listener};
use common::{SOON, hello, welcome};
use contract::Kind;
use contract::hello::Status;
use contract::ring::{MAPPING_BYTES, REQUEST_RING_BYTES};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Room for two channels and not for a third.
const BYTES: usize = 3 * MAPPING_BYTES - 1;

struct Place {
    _folder: tempfile::TempDir,
    memory: PathBuf,
    keeper: PathBuf,
    relay: PathBuf,
}

impl Place {
    fn new() -> Place {
        let shared = Path::new("/dev/shm");
        let folder = match shared.is_dir() {
            true => tempfile::tempdir_in(shared).unwrap(),
            false => tempfile::tempdir().unwrap(),
        };
        let file = |name| folder.path().join(name);
        let (memory, keeper, relay) = (file("memory"), file("keeper"), file("relay"));
        File::create(&memory)
            .unwrap()
            .set_len(BYTES as u64)
            .unwrap();
        Place {
            memory,
            keeper,
            relay,
            _folder: folder,
        }
    }

    fn file(&self) -> File {
        File::options()
            .read(true)
            .write(true)
            .open(&self.memory)
            .unwrap()
    }

    fn connect(&self, path: &Path) -> Result<BackendEnd, ConnectError> {
        BackendEnd::connect_by(path, Some(&self.file()), hello(), SOON)
    }
}

/// Answers each request by its body, in reverse.
fn serve(mut end: KeeperEnd) {
    let mut buffer = Vec::new();
    while let Ok((header, body, mut reply)) = end.request(&mut buffer) {
        let mut body = body.to_vec();
        body.reverse();
        if Kind::from_u16(header.kind).is_some_and(Kind::is_answered) {
            reply.answer(header.sequence, &[&body]).unwrap();
        }
    }
}

fn accept(listener: &Listener, device: &Arc<Device>) -> std::io::Result<KeeperEnd> {
    let mut pending = listener.accept().unwrap();
    pending.hello(SOON).unwrap();
    pending.accept(welcome(), Some(device))
}

/// Copies bytes, and nothing else, until the end.
fn copy(mut from: UnixStream, mut to: UnixStream) {
    let mut bytes = [0; 100];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

fn relay(listener: &UnixListener, to: &Path) {
    let (near, _) = listener.accept().unwrap();
    let far = UnixStream::connect(to).unwrap();
    let (other, back) = (near.try_clone().unwrap(), far.try_clone().unwrap());
    std::thread::spawn(move || copy(near, far));
    std::thread::spawn(move || copy(back, other));
}

fn call(backend: &mut BackendEnd, bytes: &[u8]) {
    let mut reversed = bytes.to_vec();
    reversed.reverse();
    let answer = backend.call(Kind::Ping, &[bytes]).unwrap();
    assert!(matches!(answer, Answer::Ok(body) if body == reversed));
}

/// Messages, short ones and ones longer than the ring, through a relay; with pauses, in which both
/// sides fall asleep; and each side notices the end of the other.
#[test]
fn through_a_relay() {
    let place = Place::new();
    let listener = Listener::bind(&place.keeper, 0o600).unwrap();
    let between = UnixListener::bind(&place.relay).unwrap();
    let device = Arc::new(Device::open(&place.memory).unwrap());
    std::thread::scope(|scope| {
        let keeper = scope.spawn(|| serve(accept(&listener, &device).unwrap()));
        scope.spawn(|| relay(&between, &place.keeper));
        let mut backend = place.connect(&place.relay).unwrap();
        assert_eq!(backend.welcome().range, 1);
        for pause in [0, 1, 30, 0, 100] {
            std::thread::sleep(Duration::from_millis(pause));
            call(&mut backend, b"short");
            call(&mut backend, &vec![pause as u8; 2 * REQUEST_RING_BYTES]);
        }
        drop(backend);
        // It has seen the end, or this waits forever.
        keeper.join().unwrap();

        let keeper = scope.spawn(|| accept(&listener, &device).unwrap());
        scope.spawn(|| relay(&between, &place.keeper));
        let mut backend = place.connect(&place.relay).unwrap();
        drop(keeper.join().unwrap());
        assert!(backend.call(Kind::Ping, &[b"nobody"]).is_err());
    });
}

/// Ranges: each of one channel, none twice, and empty when it is given out again.
#[test]
fn ranges() {
    let place = Place::new();
    let listener = Listener::bind(&place.keeper, 0o600).unwrap();
    let device = Arc::new(Device::open(&place.memory).unwrap());
    assert_eq!(device.ranges(), 2);
    let open = || {
        std::thread::scope(|scope| {
            let keeper = scope.spawn(|| accept(&listener, &device));
            (place.connect(&place.keeper), keeper.join().unwrap())
        })
    };
    let (first, served) = open();
    let (mut first, served) = (first.unwrap(), served.unwrap());
    let (second, serving) = open();
    let mut second = second.unwrap();
    let serving = serving.unwrap();
    assert_eq!((first.welcome().range, second.welcome().range), (1, 2));
    std::thread::scope(|scope| {
        let threads = [served, serving].map(|end| scope.spawn(|| serve(end)));
        call(&mut first, b"one of the first");
        call(&mut second, b"the other");

        let (refused, error) = open();
        let full = Status::TooManyChannels;
        assert!(matches!(refused, Err(ConnectError::Refused(status, _)) if status == full));
        assert_eq!(error.err().unwrap().kind(), ErrorKind::QuotaExceeded);

        let mut bytes = vec![0; MAPPING_BYTES];
        place.file().read_exact_at(&mut bytes, 0).unwrap();
        assert!(bytes.windows(16).any(|part| part == b"one of the first"));
        call(&mut second, b"still there");
        drop(first);
        drop(second);
        for thread in threads {
            thread.join().unwrap();
        }
    });

    let (third, serving) = open();
    assert_eq!(third.unwrap().welcome().range, 1);
    let mut bytes = vec![0; MAPPING_BYTES];
    place.file().read_exact_at(&mut bytes, 0).unwrap();
    assert!(!bytes.windows(16).any(|part| part == b"one of the first"));
    drop(serving);
}

/// What does not fit together ends with an error: no device on one side, a smaller one, none at all.
#[test]
fn what_does_not_fit() {
    let place = Place::new();
    assert!(Device::open(&place.keeper).is_err());
    let device = Arc::new(Device::open(&place.memory).unwrap());
    // Whoever may write it could make it shorter.
    assert!(!device.is_fixed());
    let listener = Listener::bind(&place.keeper, 0o600).unwrap();
    let ends = [1, 2].map(|_| {
        std::thread::scope(|scope| {
            let keeper = scope.spawn(|| accept(&listener, &device).unwrap());
            let refused = BackendEnd::connect(&place.keeper, hello(), SOON);
            assert!(matches!(refused, Err(ConnectError::Malformed(_))));
            keeper.join().unwrap()
        })
    });
    drop(ends);

    // Of the backend's device only the first range is there.
    let small = place.memory.with_file_name("small");
    File::create(&small)
        .unwrap()
        .set_len(MAPPING_BYTES as u64)
        .unwrap();
    let small = File::options().read(true).write(true).open(small).unwrap();
    let _taken = std::thread::scope(|scope| {
        let keeper = scope.spawn(|| [1, 2].map(|_| accept(&listener, &device).unwrap()));
        let _first = place.connect(&place.keeper).unwrap();
        let refused = BackendEnd::connect_by(&place.keeper, Some(&small), hello(), SOON);
        assert!(matches!(refused, Err(ConnectError::Io(_))));
        keeper.join().unwrap()
    });
    let empty = place.memory.with_file_name("empty");
    File::create(&empty).unwrap();
    let error = Device::open(&empty).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}
