//! The result of analysing a statement.

use crate::effect::Effect;
use crate::kind::Traits;
use crate::statement::{Late, Statement, StatementKind};
use std::collections::BTreeMap;
use std::ops::Range;

/// A statement, and what the analysis of later statements and [`crate::Memo`] need to know about
/// it.
pub(crate) struct Analysis {
    pub statement: Statement,
    pub effects: Vec<Effect>,
    /// See [`crate::finish::Outcome`].
    pub free: Vec<Range<usize>>,
    /// Its edits depend on its whole text, so they cannot be reused for another text.
    pub unique: bool,
    /// Its edits can be reused only for texts without this.
    pub absent: Option<&'static str>,
    /// See [`crate::finish::Outcome`].
    pub open: Vec<Range<usize>>,
}

impl Analysis {
    /// The analysis of a query that is valid for its own text only.
    pub fn of_select(range: Range<usize>) -> Analysis {
        Analysis {
            unique: true,
            ..bare(range, Traits::of(StatementKind::Select))
        }
    }
}

/// A statement of which only the kind is known.
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
        late: Late::Never,
        cursors: Vec::new(),
        unresolved: false,
        apart: false,
        grant: None,
        copy: None,
        recoding: None,
        prepare: None,
    };
    Analysis {
        statement,
        effects: Vec::new(),
        free: Vec::new(),
        unique: false,
        absent: None,
        open: Vec::new(),
    }
}
