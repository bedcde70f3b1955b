//! A backend that sends anything. The keeper must not panic, must not allocate
//! without bound, and must go on serving.

use crate::common::Running;
use contract::{Fid, Kind};
use keeper::Connection;
use proptest::prelude::*;
use std::sync::OnceLock;

fn running() -> &'static Running {
    static RUNNING: OnceLock<Running> = OnceLock::new();
    RUNNING.get_or_init(Running::start)
}

fn connection(with_client: bool) -> Connection {
    match with_client {
        true => running().direct_client().0,
        false => running().direct(),
    }
}

fn requests() -> impl Strategy<Value = Kind> {
    let kinds: Vec<Kind> = Kind::ALL
        .iter()
        .copied()
        .filter(|kind| !matches!(kind, Kind::Answer | Kind::Error))
        .collect();
    proptest::sample::select(kinds)
}

/// Words that look like something: small numbers, FIDs of the first arenas and
/// partitions, extremes.
fn word() -> impl Strategy<Value = u64> {
    let base = u64::from(contract::fid::ARENA_BASE);
    prop_oneof![
        4 => 0u64..6,
        3 => (0u64..3, 0u64..4).prop_map(move |(p, s)| Fid::new((base + p) as u32, s).0),
        2 => (1u64..4, 0u64..4).prop_map(|(p, s)| Fid::new(p as u32, s).0),
        2 => (1u64..400, 0u64..8).prop_map(|(a, b)| a | b << 32),
        1 => Just(u64::MAX),
        1 => Just(u64::from(u32::MAX)),
        1 => any::<u64>(),
    ]
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        3 => proptest::collection::vec(word(), 0..12)
            .prop_map(|words| words.iter().flat_map(|w| w.to_le_bytes()).collect()),
        1 => proptest::collection::vec(any::<u8>(), 0..200),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Answered requests get an answer, one-way requests none, whatever is in
    /// them; and memory stays where it was.
    #[test]
    fn anything(
        with_client: bool,
        messages in proptest::collection::vec((requests(), body()), 1..60),
    ) {
        let mut connection = connection(with_client);
        for (kind, body) in messages {
            let done = connection.handle(kind, &body);
            prop_assert_eq!(done.is_some(), kind.is_answered());
            if let Some(Err(error)) = done {
                prop_assert!(error.sqlstate.iter().all(u8::is_ascii_alphanumeric));
                prop_assert!(!error.message.is_empty());
            }
        }
        let store = &running().server.keeper().store;
        prop_assert!(store.budget().used() < 128 << 20);
    }

    /// Random programs are refused or evaluated, never anything else.
    #[test]
    fn programs(
        inputs in proptest::collection::vec(1u8..18, 0..3),
        code in proptest::collection::vec((1u8..10, 0u16..450, -2i32..30), 0..12),
        words in proptest::collection::vec(word(), 0..9),
    ) {
        let mut connection = connection(true);
        let mut program = Vec::new();
        for n in [inputs.len(), 1, code.len(), 0] {
            program.extend_from_slice(&(n as u16).to_le_bytes());
        }
        program.extend_from_slice(&inputs);
        program.extend_from_slice(&0u64.to_le_bytes());
        for (code, operand, immediate) in &code {
            let operand = if matches!(*code, 1 | 2) { operand % 3 } else { *operand };
            program.extend_from_slice(&[*code, 0]);
            program.extend_from_slice(&operand.to_le_bytes());
            program.extend_from_slice(&immediate.to_le_bytes());
        }
        if let Some(Ok(())) = connection.handle(Kind::ProgramRegister, &program) {
            let handle = connection.reply().to_vec();
            let rows = words.len().checked_div(inputs.len()).unwrap_or(3) as u32;
            let mut body = [&handle[..], &[0; 4]].concat();
            body.extend_from_slice(&rows.to_le_bytes());
            body.extend_from_slice(&(inputs.len() as u32).to_le_bytes());
            let used = inputs.len() * rows as usize;
            body.extend(words.iter().take(used).flat_map(|w| w.to_le_bytes()));
            let done = connection.handle(Kind::Declassify, &body);
            prop_assert!(done.is_some());
        }
    }
}

/// A count that promises more than the message holds is found before anything is
/// allocated for it.
#[test]
fn promises() {
    let mut connection = connection(true);
    let mut huge = [0xff; 24];
    huge[4..8].fill(0);
    for kind in [
        Kind::Promote,
        Kind::Eval,
        Kind::Declassify,
        Kind::ProgramRegister,
    ] {
        let done = connection.handle(kind, &huge);
        assert!(!matches!(done, Some(Ok(()))), "{kind:?}");
    }
}
