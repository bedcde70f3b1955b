//! Messages of both protocols, sealing and opening, refusals, absence of the keeper, COPY.
use super::*;

/// A literal combined with a protected column is sent in an envelope, and results are opened with
/// the plain type.
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

/// Positions of errors refer to the client's text.
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

/// The refused text does not reach the server; the server's own failure puts the transaction into
/// the correct state after an error.
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

/// The second time the types are known, and no round trip is needed.
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

/// If the server considers a parameter plain that is combined with something protected, its value
/// is not sent.
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

/// An error of the proxy waits for the preceding answers, and what follows is dropped up to Sync.
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
    // An unknown relation: an earlier statement in the pipeline may have created it, so wait for
    // the answers; not with a Sync, which would commit.
    assert_eq!(tags(&sent), "PBEH");
    let mut input = BytesMut::new();
    bare(&mut input, "12");
    backend::complete(&mut input, "SELECT 1");
    w.core.server_input(&mut input).unwrap();
    w.core.client_input(&mut w.rest).unwrap();
    assert_eq!(tags(&split(w.core.to_server.split())), "CPCH", "asked");
    drop(w);

    // The same in protocol order: the answers to the first statement come first.
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

/// A failed Parse leaves the previous statement of that name.
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

/// Without the keeper nothing can be sealed, so nothing is sent.
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

/// An envelope that cannot be opened ends the connection.
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

/// COPY data is held until a batch is complete, and sealed; an invalid row fails the COPY with our
/// error, after the preceding rows.
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

/// A statement that uses names unknown to the proxy, and nothing protected, is forwarded unchanged,
/// but only after the schema has been read again: the name may be that of a new protected table.
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

/// Large object functions may be called by message; others are refused.
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

/// Strings are read as the server reads them. If the proxy did not treat the backslash as an
/// escape, it would end the literal early, and the rest would be sent in the clear.
#[test]
fn escapes_in_strings() {
    let sql = r"SELECT s FROM t WHERE s = 'a\'SEKRIT'";
    let mut w = World::new();
    w.server(|b| backend::parameter(b, "standard_conforming_strings", "off"));
    let sent = w.client(|b| frontend::query(b, sql));
    let text = sql_of(sent.last().unwrap());
    assert!(text.starts_with("SELECT s FROM t WHERE s = 'cfd1.") && !text.contains(SECRET));
    // In a pipeline the server does not report the new value of a setting.
    let mut w = World::new();
    let sent = w.client(|b| {
        frontend::parse(b, "", "SET standard_conforming_strings = off", &[]);
        frontend::bind(b, "", "", &[], &[], &[]);
        frontend::execute(b, "");
        frontend::parse(b, "", sql, &[]);
    });
    assert_eq!(tags(&sent), "PBEH");
    let sent = w.server(|b| {
        bare(b, "12");
        backend::complete(b, "SET");
    });
    assert_eq!(tags(&sent), "PH");
    assert_eq!(
        frontend::Parse::read(&sent[0].1).unwrap().sql,
        "confide_refused"
    );
}

/// An error that the server raises while it waits for the rest of a pipeline: it skips what comes
/// before Sync. The proxy took what follows for statements, and its answer to Sync for another one.
#[test]
fn error_between_messages() {
    let mut w = World::new();
    let sent = w.client(|b| {
        frontend::parse(b, "", "SELECT 1", &[]);
        frontend::bind(b, "", "", &[], &[], &[]);
    });
    assert_eq!(tags(&sent), "PB");
    let sent = w.server(|b| {
        bare(b, "12");
        error(b, "54001", "stack depth limit exceeded", None);
    });
    assert_eq!(tags(&sent), "");
    let sent = w.client(|b| {
        frontend::targeted(b, b'D', b'P', "");
        frontend::execute(b, "");
        frontend::bare(b, b'S');
    });
    assert_eq!(tags(&sent), "S");
    w.server(|b| backend::ready(b, b'I'));
    assert_eq!(w.core.queue.len(), 0);
}
