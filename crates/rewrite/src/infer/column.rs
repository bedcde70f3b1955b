//! Column names, whole rows, `*`, and fields and elements of values.

use super::{Infer, Res, location};
use crate::refusal::Refusal;
use crate::scope::{Cols, Frame};
use crate::value::{Class, Val};
use contract::TypeCode;
use pg_query::protobuf::{AIndirection, ColumnRef};
use pg_query::{Node, NodeEnum};
use std::rc::Rc;

const SYSTEM_COLUMNS: [&str; 6] = ["ctid", "tableoid", "xmin", "xmax", "cmin", "cmax"];

impl Infer<'_> {
    pub fn column(&mut self, c: &ColumnRef) -> Res<Val> {
        let mut path = Vec::new();
        for field in &c.fields {
            match &field.node {
                Some(NodeEnum::String(s)) => path.push(s.sval.as_str()),
                _ => {
                    self.authority.mention_all();
                    return match self.star(&path, c.location)? {
                        cols if cols.open.is_some() => Ok(cols.any()),
                        cols => Ok(Val::row(
                            cols.list.into_iter().map(|c| (c.name, c.val)).collect(),
                        )),
                    };
                }
            }
        }
        if let Some(name) = path.last() {
            self.authority.mention(name);
            if path.len() == 1 && self.scopes.iter().any(|f| f.entry(None, name).is_some()) {
                self.authority.mention_all();
            }
        }
        let found = match path.as_slice() {
            [name] => self.unqualified(name),
            [table, name] => self.qualified(None, table, name),
            [schema, table, name] | [_, schema, table, name] => {
                self.qualified(Some(schema), table, name)
            }
            _ => None,
        };
        if let Some(found) = found {
            return Ok(found);
        }
        let row = match path.as_slice() {
            [.., table, _] => self.scopes.iter().rev().find_map(|f| f.entry(None, table)),
            _ => None,
        };
        let row = row.map(crate::scope::Entry::row);
        if let (Some(row), Some(name)) = (&row, path.last())
            && let Some(val) = self.attribute(row, name, c.location)?
        {
            return Ok(val);
        }
        Err(self.no_column(&path).at(c.location).refresh())
    }

    /// `row.name` where no such column exists: a function call, if nothing protected is involved.
    fn attribute(&mut self, row: &Val, name: &str, at: i32) -> Res<Option<Val>> {
        if self.holds_enc(row) || !self.schema.functions(None, name).is_empty() {
            return Ok(None);
        }
        self.unresolved = true;
        self.plain_function(name, std::slice::from_ref(row), at)
            .map(Some)
    }

    /// PostgreSQL's error; if the table is not in scope, the error says that.
    fn no_column(&self, path: &[&str]) -> Refusal {
        match path {
            [name] => Refusal::new("42703", format!("column \"{name}\" does not exist")),
            [.., table, _] if !self.scopes.iter().any(|f| f.entry(None, table).is_some()) => {
                no_table(table)
            }
            _ => Refusal::new("42703", format!("column {} does not exist", path.join("."))),
        }
    }

    fn unqualified(&self, name: &str) -> Option<Val> {
        let mut open: Option<&Val> = None;
        for (at, frame) in self.scopes.iter().enumerate().rev() {
            let mut found: Option<&Val> = None;
            for col in frame.list.iter().filter(|col| col.name == name) {
                if found.is_none() || self.holds_enc(&col.val) {
                    found = Some(&col.val);
                }
            }
            if let Some(val) = found {
                if !self.holds_enc(val) && self.hidden(name, at) {
                    return Some(Val::unknown());
                }
                return Some(val.clone());
            }
            open = crate::scope::riskier(open, frame.open.as_ref());
        }
        if let Some(row) = self.scopes.iter().rev().find_map(|f| f.entry(None, name)) {
            return Some(row_or_value(row.row(), row));
        }
        system_column(name).or_else(|| open.cloned())
    }

    /// Of several values with the same name, which PostgreSQL finds ambiguous, a protected one.
    fn riskiest<'v>(&self, mut vals: impl Iterator<Item = &'v Val>) -> Option<&'v Val> {
        let first = vals.next()?;
        match self.holds_enc(first) {
            true => Some(first),
            false => vals.find(|val| self.holds_enc(val)).or(Some(first)),
        }
    }

    /// With a pin: whether an outer scope has a protected column of this name that could be hidden
    /// by a column added to a table in this scope.
    fn hidden(&self, name: &str, inner: usize) -> bool {
        let outer = self.scopes.iter().take(inner).flat_map(|f| &f.list);
        self.schema.pin.is_some()
            && outer
                .filter(|col| col.name == name)
                .any(|col| self.holds_enc(&col.val))
    }

    fn qualified(&self, schema: Option<&str>, table: &str, name: &str) -> Option<Val> {
        let entry = self
            .scopes
            .iter()
            .rev()
            .find_map(|f| f.entry(schema, table))?;
        let named = entry.cols.list.iter().filter(|c| c.name == name);
        if let Some(val) = self.riskiest(named.map(|c| &c.val)) {
            return Some(val.clone());
        }
        system_column(name).or_else(|| entry.cols.open.clone())
    }

    /// The columns of `*` or `t.*`.
    fn star(&self, path: &[&str], at: i32) -> Res<Cols> {
        let missing = || no_table(&path.join(".")).at(at).refresh();
        match path {
            [] => {
                let frame = self.scopes.last().ok_or_else(missing)?;
                Ok(Cols {
                    list: frame.list.clone(),
                    open: frame.open.clone(),
                })
            }
            _ => {
                let (table, schema) = path.split_last().ok_or_else(missing)?;
                let schema = schema.last().copied();
                let entry = self
                    .scopes
                    .iter()
                    .rev()
                    .find_map(|f: &Rc<Frame>| f.entry(schema, table));
                Ok((*entry.ok_or_else(missing)?.cols).clone())
            }
        }
    }

    /// The columns of a node that is `*`, `t.*` or `(expr).*`.
    pub fn star_of(&mut self, node: &Node) -> Res<Option<Cols>> {
        match &node.node {
            Some(NodeEnum::ColumnRef(c)) if is_star(c.fields.last()) => {
                self.authority.mention_all();
                let path = super::names(&c.fields);
                self.star(&path, c.location).map(Some)
            }
            Some(NodeEnum::AIndirection(i)) if is_star(i.indirection.last()) => {
                if let Some(cols) = self.row_of_table(i) {
                    self.authority.mention_all();
                    return Ok(Some(cols));
                }
                let val = self.indirection_of(node, i.indirection.len() - 1)?;
                Ok(Some(match val.row_fields() {
                    Some(fields) => Cols {
                        list: fields
                            .iter()
                            .map(|(name, val)| crate::scope::Col {
                                name: name.clone(),
                                val: val.clone(),
                                own: false,
                            })
                            .collect(),
                        open: None,
                    },
                    None if self.holds_enc(&val) => {
                        return Err(
                            Refusal::unsupported("the fields of this value are not known")
                                .at(location(node)),
                        );
                    }
                    None => Cols {
                        list: Vec::new(),
                        open: Some(val),
                    },
                }))
            }
            _ => Ok(None),
        }
    }

    /// The columns of `(t).*` if that is equivalent to `t.*`.
    fn row_of_table(&self, i: &AIndirection) -> Option<Cols> {
        let Some(NodeEnum::ColumnRef(c)) = &i.arg.as_deref()?.node else {
            return None;
        };
        let path = super::names(&c.fields);
        let [name] = path.as_slice() else { return None };
        let column = |frame: &Rc<Frame>| frame.list.iter().any(|col| col.name == *name);
        if i.indirection.len() > 1 || self.scopes.iter().any(column) {
            return None;
        }
        let entry = self.scopes.iter().rev().find_map(|f| f.entry(None, name))?;
        (entry.cols.open.is_none() && entry.cols.list.iter().any(|c| c.own))
            .then(|| (*entry.cols).clone())
    }

    pub fn indirection(&mut self, node: &Node) -> Res<Val> {
        let Some(NodeEnum::AIndirection(i)) = &node.node else {
            return Ok(Val::plain(None));
        };
        self.indirection_of(node, i.indirection.len())
    }

    fn indirection_of(&mut self, node: &Node, steps: usize) -> Res<Val> {
        let Some(NodeEnum::AIndirection(i)) = &node.node else {
            return Ok(Val::plain(None));
        };
        let Some(arg) = i.arg.as_deref() else {
            return Ok(Val::plain(None));
        };
        let mut val = self.expr(arg)?;
        // Subscripts that follow each other are of one array; one slice makes all of them slices.
        let mut array: Option<(Val, bool)> = None;
        for step in i.indirection.iter().take(steps) {
            val = match &step.node {
                Some(NodeEnum::String(s)) => {
                    array = None;
                    self.field(&val, &s.sval, location(node))?
                }
                Some(NodeEnum::AIndices(indices)) => {
                    let (of, sliced) = array.take().unwrap_or((val, false));
                    let sliced = sliced || indices.is_slice;
                    self.no_array(&of, location(node))?;
                    for bound in [indices.lidx.as_deref(), indices.uidx.as_deref()] {
                        if let Some(bound) = self.maybe(bound)? {
                            self.note_plain(&bound);
                        }
                    }
                    let found = match sliced {
                        true => of.clone(),
                        false => self.subscripted(&of),
                    };
                    array = matches!(of.class, Class::Array(_)).then_some((of, sliced));
                    found
                }
                _ => {
                    return Err(
                        Refusal::unsupported("this reference to a field is not supported")
                            .at(location(node)),
                    );
                }
            };
        }
        Ok(val)
    }

    fn field(&mut self, val: &Val, name: &str, at: i32) -> Res<Val> {
        match &val.class {
            Class::Row(fields) => {
                match self.riskiest(fields.iter().filter(|(n, _)| n == name).map(|(_, v)| v)) {
                    Some(field) => Ok(field.clone()),
                    None => self.attribute(val, name, at)?.ok_or_else(|| {
                        let text = format!("column \"{name}\" does not exist");
                        Refusal::new("42703", text).at(at).refresh()
                    }),
                }
            }
            Class::Plain(_) | Class::Lit(_) if !self.holds_enc(val) => Ok(Val {
                class: Class::Plain(None),
                leaves: val.leaves.clone(),
            }),
            _ => Ok(Val::unknown_of([val])),
        }
    }

    /// PostgreSQL has subscripts of documents. A key would be sent as it is, to be refused there.
    fn no_array(&self, val: &Val, at: i32) -> Res<()> {
        match self.enc(val) {
            Some(Some(TypeCode::Json | TypeCode::Jsonb)) => Err(Refusal::unsupported(
                "subscripts of protected documents are not supported",
            )
            .at(at)
            .hint("Write -> or #> with the keys.")),
            Some(Some(code)) if matches!(val.class, Class::Enc(_)) => Err(Refusal::new(
                "42804",
                format!(
                    "cannot subscript type {} because it does not support subscripting",
                    code.enc_name()
                ),
            )
            .at(at)),
            _ => Ok(()),
        }
    }

    fn subscripted(&mut self, val: &Val) -> Val {
        match &val.class {
            Class::Array(element) => (**element).clone(),
            Class::Plain(_) | Class::Lit(_) if !self.holds_enc(val) => Val {
                class: Class::Plain(None),
                leaves: val.leaves.clone(),
            },
            _ => Val::unknown_of([val]),
        }
    }
}

/// A function in `FROM` with one column has the name of its column: the name alone means the value,
/// not a row.
fn row_or_value(row: Val, entry: &crate::scope::Entry) -> Val {
    match entry.cols.list.as_slice() {
        [only] if only.name == entry.alias => only.val.clone(),
        _ => row,
    }
}

fn no_table(name: &str) -> Refusal {
    Refusal::new(
        "42P01",
        format!("missing FROM-clause entry for table \"{name}\""),
    )
}

fn system_column(name: &str) -> Option<Val> {
    SYSTEM_COLUMNS.contains(&name).then(|| Val::plain(None))
}

fn is_star(node: Option<&Node>) -> bool {
    matches!(node.and_then(|n| n.node.as_ref()), Some(NodeEnum::AStar(_)))
}
