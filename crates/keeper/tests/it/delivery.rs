//! Envelopes for all who have a column's key, and who gets that.

use crate::common::{Backend, Running};
use crate::grants::{bound, entry, give, stored};
use contract::codec::Part;
use contract::envelope::Origin;
use contract::message::delivery::{CONSTANT, DELIVERY, KEYED, SESSION};
use contract::{Fid, Kind, TypeCode, answer};
use envelope::Envelope;
use grant::{family, origin};
use values::Value;

const INT: TypeCode = TypeCode::Int4;

/// What a value's envelope is, asked for in a form and a period.
pub fn asked(backend: &mut Backend, fid: Fid, form: u8, period: u64) -> Option<Vec<u8>> {
    asked_as(backend, (fid, INT), form, period)
}

fn asked_as(
    backend: &mut Backend,
    (fid, t): (Fid, TypeCode),
    form: u8,
    period: u64,
) -> Option<Vec<u8>> {
    let mut body = period.to_le_bytes().to_vec();
    body.extend_from_slice(&fid.0.to_le_bytes());
    body.extend_from_slice(&[t as u8, form, 0, 0, 0, 0, 0, 0]);
    let answer = backend.call(Kind::GetEnvelopes, &body).unwrap();
    answer.get(4..).map(<[u8]>::to_vec)
}

/// Its origin, and whether a key comes with it.
fn kind(backend: &mut Backend, fid: Fid, form: u8, period: u64) -> Option<(Origin, bool)> {
    let bytes = asked(backend, fid, form, period)?;
    let parsed = Envelope::parse(&bytes).unwrap();
    Some((parsed.origin, parsed.is_keyed()))
}

fn shown(backend: &mut Backend) {
    give(backend, &[entry(0, family::SHOW, &["pay"], &[])]);
}

/// A key and what is under it are given only where a grant of the session shows the column, of its
/// own values, in the period that is. Bug: the database has an envelope or a key of what the
/// client's statement does not show, or of a time that is over.
#[test]
fn for_whom() {
    let running = bound();
    let mut backend = running.session();
    let pay = stored(&mut backend, 16_400, "pay", 5200);
    let now = backend.end.period();
    assert!(now != 0);
    for form in [SESSION, DELIVERY, KEYED] {
        assert_eq!(kind(&mut backend, pay, form, now), None);
    }
    shown(&mut backend);
    give(
        &mut backend,
        &[entry(origin::CLIENT, family::SHOW, &[], &[])],
    );
    let own = Some((Origin::Keeper, false));
    assert_eq!(kind(&mut backend, pay, SESSION, now), own);
    assert_eq!(
        kind(&mut backend, pay, KEYED, now),
        Some((Origin::Keeper, true))
    );
    assert_eq!(
        kind(&mut backend, pay, DELIVERY, now),
        Some((Origin::Delivery, false))
    );
    // Another period; no form; a value that is in no column.
    for (form, period) in [
        (DELIVERY, now + 1),
        (KEYED, now - 1),
        (DELIVERY, 0),
        (77, now),
    ] {
        assert_eq!(kind(&mut backend, pay, form, period), own);
    }
    let constant = backend.put(&Value::Int4(1));
    assert_eq!(kind(&mut backend, constant, KEYED, now), own);
    assert_eq!(kind(&mut backend, constant, DELIVERY, now), own);
    // Without a client it is an export envelope, whatever is asked for.
    let mut bare = running.backend();
    let export = kind(&mut bare, pay, DELIVERY, now);
    assert!(export.is_none_or(|(origin, _)| origin == Origin::Export));
}

/// The envelopes that come with a promotion of a value, and the period.
fn promoted(backend: &mut Backend, source: Fid, partition: u32, t: u8) -> (Fid, u64, Vec<Vec<u8>>) {
    let mut body = 1u64.to_le_bytes().to_vec();
    body.extend_from_slice(&source.0.to_le_bytes());
    body.extend_from_slice(&partition.to_le_bytes());
    body.extend_from_slice(&[t, 0, 0, 0]);
    let answer = backend.call(Kind::Promote, &body).unwrap();
    let answer = answer::Promote::decode(&answer).unwrap();
    let envelopes = answer.envelopes.iter().map(|e| e.envelope.to_vec());
    (
        answer.fids.iter().next().unwrap(),
        answer.period,
        envelopes.collect(),
    )
}

/// What is promoted comes with an envelope for all where it could be asked for, and else with
/// none. Bug: who may write a column, but not see it, has it from the database of somebody who may.
#[test]
fn promotions() {
    let running = bound();
    let mut backend = running.session();
    let old = stored(&mut backend, 16_400, "pay", 5200);
    let now = backend.end.period();
    // The column may be written, and not seen.
    for source in [backend.put(&Value::Int4(1)), old] {
        let (_, _, envelopes) = promoted(&mut backend, source, old.partition(), INT as u8);
        assert!(envelopes.iter().all(Vec::is_empty), "{source:?}");
    }
    shown(&mut backend);
    let source = backend.put(&Value::Int4(2));
    let (fid, period, envelopes) = promoted(&mut backend, source, old.partition(), INT as u8);
    let parsed = Envelope::parse(&envelopes[0]).unwrap();
    assert_eq!(
        (period, parsed.origin, envelopes.len()),
        (now, Origin::Delivery, 1)
    );
    // Under the key that others have.
    let asked = asked(&mut backend, fid, DELIVERY, now).unwrap();
    assert_eq!(Envelope::parse(&asked).unwrap().epoch, parsed.epoch);
    // Not wanted; of another type; nothing is delivered to anybody.
    let text = TypeCode::Text as u8;
    for (t, wanted) in [(0, 0), (text, 1)] {
        let source = backend.put(&Value::Int4(3));
        let (_, _, envelopes) = promoted(&mut backend, source, old.partition(), t);
        assert_eq!(envelopes, vec![Vec::<u8>::new(); wanted]);
    }
    running.server.keeper().delivery.renew(false);
    let source = backend.put(&Value::Int4(4));
    let (_, period, envelopes) = promoted(&mut backend, source, old.partition(), INT as u8);
    assert_eq!((period, envelopes.len()), (0, 0));
}

/// What only a definition lets be shown is sealed for the session: its grants do not show the
/// column. Bug: who runs a definition gets the key of all of the column.
#[test]
fn definitions() {
    let running = bound();
    let mut owner = running.session();
    let pay = stored(&mut owner, 16_400, "pay", 5200);
    let standing = grant::Entry {
        standing: true,
        ..entry(0, family::SHOW, &["pay"], &[])
    };
    give(&mut owner, &[standing]);
    assert_eq!(owner.fence(), Ok(()));
    let mut backend = running.session();
    let now = backend.end.period();
    let own = Some((Origin::Keeper, false));
    assert_eq!(kind(&mut backend, pay, KEYED, now), own);
    assert_eq!(kind(&mut backend, pay, DELIVERY, now), own);
    shown(&mut backend);
    assert_eq!(
        kind(&mut backend, pay, KEYED, now),
        Some((Origin::Keeper, true))
    );
}

/// All sessions have one key of a column in a period; withdrawing a client's key, or whatever
/// else may change who sees what, makes another one, and ends the period for everybody.
#[test]
fn periods() {
    let running = bound();
    let (mut one, mut two) = (running.session(), running.session());
    let pay = stored(&mut one, 16_400, "pay", 5200);
    shown(&mut one);
    shown(&mut two);
    let number = |backend: &mut Backend| {
        let period = backend.end.period();
        let bytes = asked(backend, pay, DELIVERY, period).unwrap();
        Envelope::parse(&bytes).unwrap().epoch.unwrap()
    };
    let first = number(&mut one);
    assert_eq!(number(&mut two), first);
    let before = one.end.period();
    running.server.keeper().delivery.forget();
    assert!(one.end.period() != before);
    assert_eq!(one.end.period(), two.end.period());
    assert_eq!(number(&mut two), first);
    let before = one.end.period();
    running.server.keeper().delivery.renew(true);
    assert!(one.end.period() != before);
    assert_eq!(
        kind(&mut one, pay, DELIVERY, before),
        Some((Origin::Keeper, false))
    );
    assert!(number(&mut one) != first);
    // A session that comes later is told, and one without a client that there is none.
    assert_eq!(running.session().end.period(), one.end.period());
    assert_eq!(running.backend().end.period(), 0);
    running.server.keeper().delivery.renew(false);
    assert_eq!((one.end.period(), running.session().end.period()), (0, 0));
}

/// Dropping a relation ends the period before its identifiers can name anything else.
#[test]
fn freed() {
    let running = bound();
    let mut backend = running.session();
    let pay = stored(&mut backend, 16_400, "pay", 5200);
    shown(&mut backend);
    let before = backend.end.period();
    assert!(asked(&mut backend, pay, DELIVERY, before).is_some());
    let drop = [crate::common::DATABASE, 16_400].map(u32::to_le_bytes);
    backend.send(Kind::PartitionDrop, &drop.concat());
    assert_eq!(backend.fence(), Ok(()));
    assert!(backend.end.period() != before);
}

/// What was sealed for delivery, or brings a key, is no value for the keeper to take in.
#[test]
fn does_not_come_back() {
    let running = Running::with(|config| config.require_grants = true);
    let mut backend = running.session();
    // Of a type of which any bytes are a value, also those of a key.
    let t = TypeCode::Bytea;
    give(
        &mut backend,
        &[entry(origin::CLIENT, family::SHOW, &["photo"], &["photo"])],
    );
    let column = backend.open_named(16_400, t, "public\0emp\0photo\0");
    let source = backend.put(&Value::Bytea(Box::from(*b"photo")));
    let photo = backend.promote(&[(source, column)]).unwrap()[0];
    let now = backend.end.period();
    for form in [DELIVERY, KEYED] {
        let bytes = asked_as(&mut backend, (photo, t), form, now).unwrap();
        let fid = backend.slot();
        backend.put_bytes(fid, t, -1, &bytes);
        // Refused for what it is, before anybody tries to open it.
        let refused = backend.fence().unwrap_err();
        assert_eq!(refused.0, "22P03", "{refused:?}");
    }
}

/// In a client's session export envelopes are made of constants of catalogs, which every session without
/// a client can print. Of another value they are nothing that the client's grant allows.
#[test]
fn no_export_of_other_values() {
    let running = bound();
    let mut backend = running.session();
    let pay = stored(&mut backend, 7, "pay", 5200);
    let given = backend.put(&Value::Int4(1));
    for fid in [pay, given] {
        assert_eq!(asked(&mut backend, fid, CONSTANT, 0), None);
    }
    let constants = backend.open(0, INT, -1);
    let constant = backend.promote(&[(given, constants)]).unwrap()[0];
    let bytes = asked(&mut backend, constant, CONSTANT, 0).unwrap();
    assert_eq!(Envelope::parse(&bytes).unwrap().origin, Origin::Export);
    // Any client's session takes it as a constant of its own, which may be kept as one.
    let mut other = running.session();
    let taken = other.slot();
    other.put_bytes(taken, INT, -1, &bytes);
    let constants = other.open(0, INT, -1);
    assert!(other.promote(&[(taken, constants)]).is_ok());
    // Into a column only with a grant for the client's constants.
    let column = pay.partition();
    assert!(other.promote(&[(taken, column)]).is_err());
    give(&mut other, &[entry(origin::CLIENT, 0, &[], &["pay"])]);
    assert!(other.promote(&[(taken, column)]).is_ok());
}
