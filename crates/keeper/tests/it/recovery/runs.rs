//! Recovery of promotions by runs.

use super::*;

const KIND_PROMOTION: u8 = 1;
const KIND_RUNS: u8 = 5;

/// Promotes consecutive temporary values by runs; their permanent FIDs, column by column.
fn promote_runs(
    backend: &mut Backend,
    columns: &[(u32, Runs)],
    log: &mut Vec<Vec<u8>>,
) -> Vec<Fid> {
    let values = columns.iter().flat_map(|(_, runs)| runs).map(|r| r.1).sum();
    let body = load::body(values, columns);
    let answer = backend.call(Kind::PromoteRuns, &body).unwrap();
    let answer = answer::PromoteRuns::decode(&answer).unwrap();
    assert_eq!(answer.promoted, 1);
    let mut fids = Vec::new();
    for (column, (partition, _)) in answer.runs.iter().zip(columns) {
        for run in column.runs {
            fids.extend((0..u64::from(run.length)).map(|n| Fid(run.first.0 + n)));
        }
        assert_eq!(column.partition, *partition);
        assert!(fids.last().is_some_and(|f| f.partition() == *partition));
    }
    assert_eq!(answer.record[1], KIND_RUNS);
    log.push(answer.record.to_vec());
    fids
}

/// Some values of a type: of one length, of many, and the odd ones.
fn texts(t: TypeCode) -> &'static [&'static str] {
    match t {
        TypeCode::Bool => &["t", "f"],
        TypeCode::Int2 => &["-32768", "0", "32767"],
        TypeCode::Int4 => &["-2147483648", "0", "2147483647"],
        TypeCode::Int8 => &["-9223372036854775808", "0", "9223372036854775807"],
        TypeCode::Float4 | TypeCode::Float8 => &["-0", "1e-30", "NaN", "-Infinity"],
        TypeCode::Numeric => &[
            "0",
            "-0.10",
            "NaN",
            "123456789012345678901234567890.5",
            "100",
        ],
        TypeCode::Text | TypeCode::Varchar | TypeCode::Bpchar => &[
            "",
            "even",
            "long",
            "rather longer than a cell has room for",
            "",
        ],
        TypeCode::Bytea => &["\\x", "\\x00ff", "\\x01"],
        TypeCode::Date => &["-infinity", "1999-12-31", "2000-01-02"],
        TypeCode::Time => &["00:00:00", "24:00:00"],
        TypeCode::Timestamp => &["infinity", "1999-12-31 23:59:59.999999"],
        TypeCode::Timestamptz => &["-infinity", "2024-02-29 12:00:00+00"],
        TypeCode::Interval => &["-1 mons +2 days", "00:00:00.000001"],
        TypeCode::Json | TypeCode::Jsonb => &["[]", "{\"a\": 1}"],
        TypeCode::Uuid => &["00000000-0000-0000-0000-000000000000"],
    }
}

/// A column of each type with its values, promoted by runs or one by one.
fn every_type(backend: &mut Backend, by_runs: bool, log: &mut Vec<Vec<u8>>) -> Vec<Fid> {
    let mut columns = Vec::new();
    for t in TypeCode::ALL {
        let partition = open(backend, 100 + *t as u32, *t, log);
        let texts = texts(*t);
        let fids: Vec<Fid> = texts.iter().map(|s| backend.put_text(*t, -1, s)).collect();
        columns.push((partition, vec![(fids[0].0, fids.len() as u32)]));
    }
    backend.fence().unwrap();
    if by_runs {
        return promote_runs(backend, &columns, log);
    }
    let fids = columns.iter().flat_map(|(partition, runs)| {
        runs.iter()
            .flat_map(|(first, count)| (0..u64::from(*count)).map(move |n| Fid(*first + n)))
            .map(|fid| (fid, *partition))
    });
    let fids: Vec<(Fid, u32)> = fids.collect();
    let mut body = (fids.len() as u64).to_le_bytes().to_vec();
    for (fid, partition) in &fids {
        body.extend_from_slice(&fid.0.to_le_bytes());
        body.extend_from_slice(&u64::from(*partition).to_le_bytes());
    }
    let answer = backend.call(Kind::Promote, &body).unwrap();
    let (fids, record) = promoted(&answer);
    assert_eq!(record[1], KIND_PROMOTION);
    log.push(record.to_vec());
    fids
}

/// All that a run shows of the columns of [`every_type`]: values, how many, and the FID
/// that comes next in each.
fn shown(backend: &mut Backend, fids: &[Fid]) -> Vec<String> {
    let of = TypeCode::ALL.iter().flat_map(|t| vec![*t; texts(*t).len()]);
    let mut shown: Vec<String> = of
        .zip(fids)
        .map(|(t, fid)| backend.get(*fid, t.stored()).unwrap().unwrap())
        .collect();
    let stats = backend.stats();
    let mut live: Vec<String> = stats
        .iter()
        .filter(|(name, _)| name.ends_with(".live"))
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    live.sort();
    assert_eq!(live.len(), TypeCode::ALL.len());
    shown.extend(live);
    for t in TypeCode::ALL {
        let partition = open(backend, 100 + *t as u32, *t, &mut Vec::new());
        let value = backend.put_text(*t, -1, texts(*t)[0]);
        let next = backend.promote(&[(value, partition)]).unwrap();
        shown.push(format!("{next:?}"));
    }
    shown
}

/// Replay of a promotion by runs is that of its values one by one, once or twice, of every
/// type. Bug: another value under a FID, or one too many.
#[test]
fn runs_replay_as_values_do() {
    let place = Place::new();
    let (running, worker) = place.first();
    let (mut runs, mut values) = (Vec::new(), Vec::new());
    let mut backend = running.session();
    let fids = every_type(&mut backend, true, &mut runs);
    let wanted = shown(&mut backend, &fids);
    drop((backend, worker, running));
    let (running, worker) = place.again(100, &[]);
    let mut backend = running.session();
    assert_eq!(every_type(&mut backend, false, &mut values), fids);
    assert_eq!(shown(&mut backend, &fids), wanted);
    drop((backend, worker, running));
    for log in [
        runs.clone(),
        values.clone(),
        [&runs[..], &runs].concat(),
        [&runs[..], &values].concat(),
        [&values[..], &runs].concat(),
    ] {
        let place = place.copied();
        let (running, worker) = place.again(100, &log);
        assert_eq!(shown(&mut running.session(), &fids), wanted);
        drop((worker, running));
    }
}

/// Runs into slots that were swept stand apart, and come back there.
#[test]
fn runs_fill_holes() {
    let place = Place::new();
    let mut log = Vec::new();
    let (running, mut worker) = place.first();
    let mut backend = running.session();
    let partition = open(&mut backend, 7, TypeCode::Int4, &mut log);
    let fids = promote(&mut backend, partition, &ints(0, 10), &mut log);
    begin(&mut backend, 7, true).unwrap();
    let kept: Vec<Fid> = fids.iter().copied().step_by(2).collect();
    mark(&mut backend, &kept);
    assert_eq!(sweep(&mut backend, &mut log), (5, true));
    backend.send(Kind::GarbageSwept, &[]);
    backend.send(Kind::GarbageEnd, &[]);
    worker.checkpoint(150, SYSTEM).unwrap();
    let sources: Vec<Fid> = ints(100, 8).iter().map(|v| backend.put(v)).collect();
    let columns = [(partition, vec![(sources[0].0, 8)])];
    let new = promote_runs(&mut backend, &columns, &mut log);
    let holes: Vec<Fid> = fids.iter().copied().skip(1).step_by(2).collect();
    let after = (10..13).map(|slot| Fid::new(partition, slot));
    assert_eq!(new, holes.into_iter().chain(after).collect::<Vec<_>>());
    let whole = |backend: &mut Backend| {
        check(backend, &new, 100);
        for (n, fid) in (0..).step_by(2).zip(&kept) {
            check(backend, &[*fid], n);
        }
    };
    whole(&mut backend);
    drop((backend, worker, running));
    for log in [log.clone(), [&log[..], &log].concat()] {
        let (running, worker) = place.again(150, &log);
        whole(&mut running.session());
        drop((worker, running));
    }
    // Where nothing else is.
    let (running, _worker) = place.again(150, &[log[0].clone(), log[3].clone()]);
    check(&mut running.session(), &new, 100);
}

/// Runs of another column's type, or of no column; changed ones, and as another kind. Bug: the
/// bytes of a text under the FID of a number.
#[test]
fn runs_that_do_not_fit() {
    let place = Place::new();
    let (running, worker) = place.first();
    let (mut numbers, mut words) = (Vec::new(), Vec::new());
    let partition = open(&mut running.session(), 7, TypeCode::Int4, &mut numbers);
    drop((worker, running));
    let (running, worker) = place.again(100, &[]);
    let mut backend = running.session();
    let same = open(&mut backend, 7, TypeCode::Text, &mut words);
    assert_eq!(same, partition);
    let word = backend.put(&Value::Text(Box::from(*b"four")));
    let columns = [(partition, vec![(word.0, 1)])];
    let fid = promote_runs(&mut backend, &columns, &mut words)[0];
    drop((backend, worker, running));

    let place = place.copied();
    let changed = |at: usize, to: u8| {
        let mut record = words[1].clone();
        record[at] = to;
        vec![words[0].clone(), record]
    };
    for log in [
        vec![numbers[0].clone(), words[1].clone()],
        changed(1, KIND_PROMOTION),
        changed(1, 3),
        changed(30, !words[1][30]),
    ] {
        let running = place.start();
        let mut worker = Worker::connect(&running);
        worker.state(SYSTEM).unwrap();
        worker.redo(&log);
        assert_eq!(state(worker.done(5000)), "XX001");
        assert_eq!(refused(&running), Some(Status::Recovering));
        drop((worker, running));
    }
    let without = place.copied();
    let (running, worker) = without.again(100, &words[1..]);
    let found = running.session().get(fid, TypeCode::Text);
    assert_eq!(state(found), "XX001");
    drop((worker, running));
    let (running, _worker) = place.again(100, &words);
    let found = running.session().get(fid, TypeCode::Text);
    assert_eq!(found, Ok(Some("four".into())));
}
