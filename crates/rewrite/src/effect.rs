//! Effects of a statement on later statements in the same text.

use crate::copy::CopyPlan;
use crate::relation::{ColumnType, Relation};

/// An effect of a statement on later statements in the same text.
#[derive(Clone, Debug)]
pub(crate) enum Effect {
    /// From here on a temporary schema may exist.
    Temporary,
    Relation(Relation),
    Gone(Relation),
    /// A domain over a protected type, with its schema and name.
    Domain(String, String, ColumnType),
    /// From here on this name may refer to something else.
    Unsure(String),
    /// From here on any name may refer to something else.
    Lost,
}

/// What is known about a statement besides its edits.
#[derive(Default)]
pub(crate) struct Extra {
    pub copy: Option<CopyPlan>,
    pub effects: Vec<Effect>,
    pub changes_schema: bool,
    pub recoding: Option<crate::statement::Recoding>,
}
