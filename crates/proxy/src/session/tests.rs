//! The state machine against a scripted server with a keeper's end of the
//! handshake: order of responses, what reaches the server, what the client sees.
use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use contract::TypeCode;
use envelope::handshake::Responder;
use envelope::{Evidence, Opener, Sealer, SecretKey, format};

use super::Core;
use crate::config::{Config, Upstream};
use crate::shared::Shared;
use crate::wire::{Reader, backend, frame, frontend};

const SECRET: &str = "SEKRIT";
/// OID of `enc_text`.
const ENC_TEXT: u32 = 90_008;

/// Proxy, server and keeper of a test.
struct World {
    core: Core,
    keeper_key: SecretKey,
    responder: Option<Responder>,
    keys: Option<(Sealer, Opener)>,
    keeper_down: bool,
    rest: BytesMut,
    /// The test itself answers the proxy's own queries.
    manual: bool,
    /// How often the proxy asked for the search path.
    path_asked: usize,
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

fn rows(list: &[&[&str]]) -> Vec<Vec<String>> {
    list.iter()
        .map(|row| row.iter().map(|v| (*v).to_owned()).collect())
        .collect()
}

impl World {
    /// A session of a database with Confide and a table `t (id int4, s enc_text)`.
    fn new() -> World {
        let shared = Shared::new(
            Config::default(),
            Upstream::Tcp(String::new()),
            SecretKey::generate().unwrap(),
            None,
            rewrite::Pins::default(),
        );
        let mut world = World {
            core: Core::new(Arc::new(shared), "db", "user"),
            keeper_key: SecretKey::generate().unwrap(),
            responder: None,
            keys: None,
            keeper_down: false,
            rest: BytesMut::new(),
            manual: false,
            path_asked: 0,
        };
        let mut out = BytesMut::new();
        frame::write(&mut out, b'R', |b| b.put_i32(0));
        backend::ready(&mut out, b'I');
        world.core.server_input(&mut out).unwrap();
        world.settle();
        assert_eq!(tags(&world.told()), "RZ", "released once, when prepared");
        world
    }

    /// Answers the proxy's own queries, as long as there are any; gives what else
    /// it sent.
    fn settle(&mut self) -> Frames {
        let mut others = Frames::new();
        loop {
            let frames = split(self.core.to_server.split());
            let at = frames
                .iter()
                .position(|(tag, body)| *tag == b'P' && body.starts_with(b"confide_internal\0"));
            let Some(at) = at.filter(|_| !self.manual) else {
                others.extend(frames);
                return others;
            };
            // Close, Close, Parse, Bind, Execute, and Sync or Flush.
            others.extend_from_slice(&frames[..at - 2]);
            let sql = frontend::Parse::read(&frames[at].1).unwrap().sql.to_owned();
            let sync = frames[at + 3].0 == b'S';
            let mut out = BytesMut::new();
            for tag in [b'3', b'3', b'1', b'2'] {
                frame::write(&mut out, tag, |_| {});
            }
            match self.internal(&sql) {
                Some(rows) => {
                    rows.iter().for_each(|row| backend::text_row(&mut out, row));
                    backend::complete(&mut out, "SELECT");
                }
                None => error(&mut out, "08006", "no keeper", None),
            }
            if sync {
                backend::ready(&mut out, b'I');
            } else {
                others.push((b'H', Vec::new()));
            }
            self.core.server_input(&mut out).unwrap();
            self.core.client_input(&mut self.rest).unwrap();
        }
    }

    fn internal(&mut self, sql: &str) -> Option<Vec<Vec<String>>> {
        if sql == client::TypeMap::QUERY {
            return Some(rows(&[&["90008", "enc_text", "91008"]]));
        }
        if sql.contains("confide.handshake") {
            if self.keeper_down {
                return None;
            }
            let hex = sql.split('\'').nth(1).unwrap();
            let message: Vec<u8> = (0..hex.len() / 2)
                .map(|at| u8::from_str_radix(&hex[at * 2..at * 2 + 2], 16).unwrap())
                .collect();
            if sql.contains("handshake(1") {
                let mut responder = Responder::new(&self.keeper_key).unwrap();
                let two = responder
                    .respond(&message, &Evidence::simulated(1))
                    .unwrap();
                self.responder = Some(responder);
                let hex: String = two.iter().map(|b| format!("{b:02x}")).collect();
                return Some(rows(&[&[&hex]]));
            }
            let (_, keys) = self.responder.take().unwrap().finish(&message).unwrap();
            self.keys = Some(keys.into_keeper().unwrap());
            return Some(rows(&[&[""]]));
        }
        let at = rewrite::SCHEMA_QUERIES
            .iter()
            .position(|q| *q == sql)
            .unwrap();
        self.path_asked += usize::from(at == 0);
        Some(match at {
            0 => rows(&[&["path", "pg_catalog"], &["path", "public"]]),
            1 => rows(&[
                &["1000", "public", "t", "r"],
                &["1001", "public", "two", "r"],
                &["1002", "elsewhere", "two", "r"],
            ]),
            2 => rows(&[
                &["1000", "1", "id", "23", "-1", "", ""],
                &["1000", "2", "s", "90008", "-1", "", ""],
                &["1001", "1", "s", "90008", "-1", "", ""],
                &["1002", "1", "s", "25", "-1", "", ""],
            ]),
            3 => rows(&[
                &["23", "pg_catalog", "int4", "t", "0", "b"],
                &["25", "pg_catalog", "text", "t", "0", "b"],
                &["90008", "pg_catalog", "enc_text", "p", "0", "b"],
                &["91008", "pg_catalog", "_enc_text", "a", "0", "b"],
            ]),
            _ => Vec::new(),
        })
    }

    /// The client sends; gives what reaches the server, the proxy's own queries
    /// left out.
    fn client(&mut self, fill: impl FnOnce(&mut BytesMut)) -> Frames {
        let mut input = BytesMut::new();
        fill(&mut input);
        self.core.client_input(&mut input).unwrap();
        self.rest.unsplit(input);
        self.go_on()
    }

    /// Settles, and goes on with what the client has sent, as long as it may.
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

/// A literal that meets a protected column leaves in an envelope, and results
/// are opened under the plain type.
#[test]
fn query() {
    let mut w = World::new();
    let sent = w.client(|b| frontend::query(b, "SELECT s FROM t WHERE s = 'SEKRIT'"));
    assert_eq!(tags(&sent), "Q");
    let sql = sql_of(&sent[0]);
    assert!(!sql.contains(SECRET), "{sql}");
    let envelope = sql.split('\'').nth(1).unwrap();
    assert_eq!(w.opened(envelope), SECRET);
    let row = w.sealed("answer");
    w.server(|b| {
        columns(b, ENC_TEXT);
        backend::text_row(b, &[row]);
        backend::complete(b, "SELECT 1");
        backend::ready(b, b'I');
    });
    let told = w.told();
    assert_eq!(tags(&told), "TDCZ");
    assert_eq!(told[0].1[10..14], 25_u32.to_be_bytes());
    assert_eq!(backend::row(&told[1].1).unwrap(), [Some(&b"answer"[..])]);
}

/// Positions of errors are those of the client's text.
#[test]
fn positions_are_mapped_back() {
    let mut w = World::new();
    let text = "SELECT s FROM t WHERE s = 'SEKRIT' AND nope(id)";
    let sent = w.client(|b| frontend::query(b, text));
    let at = sql_of(&sent[0]).find("nope").unwrap() + 1;
    w.server(|b| {
        error(b, "42883", "no such function", Some(&at.to_string()));
        backend::ready(b, b'I');
    });
    let told = w.told();
    assert_eq!(tags(&told), "EZ");
    assert_eq!(
        field(&told[0], b'P'),
        (text.find("nope").unwrap() + 1).to_string()
    );
}

/// The refused text does not reach the server; the server's own failure puts the
/// transaction into the state that an error must leave.
#[test]
fn refused_query() {
    let mut w = World::new();
    let sent = w.client(|b| frontend::query(b, "SELECT nosuch FROM t WHERE s = 'SEKRIT'"));
    assert_eq!(sql_of(&sent[0]), "confide_refused");
    w.server(|b| {
        error(b, "42601", "syntax error", None);
        backend::ready(b, b'E');
    });
    let told = w.told();
    assert_eq!(tags(&told), "EZ");
    assert_eq!(field(&told[0], b'C'), "42703");
    assert_eq!(told[1].1, b"E");
}

/// Parameters wait for the server's types; the proxy's Describe is hidden.
#[test]
fn bind_waits_for_types() {
    let mut w = World::new();
    let sent = w.client(|b| {
        frontend::parse(b, "q", "SELECT s FROM t WHERE s = $1", &[25]);
        frontend::bind(b, "", "q", &[], &[Some(b"SEKRIT")], &[]);
        frontend::execute(b, "");
        frontend::bare(b, b'S');
    });
    assert_eq!(tags(&sent), "PDH");
    let parse = frontend::Parse::read(&sent[0].1).unwrap();
    assert_eq!(
        parse.types,
        [ENC_TEXT],
        "the declared type becomes its twin"
    );
    let sent = w.server(|b| {
        bare(b, "1");
        parameters(b, &[ENC_TEXT]);
        columns(b, ENC_TEXT);
    });
    assert_eq!(tags(&sent), "BES");
    let bind = frontend::Bind::read(&sent[0].1).unwrap();
    let envelope = std::str::from_utf8(bind.values[0].unwrap()).unwrap();
    assert_eq!(w.opened(envelope), SECRET);
    let row = w.sealed("answer");
    w.server(|b| {
        bare(b, "2");
        backend::text_row(b, &[row]);
        backend::complete(b, "SELECT 1");
        backend::ready(b, b'I');
    });
    let told = w.told();
    assert_eq!(tags(&told), "12DCZ");
    assert_eq!(backend::row(&told[2].1).unwrap(), [Some(&b"answer"[..])]);
}

/// The second time, the types are known: no round trip.
#[test]
fn known_types_need_no_waiting() {
    let mut w = World::new();
    for round in 0..2 {
        let sent = w.client(|b| {
            frontend::parse(b, "", "SELECT s FROM t WHERE s = $1", &[]);
            frontend::bind(b, "", "", &[], &[Some(b"SEKRIT")], &[]);
            frontend::bare(b, b'S');
        });
        assert_eq!(tags(&sent), if round == 0 { "PDH" } else { "PDBS" });
        w.server(|b| {
            bare(b, "1");
            parameters(b, &[ENC_TEXT]);
            columns(b, ENC_TEXT);
        });
        w.server(|b| {
            bare(b, "2");
            backend::ready(b, b'I');
        });
        assert_eq!(tags(&w.told()), "12Z");
    }
}

/// The server takes a parameter for plain that meets something protected: its
/// value does not leave.
#[test]
fn disagreement_about_a_parameter_is_refused() {
    let mut w = World::new();
    w.client(|b| {
        frontend::parse(b, "", "SELECT s FROM t WHERE s = $1", &[]);
        frontend::bind(b, "", "", &[], &[Some(b"SEKRIT")], &[]);
    });
    let sent = w.server(|b| {
        bare(b, "1");
        parameters(b, &[25]);
        columns(b, ENC_TEXT);
    });
    assert_eq!(tags(&sent), "PH");
    assert!(sent[0].1.starts_with(b"confide_refused\0"));
    w.server(|b| error(b, "42601", "syntax error", None));
    let told = w.told();
    assert_eq!(tags(&told), "1E");
    assert_eq!(field(&told[1], b'C'), "42P18");
}

/// An error of the proxy's waits for the answers before it, and what follows is
/// dropped up to Sync.
#[test]
fn errors_do_not_overtake() {
    let mut w = World::new();
    w.manual = true;
    let sent = w.client(|b| {
        frontend::parse(b, "", "SELECT 1", &[]);
        frontend::bind(b, "", "", &[], &[], &[]);
        frontend::execute(b, "");
        frontend::parse(b, "", "SELECT * FROM nowhere WHERE s = 'SEKRIT'", &[]);
    });
    // An unknown relation: the schema is loaded again first, with Flush, because
    // a Sync would commit.
    assert_eq!(tags(&sent), "PBECCPBEH");
    drop(w);

    // The same in order of the protocol: the first statement's answers come first.
    let mut w = World::new();
    w.client(|b| {
        frontend::parse(b, "", "SELECT 1", &[]);
        frontend::bind(b, "", "", &[], &[], &[]);
        frontend::execute(b, "");
        frontend::parse(b, "", "SELECT s FROM t WHERE s = 'SEKRIT", &[]);
        frontend::bind(b, "", "", &[], &[], &[]);
        frontend::bare(b, b'S');
    });
    assert_eq!(tags(&w.told()), "", "nothing before the server answers");
    w.server(|b| {
        bare(b, "12");
        backend::text_row(b, &["1".into()]);
        backend::complete(b, "SELECT 1");
        error(b, "42601", "syntax error", None);
        backend::ready(b, b'I');
    });
    assert_eq!(tags(&w.told()), "12DCEZ");
}

/// A Parse that fails leaves what had its name before.
#[test]
fn failed_parse_restores_the_name() {
    let mut w = World::new();
    w.client(|b| {
        frontend::parse(b, "q", "SELECT id FROM t", &[]);
        frontend::bare(b, b'S');
    });
    w.server(|b| {
        bare(b, "1");
        parameters(b, &[]);
        columns(b, 23);
        backend::ready(b, b'I');
    });
    w.client(|b| {
        frontend::parse(b, "q", "SELECT s FROM t WHERE s = $1", &[]);
        frontend::bare(b, b'S');
    });
    w.server(|b| {
        error(b, "42P05", "prepared statement already exists", None);
        backend::ready(b, b'I');
    });
    let sent = w.client(|b| {
        frontend::bind(b, "", "q", &[], &[], &[]);
        frontend::execute(b, "");
        frontend::bare(b, b'S');
    });
    assert_eq!(tags(&sent), "BES", "known, and without parameters");
    assert_eq!(tags(&w.told()), "1ZEZ");
}

/// The keeper has forgotten the session: the next statement shakes hands anew
/// and prepared statements get new envelopes.
#[test]
fn keeper_restart() {
    let mut w = World::new();
    w.client(|b| {
        frontend::parse(b, "q", "SELECT id FROM t WHERE s = 'SEKRIT'", &[]);
        frontend::bind(b, "", "q", &[], &[], &[]);
        frontend::execute(b, "");
        frontend::bare(b, b'S');
    });
    w.server(|b| {
        bare(b, "1");
        parameters(b, &[]);
        columns(b, 23);
        bare(b, "2");
        error(b, "08003", "confide: no client session", None);
        backend::ready(b, b'I');
    });
    w.keys = None;
    let sent = w.client(|b| {
        frontend::bind(b, "", "q", &[], &[], &[]);
        frontend::execute(b, "");
        frontend::bare(b, b'S');
    });
    assert!(w.keys.is_some(), "shook hands");
    assert_eq!(tags(&sent), "CPDBES");
    let parse = frontend::Parse::read(&sent[1].1).unwrap();
    assert_eq!(w.opened(parse.sql.split('\'').nth(1).unwrap()), SECRET);
    w.told();
    w.server(|b| {
        bare(b, "31");
        parameters(b, &[]);
        columns(b, 23);
        bare(b, "2");
        backend::complete(b, "SELECT 0");
        backend::ready(b, b'I');
    });
    assert_eq!(tags(&w.told()), "2CZ", "the new Parse is hidden");
}

/// Without the keeper nothing is sealed, so nothing is sent.
#[test]
fn keeper_down() {
    let mut w = World::new();
    w.core.session.lose();
    w.keeper_down = true;
    let sent = w.client(|b| frontend::query(b, "INSERT INTO t VALUES (1, 'SEKRIT')"));
    assert_eq!(sql_of(&sent[0]), "confide_refused");
    w.server(|b| {
        error(b, "42601", "syntax error", None);
        backend::ready(b, b'I');
    });
    let told = w.told();
    assert_eq!(field(&told[0], b'C'), "08006");
    let sent = w.client(|b| frontend::query(b, "SELECT 1"));
    assert_eq!(sql_of(&sent[0]), "SELECT 1", "what is plain still works");
}

/// An envelope that does not open ends the connection.
#[test]
fn forged_results_are_fatal() {
    let mut w = World::new();
    w.client(|b| frontend::query(b, "SELECT s FROM t"));
    let mut input = BytesMut::new();
    columns(&mut input, ENC_TEXT);
    backend::text_row(&mut input, &["forged".into()]);
    assert!(w.core.server_input(&mut input).is_err());
    assert_eq!(tags(&w.told()), "T");
}

/// A name that means tables of different protection: the path is asked for before
/// each statement, unless the server reports its changes.
#[test]
fn path_is_asked_for_unless_it_is_reported() {
    let sql = "SELECT s FROM two WHERE s = 'SEKRIT'";
    let mut w = World::new();
    let asked = |w: &mut World| {
        let before = w.path_asked;
        let sent = w.client(|b| frontend::query(b, sql));
        assert!(!sql_of(&sent[0]).contains(SECRET));
        w.server(|b| {
            columns(b, ENC_TEXT);
            backend::complete(b, "SELECT 0");
            backend::ready(b, b'I');
        });
        w.path_asked - before
    };
    assert_eq!((asked(&mut w), asked(&mut w)), (1, 1));
    let report = |w: &mut World, name: &str| {
        w.server(|b| backend::parameter(b, name, "other"));
    };
    report(&mut w, "search_path");
    assert_eq!((asked(&mut w), asked(&mut w)), (1, 1), "the role is not");
    report(&mut w, "role");
    assert_eq!((asked(&mut w), asked(&mut w)), (1, 0));
    report(&mut w, "search_path");
    assert_eq!((asked(&mut w), asked(&mut w)), (1, 0));
    // What runs before it in a pipeline may have changed the path without a word yet.
    w.manual = true;
    let sent = w.client(|b| {
        frontend::parse(b, "", "SELECT f()", &[]);
        frontend::bind(b, "", "", &[], &[], &[]);
        frontend::execute(b, "");
        frontend::parse(b, "", sql, &[]);
    });
    assert_eq!(tags(&sent), "PBECCPBEH");
}

/// Changes of the schema are seen by the next statement, in the same pipeline
/// too.
#[test]
fn schema_is_loaded_again_after_ddl() {
    let mut w = World::new();
    w.client(|b| frontend::query(b, "CREATE TABLE u (x int)"));
    w.server(|b| {
        backend::complete(b, "CREATE TABLE");
        backend::ready(b, b'I');
    });
    let loads = &w
        .core
        .shared
        .stats
        .schema_loads
        .load(std::sync::atomic::Ordering::Relaxed)
        .clone();
    w.client(|b| frontend::query(b, "SELECT s FROM t"));
    let after = w
        .core
        .shared
        .stats
        .schema_loads
        .load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(after, loads + 1);
}

/// COPY data is held back until there is a batch of it, and sealed; a row that does not fit
/// fails the COPY with our error, after the rows before it.
#[test]
fn copy_in() {
    let mut w = World::new();
    w.client(|b| frontend::query(b, "COPY t FROM STDIN"));
    w.server(|b| frame::write(b, b'G', |b| b.put_slice(&[0, 0, 2, 0, 0, 0, 0])));
    let held = w.client(|b| {
        frontend::copy_data(b, b"1\tSEKRIT\n2\t");
        frontend::copy_data(b, b"\\N\n");
    });
    assert_eq!(tags(&held), "");
    let sent = w.client(|b| {
        frontend::copy_data(b, b"3\tSEKRIT\tSEKRIT\n");
        frontend::bare(b, b'c');
    });
    assert_eq!(tags(&sent), "df");
    let text = String::from_utf8(sent[0].1.to_vec()).unwrap();
    assert!(
        !text.contains(SECRET) && text.starts_with("1\tcfd1.") && text.ends_with("2\t\\N\n"),
        "{text}"
    );
    w.server(|b| {
        error(b, "57014", "COPY from stdin failed", None);
        backend::ready(b, b'I');
    });
    let told = w.told();
    assert_eq!(tags(&told), "GEZ");
    assert_eq!(field(&told[1], b'C'), "22P04");
}

/// A statement that names what the proxy does not know, and nothing protected, goes on as it is, but
/// not before the schema has been read again: the name may be that of a new protected table.
#[test]
fn what_is_unknown_is_looked_for_first() {
    let mut w = World::new();
    w.manual = true;
    let sql = "SELECT * FROM nowhere WHERE s = 'open'";
    let sent = w.client(|b| frontend::query(b, sql));
    assert!(
        sent.iter()
            .all(|frame| !frame.1.windows(4).any(|w| w == b"open"))
    );
    assert!(!sent.is_empty(), "the schema is asked for");
    let mut w = World::new();
    let sent = w.client(|b| frontend::query(b, sql));
    assert_eq!(sql_of(sent.last().unwrap()), sql);
}

/// Functions of large objects are called by message; others are refused.
#[test]
fn function_calls() {
    let call = |oid: u32| {
        let mut w = World::new();
        let sent = w.client(|b| {
            frame::write(b, b'F', |b| {
                b.put_u32(oid);
                b.put_slice(&[0; 6]);
            });
        });
        tags(&sent)
    };
    assert_eq!(call(952), "F");
    assert_eq!(call(2954), "Q");
}

/// Strings are read as the server reads them. A proxy that takes the backslash for a character ends
/// the literal early, and what is behind it leaves in the clear.
#[test]
fn escapes_in_strings() {
    let sql = r"SELECT s FROM t WHERE s = 'a\'SEKRIT'";
    let mut w = World::new();
    w.server(|b| backend::parameter(b, "standard_conforming_strings", "off"));
    let sent = w.client(|b| frontend::query(b, sql));
    let text = sql_of(sent.last().unwrap());
    assert!(text.starts_with("SELECT s FROM t WHERE s = 'cfd1.") && !text.contains(SECRET));
    // In a pipeline the server does not say what a setting has become.
    let mut w = World::new();
    let sent = w.client(|b| {
        frontend::parse(b, "", "SET standard_conforming_strings = off", &[]);
        frontend::bind(b, "", "", &[], &[], &[]);
        frontend::execute(b, "");
        frontend::parse(b, "", sql, &[]);
    });
    assert_eq!(tags(&sent), "PBEPH");
    assert_eq!(
        frontend::Parse::read(&sent[3].1).unwrap().sql,
        "confide_refused"
    );
}
