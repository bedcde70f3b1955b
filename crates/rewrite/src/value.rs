//! What the inference knows about an expression, and its literals.
//!
//! A [`Val`] consists of a class and the *leaves* (literals, parameters, casts between them) that
//! would have to change if the expression were combined with something protected. Leaves that are
//! combined with each other are united (union-find): if one of a group is later combined with
//! something protected, all of them become protected.

use crate::fit::{Fit, widens};
use contract::TypeCode;
use contract::soft::{Column, Purpose};
use std::ops::Range;
use std::rc::Rc;

pub(crate) type LeafId = usize;

/// The kind of a literal.
#[derive(Clone)]
pub(crate) enum LeafKind {
    /// A string, with the type of a cast applied directly to it.
    Str(Vec<u8>, Option<TypeCode>),
    /// Read by the client with this type and modifier; in the text it becomes an envelope with a
    /// cast to the protected counterpart.
    Typed(TypeCode, i32, Vec<u8>),
    /// `$n`, with the type of a cast applied directly to it.
    Param(u32, Option<TypeCode>),
    /// An argument or variable of a plain type in the body of a routine.
    Argument(String),
    /// NULL: it does not change, but links what it is combined with.
    Null,
    /// The type name in a cast: the text of its protected counterpart, if any.
    Cast(Option<String>),
    /// A piece of grammar that is written differently if its operands are protected: text, a sealed
    /// value, text.
    Written(String, TypeCode, &'static str, String),
    /// A literal that cannot be put into an envelope, and the reason.
    Never(&'static str),
}

/// The column of the family `soft_` for which a leaf is encoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Soft {
    pub column: Column,
    pub purpose: Purpose,
}

pub(crate) struct Leaf {
    pub range: Range<usize>,
    pub kind: LeafKind,
    /// If protected, a string or parameter needs a cast to this type's counterpart, because the
    /// context would not determine it.
    pub typed: Option<TypeCode>,
    /// The type that an untyped string certainly takes from its context.
    pub meets: Option<TypeCode>,
    /// It is an array (`'{...}'`, `= ANY ($1)`), with elements of this type if known.
    pub array: Option<Option<TypeCode>>,
    /// It was combined with something plain.
    pub met_plain: bool,
    /// It was passed, while unprotected, to something that takes plain values only.
    pub passed: bool,
    /// ... which also has a plain operand.
    pub beside_plain: bool,
    /// What it is compared with could also be compared with its envelope.
    pub comparable: bool,
    /// It is only tested for NULL, so it may have any type.
    pub any_type: bool,
    /// It is in a condition, not in the output of a query.
    pub tested: bool,
    /// The inference depends on its value.
    pub looked_at: bool,
    /// The column that it is encoded for.
    pub soft: Option<Soft>,
    /// The column that it is assigned to as it is.
    pub fits: Option<Fit>,
    parent: LeafId,
    protected: bool,
}

impl Leaf {
    /// Whether it has a value, not just a type or NULL.
    pub fn holds_value(&self) -> bool {
        !matches!(
            self.kind,
            LeafKind::Null | LeafKind::Cast(_) | LeafKind::Written(..)
        )
    }

    /// The column that it is assigned to, if it gets no other type on its way, or a constant one by a cast
    /// that cannot fail.
    pub fn fit(&self) -> Option<Fit> {
        let fit = self.fits.filter(|_| self.array.is_none())?;
        let same = |code: Option<TypeCode>| code.is_none_or(|code| code == fit.code);
        let said = match &self.kind {
            LeafKind::Str(_, said) | LeafKind::Param(_, said) => *said,
            LeafKind::Typed(code, -1, _) if widens(*code, fit.code) => None,
            LeafKind::Typed(code, -1, _) => Some(*code),
            _ => return None,
        };
        (same(said) && same(self.typed)).then_some(fit)
    }
}

/// All leaves of a text.
#[derive(Default)]
pub(crate) struct Leaves {
    list: Vec<Leaf>,
}

impl Leaves {
    pub fn add(&mut self, range: Range<usize>, kind: LeafKind) -> LeafId {
        let id = self.list.len();
        self.list.push(Leaf {
            range,
            kind,
            typed: None,
            meets: None,
            array: None,
            met_plain: false,
            passed: false,
            beside_plain: false,
            comparable: false,
            any_type: false,
            tested: false,
            looked_at: false,
            soft: None,
            fits: None,
            parent: id,
            protected: false,
        });
        id
    }

    pub fn len(&self) -> usize {
        self.list.len()
    }

    pub fn get(&self, id: LeafId) -> &Leaf {
        &self.list[id]
    }

    pub fn get_mut(&mut self, id: LeafId) -> &mut Leaf {
        &mut self.list[id]
    }

    pub fn root(&self, mut id: LeafId) -> LeafId {
        while self.list[id].parent != id {
            id = self.list[id].parent;
        }
        id
    }

    pub fn protected(&self, id: LeafId) -> bool {
        self.list[self.root(id)].protected
    }

    pub fn protect(&mut self, id: LeafId) {
        let root = self.root(id);
        self.list[root].protected = true;
    }

    pub fn unite(&mut self, a: LeafId, b: LeafId) {
        let (a, b) = (self.root(a), self.root(b));
        if a != b {
            let protected = self.list[a].protected || self.list[b].protected;
            let (low, high) = (a.min(b), a.max(b));
            self.list[high].parent = low;
            self.list[low].protected = protected;
        }
    }

    /// Unites all leaves of the uses.
    pub fn unite_all(&mut self, uses: &[Use]) {
        for pair in uses.windows(2) {
            self.unite(pair[0].id, pair[1].id);
        }
    }

    /// Path compression, which keeps long lists cheap.
    pub fn compress(&mut self, id: LeafId) {
        let root = self.root(id);
        self.list[id].parent = root;
    }
}

/// Why a leaf cannot become protected in its position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Block {
    /// It is an argument of something that supports plain values only: refused if the expression
    /// contains nothing else; otherwise it was already combined with plain values.
    PlainFunction,
    /// It is an argument of a function that may return it: refused, whatever else the function
    /// takes.
    Argument,
    /// Like `Argument`, for a function whose numeric arguments are counts; these are passed.
    Counted,
    /// It takes its type from a plain expression next to it: refused.
    BesidePlain,
}

/// A leaf in an expression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Use {
    pub id: LeafId,
    pub block: Option<Block>,
}

/// The protection of a value.
#[derive(Clone, Debug)]
pub(crate) enum Class {
    /// Plain; with the type if it has a protected counterpart.
    Plain(Option<TypeCode>),
    /// Protected; with the type if it is known.
    Enc(Option<TypeCode>),
    /// Consists of literals only, which have no type yet (`None`), or one.
    Lit(Option<Option<TypeCode>>),
    /// A row of named values.
    Row(Rc<Vec<(String, Val)>>),
    /// An array with such elements.
    Array(Rc<Val>),
    /// A column of encodings, which can be combined only with a literal for this column.
    Soft(Column),
    /// It may contain something protected, but it is unknown what. Its leaves are all literals in
    /// it; none may be lost.
    Unknown,
}

/// A value.
#[derive(Clone, Debug)]
pub(crate) struct Val {
    pub class: Class,
    pub leaves: Vec<Use>,
}

impl Val {
    pub fn of(class: Class) -> Val {
        Val {
            class,
            leaves: Vec::new(),
        }
    }

    pub fn plain(code: Option<TypeCode>) -> Val {
        Val::of(Class::Plain(code))
    }

    pub fn boolean() -> Val {
        Val::plain(Some(TypeCode::Bool))
    }

    pub fn enc(code: Option<TypeCode>) -> Val {
        Val::of(Class::Enc(code))
    }

    pub fn unknown() -> Val {
        Val::of(Class::Unknown)
    }

    /// Unknown, with the literals of everything that it may consist of.
    pub fn unknown_of<'v>(vals: impl IntoIterator<Item = &'v Val>) -> Val {
        Val {
            class: Class::Unknown,
            leaves: vals.into_iter().flat_map(Val::all_leaves).collect(),
        }
    }

    pub fn row(fields: Vec<(String, Val)>) -> Val {
        Val::of(Class::Row(Rc::new(fields)))
    }

    pub fn array(element: Val) -> Val {
        Val::of(Class::Array(Rc::new(element)))
    }

    pub fn leaf(id: LeafId, code: Option<Option<TypeCode>>) -> Val {
        Val {
            class: Class::Lit(code),
            leaves: vec![Use { id, block: None }],
        }
    }

    /// A literal without a type: a string, a parameter, NULL.
    pub fn bare(&self) -> bool {
        matches!(self.class, Class::Lit(None))
    }

    pub fn literal(&self) -> bool {
        matches!(self.class, Class::Lit(_))
    }

    pub fn row_fields(&self) -> Option<Rc<Vec<(String, Val)>>> {
        match &self.class {
            Class::Row(fields) => Some(fields.clone()),
            _ => None,
        }
    }

    /// The leaves, with this block on those that have none yet.
    pub fn blocked(&self, block: Block) -> Vec<Use> {
        self.leaves
            .iter()
            .map(|u| Use {
                block: u.block.or(Some(block)),
                ..*u
            })
            .collect()
    }

    /// All leaves, including those in rows and arrays.
    pub fn all_leaves(&self) -> Vec<Use> {
        let mut uses = self.leaves.clone();
        match &self.class {
            Class::Row(fields) => fields.iter().for_each(|(_, v)| uses.extend(v.all_leaves())),
            Class::Array(element) => uses.extend(element.all_leaves()),
            _ => {}
        }
        uses
    }
}
