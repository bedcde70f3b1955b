//! `ALTER COLUMN … TYPE`, and the changes of a column's family for which values must pass the client
//! (docs/families.md, "Changing the family"): the server has no key, and the keeper has none of the
//! family `soft_`.
//!
//! Not here: carrying such a change out. The caller reads the values and writes them again.
//!
//! Invariant: a change that the server can make by itself is not among them.

use crate::infer::{Infer, Res, names};
use crate::relation::{Column, ColumnType, Relation};
use crate::statement::{RECODING, Recoding};
use contract::TypeCode;
use pg_query::protobuf::{AlterTableCmd, AlterTableStmt, AlterTableType, ColumnDef, RangeVar};
use pg_query::{Node, NodeEnum};

/// The plain type of a column's values, and whether the keeper deals with them (`Some(true)`), the
/// client alone (`Some(false)`), or the server (`None`). No result for other types.
fn kind(ty: &ColumnType) -> Option<(Option<bool>, TypeCode)> {
    match ty {
        ColumnType::Enc(code) => Some((Some(true), *code)),
        ColumnType::Soft(code, _) => Some((Some(false), *code)),
        ColumnType::Plain(_, name) => {
            let named = |code: &&TypeCode| code.plain_name() == name;
            Some((None, TypeCode::ALL.iter().find(named).copied()?))
        }
        ColumnType::EncArray(_) | ColumnType::SoftArray(_) | ColumnType::Opaque(..) => None,
    }
}

/// The change from a column's type to another one, if the values must pass the client.
fn change(relation: &Relation, column: &Column, to: &ColumnType, target: &str) -> Option<Recoding> {
    let ((from_family, from), (to_family, code)) = (kind(&column.ty)?, kind(to)?);
    let passes = match (from_family, to_family) {
        (Some(true), Some(true)) | (None, None | Some(true)) => false,
        (Some(false), _) | (_, Some(false)) | (Some(true), None) => true,
    };
    (passes && relation.kind == 'r').then(|| Recoding {
        schema: relation.schema.clone(),
        table: relation.name.clone(),
        column: column.name.clone(),
        target: target.to_owned(),
        to_keeper: to_family == Some(true),
        from_keeper: from_family == Some(true),
        alike: from.stored() == code.stored(),
    })
}

impl Infer<'_> {
    /// The change of a column's family that values must pass the client for, if it is all that the
    /// statement does.
    pub fn recoding(&mut self, a: &AlterTableStmt, relation: &Relation) -> Res<Option<Recoding>> {
        let [one] = a.cmds.as_slice() else {
            return Ok(None);
        };
        let Some(NodeEnum::AlterTableCmd(cmd)) = &one.node else {
            return Ok(None);
        };
        let (AlterTableType::AtAlterColumnType, Some(NodeEnum::ColumnDef(def))) = (
            cmd.subtype(),
            cmd.def.as_deref().and_then(|d| d.node.as_ref()),
        ) else {
            return Ok(None);
        };
        let column = relation.columns.iter().flatten();
        let column = column.into_iter().find(|c| c.name == cmd.name);
        let (Some(column), Some(name), None, None) =
            (column, &def.type_name, &def.raw_default, &def.coll_clause)
        else {
            return Ok(None);
        };
        let written = self.type_use(name)?;
        let text = self.sql.get(written.range.clone()).unwrap_or_default();
        Ok(change(relation, column, &written.column_type(), text))
    }

    /// New values from a temporary table, by a function of its name: the statement reads the table.
    pub fn recoded(&mut self, using: &Node) -> Res<()> {
        let Some(NodeEnum::FuncCall(call)) = &using.node else {
            return Ok(());
        };
        if names(&call.funcname) == ["pg_temp", RECODING] {
            let temporary = RangeVar {
                schemaname: "pg_temp".to_owned(),
                relname: RECODING.to_owned(),
                ..RangeVar::default()
            };
            let relation = self.relation(&temporary)?;
            self.authority.name(&relation);
        }
        Ok(())
    }

    /// `ALTER COLUMN … TYPE`.
    pub fn alter_type(
        &mut self,
        cmd: &AlterTableCmd,
        def: &ColumnDef,
        relation: &mut Relation,
    ) -> Res<()> {
        let Some(name) = &def.type_name else {
            return Ok(());
        };
        let ty = self.column_type(name)?;
        self.touches_protected |= ty.protected();
        let target = self.value_of(&ty);
        let now = relation.clone();
        if let Some(using) = def.raw_default.as_deref() {
            self.recoded(using)?;
            self.with_table(&now, |infer| {
                let val = infer.expr(using)?;
                infer.assign(&target, &val, def.location)
            })?;
        }
        for column in relation
            .columns
            .iter_mut()
            .flatten()
            .filter(|c| c.name == cmd.name)
        {
            if ty.protected() && !column.ty.protected() {
                self.authority.takes_plain();
            }
            column.ty = ty.clone();
            column.domain = self.domain(name);
        }
        Ok(())
    }
}
