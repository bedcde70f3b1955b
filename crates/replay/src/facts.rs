//! What the recording says: answers to questions about terms, and what follows from them.
//!
//! Invariant: an answer was recorded, or follows from recorded ones; everything else is unknown.

use crate::order::{Domain, Order};
use crate::stored::Stored;
use crate::term::{Maker, NULL, Term, TermSet, Terms, is_solid};
use contract::{Op, OpResult, TypeCode};
use std::collections::HashMap;

/// Booleans as they stand in messages.
pub const FALSE: u8 = 0;
/// True.
pub const TRUE: u8 = 1;
/// NULL.
pub const UNKNOWN: u8 = 2;

/// What a boolean, an order or a hash was made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Node {
    /// A boolean that the database knows.
    Known(u8),
    /// An operation on two operands, of this domain.
    Call(Op, Domain, Term, Term),
    /// Both.
    And(Term, Term),
    /// One of them.
    Or(Term, Term),
    /// Not.
    Not(Term),
    /// Whether it is true.
    Holds(Term),
    /// Whether it is NULL.
    IsNull(Term),
    /// Whether a value equals one of a list.
    Among(Term, Vec<Term>),
}

/// Rows whose tokens are compared with each other.
type Universe = u32;

/// A recorded answer to an aggregation, and where its results went.
#[derive(Clone)]
pub struct Fetched {
    /// The answer.
    pub answer: Vec<u8>,
    /// FID of the first result.
    pub first: u64,
}

/// Everything that is known.
#[derive(Default)]
pub struct Facts {
    truths: Terms<u8>,
    hashes: Terms<[u8; 8]>,
    equal: Terms<bool>,
    nodes: Terms<Node>,
    /// What programs gave for whole rows of batches: the same batch again needs nothing else.
    pub rows: Terms<u8>,
    /// Whether a computed value is NULL.
    pub nulls: Terms<bool>,
    /// Bodies of errors, by what failed.
    pub errors: Terms<Vec<u8>>,
    /// Envelopes of values.
    pub envelopes: Terms<Vec<u8>>,
    /// What clients sent, and what was computed of nothing else.
    pub constants: TermSet,
    /// Whole answers, by what was asked.
    pub answers: Terms<Vec<u8>>,
    /// Whether some of these are of batches that ended in an error.
    pub has_failed_batches: bool,
    /// Answers of aggregations.
    pub fetched: Terms<Fetched>,
    /// What permanent values were made of.
    pub stored: Stored,
    /// Partitions of columns.
    pub partitions: HashMap<(u32, u32, i32), u32>,
    /// The order of values.
    pub order: Order,
    tokens: Terms<Vec<(Universe, [u8; 16])>>,
    /// How many rows each has, and the LSN at which its statement began.
    universes: HashMap<Universe, (u64, u64)>,
    /// LSN up to which the clone has recovered.
    pub position: Option<u64>,
}

/// Values of which types are compared with each other.
#[must_use]
pub fn domain(args: &[TypeCode]) -> Domain {
    use TypeCode::{Float4, Float8, Int2, Int4, Int8};
    let class = |t: &TypeCode| match t.stored() {
        Int2 | Int4 | Int8 => 100,
        Float4 | Float8 => 101,
        other => Domain::from(other as u8),
    };
    match args {
        [a, b] if class(a) == class(b) => class(a),
        [a, b] => 1000 + class(a).min(class(b)) * 200 + class(a).max(class(b)),
        [a] => class(a),
        _ => 0,
    }
}

fn pair(domain: Domain, a: Term, b: Term) -> Term {
    let made = Maker::new("pair").number(u64::from(domain));
    made.term(a.min(b)).term(a.max(b)).computed()
}

fn not(truth: u8) -> u8 {
    match truth {
        FALSE => TRUE,
        TRUE => FALSE,
        other => other,
    }
}

impl Facts {
    /// Remembers what a boolean, an order or a hash is made of.
    pub fn note(&mut self, term: Term, node: Node) {
        self.nodes.entry(term).or_insert(node);
    }

    /// Learns what was declassified of a term: a byte, or a hash.
    pub fn learn(&mut self, term: Term, result: OpResult, bytes: &[u8]) {
        match (result, bytes) {
            (OpResult::Hash, _) => {
                if let Ok(hash) = bytes.try_into() {
                    self.hashes.insert(term, hash);
                }
            }
            (OpResult::Order, [order]) => self.learn_order(term, *order),
            (_, [truth]) => self.learn_truth(term, *truth),
            _ => {}
        }
    }

    fn learn_order(&mut self, term: Term, order: u8) {
        self.truths.insert(term, order);
        let Some(Node::Call(_, domain, a, b)) = self.nodes.get(&term).cloned() else {
            return;
        };
        self.learn_compared(domain, a, b, order as i8);
    }

    /// How two values compare: -1, 0, 1; anything else is no order.
    pub fn learn_compared(&mut self, domain: Domain, a: Term, b: Term, order: i8) {
        match order {
            -1 => self.order.learn(domain, a, b, true),
            0 => self.order.learn_equal(domain, a, b),
            1 => self.order.learn(domain, b, a, true),
            _ => return,
        }
        self.equal.insert(pair(domain, a, b), order == 0);
    }

    /// Learns a boolean, and what follows for what it is made of.
    pub fn learn_truth(&mut self, term: Term, truth: u8) {
        if self.truths.insert(term, truth) == Some(truth) {
            return;
        }
        let Some(node) = self.nodes.get(&term).cloned() else {
            return;
        };
        match (node, truth) {
            (Node::And(a, b), TRUE) | (Node::Or(a, b), FALSE) => {
                self.learn_truth(a, truth);
                self.learn_truth(b, truth);
            }
            (Node::Holds(a), TRUE) => self.learn_truth(a, TRUE),
            (Node::Not(a), _) => self.learn_truth(a, not(truth)),
            (Node::IsNull(a), _) => {
                self.nulls.insert(a, truth == TRUE);
            }
            (Node::Among(a, list), FALSE) => {
                for b in list {
                    self.equal.insert(pair(0, a, b), false);
                }
            }
            (Node::Call(op, domain, a, b), TRUE | FALSE) => {
                self.learn_comparison(op, domain, (a, b), truth == TRUE);
            }
            _ => {}
        }
    }

    fn learn_comparison(&mut self, op: Op, domain: Domain, (a, b): (Term, Term), holds: bool) {
        match (op, holds) {
            (Op::Lt, true) | (Op::Ge, false) => self.order.learn(domain, a, b, true),
            (Op::Le, true) | (Op::Gt, false) => self.order.learn(domain, a, b, false),
            (Op::Gt, true) | (Op::Le, false) => self.order.learn(domain, b, a, true),
            (Op::Ge, true) | (Op::Lt, false) => self.order.learn(domain, b, a, false),
            (Op::Eq, true) | (Op::Ne, false) => self.learn_compared(domain, a, b, 0),
            (Op::Eq, false) | (Op::Ne, true) => {
                self.equal.insert(pair(domain, a, b), false);
            }
            _ => {}
        }
    }

    /// What is known of a term: the bytes of an answer.
    #[must_use]
    pub fn ask(&self, term: Term, result: OpResult) -> Option<Vec<u8>> {
        match result {
            OpResult::Hash => self.hashes.get(&term).map(|hash| hash.to_vec()),
            OpResult::Order => self.ask_order(term).map(|order| vec![order]),
            _ => self.truth(term).map(|truth| vec![truth]),
        }
    }

    fn ask_order(&self, term: Term) -> Option<u8> {
        if let Some(order) = self.truths.get(&term) {
            return Some(*order);
        }
        match self.nodes.get(&term)? {
            Node::Call(_, domain, a, b) => self.compare(*domain, *a, *b).map(|o| o as u8),
            _ => None,
        }
    }

    /// How two values compare.
    #[must_use]
    pub fn compare(&self, domain: Domain, a: Term, b: Term) -> Option<i8> {
        self.order.relation(domain, a, b).order()
    }

    /// A boolean, as far as it is known.
    #[must_use]
    pub fn truth(&self, term: Term) -> Option<u8> {
        if let Some(truth) = self.truths.get(&term) {
            return Some(*truth);
        }
        match self.nodes.get(&term)? {
            Node::Known(truth) => Some(*truth),
            Node::And(a, b) => match (self.truth(*a), self.truth(*b)) {
                (Some(FALSE), _) | (_, Some(FALSE)) => Some(FALSE),
                (Some(TRUE), Some(TRUE)) => Some(TRUE),
                (Some(_), Some(_)) => Some(UNKNOWN),
                _ => None,
            },
            Node::Or(a, b) => match (self.truth(*a), self.truth(*b)) {
                (Some(TRUE), _) | (_, Some(TRUE)) => Some(TRUE),
                (Some(FALSE), Some(FALSE)) => Some(FALSE),
                (Some(_), Some(_)) => Some(UNKNOWN),
                _ => None,
            },
            Node::Not(a) => self.truth(*a).map(not).or_else(|| self.not_held(*a)),
            Node::Holds(a) => self.truth(*a).map(|truth| u8::from(truth == TRUE)),
            Node::IsNull(a) => self.is_null(*a).map(u8::from),
            Node::Among(a, list) => self.among(*a, list),
            Node::Call(op, domain, a, b) => self
                .compared(*op, *domain, *a, *b)
                .or_else(|| self.not_held(term)),
        }
    }

    /// Learns that a boolean is not true: FALSE or NULL.
    pub fn learn_not_true(&mut self, term: Term) {
        let held = Maker::new("holds").term(term).computed();
        self.note(held, Node::Holds(term));
        self.learn_truth(held, FALSE);
    }

    /// Whether a boolean is true, neither FALSE nor NULL.
    #[must_use]
    pub fn holds(&self, term: Term) -> Option<bool> {
        let held = Maker::new("holds").term(term).computed();
        match (self.truth(term), self.truths.get(&held)) {
            (Some(truth), _) => Some(truth == TRUE),
            (None, Some(&truth)) => Some(truth == TRUE),
            _ => None,
        }
    }

    /// FALSE of what does not hold and cannot be NULL.
    fn not_held(&self, term: Term) -> Option<u8> {
        let held = Maker::new("holds").term(term).computed();
        let node = self.nodes.get(&term)?;
        let solid = match node {
            Node::Call(_, _, a, b) => is_solid(*a) && is_solid(*b),
            _ => false,
        };
        (solid && self.truths.get(&held) == Some(&FALSE)).then_some(FALSE)
    }

    /// Whether a value is NULL.
    #[must_use]
    pub fn is_null(&self, term: Term) -> Option<bool> {
        match term {
            NULL => Some(true),
            term if is_solid(term) => Some(false),
            term => self.nulls.get(&term).copied(),
        }
    }

    fn among(&self, a: Term, list: &[Term]) -> Option<u8> {
        let mut all = true;
        for b in list {
            match self.equality(0, a, *b) {
                Some(true) => return Some(TRUE),
                Some(false) => {}
                None => all = false,
            }
        }
        (all && !list.contains(&NULL)).then_some(FALSE)
    }

    fn equality(&self, domain: Domain, a: Term, b: Term) -> Option<bool> {
        if a == b {
            return Some(true);
        }
        if let Some(equal) = self.equal.get(&pair(domain, a, b)) {
            return Some(*equal);
        }
        match self.order.relation(domain, a, b) {
            relation if relation.order().is_some() => relation.order().map(|o| o == 0),
            _ => self.same_token(a, b),
        }
    }

    fn same_token(&self, a: Term, b: Term) -> Option<bool> {
        let rows = [row([a]), row([b])];
        let tokens = self.common_tokens(&rows)?;
        Some(tokens.first() == tokens.last())
    }

    fn compared(&self, op: Op, domain: Domain, a: Term, b: Term) -> Option<u8> {
        if a == NULL || b == NULL {
            return Some(UNKNOWN);
        }
        let relation = || self.order.relation(domain, a, b);
        let below = |(up, down): (Option<bool>, Option<bool>)| match (up, down) {
            (Some(true), _) => Some(true),
            (_, Some(_)) => Some(false),
            _ => None,
        };
        let answer = match op {
            Op::Eq => self.equality(domain, a, b),
            Op::Ne => self.equality(domain, a, b).map(|equal| !equal),
            Op::Lt => below((relation().up, relation().down)),
            Op::Gt => below((relation().down, relation().up)),
            Op::Le => below((relation().down, relation().up)).map(|above| !above),
            Op::Ge => below((relation().up, relation().down)).map(|above| !above),
            _ => None,
        };
        answer.map(u8::from)
    }

    /// A token of a row, in a universe.
    pub fn learn_token(&mut self, row: Term, (universe, at): (Universe, u64), token: [u8; 16]) {
        let known = self.tokens.entry(row).or_default();
        if !known.iter().any(|(u, _)| *u == universe) {
            known.push((universe, token));
            let (rows, begun) = self.universes.entry(universe).or_default();
            (*rows, *begun) = (*rows + 1, at);
        }
    }

    /// A fresh universe.
    #[must_use]
    pub fn next_universe(&self) -> Universe {
        self.universes.keys().max().map_or(0, |last| last + 1)
    }

    /// The universe that has all of these rows, of the run that the clone is for, or else the
    /// largest: others may lack rows that are asked about later.
    #[must_use]
    pub fn universe(&self, rows: &[Term]) -> Option<Universe> {
        let first = self.tokens.get(rows.first()?)?;
        let has = |universe: Universe| rows.iter().all(|row| self.token(*row, universe).is_some());
        let fitting = first.iter().map(|(u, _)| *u).filter(|u| has(*u));
        fitting.max_by_key(|universe| {
            let (rows, begun) = self.universes.get(universe).copied().unwrap_or_default();
            let after = self.position.and_then(|clone| begun.checked_sub(clone));
            (std::cmp::Reverse(after.unwrap_or(u64::MAX)), rows)
        })
    }

    /// A row's token in a universe.
    #[must_use]
    pub fn token(&self, row: Term, universe: Universe) -> Option<[u8; 16]> {
        let known = self.tokens.get(&row)?;
        let found = known.iter().find(|(u, _)| *u == universe);
        found.map(|(_, token)| *token)
    }

    fn common_tokens(&self, rows: &[Term]) -> Option<Vec<[u8; 16]>> {
        let universe = self.universe(rows)?;
        rows.iter().map(|row| self.token(*row, universe)).collect()
    }
}

/// The term of a row.
#[must_use]
pub fn row(terms: impl IntoIterator<Item = Term>) -> Term {
    Maker::new("row").terms(terms).computed()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn solid(number: u64) -> Term {
        Maker::new("column").number(number).solid()
    }

    fn call(facts: &mut Facts, op: Op, a: Term, b: Term) -> Term {
        let made = Maker::new("call").number(op as u64).term(a).term(b);
        let term = made.computed();
        facts.note(term, Node::Call(op, 4, a, b));
        term
    }

    /// One comparison answers others of the same values, and nothing else.
    #[test]
    fn comparisons() {
        let mut facts = Facts::default();
        let (a, b, c) = (solid(1), solid(2), solid(3));
        let below = call(&mut facts, Op::Lt, a, b);
        facts.learn_truth(below, TRUE);
        let above = call(&mut facts, Op::Ge, b, c);
        facts.learn_truth(above, FALSE);
        for (op, x, y, answer) in [
            (Op::Gt, b, a, TRUE),
            (Op::Ne, a, b, TRUE),
            (Op::Eq, b, a, FALSE),
            (Op::Lt, a, c, TRUE),
            (Op::Ge, a, c, FALSE),
            (Op::Le, c, c, TRUE),
        ] {
            let term = call(&mut facts, op, x, y);
            assert_eq!(facts.truth(term), Some(answer), "{op:?}");
        }
        let unknown = call(&mut facts, Op::Eq, a, solid(9));
        assert_eq!(facts.truth(unknown), None);
        let null = call(&mut facts, Op::Eq, a, NULL);
        assert_eq!(facts.truth(null), Some(UNKNOWN));
        let cmp = call(&mut facts, Op::Cmp, c, a);
        assert_eq!(facts.ask(cmp, OpResult::Order), Some(vec![1]));
    }

    /// Not being less says nothing about being equal.
    #[test]
    fn halves() {
        let mut facts = Facts::default();
        let (a, b) = (solid(1), solid(2));
        let below = call(&mut facts, Op::Lt, a, b);
        facts.learn_truth(below, FALSE);
        let equal = call(&mut facts, Op::Eq, a, b);
        let above = call(&mut facts, Op::Gt, a, b);
        let least = call(&mut facts, Op::Ge, a, b);
        assert_eq!(facts.truth(equal), None);
        assert_eq!(facts.truth(above), None);
        assert_eq!(facts.truth(least), Some(TRUE));
        // Nor does being another value say which is less.
        let (c, d) = (solid(3), solid(4));
        let other = call(&mut facts, Op::Ne, c, d);
        facts.learn_truth(other, TRUE);
        let below = call(&mut facts, Op::Lt, c, d);
        let equal = call(&mut facts, Op::Eq, d, c);
        assert_eq!(
            (facts.truth(below), facts.truth(equal)),
            (None, Some(FALSE))
        );
    }

    /// What passed a conjunction passed its parts; what did not failed nobody knows which.
    #[test]
    fn connectives() {
        let mut facts = Facts::default();
        let one = call(&mut facts, Op::Lt, solid(1), solid(2));
        let two = call(&mut facts, Op::Like, solid(3), solid(4));
        let both = Maker::new("and").term(one).term(two).computed();
        facts.note(both, Node::And(one, two));
        let held = Maker::new("holds").term(both).computed();
        facts.note(held, Node::Holds(both));
        facts.learn_truth(held, FALSE);
        assert_eq!((facts.truth(one), facts.truth(two)), (None, None));
        assert_eq!(facts.holds(both), Some(false));
        facts.learn_truth(one, TRUE);
        assert_eq!(facts.truth(two), None, "FALSE or NULL");

        let mut facts = Facts::default();
        facts.note(held, Node::Holds(both));
        facts.note(both, Node::And(one, two));
        facts.learn_truth(held, TRUE);
        assert_eq!(
            (facts.truth(one), facts.truth(two)),
            (Some(TRUE), Some(TRUE))
        );
        let not = Maker::new("not").term(one).computed();
        facts.note(not, Node::Not(one));
        let either = Maker::new("or").term(not).term(two).computed();
        facts.note(either, Node::Or(not, two));
        assert_eq!(facts.truth(not), Some(FALSE));
        assert_eq!(facts.truth(either), Some(TRUE));
    }

    /// Tokens compare rows of one universe only.
    #[test]
    fn tokens() {
        let mut facts = Facts::default();
        let (a, b, c) = (solid(1), solid(2), solid(3));
        facts.learn_token(row([a]), (0, 0), [1; 16]);
        facts.learn_token(row([b]), (0, 0), [1; 16]);
        facts.learn_token(row([c]), (1, 0), [1; 16]);
        assert_eq!(facts.universe(&[row([a]), row([b])]), Some(0));
        assert_eq!(facts.universe(&[row([a]), row([c])]), None);
        let equal = call(&mut facts, Op::Eq, a, b);
        assert_eq!(facts.truth(equal), Some(TRUE));
        let unknown = call(&mut facts, Op::Eq, a, c);
        assert_eq!(facts.truth(unknown), None);
    }
}
