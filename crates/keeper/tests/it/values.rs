//! Values in and out, operations, and the error protocol of one-way requests.

use crate::common::{Backend, Running, state};
use TypeCode::{Bpchar, Date, Float8, Int4, Int8, Numeric, Text, Timestamptz, Varchar};
use contract::codec::{Each, Part};
use contract::{Fid, Kind, Op, TypeCode, body};
use values::{Interval, Value};

fn text(s: &str) -> Value {
    Value::Text(s.as_bytes().into())
}

/// What the client seals comes back as the same, through arena and column alike.
#[test]
fn round_trip() {
    let running = Running::start();
    let mut backend = running.session();
    let long = "x".repeat(100_000);
    let cases = [
        (Value::Bool(true), "t"),
        (Value::Int2(-3), "-3"),
        (Value::Int4(i32::MIN), "-2147483648"),
        (Value::Int8(i64::MAX), "9223372036854775807"),
        (Value::Float4(1.5), "1.5"),
        (Value::Float8(f64::NAN), "NaN"),
        (text(""), ""),
        (text("1234567"), "1234567"),
        (text("12345678"), "12345678"),
        (text(&long), &long),
        (Value::Bytea(Box::from(&b"\x00\xff"[..])), "\\x00ff"),
        (Value::Date(0), "2000-01-01"),
        (Value::Date(i32::MAX), "infinity"),
        (Value::Time(1), "00:00:00.000001"),
        (Value::Timestamp(-1), "1999-12-31 23:59:59.999999"),
        (Value::Json((*b"[ 1]").into()), "[ 1]"),
        (Value::Jsonb((*b"[1]").into()), "[1]"),
        (Value::Uuid([7; 16]), "07070707-0707-0707-0707-070707070707"),
        (
            Value::Interval(Interval {
                months: 14,
                days: -1,
                micros: 0,
            }),
            "1 year 2 mons -1 days",
        ),
    ];
    for (relation, (value, wanted)) in (100..).zip(cases) {
        let t = value.type_code();
        let fid = backend.put(&value);
        assert_eq!(backend.get(fid, t).unwrap().as_deref(), Some(wanted));
        let partition = backend.open(relation, t, -1);
        let permanent = backend.promote(&[(fid, partition)]).unwrap();
        assert_eq!(permanent, [Fid::new(partition, 0)]);
        let back = backend.get(permanent[0], t).unwrap();
        assert_eq!(back.as_deref(), Some(wanted), "{t:?}");
    }
}

/// Numbers with and without a scale, in a column of fixed scale and without.
#[test]
fn numerics_in_columns() {
    let running = Running::start();
    let mut backend = running.session();
    let typmod = ((15 << 16) | 2) + 4;
    let fixed = backend.open(1, Numeric, typmod);
    let free = backend.open(2, Numeric, -1);
    let huge = "1".repeat(40);
    for literal in [
        "0.00",
        "-12.34",
        "NaN",
        "5",
        "92233720368547758.08",
        "-0.01",
        "128",
        "0.000000000000000000000000000000000001",
        huge.as_str(),
        "Infinity",
    ] {
        let fid = backend.put_text(Numeric, -1, literal);
        let both = backend.promote(&[(fid, fixed), (fid, free)]).unwrap();
        for fid in both {
            let back = backend.get(fid, Numeric).unwrap();
            assert_eq!(back.as_deref(), Some(literal));
        }
    }
}

/// A literal of unknown type is read by the input function of what it meets.
#[test]
fn literals() {
    let running = Running::start();
    let mut backend = running.session();
    for (t, typmod, input, wanted) in [
        (Int4, -1, " 42 ", "42"),
        (Numeric, ((5 << 16) | 1) + 4, "1.25", "1.3"),
        (Date, -1, "1998-12-01", "1998-12-01"),
        (Varchar, -1, "abc", "abc"),
        (Bpchar, 4 + 5, "ab", "ab   "),
    ] {
        let fid = backend.put_text(t, typmod, input);
        assert_eq!(backend.get(fid, t).unwrap().as_deref(), Some(wanted));
    }
    let fid = backend.put_text(Int4, -1, "secret");
    let (sqlstate, message) = backend.get(fid, Int4).unwrap_err();
    assert_eq!(sqlstate, "22P02");
    assert!(!message.contains("secret"));
}

/// The sender's type must be the target's; an assignment's length is enforced.
#[test]
fn types_of_envelopes() {
    let running = Running::start();
    let mut backend = running.session();
    let envelope = backend.seal(Some(Int4), 0, &[0, 0, 0, 1]);
    let to = backend.slot();
    backend.put_bytes(to, Int8, -1, &envelope);
    assert_eq!(state(backend.fence()), "42804");
    assert_eq!(state(backend.get(to, Int8)), "42804");

    let envelope = backend.seal(Some(Text), 0, b"abcdef");
    let to = backend.slot();
    backend.put_bytes(to, Varchar, 4 + 3, &envelope);
    assert_eq!(state(backend.fence()), "22001");
    let to = backend.slot();
    backend.put_bytes(to, Varchar, 4 + 6, &envelope);
    assert_eq!(backend.get(to, Text).unwrap().as_deref(), Some("abcdef"));
    assert_eq!(backend.get(to, Varchar).unwrap().as_deref(), Some("abcdef"));
    assert_eq!(state(backend.get(to, Bpchar)), "42804");

    let garbage = backend.seal(Some(Int4), 0, &[1, 2]);
    let to = backend.slot();
    backend.put_bytes(to, Int4, -1, &garbage);
    assert_eq!(state(backend.fence()), "08P01");
}

/// What is no envelope, is cut, altered, or of another session names its fault.
#[test]
fn bad_envelopes() {
    let running = Running::start();
    let mut backend = running.session();
    let other = running.session();
    let good = backend.seal(Some(Int4), 0, &[0, 0, 0, 1]);
    let mut altered = good.clone();
    *altered.last_mut().unwrap() ^= 1;
    let mut retyped = good.clone();
    retyped[2] = Int8 as u8;
    let mut from_keeper = good.clone();
    from_keeper[1] = 2;
    for (bytes, wanted) in [
        (b"hello".to_vec(), "22P03"),
        (Vec::new(), "22P03"),
        (good[..20].to_vec(), "22P03"),
        (altered, "28000"),
        (retyped, "28000"),
        (from_keeper, "28000"),
        (other.seal(Some(Int4), 0, &[0, 0, 0, 1]), "28000"),
    ] {
        let to = backend.slot();
        backend.put_bytes(to, Int4, -1, &bytes);
        assert_eq!(state(backend.fence()), wanted);
    }
    let to = backend.slot();
    backend.put_bytes(to, Int4, -1, &good);
    assert_eq!(backend.fence(), Ok(()));
}

/// An envelope that the keeper gave out is taken back in the session that it was made for, as
/// a value of its type; in another session, of the same client, it opens nothing. Bug: who has
/// seen an envelope pass reads it in a session of their own.
#[test]
fn envelopes_that_come_back() {
    let running = Running::start();
    let (mut owner, mut other) = (running.session(), running.session());
    let value = owner.put(&Value::Int4(77));
    let envelope = owner.get_envelope(value, Int4).unwrap();
    let back = owner.slot();
    owner.put_bytes(back, Int4, -1, &envelope);
    assert_eq!(owner.get(back, Int4).unwrap().as_deref(), Some("77"));
    let wrong = owner.slot();
    owner.put_bytes(wrong, Int8, -1, &envelope);
    assert_eq!(state(owner.fence()), "42804");

    let to = other.slot();
    other.put_bytes(to, Int4, -1, &envelope);
    assert_eq!(state(other.fence()), "28000");
    assert_eq!(state(other.get(to, Int4)), "28000");
    let mut altered = envelope.clone();
    *altered.last_mut().unwrap() ^= 1;
    let to = owner.slot();
    owner.put_bytes(to, Int4, -1, &altered);
    assert_eq!(state(owner.fence()), "28000");
}

#[test]
fn operations() {
    let running = Running::start();
    let mut backend = running.session();
    let (a, b) = (backend.put(&Value::Int4(7)), backend.put(&Value::Int4(5)));
    for (op, wanted) in [
        (Op::Add, "12"),
        (Op::Sub, "2"),
        (Op::Mul, "35"),
        (Op::Div, "1"),
    ] {
        let number = backend.number(op, &[Int4, Int4], Some(Int4));
        let c = backend.eval(number, &[a, b]);
        assert_eq!(backend.get(c, Int4).unwrap().as_deref(), Some(wanted));
    }
    let neg = backend.number(Op::Neg, &[Int4], Some(Int4));
    let c = backend.eval(neg, &[a]);
    assert_eq!(backend.get(c, Int4).unwrap().as_deref(), Some("-7"));
    for (op, wanted) in [
        (Op::Lt, 0),
        (Op::Le, 0),
        (Op::Eq, 0),
        (Op::Ge, 1),
        (Op::Gt, 1),
        (Op::Ne, 1),
        (Op::Cmp, 1),
    ] {
        let number = backend.number(op, &[Int4, Int4], None);
        assert_eq!(backend.declassify(number, 1, &[a, b]).unwrap(), [wanted]);
        let null = backend.declassify(number, 1, &[a, Fid::INVALID]).unwrap();
        assert_eq!(null, [2]);
    }
    let substring = backend.number(Op::Substring, &[Text, Int4, Int4], Some(Text));
    let s = backend.put(&text("hello world"));
    let c = backend.eval(substring, &[s, a, b]);
    assert_eq!(backend.get(c, Text).unwrap().as_deref(), Some("world"));
    let like = backend.number(Op::Like, &[Text, Text], None);
    let pattern = backend.put(&text("%o w%"));
    assert_eq!(backend.declassify(like, 1, &[s, pattern]).unwrap(), [1]);
}

/// Equal values hash equally, whatever their width or scale; NULL hashes to 0.
#[test]
fn hashes() {
    let running = Running::start();
    let mut backend = running.session();
    let hash = |b: &mut Backend, t, fid| {
        let number = b.number(Op::Hash, &[t], None);
        u64::from_le_bytes(b.declassify(number, 1, &[fid]).unwrap().try_into().unwrap())
    };
    let (a, b) = (backend.put(&Value::Int4(7)), backend.put(&Value::Int8(7)));
    let x = hash(&mut backend, Int4, a);
    assert_eq!(x, hash(&mut backend, Int8, b));
    assert_ne!(x, 0);
    assert_eq!(hash(&mut backend, Int8, Fid::INVALID), 0);
    let (a, b) = (
        backend.put_text(Numeric, -1, "1.0"),
        backend.put_text(Numeric, -1, "1.000"),
    );
    assert_eq!(
        hash(&mut backend, Numeric, a),
        hash(&mut backend, Numeric, b)
    );
}

/// Mechanism: the first error of one-way requests is told once, by the next
/// answered request; what depends on a failed value fails without a new error.
/// With the bug a division by zero would vanish, or be told for the next statement.
#[test]
fn poison() {
    let running = Running::start();
    let mut backend = running.session();
    let (one, zero) = (backend.put(&Value::Int4(1)), backend.put(&Value::Int4(0)));
    let div = backend.number(Op::Div, &[Int4, Int4], Some(Int4));
    let add = backend.number(Op::Add, &[Int4, Int4], Some(Int4));
    let eq = backend.number(Op::Eq, &[Int4, Int4], None);
    let bad = backend.eval(div, &[one, zero]);
    let worse = backend.eval(add, &[bad, one]);
    // Overflow comes second and is not told.
    let max = backend.put(&Value::Int4(i32::MAX));
    let over = backend.eval(add, &[max, one]);
    assert_eq!(backend.call(Kind::Ping, &[]), Ok(Vec::new()));
    let told = backend.declassify(eq, 1, &[one, one]);
    assert_eq!(told, Err(("22012".into(), "division by zero".into())));
    assert_eq!(backend.declassify(eq, 1, &[one, one]), Ok(vec![1]));
    assert_eq!(state(backend.get(worse, Int4)), "22012");
    assert_eq!(state(backend.get(over, Int4)), "22003");
    assert_eq!(state(backend.declassify(eq, 1, &[one, worse])), "22012");
    // A NULL beside it does not hide the failure.
    assert_eq!(
        state(backend.declassify(eq, 1, &[Fid::INVALID, worse])),
        "22012"
    );
    assert_eq!(backend.fence(), Ok(()));
    // Using the poisoned value again makes no new error.
    backend.eval(add, &[bad, one]);
    assert_eq!(backend.fence(), Ok(()));
    backend.eval(div, &[one, zero]);
    backend.send(Kind::Forget, &[]);
    assert_eq!(backend.fence(), Ok(()));
}

/// Operands must have the signature's types.
#[test]
fn types_of_operands() {
    let running = Running::start();
    let mut backend = running.session();
    let (a, b) = (backend.put(&Value::Int4(7)), backend.put(&Value::Int8(5)));
    let eq = backend.number(Op::Eq, &[Int4, Int4], None);
    assert_eq!(state(backend.declassify(eq, 1, &[a, b])), "42804");
    assert_eq!(state(backend.declassify(eq, 2, &[a, b, a, a])), "42804");
    let mixed = backend.number(Op::Eq, &[Int4, Int8], None);
    assert_eq!(backend.declassify(mixed, 1, &[a, b]), Ok(vec![0]));
    assert_eq!(state(backend.declassify(mixed, 1, &[a])), "42804");
    assert_eq!(state(backend.declassify(60_000, 1, &[a, b])), "42883");
    let add = backend.number(Op::Add, &[Int4, Int4], Some(Int4));
    assert_eq!(state(backend.declassify(add, 1, &[a, a])), "42804");
    let to = backend.slot();
    backend.eval_at(eq, 0, to, 1, &[a, a]);
    assert_eq!(state(backend.fence()), "42804");
}

/// Slots below the released limit are gone, above it they stay; slots that were
/// never used are something else.
#[test]
fn release() {
    let running = Running::start();
    let mut backend = running.session();
    let (a, b) = (backend.put(&Value::Int4(1)), backend.put(&Value::Int4(2)));
    let plan = backend.plan_slot();
    let envelope = backend.seal(Some(Int4), 0, &[0, 0, 0, 9]);
    backend.put_bytes(plan, Int4, -1, &envelope);
    backend.release(b);
    assert_eq!(state(backend.get(a, Int4)), "55000");
    assert_eq!(backend.get(b, Int4).unwrap().as_deref(), Some("2"));
    backend.end_statement();
    assert_eq!(state(backend.get(b, Int4)), "55000");
    assert_eq!(backend.get(plan, Int4).unwrap().as_deref(), Some("9"));
    let never = backend.slot();
    assert_eq!(state(backend.get(never, Int4)), "XX000");
    backend.put_bytes(a, Int4, -1, &envelope);
    assert_eq!(state(backend.fence()), "55000");
}

/// The session's limit is an error of the statement, and release gives all back.
#[test]
fn memory_limit() {
    let running = Running::start();
    let mut backend = running.session();
    let big = text(&"x".repeat(10 << 20));
    let fids: Vec<Fid> = (0..6).map(|_| backend.put(&big)).collect();
    assert_eq!(backend.fence(), Ok(()));
    backend.put(&big);
    assert_eq!(state(backend.fence()), "53200");
    assert!(backend.get(fids[5], Text).is_ok());
    backend.end_statement();
    assert!(backend.stats()["session.memory_bytes"] < 1 << 20);
    backend.put(&big);
    assert_eq!(backend.fence(), Ok(()));
}

/// Intermediate results count, too: doubling a string again and again must end in
/// an error, not in the death of the keeper.
#[test]
fn memory_of_results() {
    let running = Running::start();
    let mut backend = running.session();
    let mut a = backend.put(&text(&"x".repeat(1 << 20)));
    let concat = backend.number(Op::Concat, &[Text, Text], Some(Text));
    for _ in 0..12 {
        a = backend.eval(concat, &[a, a]);
    }
    assert_eq!(state(backend.fence()), "53200");
    assert_eq!(backend.fence(), Ok(()));
}

/// Settings change how text is read, in this session only.
#[test]
fn settings() {
    let running = Running::start();
    let mut backend = running.session();
    let mut other = running.session();
    backend.send(
        Kind::Settings,
        b"TimeZone\0Europe/Berlin\0DateStyle\0ISO, DMY\0",
    );
    for (b, wanted) in [
        (&mut backend, "2024-07-01 10:00:00+00"),
        (&mut other, "2024-01-07 12:00:00+00"),
    ] {
        let fid = b.put_text(Timestamptz, -1, "01/07/2024 12:00");
        assert_eq!(b.get(fid, Timestamptz).unwrap().as_deref(), Some(wanted));
    }
    backend.send(Kind::Settings, b"work_mem\x004MB\0");
    assert!(backend.fence().is_err());
    assert_eq!(backend.fence(), Ok(()));
}

/// What the database knows anyway.
#[test]
fn plain_values() {
    let running = Running::start();
    let mut backend = running.session();
    let to = backend.slot();
    let mut body = to.0.to_le_bytes().to_vec();
    body.extend_from_slice(&(-1i32).to_le_bytes());
    body.extend_from_slice(&[Float8 as u8, 0, 0, 0]);
    body.extend_from_slice(&2.5f64.to_be_bytes());
    backend.send(Kind::PutPlain, &body);
    assert_eq!(backend.get(to, Float8).unwrap().as_deref(), Some("2.5"));
}

/// Envelopes of many values in one answer: each is its value's; the answer ends before the first
/// value that has none, and when it is long. Bug: values after that get the envelope of another.
#[test]
fn envelopes_of_many() {
    let running = Running::start();
    let mut backend = running.session();
    let ask = |backend: &mut Backend, fids: &[(Fid, TypeCode)]| -> Vec<usize> {
        let entry = |&(fid, t): &(Fid, TypeCode)| [fid.0, t as u64].map(u64::to_le_bytes).concat();
        let mut body = vec![0; 8];
        body.extend(fids.iter().flat_map(entry));
        let answer = backend.call(Kind::GetEnvelopes, &body).unwrap();
        let mut rest = &answer[..];
        let mut lengths = Vec::new();
        while let Some((length, more)) = rest.split_first_chunk::<4>() {
            let length = u32::from_le_bytes(*length) as usize;
            lengths.push(length);
            rest = &more[length..];
        }
        lengths
    };
    let one = backend.put(&Value::Int4(1));
    let two = backend.put(&text("two, which is longer"));
    let whole = ask(
        &mut backend,
        &[(one, TypeCode::Int4), (two, TypeCode::Text)],
    );
    assert_eq!(whole.len(), 2);
    assert!(whole[0] < whole[1]);
    let gone = Fid(1 << 44 | 77);
    for without in [Fid::INVALID, gone] {
        let list = [
            (one, TypeCode::Int4),
            (without, TypeCode::Int4),
            (two, TypeCode::Text),
        ];
        assert_eq!(ask(&mut backend, &list), whole[..1]);
    }
    let other = [(two, TypeCode::Int4), (one, TypeCode::Int4)];
    assert_eq!(ask(&mut backend, &other), [0; 0], "of another type");
    let long = backend.put(&text(&"x".repeat(1 << 20)));
    let found = ask(&mut backend, &[(long, TypeCode::Text); 20]).len();
    assert!((1..8).contains(&found), "{found}");
}

/// Cells are sealed anew only while the key is being changed, whoever asks. The extension asks before, too; here
/// is a backend that does not.
#[test]
fn cells_that_stay() {
    let running = Running::start();
    let mut backend = running.session();
    let name = b"public\0emp\0pay\0";
    let reseal = body::CellReseal {
        t: Int4,
        flags: 0,
        length: name.len() as u32,
        name,
        cells: Each::new(&[]),
    };
    let mut message = Vec::new();
    reseal.put(&mut message);
    assert_eq!(state(backend.call(Kind::CellReseal, &message)), "55000");
}
