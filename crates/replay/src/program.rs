//! Programs over terms: what an operation, or a registered program, makes of what its operands were
//! made of. A program and the operations that it consists of give the same terms, so it does not
//! matter which of them a plan asks for.

use crate::facts::{Facts, Node, domain};
use crate::term::{Maker, NULL, Term};
use contract::message::program as code;
use contract::message::table::{Instruction, Program as Wire};
use contract::{Fid, OpResult};

/// The signatures of the catalog, by number.
pub struct Signatures(Vec<catalog::Signature>);

impl Default for Signatures {
    fn default() -> Signatures {
        let all = catalog::signatures();
        Signatures(all.iter().map(|(_, signature)| signature.clone()).collect())
    }
}

impl Signatures {
    /// The signature with this number.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<&catalog::Signature> {
        self.0.get((number as usize).checked_sub(1)?)
    }

    /// What an operation makes of its operands.
    pub fn call(
        &self,
        facts: &mut Facts,
        number: u32,
        immediate: i32,
        args: &[Term],
    ) -> Option<(Term, OpResult)> {
        let signature = self.get(number)?;
        let made = Maker::new("call")
            .number(u64::from(number))
            .number(u64::from(immediate.cast_unsigned()));
        let term = made.terms(args.iter().copied()).computed();
        let result = signature.op.result();
        if args.iter().all(|arg| facts.constants.contains(arg)) {
            facts.constants.insert(term);
        }
        if result != OpResult::Fid {
            let second = args.get(1).copied().unwrap_or(NULL);
            let first = args.first().copied().unwrap_or(NULL);
            let domain = domain(&signature.args);
            facts.note(term, Node::Call(signature.op, domain, first, second));
        }
        Some((term, result))
    }
}

/// A column of a batch, at one row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cell {
    /// A value.
    One(Term),
    /// A list, the same for all rows.
    List(Vec<Term>),
}

/// A registered program.
#[derive(Debug)]
pub struct Program {
    constants: Vec<Term>,
    code: Vec<Instruction>,
    /// What it is made of, whoever registered it.
    pub id: Term,
}

type Element = (Term, OpResult);

/// A boolean that the database knows.
pub fn known(facts: &mut Facts, truth: u8) -> Term {
    let term = Maker::new("known").number(u64::from(truth)).computed();
    facts.note(term, Node::Known(truth));
    term
}

impl Program {
    /// The program of a message.
    pub fn new(wire: &Wire<'_>, term: impl Fn(Fid) -> Term) -> Program {
        let constants: Vec<Term> = wire.values.iter().map(term).collect();
        let code: Vec<Instruction> = wire.code.iter().collect();
        let mut id = Maker::new("program").terms(constants.iter().copied());
        for t in wire.types.iter() {
            id = id.number(t.map_or(0, |t| t.stored() as u64));
        }
        for step in &code {
            let words = [u64::from(step.code), u64::from(step.operand)];
            id = id.number(words[0]).number(words[1]);
            id = id.number(u64::from(step.immediate.cast_unsigned()));
        }
        Program {
            constants,
            code,
            id: id.computed(),
        }
    }

    /// What it makes of a row.
    pub fn run(
        &self,
        facts: &mut Facts,
        signatures: &Signatures,
        inputs: &[Cell],
    ) -> Option<(Term, OpResult)> {
        let mut stack: Vec<Element> = Vec::new();
        // Few programs have any.
        let mut locals: Vec<Option<Element>> = Vec::new();
        for step in &self.code {
            let at = usize::from(step.operand);
            let made = match step.code {
                code::INPUT => match inputs.get(at)? {
                    Cell::One(term) => (*term, OpResult::Fid),
                    Cell::List(_) => return None,
                },
                code::CONSTANT => (*self.constants.get(at)?, OpResult::Fid),
                code::CALL => {
                    let number = u32::from(step.operand);
                    let count = signatures.get(number)?.args.len();
                    let from = stack.len().checked_sub(count)?;
                    let args: Vec<Term> = stack.drain(from..).map(|(term, _)| term).collect();
                    signatures.call(facts, number, step.immediate, &args)?
                }
                code::AMONG => {
                    let Cell::List(list) = inputs.get(at)? else {
                        return None;
                    };
                    let (a, _) = stack.pop()?;
                    let node = Node::Among(a, list.clone());
                    let made = Maker::new("among").term(a).terms(list.iter().copied());
                    boolean(facts, made, node)
                }
                code::BOOLEAN => (
                    known(facts, u8::try_from(step.operand).ok()?),
                    OpResult::Bool,
                ),
                code::STORE => {
                    if locals.is_empty() {
                        locals = vec![None; code::LOCALS_MAX];
                    }
                    *locals.get_mut(at)? = stack.last().copied();
                    continue;
                }
                code::LOAD => (*locals.get(at)?)?,
                other => logic(facts, other, &mut stack)?,
            };
            stack.push(made);
        }
        match stack.as_slice() {
            [one] => Some(*one),
            _ => None,
        }
    }
}

fn boolean(facts: &mut Facts, made: Maker, node: Node) -> Element {
    let term = made.computed();
    facts.note(term, node);
    (term, OpResult::Bool)
}

/// Instructions on what lies on the stack.
fn logic(facts: &mut Facts, step: u8, stack: &mut Vec<Element>) -> Option<Element> {
    let (a, kind) = stack.pop()?;
    Some(match step {
        code::AND | code::OR => {
            let (b, _) = stack.pop()?;
            // Which comes first does not matter: neither has an effect.
            let (a, b) = (a.min(b), a.max(b));
            let (name, node) = match step {
                code::AND => ("and", Node::And(a, b)),
                _ => ("or", Node::Or(a, b)),
            };
            boolean(facts, Maker::new(name).term(a).term(b), node)
        }
        code::NOT => boolean(facts, Maker::new("not").term(a), Node::Not(a)),
        code::HOLDS => boolean(facts, Maker::new("holds").term(a), Node::Holds(a)),
        code::IS_NULL => boolean(facts, Maker::new("is null").term(a), Node::IsNull(a)),
        code::SELECT => {
            let ((then, _), (condition, _)) = (stack.pop()?, stack.pop()?);
            let made = Maker::new("select").term(condition).term(then).term(a);
            (made.computed(), kind)
        }
        _ => return None,
    })
}
