//! Looks for operands that a call can have instead of its own.
//!
//! The call runs once as it is: its path and outcome are what others must have. Operands of an
//! earlier call with that path are taken if the rules allow them for this one. Otherwise the
//! solver proposes, first with what the outcome demands, then with values that look more like what
//! they were; what it proposes starts from random numbers, and the machine runs it. So a
//! call may stay without any: then rules and path contradict each other, as far as the tries tell,
//! and the log is refused.
//!
//! Invariants: as this crate's. The random numbers are the kernel's: from what comes out nobody
//! finds out what went in by doing the same again.

use crate::call::{Call, Log, Operand, Outcome};
use crate::machine::{Machine, Ran};
use crate::relations::{self, Level, Named, within};
use crate::rules::{self, Condition, Length, Mask, Rules, literal};
use crate::shape::{Kind, Shape};
use crate::solver::Solver;
use contract::{Op, TypeCode};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read};
use values::{Env, Value};

/// Proposals for a call, by what is demanded; afterwards the first again.
const TRIES: [(Level, usize); 3] = [
    (Level::Outcome, 4),
    (Level::Alike, 12),
    (Level::Outcome, 24),
];

/// Fake operands of a path that are kept for other calls.
const KEPT_MAX: usize = 16;

/// Calls that fake operands can be shared among: the operation, what it is of, what came of it.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    op: Op,
    ret: Option<TypeCode>,
    immediate: i32,
    kinds: Vec<(Kind, usize)>,
    ran: Ran,
}

/// What was done, in numbers.
#[derive(Default, Debug, Clone, Copy)]
pub struct Counts {
    /// Calls that have other operands.
    pub calls: u64,
    /// Of these, such as were taken from earlier ones.
    pub cached: u64,
    /// Proposals that were run.
    pub proposals: u64,
}

/// An operand that is looked for: the shape that it may have, and what rules demand of it.
struct Wanted {
    shape: Shape,
    conditions: Vec<Condition>,
}

/// The search, with its processes.
pub struct Search<'a> {
    rules: &'a Rules,
    env: Env,
    solver: Solver,
    machine: Machine,
    random: BufReader<File>,
    kept: HashMap<Key, Vec<Vec<Value>>>,
    /// Whether the solver gave up on a question of this call.
    unsure: bool,
    /// The solver's program, if each call has one of its own, and nothing of earlier calls.
    anew: Option<String>,
    /// What was done.
    pub counts: Counts,
}

impl<'a> Search<'a> {
    /// One for a log; `plain`: each call has processes of its own.
    ///
    /// # Errors
    /// When there is no solver.
    pub fn new(
        log: &Log,
        rules: &'a Rules,
        solver: &str,
        plain: bool,
    ) -> Result<Search<'a>, String> {
        let random = File::open("/dev/urandom").map_err(|e| format!("/dev/urandom: {e}"))?;
        Ok(Search {
            rules,
            env: log.env()?,
            solver: Solver::start(solver)?,
            machine: Machine::new(log),
            random: BufReader::new(random),
            kept: HashMap::new(),
            unsure: false,
            anew: plain.then(|| solver.into()),
            counts: Counts::default(),
        })
    }

    /// The log with other operands; `progress` is told of each call.
    ///
    /// # Errors
    /// Which call has none, and why the log is refused.
    pub fn log(&mut self, log: &Log, mut progress: impl FnMut(usize)) -> Result<Log, String> {
        let mut calls = Vec::with_capacity(log.calls.len());
        for (number, call) in log.calls.iter().enumerate() {
            if let Some(solver) = &self.anew {
                self.solver = Solver::start(solver)?;
                self.machine = Machine::new(log);
                self.kept.clear();
            }
            let fake = self.call(call);
            let fake = fake.map_err(|e| format!("call {}, {}: {e}", number + 1, call.name()))?;
            calls.push(fake);
            progress(number + 1);
        }
        Ok(Log {
            settings: log.settings.clone(),
            calls,
        })
    }

    /// A call with other operands.
    ///
    /// # Errors
    /// Why there are none.
    pub fn call(&mut self, call: &Call) -> Result<Call, String> {
        let ran = self.original(call)?;
        if call.outcome != Outcome::Unknown && call.outcome != ran.outcome {
            return Err("it does not give what was recorded".into());
        }
        let seen = Call {
            outcome: ran.outcome.clone(),
            ..call.clone()
        };
        let shapes: Option<Vec<Shape>> =
            seen.operands.iter().map(|o| Shape::of(&o.value)).collect();
        let shapes = shapes.ok_or("it has an operand of a size that is not varied")?;
        let wanted = self.wanted(&seen, &shapes)?;
        let key = Key {
            op: seen.op,
            ret: seen.ret,
            immediate: seen.immediate,
            kinds: shapes
                .iter()
                .map(|s| (s.kind.clone(), s.numbers.len()))
                .collect(),
            ran,
        };
        self.counts.calls += 1;
        if let Some(found) = self.earlier(&key, &wanted) {
            self.counts.cached += 1;
            return Ok(with(call, found));
        }
        let found = self.proposals(&seen, &wanted, &key.ran)?;
        let kept = self.kept.entry(key).or_default();
        if kept.len() < KEPT_MAX {
            kept.push(found.clone());
        }
        Ok(with(call, found))
    }

    /// What came of a call as it was. The first time something may be loaded, once for all.
    fn original(&mut self, call: &Call) -> Result<Ran, String> {
        let first = self.machine.run(call)?;
        let ran = self.machine.run(call)?;
        if ran == first || self.machine.run(call)? == ran {
            return Ok(ran);
        }
        Err("its path is another one each time".into())
    }

    fn wanted(&self, call: &Call, shapes: &[Shape]) -> Result<Vec<Wanted>, String> {
        let mut wanted = Vec::new();
        for (at, shape) in shapes.iter().enumerate() {
            let (mask, t) = (self.rules.of(call, at), operand_type(call, at));
            let mut conditions = rules::conditions(mask, shape, t, &self.env)?;
            if at == 1 && relations::is_pattern(call.op) {
                let stay = relations::structure(call.op, &shape.numbers);
                conditions.retain(|c| !matches!(c, Condition::Differs(at, _) if stay.contains(at)));
            }
            wanted.push(Wanted {
                shape: shape.clone(),
                conditions,
            });
        }
        Ok(wanted)
    }

    fn earlier(&self, key: &Key, wanted: &[Wanted]) -> Option<Vec<Value>> {
        let kept = self.kept.get(key)?;
        let fits = |values: &&Vec<Value>| {
            values.iter().zip(wanted).all(|(value, wanted)| {
                Shape::of(value)
                    .is_some_and(|s| wanted.conditions.iter().all(|c| c.holds(&s.numbers)))
            })
        };
        kept.iter().find(fits).cloned()
    }

    fn proposals(
        &mut self,
        call: &Call,
        wanted: &[Wanted],
        ran: &Ran,
    ) -> Result<Vec<Value>, String> {
        let mut contradiction = true;
        self.unsure = false;
        let mut tried = 0;
        for (level, tries) in TRIES {
            for _ in 0..tries {
                let other = self.other_lengths(call, wanted, tried);
                let wanted = other.as_deref().unwrap_or(wanted);
                tried += 1;
                let Some(values) = self.propose(call, wanted, level)? else {
                    if other.is_some() {
                        continue;
                    }
                    break;
                };
                contradiction = false;
                self.counts.proposals += 1;
                let fake = with(call, values);
                if self.machine.run(&fake)? == *ran {
                    return Ok(fake.operands.into_iter().map(|o| o.value).collect());
                }
            }
        }
        Err(match contradiction {
            true if self.unsure => "the solver found no operands; the log is refused".into(),
            true => "its rules and its path contradict each other; the log is refused".into(),
            false => format!(
                "{tried} proposals took another path: as far as they tell, its rules and its path \
                 contradict each other; the log is refused"
            ),
        })
    }

    /// The operands with other lengths, where rules leave these free: of a value in a list, or
    /// some characters more or less.
    fn other_lengths(
        &mut self,
        call: &Call,
        wanted: &[Wanted],
        tried: usize,
    ) -> Option<Vec<Wanted>> {
        let mut changed = false;
        let mut others = Vec::new();
        for (at, one) in wanted.iter().enumerate() {
            let mut other = Wanted {
                shape: one.shape.clone(),
                conditions: one.conditions.clone(),
            };
            let t = operand_type(call, at);
            match self.rules.of(call, at).clone() {
                Mask::Substitute { from } => {
                    let list = rules::listed(&from, t, &self.env);
                    let drawn = self.random_below(list.len());
                    if let Some(shape) = list.into_iter().nth(drawn) {
                        other = stretched(one, shape.numbers.len())?;
                        other.conditions = vec![Condition::OneOf(vec![shape.numbers])];
                        changed = true;
                    }
                }
                Mask::Scramble {
                    length: Length::Free,
                    ..
                } if tried.is_multiple_of(2) => {
                    let is_text = matches!(one.shape.kind, Kind::Characters(TypeCode::Text));
                    if is_text && !relations::is_pattern(call.op) | (at == 0) {
                        let length = one.shape.numbers.len() + self.random_below(5);
                        other = stretched(one, length.saturating_sub(2))?;
                        changed = true;
                    }
                }
                _ => {}
            }
            others.push(other);
        }
        changed.then_some(others)
    }

    /// Operands that fulfil everything as far as the solver knows; none if there can be none.
    fn propose(
        &mut self,
        call: &Call,
        wanted: &[Wanted],
        level: Level,
    ) -> Result<Option<Vec<Value>>, String> {
        let mut operands = Vec::new();
        for (at, wanted) in wanted.iter().enumerate() {
            let names = (0..wanted.shape.numbers.len()).map(|n| format!("v{at}_{n}"));
            operands.push(Named {
                shape: wanted.shape.clone(),
                names: names.collect(),
            });
        }
        self.solver.tell("(push)")?;
        let mut assumed = Vec::new();
        for (operand, wanted) in operands.iter().zip(wanted) {
            self.declare(operand, wanted, level, &mut assumed)?;
        }
        for relation in relations::relations(call, &operands, level) {
            self.solver.tell(&format!("(assert {relation})"))?;
        }
        let names: Vec<String> = operands.iter().flat_map(|o| o.names.clone()).collect();
        let numbers = self.solved(&names, assumed)?;
        self.solver.tell("(pop)")?;
        let Some(numbers) = numbers else {
            return Ok(None);
        };
        let mut rest = numbers.as_slice();
        let mut values = Vec::new();
        for wanted in wanted {
            let (own, tail) = rest.split_at(wanted.shape.numbers.len());
            rest = tail;
            if !wanted.conditions.iter().all(|c| c.holds(own)) {
                return Err("the solver proposed what the rules forbid".into());
            }
            match wanted.shape.value(own) {
                Some(value) => values.push(value),
                None => return Ok(None),
            }
        }
        Ok(Some(values))
    }

    /// Tells the solver of an operand's numbers, and of random ones to begin with.
    fn declare(
        &mut self,
        operand: &Named,
        wanted: &Wanted,
        level: Level,
        assumed: &mut Vec<String>,
    ) -> Result<(), String> {
        let shape = &operand.shape;
        let mut drawn: HashMap<i128, i128> = HashMap::new();
        for (at, name) in operand.names.iter().enumerate() {
            let bounds = shape.bounds(at);
            self.solver.tell(&format!("(declare-const {name} Int)"))?;
            self.solver
                .tell(&format!("(assert {})", within(name, &bounds)))?;
            let mut ranges = match level {
                Level::Alike => shape.alike(at),
                Level::Outcome => self.likely(shape, at, &bounds),
            };
            for condition in &wanted.conditions {
                if let Condition::Within(_, low, high) = condition {
                    ranges = vec![(*low, *high)];
                }
            }
            let original = shape.numbers.get(at).copied().unwrap_or(0);
            let number = match drawn.get(&original) {
                Some(number) => *number,
                None => self.random_within(&ranges),
            };
            drawn.insert(original, number);
            self.solver.tell(&format!("(declare-const r{name} Bool)"))?;
            self.solver.tell(&format!(
                "(assert (=> r{name} (= {name} {})))",
                literal(number)
            ))?;
            assumed.push(format!("r{name}"));
        }
        for condition in &wanted.conditions {
            let condition = condition.to_smt(&operand.names);
            self.solver.tell(&format!("(assert {condition})"))?;
        }
        Ok(())
    }

    /// Where random numbers are drawn from when any would do: letters for characters, numbers of a
    /// size that the value's own is of.
    fn likely(&mut self, shape: &Shape, at: usize, bounds: &[(i128, i128)]) -> Vec<(i128, i128)> {
        let original = shape.numbers.get(at).copied().unwrap_or(0);
        match shape.kind {
            Kind::Characters(_) if original < 0x80 => vec![(0x61, 0x7a)],
            Kind::Characters(_) | Kind::Bytes(_) | Kind::Float(_) => shape.alike(at),
            _ => {
                let size = original.unsigned_abs().clamp(10, u128::MAX / 4);
                let size = i128::try_from(size * 2).unwrap_or(i128::MAX);
                let (low, high) = bounds.first().copied().unwrap_or((0, 0));
                vec![(low.max(-size), high.min(size))]
            }
        }
    }

    /// Numbers that the solver finds, with as many of the assumptions as can be.
    fn solved(
        &mut self,
        names: &[String],
        mut assumed: Vec<String>,
    ) -> Result<Option<Vec<i128>>, String> {
        for _ in 0..16 {
            match self.solver.check(&assumed)? {
                Some(true) => return self.solver.numbers(names).map(Some),
                Some(false) if !assumed.is_empty() => {
                    let core = self.solver.core()?;
                    match core.first() {
                        // One of those that cannot be together goes.
                        Some(_) => {
                            let drawn = self.random_below(core.len());
                            assumed.retain(|name| Some(name) != core.get(drawn));
                        }
                        None => return Ok(None),
                    }
                }
                Some(false) => return Ok(None),
                None => break,
            }
        }
        match self.solver.check(&[])? {
            Some(true) => self.solver.numbers(names).map(Some),
            answer => {
                self.unsure |= answer.is_none();
                Ok(None)
            }
        }
    }

    fn random(&mut self) -> u128 {
        let mut bytes = [0; 16];
        // The kernel's random numbers do not end.
        let _ = self.random.read_exact(&mut bytes);
        u128::from_le_bytes(bytes)
    }

    fn random_below(&mut self, n: usize) -> usize {
        let n = u128::try_from(n.max(1)).unwrap_or(1);
        usize::try_from(self.random() % n).unwrap_or(0)
    }

    fn random_within(&mut self, ranges: &[(i128, i128)]) -> i128 {
        let drawn = self.random_below(ranges.len());
        let (low, high) = ranges.get(drawn).copied().unwrap_or((0, 0));
        let size = high.saturating_sub(low).max(0).unsigned_abs();
        low + i128::try_from(self.random() % (size + 1)).unwrap_or(0)
    }
}

/// An operand of so many numbers: its own, and again from the first.
fn stretched(one: &Wanted, length: usize) -> Option<Wanted> {
    let numbers = one.shape.numbers.iter().cycle().take(length).copied();
    let shape = Shape::of(&one.shape.value(&numbers.collect::<Vec<_>>())?)?;
    let within = |c: &Condition| !matches!(c, Condition::Differs(at, _) if *at >= length);
    let conditions = one.conditions.iter().filter(|c| within(c)).cloned();
    Some(Wanted {
        shape,
        conditions: conditions.collect(),
    })
}

fn operand_type(call: &Call, at: usize) -> TypeCode {
    let operand = call.operands.get(at);
    operand.map_or(TypeCode::Text, |o| o.value.type_code())
}

/// A call with these operands.
fn with(call: &Call, values: Vec<Value>) -> Call {
    let operands = call.operands.iter().zip(values);
    let operands = operands.map(|(o, value)| Operand {
        column: o.column.clone(),
        value,
    });
    Call {
        operands: operands.collect(),
        ..call.clone()
    }
}
