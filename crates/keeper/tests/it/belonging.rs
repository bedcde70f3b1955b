//! Values from export envelopes go where they came from, or where a restore ticket lets them.

use crate::common::{Backend, Running, state};
use contract::{Fid, Kind, Op, TypeCode};
use envelope::{Issuer, SealedTicket, SecretKey};
use grant::{Place, Ticket};
use values::Value;

const INT: TypeCode = TypeCode::Int4;
const PAY: &str = "public\0emp\0pay\0";
const BONUS: &str = "public\0emp\0bonus\0";

fn strict() -> Running {
    Running::with(|config| config.take_exports = false)
}

/// The export envelope of a value that a client has stored in a column.
fn exported(running: &Running) -> Vec<u8> {
    let mut owner = running.session();
    let constant = owner.put(&Value::Int4(5200));
    let pay = owner.open_named(1, INT, PAY);
    let fid = owner.promote(&[(constant, pay)]).unwrap()[0];
    running.backend().get_envelope(fid, INT).unwrap()
}

fn ticket(places: &[&str]) -> Ticket {
    Ticket {
        number: *b"ticket number 01",
        expires: u64::MAX,
        uses: 1,
        other_columns: false,
        database: "app".into(),
        places: places.iter().filter_map(|p| Place::read(p)).collect(),
    }
}

fn sealed(running: &Running, client: &SecretKey, ticket: &Ticket) -> String {
    let keeper = &running.server.keeper().keys.public;
    SealedTicket::seal(&Issuer::Client(client, keeper), &ticket.encode()).unwrap()
}

fn present(backend: &mut Backend, text: &str) -> Result<(), String> {
    backend.send(Kind::RestoreTicket, format!("app\0{text}").as_bytes());
    backend.fence().map_err(|(state, _)| state)
}

/// A backend whose session has a ticket of the client.
fn with_ticket(running: &Running, ticket: &Ticket) -> Backend {
    let mut backend = running.backend();
    assert_eq!(
        present(&mut backend, &sealed(running, &running.client, ticket)),
        Ok(())
    );
    backend
}

/// What becomes of an envelope on its way into a column.
fn taken(backend: &mut Backend, envelope: &[u8], partition: u32) -> Result<Fid, String> {
    let slot = backend.slot();
    backend.put_bytes(slot, INT, -1, envelope);
    let put = backend.fence();
    let done = backend.promote(&[(slot, partition)]);
    match put.and(done) {
        Ok(fids) => Ok(fids[0]),
        Err((state, _)) => Err(state),
    }
}

fn refused() -> Result<Fid, String> {
    Err("42501".into())
}

/// Without a ticket nothing is taken in, and with `take_exports` what goes back into its
/// column. With the bug whoever holds an envelope puts its value where he may read it.
#[test]
fn home_only() {
    let running = strict();
    let envelope = exported(&running);
    let mut dba = running.backend();
    let pay = dba.open_named(1, INT, PAY);
    assert_eq!(taken(&mut dba, &envelope, pay), refused());
    // It is not even a temporary value: whoever is shown those would be shown this one.
    let mut reader = running.session();
    for backend in [&mut dba, &mut reader] {
        let slot = backend.slot();
        backend.put_bytes(slot, INT, -1, &envelope);
        assert_eq!(state(backend.fence()), "42501");
        assert_eq!(state(backend.get_envelope(slot, INT)), "42501");
    }

    let running = Running::with(|config| config.take_exports = true);
    let envelope = exported(&running);
    let mut dba = running.backend();
    let pay = dba.open_named(1, INT, PAY);
    let bonus = dba.open_named(2, INT, BONUS);
    assert!(taken(&mut dba, &envelope, pay).is_ok());
    assert_eq!(taken(&mut dba, &envelope, bonus), refused());
    // A column that nobody has named, and the same column of another database.
    let unnamed = dba.open(3, INT, -1);
    assert_eq!(taken(&mut dba, &envelope, unnamed), refused());
    let other = crate::common::DATABASE + 1;
    let mut elsewhere = running.backend_of(other);
    let pay = elsewhere.open_in(other, 1, INT, -1, PAY);
    assert_eq!(taken(&mut elsewhere, &envelope, pay), refused());
    // What was taken in and goes out again is of its column still.
    let slot = dba.slot();
    dba.put_bytes(slot, INT, -1, &envelope);
    let again = dba.get_envelope(slot, INT).unwrap();
    assert_eq!(taken(&mut dba, &again, bonus), refused());
}

/// Values that are promoted together are looked at one by one.
#[test]
fn runs() {
    let running = Running::with(|config| config.take_exports = true);
    let envelope = exported(&running);
    let mut dba = running.backend();
    let pay = dba.open_named(1, INT, PAY);
    let bonus = dba.open_named(2, INT, BONUS);
    for (partition, want) in [(bonus, false), (pay, true)] {
        let first = dba.slots(2);
        for slot in [first, Fid(first.0 + 1)] {
            dba.put_bytes(slot, INT, -1, &envelope);
        }
        let body = crate::load::body(2, &[(partition, vec![(first.0, 2)])]);
        assert_eq!(dba.call(Kind::PromoteRuns, &body).is_ok(), want);
    }
}

/// An envelope of a client's session that takes it in is bound in the same way.
#[test]
fn clients_too() {
    let running = Running::with(|config| config.take_exports = true);
    let envelope = exported(&running);
    let mut session = running.session();
    let bonus = session.open_named(2, INT, BONUS);
    assert_eq!(taken(&mut session, &envelope, bonus), refused());
}

#[test]
fn scope_of_a_ticket() {
    let running = strict();
    let envelope = exported(&running);
    let mut restorer = with_ticket(&running, &ticket(&["public.emp"]));
    let pay = restorer.open_named(1, INT, PAY);
    let bonus = restorer.open_named(2, INT, BONUS);
    assert!(taken(&mut restorer, &envelope, pay).is_ok());
    assert_eq!(taken(&mut restorer, &envelope, bonus), refused());

    let other = Ticket {
        number: [2; 16],
        ..ticket(&["public.emp.bonus"])
    };
    let mut restorer = with_ticket(&running, &other);
    assert_eq!(taken(&mut restorer, &envelope, pay), refused());
    assert_eq!(taken(&mut restorer, &envelope, bonus), refused());

    let other = Ticket {
        number: [3; 16],
        other_columns: true,
        ..ticket(&["public.emp.bonus"])
    };
    let mut restorer = with_ticket(&running, &other);
    assert!(taken(&mut restorer, &envelope, bonus).is_ok());
    assert_eq!(taken(&mut restorer, &envelope, pay), refused());
}

/// Envelopes of earlier versions say nothing of where they belong: a ticket for other columns
/// takes them, and no other.
#[test]
fn earlier_envelopes() {
    let running = strict();
    let mut old = Vec::new();
    let export = &running.server.keeper().keys.export;
    export
        .seal(INT as u8, 0, &5200_i32.to_be_bytes(), &mut old)
        .unwrap();
    let mut restorer = with_ticket(&running, &ticket(&[]));
    let pay = restorer.open_named(1, INT, PAY);
    assert_eq!(taken(&mut restorer, &old, pay), refused());
    let other = Ticket {
        number: [2; 16],
        other_columns: true,
        ..ticket(&[])
    };
    let mut restorer = with_ticket(&running, &other);
    assert!(taken(&mut restorer, &old, pay).is_ok());
}

/// A ticket is good once, for its database, until it expires, if it is of an authorised client
/// or of whoever has the root key.
#[test]
fn good_once() {
    let running = strict();
    let envelope = exported(&running);
    let text = sealed(&running, &running.client, &ticket(&[]));
    let mut first = running.backend();
    assert_eq!(present(&mut first, &text), Ok(()));
    // Told again in its session, it is not used again.
    assert_eq!(present(&mut first, ""), Ok(()));
    let pay = first.open_named(1, INT, PAY);
    assert_eq!(taken(&mut first, &envelope, pay), refused());
    assert_eq!(present(&mut first, &text), Ok(()));
    assert!(taken(&mut first, &envelope, pay).is_ok());
    let bad = Err("42501".to_owned());
    let mut second = running.backend();
    assert_eq!(present(&mut second, &text), bad);
    assert_eq!(taken(&mut second, &envelope, pay), refused());

    let stranger = SecretKey::generate().unwrap();
    let fresh = Ticket {
        number: [2; 16],
        ..ticket(&[])
    };
    assert_eq!(
        present(&mut second, &sealed(&running, &stranger, &fresh)),
        bad
    );
    let late = Ticket {
        expires: 1,
        ..fresh.clone()
    };
    assert_eq!(
        present(&mut second, &sealed(&running, &running.client, &late)),
        bad
    );
    let elsewhere = Ticket {
        database: "other".into(),
        ..fresh.clone()
    };
    let text = sealed(&running, &running.client, &elsewhere);
    assert_eq!(present(&mut second, &text), bad);
    let root = Issuer::Operator(running.server.keeper().keys.root());
    let text = SealedTicket::seal(&root, &fresh.encode()).unwrap();
    assert_eq!(present(&mut second, &text), Ok(()));
    assert!(taken(&mut second, &envelope, pay).is_ok());
    let root = Issuer::Operator(&[9; 32]);
    let text = SealedTicket::seal(&root, &fresh.encode()).unwrap();
    assert_eq!(present(&mut running.backend(), &text), bad);
}

/// Without a client values of a column are compared while a ticket for it holds.
#[test]
fn order_while_it_holds() {
    let running = strict();
    let mut owner = running.session();
    let (a, b) = (owner.put(&Value::Int4(1)), owner.put(&Value::Int4(2)));
    let pay = owner.open_named(1, INT, PAY);
    let fids = owner.promote(&[(a, pay), (b, pay)]).unwrap();
    let mut dba = running.backend();
    let lt = dba.number(Op::Lt, &[INT, INT], None);
    assert_eq!(state(dba.declassify(lt, 1, &fids)), "42501");
    let mut other = with_ticket(&running, &ticket(&["public.emp.bonus"]));
    assert_eq!(state(other.declassify(lt, 1, &fids)), "42501");
    let second = Ticket {
        number: [2; 16],
        ..ticket(&["public.emp.pay"])
    };
    let mut restorer = with_ticket(&running, &second);
    assert_eq!(restorer.declassify(lt, 1, &fids), Ok(vec![1]));
    present(&mut restorer, "").unwrap();
    assert_eq!(state(restorer.declassify(lt, 1, &fids)), "42501");
}
