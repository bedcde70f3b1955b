//! The keeper no longer knows the session: outside of a transaction the statement is sent again
//! after a new handshake, and the client sees one answer; otherwise it gets the error.
use super::*;

fn lost(out: &mut BytesMut) {
    error(out, "08003", "confide: no client session", None);
}

/// The client has already received the answers to Parse and Bind: it does not get them twice.
#[test]
fn a_pipeline_is_repeated() {
    let mut w = World::new();
    w.client(|b| {
        frontend::parse(b, "q", "SELECT id FROM t WHERE s = 'SEKRIT'", &[]);
        frontend::bind(b, "", "q", &[], &[], &[]);
        frontend::execute(b, "");
        frontend::bare(b, b'S');
    });
    w.keys = None;
    let sent = w.server(|b| {
        bare(b, "1");
        parameters(b, &[]);
        columns(b, 23);
        bare(b, "2");
        lost(b);
        backend::ready(b, b'I');
    });
    assert!(w.keys.is_some(), "shook hands");
    assert_eq!(tags(&w.told()), "12", "no error");
    assert_eq!(tags(&sent), "CPDBES", "everything again, the name is free");
    let parse = frontend::Parse::read(&sent[1].1).unwrap();
    assert_eq!(w.opened(parse.sql.split('\'').nth(1).unwrap()), SECRET);
    w.server(|b| {
        bare(b, "31");
        parameters(b, &[]);
        columns(b, 23);
        bare(b, "2");
        backend::complete(b, "SELECT 0");
        backend::ready(b, b'I');
    });
    assert_eq!(tags(&w.told()), "CZ");
}

/// A statement that was prepared earlier is prepared again, also if it contains grants only.
#[test]
fn prepared_statements_are_prepared_again() {
    for text in ["SELECT id FROM t WHERE s = 'SEKRIT'", "SELECT s FROM t"] {
        let mut w = World::new();
        let prepared = |b: &mut BytesMut| {
            bare(b, "1");
            parameters(b, &[]);
            columns(b, 23);
        };
        w.client(|b| {
            frontend::parse(b, "q", text, &[]);
            frontend::bare(b, b'S');
        });
        w.server(|b| {
            prepared(b);
            backend::ready(b, b'I');
        });
        w.client(|b| {
            frontend::bind(b, "", "q", &[], &[], &[]);
            frontend::execute(b, "");
            frontend::bare(b, b'S');
        });
        let sent = w.server(|b| {
            bare(b, "2");
            lost(b);
            backend::ready(b, b'I');
        });
        assert_eq!(tags(&sent), "CPDBES", "{text}");
        w.server(|b| {
            bare(b, "3");
            prepared(b);
            bare(b, "2");
            backend::complete(b, "SELECT 0");
            backend::ready(b, b'I');
        });
        assert_eq!(tags(&w.told()), "1Z2CZ", "the new Parse is hidden");
    }
}

/// The client waits for an answer before it sends Sync.
#[test]
fn before_sync() {
    let mut w = World::new();
    w.client(|b| {
        frontend::parse(b, "", "SELECT id FROM t WHERE s = 'SEKRIT'", &[]);
        frontend::bare(b, b'H');
    });
    let sent = w.server(lost);
    assert_eq!(tags(&sent), "S", "the server skips everything before");
    let sent = w.server(|b| backend::ready(b, b'I'));
    assert_eq!(tags(&sent), "PDH");
    assert_eq!(tags(&w.told()), "");
    w.client(|b| frontend::bare(b, b'S'));
    w.server(|b| {
        bare(b, "1");
        parameters(b, &[]);
        columns(b, 23);
        backend::ready(b, b'I');
    });
    assert_eq!(tags(&w.told()), "1Z");
}

/// The second attempt is the last one.
#[test]
fn once_only() {
    let mut w = World::new();
    let failed = |b: &mut BytesMut| {
        lost(b);
        backend::ready(b, b'I');
    };
    w.client(|b| frontend::query(b, "SELECT s FROM t"));
    let sent = w.server(failed);
    assert_eq!(tags(&sent), "Q");
    assert_eq!(tags(&w.told()), "");
    assert_eq!(tags(&w.server(failed)), "");
    assert_eq!(tags(&w.told()), "EZ");
}

/// Not sent again: a statement in a transaction, one of which the client has rows, one after
/// another, and one that may have committed something.
#[test]
fn what_may_have_had_effects() {
    let told = |text: &str, before: fn(&mut BytesMut), status: u8| {
        let mut w = World::new();
        w.status = status;
        if status == b'T' {
            w.client(|b| frontend::query(b, "BEGIN"));
            w.server(|b| {
                backend::complete(b, "BEGIN");
                backend::ready(b, b'T');
            });
        }
        w.client(|b| frontend::query(b, text));
        w.told();
        let sent = w.server(|b| {
            before(b);
            lost(b);
            backend::ready(b, if status == b'T' { b'E' } else { b'I' });
        });
        assert_eq!(tags(&sent), "", "{text}");
        tags(&w.told())
    };
    assert_eq!(told("SELECT s FROM t", |_| {}, b'T'), "EZ");
    let rows = |b: &mut BytesMut| {
        columns(b, 23);
        backend::text_row(b, &["1".into()]);
    };
    assert_eq!(
        told("SELECT id FROM t WHERE s = 'SEKRIT'", rows, b'I'),
        "TDEZ"
    );
    let one = |b: &mut BytesMut| backend::complete(b, "INSERT 0 1");
    let two = "INSERT INTO t VALUES (1, 'SEKRIT'); SELECT s FROM t";
    assert_eq!(told(two, one, b'I'), "CEZ");
    for text in [
        "CALL p()",
        "DO 'BEGIN END'",
        "VACUUM t",
        "CREATE INDEX CONCURRENTLY i ON t (s)",
    ] {
        assert_eq!(told(text, |_| {}, b'I'), "EZ");
    }
}
