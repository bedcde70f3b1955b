//! Calls of functions: those of the catalog, of users, and other functions of PostgreSQL.

use super::oper::code_of;
use super::ordered_set::is_of_pairs;
use super::plain::{
    hides_values, is_structural, plain_result, takes_anything, takes_counts, takes_formats,
};
use super::{Infer, Res, location, names};
use crate::known::{self, Known, Sig};
use crate::refusal::Refusal;
use crate::relation::ColumnType;
use crate::schema::UserFunction;
use crate::value::{Block, Class, Use, Val};
use catalog::Arg;
use contract::TypeCode;
use contract::soft::Column;
use grant::family;
use pg_query::protobuf::FuncCall;
use pg_query::{Node, NodeEnum};

impl Infer<'_> {
    pub fn function(&mut self, f: &FuncCall) -> Res<Val> {
        let path = names(&f.funcname);
        let Some((name, schema)) = path.split_last() else {
            return Ok(Val::plain(None));
        };
        let schema = schema.last().copied();
        let name = *name;
        if let Some(refusal) = crate::called::unpinned(self.schema, schema, name) {
            return Err(refusal.at(f.location));
        }
        let mut vals = self.exprs(&f.args)?;
        if let ("substring", [_, one, _]) = (name, f.args.as_slice())
            && location(one) < 0
            && let Some(first) = self.starting_at_one(f)
        {
            vals[1] = first;
        }
        self.sets_config |= name == "set_config";
        let ordered = self.sort_clause(&f.agg_order)?;
        if f.agg_within_group {
            vals.extend(ordered);
        }
        if let Some(filter) = f.agg_filter.as_deref() {
            self.condition(filter)?;
        }
        if let Some(over) = f.over.as_deref() {
            self.window(over)?;
        }
        self.depends_on_search_path |= schema.is_none() && self.schema.function_elsewhere(name);
        self.note_call(schema, name);
        self.given_to_bodies(schema, name, f, &vals)?;
        if let (Some(ty), [val]) = (self.called_type(schema, name), vals.as_slice()) {
            return self.cast_protected(&ty, val, f.location);
        }
        let users = self.schema.functions(schema, name);
        if !users.is_empty() {
            self.writes = true;
            let users: Vec<UserFunction> = users.into_iter().cloned().collect();
            if let Some(val) = self.user_function(&users, f, &vals)? {
                return Ok(val);
            }
            // None has this many arguments. Unless PostgreSQL has another function of that name,
            // the server would reject the call with the values in the text.
            let ours = Known::get().has_function(name) && schema.is_none_or(|s| s == "pg_catalog");
            if !ours && vals.iter().any(|v| !self.secrets(v).is_empty()) {
                let text = format!(
                    "function {name} with {} arguments does not exist",
                    vals.len()
                );
                return Err(Refusal::new("42883", text).at(f.location).refresh());
            }
        }
        if schema.is_none_or(|s| s == "pg_catalog") {
            self.system_function(name, f, &vals)
        } else {
            self.plain_function(name, &vals, f.location)
        }
    }

    fn note_call(&mut self, schema: Option<&str>, name: &str) {
        let known = Known::get().has_function(name) || takes_anything(name) || is_structural(name);
        self.writes |= !known || schema.is_some_and(|s| s != "pg_catalog");
        if self.schema.all_bodies(name).next().is_some() {
            self.called.insert(name.to_owned());
            self.writes = true;
        }
    }

    /// A function of the catalog that the grammar calls.
    pub fn called(&mut self, name: &str, vals: &[Val], at: i32) -> Res<Val> {
        let sigs = Known::get().function(name, vals.len());
        let vals: &[Val] = &vals.iter().map(Self::opened).collect::<Vec<_>>();
        let shaped = |v: &Val| {
            matches!(
                v.class,
                Class::Row(_) | Class::Array(_) | Class::Soft(_) | Class::Unknown
            )
        };
        if vals.iter().any(shaped) {
            return self.plain_function(name, vals, at);
        }
        match vals.iter().any(|v| self.enc_now(v).is_some()) {
            true => self.enc_function(&sigs, vals, at),
            false => Ok(self.open_function(name, &sigs, vals)),
        }
    }

    fn system_function(&mut self, name: &str, f: &FuncCall, vals: &[Val]) -> Res<Val> {
        let any_enc = vals.iter().any(|v| self.holds_enc(v));
        if f.agg_star || takes_anything(name) || (!any_enc && is_structural(name)) {
            self.taken_as_it_is(name, vals)?;
            return Ok(Val::plain((name == "count").then_some(TypeCode::Int8)));
        }
        if name == "unnest" {
            let cols: Vec<Val> = vals.iter().map(|v| self.element(v)).collect();
            return Ok(match cols.as_slice() {
                [only] => only.clone(),
                many => Val::unknown_of(many),
            });
        }
        if let Some(val) = self.set(name, f, vals)? {
            return Ok(val);
        }
        if f.agg_within_group
            && let Some(val) = self.within_group(name, vals, f)?
        {
            return Ok(val);
        }
        if let Some(val) = self.polymorphic(name, f, vals)? {
            return Ok(val);
        }
        if let Some(val) = self.of_many(name, f, vals)? {
            return Ok(val);
        }
        if let ("pi", []) = (name, vals)
            && let Some(val) = self.pi(f)
        {
            return Ok(val);
        }
        let known = Known::get();
        let mut sigs = known.function(name, vals.len());
        let vals = &Self::opened_for(name, sigs.is_empty(), vals);
        let any_enc = any_enc || vals.iter().any(|v| self.holds_enc(v));
        if sigs.is_empty() {
            sigs = known.aggregate(name, vals.len());
        }
        let shaped = |v: &Val| {
            matches!(
                v.class,
                Class::Row(_) | Class::Array(_) | Class::Soft(_) | Class::Unknown
            )
        };
        // Next to a plain operand that is not text, their literals stay unchanged.
        let beside = matches!(name, "to_char" | "timezone" | "date_bin" | "encode")
            && vals.iter().any(|v| matches!(v.class, Class::Plain(_)))
            && !any_enc;
        if sigs.is_empty() || beside || vals.iter().any(shaped) {
            if any_enc && hides_values(name) {
                return Err(Refusal::unsupported(format!("{name} does not work on protected values"))
                    .at(f.location)
                    .hint("Select the protected columns themselves and aggregate or convert them in the application."));
            }
            return self.plain_function(name, vals, f.location);
        }
        self.catalog_function(name, &sigs, f, vals)
    }

    /// Arguments of functions that take anything. What some of them take beside something protected is sealed, too.
    fn taken_as_it_is(&mut self, name: &str, vals: &[Val]) -> Res<()> {
        let beside =
            matches!(name, "num_nulls" | "num_nonnulls") && vals.iter().any(|v| self.holds_enc(v));
        for val in vals {
            if beside && val.literal() {
                self.type_bare(&val.leaves, TypeCode::Text);
                self.protect(val)?;
            } else if self.enc(val).is_none() {
                self.note_plain(val);
            }
        }
        Ok(())
    }

    /// A function or an aggregate of the catalog.
    fn catalog_function(
        &mut self,
        name: &str,
        sigs: &[&Sig],
        f: &FuncCall,
        vals: &[Val],
    ) -> Res<Val> {
        let known = Known::get();
        let families = match (known.aggregate(name, vals.len()).is_empty(), name) {
            (false, _) => family::AGGREGATE,
            (true, "overlaps") => family::COMPARE | family::COMPUTE,
            (true, name) if super::oper::searches(name) => family::PATTERN | family::COMPUTE,
            _ => family::COMPUTE,
        };
        vals.iter()
            .for_each(|val| self.authority.does_perhaps(val, families));
        let protected = vals.iter().any(|v| self.enc_now(v).is_some());
        if protected && is_of_pairs(name) {
            self.cast_pair(f, vals);
        }
        if let Some(written) = known.written(name, vals.len()) {
            if has_named(f) {
                if protected
                    && name == "make_interval"
                    && let Some(val) = self.make_interval_named(f, vals)?
                {
                    return Ok(val);
                }
                return match protected {
                    true => Err(Refusal::unsupported(format!(
                        "{name} with named arguments is not available for protected values"
                    ))
                    .at(f.location)
                    .hint("Write all arguments in their order, without names.")),
                    false => self.plain_function(name, vals, f.location),
                };
            }
            self.call_otherwise(written, f, vals, protected);
        }
        if protected {
            self.authority.does(families);
            if (name, vals.len()) == ("age", 1) {
                // Relative to the current date, which the server knows.
                self.authority.takes_plain();
            }
            self.enc_function(sigs, vals, f.location)
        } else {
            Ok(self.open_function(name, sigs, vals))
        }
    }

    /// A function of the catalog with a protected argument.
    fn enc_function(&mut self, sigs: &[&Sig], vals: &[Val], _at: i32) -> Res<Val> {
        let mut codes = Vec::new();
        let said: Vec<Option<TypeCode>> = vals
            .iter()
            .map(|v| self.enc(v).flatten().or_else(|| code_of(v)))
            .collect();
        let closest = known::closest(sigs, &said);
        for (index, val) in vals.iter().enumerate() {
            if structure(sigs, index) {
                self.note_plain(val);
                codes.push(None);
                continue;
            }
            if let (true, Some(code)) = (val.bare(), of_several(&closest, index)) {
                self.type_bare(&val.leaves, code);
            }
            self.protect(val)?;
            codes.push(code_of(val));
        }
        Ok(self.enc_result(sigs, &codes))
    }

    /// A function of the catalog without protected arguments so far.
    fn open_function(&mut self, name: &str, sigs: &[&Sig], vals: &[Val]) -> Val {
        let mut operands = Vec::new();
        for (index, val) in vals.iter().enumerate() {
            if structure(sigs, index) {
                self.note_plain(val);
                operands.push(Val {
                    leaves: Vec::new(),
                    ..val.clone()
                });
                continue;
            }
            let mut operand = val.clone();
            if val.bare() {
                let code = known::argument_type(sigs, index);
                self.type_bare(&val.leaves, code);
                // Its type does not depend on the other operands.
                if sigs
                    .iter()
                    .all(|s| s.args.get(index) == Some(&Arg::Enc(code)))
                {
                    operand.class = Class::Lit(Some(Some(code)));
                }
            }
            operands.push(operand);
        }
        let uses: Vec<_> = operands
            .iter()
            .flat_map(|v| v.leaves.iter().copied())
            .collect();
        self.leaves.unite_all(&uses);
        if operands.iter().any(|v| matches!(v.class, Class::Plain(_))) {
            operands.iter().for_each(|v| self.note_plain(v));
        }
        let operands: Vec<&Val> = operands.iter().collect();
        self.combine(name, sigs, &operands)
    }

    /// A function that accepts only plain values, as far as is known.
    pub fn plain_function(&mut self, name: &str, vals: &[Val], at: i32) -> Res<Val> {
        if vals.iter().any(|v| self.holds_enc(v)) {
            return self.foreign(vals, name, at);
        }
        let plain = vals.is_empty() || vals.iter().any(|v| matches!(v.class, Class::Plain(_)));
        let mut leaves = Vec::new();
        for val in vals {
            self.pass(val);
            let all = Val {
                class: Class::Lit(None),
                leaves: val.all_leaves(),
            };
            // A function of plain values only is refused by `PlainFunction` already.
            let block = match plain {
                true if takes_formats(name) => Block::PlainFunction,
                true if takes_counts(name) => Block::Counted,
                true => Block::Argument,
                false => Block::PlainFunction,
            };
            leaves.extend(all.blocked(block));
        }
        let class = if plain {
            Class::Plain(plain_result(name))
        } else {
            Class::Lit(Some(plain_result(name)))
        };
        Ok(Val { class, leaves })
    }

    /// PostgreSQL's functions that work on any type.
    fn polymorphic(&mut self, name: &str, f: &FuncCall, vals: &[Val]) -> Res<Option<Val>> {
        let at = f.location;
        Ok(match (name, vals) {
            ("first_value" | "last_value" | "any_value", [x]) => Some(x.clone()),
            ("lag" | "lead" | "nth_value", [x]) => Some(x.clone()),
            ("min" | "max", [x]) if matches!(x.class, Class::Soft(_)) => Some(x.clone()),
            ("array_to_string", [array, rest @ ..]) if self.text_elements(array) => {
                for val in rest {
                    if val.bare() {
                        self.type_bare(&val.leaves.clone(), TypeCode::Text);
                    }
                    self.protect(val)?;
                }
                self.authority.does(family::COMPUTE | family::AGGREGATE);
                self.call_otherwise("enc_array_to_string", f, vals, true);
                Some(Val::enc(Some(TypeCode::Text)))
            }
            ("array_agg", [x])
                if self.enc_now(x).is_some() || matches!(x.class, Class::Soft(_)) =>
            {
                Some(Val::array(x.clone()))
            }
            ("array_agg", [x]) if self.protected_element(x).is_some() => Some(x.clone()),
            ("lag" | "lead" | "nth_value" | "ntile", all)
                if self.holds_enc(
                    all.get(usize::from(name != "ntile"))
                        .unwrap_or(&Val::plain(None)),
                ) =>
            {
                return Err(counted(name, at));
            }
            ("lag" | "lead" | "nth_value", [x, offset]) => {
                self.note_plain(offset);
                Some(x.clone())
            }
            ("lag" | "lead", [x, offset, default]) => {
                self.note_plain(offset);
                Some(self.common(&[x.clone(), default.clone()], at)?)
            }
            ("row_number" | "rank" | "dense_rank" | "ntile" | "percent_rank" | "cume_dist", _)
                if vals.iter().all(|v| !self.holds_enc(v)) =>
            {
                vals.iter().for_each(|v| self.note_plain(v));
                Some(Val::plain(None))
            }
            _ => self.array_function(name, vals, at)?,
        })
    }

    /// Whether it is an array of protected strings.
    fn text_elements(&self, val: &Val) -> bool {
        let Class::Array(element) = &val.class else {
            return false;
        };
        let code = self.enc_now(element).flatten();
        code.is_some_and(|code| code.stored() == TypeCode::Text)
    }

    /// The result of `unnest` for an array.
    pub fn element(&mut self, val: &Val) -> Val {
        let array = self.arrayed(val);
        match &array.class {
            Class::Array(element) => (**element).clone(),
            _ => Val::unknown_of([&array]),
        }
    }

    fn user_function(
        &mut self,
        all: &[UserFunction],
        f: &FuncCall,
        vals: &[Val],
    ) -> Res<Option<Val>> {
        let count = vals.len();
        let fits = |u: &&UserFunction| {
            (u.args.len() >= count && u.args.len() - u.defaults.min(u.args.len()) <= count)
                || (u.variadic.is_some() && count + 1 >= u.args.len())
        };
        let fitting: Vec<&UserFunction> = all.iter().filter(fits).collect();
        if fitting.is_empty() {
            return Ok(None);
        }
        self.touches_protected = true;
        for function in &fitting {
            self.authority.call(&function.schema, &function.name);
        }
        for (index, (node, val)) in f.args.iter().zip(vals).enumerate() {
            let mut targets: Vec<Option<&ColumnType>> =
                fitting.iter().map(|u| target(u, index, node, f)).collect();
            targets.dedup();
            self.user_argument(&targets, val, f.location)?;
        }
        let given = self.given_plain(&fitting, f, vals);
        let mut results: Vec<Val> = Vec::new();
        for function in &fitting {
            let mut result = self.user_result(function);
            if matches!(result.class, Class::Plain(_)) {
                result.leaves.extend(given.iter().copied());
            }
            results.push(result);
        }
        let protected = results.iter().filter(|v| self.holds_enc(v)).count();
        Ok(Some(match results.as_slice() {
            [only] => only.clone(),
            _ if protected == 0 => Val {
                leaves: given,
                ..Val::plain(None)
            },
            [
                Val {
                    class: Class::Enc(_),
                    ..
                },
                ..,
            ] if protected == results.len() => Val::enc(None),
            _ => Val::unknown(),
        }))
    }

    /// The leaves that a function receives as plain values and might return.
    fn given_plain(&self, fitting: &[&UserFunction], f: &FuncCall, vals: &[Val]) -> Vec<Use> {
        let mut given = Vec::new();
        for (index, (node, val)) in f.args.iter().zip(vals).enumerate() {
            let protected =
                |u: &&UserFunction| target(u, index, node, f).is_some_and(ColumnType::protected);
            if !fitting.iter().any(protected) {
                given.extend(val.blocked(Block::Argument));
            }
        }
        given
    }

    fn user_argument(&mut self, targets: &[Option<&ColumnType>], val: &Val, at: i32) -> Res<()> {
        let protected = targets
            .iter()
            .filter(|t| t.is_some_and(ColumnType::protected))
            .count();
        match targets {
            [Some(only)] => {
                let target = self.value_of(only);
                self.assign(&target, val, at)
            }
            _ if protected == 0 => {
                self.note_plain(val);
                Ok(())
            }
            _ if protected == targets.len() => self.protect(val),
            _ => match self.secrets(val).first() {
                Some(u) if !self.holds_enc(val) => Err(self.undecided(u, at).hint(
                    "The function has overloads for plain and protected types: cast the argument to the one that is meant.",
                )),
                _ => Ok(()),
            },
        }
    }

    /// The result of a user's function.
    pub fn user_result(&mut self, f: &UserFunction) -> Val {
        if f.out.len() > 1 {
            return Val::row(
                f.out
                    .iter()
                    .map(|(n, t)| (n.clone(), self.value_of(t)))
                    .collect(),
            );
        }
        if let Some((_, ty)) = f.out.first() {
            return self.value_of(ty);
        }
        let relation = f
            .ret_relation
            .and_then(|oid| self.schema.relation_by_oid(oid));
        match relation.and_then(|r| r.columns.as_ref()) {
            Some(columns) => Val::row(
                columns
                    .iter()
                    .map(|c| (c.name.clone(), self.value_of(&c.ty)))
                    .collect(),
            ),
            None => self.value_of(&f.ret),
        }
    }

    /// A value of the type of a column or argument.
    pub fn value_of(&self, ty: &ColumnType) -> Val {
        match ty {
            ColumnType::Plain(_, name) => Val::plain(
                TypeCode::ALL
                    .iter()
                    .copied()
                    .find(|t| t.plain_name() == name),
            ),
            ColumnType::Enc(code) => Val::enc(Some(*code)),
            ColumnType::EncArray(code) => Val::array(Val::enc(Some(*code))),
            ColumnType::Soft(code, modifier) => match Column::of(*code, *modifier) {
                Some(column) => Val::of(Class::Soft(column)),
                None => Val::unknown(),
            },
            ColumnType::SoftArray(_) | ColumnType::Opaque(..) => Val::unknown(),
        }
    }

    /// `ORDER BY` of an aggregate or window function: expressions only.
    pub fn sort_clause(&mut self, nodes: &[Node]) -> Res<Vec<Val>> {
        let mut vals = Vec::new();
        for node in nodes {
            match &node.node {
                Some(NodeEnum::SortBy(s)) => vals.extend(self.maybe(s.node.as_deref())?),
                _ => vals.push(self.expr(node)?),
            }
        }
        Ok(vals)
    }
}

pub(super) fn has_named(f: &FuncCall) -> bool {
    let named = |node: &Node| matches!(node.node, Some(NodeEnum::NamedArgExpr(_)));
    f.args.iter().any(named)
}

/// PostgreSQL itself counts rows with these numbers.
fn counted(name: &str, at: i32) -> Refusal {
    Refusal::unsupported(format!("{name} cannot count rows by a protected value"))
        .at(at)
        .hint("Keep the number of rows in a plain column, or write it as a constant.")
}

/// The type of the argument for which an expression is passed.
fn target<'u>(
    u: &'u UserFunction,
    index: usize,
    node: &Node,
    f: &FuncCall,
) -> Option<&'u ColumnType> {
    if let Some(NodeEnum::NamedArgExpr(named)) = &node.node {
        let at = u.arg_names.iter().position(|n| *n == named.name)?;
        return u.args.get(at);
    }
    let last = u.args.len().checked_sub(1)?;
    match &u.variadic {
        Some(element) if index >= last && !f.func_variadic => Some(element),
        _ => u.args.get(index),
    }
}

/// Whether the argument selects what to do rather than being operated on: the name of the field in
/// `extract`.
fn structure(sigs: &[&Sig], index: usize) -> bool {
    sigs.iter()
        .all(|s| matches!(s.args.get(index), Some(Arg::Plain(_))))
}

/// The type that PostgreSQL assumes for an untyped string if the signatures have different types
/// for an argument: text, or the preferred type.
fn of_several(sigs: &[&Sig], index: usize) -> Option<TypeCode> {
    use TypeCode::{Float8, Text, Timestamptz};
    let of = |sig: &&Sig| sig.args.get(index).copied();
    let has = |code: TypeCode| sigs.iter().any(|s| of(s) == Some(Arg::Enc(code)));
    let differ = sigs.iter().any(|s| of(s) != sigs.first().and_then(of));
    let preferred = [Text, Float8, Timestamptz].into_iter();
    preferred.filter(|_| differ).find(|code| has(*code))
}
