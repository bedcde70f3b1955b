//! Questions: requests with what operands were made of in place of their identifiers, so that the
//! same question has the same term whoever asks it, and when.

use crate::facts::row;
use crate::here::{Here, column_domain, is_operation};
use crate::order::Domain;
use crate::program::{Cell, Program};
use crate::session::{Set, row_of};
use crate::term::{Maker, Term};
use contract::codec::{Fixed, List, Part};
use contract::message::column::Columns;
use contract::message::search::{ABOVE, BELOW, BESIDE, DESCENDING};
use contract::message::table::{AggregateCall, Expression, RankColumn, Sought};
use contract::{Fid, Kind, OpResult, answer, body};
use std::sync::Arc;

/// The bytes of a part of a message.
pub fn encoded<'a>(part: &impl Part<'a>) -> Vec<u8> {
    let mut out = Vec::new();
    part.put(&mut out);
    out
}

/// A replayer has no keys of columns: encodings are computed on.
pub fn no_keys() -> Vec<u8> {
    encoded(&answer::SoftState {
        held: 0,
        open: 0,
        probe: 0,
        usual: 0,
        probes: 0,
        faults: 0,
    })
}

fn read<'a, T: Part<'a>>(bytes: &'a [u8]) -> Option<T> {
    T::decode(bytes).ok()
}

/// A registered program of the session.
pub fn program(here: &mut Here<'_>, handle: u32) -> Option<Arc<Program>> {
    let session = here.world.session(here.session);
    session.programs.get(&handle).map(Arc::clone)
}

/// What `Eval` and `Declassify` ask for, row by row: program, immediate, rows, columns, and operands column by
/// column.
pub fn results(
    here: &mut Here<'_>,
    (handle, immediate, rows, columns): (u32, i32, u32, u32),
    fids: &List<'_, Fid>,
) -> Option<Vec<(Term, OpResult)>> {
    let (rows, columns) = (rows as usize, columns as usize);
    let registered = match is_operation(handle) {
        true => None,
        false => Some(program(here, handle)?),
    };
    let mut found = Vec::with_capacity(rows.min(1 << 16));
    for n in 0..rows {
        let operand = |c: usize| Some(here.term(fids.get(c * rows + n)?));
        let terms: Vec<Term> = (0..columns).map(operand).collect::<Option<_>>()?;
        let made = match &registered {
            Some(program) => {
                let cells: Vec<Cell> = terms.into_iter().map(Cell::One).collect();
                here.world.run(program, &cells)?
            }
            None => {
                let world = &mut *here.world;
                let signatures = &world.signatures;
                signatures.call(&mut world.facts, handle, immediate, &terms)?
            }
        };
        found.push(made);
    }
    Some(found)
}

fn batch(here: &mut Here<'_>, made: Maker, rows: u32, columns: Columns<'_>) -> Maker {
    let session = here.session;
    let rows = here.world.rows(session, rows as usize, columns.iter());
    made.terms(rows.iter().map(|cells| row_of(cells)))
}

/// A row of a batch that a program is asked about.
pub fn row_asked(program: &Program, row: &[Cell]) -> Term {
    Maker::new("row of")
        .term(program.id)
        .term(row_of(row))
        .computed()
}

/// What each row of each group gives.
pub fn groups(here: &mut Here<'_>, body: &body::DeclassifyGroups<'_>) -> Option<Vec<Vec<Term>>> {
    let program = program(here, body.program)?;
    let session = here.session;
    let rows = here
        .world
        .rows(session, body.rows as usize, body.batch.iter());
    let mut rest = rows.as_slice();
    let mut found = Vec::new();
    for length in body.lengths.iter() {
        let (own, tail) = rest.split_at_checked(length as usize)?;
        rest = tail;
        let made = |row: &Vec<Cell>| here.world.run(&program, row).map(|(term, _)| term);
        found.push(own.iter().map(made).collect::<Option<Vec<Term>>>()?);
    }
    Some(found)
}

/// A request that is answered as it was, or not at all.
pub fn whole(here: &mut Here<'_>, kind: Kind, message: &[u8]) -> Option<Term> {
    let made = Maker::new("whole").number(u64::from(kind as u16));
    Some(match kind {
        Kind::DeclassifyGroups => {
            let body: body::DeclassifyGroups<'_> = read(message)?;
            let made = made.term(program(here, body.program)?.id);
            let made = made.bytes(body.lengths.bytes());
            let made = made
                .number(u64::from(body.none))
                .number(u64::from(body.wanted));
            batch(here, made, body.rows, body.batch).computed()
        }
        Kind::EvalBatch => {
            let body: body::EvalBatch<'_> = read(message)?;
            let mut made = made;
            for target in body.targets.iter() {
                made = made.term(program(here, target.program)?.id);
            }
            batch(here, made, body.rows, body.batch).computed()
        }
        Kind::Search => {
            let body: body::Search<'_> = read(message)?;
            let mut made = made.number(u64::from(body.keys));
            for sought in body.sought.iter() {
                made = made.number(u64::from(sought.program));
                made = made
                    .number(u64::from(sought.flags))
                    .term(here.term(sought.fid));
            }
            let keys = body.columns.iter().map(|key| match key.0 {
                BELOW => 0,
                ABOVE => Term::MAX,
                _ => here.term(key),
            });
            made.terms(keys).computed()
        }
        Kind::AggregateReturn => {
            let body: body::AggregateReturn = read(message)?;
            let aggregation = here.channel.aggregations.get(&body.handle)?;
            let made = made.term(aggregation.registered).term(aggregation.rows);
            made.number(aggregation.pass).computed()
        }
        _ => return None,
    })
}

/// The single searches of several: the message that each of them would be.
pub fn single(body: &body::SearchMany<'_>) -> Option<Vec<Vec<u8>>> {
    let (mut sought, mut keys) = (body.sought.bytes(), body.columns.bytes());
    let mut found = Vec::new();
    for among in body.among.iter() {
        let (values, count) = (among.values as usize, among.keys as usize);
        let (own, rest) = sought.split_at_checked(values * Sought::BYTES)?;
        sought = rest;
        let own: List<'_, Sought> = List::new(own);
        let columns = own.iter().filter(|value| value.flags & BESIDE == 0).count();
        let bytes = columns.checked_mul(count)?.checked_mul(Fid::BYTES)?;
        let (columns, rest) = keys.split_at_checked(bytes)?;
        keys = rest;
        found.push(encoded(&body::Search {
            values: among.values,
            keys: among.keys,
            sought: own,
            columns: List::new(columns),
        }));
    }
    Some(found)
}

/// What a search tells: keys of a page are in the index's order, and the value has a place there.
pub fn learn_search(
    here: &mut Here<'_>,
    body: &body::Search<'_>,
    answer: &answer::Search<'_>,
) -> Option<()> {
    let count = body.keys as usize;
    let keys: Vec<Fid> = body.columns.iter().collect();
    let (mut column, mut within): (usize, _) = (0, 0..count);
    let mut found = 0..count;
    for (n, (sought, place)) in body.sought.iter().zip(answer.places.iter()).enumerate() {
        if place.less == contract::message::search::UNKNOWN {
            return None;
        }
        if sought.flags & BESIDE == 0 {
            column = if n == 0 { 0 } else { column + 1 };
            within = found;
        }
        found = place.less as usize..place.up_to as usize;
        let keys = keys.get(column * count..)?.get(within.clone())?;
        let signature = here.world.signatures.get(sought.program)?;
        let domain = crate::facts::domain(&signature.args);
        let value = here.term(sought.fid);
        let ascends = sought.flags & DESCENDING == 0;
        let mut before: Option<Term> = None;
        for (at, key) in (within.start..).zip(keys) {
            if [BELOW, ABOVE].contains(&key.0) {
                continue;
            }
            let key = here.term(*key);
            let facts = &mut here.world.facts;
            let order = match at {
                at if at < found.start => -1,
                at if at < found.end => 0,
                _ => 1,
            };
            let order = if ascends { order } else { -order };
            facts.learn_compared(domain, key, value, order);
            if let Some(before) = before {
                let (low, high) = if ascends {
                    (before, key)
                } else {
                    (key, before)
                };
                facts.order.learn(domain, low, high, false);
            }
            before = Some(key);
        }
    }
    Some(())
}

fn keys_of(made: Maker, keys: &[RankColumn]) -> Maker {
    keys.iter().fold(made, |made, key| {
        let t = key.t.map_or(0, |t| t.stored() as u64);
        made.number(t).number(u64::from(key.flags))
    })
}

/// A ranking of these rows, in this order of rows.
pub fn ranking(set: &Set, body: &body::Rank) -> Term {
    let made = keys_of(Maker::new("ranking"), &set.keys);
    let made = made.terms(set.rows.iter().map(|terms| row(terms.iter().copied())));
    let flags = body.flags & contract::message::rank::STEPS;
    let made = made
        .number(u64::from(body.first))
        .number(u64::from(body.limit));
    made.number(u64::from(flags)).computed()
}

/// Rows that are ranked by the same columns are compared with each other.
pub fn ranked_domain(set: &Set) -> Domain {
    let made = keys_of(Maker::new("ranked"), &set.keys).computed();
    // Apart from the domains of values, which are small.
    (made as Domain) | 1 << 31
}

/// A row of a set.
pub fn ranked_term(_: &Set, terms: &[Term]) -> Term {
    row(terms.iter().copied())
}

/// A ranking by one column orders its values.
pub fn learn_column(
    here: &mut Here<'_>,
    key: RankColumn,
    set: &Set,
    first: usize,
    answer: &answer::Rank<'_>,
) {
    let Some(domain) = column_domain(key) else {
        return;
    };
    let known = answer
        .ranks
        .iter()
        .filter(|r| *r != contract::message::rank::BEYOND);
    let Some(top) = known.max() else {
        return;
    };
    let descends = key.flags & contract::message::rank::DESCENDING != 0;
    let rows = set.rows.get(first..).unwrap_or_default();
    let mut ranked = Vec::new();
    for (terms, rank) in rows.iter().zip(answer.ranks.iter()) {
        let [term] = terms.as_slice() else {
            return;
        };
        // NULL has a rank, and no order.
        if rank <= top && *term != crate::term::NULL {
            ranked.push((*term, if descends { top - rank } else { rank }));
        }
    }
    // A rank of NULL only would be a gap.
    let mut ranks: Vec<u32> = ranked.iter().map(|(_, rank)| *rank).collect();
    ranks.sort_unstable();
    ranks.dedup();
    for (_, rank) in &mut ranked {
        *rank = ranks.binary_search(rank).unwrap_or(0) as u32;
    }
    here.world.facts.order.learn_ranking(domain, &ranked);
}

fn expression(here: &mut Here<'_>, made: Maker, expression: &Expression<'_>) -> Option<Maker> {
    let made = match expression.program {
        0 => made.number(0),
        handle if is_operation(handle) => made.number(u64::from(handle)),
        handle => made.term(program(here, handle)?.id),
    };
    Some(made.bytes(expression.inputs.bytes()))
}

/// What an aggregation does, whoever registers it.
pub fn registered(here: &mut Here<'_>, body: &body::AggregateRegister<'_>) -> Option<Term> {
    let mut made = Maker::new("aggregation").bytes(&encoded(&body.types));
    for each in body.programs.iter() {
        made = expression(here, made, &each)?;
    }
    made = made.bytes(body.key.bytes()).number(u64::from(body.filter));
    for AggregateCall {
        signature,
        argument,
        filter,
        flags,
    } in body.calls.iter()
    {
        for number in [signature, argument, filter, flags] {
            made = made.number(u64::from(number));
        }
    }
    Some(expression(here, made, &body.having)?.computed())
}

/// The next groups of an aggregation.
pub fn fetching(here: &mut Here<'_>, body: &body::AggregateFetch<'_>) -> Option<Term> {
    let constants: Vec<Term> = body.constants.iter().map(|fid| here.term(fid)).collect();
    let aggregation = here.channel.aggregations.get(&body.handle)?;
    let made = Maker::new("fetch").term(aggregation.registered);
    let made = made.term(aggregation.rows).number(aggregation.pass);
    let made = made.number(aggregation.fetched).number(u64::from(body.max));
    Some(made.terms(constants).computed())
}

/// Whether a word of an answer's column names a result that was stored from a FID on.
pub fn is_result(first: Fid, word: Fid) -> bool {
    word.is_temporary() && word.partition() == first.partition() && word.0 >= first.0
}
