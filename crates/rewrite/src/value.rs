//! What inference knows of an expression, and the literals that it is made of.
//!
//! A [`Val`] is a class and the *leaves* (literals, parameters, casts between
//! them) that would have to change if the expression met something protected.
//! Leaves that meet each other are united (union-find): when one of a group
//! meets something protected later on, all of them become protected.

use contract::TypeCode;
use contract::soft::Column;
use std::ops::Range;
use std::rc::Rc;

pub(crate) type LeafId = usize;

/// What a literal is.
#[derive(Clone)]
pub(crate) enum LeafKind {
    /// A string, with the code of the type that a cast right on it says.
    Str(Vec<u8>, Option<TypeCode>),
    /// Read by the client with this type and modifier; in the text it becomes
    /// an envelope with a cast to the twin.
    Typed(TypeCode, i32, Vec<u8>),
    /// `$n`, with the code of the type that a cast right on it says.
    Param(u32, Option<TypeCode>),
    /// An argument or variable of a plain type, in the body of a routine.
    Argument(String),
    /// NULL: it stays, but what it meets is linked by it.
    Null,
    /// The type name in a cast: its twin as text, if it has one.
    Cast(Option<String>),
    /// A part of the grammar that is written otherwise where its operands are protected:
    /// text, a value that is sealed, text.
    Written(String, TypeCode, &'static str, String),
    /// A literal that cannot be put into an envelope, and why.
    Never(&'static str),
}

/// For which column of the family `soft_` a leaf is encoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Soft {
    pub column: Column,
    /// To be stored there, not only compared.
    pub store: bool,
}

pub(crate) struct Leaf {
    pub range: Range<usize>,
    pub kind: LeafKind,
    /// When protected, a string or parameter needs a cast to this type's twin:
    /// what it meets would not give it one.
    pub typed: Option<TypeCode>,
    /// An untyped string takes this type from what it meets, for sure.
    pub meets: Option<TypeCode>,
    /// It is an array (`'{…}'`, `= ANY ($1)`), of elements of this type if known.
    pub array: Option<Option<TypeCode>>,
    /// It has met something plain.
    pub met_plain: bool,
    /// It went, not protected then, into something that takes plain values only.
    pub passed: bool,
    /// And that has a plain operand beside it.
    pub beside_plain: bool,
    /// What it meets would as well be compared with its envelope.
    pub comparable: bool,
    /// Nothing of it is asked but whether it is NULL: it may be of any type.
    pub any_type: bool,
    /// It stands in a condition, not in what a query gives.
    pub tested: bool,
    /// What the inference does depends on its value.
    pub looked_at: bool,
    /// It is encoded for this column.
    pub soft: Option<Soft>,
    parent: LeafId,
    protected: bool,
}

impl Leaf {
    /// There is a value in it, not only a type or NULL.
    pub fn holds_value(&self) -> bool {
        !matches!(
            self.kind,
            LeafKind::Null | LeafKind::Cast(_) | LeafKind::Written(..)
        )
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

    /// Shortens the ways to the roots, so that long lists stay cheap.
    pub fn compress(&mut self, id: LeafId) {
        let root = self.root(id);
        self.list[id].parent = root;
    }
}

/// Why a leaf cannot become protected where it stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Block {
    /// It is an argument of something that works on plain values only: refused
    /// when the expression has nothing else, else it met plain values already.
    PlainFunction,
    /// It is an argument of a function that may give it back: refused, whatever else the function takes.
    Argument,
    /// As `Argument`, of a function whose numbers say how many: these are passed.
    Counted,
    /// It stands beside a plain expression of which it takes the type: refused.
    BesidePlain,
}

/// A leaf in an expression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Use {
    pub id: LeafId,
    pub block: Option<Block>,
}

/// What is known of a value's protection.
#[derive(Clone, Debug)]
pub(crate) enum Class {
    /// Plain; with the type if it is one that has a twin.
    Plain(Option<TypeCode>),
    /// Protected; with the type if it is known.
    Enc(Option<TypeCode>),
    /// Made of literals only, which have no type yet (`None`), or one.
    Lit(Option<Option<TypeCode>>),
    /// A row of named values.
    Row(Rc<Vec<(String, Val)>>),
    /// An array of such elements.
    Array(Rc<Val>),
    /// A column of encodings, which only a literal for this column may meet.
    Soft(Column),
    /// It may contain something protected, we cannot say what. Its leaves are all
    /// the literals that are in it: none may be lost on the way to what it meets.
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

    /// Unknown, with the literals of all that it may be made of.
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

    /// A literal without a type of its own: a string, a parameter, NULL.
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

    /// The leaves with this block on those that have none yet.
    pub fn blocked(&self, block: Block) -> Vec<Use> {
        self.leaves
            .iter()
            .map(|u| Use {
                block: u.block.or(Some(block)),
                ..*u
            })
            .collect()
    }

    /// All leaves, those in rows and arrays, too.
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
