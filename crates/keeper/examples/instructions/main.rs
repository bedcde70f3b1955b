//! Does one thing a number of times, for callgrind: `instructions CASE TIMES`. What one costs
//! is the difference of two runs over the difference of their numbers, so that what comes
//! before does not count. `bench/instructions.py` runs it and compares with a baseline.
//!
//! Everything is in one thread: callgrind counts instructions, waiting is not its subject.

#[allow(dead_code)]
#[path = "../bench_micro/process.rs"]
mod process;

use channel::{BackendEnd, Listener};
use contract::codec::Part;
use contract::envelope::{FLAG_GRANT, FLAG_TEXT};
use contract::hello::{Hello, Status, Welcome};
use contract::{Fid, Kind, Op, TypeCode, answer};
use envelope::handshake::Initiator;
use envelope::{Opener, Sealer, SecretKey};
use grant::{Column, Entry, Grant};
use keeper::{Clients, Config, Connection, Keeper, Keys};
use process::{Result, declassify, eval, number, step};
use std::collections::BTreeSet;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use values::Value;

/// Rows of a batch.
const ROWS: usize = 4096;
/// Rows that a transaction writes to ledger tables.
const LEDGER_ROWS: u64 = 20;
/// Columns of such a table.
const LEDGER_COLUMNS: u16 = 8;
const SOON: Duration = Duration::from_secs(60);

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [case, times] = arguments.as_slice() else {
        return Err("usage: instructions CASE TIMES".into());
    };
    let times: u64 = times.parse()?;
    match case.as_str() {
        "ring" => ring(times),
        "envelope" => envelope(times),
        _ => match case.rsplit_once('-') {
            Some((case, "granted")) => Direct::start(true)?.run(case, times),
            Some((case, "recorded")) => Direct::start(false)?.recorded()?.run(case, times),
            _ => Direct::start(false)?.run(case, times),
        },
    }
}

fn hello() -> Hello {
    Hello {
        version: contract::VERSION,
        pid: 1,
        database: 1,
        session: 0,
        pass: [0; 16],
        role: 0,
    }
}

/// Messages of 64 bytes through a ring: written, then read.
fn ring(times: u64) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("keeper");
    let listener = Listener::bind(&path, 0o600)?;
    let keeper = std::thread::spawn(move || {
        let mut pending = listener.accept()?;
        pending.hello(SOON).map_err(|e| format!("{e:?}"))?;
        let welcome = Welcome {
            version: contract::VERSION,
            status: Status::Accepted,
            arena: 9,
            session: 77,
            range: 0,
            incarnation: 1,
        };
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(pending.accept(welcome, None)?)
    });
    let mut backend = BackendEnd::connect(&path, hello(), SOON)?;
    let mut keeper = keeper
        .join()
        .map_err(|_| "thread")?
        .map_err(|e| e.to_string())?;
    let (message, mut body) = ([7; 64], Vec::new());
    for _ in 0..times / 64 {
        for _ in 0..64 {
            backend.send(Kind::Eval, &[&message])?;
        }
        for _ in 0..64 {
            black_box(keeper.next(&mut body)?);
        }
    }
    Ok(())
}

/// An integer sealed and opened.
fn envelope(times: u64) -> Result<()> {
    let key = || ::envelope::ExportKey::derive(&[7; 32], [1; 8]);
    let (sealer, opener) = (Sealer::export(key())?, Opener::export(&key())?);
    let (mut sealed, mut plain) = (Vec::new(), Vec::new());
    for _ in 0..times {
        sealed.clear();
        sealer.seal(TypeCode::Int4 as u8, 0, &[0, 0, 0, 1], &mut sealed)?;
        opener.open(&sealed, &mut plain)?;
    }
    Ok(())
}

/// A keeper in this thread, without a channel.
struct Direct {
    connection: Connection,
    slot: u64,
    sealer: Sealer,
    _folder: tempfile::TempDir,
}

impl Direct {
    /// `granted`: the keeper asks what the client has authorised, which is everything.
    fn start(granted: bool) -> Result<Direct> {
        let folder = tempfile::tempdir()?;
        let client = SecretKey::generate()?;
        let config = Config {
            clients_file: folder.path().join("clients"),
            require_grants: granted,
            administrators: vec!["bench".into()],
            record_dir: folder.path().join("recordings"),
            ..Config::default()
        };
        let known = format!("{} bench\n", client.public()?);
        std::fs::write(&config.clients_file, known)?;
        let keys = Keys::load(&folder.path().join("key"), &folder.path().join("root"))?;
        let clients = Clients::new(&config.clients_file);
        let keeper = Arc::new(Keeper::new(config, keys, clients)?);
        let mut connection =
            Connection::open(&keeper, &hello()).map_err(|status| format!("{status:?}"))?;
        let (mut initiator, first) = Initiator::new(&client)?;
        connection.handle(Kind::Handshake, &[&step(1)[..], &first].concat());
        initiator.receive(connection.reply())?;
        let (third, session) = initiator.finish()?;
        connection.handle(Kind::Handshake, &[&step(3)[..], &third].concat());
        let (sealer, _) = session.into_client()?;
        if granted {
            let mut sealed = Vec::new();
            sealer.seal(0, FLAG_TEXT | FLAG_GRANT, &grant().encode(), &mut sealed)?;
            connection.handle(Kind::Grant, &sealed);
        }
        Ok(Direct {
            connection,
            slot: 0,
            sealer,
            _folder: folder,
        })
    }

    /// The same with a recording that runs. Nothing of it is written: that is another thread's
    /// work, and what waits for it fits into the recorder's memory.
    fn recorded(mut self) -> Result<Direct> {
        let order = format!("start key={}", *::recording::Key::generate()?.to_text());
        let mut sealed = Vec::new();
        let order = ::recording::Order::read(&order)?.encode();
        self.sealer
            .seal(0, FLAG_TEXT | FLAG_GRANT, &order, &mut sealed)?;
        let done = self.connection.handle(Kind::Policy, &sealed);
        done.ok_or("the order is not answered")?
            .map_err(|e| e.to_string())?;
        Ok(self)
    }

    fn run(&mut self, case: &str, times: u64) -> Result<()> {
        use TypeCode::{Int4, Numeric, Text};
        let less = |t| number(Op::Lt, t, None);
        match case {
            "compare-one" => {
                let column = self.column(1, Int4, ints(1))?;
                let body = declassify(less(Int4)?, 1, &[&column[5..], &column[99..]]);
                self.answered(&body, times)
            }
            "compare-int4" => {
                let (one, other) = (
                    self.column(1, Int4, ints(1))?,
                    self.column(2, Int4, ints(77))?,
                );
                let body = declassify(less(Int4)?, ROWS, &[&one, &other]);
                self.answered(&body, times)
            }
            "compare-text" => {
                let (one, other) = (
                    self.column(1, Text, texts(1))?,
                    self.column(2, Text, texts(77))?,
                );
                let body = declassify(less(Text)?, ROWS, &[&one, &other]);
                self.answered(&body, times)
            }
            "multiply-numeric" => {
                let price = self.column(1, Numeric, decimals()?)?;
                let call = number(Op::Mul, Numeric, Some(Numeric))?;
                let body = eval(call, Fid::INVALID, ROWS, &[&price, &price]);
                self.one_way(body, ROWS as u64, times)
            }
            "add-one" => {
                let column = self.column(1, Int4, ints(1))?;
                let call = number(Op::Add, Int4, Some(Int4))?;
                let body = eval(call, Fid::INVALID, 1, &[&column[5..], &column[99..]]);
                self.one_way(body, 1, times)
            }
            "ledger" => self.ledger(times),
            _ => Err(format!("unknown case {case}").into()),
        }
    }

    /// Transactions that write rows of two ledger tables, and commit.
    fn ledger(&mut self, times: u64) -> Result<()> {
        let logs = [self.log(1)?, self.log(2)?];
        for (place, table) in ["orders", "order_line"].iter().enumerate() {
            let body = ledger_table(u32::try_from(place)?, table);
            self.connection.handle(Kind::LedgerTable, &body);
        }
        let mut sn = 0;
        for _ in 0..times {
            for number in 0..LEDGER_ROWS {
                sn += 1;
                let place = (number % 2) as usize;
                let body = ledger_row(logs[place], u32::try_from(place)?, number, sn)?;
                self.connection.handle(Kind::LedgerRow, black_box(&body));
            }
            let sealed = self.connection.handle(
                Kind::LedgerSeal,
                &[LEDGER_ROWS.to_le_bytes(), [0; 8], [0; 8]].concat(),
            );
            sealed.ok_or("not sealed")?.map_err(|e| e.to_string())?;
            self.connection
                .handle(Kind::LedgerEnd, &1_u64.to_le_bytes());
        }
        Ok(())
    }

    /// The log of a table.
    fn log(&mut self, relation: u32) -> Result<u32> {
        let numbers = [
            1,
            relation,
            contract::message::ledger::ATTRIBUTE as u32,
            u32::MAX,
        ];
        let mut open = numbers.map(u32::to_le_bytes).concat();
        open.extend_from_slice(&[TypeCode::Bytea as u8, 0, 0, 0, 0, 0, 0, 0]);
        self.connection.handle(Kind::PartitionOpen, &open);
        let answer = self.connection.reply().first_chunk().ok_or("no log")?;
        Ok(u32::from_le_bytes(*answer))
    }

    fn answered(&mut self, body: &[u8], times: u64) -> Result<()> {
        for _ in 0..times {
            let done = self.connection.handle(Kind::Declassify, black_box(body));
            black_box(done.ok_or("not answered")?.map_err(|_| "refused")?);
            // As the server does once the answer was sent.
            self.connection.answered_so(Kind::Declassify, body);
        }
        Ok(())
    }

    fn one_way(&mut self, mut body: Vec<u8>, rows: u64, times: u64) -> Result<()> {
        let arena = self.connection.welcome().arena;
        for _ in 0..times {
            body[8..16].copy_from_slice(&Fid::new(arena, self.slot).0.to_le_bytes());
            self.connection.handle(Kind::Eval, black_box(&body));
            self.slot += rows;
            if self.slot.is_multiple_of(4096) {
                self.release();
            }
        }
        Ok(())
    }

    fn release(&mut self) {
        let arena = u64::from(self.connection.welcome().arena);
        let body = [arena, self.slot].map(u64::to_le_bytes).concat();
        self.connection.handle(Kind::Release, &body);
    }

    /// A column with these values.
    fn column(&mut self, relation: u32, t: TypeCode, values: Vec<Value>) -> Result<Vec<Fid>> {
        let arena = self.connection.welcome().arena;
        let typmod = match t {
            TypeCode::Numeric => ((15 << 16) | 2) + 4,
            _ => -1_i32,
        };
        let mut open = [1, relation, 1].map(u32::to_le_bytes).concat();
        open.extend_from_slice(&typmod.to_le_bytes());
        open.extend_from_slice(&[t as u8, 0, 0, 0, 0, 0, 0, 0]);
        open.extend_from_slice(format!("public\0t\0c{relation}\0").as_bytes());
        self.connection.handle(Kind::PartitionOpen, &open);
        let answer = self
            .connection
            .reply()
            .first_chunk()
            .ok_or("no partition")?;
        let partition = u32::from_le_bytes(*answer);
        let mut promote = (values.len() as u64).to_le_bytes().to_vec();
        for value in &values {
            let fid = Fid::new(arena, self.slot);
            self.slot += 1;
            let mut put = fid.0.to_le_bytes().to_vec();
            put.extend_from_slice(&(-1_i32).to_le_bytes());
            put.extend_from_slice(&[t as u8, 0, 0, 0]);
            put.extend_from_slice(&values::encode_binary(value));
            self.connection.handle(Kind::PutPlain, &put);
            promote.extend_from_slice(&fid.0.to_le_bytes());
            promote.extend_from_slice(&u64::from(partition).to_le_bytes());
        }
        match self.connection.handle(Kind::Promote, &promote) {
            Some(Ok(())) => {}
            _ => return Err("promotion failed".into()),
        }
        let answer = answer::Promote::decode(self.connection.reply());
        let fids = answer.map_err(|_| "no promotion")?.fids.iter().collect();
        self.release();
        Ok(fids)
    }
}

/// A table of eight plain columns.
fn ledger_table(place: u32, table: &str) -> Vec<u8> {
    let mut body = place.to_le_bytes().to_vec();
    body.extend_from_slice(format!("public\0{table}\0").as_bytes());
    for n in 0..LEDGER_COLUMNS {
        body.push(0);
        body.extend_from_slice(format!("ol_column_{n}\0pg_catalog.int4\0").as_bytes());
    }
    body
}

/// A version of one of its rows, some of whose values are long.
fn ledger_row(log: u32, place: u32, number: u64, sn: u64) -> Result<Vec<u8>> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros();
    let time = u64::try_from(since)? - 946_684_800_000_000;
    let mut body = [log, contract::message::ledger::WRITE]
        .map(u32::to_le_bytes)
        .concat();
    for word in [number, sn, 0, time, 0] {
        body.extend_from_slice(&word.to_le_bytes());
    }
    body.extend_from_slice(&place.to_le_bytes());
    body.extend_from_slice(b"bench\0\0");
    for n in 0..LEDGER_COLUMNS {
        let bytes: &[u8] = if n % 4 == 3 { &[65; 24] } else { &[7; 4] };
        body.extend_from_slice(&[0; 8]);
        body.extend_from_slice(&n.to_le_bytes());
        body.extend_from_slice(&[0; 2]);
        body.extend_from_slice(&u32::try_from(bytes.len())?.to_le_bytes());
        body.extend_from_slice(bytes);
    }
    Ok(body)
}

/// Anything with the columns of [`Direct::column`].
fn grant() -> Grant {
    let columns: BTreeSet<Column> = (1..3)
        .map(|n| Column::new("public", "t", &format!("c{n}")))
        .collect();
    let entry = Entry {
        standing: false,
        origins: grant::origin::ALL,
        families: grant::family::ALL,
        reads: columns.clone(),
        writes: columns,
    };
    Grant {
        entries: vec![entry],
        ..Grant::default()
    }
}

fn ints(seed: i32) -> Vec<Value> {
    let value = |n: i32| Value::Int4(n.wrapping_mul(2_654_435).wrapping_add(seed) % 100_000);
    (0..ROWS as i32).map(value).collect()
}

fn texts(seed: usize) -> Vec<Value> {
    (0..ROWS)
        .filter_map(|n| {
            let text = format!("value {:05}", (n * 7919 + seed) % 10_000);
            values::parse_text(TypeCode::Text, -1, text.as_bytes(), &values::Env::default()).ok()
        })
        .collect()
}

fn decimals() -> Result<Vec<Value>> {
    let env = values::Env::default();
    (0..ROWS)
        .map(|n| {
            let text = format!("{}.{:02}", n * 7 % 90_000, n % 100);
            Ok(values::parse_text(
                TypeCode::Numeric,
                -1,
                text.as_bytes(),
                &env,
            )?)
        })
        .collect()
}
