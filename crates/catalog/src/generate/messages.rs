//! The C header of messages: for each structure of the contract's table the struct of its
//! fields, as they stand in a message (`CfdWire...`), and a checked decoder of the whole
//! (`CfdRead...`, `cfd_read_...`; `cfd_decode_...`, which leaves nothing over).
//!
//! To send, fill the struct and pass it with its tail; to read, decode. The primitives that
//! the decoders use are in extension/src/wire/wire.h.

use contract::describe::{Field, Form, Message, Number, Structure, Tail};
use contract::message::column::{ColumnHead, ColumnRun};
use std::fmt::Write;

/// `PromoteRuns` becomes `promote_runs`.
pub(super) fn snake(name: &str) -> String {
    super::header::shout(name).to_lowercase()
}

/// C's type of a number as it stands in a message, where nothing is aligned.
pub(super) fn number(number: Number) -> &'static str {
    match number {
        Number::U8 | Number::Type | Number::TypeOrNone => "uint8_t",
        Number::U16 => "uint16_t",
        Number::U32 => "uint32_t",
        Number::U64 => "uint64_t",
        Number::I32 => "int32_t",
        Number::I64 => "int64_t",
        Number::Fid => "CfdFid",
    }
}

/// A structure, and how C calls it: answers have the name of what they answer.
pub(super) struct Named {
    pub(super) structure: &'static Structure,
    /// What stands behind its name.
    pub(super) suffix: &'static str,
}

impl Named {
    pub(super) fn camel(&self) -> String {
        format!("{}{}", self.structure.name, self.suffix)
    }

    pub(super) fn snake(&self) -> String {
        snake(&self.camel())
    }
}

fn parts_of(form: &Form, found: &mut Vec<Named>) {
    match form {
        Form::List(of) | Form::Each(of) | Form::Optional(of) => parts_of(of, found),
        Form::Structure(structure) => add(structure, "", found),
        _ => {}
    }
}

fn add(structure: &'static Structure, suffix: &'static str, found: &mut Vec<Named>) {
    let same = |n: &Named| n.structure.name == structure.name && n.suffix == suffix;
    if found.iter().any(same) {
        return;
    }
    structure
        .fields
        .iter()
        .for_each(|f| parts_of(&f.form, found));
    structure
        .tails
        .iter()
        .for_each(|t| parts_of(&t.form, found));
    found.push(Named { structure, suffix });
}

/// All structures, each after what it is made of.
pub(super) fn structures(messages: &[Message]) -> Vec<Named> {
    let mut found = Vec::new();
    for structure in [&ColumnHead::STRUCTURE, &ColumnRun::STRUCTURE] {
        add(structure, "", &mut found);
    }
    for message in messages {
        // An answer that nothing stands in, or a body, needs no struct.
        add(message.body, "", &mut found);
        message
            .answer
            .iter()
            .for_each(|a| add(a, "Answer", &mut found));
    }
    found
}

fn comment(doc: &str) -> String {
    let text = doc.split_whitespace().collect::<Vec<_>>().join(" ");
    text.replace("[`", "").replace("`]", "").replace('`', "")
}

fn field(out: &mut String, field: &Field, zeros: &mut usize) {
    let (doc, name) = (comment(field.doc), field.name);
    let _ = match field.form {
        Form::Number(n) => writeln!(out, "\t{}\t{name};\t/* {doc} */", number(n)),
        Form::Structure(s) => writeln!(out, "\tCfdWire{} {name};\t/* {doc} */", s.name),
        other => writeln!(out, "\tuint8_t\t{name}[{}];\t/* {doc} */", other.bytes()),
    };
    if field.zeros > 0 {
        *zeros += 1;
        let _ = writeln!(out, "\tuint8_t\tzero{zeros}[{}];", field.zeros);
    }
}

fn wire(out: &mut String, named: &Named) {
    let (structure, camel) = (named.structure, named.camel());
    if structure.fields.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n/* {} */", comment(structure.doc));
    let _ = writeln!(out, "typedef struct CfdWire{camel}\n{{");
    let mut zeros = 0;
    structure
        .fields
        .iter()
        .for_each(|f| field(out, f, &mut zeros));
    let _ = writeln!(out, "}} CFD_IN_MESSAGE CfdWire{camel};");
    let bytes = structure.bytes();
    let _ = writeln!(
        out,
        "_Static_assert(sizeof(CfdWire{camel}) == {bytes}, \"CfdWire{camel}\");"
    );
}

/// C's type of a list's element.
pub(super) fn element(form: &Form) -> String {
    match form {
        Form::Structure(s) => format!("CfdWire{}", s.name),
        Form::Number(n) if n.bytes() == 1 => number(*n).to_owned(),
        Form::Number(Number::Fid) => "CfdWireFid".to_owned(),
        Form::Number(n) => format!("CfdWire{n:?}"),
        _ => "uint8_t".to_owned(),
    }
}

fn member(out: &mut String, tail: &Tail) {
    let name = tail.name;
    let _ = match tail.form {
        Form::List(of) => {
            let t = element(of);
            writeln!(out, "\tconst {t} *{name};\n\tuint64_t\t{name}_count;")
        }
        Form::Each(_) | Form::Columns => writeln!(out, "\tCfdReader\t{name};"),
        Form::Text => writeln!(out, "\tconst char *{name};"),
        Form::Structure(s) => writeln!(out, "\tCfdRead{}\t{name};", s.name),
        Form::Optional(Form::Structure(s)) => {
            writeln!(out, "\tbool\t\thas_{name};\n\tCfdRead{}\t{name};", s.name)
        }
        _ => writeln!(out, "\tconst uint8_t *{name};\n\tuint64_t\t{name}_length;"),
    };
}

/// The number of a tail's elements; up to the end of the message without one.
fn count(counts: &[&str]) -> String {
    let each = |n: &&str| format!("(uint64_t) out->head.{n}");
    match counts {
        [] => "CFD_TO_END".to_owned(),
        counts => counts.iter().map(each).collect::<Vec<_>>().join(" * "),
    }
}

fn take(tail: &Tail) -> String {
    let (name, count) = (tail.name, count(tail.counts));
    match tail.form {
        Form::List(of) => format!(
            "cfd_take_list(from, {count}, {}, (const void **) &out->{name}, &out->{name}_count)",
            of.bytes()
        ),
        Form::Each(Form::Structure(s)) => {
            format!(
                "cfd_take_{}_each(from, {count}, &out->{name})",
                snake(s.name)
            )
        }
        Form::Columns => match tail.counts {
            [rows] => format!("cfd_take_columns(from, out->head.{rows}, CFD_TO_END, &out->{name})"),
            [rows, columns, ..] => format!(
                "cfd_take_columns(from, out->head.{rows}, out->head.{columns}, &out->{name})"
            ),
            [] => "false".to_owned(),
        },
        Form::Text => format!("cfd_take_text(from, &out->{name})"),
        Form::Structure(s) => format!("cfd_read_{}(from, &out->{name})", snake(s.name)),
        Form::Optional(Form::Structure(s)) => format!(
            "(!(out->has_{name} = from->at < from->end) || cfd_read_{}(from, &out->{name}))",
            snake(s.name)
        ),
        _ => format!(
            "cfd_take_list(from, {count}, 1, (const void **) &out->{name}, &out->{name}_length)"
        ),
    }
}

/// The decoded form and its decoder.
fn decoder(out: &mut String, named: &Named) {
    let (structure, camel, snake) = (named.structure, named.camel(), named.snake());
    if structure.fields.is_empty() && structure.tails.is_empty() {
        return;
    }
    let _ = writeln!(out, "\ntypedef struct CfdRead{camel}\n{{");
    if !structure.fields.is_empty() {
        let _ = writeln!(out, "\tCfdWire{camel} head;");
    }
    structure.tails.iter().for_each(|t| member(out, t));
    let _ = writeln!(out, "}} CfdRead{camel};\n");
    let mut steps: Vec<String> = structure.tails.iter().map(take).collect();
    if !structure.fields.is_empty() {
        steps.insert(
            0,
            "cfd_take_head(from, &out->head, sizeof(out->head))".to_owned(),
        );
    }
    let steps = steps.join(" &&\n\t\t");
    let _ = writeln!(
        out,
        "static inline bool\ncfd_read_{snake}(CfdReader *from, CfdRead{camel} *out)\n{{\n\treturn {steps};\n}}\n"
    );
    let _ = writeln!(
        out,
        "static inline bool\ncfd_decode_{snake}(const void *bytes, uint64_t length, CfdRead{camel} *out)\n{{\n\tCfdReader\tfrom = cfd_reader(bytes, length);\n\n\treturn cfd_read_{snake}(&from, out) && from.at == from.end;\n}}"
    );
}

/// Walks over elements, so that they can be read one by one without a check.
fn each(out: &mut String, camel: &str, snake: &str) {
    let _ = writeln!(
        out,
        "\nstatic inline bool\ncfd_take_{snake}_each(CfdReader *from, uint64_t count, CfdReader *out)\n{{\n\tCfdRead{camel} one;\n\n\tout->at = from->at;\n\tfor (uint64_t i = 0; count == CFD_TO_END ? from->at < from->end : i < count; i++)\n\t{{\n\t\tif (!cfd_read_{snake}(from, &one))\n\t\t\treturn false;\n\t}}\n\tout->end = from->at;\n\treturn true;\n}}"
    );
}

/// Which structures stand one after the other in others, each with a size of its own.
fn repeated(messages: &[Message]) -> Vec<&'static str> {
    let mut names = Vec::new();
    for named in structures(messages) {
        for tail in named.structure.tails {
            if let Form::Each(Form::Structure(s)) = tail.form {
                names.push(s.name);
            }
        }
    }
    names
}

fn head(file: &str, what: &str) -> String {
    let guard = file.to_uppercase().replace('.', "_");
    format!(
        "/*\n * {file}\n *\t  {what}: see crates/contract/src/message/table.rs.\n *\t  Included by wire/wire.h only.\n *\n * {}\n */\n#ifndef CFD_{guard}\n#define CFD_{guard}\n",
        super::NOTICE
    )
}

/// The structs.
pub(super) fn text(messages: &[Message]) -> String {
    let mut out = head("messages.h", "Fields of messages");
    let all = structures(messages);
    all.iter().for_each(|named| wire(&mut out, named));
    out.push_str("\n#endif\n");
    out
}

/// The decoders.
pub(super) fn decoders(messages: &[Message]) -> String {
    let mut out = head("decoders.h", "Checked decoders of messages");
    let repeated = repeated(messages);
    for named in structures(messages) {
        let whole = |m: &Message| m.name == named.structure.name;
        let record = named.suffix.is_empty() && !messages.iter().any(whole);
        // Records are read in place.
        if record && named.structure.tails.is_empty() {
            continue;
        }
        decoder(&mut out, &named);
        if named.suffix.is_empty() && repeated.contains(&named.structure.name) {
            each(&mut out, &named.camel(), &named.snake());
        }
    }
    out.push_str("\n#endif\n");
    out
}
