//! Cursors that a body opens. Not here: whether the body is that of the routine that is called.

use super::{Body, Piece};
use crate::infer::Infer;
use crate::tokens::Tokens;
use std::collections::BTreeSet;

impl Body<'_> {
    /// For each cursor that it opens, which columns of its rows may be protected. A query that
    /// cannot be followed, or is put together as a string, is left out.
    pub fn cursors(&self) -> Vec<Vec<bool>> {
        let queries = self.pieces.iter().filter(|piece| piece.cursor);
        queries.filter_map(|piece| self.cursor(piece)).collect()
    }

    fn cursor(&self, piece: &Piece) -> Option<Vec<bool>> {
        let parsed = pg_query::parse(&piece.sql, 0).ok()?;
        let tokens = Tokens::scan(&piece.sql).ok()?;
        let mut infer = Infer::new(&piece.sql, &tokens, self.schema, self.meeting);
        infer.following.clone_from(&self.following);
        self.declare(&mut infer, &BTreeSet::new());
        let query = parsed.protobuf.stmts.first()?.stmt.as_deref()?;
        let cols = infer.query_node(query).ok()?.shown();
        infer.given(&cols)
    }
}
