//! The table of operators for the documentation.

use crate::*;
use contract::OpResult;
use contract::describe::{Form, Message, Structure};
use std::collections::BTreeMap;
use std::fmt::Write;

pub(super) fn text(signatures: &Signatures) -> String {
    let mut out = format!(
        "<!-- {} -->\n# What works on protected columns\n\nThe names are those of the plain types; each stands for its protected twin. A\n*declassified* result is seen by the database in the clear, any other is not.\n",
        super::NOTICE
    );
    operators_table(&mut out, signatures);
    functions_table(&mut out, signatures);
    aggregates_table(&mut out);
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

fn operators_table(out: &mut String, signatures: &Signatures) {
    out.push_str("\n## Operators\n| operator | operands | result |\n|---|---|---|\n");
    for o in operators(signatures) {
        let operands: Vec<_> = o.signature.args.iter().map(|t| t.plain_name()).collect();
        let result = o.signature.ret.map(|t| t.plain_name());
        let _ = writeln!(
            out,
            "| `{}` | {} | {} |",
            o.name.replace('|', "\\|"),
            operands.join(", "),
            result.unwrap_or("declassified boolean")
        );
    }
}

fn functions_table(out: &mut String, signatures: &Signatures) {
    out.push_str("\n## Functions\n| function | result |\n|---|---|\n");
    for f in functions(signatures) {
        let plain = |name: &'static str| name.trim_start_matches("enc_");
        let args: Vec<_> = f.args.iter().map(|a| plain(a.name())).collect();
        let _ = writeln!(
            out,
            "| `{}({})` | {} |",
            f.name,
            args.join(", "),
            plain(f.ret.name())
        );
    }
}

fn aggregates_table(out: &mut String) {
    out.push_str("\n## Aggregates\n| aggregate | arguments |\n|---|---|\n| `count` | any |\n");
    let mut by_name: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for a in aggregates() {
        for name in a.names() {
            by_name.entry(name).or_default().push(a.input.plain_name());
        }
    }
    for (name, inputs) in by_name {
        let _ = writeln!(out, "| `{name}` | {} |", inputs.join(", "));
    }
}

/// The layout of messages.
pub(super) fn messages(messages: &[Message]) -> String {
    let mut out = format!(
        "<!-- {} -->\n# Messages\n\nWhat a backend and the keeper say to each other, from `crates/contract/src/message/table.rs`, whose\nheader says how to add a message. Bodies follow a header of {} bytes; integers are little-endian.\n",
        super::NOTICE,
        contract::message::HEADER_BYTES
    );
    for message in messages {
        let _ = writeln!(
            out,
            "\n## {} ({})\n{}",
            message.name,
            message.code,
            plain(message.doc)
        );
        structure(&mut out, "body", message.body);
        if let Some(answer) = message.answer {
            structure(&mut out, "answer", answer);
        }
    }
    out.push_str("\n# Records and structures in messages\n");
    for named in super::messages::structures(messages) {
        let name = named.structure.name;
        if named.suffix.is_empty() && !messages.iter().any(|m| m.name == name) {
            let _ = writeln!(out, "\n## {name}\n{}", plain(named.structure.doc));
            structure(&mut out, "bytes", named.structure);
        }
    }
    out
}

fn plain(doc: &str) -> String {
    let text = doc.split_whitespace().collect::<Vec<_>>().join(" ");
    text.replace("[`", "`")
        .replace("`]", "`")
        .replace("super::", "")
        .replace("crate::", "")
}

fn structure(out: &mut String, title: &str, structure: &Structure) {
    if structure.fields.is_empty() && structure.tails.is_empty() {
        let _ = writeln!(out, "\n{title}: empty");
        return;
    }
    let _ = writeln!(out, "\n| {title} | bytes | what | |\n|---|---|---|---|");
    let mut offset = 0;
    for field in structure.fields {
        let end = offset + field.form.bytes();
        let _ = writeln!(
            out,
            "| {} | {offset}..{end} | {} | {} |",
            field.name,
            form(&field.form),
            plain(field.doc)
        );
        offset = end + field.zeros;
    }
    for tail in structure.tails {
        let counts = match tail.counts {
            [] => "to the end".to_owned(),
            counts => counts.join(" × "),
        };
        let _ = writeln!(
            out,
            "| {} | {counts} | {} | {} |",
            tail.name,
            form(&tail.form),
            plain(tail.doc)
        );
    }
}

fn form(form: &Form) -> String {
    match form {
        Form::Number(number) => format!("{number:?}").to_lowercase(),
        Form::Array(bytes) => format!("{bytes} bytes"),
        Form::Structure(s) => s.name.to_owned(),
        Form::List(of) | Form::Each(of) => format!("list of {}", self::form(of)),
        Form::Bytes => "bytes".to_owned(),
        Form::Text => "text".to_owned(),
        Form::Columns => "columns".to_owned(),
        Form::Optional(of) => format!("perhaps {}", self::form(of)),
    }
}
