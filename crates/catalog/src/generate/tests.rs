//! The list from which the tests against plain PostgreSQL are generated.

use crate::*;
use std::fmt::Write;

fn names(list: impl Iterator<Item = &'static str>) -> String {
    list.map(|n| format!("\"{n}\""))
        .collect::<Vec<_>>()
        .join(", ")
}

pub(super) fn text(signatures: &Signatures) -> String {
    let mut rows = Vec::new();
    for o in operators(signatures) {
        rows.push(format!(
            "{{\"kind\": \"operator\", \"name\": \"{}\", \"args\": [{}]}}",
            o.name,
            names(o.signature.args.iter().map(|t| t.plain_name()))
        ));
    }
    for f in functions(signatures) {
        let args = f.args.iter().map(|a| match a {
            Arg::Enc(t) => t.plain_name(),
            Arg::Plain(_) => "unit",
        });
        rows.push(format!(
            "{{\"kind\": \"function\", \"name\": \"{}\", \"args\": [{}]}}",
            f.name,
            names(args)
        ));
    }
    for c in casts() {
        rows.push(format!(
            "{{\"kind\": \"cast\", \"name\": \"{}\", \"args\": [\"{}\"]}}",
            c.to.plain_name(),
            c.from.plain_name()
        ));
    }
    for a in aggregates() {
        for name in a.names() {
            rows.push(format!(
                "{{\"kind\": \"aggregate\", \"name\": \"{name}\", \"args\": [{}]}}",
                names(a.arguments().iter().map(|t| t.plain_name()))
            ));
        }
    }
    let mut out = String::from("[\n");
    let _ = write!(out, "{}\n]\n", rows.join(",\n"));
    out
}
