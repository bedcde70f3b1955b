//! Tests the state machine with a scripted server and the keeper's side of the handshake: the order
//! of responses, what reaches the server, and what the client sees.
mod again;
mod forged;
mod protocol;
mod schema;

use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use contract::TypeCode;
use envelope::handshake::Responder;
use envelope::{Evidence, Opener, Sealer, SecretKey, format};

use super::Core;
use crate::config::Config;
use crate::shared::Shared;
use crate::upstream::Servers;
use crate::wire::{Reader, backend, frame, frontend};

const SECRET: &str = "SEKRIT";
/// OID of `enc_text`.
const ENC_TEXT: u32 = 90_008;

/// The proxy, server and keeper of a test.
struct World {
    core: Core,
    keeper_key: Arc<SecretKey>,
    responder: Option<Responder>,
    keys: Option<(Sealer, Opener)>,
    keeper_down: bool,
    rest: BytesMut,
    /// The test itself answers the proxy's queries.
    manual: bool,
    /// The state of the transaction after the proxy's queries.
    status: u8,
    /// How often the proxy asked for changes.
    asked: usize,
    /// Records of the schema, and additional ones reported when the proxy asks.
    schema: Vec<String>,
    more: Vec<String>,
}

type Frames = Vec<(u8, Vec<u8>)>;

fn split(mut bytes: BytesMut) -> Frames {
    let mut out = Vec::new();
    while let Some(length) = frame::first(&bytes, 1 << 20).unwrap() {
        let one = bytes.split_to(length);
        out.push((one[0], frame::body(&one).to_vec()));
    }
    assert!(bytes.is_empty());
    out
}

fn tags(frames: &Frames) -> String {
    frames.iter().map(|(tag, _)| *tag as char).collect()
}

/// Encodes a report of the server.
fn report(fields: &[&str]) -> String {
    fields.iter().map(|f| format!("{}:{f}", f.len())).collect()
}

/// The whole schema: `t (id int4, s enc_text)` and two tables `two`.
fn whole() -> Vec<String> {
    let records = [
        "n 11 pg_catalog",
        "n 2200 public",
        "n 2201 elsewhere",
        "t 23 11 int4 0 0 0",
        "t 25 11 text 0 0 0",
        "t 90008 11 enc_text 0 0 0",
        "t 91008 11 _enc_text 0 90008 0",
        "r 1000 2200 t r 0 c 1 id 23 -1 0 0 c 2 s 90008 -1 0 0 e",
        "r 1001 2200 two r 0 c 1 s 90008 -1 0 0 e",
        "r 1002 2201 two r 0 c 1 s 25 -1 0 0 e",
    ];
    let records = records.iter().flat_map(|r| r.split(' '));
    let part: Vec<&str> = ["P"].into_iter().chain(records).collect();
    vec![report(&part), report(&["W", "0", "db.1", "0", "5"])]
}

/// The search path in effect.
fn path(setting: &str, schemas: &[&str]) -> String {
    let count = schemas.len().to_string();
    let head = ["Q", setting, "none", "user", "", &count];
    report(&[&head[..], schemas].concat())
}

impl World {
    /// A session of a database with Confide and a table `t (id int4, s enc_text)`.
    fn new() -> World {
        World::with(whole())
    }

    /// A session of a database with this schema.
    fn with(schema: Vec<String>) -> World {
        let shared = Shared::new(
            Config::default(),
            Servers::of(&Config::default()).unwrap(),
            SecretKey::generate().unwrap(),
            None,
        );
        let mut world = World {
            core: Core::new(Arc::new(shared), "db", "app"),
            keeper_key: Arc::new(SecretKey::generate().unwrap()),
            responder: None,
            keys: None,
            keeper_down: false,
            rest: BytesMut::new(),
            manual: false,
            status: b'I',
            asked: 0,
            schema,
            more: vec![path("public", &["pg_catalog", "public"])],
        };
        let mut out = BytesMut::new();
        frame::write(&mut out, b'R', |b| b.put_i32(0));
        backend::ready(&mut out, b'I');
        world.core.server_input(&mut out).unwrap();
        world.settle();
        assert_eq!(tags(&world.told()), "RZ", "released once, when prepared");
        world
    }

    /// Answers the proxy's own requests as long as there are any; returns what else it sent.
    fn settle(&mut self) -> Frames {
        let mut others = Frames::new();
        loop {
            let mut frames = split(self.core.to_server.split());
            let own = |(tag, body): &(u8, Vec<u8>)| {
                *tag == b'P' && body.starts_with(b"confide_internal\0")
            };
            let Some(at) = frames.iter().position(own).filter(|_| !self.manual) else {
                others.extend(frames);
                return others;
            };
            // Close, then Parse and Close, or Parse, Bind, Execute, Close, Close; then Sync or
            // Flush.
            let behind = frames.split_off(at - 1);
            others.extend(frames);
            let sql = frontend::Parse::read(&behind[1].1).unwrap().sql.to_owned();
            let end = behind.last().unwrap().0;
            let mut out = BytesMut::new();
            match self.internal(&sql, &mut out) {
                true => {}
                false => error(&mut out, "08006", "no keeper", None),
            }
            if end == b'S' {
                backend::ready(&mut out, self.status);
            } else {
                others.push((b'H', Vec::new()));
            }
            self.core.server_input(&mut out).unwrap();
            self.sweep();
            self.core.client_input(&mut self.rest).unwrap();
        }
    }

    /// Lets the proxy remove what a failed request has left behind.
    fn sweep(&mut self) {
        let frames = split(self.core.to_server.split());
        if tags(&frames) == "CCS" {
            let mut out = BytesMut::new();
            bare(&mut out, "33");
            backend::ready(&mut out, b'I');
            self.core.server_input(&mut out).unwrap();
        } else {
            let again = |(tag, body): &(u8, Vec<u8>)| {
                frame::write(&mut self.core.to_server, *tag, |b| b.put_slice(body));
            };
            frames.iter().for_each(again);
        }
    }

    /// Answers a request; returns false if it fails.
    fn internal(&mut self, sql: &str, out: &mut BytesMut) -> bool {
        bare(out, "3");
        if sql.starts_with("SET confide.schema_since") {
            self.asked += 1;
            let known = sql.contains("'db.1'");
            let nothing = [report(&["S", "0", "db.1", "5", "5"])];
            let first = if known { &nothing[..] } else { &self.schema };
            let all = first.iter().chain(&self.more);
            all.for_each(|r| backend::parameter(out, contract::report::SETTING, r));
            bare(out, "13");
            return true;
        }
        bare(out, "12");
        let Some(field) = self.handshake(sql) else {
            return false;
        };
        backend::text_row(out, &[field]);
        backend::complete(out, "SELECT 1");
        bare(out, "33");
        true
    }

    fn handshake(&mut self, sql: &str) -> Option<String> {
        if self.keeper_down {
            return None;
        }
        let hex = sql.split('\'').nth(1).unwrap();
        let message: Vec<u8> = (0..hex.len() / 2)
            .map(|at| u8::from_str_radix(&hex[at * 2..at * 2 + 2], 16).unwrap())
            .collect();
        if sql.contains("handshake(1") {
            let mut responder = Responder::new(&self.keeper_key).unwrap();
            responder.receive(&message).unwrap();
            let two = responder.respond(&Evidence::new(1, Vec::new())).unwrap();
            self.responder = Some(responder);
            return Some(two.iter().map(|b| format!("{b:02x}")).collect());
        }
        let (_, keys) = self.responder.take().unwrap().finish(&message).unwrap();
        self.keys = Some(keys.into_keeper().unwrap());
        Some(String::new())
    }

    /// Sends messages from the client; returns what reaches the server, without the proxy's own
    /// queries.
    fn client(&mut self, fill: impl FnOnce(&mut BytesMut)) -> Frames {
        let mut input = BytesMut::new();
        fill(&mut input);
        self.core.client_input(&mut input).unwrap();
        self.rest.unsplit(input);
        self.go_on()
    }

    /// Answers requests and processes the client's remaining messages as long as possible.
    fn go_on(&mut self) -> Frames {
        let mut sent = Frames::new();
        loop {
            sent.extend(self.settle());
            let before = (self.rest.len(), self.core.blocked());
            self.core.client_input(&mut self.rest).unwrap();
            let still = (self.rest.len(), self.core.blocked()) == before;
            if still && self.core.to_server.is_empty() {
                return sent;
            }
        }
    }

    fn server(&mut self, fill: impl FnOnce(&mut BytesMut)) -> Frames {
        let mut input = BytesMut::new();
        fill(&mut input);
        self.core.server_input(&mut input).unwrap();
        self.go_on()
    }

    fn told(&mut self) -> Frames {
        split(self.core.to_client.split())
    }

    fn opened(&self, envelope: &str) -> String {
        let mut binary = Vec::new();
        format::from_text(envelope.as_bytes(), &mut binary).unwrap();
        let mut out = Vec::new();
        let (_, opener) = self.keys.as_ref().unwrap();
        opener.open(&binary, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn sealed(&self, value: &str) -> String {
        let mut out = String::new();
        let (sealer, _) = self.keys.as_ref().unwrap();
        sealer
            .seal_text(TypeCode::Text as u8, 0, value.as_bytes(), &mut out)
            .unwrap();
        out
    }
}

fn error(out: &mut BytesMut, code: &str, message: &str, position: Option<&str>) {
    let mut fields: Vec<(u8, &[u8])> = vec![
        (b'V', b"ERROR"),
        (b'C', code.as_bytes()),
        (b'M', message.as_bytes()),
    ];
    fields.extend(position.map(|p| (b'P', p.as_bytes())));
    backend::write_fields(out, b'E', &fields);
}

fn bare(out: &mut BytesMut, tags: &str) {
    tags.bytes().for_each(|tag| frame::write(out, tag, |_| {}));
}

/// RowDescription of one column.
fn columns(out: &mut BytesMut, oid: u32) {
    frame::write(out, b'T', |b| {
        b.put_u16(1);
        frame::cstr(b, b"s");
        b.put_u32(1000);
        b.put_i16(2);
        b.put_u32(oid);
        b.put_i16(8);
        b.put_i32(-1);
        b.put_i16(0);
    });
}

fn parameters(out: &mut BytesMut, oids: &[u32]) {
    frame::write(out, b't', |b| {
        b.put_u16(oids.len() as u16);
        oids.iter().for_each(|oid| b.put_u32(*oid));
    });
}

fn field(frame: &(u8, Vec<u8>), tag: u8) -> &str {
    let fields = backend::fields(&frame.1).unwrap();
    let value = fields.iter().find(|(t, _)| *t == tag).unwrap().1;
    std::str::from_utf8(value).unwrap()
}

fn sql_of(frame: &(u8, Vec<u8>)) -> String {
    Reader::new(&frame.1, "Query").str().unwrap().to_owned()
}
