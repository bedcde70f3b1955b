//! The values that a channel can refer to: those of columns, and those in the arenas of its
//! session. Every FID received from a backend is resolved here.
//!
//! Invariants: a FID of another session's arena never resolves; only one lock is held at a time; a
//! value has the requested type, or there is an error.

use crate::arenas::{ArenaPair, Arenas};
use crate::cells::Cells;
use crate::fail::{self, Failure};
use crate::keys::Keys;
use crate::signatures::Table;
use contract::{Fid, TypeCode};
use std::sync::Arc;
use store::{Arena, Budget, Entry, Label, Scalar, Store};
use values::{Error, Value};

/// The values that one channel can refer to.
pub struct Space {
    /// The columns.
    pub store: Arc<Store>,
    /// Operations by number.
    pub table: Arc<Table>,
    /// The keeper's keys.
    pub keys: Arc<Keys>,
    /// Opens cells of the family `rnd_`.
    pub cells: Arc<Cells>,
    /// The memory budget of the session.
    pub budget: Arc<Budget>,
    /// The arenas of all channels of the session.
    pub arenas: Arc<Arenas>,
    /// The channel's own arenas.
    pub own: Arc<ArenaPair>,
}

/// Returns an entry as a value of the requested type.
#[inline]
fn value_of(entry: &Entry, want: Option<TypeCode>) -> Result<Option<&Value>, Failure> {
    match (entry, want) {
        (Entry::Null, _) => Ok(None),
        (Entry::Value(value), Some(want)) if value.type_code() != want => {
            Err(fail::wrong_type(value.type_code(), want).into())
        }
        (Entry::Value(value), _) => Ok(Some(value)),
        (Entry::Poison(error), _) => Err(Failure::inherited(error)),
        (Entry::State(_), want) => Err(fail::not_a_value(want.unwrap_or(TypeCode::Text)).into()),
        (Entry::Empty, _) => Err(store::no_such_value().into()),
    }
}

impl Space {
    /// Passes an arena of the session to `use_it`.
    #[inline]
    pub fn with_arena<R>(
        &self,
        partition: u32,
        use_it: impl FnOnce(&Arena) -> R,
    ) -> Result<R, Error> {
        if let Some(arena) = self.own.get(partition) {
            return Ok(use_it(arena));
        }
        let pair = self.arenas.get(ArenaPair::first_of(partition));
        let pair = pair.ok_or_else(fail::foreign)?;
        let arena = pair.get(partition).ok_or_else(fail::foreign)?;
        Ok(use_it(arena))
    }

    /// Returns one of the channel's own arenas, for storing results.
    #[inline]
    pub fn own_arena(&self, partition: u32) -> Result<&Arena, Error> {
        self.own.get(partition).ok_or_else(fail::not_own_arena)
    }

    /// Passes the value of a FID to `use_it` without copying it; `None` for NULL.
    #[inline]
    pub fn look<R>(
        &self,
        fid: Fid,
        want: TypeCode,
        use_it: impl FnOnce(&Scalar<'_>) -> R,
    ) -> Result<Option<R>, Failure> {
        if fid == Fid::INVALID {
            return Ok(None);
        }
        if fid.is_temporary() {
            return self.with_arena(fid.partition(), |arena| {
                let window = arena.read();
                let value = value_of(window.get(fid.slot())?, Some(want))?;
                Ok(value.map(|v| use_it(&Scalar::of(v))))
            })?;
        }
        let partition = self.store.get(fid.partition());
        let reader = partition.ok_or_else(store::unresolved)?.read();
        let (t, scalar) = reader
            .get(fid.slot())
            .ok_or_else(|| reader.why(fid.slot()))?;
        if t != want {
            return Err(fail::wrong_type(t, want).into());
        }
        Ok(Some(use_it(&scalar)))
    }

    /// Passes two values to `use_it`; `None` if one is NULL. `scratch` holds the bytes of the first
    /// one.
    #[inline]
    pub fn look_at_two<R>(
        &self,
        fids: [Fid; 2],
        want: [TypeCode; 2],
        scratch: &mut Vec<u8>,
        use_them: impl FnOnce(&Scalar<'_>, &Scalar<'_>) -> R,
    ) -> Result<Option<R>, Failure> {
        let [a, b] = fids;
        let [want_a, want_b] = want;
        if a.partition() == b.partition() && a.partition() != 0 && !a.is_temporary() {
            return self.look_within_column(fids, want, use_them).map(Some);
        }
        // The first value is copied, so that no lock is taken while another is held.
        let first = self.look(a, want_a, |scalar| Held::copy(scalar, scratch))?;
        self.look(b, want_b, |b| {
            first.map(|first| use_them(&first.scalar(scratch), b))
        })
        .map(Option::flatten)
    }

    /// Returns two integers of these types. `None` if one of them is something else, NULL, or not
    /// available here: then [`Space::look_at_two`] determines the result. (A [`Scalar`] is large,
    /// and moving it would cost more than everything else.)
    #[inline(always)]
    pub fn two_ints(&self, [a, b]: [Fid; 2], want: [TypeCode; 2]) -> Option<[i64; 2]> {
        if a.partition() == b.partition() && !a.is_temporary() {
            let reader = self.store.get(a.partition())?.read();
            return reader.two_ints([a.slot(), b.slot()], want);
        }
        self.two_ints_apart([a, b], want)
    }

    #[inline(never)]
    fn two_ints_apart(
        &self,
        [a, b]: [Fid; 2],
        [want_a, want_b]: [TypeCode; 2],
    ) -> Option<[i64; 2]> {
        Some([self.int(a, want_a)?, self.int(b, want_b)?])
    }

    #[inline]
    fn int(&self, fid: Fid, want: TypeCode) -> Option<i64> {
        if !fid.is_temporary() {
            let reader = self.store.get(fid.partition())?.read();
            return reader.int(fid.slot(), want);
        }
        let window = self.own.get(fid.partition())?.read();
        match window.get(fid.slot()).ok()? {
            Entry::Value(value) if value.type_code() == want => Scalar::int(value),
            _ => None,
        }
    }

    /// Passes two values of one column to `use_it`, under one lock.
    #[inline]
    fn look_within_column<R>(
        &self,
        [a, b]: [Fid; 2],
        [want_a, want_b]: [TypeCode; 2],
        use_them: impl FnOnce(&Scalar<'_>, &Scalar<'_>) -> R,
    ) -> Result<R, Failure> {
        let partition = self.store.get(a.partition());
        let reader = partition.ok_or_else(store::unresolved)?.read();
        let (t, x) = reader.get(a.slot()).ok_or_else(|| reader.why(a.slot()))?;
        let (_, y) = reader.get(b.slot()).ok_or_else(|| reader.why(b.slot()))?;
        if t != want_a || t != want_b {
            return Err(fail::wrong_type(t, if t != want_a { want_a } else { want_b }).into());
        }
        Ok(use_them(&x, &y))
    }

    /// Returns the value of a FID, of the requested type if any; `None` for NULL.
    pub fn value(&self, fid: Fid, want: Option<TypeCode>) -> Result<Option<Value>, Failure> {
        if fid == Fid::INVALID {
            return Ok(None);
        }
        if fid.is_temporary() {
            return self.with_arena(fid.partition(), |arena| {
                let window = arena.read();
                Ok(value_of(window.get(fid.slot())?, want)?.cloned())
            })?;
        }
        let partition = self.store.get(fid.partition());
        let reader = partition.ok_or_else(store::unresolved)?.read();
        let value = reader.value(fid.slot())?;
        match want {
            Some(want) if value.type_code() != want => {
                Err(fail::wrong_type(value.type_code(), want).into())
            }
            _ => Ok(Some(value)),
        }
    }

    /// Passes the values of consecutive FIDs to `use_it` until it returns false. Returns false if
    /// it did, or if one value is NULL.
    pub fn look_at_run(
        &self,
        first: Fid,
        count: u32,
        want: TypeCode,
        mut use_it: impl FnMut(&Scalar<'_>) -> bool,
    ) -> Result<bool, Failure> {
        let slots = first.slot()..first.slot() + u64::from(count);
        if first.is_temporary() {
            return self.with_arena(first.partition(), |arena| {
                let window = arena.read();
                for slot in slots {
                    match value_of(window.get(slot)?, Some(want))? {
                        Some(value) if use_it(&Scalar::of(value)) => {}
                        _ => return Ok(false),
                    }
                }
                Ok(true)
            })?;
        }
        for slot in slots {
            let fid = Fid::new(first.partition(), slot);
            if self.look(fid, want, &mut use_it)? != Some(true) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Stores an entry into a slot of the channel's own arenas; the label says what it was computed
    /// from.
    #[inline]
    pub fn set(&self, fid: Fid, entry: Entry, label: Label) -> Result<(), Error> {
        let mut window = self.own_arena(fid.partition())?.write();
        window.set_marked(fid.slot(), entry, label)
    }

    /// Stores a failure into slots of the channel's own arenas, as far as there is room.
    pub fn poison(&self, first: Fid, rows: usize, failure: &Failure) {
        if let Ok(arena) = self.own_arena(first.partition()) {
            let entries = (0..rows).map(|_| Entry::Poison(Arc::clone(&failure.error)));
            // Slots for which there is no room stay empty, which also fails when they are read.
            let _ = arena.write().set_all(first.slot(), entries);
        }
    }
}

/// A copy of a value, with its bytes in a scratch buffer.
enum Held {
    Int(i64),
    Float(f64),
    Scaled(i64, u16),
    Bytes,
    Interval(values::Interval),
    Uuid([u8; 16]),
    Numeric(values::Numeric),
}

impl Held {
    #[inline]
    fn copy(scalar: &Scalar<'_>, scratch: &mut Vec<u8>) -> Held {
        match scalar {
            Scalar::Int(v) => Held::Int(*v),
            Scalar::Float(v) => Held::Float(*v),
            Scalar::Scaled(v, s) => Held::Scaled(*v, *s),
            Scalar::Interval(v) => Held::Interval(*v),
            Scalar::Uuid(v) => Held::Uuid(*v),
            Scalar::Numeric(n) => Held::Numeric(n.as_ref().clone()),
            Scalar::Bytes(b) => {
                scratch.clear();
                scratch.extend_from_slice(b);
                Held::Bytes
            }
        }
    }

    #[inline]
    fn scalar<'a>(&'a self, scratch: &'a [u8]) -> Scalar<'a> {
        match self {
            Held::Int(v) => Scalar::Int(*v),
            Held::Float(v) => Scalar::Float(*v),
            Held::Scaled(v, s) => Scalar::Scaled(*v, *s),
            Held::Interval(v) => Scalar::Interval(*v),
            Held::Uuid(v) => Scalar::Uuid(*v),
            Held::Numeric(n) => Scalar::Numeric(std::borrow::Cow::Borrowed(n)),
            Held::Bytes => Scalar::Bytes(scratch),
        }
    }
}
