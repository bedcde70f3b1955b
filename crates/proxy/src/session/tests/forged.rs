//! Answers that are not the statement's, as a server that is not PostgreSQL can send them, or
//! somebody between it and the proxy: the client is shown nothing that the statement does not read,
//! and gives no data that the statement does not ask for.
use super::*;
use crate::session::Stop;

/// The SQLSTATE with which the connection ends, and the tags of what the client got before.
fn refused(w: &mut World, fill: impl FnOnce(&mut BytesMut)) -> (String, String) {
    let mut input = BytesMut::new();
    fill(&mut input);
    let end = match w.core.server_input(&mut input) {
        Err(Stop::Fatal(failure)) => failure.sqlstate.clone(),
        other => format!("{other:?}"),
    };
    (end, tags(&w.told()))
}

fn of(sqlstate: &str, told: &str) -> (String, String) {
    (sqlstate.to_owned(), told.to_owned())
}

fn copy_in_response(out: &mut BytesMut, columns: usize) {
    frame::write(out, b'G', |b| {
        b.put_u8(0);
        b.put_u16(columns as u16);
        b.put_bytes(0, 2 * columns);
    });
}

/// Rows behind the completion of the last statement are no statement's. The proxy opened whatever
/// they had, also for who had asked for nothing protected.
#[test]
fn rows_behind_the_completion() {
    for sql in ["SELECT s FROM elsewhere.two", "INSERT INTO t VALUES (1)"] {
        let mut w = World::new();
        w.client(|b| frontend::query(b, sql));
        let row = w.sealed(SECRET);
        let ended = refused(&mut w, |b| {
            backend::complete(b, "SELECT 0");
            columns(b, ENC_TEXT);
            backend::text_row(b, &[row]);
        });
        assert_eq!(ended, of("55000", "C"), "{sql}");
    }
}

/// What returns no rows, or plain ones, returns no protected ones.
#[test]
fn rows_of_what_has_none() {
    for sql in [
        "INSERT INTO t VALUES (1)",
        "EXPLAIN SELECT s FROM t",
        "SHOW work_mem",
        "SET work_mem = 64",
        "BEGIN",
        "CREATE TABLE a (id int)",
        "VACUUM",
    ] {
        let mut w = World::new();
        w.client(|b| frontend::query(b, sql));
        let ended = refused(&mut w, |b| columns(b, ENC_TEXT));
        assert_eq!(ended, of("55000", ""), "{sql}");
    }
}

/// What was refused cannot succeed: neither with rows nor without, nor by silence.
#[test]
fn success_of_what_was_refused() {
    type Fill = fn(&mut BytesMut);
    let answers: [Fill; 3] = [
        |b| backend::complete(b, "INSERT 0 1"),
        |b| columns(b, ENC_TEXT),
        |b| backend::ready(b, b'I'),
    ];
    for answer in answers {
        let mut w = World::new();
        let sent = w.client(|b| frontend::query(b, "SELECT nosuch FROM t WHERE s = 'SEKRIT'"));
        assert_eq!(sql_of(&sent[0]), "confide_refused");
        assert_eq!(refused(&mut w, answer), of("08P01", ""));
    }
}

/// The data of a COPY is sealed as that COPY says, also if the server leaves out another one before
/// it, or starts one a second time.
#[test]
fn data_of_another_copy() {
    let both = "COPY elsewhere.two FROM STDIN; COPY t FROM STDIN";
    let mut w = World::new();
    w.client(|b| frontend::query(b, both));
    w.server(|b| {
        backend::complete(b, "COPY 0");
        copy_in_response(b, 2);
    });
    let sent = w.client(|b| {
        frontend::copy_data(b, b"1\tSEKRIT\n");
        frontend::bare(b, b'c');
    });
    assert_eq!(tags(&sent), "dc");
    assert!(!String::from_utf8_lossy(&sent[0].1).contains(SECRET));
    for (sql, told) in [("COPY t FROM STDIN", "G"), (both, "G"), ("SELECT 1", "")] {
        let mut w = World::new();
        w.client(|b| frontend::query(b, sql));
        let ended = refused(&mut w, |b| {
            copy_in_response(b, 2);
            copy_in_response(b, 2);
        });
        assert_eq!(ended, of("08P01", told), "{sql}");
    }
}
