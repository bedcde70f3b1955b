//! Results that are signed, and a backend that lies: what it says of a ledger's rows is compared with
//! their versions, and what it only says is not vouched for.

use crate::common::{Backend, DATABASE, Running, state};
use contract::message::ledger::{ATTRIBUTE, SHOWN, SOURCES, WRITE};
use contract::{Fid, Kind, TypeCode};
use ledger::result::SignedResult;
use std::time::{SystemTime, UNIX_EPOCH};

const TABLE: u32 = 77;

/// A ledger table `s.t (id integer, name enc_text)` with a row (7, 'Ann').
struct Site {
    backend: Backend,
    log: u32,
    time: i64,
    ann: Fid,
    bob: Fid,
}

/// What the backend says of a version: log, schema and table, number, author.
type Version<'a> = (u32, [&'a str; 2], u64, &'a str);

fn texts(words: &[&str]) -> Vec<u8> {
    let bytes = words.iter().flat_map(|w| [w.as_bytes(), &[0]].concat());
    bytes.collect()
}

impl Site {
    fn new(running: &Running) -> Site {
        let mut backend = running.session();
        let names = backend.open(TABLE, TypeCode::Text, -1);
        let temporary = ["Ann", "Bob"].map(|name| backend.put_text(TypeCode::Text, -1, name));
        let promoted = backend.promote(&temporary.map(|fid| (fid, names))).unwrap();
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let mut site = Site {
            log: 0,
            time: since.as_micros() as i64 - 946_684_800_000_000,
            ann: promoted[0],
            bob: promoted[1],
            backend,
        };
        site.log = site.log_of(TABLE);
        site.write((site.log, ["s", "t"], 1, "test"), site.ann);
        site
    }

    fn log_of(&mut self, table: u32) -> u32 {
        let numbers = [DATABASE, table, ATTRIBUTE as u32, u32::MAX];
        let mut body = numbers.map(u32::to_le_bytes).concat();
        body.extend_from_slice(&[TypeCode::Bytea as u8, 0, 0, 0, 0, 0, 0, 0]);
        let answer = self.backend.call(Kind::PartitionOpen, &body).unwrap();
        u32::from_le_bytes(answer[..4].try_into().unwrap())
    }

    fn row(&mut self, what: u32, number: u64, version: Version<'_>, name: Fid) {
        let (log, names, sn, by) = version;
        let mut table = vec![0; 4];
        table.extend(texts(&names));
        for (t, names) in [
            (0, ["id", "integer"]),
            (TypeCode::Text as u8, ["name", "confide.enc_text"]),
        ] {
            table.push(t);
            table.extend(texts(&names));
        }
        self.backend.send(Kind::LedgerTable, &table);
        let mut body = [log, what].map(u32::to_le_bytes).concat();
        for word in [number, sn, 0, self.time as u64, 0] {
            body.extend_from_slice(&word.to_le_bytes());
        }
        body.extend_from_slice(&[0; 4]);
        body.extend(texts(&[by, ""]));
        for (column, fid, bytes) in [(0, Fid(0), 7_i32.to_ne_bytes().as_slice()), (1, name, &[])] {
            body.extend_from_slice(&fid.0.to_le_bytes());
            body.extend_from_slice(&[column, 0, 0, 0]);
            body.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            body.extend_from_slice(bytes);
        }
        self.backend.send(Kind::LedgerRow, &body);
    }

    fn write(&mut self, version: Version<'_>, name: Fid) {
        self.row(WRITE, 0, version, name);
        let sealed = self.backend.call(
            Kind::LedgerSeal,
            &[1_u64.to_le_bytes(), [0; 8], [0; 8]].concat(),
        );
        sealed.unwrap();
        self.backend.send(Kind::LedgerEnd, &1_u64.to_le_bytes());
    }

    /// A result of the columns id and name, as they are called in the table.
    fn begin(&mut self, id: &str, name: &str) {
        let statement = self
            .backend
            .put_text(TypeCode::Text, -1, "SELECT id, name FROM t");
        let nonce = self.backend.put_text(TypeCode::Bytea, -1, "\\x61");
        let mut body = [statement, nonce].map(|fid| fid.0.to_le_bytes()).concat();
        for (t, type_name, column) in [(0, "integer", id), (TypeCode::Text as u8, "text", name)] {
            body.extend_from_slice(&[t, 1]);
            body.extend(texts(&[column, type_name, "s", "t", column]));
        }
        self.backend.send(Kind::ResultBegin, &body);
    }

    fn cells(&mut self, cells: &[(Fid, &str)]) {
        let mut body = Vec::new();
        for (fid, text) in cells {
            body.extend_from_slice(&fid.0.to_le_bytes());
            body.extend_from_slice(&0_u32.to_le_bytes());
            body.extend_from_slice(&(text.len() as u32).to_le_bytes());
            body.extend_from_slice(text.as_bytes());
        }
        self.backend.send(Kind::ResultRows, &body);
    }

    fn sign(&mut self) -> Result<SignedResult, (String, String)> {
        let to = self.backend.slot();
        self.backend.send(Kind::ResultSign, &to.0.to_le_bytes());
        let text = self.backend.get(to, TypeCode::Text)?.unwrap();
        Ok(SignedResult::from_json(&text).unwrap())
    }

    /// Whether id and name are vouched for as the ledger's, in a result of one row.
    fn vouched(&mut self, version: Version<'_>, of: Fid, id: &str, name: Fid) -> [bool; 2] {
        self.begin("id", "name");
        self.row(SHOWN, 1, version, of);
        self.cells(&[(Fid(0), id), (name, "")]);
        let result = self.sign().unwrap();
        [0, 1].map(|at| result.header().columns[at].ledger.is_some())
    }
}

/// A cell is vouched for if the version has it and the log has the version, whatever the database
/// says of either. With the bug it could show any value under a genuine version's proof.
#[test]
fn cells_and_versions() {
    let running = Running::start();
    let mut site = Site::new(&running);
    let (ann, bob, log) = (site.ann, site.bob, site.log);
    let good = (log, ["s", "t"], 1, "test");
    assert_eq!(site.vouched(good, ann, "7", ann), [true, true]);
    assert_eq!(site.vouched(good, ann, "8", ann), [false, true]);
    assert_eq!(site.vouched(good, ann, "07", ann), [false, true]);
    assert_eq!(site.vouched(good, ann, "7", bob), [true, false]);
    let temporary = site.backend.put_text(TypeCode::Text, -1, "Ann");
    assert_eq!(site.vouched(good, ann, "7", temporary), [true, false]);
    // The version is not the log's: its value, number, author or table is another one.
    let none = [false, false];
    assert_eq!(site.vouched(good, bob, "7", bob), none);
    assert_eq!(
        site.vouched((log, ["s", "t"], 2, "test"), ann, "7", ann),
        none
    );
    assert_eq!(
        site.vouched((log, ["s", "t"], 1, "eve"), ann, "7", ann),
        none
    );
    assert_eq!(
        site.vouched((log, ["s", "u"], 1, "test"), ann, "7", ann),
        none
    );
    // Another table's row, under this one's name or its own.
    let other = site.log_of(TABLE + 1);
    site.write((other, ["s", "u"], 5, "test"), ann);
    assert_eq!(
        site.vouched((other, ["s", "t"], 5, "test"), ann, "7", ann),
        none
    );
    assert_eq!(
        site.vouched((log, ["s", "u"], 5, "test"), ann, "7", ann),
        none
    );
}

/// Columns under other names, versions of other rows, and rows without one are not the ledger's.
#[test]
fn names_and_places() {
    let running = Running::start();
    let mut site = Site::new(&running);
    let (ann, good) = (site.ann, (site.log, ["s", "t"], 1, "test"));
    let ledgers = |result: SignedResult| {
        let columns = result.header().columns.iter();
        columns.map(|c| c.ledger.is_some()).collect::<Vec<bool>>()
    };
    site.begin("name", "id");
    site.row(SHOWN, 1, good, ann);
    site.cells(&[(Fid(0), "7"), (ann, "")]);
    assert_eq!(ledgers(site.sign().unwrap()), [false, false]);
    // The version of row 1 for row 0.
    site.begin("id", "name");
    site.row(SHOWN, SOURCES + 1, good, ann);
    site.cells(&[(Fid(0), "7"), (ann, "")]);
    assert_eq!(ledgers(site.sign().unwrap()), [false, false]);
    // A second row without a version.
    site.begin("id", "name");
    site.row(SHOWN, 1, good, ann);
    site.cells(&[(Fid(0), "7"), (ann, ""), (Fid(0), "7"), (ann, "")]);
    assert_eq!(ledgers(site.sign().unwrap()), [false, false]);
    site.begin("id", "name");
    site.row(SHOWN, 1, good, ann);
    site.row(SHOWN, SOURCES + 1, good, ann);
    site.cells(&[(Fid(0), "7"), (ann, ""), (Fid(0), "7"), (ann, "")]);
    assert_eq!(ledgers(site.sign().unwrap()), [true, true]);
}

/// Nothing is signed that was not begun, is not whole, or is too long; what follows is not hurt.
#[test]
fn incomplete_and_unbounded() {
    let running = Running::start();
    let mut site = Site::new(&running);
    let ann = site.ann;
    assert_eq!(state(site.sign()), "55000");
    site.begin("id", "name");
    site.cells(&[(Fid(0), "7")]);
    assert_eq!(state(site.sign()), "08P01");
    site.begin("id", "name");
    let long = "x".repeat(1 << 20);
    for _ in 0..64 {
        site.cells(&[(Fid(0), &long), (ann, "")]);
    }
    assert_eq!(state(site.sign()), "54000");
    assert_eq!(state(site.sign()), "55000");
    site.begin("id", "name");
    site.cells(&[(Fid(0), "7"), (ann, "")]);
    assert_eq!(site.sign().unwrap().header().rows, 1);
}
