//! Domains over protected types: their checks and defaults are inferred with `VALUE` in scope.
//!
//! In grants a domain stands for the columns of its type (`Authority::of_domains`): what its checks do is
//! authorised when they are defined, for columns that may be made later.

use crate::effect::{Effect, Extra};
use crate::infer::{Infer, Res, names};
use crate::refusal::Refusal;
use crate::relation::{self, ColumnType};
use crate::scope::{Col, Frame};
use pg_query::protobuf::{AlterDomainStmt, ConstrType, CreateDomainStmt, RenameStmt, TypeName};
use pg_query::{Node, NodeEnum};
use std::rc::Rc;

/// Schema, if it is said, and name.
fn split<'p>(path: &'p [&'p str]) -> (Option<&'p str>, &'p str) {
    match path.split_last() {
        Some((name, schema)) => (schema.last().copied(), name),
        None => (None, ""),
    }
}

impl Infer<'_> {
    /// The domain over a protected type that this names, in grants.
    pub fn domain(&self, name: &TypeName) -> Option<grant::Column> {
        let path = names(&name.names);
        let (schema, name) = split(&path);
        self.schema.domain(schema, name)
    }

    pub fn create_domain(&mut self, d: &CreateDomainStmt) -> Res<Extra> {
        let Some(base) = &d.type_name else {
            return self.without_values();
        };
        let ty = self.column_type(base)?;
        if !ty.protected() {
            // `VALUE` is plain, and so is everything combined with it.
            return self.without_values();
        }
        let of = names(&base.names);
        let stored = matches!(ty, ColumnType::Enc(_)) && !split(&of).1.starts_with("rnd_");
        if !stored {
            return Err(
                Refusal::unsupported("a domain over this protected type is not supported")
                    .at(base.location)
                    .detail("Domains are over types of the family enc_.")
                    .hint("Use the type itself, with a CHECK constraint on the column."),
            );
        }
        let path = names(&d.domainname);
        let (schema, name) = split(&path);
        let place = self
            .schema
            .creation_schema(schema.unwrap_or_default(), false);
        let own = relation::domain(&place, name);
        if let Some(base) = self.domain(base) {
            self.authority.alias(base, [own.clone()]);
        }
        for node in &d.constraints {
            self.domain_constraint(node, &own, &ty)?;
        }
        Ok(Extra {
            effects: vec![Effect::Domain(place, name.to_owned(), ty)],
            ..Extra::default()
        })
    }

    pub fn alter_domain(&mut self, d: &AlterDomainStmt) -> Res<Extra> {
        let path = names(&d.type_name);
        let (schema, name) = split(&path);
        let own = self.schema.domain(schema, name);
        let ty = self.schema.protected_type(schema, name).cloned();
        let (Some(own), Some(ty), Some(def)) = (own, ty, d.def.as_deref()) else {
            return self.without_values();
        };
        self.domain_constraint(def, &own, &ty)?;
        Ok(Extra::default())
    }

    /// The former name stands for the new one, too.
    pub fn rename_domain(&mut self, r: &RenameStmt) {
        let Some(NodeEnum::List(path)) = r.object.as_ref().and_then(|o| o.node.as_ref()) else {
            return;
        };
        let path = names(&path.items);
        let (schema, name) = split(&path);
        if let Some(former) = self.schema.domain(schema, name) {
            let now = relation::domain(&former.schema, &r.newname);
            self.authority.alias(former, [now]);
        }
    }

    /// A constraint or a default, which in `ALTER DOMAIN` is an expression.
    fn domain_constraint(&mut self, node: &Node, own: &grant::Column, ty: &ColumnType) -> Res<()> {
        let value = self.value_of(ty);
        let list = vec![Col {
            name: "value".into(),
            val: value.clone(),
            own: false,
        }];
        let default = match &node.node {
            Some(NodeEnum::Constraint(c)) => c.contype() == ConstrType::ConstrDefault,
            _ => true,
        };
        self.touches_protected = true;
        self.authority.define_domain(own, default);
        self.scopes.push(Rc::new(Frame {
            entries: Vec::new(),
            list,
            open: None,
        }));
        let result = match &node.node {
            Some(NodeEnum::Constraint(c)) => self.constraint(c, Some(&value)),
            _ => match self.expr(node) {
                Ok(val) => self.assign(&value, &val, -1),
                Err(refusal) => Err(refusal),
            },
        };
        self.scopes.pop();
        result
    }
}
