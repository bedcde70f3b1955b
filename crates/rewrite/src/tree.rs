//! Small helpers for parse trees.

use pg_query::{Node, NodeEnum};

/// The names in a list of string nodes.
pub(crate) fn names(nodes: &[Node]) -> Vec<&str> {
    nodes
        .iter()
        .filter_map(|n| match &n.node {
            Some(NodeEnum::String(s)) => Some(s.sval.as_str()),
            _ => None,
        })
        .collect()
}
