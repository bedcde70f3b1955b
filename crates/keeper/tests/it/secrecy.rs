//! What root finds of keys and values in the keeper's memory.

use crate::common::{Backend, hello, step};
use crate::delivery::asked;
use crate::grants::{entry, give, stored};
use crate::process::{ended, found, program, ready};
use aws_lc_rs::{hkdf, hmac};
use channel::secret::{Secret, Wish};
use contract::codec::Part;
use contract::envelope::{EPOCH_BYTES, KEYED_BYTES};
use contract::message::delivery::KEYED;
use contract::{Kind, TypeCode, body};
use envelope::handshake::Initiator;
use envelope::{Envelope, Role, SecretKey};
use grant::{family, origin};
use std::path::Path;
use std::process::{Child, Command};
use values::Value;

const INT: TypeCode = TypeCode::Int4;

struct Length;

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        32
    }
}

fn derived(salt: &[u8], root: &[u8; 32], info: &[&[u8]]) -> Vec<u8> {
    let mut key = vec![0; 32];
    let made = hkdf::Salt::new(hkdf::HKDF_SHA256, salt).extract(root);
    made.expand(info, Length).unwrap().fill(&mut key).unwrap();
    key
}

/// What keys of files and records are derived from.
fn extracted(salt: &[u8], root: &[u8; 32]) -> Vec<u8> {
    let salt = hmac::Key::new(hmac::HMAC_SHA256, salt);
    hmac::sign(&salt, root).as_ref().to_vec()
}

/// A keeper with a store that one client may use.
fn keeper(dir: &Path, client: &SecretKey, settings: &[(&str, &str)]) -> Command {
    let mut command = program(dir);
    let line = format!("{} test\n", client.public().unwrap());
    std::fs::write(dir.join("clients"), line).unwrap();
    for (name, value) in settings {
        command.env(format!("CONFIDE_KEEPER_{name}"), value);
    }
    command
}

/// A session, with its keys.
fn session(dir: &Path, client: &SecretKey) -> (Backend, [Vec<u8>; 2]) {
    let mut backend = Backend::at(&dir.join("socket"), hello(0, [0; 16]));
    let (mut initiator, first) = Initiator::new(client).unwrap();
    let second = backend.call(Kind::Handshake, &step(1, &first)).unwrap();
    initiator.receive(&second).unwrap();
    let (third, keys) = initiator.finish().unwrap();
    backend.call(Kind::Handshake, &step(3, &third)).unwrap();
    let bytes = keys.expose().map(|key| key.to_vec());
    let (sealer, opener) = keys.into_client().unwrap();
    backend.sealer = Some(sealer);
    backend.opener = Some(opener);
    (backend, bytes)
}

/// The key of a column, which a client is given with a value.
fn column_key(backend: &mut Backend) -> Vec<u8> {
    let pay = stored(backend, 16_400, "pay", 5200);
    give(backend, &[entry(0, family::SHOW, &["pay"], &[])]);
    let now = backend.end.period();
    let keyed = asked(backend, pay, KEYED, now).unwrap();
    let mut plain = Vec::new();
    let opener = backend.opener.as_ref().unwrap();
    assert!(opener.open(&keyed, &mut plain).unwrap().is_keyed());
    plain[EPOCH_BYTES..KEYED_BYTES].to_vec()
}

/// The key of a column's cells.
fn cell_key(backend: &mut Backend, root: &[u8; 32]) -> Vec<u8> {
    give(backend, &[entry(origin::CLIENT, 0, &[], &["pay"])]);
    let fid = backend.put(&Value::Int4(7));
    let mut message = Vec::new();
    let name = b"public\0emp\0pay\0";
    let seal = body::CellSeal {
        fid,
        t: INT,
        flags: 0,
        name,
    };
    seal.put(&mut message);
    let cell = backend.call(Kind::CellSeal, &message).unwrap();
    let (column, epoch) = (&cell[2..18], &cell[18..26]);
    derived(b"confide", root, &[b"confide cell 1", column, epoch])
}

/// The key of export envelopes of this run.
fn export_key(dir: &Path, backend: &mut Backend, root: &[u8; 32]) -> Vec<u8> {
    let pay = stored(backend, 16_400, "pay", 1);
    let mut bare = Backend::at(&dir.join("socket"), hello(0, [0; 16]));
    let sealed = bare.get_envelope(pay, INT).unwrap();
    let epoch = Envelope::parse(&sealed).unwrap().epoch.unwrap();
    derived(&epoch, root, &[b"confide export 1"])
}

type Named = Vec<(&'static str, Vec<u8>)>;

fn root_key(dir: &Path) -> [u8; 32] {
    let file = rootkey::RootKeyFile::new(dir.join("root"));
    **file.open(&*file.source("file:").unwrap()).unwrap().expose()
}

/// The keys of a keeper with a store, which it opens before it serves.
fn keys_of_files(dir: &Path) -> Named {
    let root = &root_key(dir);
    let own = SecretKey::read_file(Role::Keeper, &dir.join("key")).unwrap();
    let hashes = derived(b"confide", root, &[b"confide hash 1"]);
    let standing = derived(b"confide", root, &[b"confide standing grants 1"]);
    vec![
        ("static", own.expose().to_vec()),
        ("hashes", hashes[..16].to_vec()),
        ("small files", standing),
        ("store", extracted(b"confide vault 1", root)),
        ("records", extracted(b"confide redo 1", root)),
    ]
}

/// The keys that come with a session, which go with it.
fn keys_of_sessions(dir: &Path, client: &SecretKey) -> (Backend, Named) {
    let root = &root_key(dir);
    let (mut backend, [to, from]) = session(dir, client);
    let named = vec![
        ("session, in", to),
        ("session, out", from),
        ("delivery", column_key(&mut backend)),
        ("cells", cell_key(&mut backend, root)),
        ("exports", export_key(dir, &mut backend, root)),
    ];
    (backend, named)
}

/// Compares what root finds with what he is to find.
fn search(child: &Child, named: &Named, expected: bool) {
    let wanted: Vec<&[u8]> = named.iter().map(|(_, key)| key.as_slice()).collect();
    let Some(found) = found(child, &wanted) else {
        println!("not root: nothing was tried");
        return;
    };
    for ((name, _), found) in named.iter().zip(found) {
        assert_eq!(found, expected, "{name}");
    }
}

fn hidden_memory() -> bool {
    let there = Secret::new(&[1], Wish::Require).is_ok();
    if !there {
        println!("this kernel has no memfd_secret");
    }
    there
}

/// Whether a program of this user may lock the memory of `values_in_memory`.
fn lockable() -> bool {
    const BYTES: u64 = 256 << 20;
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let limit = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max locked memory"))
        .and_then(|line| line.split_whitespace().next())
        .and_then(|limit| limit.parse::<u64>().ok());
    let enough = nix::unistd::geteuid().is_root() || limit.is_none_or(|limit| limit >= BYTES);
    if !enough {
        println!("the limit of locked memory is {limit:?} bytes");
    }
    enough
}

/// Root looks for each kind of key that comes from the root key or is used beside it. Right: they are there
/// with `secret_memory = "off"`, so that he would find them, and nowhere otherwise. Bug: a key, or a
/// library's schedule of it, on the heap or left on a stack.
#[test]
fn keys_in_memory() {
    let client = SecretKey::generate().unwrap();
    for wish in ["off", "require"] {
        if wish == "require" && !hidden_memory() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let data = dir.join("data");
        let data = [
            ("SECRET_MEMORY", wish),
            ("DATA_DIR", data.to_str().unwrap()),
        ];
        let child = ready(keeper(dir, &client, &data));
        search(&child, &keys_of_files(dir), wish == "off");
        ended(child);
        let child = ready(keeper(dir, &client, &[("SECRET_MEMORY", wish)]));
        let (backend, named) = keys_of_sessions(dir, &client);
        search(&child, &named, wish == "off");
        drop(backend);
        ended(child);
    }
}

/// Root looks for values of a column and of a statement. Right: they are there, so that he would find them,
/// and nowhere with `secret_values`. Bug: a value in ordinary memory.
#[test]
fn values_in_memory() {
    const SECRET: &str = "a value that is there for a while";
    let client = SecretKey::generate().unwrap();
    for hidden in [false, true] {
        if hidden && !(hidden_memory() && lockable()) {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let on = hidden.to_string();
        let settings = [
            ("SECRET_VALUES", on.as_str()),
            ("MEMORY_LIMIT", "256MB"),
            ("REQUIRE_GRANTS", "false"),
        ];
        let child = ready(keeper(dir.path(), &client, &settings));
        let (mut backend, _) = session(dir.path(), &client);
        let column = backend.open(16_400, TypeCode::Text, -1);
        let text = |n: usize, what: &str| {
            Value::Text(format!("{n:32}: {what} {SECRET}").into_bytes().into())
        };
        let puts: Vec<_> = (0..100)
            .map(|n| backend.put(&text(n, "of a column,")))
            .collect();
        let moves: Vec<_> = puts.into_iter().map(|fid| (fid, column)).collect();
        backend.promote(&moves).unwrap();
        backend.end_statement();
        for n in 0..100 {
            backend.put(&text(n, "of a statement,"));
        }
        backend.fence().unwrap();
        let kinds =
            ["column", "statement"].map(|of| (of, format!("of a {of}, {SECRET}").into_bytes()));
        search(&child, &kinds.to_vec(), !hidden);
        drop(backend);
        ended(child);
    }
}

/// Sessions for whose keys there is no hidden memory are refused, with a reason; those that are there go on,
/// and when one ends there is room for another. Bug: keys in memory that root reads, or a keeper that ends.
#[test]
fn no_room_for_a_session() {
    if !hidden_memory() {
        return;
    }
    let client = SecretKey::generate().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let settings = [
        ("SECRET_MEMORY", "require"),
        ("SECRET_MEMORY_SIZE", "2MB"),
        ("REQUIRE_GRANTS", "false"),
    ];
    let child = ready(keeper(dir.path(), &client, &settings));
    let socket = dir.path().join("socket");
    let mut sessions = Vec::new();
    let refused = loop {
        let mut backend = Backend::at(&socket, hello(0, [0; 16]));
        match backend.handshake(&client) {
            Ok(()) => sessions.push(backend),
            Err(error) => break error,
        }
        assert!(sessions.len() < 500, "there is always room");
    };
    assert_eq!(refused.0, "53200", "{refused:?}");
    assert!(sessions.len() > 4);
    for backend in &mut sessions {
        let fid = backend.put(&Value::Int4(4711));
        assert_eq!(backend.get(fid, INT).unwrap().as_deref(), Some("4711"));
    }
    drop(sessions);
    let again = || Backend::at(&socket, hello(0, [0; 16])).handshake(&client);
    while let Err(error) = again() {
        assert_eq!(error.0, "53200", "{error:?}");
        std::thread::yield_now();
    }
    ended(child);
}
