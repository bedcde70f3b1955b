//! Rankings: for sorts, and for indexes that are built in a clone. Recorded ones, parts of these, and
//! what follows from pairs whose order is known.
//!
//! Invariant: rows are ranked only if the order of each pair is known; else a pair is named whose
//! order is not.

use crate::answer::{Answered, Refused, name, refuse};
use crate::ask;
use crate::here::{Here, column_domain};
use crate::order::merge_sort;
use crate::session::Set;
use crate::term::{NULL, Term};
use contract::codec::List;
use contract::message::rank::STEPS;
use contract::{Fid, answer, body};
use std::cmp::Ordering;

/// Rows of a new order that are compared pair by pair.
const SORTED_MAX: usize = 20_000;

impl Here<'_> {
    /// The ranks of a set's rows, recorded or by what follows.
    pub(crate) fn ask_rank(&mut self, body: &body::Rank) -> Answered {
        let Some(set) = self.channel.sets.get(&body.set).cloned() else {
            return refuse("a set of rows that is not there");
        };
        let asked = ask::ranking(&set, body);
        if let Some(answer) = self.world.facts.answers.get(&asked) {
            return Ok(answer.clone());
        }
        let rows = set.rows.get(body.first as usize..).unwrap_or_default();
        let terms: Vec<Term> = rows
            .iter()
            .map(|terms| ask::ranked_term(&set, terms))
            .collect();
        let domain = ask::ranked_domain(&set);
        let ranks = match self.world.facts.order.ranks(domain, &terms) {
            Some(ranks) => ranks,
            None => self.sorted(&set, body.first as usize)?,
        };
        // Which column neighbours differ in is known of one column only.
        if body.flags & STEPS != 0 && set.keys.len() > 1 {
            return refuse("in which columns neighbours of another ranking differ");
        }
        let mut all = ranks.clone();
        all.sort_unstable();
        all.dedup();
        let dense = ranks
            .iter()
            .map(|r| all.binary_search(r).unwrap_or(0) as u32);
        let dense: Vec<u8> = dense.flat_map(u32::to_le_bytes).collect();
        let steps = match body.flags & STEPS {
            0 => Vec::new(),
            _ => vec![0; all.len()],
        };
        Ok(ask::encoded(&answer::Rank {
            rows: ranks.len() as u32,
            count: steps.len() as u32,
            ranks: List::new(&dense),
            steps: &steps,
        }))
    }

    /// Ranks the rows of one column from one on, by what is known of pairs.
    fn sorted(&self, set: &Set, first: usize) -> Result<Vec<u32>, Refused> {
        let what = "the order of rows that were not ranked together";
        let rows = set.rows.get(first..).unwrap_or_default();
        let ([key], true) = (set.keys.as_slice(), rows.len() <= SORTED_MAX) else {
            return refuse(what);
        };
        let Some(domain) = column_domain(*key) else {
            return refuse(what);
        };
        let descends = key.flags & contract::message::rank::DESCENDING != 0;
        let nulls_first = key.flags & contract::message::rank::NULLS_FIRST != 0;
        let term = |at: usize| rows[at].first().copied().unwrap_or(NULL);
        let mut unknown: Option<(usize, usize)> = None;
        let mut compare = |at: usize, beside: usize| {
            let (a, b) = (term(at), term(beside));
            match (a == NULL, b == NULL) {
                (true, true) => Ordering::Equal,
                (true, false) | (false, true) if (a == NULL) == nulls_first => Ordering::Less,
                (true, false) | (false, true) => Ordering::Greater,
                // It is refused, and nothing else is looked for.
                _ if unknown.is_some() => Ordering::Equal,
                _ => {
                    let order = self.world.facts.compare(domain, a, b);
                    unknown = order.is_none().then_some((at, beside));
                    let order = order.unwrap_or(0).cmp(&0);
                    if descends { order.reverse() } else { order }
                }
            }
        };
        let mut places: Vec<usize> = (0..rows.len()).collect();
        // Not a sort of the library's: an order that is unknown in part is none.
        merge_sort(&mut places, &mut compare);
        let mut ranks = vec![0; rows.len()];
        let mut rank = 0;
        for (n, at) in places.iter().enumerate() {
            if n > 0 && compare(places[n - 1], *at).is_ne() {
                rank += 1;
            }
            ranks[*at] = rank;
        }
        let fid = |at| set.first.get(first + at).copied().unwrap_or(Fid::INVALID);
        match unknown {
            Some((a, b)) => refuse(format!(
                "the order of {} and {}",
                name(fid(a)),
                name(fid(b))
            )),
            None => Ok(ranks),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Facts;
    use crate::program::Signatures;
    use crate::session::{Channel, World};
    use contract::TypeCode;
    use contract::codec::Part;
    use contract::message::table::RankColumn;
    use std::collections::HashMap;

    /// The ranks of three rows that were never ranked, after what was compared.
    fn ranked(known: &[(u64, u64)]) -> Result<Vec<u32>, Refused> {
        let mut world = World {
            facts: Facts::default(),
            sessions: HashMap::new(),
            signatures: Signatures::default(),
        };
        let key = RankColumn {
            t: Some(TypeCode::Int4),
            flags: 0,
        };
        let domain = column_domain(key).unwrap_or_default();
        let term = |world: &World, n| world.term(1, Fid(1 << 44 | n));
        for (low, high) in known {
            let (low, high) = (term(&world, *low), term(&world, *high));
            world.facts.learn_compared(domain, low, high, -1);
        }
        let numbers = [3, 1, 2];
        let set = Set {
            keys: vec![key],
            rows: numbers.map(|n| vec![term(&world, n)]).to_vec(),
            first: numbers.map(|n| Fid(1 << 44 | n)).to_vec(),
        };
        let mut channel = Channel::default();
        channel.sets.insert(7, set);
        let mut here = Here {
            world: &mut world,
            channel: &mut channel,
            session: 1,
            learns: false,
        };
        let asked = body::Rank {
            set: 7,
            first: 0,
            limit: 0,
            flags: 0,
        };
        let answered = here.ask_rank(&asked)?;
        let answer = answer::Rank::decode(&answered).map_err(|what| Refused(what.0.into()))?;
        Ok(answer.ranks.iter().collect())
    }

    /// An index of a clone has the order that follows from comparisons; if a pair's order does not,
    /// the pair is named. Bug: rows in an order that nobody recorded.
    #[test]
    fn what_follows() {
        assert_eq!(ranked(&[(1, 2), (2, 3)]).ok(), Some(vec![2, 0, 1]));
        let refused = ranked(&[(1, 2), (1, 3)]);
        let named = "the order of 0000100000000003 and 0000100000000002";
        let also = "the order of 0000100000000002 and 0000100000000003";
        let Err(Refused(said)) = refused else {
            panic!("it does not follow");
        };
        assert!([named, also].contains(&said.as_str()), "{said}");
    }
}
