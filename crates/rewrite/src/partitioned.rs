//! Partitioned tables: their keys, which are plain, and the bounds of their partitions.

use crate::infer::{Infer, Res};
use crate::refusal::Refusal;
use crate::relation::Relation;
use pg_query::NodeEnum;
use pg_query::protobuf::{CreateStmt, PartitionBoundSpec};

impl Infer<'_> {
    pub fn partition_key(&mut self, c: &CreateStmt, relation: &Relation) -> Res<()> {
        let Some(spec) = &c.partspec else {
            return Ok(());
        };
        for node in &spec.part_params {
            let Some(NodeEnum::PartitionElem(e)) = &node.node else {
                continue;
            };
            let column = relation.columns.iter().flatten().find(|c| c.name == e.name);
            let mut protected = column.is_some_and(|c| c.ty.protected());
            if let Some(expr) = e.expr.as_deref() {
                let val = self.with_table(relation, |infer| infer.expr(expr))?;
                protected |= self.holds_enc(&val);
            }
            if protected {
                return Err(Refusal::unsupported(
                    "a table cannot be partitioned by a protected column",
                )
                .at(e.location)
                .detail(
                    "The server would compare its values with the partitions' bounds, or hash them, \
                     wherever the table is opened, also without a client; which partition a row is in \
                     would tell part of its value.",
                )
                .hint(
                    "Partition by a plain column, such as a year or a number of the tenant, and create \
                     an index on the protected column.",
                )
                .for_good());
            }
        }
        Ok(())
    }

    /// Bounds have the type of the partition key, which is plain.
    pub fn bound(&mut self, bound: &PartitionBoundSpec) -> Res<()> {
        let all = bound
            .listdatums
            .iter()
            .chain(&bound.lowerdatums)
            .chain(&bound.upperdatums);
        for node in all {
            // MINVALUE and MAXVALUE are parsed like columns.
            if !matches!(&node.node, Some(NodeEnum::ColumnRef(_))) {
                let val = self.expr(node)?;
                self.note_plain(&val);
            }
        }
        if !bound.strategy.is_empty() || bound.modulus != 0 {
            let start = usize::try_from(bound.location).unwrap_or(0);
            let first = self.tokens.next_from(start);
            let end = (first..self.tokens.len())
                .find(|i| self.tokens.kind(*i) == pg_query::protobuf::Token::Ascii40)
                .and_then(|open| self.tokens.closing(open));
            if let (true, Some(end)) = (bound.modulus != 0, end) {
                let range = start..self.tokens.range(end).end;
                let inside: Vec<usize> = self.tokens.values(&range).map(|(_, r)| r.start).collect();
                self.visited.extend(inside);
            }
        }
        Ok(())
    }
}
