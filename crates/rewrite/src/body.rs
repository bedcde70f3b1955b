//! What the body of a routine does with its arguments: if one of a plain type is combined with
//! something protected there, calls would send its values in the clear (`SELECT f('x')`), so
//! creating the routine is refused. The same holds for constants combined with something protected
//! (`constants`).
//!
//! SQL bodies are parsed as a whole, PL/pgSQL bodies expression by expression, until no further
//! variable is found to which a protected value is assigned.
//!
//! Strings that are executed and other languages are not examined.

mod constants;
mod cursors;
mod declared;
pub(crate) mod definition;
mod place;
mod refusals;
pub(crate) mod sealed;
pub(crate) mod trigger;

use crate::infer::{Infer, Meeting, Res};
use crate::refusal::Refusal;
use crate::relation::ColumnType;
use crate::schema::{Routine, Schema};
use crate::scope::{Col, Cols, Entry, Frame};
use crate::tokens::{Tokens, identifier};
use crate::value::{Class, LeafKind, Use, Val};
use contract::TypeCode;
use pg_query::NodeEnum;
use pg_query::protobuf::Token;
use place::Place;
pub(crate) use refusals::{refuse_argument, refuse_constants};
use sealed::Sealed;
use serde_json::Value;
use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;

/// A named value of the routine: an argument or a variable.
pub(crate) struct Variable {
    pub name: String,
    /// `None`: a record, whose fields may be anything.
    pub ty: Option<ColumnType>,
    pub argument: bool,
}

impl Variable {
    pub fn argument(name: String, ty: ColumnType) -> Variable {
        Variable {
            name,
            ty: Some(ty).filter(|ty| !matches!(ty, ColumnType::Opaque(..))),
            argument: true,
        }
    }
}

/// An expression or statement of a body, and the variable that it is assigned to.
#[derive(Default)]
struct Piece {
    sql: String,
    target: Option<String>,
    /// It provides the result of the routine.
    result: bool,
    /// Its value may be assigned to variables.
    flows: bool,
    /// Its value is used where it is not examined.
    loose: bool,
    /// It is the query of a cursor.
    cursor: bool,
}

/// What was found about the constants of a piece.
#[derive(Default)]
struct Followed {
    /// One is combined with something protected, and cannot be sealed.
    meets: bool,
    /// Those that are combined with something protected, and can.
    sealed: Sealed,
    /// One was not examined.
    unseen: bool,
    /// One that is not sealed is part of the result of the piece.
    given: bool,
    /// The plain variables contained in the result.
    brought: Vec<String>,
}

/// A whole routine, as far as it matters here.
pub(crate) struct Body<'a> {
    pub schema: &'a Schema,
    pub variables: Vec<Variable>,
    pub result: Option<ColumnType>,
    /// The routines whose bodies are being followed.
    pub following: Vec<Routine>,
    /// It names something protected and has constants.
    pub judged: bool,
    text: String,
    /// It belongs to a trigger: NEW and OLD are rows of any table.
    trigger: bool,
    meeting: Meeting,
    pieces: Vec<Piece>,
    /// The messages of RAISE.
    messages: Vec<String>,
}

impl<'a> Body<'a> {
    fn new(schema: &'a Schema, text: &str, meeting: Meeting) -> Body<'a> {
        Body {
            schema,
            variables: Vec::new(),
            result: None,
            following: Vec::new(),
            judged: false,
            text: text.to_owned(),
            trigger: false,
            meeting,
            pieces: Vec::new(),
            messages: Vec::new(),
        }
    }

    pub fn of_sql(schema: &'a Schema, text: &str, meeting: Meeting) -> Body<'a> {
        let piece = Piece {
            sql: text.to_owned(),
            result: true,
            ..Piece::default()
        };
        Body {
            pieces: vec![piece],
            ..Body::new(schema, text, meeting)
        }
    }

    /// `create` is the whole statement, `text` the body in it. Returns `None` if it cannot be
    /// parsed.
    pub fn of_plpgsql(
        schema: &'a Schema,
        create: &str,
        text: &str,
        meeting: Meeting,
    ) -> Option<Body<'a>> {
        let tree = pg_query::parse_plpgsql(create).ok()?;
        let mut body = Body::new(schema, text, meeting);
        body.walk(&tree, Place::default());
        body.declared(text);
        Some(body)
    }

    fn walk(&mut self, node: &Value, place: Place) {
        match node {
            Value::Array(items) => items.iter().for_each(|item| self.walk(item, place)),
            Value::Object(fields) => {
                for (key, value) in fields {
                    match key.as_str() {
                        "PLpgSQL_expr" => self.expression(value, place),
                        "PLpgSQL_var" => self.variable(value),
                        "PLpgSQL_rec" | "PLpgSQL_row" => self.record(value),
                        "PLpgSQL_stmt_fori" => self.counted(value),
                        "PLpgSQL_stmt_case" if self.chosen(value) => {}
                        _ => self.walk(value, place.within(key, value)),
                    }
                }
            }
            _ => {}
        }
        if let Some(said) = node.get("PLpgSQL_stmt_raise") {
            let message = said.get("message").and_then(Value::as_str);
            self.messages.extend(message.map(str::to_owned));
        }
    }

    /// A loop over integers: its bounds go into its variable.
    fn counted(&mut self, statement: &Value) {
        let variable = statement.pointer("/var/PLpgSQL_var/refname");
        let variable = variable.and_then(Value::as_str).map(str::to_owned);
        for bound in ["lower", "upper", "step"] {
            let before = self.pieces.len();
            let flows = variable.is_none();
            if let Some(value) = statement.get(bound) {
                self.walk(
                    value,
                    Place {
                        flows,
                        ..Place::default()
                    },
                );
            }
            for piece in self.pieces.iter_mut().skip(before) {
                piece.target.clone_from(&variable);
            }
        }
        if let Some(body) = statement.get("body") {
            self.walk(body, Place::default());
        }
    }

    fn expression(&mut self, node: &Value, place: Place) {
        let Some(text) = node.get("query").and_then(Value::as_str) else {
            return;
        };
        let Place {
            result,
            loose,
            flows,
            cursor,
        } = place;
        if pg_query::parse(text, 0).is_ok() {
            self.pieces.push(Piece {
                sql: text.to_owned(),
                target: None,
                result,
                flows: true,
                loose,
                cursor,
            });
            return;
        }
        let assigned = text.split_once(":=").or_else(|| text.split_once('='));
        let name = |t: &str| {
            let t = t.trim();
            let word = t
                .chars()
                .all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'));
            word.then(|| t.to_lowercase())
        };
        let (target, sql) = match assigned.map(|(t, e)| (name(t), e)) {
            Some((Some(target), expr))
                if pg_query::parse(&format!("SELECT {text}"), 0).is_err()
                    || text.contains(":=") =>
            {
                (Some(target), expr)
            }
            _ => (None, text),
        };
        self.pieces.push(Piece {
            sql: format!("SELECT {sql}"),
            target,
            result,
            flows,
            loose,
            cursor: false,
        });
    }

    fn variable(&mut self, node: &Value) {
        let Some(name) = node.get("refname").and_then(Value::as_str) else {
            return;
        };
        let named = node.pointer("/datatype/PLpgSQL_type/typname");
        let typname = named.and_then(Value::as_str).unwrap_or_default();
        let ty = self.named_type(typname);
        self.variables.push(Variable {
            name: name.to_owned(),
            ty,
            argument: false,
        });
        let default = node.get("default_val").and_then(|d| d.get("PLpgSQL_expr"));
        if let Some(default) = default {
            let before = self.pieces.len();
            self.expression(default, Place::default());
            for piece in self.pieces.iter_mut().skip(before) {
                piece.target.get_or_insert(name.to_owned());
            }
        }
        if let Some(cursor) = node.get("cursor_explicit_expr") {
            let place = Place {
                cursor: true,
                ..Place::default()
            };
            self.walk(cursor, place);
        }
    }

    fn record(&mut self, node: &Value) {
        if let Some(name) = node.get("refname").and_then(Value::as_str) {
            self.variables.push(Variable {
                name: name.to_owned(),
                ty: None,
                argument: false,
            });
        }
    }

    /// A type as named by PL/pgSQL's parser.
    fn named_type(&self, name: &str) -> Option<ColumnType> {
        let name = name.to_lowercase();
        if let Some(column) = name.strip_suffix("%type") {
            return self.type_of_column(column);
        }
        let name = name.trim_start_matches("pg_catalog.");
        let base: &str = name.split('(').next().unwrap_or(name).trim();
        if let Some(code) = TypeCode::from_protected_name(base) {
            return Some(ColumnType::Enc(code));
        }
        let odd = base.contains('%') || self.schema.protected_type(None, base).is_some();
        (!odd).then(|| ColumnType::Plain(0, base.to_owned()))
    }

    /// Adds the routine's arguments. Variables of the body come last, since they hide the
    /// arguments.
    pub fn declare_all(&mut self, arguments: Vec<Variable>) {
        let named: Vec<String> = arguments.iter().map(|a| a.name.clone()).collect();
        self.variables.retain(|v| !named.contains(&v.name));
        let inner = std::mem::replace(&mut self.variables, arguments);
        self.variables.extend(inner);
    }

    /// The plain variables that are combined with something protected, and those in pieces that
    /// cannot be followed.
    pub fn meeting(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for _ in 0..=self.variables.len() {
            let before = found.len();
            for piece in &self.pieces {
                if self.follow(piece, &mut found).is_err() {
                    found.extend(self.variables_in(piece));
                }
            }
            if found.len() == before {
                break;
            }
        }
        found
    }

    fn variables_in(&self, piece: &Piece) -> Vec<String> {
        let Ok(tokens) = Tokens::scan(&piece.sql) else {
            return self.variables.iter().map(|v| v.name.clone()).collect();
        };
        let mut at = 0..tokens.len();
        let numbered = at.clone().any(|at| tokens.kind(at) == Token::Param);
        let names: BTreeSet<String> = at
            .by_ref()
            .map(|at| identifier(&piece.sql[tokens.range(at)]).into_owned())
            .collect();
        let within = |v: &&Variable| numbered && v.argument || names.contains(&v.name);
        let within = self.variables.iter().filter(within);
        within.map(|v| v.name.clone()).collect()
    }

    /// Fails if the routine must be refused. Returns the constants to be sealed.
    pub fn check(&self) -> Res<Sealed> {
        let mut found: BTreeSet<String> = BTreeSet::new();
        let mut sealing = false;
        for _ in 0..=self.variables.len() {
            let before = found.len();
            for piece in &self.pieces {
                sealing |= self.look(piece, &mut found)?;
            }
            if let Some(argument) = self
                .variables
                .iter()
                .find(|v| v.argument && found.contains(&v.name))
            {
                return Err(refuse_argument(&argument.name));
            }
            if found.len() == before {
                break;
            }
        }
        match self.judged || sealing {
            true => self.judge(&found),
            false => Ok(Sealed::default()),
        }
    }

    /// Adds the plain variables that are combined with something protected in this piece. Refuses
    /// constants that are and cannot be sealed, and pieces that cannot be followed and may contain
    /// some. Returns whether there are constants to be sealed.
    fn look(&self, piece: &Piece, found: &mut BTreeSet<String>) -> Res<bool> {
        // PostgreSQL will report the error.
        if pg_query::parse(&piece.sql, 0).is_err() {
            return Ok(false);
        }
        match self.follow(piece, found) {
            Ok(followed) if followed.meets => Err(refuse_constants(-1)),
            // A plain variable that meets something protected cannot take a sealed constant.
            Ok(Followed { sealed, .. }) if !sealed.is_empty() && !found.is_empty() => {
                Err(refuse_constants(-1))
            }
            Ok(followed) => Ok(!followed.sealed.is_empty()),
            Err(refusal) => match self.matters(&piece.sql, &Tokens::scan(&piece.sql)?) {
                true => Err(refusal.for_good()),
                false => Ok(false),
            },
        }
    }

    /// Like `look`; returns what was found about the constants. An error means that the piece
    /// cannot be followed.
    fn follow(&self, piece: &Piece, found: &mut BTreeSet<String>) -> Res<Followed> {
        let unread = |_| Refusal::new("42601", "syntax error in the body of a routine");
        let parsed = pg_query::parse(&piece.sql, 0).map_err(unread)?;
        let tokens = Tokens::scan(&piece.sql)?;
        let mut infer = Infer::new(&piece.sql, &tokens, self.schema, self.meeting);
        infer.following.clone_from(&self.following);
        let leaves = self.declare(&mut infer, found);
        let mut cols = Ok(Cols::default());
        for raw in &parsed.protobuf.stmts {
            let Some(node) = raw.stmt.as_deref() else {
                continue;
            };
            cols = match &node.node {
                Some(
                    NodeEnum::SelectStmt(_)
                    | NodeEnum::InsertStmt(_)
                    | NodeEnum::UpdateStmt(_)
                    | NodeEnum::DeleteStmt(_)
                    | NodeEnum::MergeStmt(_),
                ) => infer.query_node(node),
                _ => Ok(Cols::default()),
            };
            if cols.is_err() {
                break;
            }
        }
        let cols = cols?;
        if let Some(target) = self.target(piece, found) {
            let mut first = cols.list.iter().take(1);
            first.try_for_each(|c| infer.assign(&target, &c.val, -1))?;
        }
        for (name, id) in &leaves {
            if infer.leaves.protected(*id) {
                found.insert(name.clone());
            }
        }
        let secret =
            |u: &Use| is_constant(&infer.leaves.get(u.id).kind) && !infer.leaves.protected(u.id);
        let given = |c: &Col| c.val.all_leaves().iter().any(secret);
        let brought = |c: &Col| {
            let uses = c.val.all_leaves().into_iter();
            let names = uses.filter_map(|u| match &infer.leaves.get(u.id).kind {
                LeafKind::Argument(name) => Some(name.clone()),
                _ => None,
            });
            names.collect::<Vec<String>>()
        };
        let unseen = |(token, range): (Token, Range<usize>)| {
            token != Token::Param && !infer.visited.contains(&range.start)
        };
        let sealed = Sealed::of(&infer, &piece.sql, &tokens);
        Ok(Followed {
            meets: sealed.is_none(),
            sealed: sealed.unwrap_or_default(),
            unseen: tokens.values(&(0..piece.sql.len())).any(unseen),
            given: cols.list.iter().any(given),
            brought: cols.list.iter().flat_map(brought).collect(),
        })
    }

    /// The target of the piece's value, if it is protected.
    fn target(&self, piece: &Piece, found: &BTreeSet<String>) -> Option<Val> {
        if let Some(ColumnType::Enc(code)) = self.result.as_ref().filter(|_| piece.result) {
            return Some(Val::enc(Some(*code)));
        }
        let name = piece.target.as_ref()?;
        if let Some(field) = self.field_of_trigger(name) {
            return self.column_of_any(field);
        }
        let variable = self.variables.iter().rev().find(|v| v.name == *name)?;
        match &variable.ty {
            Some(ColumnType::Enc(code)) => Some(Val::enc(Some(*code))),
            _ if found.contains(name) => Some(Val::enc(None)),
            _ => None,
        }
    }

    /// Whether a piece that cannot be followed matters, because it may use an argument or a
    /// constant.
    fn matters(&self, sql: &str, tokens: &Tokens) -> bool {
        let mut words = (0..tokens.len())
            .filter(|i| tokens.is_name(*i))
            .map(|i| identifier(&sql[tokens.range(i)]));
        let plain = |name: &str| {
            let named = self
                .variables
                .iter()
                .filter(|v| v.argument && v.name == name);
            named
                .into_iter()
                .any(|v| v.ty.as_ref().is_some_and(|t| !t.protected()))
        };
        let constant = tokens.values(&(0..sql.len())).any(|(token, _)| {
            token != Token::Param || self.variables.iter().any(|v| v.argument && plain(&v.name))
        });
        constant || words.any(|word| plain(&word))
    }

    /// Adds the variables to the scope; returns the leaves of the plain ones.
    fn declare(&self, infer: &mut Infer<'_>, found: &BTreeSet<String>) -> Vec<(String, usize)> {
        let mut leaves = Vec::new();
        let mut frame = Frame {
            open: Some(Val::plain(None)),
            ..Frame::default()
        };
        if self.trigger {
            frame.entries.extend(self.rows_of_trigger());
        }
        for variable in self.variables.iter().filter(|v| !self.is_row(v)) {
            let val = match &variable.ty {
                None => Val::unknown(),
                Some(ty) if ty.protected() => infer.value_of(ty),
                Some(ty) => {
                    let id = infer
                        .leaves
                        .add(0..0, LeafKind::Argument(variable.name.clone()));
                    if found.contains(&variable.name) {
                        infer.leaves.protect(id);
                    }
                    leaves.push((variable.name.clone(), id));
                    let code = match infer.value_of(ty).class {
                        Class::Plain(code) => code,
                        _ => None,
                    };
                    Val {
                        class: Class::Lit(Some(code)),
                        leaves: vec![Use { id, block: None }],
                    }
                }
            };
            if variable.argument {
                infer.arguments.push(val.clone());
            }
            if variable.ty.is_none() {
                let cols = Cols {
                    list: Vec::new(),
                    open: Some(Val::unknown()),
                };
                frame.entries.push(Entry {
                    alias: variable.name.clone(),
                    schema: None,
                    cols: Rc::new(cols),
                });
            }
            frame.list.push(Col {
                name: variable.name.clone(),
                val,
                own: false,
            });
        }
        infer.scopes.push(Rc::new(frame));
        leaves
    }
}

fn is_constant(kind: &LeafKind) -> bool {
    use LeafKind::{Never, Str, Typed, Written};
    matches!(kind, Str(..) | Typed(..) | Written(..) | Never(_))
}
