//! The server's reports of the schema and search path, and the proxy's requests for them.
use super::*;
use std::sync::atomic::Ordering;

/// Executes a statement; returns its text, and how many requests the proxy made for it.
fn asked_for(w: &mut World, sql: &str, status: u8) -> (String, usize) {
    let before = w.asked;
    let sent = w.client(|b| frontend::query(b, sql));
    w.server(|b| {
        backend::complete(b, "SELECT 0");
        backend::ready(b, status);
    });
    (sql_of(&sent[0]), w.asked - before)
}

fn tell(w: &mut World, reports: &[String]) {
    w.server(|b| {
        let name = contract::report::SETTING;
        reports.iter().for_each(|r| backend::parameter(b, name, r));
    });
}

/// A name that refers to tables with different protection: the search path is the one reported by
/// the server. When a setting returns to an earlier value, the path reported with that value
/// applies again. The proxy asks only about a setting that it has not seen.
#[test]
fn path_is_reported() {
    let sql = "SELECT s FROM two WHERE s = 'SEKRIT'";
    let mut w = World::new();
    let (sent, asked) = asked_for(&mut w, sql, b'I');
    assert!(!sent.contains(SECRET) && asked == 0, "{sent}");
    // A function has set it.
    tell(&mut w, &[path("elsewhere", &["pg_catalog", "elsewhere"])]);
    assert_eq!(
        asked_for(&mut w, sql, b'I'),
        (sql.to_owned(), 0),
        "plain there"
    );
    // It was SET LOCAL, and the transaction is over.
    w.server(|b| backend::parameter(b, "search_path", "public"));
    let (sent, asked) = asked_for(&mut w, sql, b'I');
    assert!(!sent.contains(SECRET) && asked == 0, "{sent}");
    w.server(|b| backend::parameter(b, "role", "another"));
    assert_eq!(asked_for(&mut w, "SELECT 1", b'I').1, 1);
    // Earlier statements in a pipeline may change the path, so the proxy waits for their answers.
    let sent = w.client(|b| {
        frontend::parse(b, "", "SELECT f()", &[]);
        frontend::bind(b, "", "", &[], &[], &[]);
        frontend::execute(b, "");
        frontend::parse(b, "", sql, &[]);
    });
    assert_eq!(tags(&sent), "PBEH");
}

/// A search path that is reported again is no other one: what was analysed stays known. It did not,
/// so every statement outside of a transaction was parsed anew.
#[test]
fn the_same_path_again() {
    let mut w = World::new();
    for n in 1..=5 {
        tell(&mut w, &[path("public", &["pg_catalog", "public"])]);
        let sql = format!("SELECT id FROM t WHERE id = {n}");
        assert_eq!(asked_for(&mut w, &sql, b'I').1, 0);
    }
    let stats = &w.core.shared.stats;
    let counts = [&stats.analyses, &stats.analyses_reused];
    assert_eq!(counts.map(|c| c.load(Ordering::Relaxed)), [5, 4]);
}

/// Where nothing is protected there is a session with the keeper only when a text has a word of the
/// extension in it, or when something is protected or a ledger; within a transaction only for such a text. A bug
/// would leave a client without one.
#[test]
fn keeper_is_met_late() {
    let plain = "P n 11 pg_catalog n 2200 public t 23 11 int4 0 0 0 t 90008 11 enc_text 0 0 0 \
                 t 91008 11 _enc_text 0 90008 0 t 92000 11 ledger_sn 0 20 1 \
                 r 1000 2200 p r 0 c 1 id 23 -1 0 0 e";
    let part = report(&plain.split_whitespace().collect::<Vec<_>>());
    let schema = || vec![part.clone(), report(&["W", "0", "db.1", "0", "5"])];
    let met = |w: &World| w.core.shared.stats.handshakes.load(Ordering::Relaxed);
    let run = |w: &mut World, sql: &str, status| {
        let status = if w.status == b'I' { status } else { w.status };
        assert!(asked_for(w, sql, status).0.starts_with(sql));
        w.status = status;
        met(w)
    };
    assert_eq!(met(&World::new()), 1);
    for (texts, counts) in [
        (
            ["SELECT id FROM p", "DO 'CREATE TABLE u (s ENC_text)'"],
            [0, 1],
        ),
        (["BEGIN", "SELECT confide.f()"], [0, 1]),
        (["SELECT id FROM p", "SELECT 1 AS \"Signature\""], [0, 1]),
        (["BEGIN", "SELECT id FROM p"], [0, 0]),
    ] {
        let mut w = World::with(schema());
        assert_eq!(
            run(
                &mut w,
                texts[0],
                if texts[0] == "BEGIN" { b'T' } else { b'I' }
            ),
            counts[0]
        );
        assert_eq!(run(&mut w, texts[1], b'I'), counts[1], "{texts:?}");
    }
    for (ty, generated, count) in [("90008", "0", 1), ("92000", "1", 1), ("20", "1", 0)] {
        let mut w = World::with(schema());
        let made = format!("O r 1009 2200 u r 0 c 1 s {ty} -1 {generated} 0 e");
        tell(&mut w, &[report(&made.split(' ').collect::<Vec<_>>())]);
        assert_eq!(run(&mut w, "SELECT id FROM p", b'I'), count, "{ty}");
    }
    // A keeper that is not there is no reason to refuse what does not need it, and is asked once.
    let mut w = World::with(schema());
    w.keeper_down = true;
    w.told();
    assert_eq!(run(&mut w, "SELECT 'confide'", b'I'), 0);
    assert_eq!(tags(&w.told()), "NCZ");
    assert_eq!(run(&mut w, "SELECT 'confide'", b'I'), 0);
    assert_eq!(tags(&w.told()), "CZ");
}

/// Changes of the open transaction are known from the answer on, only to this session; after its
/// end to all sessions, or to none. No request is made for this.
#[test]
fn changes_of_the_transaction() {
    let insert = "INSERT INTO u VALUES ('SEKRIT')";
    let made = |columns: &str| {
        let text = format!("O r 1009 2200 u r 0 {columns} e");
        report(&text.split(' ').collect::<Vec<_>>())
    };
    let mut w = World::new();
    let mut other = World::new();
    other.core = Core::new(w.core.shared.clone(), "db", "app");
    other.keeper_key = w.keeper_key.clone();
    let mut out = BytesMut::new();
    backend::ready(&mut out, b'I');
    other.core.server_input(&mut out).unwrap();
    other.settle();
    let loads = || {
        w.core
            .shared
            .stats
            .schema_loads
            .load(std::sync::atomic::Ordering::Relaxed)
    };
    assert_eq!(loads(), 1, "the second session shares it");

    assert_eq!(asked_for(&mut w, insert, b'T'), (insert.to_owned(), 1));
    tell(&mut w, &[made("c 1 s 90008 -1 0 0")]);
    let (sent, asked) = asked_for(&mut w, insert, b'T');
    assert!(sent.contains("cfd1.") && asked == 0, "{sent}");
    // ROLLBACK TO restores the previous state.
    tell(&mut w, &[made("c 1 s 25 -1 0 0")]);
    assert_eq!(asked_for(&mut w, insert, b'T'), (insert.to_owned(), 0));
    tell(&mut w, &[made("c 1 s 90008 -1 0 0")]);
    assert_eq!(asked_for(&mut other, insert, b'I'), (insert.to_owned(), 1));
    tell(&mut w, &[report(&["C", "6"])]);
    for world in [&mut w, &mut other] {
        let (sent, asked) = asked_for(world, insert, b'I');
        assert!(sent.contains("cfd1.") && asked == 0, "{sent}");
    }

    tell(&mut w, &[made("c 1 s 25 -1 0 0"), report(&["U", "0"])]);
    let (sent, asked) = asked_for(&mut w, insert, b'I');
    assert!(sent.contains("cfd1.") && asked == 0, "rolled back: {sent}");
}

/// Another session has changed the schema: the server reports that, and is asked for the changes.
#[test]
fn changes_of_others() {
    let insert = "INSERT INTO t VALUES (1, 'SEKRIT')";
    let mut w = World::new();
    tell(&mut w, &[report(&["V", "0", "db.1", "0", "7"])]);
    w.more = vec![report(&[
        "S", "0", "db.1", "5", "7", "r", "1000", "2200", "t", "r", "0", "c", "1", "id", "23", "-1",
        "0", "0", "c", "2", "s", "25", "-1", "0", "0", "e",
    ])];
    assert_eq!(asked_for(&mut w, insert, b'I'), (insert.to_owned(), 1));
    assert_eq!(asked_for(&mut w, insert, b'I').1, 0);
}

/// What others have changed is reported within a transaction that has changes of its own, and the
/// server takes it for known: after a rollback the proxy asks again. Bug: the next literal goes out in
/// the clear into a column that somebody has protected meanwhile.
#[test]
fn changes_of_others_within_a_transaction() {
    let insert = "INSERT INTO u VALUES ('SEKRIT')";
    let protected = ["c", "1", "s", "90008", "-1", "0", "0", "e"];
    let records = |text: &str| report(&text.split(' ').collect::<Vec<_>>());
    let plain = "O r 1009 2200 u r 0 c 1 s 25 -1 0 0 e";
    let mine = "O r 1010 2200 mine r 0 c 1 s 25 -1 0 0 e";
    let theirs = [&["r", "1009", "2200", "u", "r", "0"][..], &protected].concat();
    let within = [&["S", "1", "db.1", "6", "7"][..], &theirs].concat();
    let whole = vec![whole().remove(0), report(&["W", "1", "db.1", "0", "7"])];
    for reports in [vec![report(&within)], whole] {
        let mut w = World::new();
        tell(&mut w, &[records(plain), report(&["C", "6"])]);
        assert_eq!(asked_for(&mut w, insert, b'I'), (insert.to_owned(), 0));
        tell(&mut w, &[records(mine)]);
        tell(&mut w, &reports);
        tell(&mut w, &[report(&["U", "0"])]);
        w.more = vec![report(
            &[&["S", "0", "db.1", "6", "7"][..], &theirs].concat(),
        )];
        let (sent, asked) = asked_for(&mut w, insert, b'I');
        assert!(sent.contains("cfd1.") && asked == 1, "{asked}: {sent}");
    }
}

/// The schema of a server is not kept when many others have the database (after restarts, say): it is
/// read again, also within a transaction with changes of its own. Bug: the session keeps the one that
/// it had, and neither its own changes nor those of others are seen; a literal goes out in the clear.
#[test]
fn a_schema_that_is_not_kept() {
    let insert = "INSERT INTO elsewhere.two VALUES ('SEKRIT')";
    let made = "r 1002 2201 two r 0 c 1 s 90008 -1 0 0 e";
    let made: Vec<&str> = made.split(' ').collect();
    let forget = |w: &World| {
        for n in 2..20 {
            let head = rewrite::report::Head {
                own: false,
                identity: format!("db.{n}"),
                from: 0,
                to: 1,
            };
            w.core.shared.databases.whole("db", &head, None);
        }
    };
    for within in [false, true] {
        let mut w = World::new();
        forget(&w);
        let own = report(&[&["O"][..], &made].concat());
        let part = report(&[&["P"][..], &made].concat());
        w.schema.insert(1, part);
        tell(&mut w, &[own]);
        let status = if within { b'T' } else { b'I' };
        w.status = status;
        match within {
            true => w.schema[2] = report(&["W", "1", "db.1", "0", "5"]),
            false => tell(&mut w, &[report(&["C", "6"])]),
        }
        let (sent, asked) = asked_for(&mut w, insert, status);
        assert!(sent.contains("cfd1.") && asked == 1, "{asked}: {sent}");
        assert_eq!(asked_for(&mut w, insert, status).1, 0);
    }
}

/// Within a pipeline a statement waits for the answer to a preceding schema change, which is
/// requested with Flush.
#[test]
fn pipelines_wait_for_changes() {
    let mut w = World::new();
    let sent = w.client(|b| {
        frontend::parse(b, "", "CREATE TABLE u (s enc_text)", &[]);
        frontend::bind(b, "", "", &[], &[], &[]);
        frontend::execute(b, "");
        frontend::parse(b, "", "INSERT INTO u VALUES ('SEKRIT')", &[]);
    });
    assert_eq!(tags(&sent), "PDBEH");
    let text = "O r 1009 2200 u r 0 c 1 s 90008 -1 0 0 e";
    let sent = w.server(|b| {
        bare(b, "1");
        parameters(b, &[]);
        bare(b, "n2");
        let change = report(&text.split(' ').collect::<Vec<_>>());
        backend::parameter(b, contract::report::SETTING, &change);
        backend::complete(b, "CREATE TABLE");
    });
    assert_eq!(tags(&sent), "PD", "and nothing was asked");
    assert!(
        frontend::Parse::read(&sent[0].1)
            .unwrap()
            .sql
            .contains("cfd1.")
    );
    assert_eq!(tags(&w.told()), "12C", "reports are not for the client");

    // Also if all names are known: they may refer to something else now.
    let mut w = World::new();
    let sent = w.client(|b| {
        frontend::parse(b, "", "CREATE TABLE u (s text)", &[]);
        frontend::bind(b, "", "", &[], &[], &[]);
        frontend::execute(b, "");
        frontend::parse(b, "", "SELECT id FROM t WHERE id = 1", &[]);
    });
    assert_eq!(tags(&sent), "PBEH");
}
