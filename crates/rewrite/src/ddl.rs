//! Definitions: tables, indexes, policies, rules, triggers. Their expressions are inferred
//! with the table's own columns in scope.

use crate::body::Body;
use crate::body::trigger::refuse_misfit;
use crate::effect::Extra;
use crate::infer::{Infer, Res, names};
use crate::refusal::Refusal;
use crate::relation::{Column, ColumnType, Relation};
use crate::scope::{Entry, Frame};
use crate::utility::creation;
use crate::value::Val;
use pg_query::protobuf::{
    AlterTableCmd, AlterTableStmt, AlterTableType, ColumnDef, ConstrType, Constraint, CreateStmt,
    CreateTrigStmt, IndexStmt, RangeVar, RuleStmt, TypeName,
};
use pg_query::{Node, NodeEnum};
use std::rc::Rc;

impl Infer<'_> {
    pub fn definition(&mut self, node: &Node) -> Res<Extra> {
        match &node.node {
            Some(NodeEnum::CreateStmt(c)) => self.create_table(c, 'r'),
            Some(NodeEnum::CreateForeignTableStmt(c)) => match &c.base_stmt {
                Some(base) => {
                    let extra = self.create_table(base, 'f')?;
                    self.visit_rest();
                    Ok(extra)
                }
                None => self.without_values(),
            },
            Some(NodeEnum::AlterTableStmt(a)) => self.alter_table(a),
            Some(NodeEnum::IndexStmt(i)) => self.index(i),
            Some(NodeEnum::CreatePolicyStmt(p)) => {
                self.policy(p.table.as_ref(), p.qual.as_deref(), p.with_check.as_deref())
            }
            Some(NodeEnum::AlterPolicyStmt(p)) => {
                self.policy(p.table.as_ref(), p.qual.as_deref(), p.with_check.as_deref())
            }
            Some(NodeEnum::RuleStmt(r)) => self.rule(r),
            Some(NodeEnum::CreateTrigStmt(t)) => self.trigger(t),
            Some(NodeEnum::CreateDomainStmt(d)) => self.create_domain(d),
            Some(NodeEnum::AlterDomainStmt(d)) => self.alter_domain(d),
            Some(NodeEnum::CreateStatsStmt(s)) => self.statistics(s),
            Some(NodeEnum::CreateSchemaStmt(s)) if s.schema_elts.is_empty() => {
                self.without_values()
            }
            Some(NodeEnum::CreatePublicationStmt(p)) => self.publication(&p.pubobjects),
            Some(NodeEnum::AlterPublicationStmt(p)) => self.publication(&p.pubobjects),
            // CREATE TYPE, AGGREGATE, OPERATOR ..., ALTER DOMAIN ...: without constants, nothing
            // can be stored in clear text.
            _ if self.tokens.values(&self.range).next().is_none() => Ok(Extra::default()),
            _ => Err(self.unsupported(node)),
        }
    }

    /// The type in a column definition.
    pub fn column_type(&mut self, name: &TypeName) -> Res<ColumnType> {
        Ok(self.type_use(name)?.column_type())
    }

    fn create_table(&mut self, c: &CreateStmt, kind: char) -> Res<Extra> {
        let Some(r) = &c.relation else {
            return self.without_values();
        };
        let mut columns = self.inherited(c)?;
        for node in &c.table_elts {
            match &node.node {
                Some(NodeEnum::ColumnDef(def)) => {
                    let column = self.defined(def, columns.len())?;
                    columns.retain(|c: &Column| c.name != column.name || def.type_name.is_none());
                    if def.type_name.is_some() {
                        columns.push(column);
                    }
                }
                Some(NodeEnum::TableLikeClause(like)) => {
                    if let Some(source) = &like.relation {
                        let relation = self.relation(source)?;
                        columns.extend(relation.columns.into_iter().flatten());
                    }
                }
                _ => {}
            }
        }
        for (attnum, column) in (1i16..).zip(columns.iter_mut()) {
            column.attnum = attnum;
        }
        let relation = self.place(r, columns, kind);
        self.touches_protected |= relation.protected();
        self.authority.of_domains(&relation);
        self.authority.creating = Some(relation.clone());
        for node in &c.inh_relations {
            if let Some(NodeEnum::RangeVar(parent)) = &node.node {
                let parent = self.relation(parent)?;
                self.authority.alias_all(&parent, &relation);
            }
        }
        self.partition_key(c, &relation)?;
        self.with_table(&relation, |infer| {
            for node in c.table_elts.iter().chain(&c.constraints) {
                infer.table_element(node, &relation)?;
            }
            Ok(())
        })?;
        if let Some(bound) = &c.partbound {
            self.bound(bound)?;
        }
        for option in &c.options {
            self.visit_definition_option(option);
        }
        Ok(Extra {
            effects: creation(r, relation),
            ..Extra::default()
        })
    }

    /// Columns of the parents, or of the type.
    fn inherited(&mut self, c: &CreateStmt) -> Res<Vec<Column>> {
        let mut columns: Vec<Column> = Vec::new();
        for node in &c.inh_relations {
            if let Some(NodeEnum::RangeVar(parent)) = &node.node {
                let relation = self.relation(parent)?;
                for column in relation.columns.into_iter().flatten() {
                    if columns.iter().all(|c| c.name != column.name) {
                        columns.push(column);
                    }
                }
            }
        }
        if let Some(name) = &c.of_typename {
            self.visit_type(name);
            let path = names(&name.names);
            if let Some((last, schema)) = path.split_last() {
                match self.schema.relation(schema.last().copied(), last) {
                    Some(relation) => {
                        columns.extend(relation.columns.clone().into_iter().flatten())
                    }
                    None => {
                        let text = format!("type \"{}\" does not exist", path.join("."));
                        return Err(Refusal::new("42704", text).at(name.location).refresh());
                    }
                }
            }
        }
        Ok(columns)
    }

    fn defined(&mut self, def: &ColumnDef, at: usize) -> Res<Column> {
        let ty = match &def.type_name {
            Some(name) => self.column_type(name)?,
            None => ColumnType::Plain(0, String::new()),
        };
        let has = |wanted: ConstrType| {
            def.constraints
                .iter()
                .any(|c| matches!(&c.node, Some(NodeEnum::Constraint(c)) if c.contype() == wanted))
        };
        if ty.protected() && has(ConstrType::ConstrIdentity) {
            return Err(
                Refusal::unsupported("a protected column cannot be an identity column")
                    .at(def.location)
                    .detail("The server makes its numbers, so it would know them.")
                    .hint("Use a plain identity column, or a DEFAULT of nextval for the protected column."),
            );
        }
        Ok(Column {
            name: def.colname.clone(),
            attnum: i16::try_from(at + 1).unwrap_or(i16::MAX),
            ty,
            typmod: -1,
            generated: has(ConstrType::ConstrGenerated),
            identity: has(ConstrType::ConstrIdentity),
            domain: def.type_name.as_ref().and_then(|name| self.domain(name)),
        })
    }

    /// Runs a function with the table's columns in scope.
    pub fn with_table<T>(
        &mut self,
        relation: &Relation,
        inner: impl FnOnce(&mut Self) -> Res<T>,
    ) -> Res<T> {
        let cols = Rc::new(self.columns(relation));
        let entry = Entry {
            alias: relation.name.clone(),
            schema: Some(relation.schema.clone()),
            cols,
        };
        self.authority.name(relation);
        let before = self.authority.defining.replace(relation.clone());
        self.scopes.push(Rc::new(Frame::of(entry)));
        let result = inner(self);
        self.scopes.pop();
        self.authority.defining = before;
        result
    }

    fn table_element(&mut self, node: &Node, relation: &Relation) -> Res<()> {
        match &node.node {
            Some(NodeEnum::ColumnDef(def)) => self.column_constraints(def, relation),
            Some(NodeEnum::Constraint(c)) => {
                self.foreign_key(c, relation, &names(&c.fk_attrs));
                self.constraint(c, None)
            }
            _ => Ok(()),
        }
    }

    fn column_constraints(&mut self, def: &ColumnDef, relation: &Relation) -> Res<()> {
        let column = relation
            .columns
            .iter()
            .flatten()
            .find(|c| c.name == def.colname);
        let target = column.map(|c| self.value_of(&c.ty));
        self.fill(def, relation);
        if let (Some(default), Some(target)) = (def.raw_default.as_deref(), &target) {
            let val = self.expr(default)?;
            self.assign(target, &val, def.location)?;
        }
        for option in &def.fdwoptions {
            self.visit_definition_option(option);
        }
        for node in &def.constraints {
            if let Some(NodeEnum::Constraint(c)) = &node.node {
                self.foreign_key(c, relation, &[&def.colname]);
                self.constraint(c, target.as_ref())?;
            }
        }
        Ok(())
    }

    pub(crate) fn constraint(&mut self, c: &Constraint, column: Option<&Val>) -> Res<()> {
        match c.contype() {
            ConstrType::ConstrDefault | ConstrType::ConstrGenerated => {
                if let Some(expr) = c.raw_expr.as_deref() {
                    let val = self.expr(expr)?;
                    self.assign(column.unwrap_or(&Val::unknown()), &val, c.location)?;
                }
            }
            ConstrType::ConstrCheck => {
                if let Some(expr) = c.raw_expr.as_deref() {
                    self.condition(expr)?;
                }
            }
            _ => {
                for node in &c.exclusions {
                    if let Some(NodeEnum::List(list)) = &node.node
                        && let Some(NodeEnum::IndexElem(e)) =
                            list.items.first().and_then(|n| n.node.as_ref())
                    {
                        self.maybe(e.expr.as_deref())?;
                    }
                }
                if let Some(condition) = c.where_clause.as_deref() {
                    self.condition(condition)?;
                }
                for option in &c.options {
                    self.visit_definition_option(option);
                }
            }
        }
        Ok(())
    }

    /// `fillfactor = 70`, sequence options: the constant that follows the name.
    fn visit_definition_option(&mut self, option: &Node) {
        let Some(NodeEnum::DefElem(d)) = &option.node else {
            return;
        };
        let Ok(start) = usize::try_from(d.location) else {
            return;
        };
        let first = self.tokens.next_from(start);
        for index in first..first + 7 {
            use pg_query::protobuf::Token;
            let kind = self.tokens.kind(index);
            if matches!(kind, Token::Ascii44 | Token::Ascii41) {
                break;
            }
            if self.tokens.holds_value(index) {
                self.visited.insert(self.tokens.range(index).start);
                break;
            }
        }
    }

    fn alter_table(&mut self, a: &AlterTableStmt) -> Res<Extra> {
        let Some(r) = &a.relation else {
            return self.without_values();
        };
        let mut relation = match self.relation(r) {
            Ok(relation) => relation,
            // ALTER INDEX, ALTER SEQUENCE ..., or IF EXISTS: there is nothing to infer.
            Err(_) if !a.cmds.iter().any(has_expression) => return self.without_values(),
            Err(refusal) => return Err(refusal),
        };
        let recoding = self.recoding(a, &relation)?;
        for node in &a.cmds {
            if let Some(NodeEnum::AlterTableCmd(cmd)) = &node.node {
                self.alter(cmd, &mut relation)?;
            }
        }
        self.touches_protected |= relation.protected();
        self.authority.of_domains(&relation);
        Ok(Extra {
            effects: vec![crate::effect::Effect::Relation(relation)],
            recoding,
            ..Extra::default()
        })
    }

    fn alter(&mut self, cmd: &AlterTableCmd, relation: &mut Relation) -> Res<()> {
        let def = cmd.def.as_deref();
        match (cmd.subtype(), def.and_then(|d| d.node.as_ref())) {
            (AlterTableType::AtAddColumn, Some(NodeEnum::ColumnDef(def))) => {
                let at = relation.columns.as_ref().map_or(0, Vec::len);
                let column = self.defined(def, at)?;
                self.touches_protected |= column.ty.protected();
                relation.columns.get_or_insert_default().push(column);
                let now = relation.clone();
                self.with_table(&now, |infer| infer.column_constraints(def, &now))
            }
            (AlterTableType::AtColumnDefault | AlterTableType::AtSetExpression, Some(_)) => {
                let now = relation.clone();
                let column = now.columns.iter().flatten().find(|c| c.name == cmd.name);
                self.authority.write(&now, Some(&cmd.name));
                let target = column.map_or(Val::unknown(), |c| self.value_of(&c.ty));
                let Some(expr) = def else { return Ok(()) };
                self.with_table(&now, |infer| {
                    let val = infer.expr(expr)?;
                    infer.assign(&target, &val, -1)
                })
            }
            (AlterTableType::AtAddConstraint, Some(NodeEnum::Constraint(c))) => {
                let now = relation.clone();
                self.foreign_key(c, &now, &names(&c.fk_attrs));
                self.with_table(&now, |infer| infer.constraint(c, None))
            }
            (AlterTableType::AtAlterColumnType, Some(NodeEnum::ColumnDef(def))) => {
                self.alter_type(cmd, def, relation)
            }
            (AlterTableType::AtAttachPartition, Some(NodeEnum::PartitionCmd(p))) => {
                if let Some(child) = &p.name {
                    let child = self.relation(child)?;
                    self.authority.alias_all(relation, &child);
                }
                match &p.bound {
                    Some(bound) => self.bound(bound),
                    None => Ok(()),
                }
            }
            (AlterTableType::AtDropColumn, _) => {
                relation
                    .columns
                    .get_or_insert_default()
                    .retain(|c| c.name != cmd.name);
                Ok(())
            }
            _ => {
                self.visit_rest();
                Ok(())
            }
        }
    }

    fn index(&mut self, i: &IndexStmt) -> Res<Extra> {
        let Some(r) = &i.relation else {
            return self.without_values();
        };
        let relation = self.relation(r)?;
        self.with_table(&relation, |infer| {
            for (place, node) in i.index_params.iter().enumerate() {
                if let Some(NodeEnum::IndexElem(e)) = &node.node {
                    let outside = infer.authority.begin_index();
                    let val = infer.maybe(e.expr.as_deref())?;
                    infer.authority.end_index(&relation, outside);
                    let column = relation.columns.iter().flatten().find(|c| c.name == e.name);
                    let val = val.or_else(|| column.map(|c| infer.value_of(&c.ty)));
                    infer.leave_out_operator_class(i, place, e, val.as_ref());
                    for option in &e.opclassopts {
                        infer.visit_definition_option(option);
                    }
                }
            }
            match i.where_clause.as_deref() {
                Some(condition) => infer.condition(condition),
                None => Ok(()),
            }
        })?;
        for option in &i.options {
            self.visit_definition_option(option);
        }
        Ok(Extra::default())
    }

    fn statistics(&mut self, s: &pg_query::protobuf::CreateStatsStmt) -> Res<Extra> {
        let frame = self.tables(&s.relations)?;
        self.scopes.push(Rc::new(frame));
        for node in &s.exprs {
            if let Some(NodeEnum::StatsElem(e)) = &node.node {
                self.maybe(e.expr.as_deref())?;
            }
        }
        self.scopes.pop();
        Ok(Extra::default())
    }

    fn policy(
        &mut self,
        table: Option<&RangeVar>,
        qual: Option<&Node>,
        check: Option<&Node>,
    ) -> Res<Extra> {
        let Some(r) = table else {
            return self.without_values();
        };
        let relation = self.relation(r)?;
        self.with_table(&relation, |infer| {
            for condition in [qual, check].into_iter().flatten() {
                infer.condition(condition)?;
            }
            Ok(())
        })?;
        Ok(Extra::default())
    }

    /// `NEW` and `OLD` as seen by triggers and the actions of rules.
    fn old_and_new(&mut self, r: &RangeVar) -> Res<Frame> {
        let relation = self.relation(r)?;
        let cols = Rc::new(self.columns(&relation));
        let entry = |alias: &str| Entry {
            alias: alias.into(),
            schema: None,
            cols: cols.clone(),
        };
        Ok(Frame {
            entries: vec![entry("old"), entry("new")],
            list: Vec::new(),
            open: None,
        })
    }

    fn rule(&mut self, r: &RuleStmt) -> Res<Extra> {
        let Some(table) = &r.relation else {
            return self.without_values();
        };
        let frame = self.old_and_new(table)?;
        // Columns in the condition need no OLD or NEW.
        let list = frame.entries.first().map(|e| e.cols.list.clone());
        self.scopes.push(Rc::new(Frame {
            list: list.unwrap_or_default(),
            ..frame.clone()
        }));
        if let Some(condition) = r.where_clause.as_deref() {
            self.condition(condition)?;
        }
        self.scopes.pop();
        self.scopes.push(Rc::new(frame));
        for action in &r.actions {
            match &action.node {
                Some(NodeEnum::NotifyStmt(_)) => self.visit_rest(),
                _ => {
                    self.query_node(action)?;
                }
            }
        }
        self.scopes.pop();
        Ok(Extra::default())
    }

    fn trigger(&mut self, t: &CreateTrigStmt) -> Res<Extra> {
        let Some(table) = &t.relation else {
            return self.without_values();
        };
        let frame = self.old_and_new(table)?;
        self.scopes.push(Rc::new(frame));
        if let Some(condition) = t.when_clause.as_deref() {
            self.condition(condition)?;
        }
        self.scopes.pop();
        self.fits_table(t, table)?;
        // Only the arguments of the trigger function remain.
        self.without_values()
    }

    /// Sealed constants of the trigger's function must not meet plain columns of its table.
    fn fits_table(&mut self, t: &CreateTrigStmt, table: &RangeVar) -> Res<()> {
        let path = names(&t.funcname);
        let Some((name, schema)) = path.split_last().filter(|_| !self.authorising) else {
            return Ok(());
        };
        let (at, table) = (table.location, self.relation(table)?);
        for function in self.schema.bodies(schema.last().copied(), name, 0) {
            let source = function.source.iter().find(|s| s.language == "plpgsql");
            let text = source.map(|s| s.text.as_str());
            let body = text.and_then(|text| Body::of_trigger(self.schema, text, self.meeting));
            if let Some(column) = body.and_then(|body| body.misfit(&table)) {
                return Err(refuse_misfit(name, &column, &table).at(at));
            }
        }
        Ok(())
    }

    /// Row filters of publications.
    fn publication(&mut self, objects: &[Node]) -> Res<Extra> {
        for node in objects {
            let Some(NodeEnum::PublicationObjSpec(object)) = &node.node else {
                continue;
            };
            let Some(table) = &object.pubtable else {
                continue;
            };
            let (Some(r), Some(condition)) = (&table.relation, table.where_clause.as_deref())
            else {
                continue;
            };
            let relation = self.relation(r)?;
            self.with_table(&relation, |infer| infer.condition(condition))?;
        }
        self.without_values()
    }
}

fn has_expression(node: &Node) -> bool {
    let Some(NodeEnum::AlterTableCmd(cmd)) = &node.node else {
        return true;
    };
    matches!(
        cmd.subtype(),
        AlterTableType::AtAddColumn
            | AlterTableType::AtColumnDefault
            | AlterTableType::AtSetExpression
            | AlterTableType::AtAddConstraint
            | AlterTableType::AtAlterColumnType
    )
}
