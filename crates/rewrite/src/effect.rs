//! What a statement changes, for those behind it in the same text.

use crate::copy::CopyPlan;
use crate::relation::Relation;

/// What a statement changes for those behind it in the same text.
#[derive(Clone, Debug)]
pub(crate) enum Effect {
    /// A temporary schema may exist from here on.
    Temporary,
    Relation(Relation),
    Gone(Relation),
    /// What goes by this name may be something else from here on.
    Unsure(String),
    /// What any name stands for may be.
    Lost,
}

/// What is known of a statement besides its edits.
#[derive(Default)]
pub(crate) struct Extra {
    pub copy: Option<CopyPlan>,
    pub effects: Vec<Effect>,
    pub changes_schema: bool,
}
