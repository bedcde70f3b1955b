//! What is known of the order of values: places in rankings, and single comparisons. What follows
//! from these by transitivity is known, too.
//!
//! Invariant: an order that is given was recorded, or follows from what was.

use crate::term::{Quickly, Term};
use std::cmp::Ordering;
use std::collections::VecDeque;

/// Values that are compared with each other only: of one type, or a pair of types.
pub type Domain = u32;
type Key = (Domain, Term);

/// How many values are looked at before an order counts as unknown.
const LOOKS: usize = 50_000;

/// A ranking: its number, and a rank in it.
type Place = (u32, u32);

/// What is known.
#[derive(Default)]
pub struct Order {
    /// Values above a value, and whether they are not equal to it.
    above: Quickly<Key, Vec<(Term, bool)>>,
    places: Quickly<Key, Vec<Place>>,
    /// Of each ranking, a value of each rank.
    rankings: Vec<Vec<Term>>,
}

/// What is known of two values.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Relation {
    /// The first is not above the second: `Some(true)` if it is below.
    pub up: Option<bool>,
    /// The second is not above the first: `Some(true)` if it is below.
    pub down: Option<bool>,
}

impl Relation {
    /// -1, 0 or 1, if that is known.
    #[must_use]
    pub fn order(self) -> Option<i8> {
        match (self.up, self.down) {
            (Some(true), _) => Some(-1),
            (_, Some(true)) => Some(1),
            (Some(false), Some(false)) => Some(0),
            _ => None,
        }
    }
}

impl Order {
    /// The first is below the second, or, if not `strict`, perhaps equal.
    pub fn learn(&mut self, domain: Domain, low: Term, high: Term, strict: bool) {
        if low == high {
            return;
        }
        let above = self.above.entry((domain, low)).or_default();
        match above.last_mut() {
            Some((last, known)) if *last == high => *known |= strict,
            _ => above.push((high, strict)),
        }
    }

    /// Two values are equal.
    pub fn learn_equal(&mut self, domain: Domain, a: Term, b: Term) {
        self.learn(domain, a, b, false);
        self.learn(domain, b, a, false);
    }

    /// Values and their ranks, dense from 0.
    pub fn learn_ranking(&mut self, domain: Domain, ranked: &[(Term, u32)]) {
        let number = u32::try_from(self.rankings.len()).unwrap_or(u32::MAX);
        let mut ranking = Vec::new();
        for (term, rank) in ranked {
            let place = *rank as usize;
            if ranking.len() <= place {
                ranking.resize(place + 1, 0);
            }
            ranking[place] = *term;
            self.places
                .entry((domain, *term))
                .or_default()
                .push((number, *rank));
        }
        self.rankings.push(ranking);
    }

    /// Ranks of these values in a ranking that has all of them.
    #[must_use]
    pub fn ranks(&self, domain: Domain, terms: &[Term]) -> Option<Vec<u32>> {
        let places = |term: &Term| self.places.get(&(domain, *term));
        let first = places(terms.first()?)?;
        first.iter().find_map(|(number, _)| {
            let rank = |term| {
                let found = places(term)?.iter().find(|place| place.0 == *number);
                found.map(|(_, rank)| *rank)
            };
            terms.iter().map(rank).collect()
        })
    }

    /// What is known of two values.
    #[must_use]
    pub fn relation(&self, domain: Domain, a: Term, b: Term) -> Relation {
        if a == b {
            return Relation {
                up: Some(false),
                down: Some(false),
            };
        }
        if let Some(ranks) = self.ranks(domain, &[a, b]) {
            let (a, b) = (ranks[0], ranks[1]);
            return Relation {
                up: (a <= b).then_some(a < b),
                down: (b <= a).then_some(b < a),
            };
        }
        let up = self.path(domain, a, b);
        let down = match up {
            Some(true) => None,
            _ => self.path(domain, b, a),
        };
        Relation { up, down }
    }

    /// Whether a path leads up from one value to another, and whether a step of it is strict.
    fn path(&self, domain: Domain, from: Term, to: Term) -> Option<bool> {
        // Reached without a strict step, and with one.
        let mut seen: Quickly<(Term, bool), ()> = Quickly::default();
        let mut queue = VecDeque::from([(from, false)]);
        let mut found = None;
        while let Some((term, strict)) = queue.pop_front() {
            if seen.insert((term, strict), ()).is_some() || seen.len() > LOOKS {
                continue;
            }
            if term == to {
                if strict {
                    return Some(true);
                }
                found = Some(false);
                continue;
            }
            for (next, more) in self.above.get(&(domain, term)).into_iter().flatten() {
                queue.push_back((*next, strict || *more));
            }
            for (number, rank) in self.places.get(&(domain, term)).into_iter().flatten() {
                if let Some(place) = self.place_in(domain, to, *number) {
                    if place > *rank {
                        return Some(true);
                    } else if place == *rank {
                        queue.push_back((to, strict));
                    }
                }
                let ranking = self.rankings.get(*number as usize);
                if let Some(next) = ranking.and_then(|r| r.get(*rank as usize + 1)) {
                    queue.push_back((*next, true));
                }
            }
        }
        found
    }

    fn place_in(&self, domain: Domain, term: Term, number: u32) -> Option<u32> {
        let places = self.places.get(&(domain, term))?;
        let found = places.iter().find(|place| place.0 == number);
        found.map(|(_, rank)| *rank)
    }
}

/// Sorts, and compares in a way that ends whatever the comparison says.
pub fn merge_sort(places: &mut [usize], compare: &mut impl FnMut(usize, usize) -> Ordering) {
    if places.len() < 2 {
        return;
    }
    let (left, right) = places.split_at_mut(places.len() / 2);
    merge_sort(left, compare);
    merge_sort(right, compare);
    let (mut a, mut b) = (left.iter().peekable(), right.iter().peekable());
    let mut merged = Vec::with_capacity(left.len() + right.len());
    while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
        let from_left = compare(**x, **y).is_le();
        merged.extend(if from_left { a.next() } else { b.next() });
    }
    merged.extend(a.chain(b));
    places.copy_from_slice(&merged);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transitive() {
        let mut order = Order::default();
        order.learn(1, 10, 20, false);
        order.learn(1, 20, 30, true);
        order.learn_equal(1, 30, 31);
        assert_eq!(order.relation(1, 10, 31).order(), Some(-1));
        assert_eq!(order.relation(1, 31, 10).order(), Some(1));
        assert_eq!(order.relation(1, 30, 31).order(), Some(0));
        assert_eq!(order.relation(1, 10, 20).order(), None, "perhaps equal");
        assert_eq!(order.relation(1, 10, 20).up, Some(false));
        assert_eq!(order.relation(2, 10, 30).order(), None, "another type");
        assert_eq!(order.relation(1, 10, 40).order(), None);
    }

    #[test]
    fn rankings() {
        let mut order = Order::default();
        order.learn_ranking(1, &[(5, 1), (6, 0), (7, 1), (8, 2)]);
        assert_eq!(order.relation(1, 6, 8).order(), Some(-1));
        assert_eq!(order.relation(1, 5, 7).order(), Some(0));
        order.learn(1, 8, 100, false);
        order.learn(1, 101, 6, false);
        assert_eq!(order.relation(1, 5, 100).order(), Some(-1), "by way of 8");
        assert_eq!(order.relation(1, 101, 7).order(), Some(-1), "by way of 6");
        assert_eq!(order.relation(1, 5, 200).order(), None);
        assert_eq!(order.ranks(1, &[8, 6]), Some(vec![2, 0]));
        assert_eq!(order.ranks(1, &[8, 100]), None);
    }
}
