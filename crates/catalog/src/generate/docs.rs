//! The table of operators for the documentation.

use crate::*;
use contract::OpResult;
use std::collections::BTreeMap;
use std::fmt::Write;

pub(super) fn text() -> String {
    let mut out = format!(
        "<!-- {} -->\n# What works on protected columns\n\nThe names are those of the plain types; each stands for its protected twin. A\n*declassified* result is seen by the database in the clear, any other is not.\n",
        super::NOTICE
    );
    let signatures = signatures();
    out.push_str("\n## Operators\n| operator | operands | result |\n|---|---|---|\n");
    for o in operators(&signatures) {
        let operands = o
            .signature
            .args
            .iter()
            .map(|t| t.plain_name())
            .collect::<Vec<_>>();
        let _ = writeln!(
            out,
            "| `{}` | {} | {} |",
            o.name.replace('|', "\\|"),
            operands.join(", "),
            o.signature
                .ret
                .map_or("declassified boolean", |t| t.plain_name())
        );
    }
    out.push_str("\n## Functions\n| function | result |\n|---|---|\n");
    for f in functions(&signatures) {
        let args = f
            .args
            .iter()
            .map(|a| a.name().trim_start_matches("enc_"))
            .collect::<Vec<_>>();
        let _ = writeln!(
            out,
            "| `{}({})` | {} |",
            f.name,
            args.join(", "),
            f.ret.name().trim_start_matches("enc_")
        );
    }
    out.push_str("\n## Aggregates\n| aggregate | arguments |\n|---|---|\n| `count` | any |\n");
    let mut by_name: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for a in aggregates() {
        by_name
            .entry(a.aggregate.name())
            .or_default()
            .push(a.input.plain_name());
    }
    for (name, inputs) in by_name {
        let _ = writeln!(out, "| `{name}` | {} |", inputs.join(", "));
    }
    let declassified = signatures
        .iter()
        .filter(|(_, s)| s.op.result() != OpResult::Fid)
        .count();
    let _ = writeln!(
        out,
        "\n{} signatures, of which {declassified} declassify their result.",
        signatures.iter().count()
    );
    out
}
