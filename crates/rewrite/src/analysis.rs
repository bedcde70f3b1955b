//! What is known of a statement when it has been analysed.

use crate::effect::Effect;
use crate::kind::Traits;
use crate::statement::{Statement, StatementKind};
use std::collections::BTreeMap;
use std::ops::Range;

/// One statement, and what those behind it and [`crate::Memo`] need of it.
pub(crate) struct Analysis {
    pub statement: Statement,
    pub effects: Vec<Effect>,
    /// See [`crate::finish::Outcome`].
    pub free: Vec<Range<usize>>,
    /// Edits of it depend on all of its text, so that no other text may have them.
    pub unique: bool,
    /// See [`crate::finish::Outcome`].
    pub open: Vec<Range<usize>>,
}

impl Analysis {
    /// Of a query that holds for its text alone.
    pub fn of_select(range: Range<usize>) -> Analysis {
        Analysis {
            unique: true,
            ..bare(range, Traits::of(StatementKind::Select))
        }
    }
}

/// A statement of which nothing is known but its kind.
pub(crate) fn bare(range: Range<usize>, traits: Traits) -> Analysis {
    let statement = Statement {
        range,
        kind: traits.kind,
        edits: Vec::new(),
        params: BTreeMap::new(),
        clear_values: false,
        touches_protected: false,
        changes_schema: traits.changes_schema,
        changes_search_path: traits.changes_search_path,
        depends_on_search_path: false,
        compared: Vec::new(),
        results: None,
        unresolved: false,
        apart: false,
        grant: None,
        copy: None,
        prepare: None,
    };
    Analysis {
        statement,
        effects: Vec::new(),
        free: Vec::new(),
        unique: false,
        open: Vec::new(),
    }
}
