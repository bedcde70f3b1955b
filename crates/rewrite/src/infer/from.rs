//! `FROM`: tables, subqueries, functions, joins.

use super::{Infer, Res, names};
use crate::refusal::Refusal;
use crate::relation::{LEDGER_COLUMNS, Relation};
use crate::scope::{Col, Cols, Entry, Frame};
use crate::value::{Block, Class, Val};
use pg_query::protobuf::{
    Alias, JoinExpr, JoinType, RangeFunction, RangeSubselect, RangeTableFunc, RangeTableSample,
    RangeVar,
};
use pg_query::{Node, NodeEnum};
use std::rc::Rc;

impl Infer<'_> {
    pub fn tables(&mut self, nodes: &[Node]) -> Res<Frame> {
        self.tables_after(Frame::default(), nodes)
    }

    /// FROM items that follow those in `frame`, which `LATERAL` items can refer to.
    pub fn tables_after(&mut self, mut frame: Frame, nodes: &[Node]) -> Res<Frame> {
        for node in nodes {
            let item = self.item(node, &frame)?;
            frame.join(&item);
        }
        Ok(frame)
    }

    fn item(&mut self, node: &Node, beside: &Frame) -> Res<Frame> {
        match &node.node {
            Some(NodeEnum::RangeVar(r)) => self.table(r).map(Frame::of),
            Some(NodeEnum::RangeSubselect(s)) => self.subselect(s, beside),
            Some(NodeEnum::RangeFunction(f)) => {
                self.lateral(beside, true, |infer| match infer.as_of(f)? {
                    Some(frame) => Ok(frame),
                    None => infer.table_function(f),
                })
            }
            Some(NodeEnum::JoinExpr(j)) => self.join(j, beside),
            Some(NodeEnum::RangeTableSample(t)) => self.sample(t, beside),
            Some(NodeEnum::RangeTableFunc(t)) => {
                self.lateral(beside, true, |infer| infer.xml_table(t))
            }
            _ => Err(Refusal::unsupported("this item of FROM is not supported")
                .at(super::location(node))),
        }
    }

    fn lateral(
        &mut self,
        beside: &Frame,
        lateral: bool,
        inner: impl FnOnce(&mut Self) -> Res<Frame>,
    ) -> Res<Frame> {
        if !lateral {
            return inner(self);
        }
        self.scopes.push(Rc::new(beside.clone()));
        let result = inner(self);
        self.scopes.pop();
        result
    }

    /// A table, view or `WITH` query by name.
    pub fn table(&mut self, r: &RangeVar) -> Res<Entry> {
        let alias = r.alias.as_ref();
        let name = alias.map_or(&r.relname, |a| &a.aliasname).clone();
        if r.schemaname.is_empty()
            && let Some((_, cols)) = self.ctes.iter().rev().find(|(n, _)| *n == r.relname)
        {
            let known = cols.as_ref().ok_or_else(|| {
                Refusal::unsupported("mutual recursion between WITH items is not implemented")
                    .at(r.location)
            })?;
            let cols = renamed((**known).clone(), alias);
            return Ok(Entry {
                alias: name,
                schema: None,
                cols: Rc::new(cols),
            });
        }
        let relation = self.relation(r)?;
        if alias.is_some_and(|a| !a.colnames.is_empty()) {
            self.authority.mention_all();
        }
        let schema = alias.is_none().then(|| relation.schema.clone());
        let cols = renamed(self.columns(&relation), alias);
        Ok(Entry {
            alias: name,
            schema,
            cols: Rc::new(cols),
        })
    }

    /// A relation of the snapshot. Records that the statement depends on it.
    pub fn relation(&mut self, r: &RangeVar) -> Res<Relation> {
        let schema = Some(r.schemaname.as_str()).filter(|s| !s.is_empty());
        if schema.is_none() && self.schema.ambiguous(&r.relname) {
            self.depends_on_search_path = true;
        }
        if let Some(refusal) = self.schema.unpinned(schema, &r.relname) {
            return Err(refusal.at(r.location));
        }
        if let Some(relation) = self.schema.relation(schema, &r.relname) {
            self.touches_protected |= relation.protected();
            self.authority.name(relation);
            return Ok(relation.clone());
        }
        let name = match schema {
            Some(schema) => format!("{schema}.{}", r.relname),
            None => r.relname.clone(),
        };
        Err(
            Refusal::new("42P01", format!("relation \"{name}\" does not exist"))
                .at(r.location)
                .refresh(),
        )
    }

    pub fn columns(&self, relation: &Relation) -> Cols {
        match &relation.columns {
            None => Cols {
                list: Vec::new(),
                open: Some(Val::plain(None)),
            },
            Some(_) if relation.kind == 'S' => Cols {
                list: Vec::new(),
                open: Some(Val::plain(None)),
            },
            Some(columns) => Cols {
                list: columns
                    .iter()
                    .map(|c| Col {
                        name: c.name.clone(),
                        val: self.value_of(&c.ty),
                        own: relation.is_ledger() && LEDGER_COLUMNS.contains(&&*c.name),
                    })
                    .collect(),
                open: None,
            },
        }
    }

    fn subselect(&mut self, s: &RangeSubselect, beside: &Frame) -> Res<Frame> {
        let Some(query) = s.subquery.as_deref() else {
            return Ok(Frame::default());
        };
        self.lateral(beside, s.lateral, |infer| {
            let cols = infer.with_names(|infer| infer.query_node(query))?;
            let aliases = s
                .alias
                .as_ref()
                .map(|a| a.colnames.as_slice())
                .unwrap_or_default();
            let cols = infer.named(cols, aliases);
            let alias = s
                .alias
                .as_ref()
                .map(|a| a.aliasname.clone())
                .unwrap_or_default();
            Ok(Frame::of(Entry {
                alias,
                schema: None,
                cols: Rc::new(cols),
            }))
        })
    }

    fn sample(&mut self, t: &RangeTableSample, beside: &Frame) -> Res<Frame> {
        for arg in t.args.iter().chain(t.repeatable.as_deref()) {
            let val = self.expr(arg)?;
            self.note_plain(&val);
        }
        match t.relation.as_deref() {
            Some(relation) => self.item(relation, beside),
            None => Ok(Frame::default()),
        }
    }

    fn table_function(&mut self, f: &RangeFunction) -> Res<Frame> {
        let alias = f.alias.as_ref();
        let mut cols = Cols::default();
        let mut name = alias.map(|a| a.aliasname.clone()).unwrap_or_default();
        for item in &f.functions {
            let items = super::oper::list(Some(item));
            let Some(call) = items.first() else { continue };
            let called = crate::naming::figure_name(call);
            if name.is_empty() {
                name.clone_from(&called);
            }
            let column = if alias.is_some() && !f.is_rowsfrom {
                name.clone()
            } else {
                called
            };
            let nested = items
                .get(1)
                .map(|n| super::oper::list(Some(n)))
                .unwrap_or_default();
            let definitions = if nested.is_empty() {
                f.coldeflist.as_slice()
            } else {
                nested
            };
            let more = self.function_columns(call, &column, definitions)?;
            if more.list.iter().any(|c| self.holds_enc(&c.val)) {
                self.name_set(f, call)?;
            }
            cols.list.extend(more.list);
            cols.open = crate::scope::riskier(cols.open.as_ref(), more.open.as_ref()).cloned();
        }
        if f.ordinality {
            cols.list.push(Col {
                name: "ordinality".into(),
                val: Val::plain(None),
                own: false,
            });
        }
        if let Some(names) = alias.map(|a| &a.colnames).filter(|n| !n.is_empty()) {
            while let (Some(open), true) = (cols.open.clone(), cols.list.len() < names.len()) {
                cols.list.push(Col {
                    name: String::new(),
                    val: open,
                    own: false,
                });
            }
            cols.open = None;
        }
        let cols = renamed(cols, alias);
        Ok(Frame::of(Entry {
            alias: name,
            schema: None,
            cols: Rc::new(cols),
        }))
    }

    fn function_columns(&mut self, call: &Node, column: &str, definitions: &[Node]) -> Res<Cols> {
        if definitions.is_empty()
            && let Some(vals) = self.unnested(call)?
        {
            return Ok(unnested_columns(vals, column));
        }
        let val = self.expr(call)?;
        let val = self.settle(&val);
        if !definitions.is_empty() {
            return self.defined_columns(definitions, &val);
        }
        if let Some(fields) = val.row_fields() {
            let list = fields
                .iter()
                .map(|(name, val)| Col {
                    name: name.clone(),
                    val: val.clone(),
                    own: false,
                })
                .collect();
            return Ok(Cols { list, open: None });
        }
        let by_two_names = matches!(val.class, Class::Enc(_)) && names_its_column(call);
        let open = (by_two_names || !gives_one_column(call)).then(|| val.clone());
        Ok(Cols {
            list: vec![Col {
                name: column.to_owned(),
                val,
                own: false,
            }],
            open,
        })
    }

    fn unnested(&mut self, call: &Node) -> Res<Option<Vec<Val>>> {
        let Some(NodeEnum::FuncCall(f)) = &call.node else {
            return Ok(None);
        };
        if names(&f.funcname).last() != Some(&"unnest") {
            return Ok(None);
        }
        let vals = self.exprs(&f.args)?;
        Ok(Some(vals.iter().map(|v| self.element(v)).collect()))
    }

    /// `AS t (a int, b text)`
    fn defined_columns(&mut self, definitions: &[Node], from: &Val) -> Res<Cols> {
        let mut list = Vec::new();
        for node in definitions {
            let Some(NodeEnum::ColumnDef(def)) = &node.node else {
                continue;
            };
            let Some(name) = &def.type_name else { continue };
            let target = self.column_type(name)?;
            let mut val = self.value_of(&target);
            if self.holds_enc(&val) {
                if let Some(u) = self.secrets(from).first() {
                    return Err(self.undecided(u, def.location));
                }
            } else {
                val.leaves = Val {
                    class: Class::Lit(None),
                    leaves: from.all_leaves(),
                }
                .blocked(Block::PlainFunction);
                if from.literal() {
                    val.class = Class::Lit(Some(None));
                }
            }
            list.push(Col {
                name: def.colname.clone(),
                val,
                own: false,
            });
        }
        Ok(Cols { list, open: None })
    }

    fn xml_table(&mut self, t: &RangeTableFunc) -> Res<Frame> {
        let mut vals = Vec::new();
        for node in [t.docexpr.as_deref(), t.rowexpr.as_deref()] {
            vals.extend(self.maybe(node)?);
        }
        for node in &t.namespaces {
            vals.push(self.target_value(node)?);
        }
        let mut columns = Vec::new();
        for node in &t.columns {
            let Some(NodeEnum::RangeTableFuncCol(c)) = &node.node else {
                continue;
            };
            if let Some(name) = &c.type_name {
                self.visit_type(name);
            }
            for expr in [c.colexpr.as_deref(), c.coldefexpr.as_deref()] {
                vals.extend(self.maybe(expr)?);
            }
            columns.push(c.colname.clone());
        }
        self.plain_only(&vals, t.location, "XML functions")?;
        let leaves = vals
            .iter()
            .flat_map(|v| v.blocked(Block::PlainFunction))
            .collect();
        let val = Val {
            class: Class::Lit(Some(None)),
            leaves,
        };
        let list = columns
            .into_iter()
            .map(|name| Col {
                name,
                val: val.clone(),
                own: false,
            })
            .collect();
        let alias = t.alias.as_ref();
        let alias = alias.map_or_else(|| "xmltable".into(), |a| a.aliasname.clone());
        let cols = renamed(Cols { list, open: None }, t.alias.as_ref());
        Ok(Frame::of(Entry {
            alias,
            schema: None,
            cols: Rc::new(cols),
        }))
    }

    fn join(&mut self, j: &JoinExpr, beside: &Frame) -> Res<Frame> {
        let (Some(left), Some(right)) = (j.larg.as_deref(), j.rarg.as_deref()) else {
            return Ok(Frame::default());
        };
        let left = self.item(left, beside)?;
        let mut seen = beside.clone();
        seen.join(&left);
        let right = self.item(right, &seen)?;
        let shared = shared_columns(j, &left, &right);
        shared.iter().for_each(|name| self.authority.mention(name));
        let mut frame = self.merged(&left, &right, &shared)?;
        if let Some(condition) = j.quals.as_deref() {
            self.scopes.push(Rc::new(frame.clone()));
            let result =
                self.condition(condition)
                    .and_then(|()| match j.jointype() == JoinType::JoinFull {
                        true => self.cast_joined(condition),
                        false => Ok(()),
                    });
            self.scopes.pop();
            result?;
        }
        if let Some(alias) = &j.join_using_alias {
            let list = frame.list.iter().take(shared.len()).cloned().collect();
            let cols = Rc::new(Cols { list, open: None });
            frame.entries.push(Entry {
                alias: alias.aliasname.clone(),
                schema: None,
                cols,
            });
        }
        if let Some(alias) = &j.alias {
            let cols = Cols {
                list: frame.list,
                open: frame.open,
            };
            let cols = Rc::new(renamed(cols, Some(alias)));
            frame = Frame::of(Entry {
                alias: alias.aliasname.clone(),
                schema: None,
                cols,
            });
        }
        Ok(frame)
    }

    /// The columns of both sides, with those of `USING` once and first.
    fn merged(&mut self, left: &Frame, right: &Frame, shared: &[String]) -> Res<Frame> {
        let mut frame = left.clone();
        frame.join(right);
        if shared.is_empty() {
            return Ok(frame);
        }
        let find = |f: &Frame, name: &str| {
            f.list
                .iter()
                .find(|c| c.name == name)
                .map(|c| c.val.clone())
        };
        let mut list = Vec::new();
        for name in shared {
            let l = find(left, name).unwrap_or(Val::plain(None));
            let r = find(right, name).unwrap_or(Val::plain(None));
            self.meet(&l, &r, -1)?;
            let val = if self.holds_enc(&r) && !self.holds_enc(&l) {
                r
            } else {
                l
            };
            let own = left.list.iter().any(|c| c.name == *name && c.own);
            list.push(Col {
                name: name.clone(),
                val,
                own,
            });
        }
        let rest = left
            .list
            .iter()
            .chain(&right.list)
            .filter(|c| !shared.contains(&c.name));
        list.extend(rest.cloned());
        frame.list = list;
        Ok(frame)
    }
}

/// One column per array, or several if its elements have fields, which are unknown here.
fn unnested_columns(vals: Vec<Val>, column: &str) -> Cols {
    let name = if vals.len() > 1 { "unnest" } else { column };
    let unsure = |val: &&Val| matches!(val.class, Class::Plain(None) | Class::Lit(Some(None)));
    let open = vals.iter().filter(unsure).cloned().reduce(|a, b| {
        let riskier = crate::scope::riskier(Some(&a), Some(&b));
        riskier.cloned().unwrap_or(b)
    });
    let col = |val| Col {
        name: name.into(),
        val,
        own: false,
    };
    Cols {
        list: vals.into_iter().map(col).collect(),
        open,
    }
}

fn shared_columns(j: &JoinExpr, left: &Frame, right: &Frame) -> Vec<String> {
    if !j.is_natural {
        return names(&j.using_clause)
            .into_iter()
            .map(str::to_owned)
            .collect();
    }
    let both = |c: &&Col| right.list.iter().any(|other| other.name == c.name);
    left.list
        .iter()
        .filter(both)
        .map(|c| c.name.clone())
        .collect()
}

/// Columns renamed by an alias.
pub(super) fn renamed(mut cols: Cols, alias: Option<&Alias>) -> Cols {
    let Some(alias) = alias else { return cols };
    for (col, name) in cols.list.iter_mut().zip(names(&alias.colnames)) {
        col.name = name.to_owned();
    }
    cols
}

/// The column can be referred to by the alias and by a name of its own.
fn names_its_column(call: &Node) -> bool {
    let Some(NodeEnum::FuncCall(f)) = &call.node else {
        return false;
    };
    names(&f.funcname)
        .last()
        .is_some_and(|name| super::sets::is_of_elements(name))
}

fn gives_one_column(call: &Node) -> bool {
    match &call.node {
        Some(NodeEnum::FuncCall(f)) => matches!(
            names(&f.funcname).last(),
            Some(
                &("generate_series"
                    | "generate_subscripts"
                    | "regexp_split_to_table"
                    | "string_to_table"
                    | "json_array_elements"
                    | "jsonb_array_elements"
                    | "json_array_elements_text"
                    | "jsonb_array_elements_text"
                    | "json_object_keys"
                    | "jsonb_object_keys"
                    | "now"
                    | "current_setting")
            )
        ),
        Some(NodeEnum::SqlvalueFunction(_)) => true,
        _ => false,
    }
}
