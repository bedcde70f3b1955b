//! Type check: the single place that decides what a program can declassify (design, section 7).
//!
//! Invariant: every element of a [`Program`]'s stack has a known kind, and exactly one element
//! remains as the result. Evaluation relies on this.

use super::among::comparable;
use super::parse::{Instruction, Parts, parse};
use crate::fail;
use crate::signatures::Table;
use contract::message::program::{self as code, LOCALS_MAX, STACK_MAX};
use contract::message::table as wire;
use contract::{Fid, OpResult, TypeCode};
use grant::family;
use values::Error;

/// The kind of a stack element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A protected value of a type.
    Value(TypeCode),
    /// NULL of any type.
    Null,
    /// A boolean that may be declassified.
    Bool,
    /// An order that may be declassified.
    Order,
    /// A hash that may be declassified.
    Hash,
}

/// How a program uses an input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// Not at all.
    Not,
    /// As a value for each row.
    Value,
    /// As a list for all rows.
    List,
}

/// A program that passed the type check.
#[derive(Debug)]
pub struct Program {
    /// Types of the input columns, as stored; `None` for plain booleans.
    pub inputs: Vec<Option<TypeCode>>,
    /// How it uses each of them.
    pub uses: Vec<Use>,
    /// Constants and their types; `None` for NULL.
    pub constants: Vec<(Fid, Option<TypeCode>)>,
    /// Instructions.
    pub code: Vec<Instruction>,
    /// Kind of the result.
    pub result: OpResult,
    /// Type of the result, if it is a value and not NULL.
    pub value: Option<TypeCode>,
    /// The kinds of operations that it performs, in terms of grants.
    pub families: u8,
}

fn broken(what: &'static str) -> Error {
    fail::misused_program(what)
}

struct Checker<'a> {
    table: &'a Table,
    inputs: &'a [Option<TypeCode>],
    uses: Vec<Use>,
    constants: &'a [(Fid, Option<TypeCode>)],
    stack: Vec<Kind>,
    locals: Vec<Option<Kind>>,
    families: u8,
}

impl Program {
    /// Whether it uses an input.
    pub fn uses(&self, input: usize) -> bool {
        let named = |i: &Instruction| i.code == code::INPUT && usize::from(i.operand) == input;
        self.code.iter().any(named)
    }

    /// Parses and checks a program. `type_of` returns the type of the value under a FID; `None` for
    /// NULL.
    pub fn new(
        program: &wire::Program<'_>,
        table: &Table,
        type_of: impl Fn(Fid) -> Result<Option<TypeCode>, Error>,
    ) -> Result<Program, Error> {
        let Parts {
            inputs,
            constants,
            code,
        } = parse(program)?;
        let constants = constants
            .into_iter()
            .map(|fid| Ok((fid, type_of(fid)?)))
            .collect::<Result<Vec<_>, Error>>()?;
        let mut checker = Checker {
            table,
            inputs: &inputs,
            uses: vec![Use::Not; inputs.len()],
            constants: &constants,
            stack: Vec::new(),
            locals: Vec::new(),
            families: 0,
        };
        for instruction in &code {
            checker.step(instruction)?;
        }
        let result = checker.result()?;
        let told = if result == OpResult::Fid {
            0
        } else {
            family::COMPARE
        };
        let families = checker.families | told;
        let value = match checker.stack.as_slice() {
            [Kind::Value(t)] => Some(*t),
            _ => None,
        };
        Ok(Program {
            uses: checker.uses,
            inputs,
            constants,
            code,
            result,
            value,
            families,
        })
    }
}

impl Program {
    /// Whether an input is a list.
    pub fn takes_lists(&self) -> bool {
        self.uses.contains(&Use::List)
    }
}

impl Checker<'_> {
    fn pop(&mut self) -> Result<Kind, Error> {
        self.stack
            .pop()
            .ok_or_else(|| broken("It takes more from the stack than is there."))
    }

    fn push(&mut self, kind: Kind) -> Result<(), Error> {
        if self.stack.len() >= STACK_MAX {
            return Err(fail::program_limit("Its stack is too deep."));
        }
        self.stack.push(kind);
        Ok(())
    }

    /// Requires an element to be a value of a type.
    fn expect(&mut self, kind: Kind, want: TypeCode) -> Result<(), Error> {
        match kind {
            Kind::Null => Ok(()),
            Kind::Value(t) if t == want => Ok(()),
            _ => Err(broken(
                "An operand is of another type than the operation takes.",
            )),
        }
    }

    /// Requires a boolean, protected or declassifiable.
    fn pop_truth(&mut self) -> Result<(), Error> {
        match self.pop()? {
            Kind::Bool => Ok(()),
            other => self.expect(other, TypeCode::Bool),
        }
    }

    fn step(&mut self, instruction: &Instruction) -> Result<(), Error> {
        match instruction.code {
            code::INPUT => {
                let t = self.input(usize::from(instruction.operand), Use::Value)?;
                self.push(t.map_or(Kind::Bool, Kind::Value))
            }
            code::CONSTANT => {
                let constant = self.constants.get(usize::from(instruction.operand));
                let broken = || broken("It names a constant that it does not have.");
                let (_, t) = *constant.ok_or_else(broken)?;
                self.push(t.map_or(Kind::Null, Kind::Value))
            }
            code::CALL => self.call(u32::from(instruction.operand)),
            code::AND | code::OR => {
                self.pop_truth()?;
                self.pop_truth()?;
                self.push(Kind::Bool)
            }
            code::NOT | code::HOLDS => {
                self.pop_truth()?;
                self.push(Kind::Bool)
            }
            code::BOOLEAN if instruction.operand <= 2 => self.push(Kind::Bool),
            code::STORE => self.store(usize::from(instruction.operand)),
            code::LOAD => {
                let local = self.locals.get(usize::from(instruction.operand));
                let broken = || broken("It names a local that it has not stored.");
                let kind = local.copied().flatten().ok_or_else(broken)?;
                self.push(kind)
            }
            code::AMONG => {
                let list = self.input(usize::from(instruction.operand), Use::List)?;
                match (self.pop()?, list) {
                    (Kind::Null, _) => {}
                    (Kind::Value(t), Some(list)) if comparable(t, list) => {}
                    _ => return Err(broken("A list is of another type than its value.")),
                }
                self.push(Kind::Bool)
            }
            code::IS_NULL => {
                self.pop()?;
                self.push(Kind::Bool)
            }
            code::SELECT => self.select(),
            _ => Err(broken("It has an instruction that does not exist.")),
        }
    }

    /// The type of an input, which must not be used in any other way.
    fn input(&mut self, number: usize, wanted: Use) -> Result<Option<TypeCode>, Error> {
        match (self.inputs.get(number), self.uses.get_mut(number)) {
            (Some(t), Some(used)) if *used == Use::Not || *used == wanted => {
                *used = wanted;
                Ok(*t)
            }
            _ => Err(broken("It names an input that it does not have.")),
        }
    }

    fn store(&mut self, local: usize) -> Result<(), Error> {
        if local >= LOCALS_MAX {
            return Err(fail::program_limit("It has too many locals."));
        }
        let top = self.pop()?;
        if self.locals.len() <= local {
            self.locals.resize(local + 1, None);
        }
        if let Some(place) = self.locals.get_mut(local) {
            *place = Some(top);
        }
        self.push(top)
    }

    fn call(&mut self, number: u32) -> Result<(), Error> {
        let table = self.table;
        let operation = table.operation(number).ok_or_else(fail::no_such_program)?;
        self.families |= operation.family;
        for want in operation.args.iter().rev() {
            let kind = self.pop()?;
            self.expect(kind, *want)?;
        }
        self.push(match (operation.result(), operation.ret) {
            (OpResult::Fid, Some(t)) => Kind::Value(t.stored()),
            (OpResult::Order, _) => Kind::Order,
            (OpResult::Hash, _) => Kind::Hash,
            _ => Kind::Bool,
        })
    }

    fn select(&mut self) -> Result<(), Error> {
        let no = self.pop()?;
        let yes = self.pop()?;
        self.pop_truth()?;
        let kind = match (yes, no) {
            (yes, no) if yes == no => yes,
            (Kind::Null, other) | (other, Kind::Null) => other,
            _ => return Err(broken("Its branches are of different types.")),
        };
        self.push(kind)
    }

    fn result(&mut self) -> Result<OpResult, Error> {
        match self.stack.as_slice() {
            [Kind::Value(_) | Kind::Null] => Ok(OpResult::Fid),
            [Kind::Bool] => Ok(OpResult::Bool),
            [Kind::Order] => Ok(OpResult::Order),
            [Kind::Hash] => Ok(OpResult::Hash),
            _ => Err(broken("It does not leave exactly one result.")),
        }
    }
}
