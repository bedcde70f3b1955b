//! Determines the kind of a statement from its parse tree, and what may be stale after it.

use crate::statement::{StatementKind, Transaction};
use pg_query::protobuf::{DiscardMode, ObjectType, TransactionStmtKind, VariableSetKind};
use pg_query::{Node, NodeEnum};

/// `CURSOR_OPT_HOLD` of a DECLARE.
const CURSOR_HOLD: i32 = 0x20;

/// What is known without analysing expressions.
#[derive(Clone, Debug)]
pub(crate) struct Traits {
    pub kind: StatementKind,
    pub changes_schema: bool,
    pub changes_search_path: bool,
}

impl Traits {
    pub fn of(kind: StatementKind) -> Traits {
        let changes_schema = kind == StatementKind::Ddl;
        Traits {
            kind,
            changes_schema,
            changes_search_path: false,
        }
    }

    fn changing_all(self) -> Traits {
        Traits {
            changes_schema: true,
            changes_search_path: true,
            ..self
        }
    }
}

pub(crate) fn traits(node: &Node) -> Traits {
    let Some(node) = &node.node else {
        return Traits::of(StatementKind::Empty);
    };
    match node {
        NodeEnum::SelectStmt(s) if s.into_clause.is_some() => Traits::of(StatementKind::Ddl),
        NodeEnum::SelectStmt(_) => Traits::of(StatementKind::Select),
        NodeEnum::InsertStmt(_)
        | NodeEnum::UpdateStmt(_)
        | NodeEnum::DeleteStmt(_)
        | NodeEnum::MergeStmt(_) => Traits::of(StatementKind::Dml),
        NodeEnum::CopyStmt(_) => Traits::of(StatementKind::Copy),
        NodeEnum::TransactionStmt(t) => Traits::of(transaction(t.kind())),
        NodeEnum::VariableSetStmt(s) => setting(&s.name, s.kind()),
        NodeEnum::VariableShowStmt(_) => Traits::of(StatementKind::Show),
        NodeEnum::PrepareStmt(p) => Traits::of(StatementKind::Prepare {
            name: p.name.clone(),
        }),
        NodeEnum::ExecuteStmt(e) => Traits::of(StatementKind::Execute {
            name: e.name.clone(),
        }),
        NodeEnum::DeallocateStmt(d) => Traits::of(StatementKind::Deallocate { name: one(&d.name) }),
        NodeEnum::DeclareCursorStmt(d) => Traits::of(StatementKind::Declare {
            name: d.portalname.clone(),
            hold: d.options & CURSOR_HOLD != 0,
        }),
        NodeEnum::FetchStmt(f) => Traits::of(StatementKind::Fetch {
            name: f.portalname.clone(),
        }),
        NodeEnum::ClosePortalStmt(c) => Traits::of(StatementKind::Close {
            name: one(&c.portalname),
        }),
        NodeEnum::ExplainStmt(_) => Traits::of(StatementKind::Explain),
        NodeEnum::DiscardStmt(d) => {
            let all = d.target() == DiscardMode::DiscardAll;
            Traits {
                changes_schema: true,
                changes_search_path: all,
                kind: StatementKind::Discard { all },
            }
        }
        // What they run may change anything.
        NodeEnum::CallStmt(_) => Traits::of(StatementKind::Call).changing_all(),
        NodeEnum::DoStmt(_) => Traits::of(StatementKind::Do).changing_all(),
        // The search path depends on the privileges on schemas.
        NodeEnum::GrantStmt(g) if g.objtype() == ObjectType::ObjectSchema => Traits {
            changes_schema: true,
            ..Traits::of(StatementKind::Other)
        },
        NodeEnum::GrantRoleStmt(_) => Traits {
            changes_schema: true,
            ..Traits::of(StatementKind::Other)
        },
        other if passes(other) => Traits::of(StatementKind::Other),
        _ => Traits::of(StatementKind::Ddl),
    }
}

/// The name in a statement that has none for `ALL`.
fn one(name: &str) -> Option<String> {
    (!name.is_empty()).then(|| name.to_owned())
}

fn transaction(kind: TransactionStmtKind) -> StatementKind {
    StatementKind::TransactionControl(match kind {
        TransactionStmtKind::TransStmtBegin | TransactionStmtKind::TransStmtStart => {
            Transaction::Begin
        }
        TransactionStmtKind::TransStmtCommit => Transaction::Commit,
        TransactionStmtKind::TransStmtSavepoint => Transaction::Savepoint,
        TransactionStmtKind::TransStmtRelease => Transaction::Release,
        TransactionStmtKind::TransStmtRollbackTo => Transaction::RollbackTo,
        TransactionStmtKind::TransStmtPrepare
        | TransactionStmtKind::TransStmtCommitPrepared
        | TransactionStmtKind::TransStmtRollbackPrepared => Transaction::TwoPhase,
        TransactionStmtKind::TransStmtRollback | TransactionStmtKind::Undefined => {
            Transaction::Rollback
        }
    })
}

fn setting(name: &str, kind: VariableSetKind) -> Traits {
    let name = name.to_ascii_lowercase();
    let path = matches!(
        name.as_str(),
        "search_path" | "role" | "session_authorization"
    ) || kind == VariableSetKind::VarResetAll;
    Traits {
        changes_schema: false,
        changes_search_path: path,
        kind: StatementKind::Set { name },
    }
}

/// Statements without expressions that leave the schema as it is.
pub(crate) fn passes(node: &NodeEnum) -> bool {
    matches!(
        node,
        NodeEnum::VacuumStmt(_)
            | NodeEnum::ClusterStmt(_)
            | NodeEnum::ReindexStmt(_)
            | NodeEnum::TruncateStmt(_)
            | NodeEnum::GrantStmt(_)
            | NodeEnum::GrantRoleStmt(_)
            | NodeEnum::CommentStmt(_)
            | NodeEnum::SecLabelStmt(_)
            | NodeEnum::LockStmt(_)
            | NodeEnum::NotifyStmt(_)
            | NodeEnum::ListenStmt(_)
            | NodeEnum::UnlistenStmt(_)
            | NodeEnum::CheckPointStmt(_)
            | NodeEnum::RefreshMatViewStmt(_)
            | NodeEnum::ConstraintsSetStmt(_)
            | NodeEnum::LoadStmt(_)
            | NodeEnum::CreateRoleStmt(_)
            | NodeEnum::AlterRoleStmt(_)
            | NodeEnum::AlterRoleSetStmt(_)
            | NodeEnum::DropRoleStmt(_)
            | NodeEnum::CreatedbStmt(_)
            | NodeEnum::AlterDatabaseStmt(_)
            | NodeEnum::AlterDatabaseSetStmt(_)
            | NodeEnum::AlterDatabaseRefreshCollStmt(_)
            | NodeEnum::DropdbStmt(_)
            | NodeEnum::AlterSystemStmt(_)
            | NodeEnum::CreateTableSpaceStmt(_)
            | NodeEnum::DropTableSpaceStmt(_)
            | NodeEnum::AlterTableSpaceOptionsStmt(_)
            | NodeEnum::AlterDefaultPrivilegesStmt(_)
            | NodeEnum::CreateEventTrigStmt(_)
            | NodeEnum::AlterEventTrigStmt(_)
            | NodeEnum::AlterStatsStmt(_)
            | NodeEnum::CreateSubscriptionStmt(_)
            | NodeEnum::AlterSubscriptionStmt(_)
            | NodeEnum::DropSubscriptionStmt(_)
    )
}

/// Statements without expressions that may change the schema.
pub(crate) fn passes_ddl(node: &NodeEnum) -> bool {
    matches!(
        node,
        NodeEnum::DropStmt(_)
            | NodeEnum::CreateExtensionStmt(_)
            | NodeEnum::AlterExtensionStmt(_)
            | NodeEnum::AlterExtensionContentsStmt(_)
            | NodeEnum::CreateSeqStmt(_)
            | NodeEnum::AlterSeqStmt(_)
            | NodeEnum::RenameStmt(_)
            | NodeEnum::AlterObjectSchemaStmt(_)
            | NodeEnum::AlterObjectDependsStmt(_)
            | NodeEnum::AlterOwnerStmt(_)
            | NodeEnum::AlterFunctionStmt(_)
            | NodeEnum::AlterTableMoveAllStmt(_)
            | NodeEnum::CreateEnumStmt(_)
            | NodeEnum::AlterEnumStmt(_)
            | NodeEnum::CreateRangeStmt(_)
            | NodeEnum::CompositeTypeStmt(_)
            | NodeEnum::CreateFdwStmt(_)
            | NodeEnum::AlterFdwStmt(_)
            | NodeEnum::CreateForeignServerStmt(_)
            | NodeEnum::AlterForeignServerStmt(_)
            | NodeEnum::CreateUserMappingStmt(_)
            | NodeEnum::AlterUserMappingStmt(_)
            | NodeEnum::DropUserMappingStmt(_)
            | NodeEnum::ImportForeignSchemaStmt(_)
            | NodeEnum::DropOwnedStmt(_)
            | NodeEnum::ReassignOwnedStmt(_)
            | NodeEnum::CreateCastStmt(_)
            | NodeEnum::CreateConversionStmt(_)
            | NodeEnum::CreateOpClassStmt(_)
            | NodeEnum::CreateOpFamilyStmt(_)
            | NodeEnum::AlterOpFamilyStmt(_)
            | NodeEnum::CreateAmStmt(_)
            | NodeEnum::CreateTransformStmt(_)
            | NodeEnum::CreatePlangStmt(_)
            | NodeEnum::AlterCollationStmt(_)
            | NodeEnum::AlterTsdictionaryStmt(_)
            | NodeEnum::AlterTsconfigurationStmt(_)
    )
}
