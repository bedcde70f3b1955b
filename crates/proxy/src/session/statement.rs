//! What is remembered about prepared statements and portals.
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use client::Protected;
use client::description::Column;
use rewrite::{CopyPlan, Late, ParamUse, PositionMap, PreparedInfo, StatementKind, Transaction};

use super::cursors::Cursor;
use crate::wire::frontend::format_of;

/// The effect of a statement on the registry of prepared statements when it has succeeded.
#[derive(Clone, Debug)]
pub(super) enum Effect {
    /// `PREPARE`.
    Prepare(String, PreparedInfo),
    /// `DEALLOCATE`, `DEALLOCATE ALL`.
    Deallocate(Option<String>),
    /// `DISCARD ALL`.
    DiscardAll,
    /// `DECLARE CURSOR`.
    Declare(String, Cursor),
    /// Routines may have opened cursors: which columns of their rows may be protected.
    Open(Vec<Vec<bool>>),
    /// `CLOSE`, `CLOSE ALL`.
    Close(Option<String>),
    /// The end of a transaction, or of part of one: whether it is committed.
    End(bool),
}

impl Effect {
    /// The effect of an analysed statement.
    pub(super) fn of(statement: &rewrite::Statement) -> Option<Effect> {
        match &statement.kind {
            StatementKind::Prepare { name } => Some(Effect::Prepare(
                name.clone(),
                statement.prepare.clone().unwrap_or_default(),
            )),
            StatementKind::Deallocate { name } => Some(Effect::Deallocate(name.clone())),
            StatementKind::Discard { all: true } => Some(Effect::DiscardAll),
            StatementKind::Declare { name, hold } => {
                let results = statement.results.clone();
                let (hold, late) = (*hold, statement.late);
                let cursor = Cursor {
                    results,
                    hold,
                    late,
                };
                Some(Effect::Declare(name.clone(), cursor))
            }
            StatementKind::Close { name } => Some(Effect::Close(name.clone())),
            StatementKind::TransactionControl(Transaction::Commit) => Some(Effect::End(true)),
            StatementKind::TransactionControl(
                Transaction::Rollback | Transaction::RollbackTo | Transaction::TwoPhase,
            ) => Some(Effect::End(false)),
            _ if !statement.cursors.is_empty() => Some(Effect::Open(statement.cursors.clone())),
            _ => None,
        }
    }
}

/// A prepared statement.
#[derive(Default)]
pub(super) struct Statement {
    /// Name.
    pub(super) name: String,
    /// The client's text; `None` if it was not prepared through Parse.
    pub(super) sql: Option<String>,
    /// The client's declared types.
    pub(super) declared: Vec<u32>,
    /// The session of the envelopes and grants in the text that the server has; `None` if there are
    /// none.
    pub(super) sealed_in: Option<u64>,
    /// The number of the connection on which it was prepared.
    pub(super) link: u64,
    /// How its parameters are used.
    pub(super) uses: BTreeMap<u32, ParamUse>,
    /// Parameters that are sealed because their values were equal to those of others.
    pub(super) sealing: Vec<u32>,
    /// It reads, writes or defines something protected, or may do so.
    pub(super) touches: bool,
    /// The analysis does not determine the results: ask the server before they arrive.
    pub(super) opaque: bool,
    /// Position mapping of the text that was sent.
    pub(super) positions: Option<PositionMap>,
    /// The analysed statement, used at Execute.
    pub(super) analysed: Option<rewrite::Statement>,
    /// [`rewrite::PreparedInfo::late`].
    pub(super) late: Late,
    /// [`rewrite::PreparedInfo::results`], if only that is known.
    pub(super) prepared: Option<Vec<bool>>,
    /// Parameter types, from the server.
    pub(super) params: OnceLock<Vec<u32>>,
    /// Result columns, from the server.
    pub(super) fields: OnceLock<Vec<Option<Protected>>>,
    /// Describe has been sent for it.
    pub(super) asked: AtomicBool,
}

impl Statement {
    /// Marks Describe as sent; returns whether it already was.
    pub(super) fn ask(&self) -> bool {
        self.asked.swap(true, Ordering::Relaxed)
    }

    /// The column that the parameter at this place, from 0 on, is only assigned to.
    pub(super) fn fit(&self, at: usize) -> Option<&rewrite::Fit> {
        let number = u32::try_from(at).ok()?.checked_add(1)?;
        self.uses.get(&number)?.fits()
    }

    /// The cursor that it reads.
    pub(super) fn cursor(&self) -> Option<&str> {
        match &self.analysed.as_ref()?.kind {
            StatementKind::Fetch { name } => Some(name),
            _ => None,
        }
    }

    /// Which columns of its rows may be protected, if known; of a cursor's see
    /// [`super::cursors`].
    pub(super) fn results(&self) -> Option<&[bool]> {
        match &self.analysed {
            Some(analysed) => analysed.results.as_deref(),
            None => self.prepared.as_deref(),
        }
    }

    /// What EXECUTE has to know of it.
    pub(super) fn info(&self) -> PreparedInfo {
        PreparedInfo {
            params: self.uses.clone(),
            touches_protected: self.touches,
            results: self.results().map(<[bool]>::to_vec),
            late: self.late,
            cursors: self.cursors().to_vec(),
        }
    }

    /// The same for the cursors that routines open which it calls.
    pub(super) fn cursors(&self) -> &[Vec<bool>] {
        self.analysed.as_ref().map_or(&[], |s| &s.cursors)
    }

    /// The COPY of an execution.
    pub(super) fn copy(&self) -> Option<CopyPlan> {
        self.analysed.as_ref()?.copy.clone()
    }
}

/// A portal.
#[derive(Default)]
pub(super) struct Portal {
    /// The statement that it executes.
    pub(super) statement: Option<Arc<Statement>>,
    /// Result formats from Bind.
    pub(super) results: Vec<i16>,
    /// Result columns with formats, from the server.
    pub(super) columns: OnceLock<Vec<Column>>,
    /// Describe has been sent for it.
    pub(super) asked: AtomicBool,
    /// The client's Bind, if any of its parameters were sealed.
    pub(super) bind: Option<Bytes>,
}

impl Portal {
    /// Format and protection of column `at`.
    pub(super) fn column(&self, at: usize) -> Column {
        if let Some(columns) = self.columns.get() {
            return columns.get(at).copied().unwrap_or(Column {
                protected: None,
                format: 0,
            });
        }
        let fields = self.statement.as_ref().and_then(|s| s.fields.get());
        Column {
            protected: fields.and_then(|f| f.get(at).copied()).flatten(),
            format: format_of(&self.results, at),
        }
    }

    /// Whether any column is protected, as far as is known.
    pub(super) fn protected(&self) -> bool {
        if let Some(columns) = self.columns.get() {
            return columns.iter().any(|c| c.protected.is_some());
        }
        self.statement
            .as_ref()
            .and_then(|s| s.fields.get())
            .is_some_and(|f| f.iter().any(Option::is_some))
    }
}
