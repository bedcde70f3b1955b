//! Sessions, policy, and who can name what.

use crate::common::{Running, TIMEOUT, happens, hello, state, step};
use ::values::Value;
use TypeCode::{Int4, Text};
use channel::{BackendEnd, ConnectError};
use contract::hello::Status;
use contract::message::program;
use contract::{Fid, Kind, Op, TypeCode};
use envelope::SecretKey;
use envelope::handshake::Initiator;

/// Only clients on the list get a session; a failed handshake leaves none.
#[test]
fn authorisation() {
    let running = Running::start();
    let mut backend = running.backend();
    let stranger = SecretKey::generate().unwrap();
    assert_eq!(state(backend.handshake(&stranger)), "28000");
    assert_eq!(backend.stats()["session.client"], 0);
    backend.handshake(&running.client).unwrap();
    assert_eq!(backend.stats()["session.client"], 1);
    assert_eq!(state(backend.handshake(&stranger)), "28000");
    assert_eq!(backend.stats()["session.client"], 1);
}

/// Messages out of order, altered or made up end in an error, not in a session.
#[test]
fn bad_handshakes() {
    let running = Running::start();
    let mut backend = running.backend();
    for body in [
        step(3, &[0; 64]),
        step(1, &[0; 5]),
        step(2, &[]),
        step(0, &[]),
        step(1, &[0; 70_000]),
    ] {
        let error = state(backend.call(Kind::Handshake, &body));
        assert!(error == "28000" || error == "08P01");
    }
    let (mut initiator, first) = Initiator::new(&running.client).unwrap();
    let second = backend.call(Kind::Handshake, &step(1, &first)).unwrap();
    initiator.receive(&second).unwrap();
    let (mut third, _) = initiator.finish().unwrap();
    third[10] ^= 1;
    assert_eq!(
        state(backend.call(Kind::Handshake, &step(3, &third))),
        "28000"
    );
    third[10] ^= 1;
    assert_eq!(
        state(backend.call(Kind::Handshake, &step(3, &third))),
        "28000"
    );
    assert_eq!(backend.stats()["session.client"], 0);
}

/// A second handshake replaces the keys: envelopes of the first are no good.
#[test]
fn handshake_again() {
    let running = Running::start();
    let mut backend = running.session();
    let old = backend.seal(Some(Int4), 0, &[0, 0, 0, 1]);
    backend.handshake(&running.client).unwrap();
    let to = backend.slot();
    backend.put_bytes(to, Int4, -1, &old);
    assert_eq!(state(backend.fence()), "28000");
    let fid = backend.put(&Value::Int4(5));
    assert_eq!(backend.get(fid, Int4).unwrap().as_deref(), Some("5"));
}

/// Policy: without a client there is no arithmetic, no constant, no hash, no
/// comparison across columns or with temporary values; but exports, promotion of
/// imports, and comparison within a column. With a bug here a DBA decrypts by
/// counting up and comparing.
#[test]
fn no_client() {
    let running = Running::with(|config| {
        config.take_exports = true;
        config.index_order_only = false;
    });
    let mut owner = running.session();
    let a = owner.put(&Value::Int4(1));
    let b = owner.put(&Value::Int4(2));
    let one = owner.open_named(1, Int4, "public\0t\0one\0");
    let two = owner.open_named(2, Int4, "public\0t\0two\0");
    let column = owner.promote(&[(a, one), (b, one), (a, two)]).unwrap();
    let [x, y, z] = column[..] else { panic!() };

    let mut dba = running.backend();
    let lt = dba.number(Op::Lt, &[Int4, Int4], None);
    let cmp = dba.number(Op::Cmp, &[Int4, Int4], None);
    let hash = dba.number(Op::Hash, &[Int4], None);
    let add = dba.number(Op::Add, &[Int4, Int4], Some(Int4));
    assert_eq!(dba.declassify(lt, 1, &[x, y]), Ok(vec![1]));
    assert_eq!(
        dba.declassify(cmp, 2, &[y, x, x, Fid::INVALID]),
        Ok(vec![1, 2])
    );
    assert_eq!(state(dba.declassify(lt, 1, &[x, z])), "42501");
    assert_eq!(state(dba.declassify(cmp, 2, &[y, x, x, z])), "42501");
    assert_eq!(state(dba.declassify(hash, 1, &[x])), "42501");
    let to = dba.eval(add, &[x, y]);
    assert_eq!(state(dba.fence()), "42501");
    assert_eq!(state(dba.get_envelope(to, Int4)), "42501");

    // An export goes out and in again, and may be promoted, but not compared
    // before, and neither it nor a column's value goes into another column.
    let export = dba.get_envelope(x, Int4).unwrap();
    assert_eq!(export[1], 3);
    let back = dba.slot();
    dba.put_bytes(back, Int4, -1, &export);
    assert_eq!(dba.fence(), Ok(()));
    assert_eq!(state(dba.declassify(lt, 1, &[back, x])), "42501");
    assert_eq!(state(dba.declassify(lt, 1, &[back, back])), "42501");
    assert_eq!(state(dba.promote(&[(back, two)])), "42501");
    let restored = dba.promote(&[(back, one)]).unwrap();
    assert_eq!(dba.declassify(lt, 1, &[restored[0], y]), Ok(vec![1]));
    assert_eq!(state(dba.promote(&[(x, two)])), "42501");

    let to = dba.slot();
    dba.put_bytes(to, Int4, -1, &owner.seal(Some(Int4), 0, &[0, 0, 0, 1]));
    assert_eq!(state(dba.fence()), "42501");
    let body = [&to.0.to_le_bytes()[..], &[0xff; 4], &[3, 0, 0, 0], &[0; 4]].concat();
    dba.send(Kind::PutPlain, &body);
    assert_eq!(state(dba.fence()), "42501");
    let state_slot = dba.slot();
    dba.step(state_slot, x, 1, true);
    assert_eq!(state(dba.fence()), "42501");
    assert_eq!(state(dba.call(Kind::ProgramRegister, &[0; 8])), "42501");

    // With a client the export is good, too.
    let to = owner.slot();
    owner.put_bytes(to, Int4, -1, &export);
    assert_eq!(owner.get(to, Int4).unwrap().as_deref(), Some("1"));
}

/// An altered export, or one of a keeper with another root key, is refused.
#[test]
fn bad_exports() {
    let running = Running::with(|config| config.take_exports = true);
    let other = Running::with(|config| config.take_exports = true);
    let mut owner = other.session();
    let fid = owner.put(&Value::Int4(1));
    let partition = owner.open_named(1, Int4, "public\0t\0one\0");
    let fid = owner.promote(&[(fid, partition)]).unwrap()[0];
    let good = other.backend().get_envelope(fid, Int4).unwrap();
    let mut backend = running.backend();
    let to = backend.slot();
    backend.put_bytes(to, Int4, -1, &good);
    assert_eq!(state(backend.fence()), "28000");
    let mut backend = other.backend();
    for at in 2..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 0x10;
        let to = backend.slot();
        backend.put_bytes(to, Int4, -1, &bad);
        assert!(backend.fence().is_err(), "byte {at}");
    }
}

/// A FID of another session's arena names nothing here, to read or to write; nor
/// does one that was never anybody's.
#[test]
fn foreign_values() {
    let running = Running::start();
    let (mut a, mut b) = (running.session(), running.session());
    let fid = a.put(&Value::Int4(1));
    assert_eq!(a.fence(), Ok(()));
    let mine = b.put(&Value::Int4(1));
    let eq = b.number(Op::Eq, &[Int4, Int4], None);
    let add = b.number(Op::Add, &[Int4, Int4], Some(Int4));
    let unused = Fid::new(contract::fid::PARTITION_END - 1, 0);
    for foreign in [fid, unused] {
        assert_eq!(state(b.get(foreign, Int4)), "42501");
        assert_eq!(state(b.declassify(eq, 1, &[mine, foreign])), "42501");
        assert_eq!(
            state(b.declassify(eq, 2, &[mine, mine, mine, foreign])),
            "42501"
        );
        let partition = b.open(1, Int4, -1);
        assert_eq!(state(b.promote(&[(foreign, partition)])), "42501");
        b.eval_at(add, 0, foreign, 1, &[mine, mine]);
        assert_eq!(state(b.fence()), "42501");
        b.release(Fid::new(foreign.partition(), 100));
        assert_eq!(state(b.fence()), "42501");
    }
    for permanent in [Fid::new(77, 0), Fid::new(0, 5)] {
        assert_eq!(state(b.get(permanent, Int4)), "XX001");
        assert_eq!(state(b.declassify(eq, 1, &[mine, permanent])), "XX001");
        assert_eq!(
            state(b.declassify(eq, 2, &[mine, mine, mine, permanent])),
            "XX001"
        );
    }
    assert_eq!(a.get(fid, Int4).unwrap().as_deref(), Some("1"));
}

/// A worker joins with the token, sees the leader's values and has arenas of its
/// own, which stay until the leader's statement ends.
#[test]
fn workers() {
    let running = Running::start();
    let mut leader = running.session();
    let a = leader.put(&Value::Int4(20));
    leader.fence().unwrap();
    let welcome = *leader.end.welcome();
    let mut worker = leader.worker(&running);
    assert_ne!(worker.end.welcome().arena, welcome.arena);
    let add = leader.number(Op::Add, &[Int4, Int4], Some(Int4));
    let sum = worker.eval(add, &[a, a]);
    worker.fence().unwrap();
    // Only a channel's own arenas take results.
    let theirs = leader.slot();
    worker.eval_at(add, 0, theirs, 1, &[a, a]);
    assert_eq!(state(worker.fence()), "42501");
    drop(worker);
    while leader.stats()["channels"] > 1 {
        std::thread::yield_now();
    }
    assert_eq!(leader.get(sum, Int4).unwrap().as_deref(), Some("40"));
    leader.end_statement();
    assert_eq!(state(leader.get(sum, Int4)), "42501");
}

/// Who has not the pass, or comes when the leader has announced nobody, or after the leader,
/// stays out. With the bug whoever reads PostgreSQL's memory once has the session for good.
#[test]
fn no_such_session() {
    let running = Running::start();
    let mut leader = running.session();
    let session = leader.end.welcome().session;
    let refused =
        |session, pass| match BackendEnd::connect(&running.socket(), hello(session, pass), TIMEOUT)
        {
            Err(ConnectError::Refused(status, _)) => Some(status),
            _ => None,
        };
    let no_such_session = Some(Status::NoSuchSession);
    // Nobody is announced; an empty pass is none.
    assert_eq!(refused(session, [0; 16]), no_such_session);
    assert_eq!(state(leader.call(Kind::Announce, &[0; 16])), "08P01");
    assert_eq!(refused(session, [0; 16]), no_such_session);
    let pass = leader.announce();
    let mut other = pass;
    other[15] ^= 1;
    assert_eq!(refused(session, other), no_such_session);
    assert_eq!(refused(session, [0; 16]), no_such_session);
    assert_eq!(refused(session ^ 1, pass), no_such_session);
    // Who has joined announces nobody, and withdraws nothing.
    let mut worker = running.join(session, pass);
    assert_eq!(state(worker.call(Kind::Announce, &[8; 16])), "08P01");
    worker.send(Kind::Withdraw, &[]);
    worker.fence().unwrap();
    drop(running.join(session, pass));
    // The statement is over: the pass is good for nothing, and who has joined stays.
    leader.send(Kind::Withdraw, &[]);
    leader.fence().unwrap();
    assert_eq!(refused(session, pass), no_such_session);
    worker.fence().unwrap();
    let pass = leader.announce();
    drop(leader);
    let gone = happens(|| refused(session, pass).is_some());
    assert!(gone);
}

/// A session has so many channels and no more; with the bug one backend that is not what it
/// should be takes all of the keeper's.
#[test]
fn too_many_channels_of_a_session() {
    let running = Running::with(|config| config.session_channels = 2);
    let mut leader = running.session();
    let worker = leader.worker(&running);
    let (session, pass) = (leader.end.welcome().session, leader.announce());
    let third = BackendEnd::connect(&running.socket(), hello(session, pass), TIMEOUT);
    assert!(matches!(
        third.map(|_| ()),
        Err(ConnectError::Refused(Status::TooManyChannels, _))
    ));
    drop(worker);
    let served =
        happens(|| BackendEnd::connect(&running.socket(), hello(session, pass), TIMEOUT).is_ok());
    assert!(served);
}

/// What the client says of its session goes to the keeper as grants do.
fn say(backend: &mut crate::common::Backend, what: grant::Lease) {
    let mut envelope = Vec::new();
    let sealer = backend.sealer.as_ref().unwrap();
    let flags = contract::envelope::FLAG_TEXT | contract::envelope::FLAG_GRANT;
    sealer
        .seal(0, flags, &what.encode(), &mut envelope)
        .unwrap();
    backend.send(Kind::Grant, &envelope);
}

/// Calls until it is refused for the reason; false if it never is.
fn until_refused(backend: &mut crate::common::Backend, fid: Fid) -> bool {
    let body = [fid.0.to_le_bytes(), u64::from(Int4 as u8).to_le_bytes()].concat();
    happens(|| match backend.call(Kind::GetEnvelope, &body) {
        Ok(_) => false,
        Err((state, message)) => {
            assert_eq!(
                (state.as_str(), message.as_str()),
                ("42501", "confide: no client session")
            );
            true
        }
    })
}

/// A session whose client says nothing ends by itself, for all of its channels; what the client
/// said before does not bring it back, what it says now does. With the bug a database that keeps
/// a channel open has the session of a client that left long ago.
#[test]
fn a_lease_that_is_over() {
    let running = Running::with(|config| config.session_lease_seconds = 1);
    let mut backend = running.session();
    let begun = std::time::Instant::now();
    let fid = backend.put(&Value::Int4(5));
    // Its errors, if the second is over already.
    let _ = backend.fence();
    let mut worker = backend.worker(&running);
    say(
        &mut backend,
        grant::Lease::GoesOn(std::time::Duration::ZERO),
    );
    assert!(until_refused(&mut backend, fid));
    assert!(until_refused(&mut worker, fid));
    // Kept by the database since the beginning.
    say(
        &mut backend,
        grant::Lease::GoesOn(std::time::Duration::ZERO),
    );
    assert!(until_refused(&mut backend, fid));
    assert!(backend.stats()["leases_over_total"] > 0);
    // A busy machine may let the second go by again.
    let back = (0..100).any(|_| {
        say(&mut backend, grant::Lease::GoesOn(begun.elapsed()));
        let fid = backend.put(&Value::Int4(5));
        let _ = backend.fence();
        backend.get(fid, Int4).is_ok()
    });
    assert!(back);
}

/// A client that has left is gone: nothing but another handshake brings the session back.
#[test]
fn a_client_that_has_left() {
    let running = Running::start();
    let mut backend = running.session();
    let fid = backend.put(&Value::Int4(5));
    let mut worker = backend.worker(&running);
    assert!(worker.get_envelope(fid, Int4).is_ok());
    say(&mut backend, grant::Lease::Over);
    assert_eq!(state(backend.get(fid, Int4)), "42501");
    assert_eq!(state(worker.get_envelope(fid, Int4)), "42501");
    // Nor is it given what the database has kept.
    assert_eq!(backend.end.period(), 0);
    let after = std::time::Duration::from_secs(1);
    say(&mut backend, grant::Lease::GoesOn(after));
    assert_eq!(state(backend.get(fid, Int4)), "42501");
    backend.handshake(&running.client).unwrap();
    assert!(backend.end.period() != 0);
    let fid = backend.put(&Value::Int4(6));
    assert_eq!(backend.get(fid, Int4).unwrap().as_deref(), Some("6"));
}

#[test]
fn too_many_channels() {
    let running = Running::with(|config| config.max_channels = 2);
    let first = running.backend();
    let _second = running.backend();
    let third = BackendEnd::connect(&running.socket(), hello(0, [0; 16]), TIMEOUT);
    assert!(matches!(
        third.map(|_| ()),
        Err(ConnectError::Refused(Status::TooManyChannels, _))
    ));
    drop(first);
    let served =
        happens(|| BackendEnd::connect(&running.socket(), hello(0, [0; 16]), TIMEOUT).is_ok());
    assert!(served);
}

/// What is declassified is counted by column.
#[test]
fn revealed() {
    let running = Running::start();
    let mut backend = running.session();
    let a = backend.put(&Value::Text(Box::from(&b"abc"[..])));
    let partition = backend.open(9, Text, -1);
    let fid = backend.promote(&[(a, partition)]).unwrap()[0];
    let eq = backend.number(Op::Eq, &[Text, Text], None);
    let cmp = backend.number(Op::Cmp, &[Text, Text], None);
    let hash = backend.number(Op::Hash, &[Text], None);
    backend.declassify(eq, 1, &[fid, a]).unwrap();
    backend.declassify(cmp, 1, &[fid, fid]).unwrap();
    backend
        .declassify(cmp, 3, &[fid, fid, fid, a, a, a])
        .unwrap();
    backend.declassify(hash, 2, &[fid, a]).unwrap();
    let program = crate::common::Builder {
        inputs: vec![Text],
        code: vec![(program::INPUT, 0, 0), (program::IS_NULL, 0, 0)],
        ..Default::default()
    };
    let handle = backend.register(&program).unwrap();
    assert_eq!(backend.declassify(handle, 2, &[fid, fid]), Ok(vec![0, 0]));
    let stats = backend.stats();
    let of = |name: &str| stats[&format!("column.5.9.1.{partition}.declassified_{name}")];
    assert_eq!((of("booleans"), of("orders"), of("hashes")), (3, 4, 1));
    assert_eq!(stats["session.declassified_rows_total"], 9);
}

/// A client whose key is taken from the file loses its session, whatever it is about to do; with
/// the bug a stolen key that was withdrawn goes on for as long as the channel is open.
#[test]
fn a_key_that_is_withdrawn() {
    let running = Running::start();
    let mut backend = running.session();
    let fid = backend.put(&Value::Int4(5));
    assert_eq!(backend.get(fid, Int4).unwrap().as_deref(), Some("5"));
    let file = running.server.keeper().config.clients_file.clone();
    let before = std::fs::read(&file).unwrap();
    std::fs::write(&file, "# nobody\n").unwrap();
    running.server.keeper().reload_clients();
    let ended = |backend: &mut crate::common::Backend| {
        let body = [fid.0.to_le_bytes(), u64::from(Int4 as u8).to_le_bytes()].concat();
        happens(|| backend.call(Kind::GetEnvelope, &body).is_err())
    };
    assert!(ended(&mut backend));
    assert_eq!(backend.end.period(), 0);
    assert_eq!(state(backend.handshake(&running.client)), "28000");
    std::fs::write(&file, before).unwrap();
    running.server.keeper().reload_clients();
    backend.handshake(&running.client).unwrap();
    assert!(backend.end.period() != 0);
    let fid = backend.put(&Value::Int4(6));
    assert_eq!(backend.get(fid, Int4).unwrap().as_deref(), Some("6"));
}

/// What has joined a session ends with its leader; with the bug a channel that the leader knows
/// nothing of goes on with the client's operators after the client has gone.
#[test]
fn a_leader_that_has_gone() {
    let running = Running::start();
    let mut leader = running.session();
    let mut worker = leader.worker(&running);
    let fid = leader.put(&Value::Int4(5));
    leader.fence().unwrap();
    let body = [fid.0.to_le_bytes(), u64::from(Int4 as u8).to_le_bytes()].concat();
    worker.call(Kind::GetEnvelope, &body).unwrap();
    drop(leader);
    let gone = happens(|| worker.call(Kind::GetEnvelope, &body).is_err());
    assert!(gone);
}
