//! Times that a recording has of a connection's requests.

use crate::common::{DATABASE, Running};
use contract::Kind;
use recording::{Chunk, End, Key, Scope};
use std::time::{Duration, Instant};

/// A request ends when its answer is ready. Bug: when its thread goes on after that was sent, so that
/// others who read what it stored seem to have done so before it was there, and a replay takes it
/// for another value.
#[test]
fn until_the_answer_is_ready() {
    let directory = tempfile::tempdir().unwrap();
    let running = Running::with(|config| config.record_dir = directory.path().into());
    let key = Key::generate().unwrap();
    let scope = Scope {
        key: key.clone(),
        database: DATABASE,
        role: 0,
        seconds: 0,
        bytes: 0,
        ring: 0,
        principal: String::new(),
        statements: Vec::new(),
        calls: false,
    };
    let recorder = &running.server.keeper().recorder;
    recorder.start(scope).unwrap();
    let mut connection = running.direct();
    let begun = Instant::now();
    assert!(matches!(
        connection.handle(Kind::Declassify, &[]),
        Some(Err(_))
    ));
    let handled = begun.elapsed();
    std::thread::sleep(Duration::from_millis(50));
    connection.answered_so(Kind::Declassify, &[]);
    assert_eq!(recorder.stop(End::Stopped), Ok(true));
    let recorded = recording::read(&directory.path().join(key.name()), &key, false).unwrap();
    let chunks = recorded.chunks.iter().filter_map(Chunk::events);
    let took: Vec<u32> = chunks
        .flatten()
        .filter(|event| event.kind == Kind::Declassify as u16)
        .map(|event| event.took)
        .collect();
    assert_eq!(took.len(), 1);
    // Both ends are whole microseconds.
    assert!(u128::from(took[0]) <= handled.as_micros() + 1, "{took:?}");
}
