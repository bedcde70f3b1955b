//! The measurements.

use crate::process::{Backend, Process, Result, declassify, eval, number, step};
use crate::report::Report;
use crate::{MESSAGES, ROUNDS};
use TypeCode::{Int4, Numeric};
use contract::hello::Hello;
use contract::message::program::{CALL, INPUT};
use contract::{Fid, Kind, Op, TypeCode};
use envelope::handshake::Initiator;
use envelope::{ExportKey, Opener, Sealer, SecretKey};
use keeper::{Clients, Config, Connection, Keeper, Keys};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};
use values::Value;

/// Rows of the columns that are evaluated.
const ROWS: usize = 4096;
const BATCHES: [usize; 4] = [1, 64, 1024, 4096];

/// The median of the better half of the rounds.
fn typical(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 4).copied().unwrap_or(f64::NAN)
}

/// What something typically takes, in nanoseconds for one of `count`.
fn best(count: u32, mut round: impl FnMut() -> Result<Duration>) -> Result<f64> {
    let times: Result<_> = (0..ROUNDS)
        .map(|_| Ok(round()?.as_nanos() as f64 / f64::from(count)))
        .collect();
    times.map(typical)
}

/// The time of something done `count` times.
fn times(count: u32, mut what: impl FnMut() -> Result<()>) -> Result<Duration> {
    let start = Instant::now();
    for _ in 0..count {
        what()?;
    }
    Ok(start.elapsed())
}

/// Measures everything, or one operation only.
pub fn all(report: &mut Report, one: bool) -> Result<()> {
    in_process(report, one)?;
    let process = Process::start()?;
    let mut backend = process.connect()?;
    answered(report, &process)?;
    one_way(report, &mut backend)?;
    if one {
        return Ok(());
    }
    idle(report, &process)?;
    batches(report, &mut backend)?;
    envelopes(report, &mut backend)
}

/// `numeric(15,2)`; no modifier for others.
fn typmod(t: TypeCode) -> i32 {
    match t {
        Numeric => ((15 << 16) | 2) + 4,
        _ => -1,
    }
}

fn ints(seed: i32) -> Vec<Value> {
    let value = |n: i32| Value::Int4(n.wrapping_mul(2_654_435).wrapping_add(seed) % 100_000);
    (0..ROWS as i32).map(value).collect()
}

fn decimals() -> Result<Vec<Value>> {
    let env = values::Env::default();
    (0..ROWS)
        .map(|n| {
            let text = format!("{}.{:02}", n * 7 % 90_000, n % 100);
            Ok(values::parse_text(Numeric, -1, text.as_bytes(), &env)?)
        })
        .collect()
}

/// What the keeper itself does for one operator, without a channel.
fn in_process(report: &mut Report, one: bool) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let client = SecretKey::generate()?;
    let config = Config {
        clients_file: dir.path().join("clients"),
        require_grants: false,
        ..Config::default()
    };
    std::fs::write(
        &config.clients_file,
        format!("{} bench\n", client.public()?),
    )?;
    let keys = Keys::load(&dir.path().join("key"), &dir.path().join("root"))?;
    let clients = Clients::new(&config.clients_file);
    let keeper = Keeper::new(config, keys, clients)?;
    let hello = Hello {
        version: contract::VERSION,
        pid: 1,
        database: 1,
        session: 0,
        pass: [0; 16],
        role: 0,
    };
    let mut connection =
        Connection::open(&Arc::new(keeper), &hello).map_err(|s| format!("{s:?}"))?;
    handshake(&mut connection, &client)?;
    let column = direct_column(&mut connection, 1, Int4, &ints(1))?;
    let lt = number(Op::Lt, Int4, None)?;
    let add = number(Op::Add, Int4, Some(Int4))?;
    let test = declassify(lt, 1, &[&column[5..], &column[99..]]);
    let time = best(MESSAGES, || {
        times(MESSAGES, || {
            black_box(connection.handle(Kind::Declassify, black_box(&test)));
            Ok(())
        })
    })?;
    report.result(
        "keeper: one answered int4 < int4 of a column, no channel",
        time,
        "ns",
    );
    if one {
        return Ok(());
    }
    let other = direct_column(&mut connection, 2, Int4, &ints(77))?;
    for rows in [64, ROWS] {
        let batch = declassify(lt, rows, &[&column, &other]);
        let calls = (100_000 / rows as u32).clamp(20, MESSAGES);
        let time = best(calls * rows as u32, || {
            times(calls, || {
                black_box(connection.handle(Kind::Declassify, black_box(&batch)));
                Ok(())
            })
        })?;
        let name = format!("keeper: int4 < int4 in runs, batch of {rows}, no channel");
        report.result(&name, time, "ns/row");
    }
    let arena = connection.welcome().arena;
    let mut slot = 10_000;
    let price = direct_column(&mut connection, 3, Numeric, &decimals()?)?;
    let mul = number(Op::Mul, Numeric, Some(Numeric))?;
    let mut body = eval(mul, Fid::INVALID, ROWS, &[&price, &price]);
    let calls = 10;
    let time = best(calls * ROWS as u32, || {
        times(calls, || {
            body[8..16].copy_from_slice(&Fid::new(arena, slot).0.to_le_bytes());
            connection.handle(Kind::Eval, black_box(&body));
            slot += ROWS as u64;
            let release = [u64::from(arena), slot].map(u64::to_le_bytes).concat();
            connection.handle(Kind::Release, &release);
            Ok(())
        })
    })?;
    let name = format!("keeper: numeric * numeric into slots, batch of {ROWS}, no channel");
    report.result(&name, time, "ns/row");
    let mut body = eval(add, Fid::INVALID, 1, &[&column[5..], &column[99..]]);
    let time = best(MESSAGES, || {
        let time = times(MESSAGES, || {
            slot += 1;
            body[8..16].copy_from_slice(&Fid::new(arena, slot).0.to_le_bytes());
            connection.handle(Kind::Eval, black_box(&body));
            Ok(())
        })?;
        let release = [u64::from(arena), slot].map(u64::to_le_bytes).concat();
        connection.handle(Kind::Release, &release);
        Ok(time)
    })?;
    report.result(
        "keeper: one one-way int4 + int4 of a column, no channel",
        time,
        "ns",
    );
    Ok(())
}

fn handshake(connection: &mut Connection, client: &SecretKey) -> Result<()> {
    let (mut initiator, first) = Initiator::new(client)?;
    connection.handle(Kind::Handshake, &[&step(1)[..], &first].concat());
    initiator.receive(connection.reply())?;
    let (third, _) = initiator.finish()?;
    match connection.handle(Kind::Handshake, &[&step(3)[..], &third].concat()) {
        Some(Ok(())) => Ok(()),
        _ => Err("handshake failed".into()),
    }
}

fn direct_column(
    connection: &mut Connection,
    relation: u32,
    t: TypeCode,
    values: &[Value],
) -> Result<Vec<Fid>> {
    let arena = connection.welcome().arena;
    let mut open = [1, relation, 1].map(u32::to_le_bytes).concat();
    open.extend_from_slice(&typmod(t).to_le_bytes());
    open.extend_from_slice(&[t as u8, 0, 0, 0, 0, 0, 0, 0]);
    connection.handle(Kind::PartitionOpen, &open);
    let partition = u32::from_le_bytes(*connection.reply().first_chunk().ok_or("no answer")?);
    let mut promote = (values.len() as u64).to_le_bytes().to_vec();
    for (slot, value) in (0..).zip(values) {
        let fid = Fid::new(arena, slot);
        let mut put = fid.0.to_le_bytes().to_vec();
        put.extend_from_slice(&[0xff, 0xff, 0xff, 0xff, t as u8, 0, 0, 0]);
        put.extend_from_slice(&values::encode_binary(value));
        connection.handle(Kind::PutPlain, &put);
        promote.extend_from_slice(&fid.0.to_le_bytes());
        promote.extend_from_slice(&u64::from(partition).to_le_bytes());
    }
    match connection.handle(Kind::Promote, &promote) {
        Some(Ok(())) => {}
        _ => return Err("promotion failed".into()),
    }
    let fids = (0..values.len() as u64).map(|slot| Fid::new(partition, slot));
    Ok(fids.collect())
}

fn idle(report: &mut Report, process: &Process) -> Result<()> {
    let mut backends = Vec::new();
    for _ in 0..8 {
        backends.push(process.connect()?);
    }
    std::thread::sleep(Duration::from_millis(300));
    let before = process.processor_seconds()?;
    std::thread::sleep(Duration::from_secs(2));
    let used = (process.processor_seconds()? - before) / 2.0 * 100.0;
    report.result("idle: processor of the keeper, 8 channels, 2 s", used, "%");
    Ok(())
}

/// One answered operator for one message, and its floor: their rounds alternate, so
/// that what else goes on in the machine meets both. Each round has memory of its own,
/// the floor's a new mapping, the others' a new channel: in which slice of the
/// processor's cache a line is at home makes up to half as much again, and luck with it
/// must not be luck for one of the two.
fn answered(report: &mut Report, process: &Process) -> Result<()> {
    let column = process.connect()?.column(1, Int4, -1, &ints(1))?;
    let lt = number(Op::Lt, Int4, None)?;
    let body = declassify(lt, 1, &[&column[5..], &column[99..]]);
    let each = |time: Duration| time.as_nanos() as f64 / f64::from(MESSAGES);
    let mut answer = Vec::new();
    let (mut floors, mut pings, mut tests) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        floors.push(each(channel::floor::round_trip(u64::from(MESSAGES))?));
        let mut backend = process.connect()?;
        for (kind, body, all) in [
            (Kind::Ping, &[][..], &mut pings),
            (Kind::Declassify, &body, &mut tests),
        ] {
            let time = times(MESSAGES, || backend.call_into(kind, body, &mut answer))?;
            all.push(each(time));
        }
    }
    let (floor, ping, test) = (typical(floors), typical(pings), typical(tests));
    let name = "floor: shared-memory round trip of two processes";
    report.result(name, floor, "ns");
    report.result("channel: ping", ping, "ns");
    report.result("one answered int4 < int4", test, "ns");
    let name = "one answered int4 < int4, ratio to the floor";
    report.result(name, test / floor, "x");
    Ok(())
}

/// One one-way operator for one message.
fn one_way(report: &mut Report, backend: &mut Backend) -> Result<()> {
    let column = backend.column(1, Int4, -1, &ints(1))?;
    // Bursts that fit into the ring: what the sender pays.
    const BURST: u32 = 1_000;
    let add = number(Op::Add, Int4, Some(Int4))?;
    let mut body = eval(add, Fid::INVALID, 1, &[&column[5..], &column[99..]]);
    let time = best(BURST, || {
        let time = times(BURST, || {
            let to = backend.slots(1);
            body[8..16].copy_from_slice(&to.0.to_le_bytes());
            backend.end.send(Kind::Eval, &[&body])?;
            Ok(())
        })?;
        backend.call(Kind::Fence, &[])?;
        backend.release()?;
        Ok(time)
    })?;
    report.result("one one-way int4 + int4, in the sender", time, "ns");
    let time = best(MESSAGES, || {
        let time = times(MESSAGES, || {
            let to = backend.slots(1);
            body[8..16].copy_from_slice(&to.0.to_le_bytes());
            backend.end.send(Kind::Eval, &[&body])?;
            Ok(())
        });
        let start = Instant::now();
        backend.call(Kind::Fence, &[])?;
        let time = time? + start.elapsed();
        backend.release()?;
        Ok(time)
    })?;
    report.result("one one-way int4 + int4, sustained", time, "ns");
    Ok(())
}

/// A registered program of one call over two columns.
fn register(backend: &mut Backend, call: u32, t: TypeCode) -> Result<u32> {
    let mut program = [2u16, 0, 3, 0].map(u16::to_le_bytes).concat();
    program.extend_from_slice(&[t as u8, t as u8]);
    for (code, operand) in [(INPUT, 0), (INPUT, 1), (CALL, call as u16)] {
        program.extend_from_slice(&[code, 0]);
        program.extend_from_slice(&operand.to_le_bytes());
        program.extend_from_slice(&[0; 4]);
    }
    let handle = backend.call(Kind::ProgramRegister, &program)?;
    Ok(u32::from_le_bytes(
        *handle.first_chunk().ok_or("no handle")?,
    ))
}

fn batches(report: &mut Report, backend: &mut Backend) -> Result<()> {
    let (a, b) = (
        backend.column(2, Int4, -1, &ints(1))?,
        backend.column(3, Int4, -1, &ints(77))?,
    );
    let (x, y) = (
        backend.column(4, Numeric, typmod(Numeric), &decimals()?)?,
        backend.column(5, Numeric, typmod(Numeric), &decimals()?)?,
    );
    // FIDs in no order: every value is looked up by itself.
    let shuffled: Vec<Fid> = (0..ROWS)
        .filter_map(|n| a.get(n * 1001 % ROWS).copied())
        .collect();
    let lt = number(Op::Lt, Int4, None)?;
    let mul = number(Op::Mul, Numeric, Some(Numeric))?;
    let less = register(backend, lt, Int4)?;
    let times_ = register(backend, mul, Numeric)?;
    for rows in BATCHES {
        for (name, left) in [("in runs", &a), ("shuffled", &shuffled)] {
            let body = declassify(less, rows, &[left, &b]);
            let calls = (100_000 / rows as u32).clamp(20, MESSAGES);
            let time = best(calls * rows as u32, || {
                times(calls, || backend.call(Kind::Declassify, &body).map(drop))
            })?;
            let name = format!("int4 < int4, {name}, batch of {rows}");
            report.result(&name, time, "ns/row");
            report.result(&format!("{name}: values read"), 2000.0 / time, "M/s");
        }
    }
    for rows in BATCHES {
        let mut body = eval(times_, Fid::INVALID, rows, &[&x, &y]);
        let calls = (50_000 / rows as u32).clamp(10, MESSAGES);
        let time = best(calls * rows as u32, || {
            let time = times(calls, || {
                let to = backend.slots(rows as u64);
                body[8..16].copy_from_slice(&to.0.to_le_bytes());
                backend.end.send(Kind::Eval, &[&body])?;
                Ok(())
            });
            let start = Instant::now();
            backend.call(Kind::Fence, &[])?;
            let time = time? + start.elapsed();
            backend.release()?;
            Ok(time)
        })?;
        let name = format!("numeric * numeric into slots, batch of {rows}");
        report.result(&name, time, "ns/row");
        report.result(&format!("{name}: values read"), 2000.0 / time, "M/s");
    }
    Ok(())
}

/// AEAD by itself, in an envelope, and through the keeper.
fn envelopes(report: &mut Report, backend: &mut Backend) -> Result<()> {
    let key = ExportKey::derive(&[7; 32], [1; 8]);
    let opener = Opener::export(&key)?;
    let sealer = Sealer::export(key)?;
    let time = best(MESSAGES, || bare_aead(MESSAGES))?;
    report.result("floor: AES-256-GCM of 4 bytes, aws-lc-rs alone", time, "ns");
    let (mut sealed, mut plain) = (Vec::new(), Vec::new());
    let time = best(MESSAGES, || {
        times(MESSAGES, || {
            sealed.clear();
            sealer.seal(Int4 as u8, 0, &[0, 0, 0, 1], &mut sealed)?;
            Ok(())
        })
    })?;
    report.result("envelope: seal an int4", time, "ns");
    let time = best(MESSAGES, || {
        times(MESSAGES, || {
            opener.open(&sealed, &mut plain)?;
            Ok(())
        })
    })?;
    report.result("envelope: open an int4", time, "ns");

    let mut envelope = Vec::new();
    backend
        .sealer
        .seal(Int4 as u8, 0, &[0, 0, 0, 1], &mut envelope)?;
    let mut put = vec![0; 8];
    put.extend_from_slice(&[0xff, 0xff, 0xff, 0xff, Int4 as u8, 0, 0, 0]);
    put.extend_from_slice(&envelope);
    let time = best(MESSAGES, || {
        let time = times(MESSAGES, || {
            let to = backend.slots(1);
            put[..8].copy_from_slice(&to.0.to_le_bytes());
            backend.end.send(Kind::PutEnvelope, &[&put])?;
            Ok(())
        });
        let start = Instant::now();
        backend.call(Kind::Fence, &[])?;
        Ok(time? + start.elapsed())
    })?;
    report.result(
        "keeper: put an int4 from an envelope, sustained",
        time,
        "ns",
    );
    let mut get = Fid::new(backend.arena, backend.next - 1)
        .0
        .to_le_bytes()
        .to_vec();
    get.extend_from_slice(&[Int4 as u8, 0, 0, 0, 0, 0, 0, 0]);
    let time = best(MESSAGES, || {
        times(MESSAGES, || backend.call(Kind::GetEnvelope, &get).map(drop))
    })?;
    report.result("keeper: get an int4 as an envelope, answered", time, "ns");
    let sealed = backend.call(Kind::GetEnvelope, &get)?;
    backend.opener.open(&sealed, &mut plain)?;
    backend.release()
}

fn bare_aead(count: u32) -> Result<Duration> {
    use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
    let key = UnboundKey::new(&AES_256_GCM, &[7; 32]).map_err(|_| "key")?;
    let key = LessSafeKey::new(key);
    let mut counter = 0u64;
    times(count, || {
        counter += 1;
        let mut nonce = [0; 12];
        nonce[..8].copy_from_slice(&counter.to_le_bytes());
        let nonce = Nonce::assume_unique_for_key(nonce);
        let mut plain = [0, 0, 0, 1];
        let tag = key.seal_in_place_separate_tag(nonce, Aad::from([0u8; 4]), &mut plain);
        let _ = black_box(tag.map_err(|_| "seal")?);
        Ok(())
    })
}
