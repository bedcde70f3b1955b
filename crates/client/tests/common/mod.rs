//! Two ends of a session, without a server: what the client seals the keeper's
//! end opens, and the other way round.
use contract::TypeCode;
use contract::envelope::FLAG_TEXT;
use envelope::{Opener, Sealer, SecretKey, format};

/// The keeper's end.
pub struct Keeper {
    pub sealer: Sealer,
    pub opener: Opener,
}

/// A client's session and its keeper's end.
pub fn session() -> (client::Session, Keeper) {
    let secret = SecretKey::generate().unwrap();
    let keeper = SecretKey::generate().unwrap();
    let mut responder = envelope::handshake::Responder::new(&keeper).unwrap();
    let handshake = client::Handshake::new(&secret).unwrap();
    let one = message(&handshake.first_sql());
    responder.receive(&one).unwrap();
    let two = responder
        .respond(&envelope::Evidence::new(1, Vec::new()))
        .unwrap();
    let offer = handshake.offer(&hex(&two)).unwrap();
    assert_eq!(offer.keeper.key, keeper.public().unwrap());
    let (who, keys) = responder.finish(&message(&offer.sql())).unwrap();
    assert_eq!(who, secret.public().unwrap());
    let mut session = client::Session::default();
    session.begin(offer);
    session.types = types();
    let (sealer, opener) = keys.into_keeper().unwrap();
    (session, Keeper { sealer, opener })
}

/// Made-up OIDs: 90000 and the code, arrays 91000.
pub fn types() -> client::TypeMap {
    let both = |t: &TypeCode| {
        [
            (90_000 + *t as u32, rewrite::ColumnType::Enc(*t)),
            (91_000 + *t as u32, rewrite::ColumnType::EncArray(*t)),
        ]
    };
    let list: Vec<_> = TypeCode::ALL.iter().flat_map(both).collect();
    client::TypeMap::new(&list)
}

fn message(sql: &str) -> Vec<u8> {
    let hex = sql.split('\'').nth(1).unwrap();
    (0..hex.len() / 2)
        .map(|at| u8::from_str_radix(&hex[at * 2..at * 2 + 2], 16).unwrap())
        .collect()
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

impl Keeper {
    /// The text in a client's envelope text.
    pub fn open_text(&self, envelope: &[u8]) -> String {
        let mut binary = Vec::new();
        format::from_text(envelope, &mut binary).unwrap();
        let mut out = Vec::new();
        let seen = self.opener.open(&binary, &mut out).unwrap();
        assert!(seen.flags & FLAG_TEXT != 0);
        String::from_utf8(out).unwrap()
    }

    /// An envelope text for the client, of a `text` value.
    pub fn seal_text(&self, value: &str) -> String {
        self.seal_text_with(0, value)
    }

    /// The same, with flags.
    pub fn seal_text_with(&self, flags: u8, value: &str) -> String {
        let mut out = String::new();
        self.sealer
            .seal_text(TypeCode::Text as u8, flags, value.as_bytes(), &mut out)
            .unwrap();
        out
    }
}
