//! Inference: which expressions are protected, and which literals are combined with them.
//!
//! Works bottom-up over the parse tree, with scopes. Each kind of node has its own file; this one
//! contains the state and the handling of conditions.

mod allow;
mod arrays;
mod as_of;
mod call;
mod cast;
mod column;
mod dml;
mod echo;
mod expr;
mod from;
mod func;
mod gather;
mod json;
mod literal;
mod meet;
mod merge;
mod mixed;
mod named;
mod opclass;
mod oper;
mod ordered_set;
mod others;
mod plain;
mod product;
mod range;
mod select;
mod sets;
mod soft;
mod window;
mod with;

use crate::authority::Authority;
use crate::edit::{Edit, Piece};
use crate::refusal::Refusal;
use crate::relation::ColumnType;
use crate::schema::{Routine, Schema};
use crate::scope::{Cols, Frame};
use crate::statement::Late;
use crate::tokens::Tokens;
use crate::value::{Class, LeafId, Leaves, Val};
use contract::TypeCode;
use pg_query::Node;
use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::rc::Rc;

pub(crate) use crate::tree::names;
pub use echo::key;
use named::NamedTarget;
pub(crate) use oper::code_of;
pub(crate) use others::{Meeting, named as named_argument};
pub(crate) use range::location;

pub(crate) type Res<T> = Result<T, Refusal>;

/// State of the inference of one statement.
pub(crate) struct Infer<'a> {
    pub sql: &'a str,
    pub tokens: &'a Tokens,
    pub schema: &'a Schema,
    pub leaves: Leaves,
    /// Edits that are already certain: casts of protected expressions, wrappers.
    pub edits: Vec<Edit>,
    /// Positions of the constants that were examined.
    pub visited: HashSet<usize>,
    /// Innermost last.
    pub scopes: Vec<Rc<Frame>>,
    /// `WITH` queries by name; `None` if not analysed yet.
    pub ctes: Vec<(String, Option<Rc<Cols>>)>,
    pub touches_protected: bool,
    pub depends_on_search_path: bool,
    pub depth: usize,
    /// Range of the statement.
    pub range: Range<usize>,
    /// It contains a function call on a row, or an error; see [`crate::Statement::unresolved`].
    pub unresolved: bool,
    /// It calls `set_config`.
    pub sets_config: bool,
    /// Types declared for parameters by `PREPARE`.
    pub declared: Vec<ColumnType>,
    /// In the body of a routine, its arguments by number.
    pub arguments: Vec<Val>,
    /// The routines whose bodies are being followed.
    pub following: Vec<Routine>,
    pub meeting: Meeting,
    /// Positions of literals that an earlier run found to be protected.
    pub forced: HashSet<usize>,
    /// Those among them that repeat a value sealed elsewhere.
    pub echoes: HashSet<usize>,
    /// One of those that is combined with something plain.
    pub torn: Option<LeafId>,
    /// Nesting depth of conditions.
    pub conditions: usize,
    /// Within an operator that compares by order.
    pub ordering: bool,
    /// The results of the query go to the client in rows, so there can be products of encodings among
    /// them.
    pub yields: bool,
    /// Output columns whose names the edits may change.
    pub named_targets: Vec<NamedTarget>,
    /// The results that the client gets ([`crate::Statement::results`]).
    pub results: Option<Vec<bool>>,
    /// [`crate::Statement::late`].
    pub late: Late,
    /// It may change something, by what it is or by what it calls.
    pub writes: bool,
    /// [`Self::results`] of the cursors that routines open ([`crate::Statement::cursors`]).
    pub cursors: Vec<Vec<bool>>,
    /// The routines that it calls, by name.
    pub called: BTreeSet<String>,
    /// Nesting depth of queries whose column names are not visible.
    pub nameless: usize,
    /// Its definitions are only authorised, not sent.
    pub authorising: bool,
    /// The permissions that the statement needs, as far as it was analysed.
    pub authority: Authority,
}

impl<'a> Infer<'a> {
    pub fn new(
        sql: &'a str,
        tokens: &'a Tokens,
        schema: &'a Schema,
        meeting: Meeting,
    ) -> Infer<'a> {
        Infer {
            sql,
            tokens,
            schema,
            leaves: Leaves::default(),
            edits: Vec::new(),
            visited: HashSet::new(),
            scopes: Vec::new(),
            ctes: Vec::new(),
            touches_protected: false,
            depends_on_search_path: false,
            depth: 0,
            range: 0..sql.len(),
            unresolved: false,
            sets_config: false,
            declared: Vec::new(),
            arguments: Vec::new(),
            following: Vec::new(),
            meeting,
            forced: HashSet::new(),
            echoes: HashSet::new(),
            torn: None,
            conditions: 0,
            ordering: false,
            yields: false,
            named_targets: Vec::new(),
            results: Some(Vec::new()),
            late: Late::Never,
            writes: false,
            cursors: Vec::new(),
            called: BTreeSet::new(),
            nameless: 0,
            authorising: false,
            authority: Authority::default(),
        }
    }

    /// Whether the value is protected, with its type if known.
    pub fn enc(&self, val: &Val) -> Option<Option<TypeCode>> {
        match val.class {
            Class::Enc(code) => Some(code),
            Class::Lit(_) | Class::Plain(_) => {
                let protected = val.leaves.iter().any(|u| self.leaves.protected(u.id));
                let code = match val.class {
                    Class::Lit(Some(code)) | Class::Plain(code) => code,
                    _ => None,
                };
                protected.then_some(code)
            }
            _ => None,
        }
    }

    /// Like [`Self::enc`], but `None` for values that consist of literals only; those are linked to
    /// what they are combined with, and typed like literals.
    pub fn enc_now(&self, val: &Val) -> Option<Option<TypeCode>> {
        if val.literal() { None } else { self.enc(val) }
    }

    /// Whether the value contains, or may contain, something protected.
    pub fn holds_enc(&self, val: &Val) -> bool {
        match &val.class {
            Class::Row(fields) => fields.iter().any(|(_, v)| self.holds_enc(v)),
            Class::Array(element) => self.holds_enc(element),
            Class::Soft(_) | Class::Unknown => true,
            _ => self.enc(val).is_some(),
        }
    }

    /// A condition, whose result is declassified.
    pub fn condition(&mut self, node: &Node) -> Res<()> {
        self.conditions += 1;
        let val = self.expr(node);
        self.conditions -= 1;
        self.truth(&val?, node)
    }

    /// Like [`Self::condition`], for a value that was already inferred.
    pub fn truth(&mut self, val: &Val, node: &Node) -> Res<()> {
        match self.enc(val) {
            None if matches!(val.class, Class::Soft(_) | Class::Unknown)
                && !self.secrets(val).is_empty() =>
            {
                Err(self.undecided(&self.secrets(val)[0], -1))
            }
            None => {
                self.note_plain(val);
                Ok(())
            }
            Some(Some(code)) if code != TypeCode::Bool => Ok(()),
            Some(_) => {
                let range = self.expr_range(node).ok_or_else(|| {
                    Refusal::unsupported(
                        "a protected boolean expression cannot be a condition here",
                    )
                    .at(location(node))
                    .hint("Write confide.is_true(…) around it.")
                })?;
                self.insert(range.start, "confide.is_true(");
                self.insert(range.end, ")");
                Ok(())
            }
        }
    }

    pub fn insert(&mut self, at: usize, text: &str) {
        self.replace(at..at, text);
    }

    pub fn replace(&mut self, range: Range<usize>, text: &str) {
        let edit = Edit {
            range,
            pieces: vec![Piece::Text(text.to_owned())],
        };
        if !self.edits.contains(&edit) {
            self.edits.push(edit);
        }
    }
}
