//! Statements: their expressions, and the scope of each.

use crate::effect::{Effect, Extra};
use crate::infer::{Infer, Res, location, names};
use crate::kind::{passes, passes_ddl};
use crate::refusal::Refusal;
use crate::relation::{Column, ColumnType, Relation};
use crate::scope::{Col, Cols};
use crate::statement::{Late, ParamUse, Prepared};
use crate::value::{Class, Val};
use contract::soft::{self, Purpose};
use pg_query::protobuf::{
    AlterObjectSchemaStmt, CreateFunctionStmt, CreateTableAsStmt, ExecuteStmt, IntoClause,
    ObjectType, PrepareStmt, RangeVar, RenameStmt, ViewStmt, a_const,
};
use pg_query::{Node, NodeEnum};

impl Infer<'_> {
    pub fn statement(&mut self, node: &Node, prepared: &Prepared) -> Res<Extra> {
        let Some(kind) = &node.node else {
            return Ok(Extra::default());
        };
        match kind {
            NodeEnum::SelectStmt(s) if s.into_clause.is_none() => self.answered(node),
            NodeEnum::SelectStmt(s) => {
                let cols = self.select(s)?.shown();
                Ok(self.created(s.into_clause.as_deref(), &cols))
            }
            NodeEnum::InsertStmt(_)
            | NodeEnum::UpdateStmt(_)
            | NodeEnum::DeleteStmt(_)
            | NodeEnum::MergeStmt(_) => self.answered(node),
            NodeEnum::ExplainStmt(e) => self.explained(e, prepared),
            NodeEnum::PrepareStmt(p) => self.prepare(p, prepared),
            NodeEnum::ExecuteStmt(e) => self.execute(e, prepared),
            NodeEnum::DeclareCursorStmt(d) => self.inner(d.query.as_deref(), prepared),
            NodeEnum::CreateTableAsStmt(c) => self.create_as(c, prepared),
            NodeEnum::ViewStmt(v) => self.view(v),
            NodeEnum::CopyStmt(c) => {
                let plan = self.copy_plan(c)?;
                Ok(Extra {
                    copy: Some(plan),
                    ..Extra::default()
                })
            }
            NodeEnum::CallStmt(c) => {
                if let Some(call) = c.funccall.as_deref() {
                    self.function(call)?;
                    let name = names(&call.funcname).last().copied().unwrap_or_default();
                    // What is not declared is not expected.
                    self.results = Some(self.schema.outputs(name));
                }
                Ok(Extra::default())
            }
            NodeEnum::TransactionStmt(_)
            | NodeEnum::VariableSetStmt(_)
            | NodeEnum::VariableShowStmt(_)
            | NodeEnum::DeallocateStmt(_)
            | NodeEnum::DiscardStmt(_)
            | NodeEnum::FetchStmt(_)
            | NodeEnum::ClosePortalStmt(_) => self.without_values(),
            NodeEnum::DropStmt(d) => self.dropped(d),
            NodeEnum::RenameStmt(r) => self.renamed(r),
            NodeEnum::AlterObjectSchemaStmt(a) => self.moved(a),
            other if passes(other) || passes_ddl(other) => self.without_values(),
            NodeEnum::DoStmt(_) => self.routine(kind),
            NodeEnum::CreateFunctionStmt(f) => self.created_routine(f, kind),
            _ => self.definition(node),
        }
    }

    fn created_routine(&mut self, f: &CreateFunctionStmt, kind: &NodeEnum) -> Res<Extra> {
        let extra = self.routine(kind)?;
        let name = names(&f.funcname).last().map(|n| (*n).to_owned());
        let effects = match self.touches_protected {
            true => name.into_iter().map(Effect::Unsure).collect(),
            false => Vec::new(),
        };
        Ok(Extra { effects, ..extra })
    }

    /// Checks the columns sent to the client: a row would be sent as text containing envelopes.
    fn shown(&self, cols: &Cols, node: &Node) -> Res<()> {
        let row = |val: &Val| matches!(val.class, Class::Row(_)) && self.holds_enc(val);
        if !cols.list.iter().any(|c| row(&c.val)) {
            return Ok(());
        }
        Err(
            Refusal::unsupported("a row of protected values cannot be given out as one value")
                .at(location(node).max(i32::try_from(self.range.start).unwrap_or(0)))
                .hint("Select its fields: t.*, (value).*, or SELECT * FROM function(...)."),
        )
    }

    /// Which columns of a result may be protected; `None` if there may be further columns.
    pub fn given(&self, cols: &Cols) -> Option<Vec<bool>> {
        let may = |col: &Col| self.holds_enc(&col.val) || matches!(col.val.class, Class::Lit(None));
        cols.open
            .is_none()
            .then(|| cols.list.iter().map(may).collect())
    }

    /// Whether only the client learns that such results cannot be computed.
    fn lateness(&self, cols: &Cols) -> Late {
        let opaque = |col: &Col| matches!(col.val.class, Class::Unknown);
        match (
            cols.open.is_some() || cols.list.iter().any(opaque),
            self.writes,
        ) {
            (false, _) => Late::Never,
            (true, false) => Late::Reads,
            (true, true) => Late::Writes,
        }
    }

    /// The constants of this statement are options, names and the like.
    pub fn without_values(&mut self) -> Res<Extra> {
        self.visit_rest();
        Ok(Extra::default())
    }

    /// The remaining constants are not values.
    pub fn visit_rest(&mut self) {
        let all: Vec<usize> = self
            .tokens
            .values(&self.range)
            .map(|(_, r)| r.start)
            .collect();
        self.visited.extend(all);
    }

    fn inner(&mut self, query: Option<&Node>, prepared: &Prepared) -> Res<Extra> {
        match query {
            Some(query) => {
                self.statement(query, prepared)?;
                Ok(Extra::default())
            }
            None => Ok(Extra::default()),
        }
    }

    fn explained(
        &mut self,
        e: &pg_query::protobuf::ExplainStmt,
        prepared: &Prepared,
    ) -> Res<Extra> {
        for option in &e.options {
            self.visit_option(option);
        }
        self.inner(e.query.as_deref(), prepared)?;
        self.results = Some(Vec::new());
        self.late = Late::Never;
        // EXPLAIN ANALYZE of CREATE TABLE AS creates the table.
        let creates = matches!(
            e.query.as_deref().and_then(|q| q.node.as_ref()),
            Some(NodeEnum::CreateTableAsStmt(_))
        );
        Ok(Extra {
            changes_schema: creates,
            ..Extra::default()
        })
    }

    fn visit_option(&mut self, option: &Node) {
        let Some(NodeEnum::DefElem(d)) = &option.node else {
            return;
        };
        let Ok(start) = usize::try_from(d.location) else {
            return;
        };
        let first = self.tokens.next_from(start);
        // The value follows the name.
        for index in [first + 1, first + 2] {
            self.visited.insert(self.tokens.range(index).start);
        }
    }

    fn prepare(&mut self, p: &PrepareStmt, prepared: &Prepared) -> Res<Extra> {
        let mut types = Vec::new();
        for node in &p.argtypes {
            let Some(NodeEnum::TypeName(name)) = &node.node else {
                continue;
            };
            types.push(self.type_use(name)?);
        }
        self.declared = types.iter().map(|t| t.column_type()).collect();
        self.inner(p.query.as_deref(), prepared)?;
        self.encoded_parameters()?;
        for (number, used) in self.parameter_uses() {
            let at = usize::try_from(number).unwrap_or(0).wrapping_sub(1);
            let Some(declared) = types.get(at) else {
                continue;
            };
            let twin = match used {
                _ if declared.protected() => continue,
                ParamUse::Protected { .. } | ParamUse::ProtectedArray { .. } => declared.twin(),
                ParamUse::Soft {
                    column, purpose, ..
                } => Some(soft_name(column, purpose)),
                _ => continue,
            };
            let twin = twin.ok_or_else(|| {
                Refusal::unsupported(format!(
                    "parameter ${number} meets a protected value, its type has no protected twin"
                ))
                .at(i32::try_from(declared.range.start).unwrap_or(-1))
            })?;
            self.replace(declared.range.clone(), &twin);
        }
        Ok(Extra::default())
    }

    /// Parameters declared with a type of the family `soft_` meet a column, for which their values are
    /// encoded.
    fn encoded_parameters(&self) -> Res<()> {
        let uses = self.parameter_uses();
        for (number, declared) in (1u32..).zip(&self.declared) {
            let soft = matches!(declared, ColumnType::Soft(..));
            if soft && !matches!(uses.get(&number), Some(ParamUse::Soft { .. })) {
                return Err(Refusal::unsupported(format!(
                    "parameter ${number} meets no column, so there is no key to encode it with"
                )));
            }
        }
        Ok(())
    }

    fn execute(&mut self, e: &ExecuteStmt, prepared: &Prepared) -> Res<Extra> {
        let vals = self.exprs(&e.params)?;
        let Some(info) = prepared.get(&e.name) else {
            // A routine may have prepared it, with any results: none of them is expected.
            self.results = Some(Vec::new());
            return match vals.iter().find_map(|v| self.secrets(v).first().copied()) {
                None => Ok(Extra::default()),
                Some(u) => {
                    let at = self.undecided(&u, -1).position;
                    let mut refusal = Refusal::new(
                        "26000",
                        format!("prepared statement \"{}\" does not exist", e.name),
                    );
                    refusal.position = at;
                    Err(refusal.detail("The proxy does not know what its parameters meet."))
                }
            };
        };
        self.touches_protected |= info.touches_protected;
        self.results.clone_from(&info.results);
        self.late = info.late;
        self.cursors.extend_from_slice(&info.cursors);
        for (number, val) in (1u32..).zip(&vals) {
            let target = match info.params.get(&number) {
                Some(ParamUse::Protected { declared, .. }) => Val::enc(*declared),
                Some(ParamUse::ProtectedArray { declared }) => {
                    for u in &val.leaves {
                        self.leaves.get_mut(u.id).array = Some(*declared);
                    }
                    Val::array(Val::enc(*declared))
                }
                Some(ParamUse::Soft {
                    column,
                    purpose,
                    said,
                }) => {
                    for u in val.leaves.iter().filter(|_| *purpose == Purpose::Each) {
                        self.leaves.get_mut(u.id).array = Some(*said);
                    }
                    self.encode(*column, *purpose, val, -1)?;
                    continue;
                }
                _ => Val::plain(None),
            };
            self.assign(&target, val, -1)?;
        }
        Ok(Extra::default())
    }

    /// A statement whose rows go to the client.
    fn answered(&mut self, node: &Node) -> Res<Extra> {
        let cols = self.yielding(true, |infer| infer.query_node(node))?;
        let cols = cols.shown();
        self.shown(&cols, node)?;
        self.results = self.given(&cols);
        self.late = self.lateness(&cols);
        Ok(Extra::default())
    }

    fn create_as(&mut self, c: &CreateTableAsStmt, prepared: &Prepared) -> Res<Extra> {
        let Some(query) = c.query.as_deref() else {
            return Ok(Extra::default());
        };
        if let Some(NodeEnum::ExecuteStmt(e)) = &query.node {
            return self.execute(e, prepared);
        }
        let cols = self.query_node(query)?;
        let mut extra = self.created(c.into.as_deref(), &cols);
        if c.objtype() == ObjectType::ObjectMatview {
            for effect in &mut extra.effects {
                if let Effect::Relation(relation) = effect {
                    relation.kind = 'm';
                }
            }
        }
        self.visit_options(c.into.as_deref());
        Ok(extra)
    }

    fn visit_options(&mut self, into: Option<&IntoClause>) {
        for option in into.map(|i| i.options.as_slice()).unwrap_or_default() {
            self.visit_option(option);
        }
    }

    fn created(&mut self, into: Option<&IntoClause>, cols: &Cols) -> Extra {
        let Some(into) = into else {
            return Extra::default();
        };
        let Some(relation) = &into.rel else {
            return Extra::default();
        };
        self.visit_options(Some(into));
        let made = self.new_relation(relation, cols, &into.col_names, 'r');
        self.authority.creating = made.effects.iter().find_map(|effect| match effect {
            Effect::Relation(relation) => Some(relation.clone()),
            _ => None,
        });
        made
    }

    fn view(&mut self, v: &ViewStmt) -> Res<Extra> {
        let Some(query) = v.query.as_deref() else {
            return Ok(Extra::default());
        };
        let cols = self.yielding(true, |infer| infer.query_node(query))?;
        for option in &v.options {
            self.visit_option(option);
        }
        Ok(match &v.view {
            Some(view) => self.new_relation(view, &cols, &v.aliases, 'v'),
            None => Extra::default(),
        })
    }

    /// A relation with the columns of a query.
    fn new_relation(&mut self, r: &RangeVar, cols: &Cols, aliases: &[Node], kind: char) -> Extra {
        if cols.open.is_some() {
            return Extra::default();
        }
        let cols = self.named(cols.clone().shown(), aliases);
        let columns = (1i16..)
            .zip(&cols.list)
            .map(|(attnum, col)| Column {
                name: col.name.clone(),
                attnum,
                ty: self.type_of(&col.val),
                typmod: -1,
                generated: false,
                identity: false,
                domain: None,
            })
            .collect();
        let relation = self.place(r, columns, kind);
        Extra {
            effects: creation(r, relation),
            ..Extra::default()
        }
    }

    pub fn place(&self, r: &RangeVar, columns: Vec<Column>, kind: char) -> Relation {
        let temporary = r.relpersistence == "t";
        Relation {
            oid: 0,
            schema: self.schema.creation_schema(&r.schemaname, temporary),
            name: r.relname.clone(),
            kind,
            columns: Some(columns),
        }
    }

    /// The type of a column created from this value.
    pub fn type_of(&self, val: &Val) -> ColumnType {
        match (&val.class, self.enc(val)) {
            (_, Some(Some(code))) => ColumnType::Enc(code),
            (Class::Soft(column), _) => ColumnType::Soft(column.code, -1),
            (Class::Plain(Some(code)) | Class::Lit(Some(Some(code))), None) => {
                ColumnType::Plain(code.plain_oid(), code.plain_name().to_owned())
            }
            (Class::Array(element), _) => match self.enc(element) {
                Some(Some(code)) => ColumnType::EncArray(code),
                None if !self.holds_enc(element) => ColumnType::Plain(0, String::new()),
                _ => ColumnType::Opaque(0, String::new()),
            },
            _ if self.holds_enc(val) => ColumnType::Opaque(0, String::new()),
            _ => ColumnType::Plain(0, String::new()),
        }
    }

    fn dropped(&mut self, d: &pg_query::protobuf::DropStmt) -> Res<Extra> {
        let mut effects = Vec::new();
        for object in &d.objects {
            let Some(NodeEnum::List(list)) = &object.node else {
                continue;
            };
            let path = crate::infer::names(&list.items);
            let Some((name, schema)) = path.split_last() else {
                continue;
            };
            if let Some(relation) = self.schema.relation(schema.last().copied(), name) {
                effects.push(Effect::Gone(relation.clone()));
            }
        }
        let extra = self.without_values()?;
        Ok(Extra { effects, ..extra })
    }

    /// `ALTER ... RENAME`: the effect is tracked for tables and columns.
    fn renamed(&mut self, r: &RenameStmt) -> Res<Extra> {
        use ObjectType::{
            ObjectColumn, ObjectForeignTable, ObjectMatview, ObjectTable, ObjectView,
        };
        let found = r.relation.as_ref().and_then(|name| {
            let schema = Some(name.schemaname.as_str()).filter(|s| !s.is_empty());
            self.schema.relation(schema, &name.relname).cloned()
        });
        let effects = match (r.rename_type(), found) {
            (ObjectTable | ObjectView | ObjectMatview | ObjectForeignTable, Some(relation)) => {
                let name = r.newname.clone();
                let now = Relation {
                    name,
                    ..relation.clone()
                };
                self.authority.alias_all(&now, &relation);
                self.touches_protected |= relation.protected();
                vec![Effect::Gone(relation), Effect::Relation(now)]
            }
            (ObjectColumn, Some(mut relation)) => {
                let name =
                    |column: &str| grant::Column::new(&relation.schema, &relation.name, column);
                self.authority.alias(name(&r.newname), [name(&r.subname)]);
                self.touches_protected |= relation.protected();
                for column in relation.columns.iter_mut().flatten() {
                    if column.name == r.subname {
                        column.name.clone_from(&r.newname);
                    }
                }
                vec![Effect::Relation(relation)]
            }
            (ObjectType::ObjectSchema, _) => vec![Effect::Lost],
            (ObjectType::ObjectDomain, _) => {
                self.rename_domain(r);
                vec![Effect::Unsure(r.newname.clone())]
            }
            _ => vec![Effect::Unsure(r.newname.clone())],
        };
        let extra = self.without_values()?;
        Ok(Extra { effects, ..extra })
    }

    /// `ALTER ... SET SCHEMA`.
    fn moved(&mut self, a: &AlterObjectSchemaStmt) -> Res<Extra> {
        let found = a.relation.as_ref().and_then(|name| {
            let schema = Some(name.schemaname.as_str()).filter(|s| !s.is_empty());
            self.schema.relation(schema, &name.relname).cloned()
        });
        let effects = match found {
            Some(relation) => {
                let schema = a.newschema.clone();
                let now = Relation {
                    schema,
                    ..relation.clone()
                };
                self.authority.alias_all(&now, &relation);
                self.touches_protected |= relation.protected();
                vec![Effect::Gone(relation), Effect::Relation(now)]
            }
            None => vec![Effect::Lost],
        };
        let extra = self.without_values()?;
        Ok(Extra { effects, ..extra })
    }

    pub fn unsupported(&self, node: &Node) -> Refusal {
        Refusal::unsupported("this statement is not supported through Confide's proxy")
            .at(location(node))
    }
}

pub(crate) fn creation(r: &RangeVar, relation: Relation) -> Vec<Effect> {
    let mut effects = Vec::new();
    if r.relpersistence == "t" || r.schemaname == "pg_temp" {
        effects.push(Effect::Temporary);
    }
    effects.push(Effect::Relation(relation));
    effects
}

/// A constant option as text.
pub(crate) fn constant_text(node: &Node) -> Option<String> {
    match node.node.as_ref()? {
        NodeEnum::AConst(c) => match c.val.as_ref()? {
            a_const::Val::Sval(s) => Some(s.sval.clone()),
            a_const::Val::Ival(i) => Some(i.ival.to_string()),
            a_const::Val::Boolval(b) => Some(b.boolval.to_string()),
            a_const::Val::Fval(f) => Some(f.fval.clone()),
            a_const::Val::Bsval(_) => None,
        },
        NodeEnum::String(s) => Some(s.sval.clone()),
        NodeEnum::Integer(i) => Some(i.ival.to_string()),
        NodeEnum::Float(f) => Some(f.fval.clone()),
        NodeEnum::Boolean(b) => Some(b.boolval.to_string()),
        NodeEnum::TypeName(t) => crate::infer::names(&t.names)
            .last()
            .map(|n| (*n).to_owned()),
        _ => None,
    }
}

pub(crate) fn is_on(text: &str) -> bool {
    matches!(
        text.to_ascii_lowercase().as_str(),
        "on" | "true" | "t" | "yes" | "y" | "1"
    )
}

/// The type of a parameter that is encoded for a column.
fn soft_name(column: soft::Column, purpose: Purpose) -> String {
    let many = if purpose == Purpose::Each { "[]" } else { "" };
    format!("pg_catalog.{}{many}", column.code.soft_name())
}
