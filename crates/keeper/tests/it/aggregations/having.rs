//! Conditions on groups.

use super::*;

/// `having sum(x) > 3`: only those groups come, and with computed keys.
#[test]
fn having() {
    let running = Running::start();
    let mut backend = running.session();
    let three = backend.put(&Value::Int8(3));
    let gt = backend.number(Op::Gt, &[Int8, Int8], None) as u16;
    let program = Builder {
        inputs: vec![Int8, Int8],
        constants: vec![],
        code: vec![(INPUT, 0, 0), (INPUT, 1, 0), (CALL, gt, 0)],
        ..Builder::default()
    };
    let having = backend.register(&program).unwrap();
    let upper = backend.number(Op::Upper, &[Text], Some(Text)) as u16;
    let program = Builder {
        inputs: vec![Text],
        constants: vec![],
        code: vec![(INPUT, 0, 0), (CALL, upper, 0)],
        ..Builder::default()
    };
    let upper = backend.register(&program).unwrap();
    let sum = backend.aggregate_number(Aggregate::Sum, Int4);
    let r = Registration {
        columns: vec![Text as u8, Int4 as u8],
        expressions: vec![(upper, vec![0]), (0, vec![1])],
        keys: vec![0],
        aggregates: vec![(sum, 1, NONE, 0)],
        having: (having, vec![1, GIVEN]),
        ..Registration::default()
    };
    let handle = register(&mut backend, &r).unwrap();
    let keys = [Some("a"), Some("B"), Some("A"), Some("c"), Some("b"), None];
    let values = [Some("2"), Some("1"), Some("3"), Some("9"), Some("2"), None];
    let columns = [
        Sent::Fids(column(&mut backend, 0, Text, -1, &keys)),
        Sent::Fids(column(&mut backend, 1, Int4, -1, &values)),
    ];
    send(&mut backend, handle, &columns, 0..6);
    let lacking = fetch(&mut backend, handle, 8, &[false; 2]);
    assert_eq!(state(lacking.map(|_| ())), "42804");
    let found = fetch_with(&mut backend, handle, 8, &[false; 2], &[three]).unwrap();
    let of = |backend: &mut Backend, n: usize, t| -> Vec<_> {
        let column = found.columns[n].clone();
        column
            .iter()
            .map(|f| text(backend, f.unwrap(), t))
            .collect()
    };
    assert_eq!(
        of(&mut backend, 0, Text),
        [Some("A".into()), Some("C".into())]
    );
    assert_eq!(
        of(&mut backend, 1, Int8),
        [Some("5".into()), Some("9".into())]
    );
}
