//! Matching: simulates an automaton with all its states at once; finds subexpressions.

use super::class::{Class, is_word};
use super::{Assertion, Kind, Node, Preference, Span, invalid};
use crate::Result;

/// The most instructions of an automaton.
const SIZE: usize = 20_000;
/// The most steps of one search.
const STEPS: u64 = 2_000_000_000;

#[derive(Debug)]
enum Step {
    One(Class),
    /// Both ways.
    Split(usize, usize),
    Jump(usize),
    Assert(Assert),
    Match,
}

#[derive(Debug)]
enum Assert {
    Start,
    End,
    LineStart,
    LineEnd,
    WordStart,
    WordEnd,
    WordBoundary,
    NotWordBoundary,
    Around {
        program: Box<Program>,
        ahead: bool,
        wanted: bool,
    },
}

/// The automaton of a part.
#[derive(Debug)]
pub(super) struct Program {
    steps: Vec<Step>,
}

/// States at one place: each with the earliest start from which it is reached.
struct States {
    list: Vec<(usize, usize)>,
    /// The place of a state in the list, one more; 0: not there.
    places: Vec<usize>,
}

impl States {
    fn new(size: usize) -> States {
        States {
            list: Vec::new(),
            places: vec![0; size],
        }
    }

    fn clear(&mut self) {
        for (state, _) in self.list.drain(..) {
            if let Some(place) = self.places.get_mut(state) {
                *place = 0;
            }
        }
    }

    /// Whether it is new, or reached from an earlier start.
    fn add(&mut self, state: usize, start: usize) -> bool {
        let Some(place) = self.places.get_mut(state) else {
            return false;
        };
        match place.checked_sub(1).and_then(|at| self.list.get_mut(at)) {
            Some((_, known)) if *known <= start => false,
            Some((_, known)) => {
                *known = start;
                true
            }
            None => {
                self.list.push((state, start));
                *place = self.list.len();
                true
            }
        }
    }
}

impl Program {
    pub fn new(node: &Node) -> Result<Program> {
        let mut program = Program { steps: Vec::new() };
        program.compile(node)?;
        program.push(Step::Match)?;
        Ok(program)
    }

    fn push(&mut self, step: Step) -> Result<usize> {
        if self.steps.len() >= SIZE {
            return Err(invalid("regular expression is too complex"));
        }
        self.steps.push(step);
        Ok(self.steps.len() - 1)
    }

    fn set(&mut self, at: usize, step: Step) {
        if let Some(place) = self.steps.get_mut(at) {
            *place = step;
        }
    }

    fn compile(&mut self, node: &Node) -> Result<()> {
        match &node.kind {
            Kind::Empty => Ok(()),
            Kind::One(class) => self.push(Step::One(class.clone())).map(|_| ()),
            Kind::Assert(assertion) => {
                let assert = assert_of(assertion)?;
                self.push(Step::Assert(assert)).map(|_| ())
            }
            Kind::All(parts) => parts.iter().try_for_each(|part| self.compile(part)),
            Kind::Capture(_, inner) => self.compile(inner),
            Kind::Any(ways) => self.compile_ways(ways),
            Kind::Repeat(inner, least, most) => {
                for _ in 0..*least {
                    self.compile(inner)?;
                }
                self.compile_rest(inner, most.map(|most| most - least))
            }
        }
    }

    fn compile_ways(&mut self, ways: &[Node]) -> Result<()> {
        let mut ends = Vec::new();
        for (index, way) in ways.iter().enumerate() {
            if index + 1 == ways.len() {
                self.compile(way)?;
                break;
            }
            let split = self.push(Step::Jump(0))?;
            self.compile(way)?;
            ends.push(self.push(Step::Jump(0))?);
            let next = self.steps.len();
            self.set(split, Step::Split(split + 1, next));
        }
        let next = self.steps.len();
        ends.into_iter()
            .for_each(|end| self.set(end, Step::Jump(next)));
        Ok(())
    }

    /// Repetitions that need not be.
    fn compile_rest(&mut self, inner: &Node, more: Option<u16>) -> Result<()> {
        let Some(more) = more else {
            let split = self.push(Step::Jump(0))?;
            self.compile(inner)?;
            self.push(Step::Jump(split))?;
            let next = self.steps.len();
            self.set(split, Step::Split(split + 1, next));
            return Ok(());
        };
        let mut splits = Vec::new();
        for _ in 0..more {
            splits.push(self.push(Step::Jump(0))?);
            self.compile(inner)?;
        }
        let next = self.steps.len();
        for split in splits {
            self.set(split, Step::Split(split + 1, next));
        }
        Ok(())
    }

    /// Adds a state and what is reached from it without a character.
    fn reach(
        &self,
        states: &mut States,
        state: usize,
        start: usize,
        text: &[char],
        at: usize,
    ) -> Result<()> {
        let mut open = vec![state];
        while let Some(state) = open.pop() {
            if !states.add(state, start) {
                continue;
            }
            match self.steps.get(state) {
                Some(Step::Jump(to)) => open.push(*to),
                Some(Step::Split(one, other)) => open.extend([*other, *one]),
                Some(Step::Assert(assert)) if assert.holds(text, at)? => open.push(state + 1),
                _ => {}
            }
        }
        Ok(())
    }

    /// The earliest start of a match from `from` on; if any is enough, of the match that ends first.
    pub fn leftmost(&self, text: &[char], from: usize, any: bool) -> Result<Option<usize>> {
        let (mut now, mut next) = (States::new(self.steps.len()), States::new(self.steps.len()));
        let mut best: Option<usize> = None;
        let mut steps = 0u64;
        for at in from..=text.len() {
            if best.is_none() {
                self.reach(&mut now, 0, at, text, at)?;
            }
            for (state, start) in &now.list {
                if matches!(self.steps.get(*state), Some(Step::Match)) {
                    best = Some(best.map_or(*start, |best| best.min(*start)));
                }
            }
            if any && best.is_some() {
                return Ok(best);
            }
            steps += now.list.len() as u64;
            self.advance(&now, &mut next, text, at, best)?;
            std::mem::swap(&mut now, &mut next);
            next.clear();
            if steps > STEPS {
                return Err(invalid("regular expression is too complex"));
            }
            if best.is_some() && now.list.is_empty() {
                break;
            }
        }
        Ok(best)
    }

    /// The states after the character at this position, except those that start after the best
    /// match.
    fn advance(
        &self,
        now: &States,
        next: &mut States,
        text: &[char],
        at: usize,
        best: Option<usize>,
    ) -> Result<()> {
        let Some(c) = text.get(at) else {
            return Ok(());
        };
        for (state, start) in &now.list {
            if best.is_some_and(|best| *start >= best) {
                continue;
            }
            if let Some(Step::One(class)) = self.steps.get(*state)
                && class.matches(*c)
            {
                self.reach(next, state + 1, *start, text, at + 1)?;
            }
        }
        Ok(())
    }

    /// All places, up to `limit`, where a match that starts here can end.
    fn ends(
        &self,
        text: &[char],
        start: usize,
        limit: usize,
        shortest: bool,
    ) -> Result<Vec<usize>> {
        let (mut now, mut next) = (States::new(self.steps.len()), States::new(self.steps.len()));
        let mut found = Vec::new();
        self.reach(&mut now, 0, start, text, start)?;
        for at in start..=limit {
            let matched =
                |(state, _): &(usize, usize)| matches!(self.steps.get(*state), Some(Step::Match));
            if now.list.iter().any(matched) {
                found.push(at);
                if shortest {
                    break;
                }
            }
            if at == limit || now.list.is_empty() {
                break;
            }
            self.advance(&now, &mut next, text, at, None)?;
            std::mem::swap(&mut now, &mut next);
            next.clear();
        }
        Ok(found)
    }

    /// The end of the longest or shortest match that starts here.
    pub fn end(
        &self,
        text: &[char],
        start: usize,
        limit: usize,
        shortest: bool,
    ) -> Result<Option<usize>> {
        Ok(self.ends(text, start, limit, shortest)?.pop())
    }

    /// Whether it matches exactly this.
    fn is_exactly(&self, text: &[char], (start, end): Span) -> Result<bool> {
        Ok(self.ends(text, start, end, false)?.last() == Some(&end))
    }
}

fn assert_of(assertion: &Assertion) -> Result<Assert> {
    Ok(match assertion {
        Assertion::Start => Assert::Start,
        Assertion::End => Assert::End,
        Assertion::LineStart => Assert::LineStart,
        Assertion::LineEnd => Assert::LineEnd,
        Assertion::WordStart => Assert::WordStart,
        Assertion::WordEnd => Assert::WordEnd,
        Assertion::WordBoundary => Assert::WordBoundary,
        Assertion::NotWordBoundary => Assert::NotWordBoundary,
        Assertion::Around(node, ahead, wanted) => Assert::Around {
            program: Box::new(Program::new(node)?),
            ahead: *ahead,
            wanted: *wanted,
        },
    })
}

impl Assert {
    fn holds(&self, text: &[char], at: usize) -> Result<bool> {
        let before = at.checked_sub(1).and_then(|at| text.get(at)).copied();
        let after = text.get(at).copied();
        let (left, right) = (before.is_some_and(is_word), after.is_some_and(is_word));
        Ok(match self {
            Assert::Start => at == 0,
            Assert::End => at == text.len(),
            Assert::LineStart => before.is_none_or(|c| c == '\n'),
            Assert::LineEnd => after.is_none_or(|c| c == '\n'),
            Assert::WordStart => !left && right,
            Assert::WordEnd => left && !right,
            Assert::WordBoundary => left != right,
            Assert::NotWordBoundary => left == right,
            Assert::Around {
                program,
                ahead: true,
                wanted,
            } => program.ends(text, at, text.len(), true)?.is_empty() != *wanted,
            Assert::Around {
                program, wanted, ..
            } => {
                let mut found = false;
                for start in (0..=at).rev() {
                    found = program.is_exactly(text, (start, at))?;
                    if found {
                        break;
                    }
                }
                found == *wanted
            }
        })
    }
}

/// Finds the places of subexpressions in a part that matches exactly this.
pub(super) fn dissect(
    node: &Node,
    text: &[char],
    span: Span,
    found: &mut [Option<Span>],
) -> Result<()> {
    if !node.captures {
        return Ok(());
    }
    match &node.kind {
        Kind::Capture(number, inner) => {
            if let Some(place) = found.get_mut(*number) {
                *place = Some(span);
            }
            dissect(inner, text, span, found)
        }
        Kind::All(parts) => dissect_all(parts, text, span, found),
        Kind::Any(ways) => {
            for way in ways {
                if Program::new(way)?.is_exactly(text, span)? {
                    return dissect(way, text, span, found);
                }
            }
            Ok(())
        }
        Kind::Repeat(inner, least, most) => {
            dissect_repeat(inner, (*least, *most), text, span, found)
        }
        _ => Ok(()),
    }
}

/// The ends of a part, the preferred one first.
fn preferred(node: &Node, text: &[char], (start, end): Span) -> Result<Vec<usize>> {
    let mut ends = Program::new(node)?.ends(text, start, end, false)?;
    if node.preference != Preference::Shortest {
        ends.reverse();
    }
    Ok(ends)
}

fn dissect_all(
    parts: &[Node],
    text: &[char],
    span: Span,
    found: &mut [Option<Span>],
) -> Result<()> {
    let (mut start, end) = span;
    for (index, part) in parts.iter().enumerate() {
        let rest = parts.get(index + 1..).unwrap_or_default();
        if rest.is_empty() {
            return dissect(part, text, (start, end), found);
        }
        let rest = Program::new(&Node {
            kind: Kind::All(rest.to_vec()),
            preference: Preference::None,
            captures: false,
            mixed: false,
        })?;
        let mut middle = None;
        for at in preferred(part, text, (start, end))? {
            if rest.is_exactly(text, (at, end))? {
                middle = Some(at);
                break;
            }
        }
        let Some(middle) = middle else {
            return Ok(());
        };
        dissect(part, text, (start, middle), found)?;
        start = middle;
    }
    Ok(())
}

fn dissect_repeat(
    inner: &Node,
    (mut least, mut most): (u16, Option<u16>),
    text: &[char],
    span: Span,
    found: &mut [Option<Span>],
) -> Result<()> {
    let (mut start, end) = span;
    if most == Some(0) || least == 0 && start == end && most.is_none_or(|most| most > 0) {
        // An empty text is matched once only where it must be, or the part itself can be empty.
        let once = Program::new(inner)?.is_exactly(text, span)?;
        if most == Some(0) || !once {
            return Ok(());
        }
        return dissect(inner, text, span, found);
    }
    loop {
        least = least.saturating_sub(1);
        most = most.map(|most| most.saturating_sub(1));
        let rest = Program::new(&Node {
            kind: Kind::Repeat(Box::new(inner.clone()), least, most),
            preference: Preference::None,
            captures: false,
            mixed: false,
        })?;
        let mut middle = None;
        for at in preferred(inner, text, (start, end))? {
            let goes_on = at > start || least > 0 || at == end;
            if goes_on && rest.is_exactly(text, (at, end))? {
                middle = Some(at);
                break;
            }
        }
        let Some(middle) = middle else {
            return Ok(());
        };
        // Only the last repetition counts.
        if middle == end && least == 0 {
            found_again(inner, found);
            return dissect(inner, text, (start, middle), found);
        }
        start = middle;
    }
}

/// Subexpressions of an earlier repetition are forgotten.
fn found_again(node: &Node, found: &mut [Option<Span>]) {
    match &node.kind {
        Kind::Capture(number, inner) => {
            if let Some(place) = found.get_mut(*number) {
                *place = None;
            }
            found_again(inner, found);
        }
        Kind::All(parts) | Kind::Any(parts) => parts.iter().for_each(|p| found_again(p, found)),
        Kind::Repeat(inner, ..) => found_again(inner, found),
        _ => {}
    }
}
