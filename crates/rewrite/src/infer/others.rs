//! Calls of routines with plain arguments whose bodies combine these with something protected.
//!
//! Such a routine is refused when a client creates it (`routine`). If it was created by others, or
//! before a table was protected, the server reports its body; constants and parameters passed for
//! such an argument are refused, since they would be sent in the clear. In a body that is itself
//! being followed, the variable passed for the argument is treated as combined with something
//! protected.
//!
//! Does not cover bodies that the server stores parsed, functions called by operators and casts,
//! and triggers.
//!
//! Invariant: that of `others`, which determines what a body does with its arguments.

use super::{Infer, Res};
use crate::refusal::Refusal;
use crate::schema::{Routine, Schema, UserFunction};
use crate::value::{LeafKind, Val};
use pg_query::NodeEnum;
use pg_query::protobuf::FuncCall;
use std::collections::BTreeSet;

/// Returns the names of the plain arguments of a routine that are combined with something
/// protected; the given routines are those whose bodies are being followed.
pub(crate) type Meeting = fn(&Schema, &UserFunction, &[Routine]) -> BTreeSet<String>;

impl Infer<'_> {
    /// Refuses constants and parameters that would be sent in the clear and that the routine
    /// compares with protected values.
    pub fn given_to_bodies(
        &mut self,
        schema: Option<&str>,
        name: &str,
        f: &FuncCall,
        vals: &[Val],
    ) -> Res<()> {
        if vals.iter().all(|v| self.secrets(v).is_empty()) {
            return Ok(());
        }
        let known = self.schema;
        for routine in known.bodies(schema, name, vals.len()) {
            let met = (self.meeting)(known, routine, &self.following);
            for (index, val) in vals.iter().enumerate() {
                let at = argument(routine, f, index);
                if met.contains(&named(routine, at)) {
                    self.given_to_body(routine, at, val, f.location)?;
                }
            }
        }
        Ok(())
    }

    fn given_to_body(
        &mut self,
        routine: &UserFunction,
        at: usize,
        val: &Val,
        place: i32,
    ) -> Res<()> {
        for u in self.secrets(val) {
            match self.leaves.get(u.id).kind {
                LeafKind::Argument(_) => self.leaves.protect(u.id),
                _ => {
                    let start = self.leaves.get(u.id).range.start;
                    return Err(refusal(routine, at).at(i32::try_from(start).unwrap_or(place)));
                }
            }
        }
        Ok(())
    }
}

fn refusal(routine: &UserFunction, at: usize) -> Refusal {
    let name = &routine.name;
    let argument = named(routine, at);
    Refusal::unsupported(format!(
        "argument \"{argument}\" of function {name} meets a protected value in its body"
    ))
    .detail("The value would be sent in the clear.")
    .hint("Have the argument declared with the protected type.")
    .for_good()
}

/// The number of the argument that an expression of a call is for.
fn argument(routine: &UserFunction, f: &FuncCall, index: usize) -> usize {
    let by_name = f.args.get(index).and_then(|node| match &node.node {
        Some(NodeEnum::NamedArgExpr(n)) => {
            routine.arg_names.iter().position(|name| *name == n.name)
        }
        _ => None,
    });
    by_name
        .unwrap_or(index)
        .min(routine.args.len().saturating_sub(1))
}

/// The name of the argument within the body.
pub(crate) fn named(routine: &UserFunction, at: usize) -> String {
    let name = routine.arg_names.get(at).filter(|name| !name.is_empty());
    name.cloned().unwrap_or_else(|| format!("${}", at + 1))
}
