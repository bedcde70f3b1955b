//! Envelopes: what was sealed opens to the same bytes, and nothing else opens.
use contract::TypeCode;
use contract::envelope::{FLAG_FITTED, FLAG_HANDLE, FLAG_TEXT, Origin};
use envelope::{
    Envelope, Error, ExportKey, Fitted, Opener, Sealer, SecretKey, SessionKeys, StoringKey, Target,
    format,
};
use proptest::prelude::*;

/// Keys from a fixed root key and epoch, so that bytes can be compared.
fn export() -> (Sealer, Opener) {
    let key = || ExportKey::derive(&[7; 32], *b"epoch001");
    (
        Sealer::export(key()).unwrap(),
        Opener::export(&key()).unwrap(),
    )
}

/// The client's and the keeper's end of a session.
fn session() -> ((Sealer, Opener), (Sealer, Opener)) {
    let (client, keeper) = keys();
    (client.into_client().unwrap(), keeper.into_keeper().unwrap())
}

fn keys() -> (SessionKeys, SessionKeys) {
    let (client, keeper) = (
        SecretKey::generate().unwrap(),
        SecretKey::generate().unwrap(),
    );
    let (mut initiator, one) = envelope::handshake::Initiator::new(&client).unwrap();
    let mut responder = envelope::handshake::Responder::new(&keeper).unwrap();
    let evidence = envelope::Evidence::new(5, b"a document".to_vec());
    assert!(!responder.receive(&one).unwrap());
    let two = responder.respond(&evidence).unwrap();
    let seen = initiator.receive(&two).unwrap();
    assert_eq!(seen.key, keeper.public().unwrap());
    assert_eq!(seen.evidence, evidence);
    let (three, keys) = initiator.finish().unwrap();
    let (who, keeper_keys) = responder.finish(&three).unwrap();
    assert_eq!(who, client.public().unwrap());
    (keys, keeper_keys)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// The format on disk and in dumps: if these bytes change, old dumps cannot be read.
#[test]
fn golden_export_envelopes() {
    let (sealer, opener) = export();
    let golden = include_str!("golden.txt");
    let mut made = String::new();
    let cases: [(u8, u8, &[u8]); 4] = [
        (TypeCode::Int4 as u8, 0, &5200_i32.to_be_bytes()),
        (0, FLAG_TEXT, b"5200"),
        (TypeCode::Text as u8, FLAG_HANDLE, "Zürich".as_bytes()),
        (TypeCode::Text as u8, 0, b""),
    ];
    for (type_code, flags, plain) in cases {
        let mut bytes = Vec::new();
        sealer.seal(type_code, flags, plain, &mut bytes).unwrap();
        made.push_str(&hex(&bytes));
        made.push('\n');
        let mut out = Vec::new();
        let seen = opener.open(&bytes, &mut out).unwrap();
        assert_eq!(out, plain);
        assert_eq!(seen.flags, flags);
    }
    assert_eq!(made, golden);
}

#[test]
fn golden_text_form() {
    let (sealer, _) = export();
    let mut text = String::new();
    sealer
        .seal_text(TypeCode::Int4 as u8, 0, &5200_i32.to_be_bytes(), &mut text)
        .unwrap();
    assert_eq!(text, include_str!("golden_text.txt").trim_end());
}

#[test]
fn directions_do_not_mix() {
    let ((client, client_open), (keeper, keeper_open)) = session();
    let mut out = Vec::new();
    let mut from_client = Vec::new();
    client.seal(3, 0, b"abcd", &mut from_client).unwrap();
    keeper_open.open(&from_client, &mut out).unwrap();
    assert_eq!(out, b"abcd");
    assert_eq!(
        client_open.open(&from_client, &mut out).unwrap_err(),
        Error::WrongOrigin
    );
    // The origin is authenticated: a false one is detected.
    from_client[1] = Origin::Keeper as u8;
    assert_eq!(
        client_open.open(&from_client, &mut out).unwrap_err(),
        Error::WrongKeyOrAltered
    );
    assert!(out.is_empty());
    let mut from_keeper = Vec::new();
    keeper.seal(3, 0, b"efgh", &mut from_keeper).unwrap();
    client_open.open(&from_keeper, &mut out).unwrap();
    assert_eq!(out, b"efgh");
}

#[test]
fn epochs_have_keys_of_their_own() {
    let (sealer, _) = export();
    let mut bytes = Vec::new();
    sealer.seal(3, 0, b"abcd", &mut bytes).unwrap();
    let other = Opener::export(&ExportKey::derive(&[7; 32], *b"epoch002")).unwrap();
    let root = Opener::export(&ExportKey::derive(&[8; 32], *b"epoch001")).unwrap();
    for opener in [other, root] {
        assert_eq!(
            opener.open(&bytes, &mut Vec::new()).unwrap_err(),
            Error::WrongKeyOrAltered
        );
    }
}

#[test]
fn errors_name_what_is_wrong() {
    let (sealer, opener) = export();
    let mut bytes = Vec::new();
    sealer.seal(3, 0, b"abcd", &mut bytes).unwrap();
    let open = |bytes: &[u8]| opener.open(bytes, &mut Vec::new()).unwrap_err();
    assert_eq!(open(b""), Error::NotAnEnvelope);
    assert_eq!(open(b"abcd"), Error::NotAnEnvelope);
    for length in 1..4 + 8 + 12 + 16 {
        assert_eq!(open(&bytes[..length]), Error::Truncated, "{length}");
    }
    for (at, value) in [(1, 9), (2, 200), (2, 0), (3, 0x80)] {
        let mut bad = bytes.clone();
        bad[at] = value;
        assert_eq!(open(&bad), Error::UnsupportedVersion, "{at}");
    }
    let text = |t: &[u8]| format::from_text(t, &mut Vec::new()).unwrap_err();
    assert_eq!(text(b"cfd2.AAAA"), Error::UnsupportedVersion);
    assert_eq!(text(b"5200"), Error::NotAnEnvelope);
    assert_eq!(text(b"cfd1.A*AA"), Error::NotAnEnvelope);
}

#[test]
fn nonces_are_never_used_twice() {
    let (sealer, _) = export();
    let mut seen = std::collections::HashSet::new();
    for _ in 0..1000 {
        let mut bytes = Vec::new();
        sealer.seal(3, 0, b"abcd", &mut bytes).unwrap();
        assert!(seen.insert(bytes[12..24].to_vec()));
    }
}

/// The keeper sees whether a document is requested; a document is bound to message 1. A handshake
/// for another purpose fails.
#[test]
fn handshake_asks_for_evidence() {
    use envelope::handshake::{Initiator, Responder, Use};
    let (client, keeper) = (
        SecretKey::generate().unwrap(),
        SecretKey::generate().unwrap(),
    );
    let (mut initiator, one) = Initiator::begin(&client, Use::Broker, true).unwrap();
    let mut responder = Responder::begin(&keeper, Use::Broker).unwrap();
    assert!(responder.receive(&one).unwrap());
    let mut other = Responder::begin(&keeper, Use::Session).unwrap();
    other.receive(&one).unwrap();
    let wrong = other
        .respond(&envelope::Evidence::new(0, Vec::new()))
        .unwrap();
    assert!(initiator.receive(&wrong).is_err());
    let (mut initiator, one) = Initiator::begin(&client, Use::Broker, true).unwrap();
    let mut responder = Responder::begin(&keeper, Use::Broker).unwrap();
    assert!(responder.receive(&one).unwrap());
    let evidence = envelope::Evidence::new(0, vec![7; 40_000]);
    let seen = initiator.receive(&responder.respond(&evidence).unwrap());
    let seen = seen.unwrap();
    assert_eq!((seen.nonce, seen.evidence), (one, evidence));
}

#[test]
fn handshake_refuses_alteration_and_disorder() {
    let client = SecretKey::generate().unwrap();
    let keeper = SecretKey::generate().unwrap();
    let evidence = envelope::Evidence::new(1, Vec::new());
    let (mut initiator, one) = envelope::handshake::Initiator::new(&client).unwrap();
    let mut responder = envelope::handshake::Responder::new(&keeper).unwrap();
    assert!(!responder.receive(&one).unwrap());
    let two = responder.respond(&evidence).unwrap();
    for at in 0..two.len() {
        let (mut fresh, one) = envelope::handshake::Initiator::new(&client).unwrap();
        let mut other = envelope::handshake::Responder::new(&keeper).unwrap();
        other.receive(&one).unwrap();
        let mut two = other.respond(&evidence).unwrap();
        two[at] ^= 1;
        assert!(fresh.receive(&two).is_err(), "byte {at}");
    }
    initiator.receive(&two).unwrap();
    let (mut three, _) = initiator.finish().unwrap();
    three[3] ^= 1;
    assert!(responder.finish(&three).is_err());
    let early = envelope::handshake::Responder::new(&keeper).unwrap();
    assert!(early.finish(&three).is_err());
    let (early, _) = envelope::handshake::Initiator::new(&client).unwrap();
    assert!(early.finish().is_err());
}

#[test]
fn key_files() {
    use envelope::Role;
    let dir = std::env::temp_dir().join(format!("confide-keys-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join("client.key");
    let key = SecretKey::generate().unwrap();
    key.write_file(Role::Client, &path).unwrap();
    assert!(
        key.write_file(Role::Client, &path).is_err(),
        "never overwrites"
    );
    let read = SecretKey::read_file(Role::Client, &path).unwrap();
    assert_eq!(read.expose(), key.expose());
    assert!(SecretKey::read_file(Role::Keeper, &path).is_err());
    let line = key.public().unwrap().to_line(Role::Client);
    assert_eq!(
        line.parse::<envelope::PublicKey>().unwrap(),
        key.public().unwrap()
    );
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(
        SecretKey::read_file(Role::Client, &path).unwrap_err(),
        Error::KeyFileMode
    );
    std::fs::remove_dir_all(&dir).unwrap();
}

proptest! {
    #[test]
    fn round_trip(plain in proptest::collection::vec(any::<u8>(), 0..2000), code in 1_u8..=17, flags in 0_u8..4) {
        let (sealer, opener) = export();
        let mut text = String::new();
        sealer.seal_text(code, flags, &plain, &mut text).unwrap();
        let mut bytes = Vec::new();
        format::from_text(text.as_bytes(), &mut bytes).unwrap();
        let mut out = vec![1, 2, 3];
        let seen = opener.open(&bytes, &mut out).unwrap();
        prop_assert_eq!(out, plain);
        prop_assert_eq!(seen.type_code.map(|t| t as u8), Some(code));
        prop_assert_eq!(seen.flags, flags);
    }

    #[test]
    fn any_change_is_noticed(plain in proptest::collection::vec(any::<u8>(), 0..40)) {
        let (sealer, opener) = export();
        let mut bytes = Vec::new();
        sealer.seal(8, 0, &plain, &mut bytes).unwrap();
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(opener.open(&bytes, &mut Vec::new()).is_err(), "bit {}", bit);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let (_, opener) = export();
        prop_assert!(opener.open(&bytes, &mut Vec::new()).is_err());
        let _ = format::from_text(&bytes, &mut Vec::new());
        let _ = envelope::Evidence::decode(&bytes);
    }
}

/// A value for a column opens under the storing key only, for that column and modifier only, whole or from its
/// parts; its flags allow nothing else. Bug: a value of one column is stored in another one.
#[test]
fn fitted() {
    let (client, keeper) = keys();
    let key = client.storing().unwrap();
    assert_eq!(key.expose(), keeper.storing().unwrap().expose());
    let sealer = Sealer::storing(&key).unwrap();
    let opener = Opener::storing(&StoringKey::read(*key.expose())).unwrap();
    let target = Target {
        column: [7; 16],
        typmod: 9,
    };
    let (t, plain) = (TypeCode::Text as u8, b"a value".as_slice());
    let (mut bytes, mut out) = (Vec::new(), Vec::new());
    sealer
        .seal_fitted(t, FLAG_HANDLE | FLAG_TEXT, &target, b"first", &mut out)
        .unwrap();
    sealer
        .seal_fitted(t, FLAG_HANDLE | FLAG_TEXT, &target, plain, &mut bytes)
        .unwrap();
    let parsed = opener.open(&bytes, &mut out).unwrap();
    assert_eq!(
        (parsed.target, parsed.flags),
        (Some(target), FLAG_HANDLE | FLAG_FITTED)
    );
    assert_eq!(out, plain);
    let (_, session) = keeper.into_keeper().unwrap();
    assert!(session.open(&bytes, &mut out).is_err());
    for at in [2, 4, 19, 20, 24 + 11, bytes.len() - 1] {
        let mut altered = bytes.clone();
        altered[at] ^= 1;
        assert!(opener.open(&altered, &mut out).is_err(), "{at}");
    }
    for (origin, flags) in [
        (1, FLAG_FITTED | FLAG_TEXT),
        (3, FLAG_FITTED),
        (2, FLAG_FITTED),
    ] {
        let mut altered = bytes.clone();
        (altered[1], altered[3]) = (origin, flags);
        assert!(Envelope::parse(&altered).is_err());
    }
    let parts = Fitted {
        type_code: t,
        flags: FLAG_HANDLE | FLAG_FITTED,
        target,
        counter: 1,
        sealed: &bytes[4 + 20 + 12..],
    };
    opener.open_fitted(&parts, &mut out).unwrap();
    assert_eq!(out, plain);
    let column = Target {
        column: [8; 16],
        ..target
    };
    for other in [
        Fitted {
            target: column,
            ..parts
        },
        Fitted {
            counter: 0,
            ..parts
        },
        Fitted {
            flags: FLAG_FITTED,
            ..parts
        },
        Fitted { flags: 0, ..parts },
    ] {
        assert!(opener.open_fitted(&other, &mut out).is_err());
    }
}
