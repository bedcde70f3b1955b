//! Golden vectors of messages: for each body and each answer bytes that are made from the
//! table alone, and C code that fills the same, and reads it. That Rust reads and writes the
//! same bytes is a test here.

use super::messages::{Named, element, structures};
use contract::describe::{Form, Message, Number, Structure};
use contract::message::column;
use std::fmt::Write;

/// Number of the elements of counted lists, one of whose counts it is.
const COUNT: u64 = 2;

/// Writes samples: bytes, and C code that expects them.
#[derive(Default)]
struct Sample {
    bytes: Vec<u8>,
    /// Initialisers of the struct, checks of what was read.
    fill: String,
    checks: String,
    next: u64,
}

impl Sample {
    /// A number that no other one is, in all of its bytes.
    fn fresh(&mut self, bytes: usize) -> u64 {
        self.next = self.next % 100 + 1;
        (0..bytes).fold(0, |all, n| all | ((self.next + n as u64) << (8 * n)))
    }

    fn sample_of(&mut self, number: Number) -> u64 {
        match number {
            Number::Type | Number::TypeOrNone => 7,
            number => self.fresh(number.bytes()),
        }
    }

    fn value(&mut self, number: Number) {
        let value = self.sample_of(number);
        self.put(number, value);
    }

    fn put(&mut self, number: Number, value: u64) {
        let bytes = value.to_le_bytes();
        self.bytes.extend(bytes.iter().take(number.bytes()));
    }

    fn fields(&mut self, structure: &Structure, counts: &[&str], at: Option<&str>) {
        for field in structure.fields {
            let name = field.name;
            let (filled, check) = match field.form {
                Form::Number(number) => {
                    let value = match counts.contains(&name) {
                        true => COUNT,
                        false => self.sample_of(number),
                    };
                    self.put(number, value);
                    let t = super::messages::number(number);
                    let check = |at| format!("{at}{name} == ({t}) UINT64_C({value})");
                    (format!("{value}u"), at.map(check))
                }
                other => {
                    let bytes: Vec<u8> = (0..other.bytes()).map(|n| b'A' + n as u8).collect();
                    self.bytes.extend(&bytes);
                    let text = String::from_utf8_lossy(&bytes);
                    let list: Vec<String> = text.chars().map(|c| format!("'{c}'")).collect();
                    let length = bytes.len();
                    let check = |at| format!("memcmp({at}{name}, \"{text}\", {length}) == 0");
                    (format!("{{{}}}", list.join(", ")), at.map(check))
                }
            };
            self.bytes.resize(self.bytes.len() + field.zeros, 0);
            if let Some(check) = check {
                let of = structure.name;
                let _ = write!(self.fill, ".{name} = {filled}, ");
                let _ = writeln!(self.checks, "\tcheck({check}, \"{name} of {of}\");");
            }
        }
    }

    /// Elements of a list, or bytes.
    fn elements(&mut self, of: &Form, count: u64) {
        for _ in 0..count {
            match of {
                Form::Number(number) => self.value(*number),
                Form::Structure(s) => self.structure(s, None),
                other => self.bytes.extend((0..other.bytes()).map(|n| n as u8)),
            }
        }
    }

    fn column(&mut self, form: u32, count: u64) {
        self.put(Number::U32, u64::from(form));
        self.put(Number::U32, count);
    }

    /// A column of each form, as many as are wanted; of two rows.
    fn columns(&mut self) {
        self.column(column::LIST, COUNT);
        self.elements(&Form::Number(Number::Fid), COUNT);
        self.column(column::RUNS, 1);
        self.value(Number::Fid);
        self.put(Number::U32, COUNT);
        self.put(Number::U32, 1);
    }

    fn structure(&mut self, structure: &Structure, at: Option<&str>) {
        let counts: Vec<&str> = structure
            .tails
            .iter()
            .flat_map(|t| t.counts)
            .copied()
            .collect();
        self.fields(
            structure,
            &counts,
            at.map(|at| format!("{at}head.")).as_deref(),
        );
        for tail in structure.tails {
            let wanted = COUNT.pow(tail.counts.len().max(1) as u32);
            let start = self.bytes.len();
            match tail.form {
                Form::List(of) => self.elements(of, wanted),
                Form::Each(of) => self.elements(of, wanted),
                Form::Columns => self.columns(),
                Form::Text => self.bytes.extend([b't', b'e', b'x', b't', 0]),
                Form::Structure(s) => self.structure(s, None),
                Form::Optional(Form::Structure(s)) => self.structure(s, None),
                _ => self.bytes.extend((0..wanted).map(|n| n as u8 + 1)),
            }
            let Some(at) = at else { continue };
            let (name, length) = (tail.name, self.bytes.len() - start);
            let golden = format!("golden_bytes + {start}");
            let _ = match tail.form {
                Form::List(of) => writeln!(
                    self.checks,
                    "\tcheck({at}{name}_count == {wanted} && sizeof({}) * {wanted} == {length} && (const char *) {at}{name} == {golden}, \"{name} of {}\");",
                    element(of),
                    structure.name
                ),
                Form::Each(_) | Form::Columns => writeln!(
                    self.checks,
                    "\tcheck({at}{name}.at == {golden} && {at}{name}.end == {golden} + {length}, \"{name} of {}\");",
                    structure.name
                ),
                Form::Text => writeln!(
                    self.checks,
                    "\tcheck(strcmp({at}{name}, \"text\") == 0, \"{name} of {}\");",
                    structure.name
                ),
                Form::Optional(_) => writeln!(self.checks, "\tcheck({at}has_{name}, \"{name}\");"),
                Form::Structure(_) => Ok(()),
                _ => writeln!(
                    self.checks,
                    "\tcheck({at}{name}_length == {length} && (const char *) {at}{name} == {golden}, \"{name} of {}\");",
                    structure.name
                ),
            };
        }
    }
}

/// Bytes of a message, as the table has it.
pub(super) fn sample(structure: &Structure) -> Vec<u8> {
    let mut sample = Sample::default();
    sample.structure(structure, None);
    sample.bytes
}

/// Whether a message ends where its counts say; bytes to the end may be any.
fn is_closed(structure: &Structure) -> bool {
    match structure.tails.last() {
        None => true,
        Some(tail) => match tail.form {
            Form::Bytes => !tail.counts.is_empty(),
            Form::List(of) => !tail.counts.is_empty() || of.bytes() > 1,
            Form::Structure(s) => is_closed(s),
            _ => true,
        },
    }
}

fn vector(out: &mut String, named: &Named) {
    let (structure, camel, snake) = (named.structure, named.camel(), named.snake());
    let mut sample = Sample::default();
    sample.structure(structure, Some("read."));
    if sample.bytes.is_empty() {
        return;
    }
    let length = sample.bytes.len();
    let _ = writeln!(out, "\nstatic void\ngolden_{snake}(void)\n{{");
    let _ = writeln!(out, "\tstatic const char golden_bytes[] = {{");
    for line in sample.bytes.chunks(12) {
        let bytes: Vec<String> = line.iter().map(|b| format!("'\\x{b:02x}'")).collect();
        let _ = writeln!(out, "\t\t{},", bytes.join(", "));
    }
    out.push_str("\t};\n");
    let _ = writeln!(out, "\tCfdRead{camel} read;");
    if !structure.fields.is_empty() {
        let _ = writeln!(
            out,
            "\tconst CfdWire{camel} filled = {{{}}};",
            sample.fill.trim_end_matches(", ")
        );
    }
    let _ = writeln!(
        out,
        "\n\tcheck(cfd_decode_{snake}(golden_bytes, {length}, &read), \"{camel} is read\");"
    );
    out.push_str(&sample.checks);
    if !structure.fields.is_empty() {
        let _ = writeln!(
            out,
            "\tcheck(memcmp(&filled, golden_bytes, sizeof(filled)) == 0, \"{camel} filled\");"
        );
    }
    if is_closed(structure) {
        let _ = writeln!(
            out,
            "\tcheck(!cfd_decode_{snake}(golden_bytes, {}, &read), \"{camel} cut short\");",
            length - 1
        );
    }
    out.push_str("}\n");
}

pub(super) fn text(messages: &[Message]) -> String {
    let mut out = format!("/* {} */\n", super::NOTICE);
    let all = structures(messages);
    let whole =
        |n: &&Named| !n.suffix.is_empty() || messages.iter().any(|m| m.name == n.structure.name);
    let whole: Vec<&Named> = all.iter().filter(whole).collect();
    whole.iter().for_each(|named| vector(&mut out, named));
    out.push_str("\nstatic void\ngolden_messages(void)\n{\n");
    for named in whole.iter().filter(|n| !sample(n.structure).is_empty()) {
        let _ = writeln!(out, "\tgolden_{}();", named.snake());
    }
    out.push_str("}\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::message::table::MESSAGES;

    /// Mechanism: the bytes that the table says are read by the types that were made of it,
    /// and written again. Right answer: the same bytes; a byte less or more is refused where
    /// the message has an end of its own. A bug would be two sides that misread each other.
    #[test]
    fn rust_reads_and_writes_what_the_table_says() {
        for named in structures(MESSAGES) {
            let (structure, name) = (named.structure, named.camel());
            let bytes = sample(structure);
            assert!((structure.same)(&bytes), "{name}: {bytes:?}");
            if !bytes.is_empty() && is_closed(structure) {
                assert!(
                    !(structure.same)(&bytes[..bytes.len() - 1]),
                    "{name} cut short"
                );
            }
            if is_closed(structure) && structure.tails.last().is_none_or(|t| !t.counts.is_empty()) {
                assert!(
                    !(structure.same)(&[&bytes[..], &[1]].concat()),
                    "{name} with more"
                );
            }
        }
    }

    /// C's structs are the bytes: each field lies on a multiple of its size, so that neither
    /// side pays for what it reads.
    #[test]
    fn fields_are_aligned() {
        for named in structures(MESSAGES) {
            let mut offset = 0;
            for field in named.structure.fields {
                if let Form::Number(number) = field.form {
                    let aligned = offset % number.bytes() == 0;
                    assert!(aligned, "{} of {}", field.name, named.camel());
                }
                offset += field.form.bytes() + field.zeros;
            }
        }
    }

    #[test]
    fn codes_and_names_are_unique() {
        for (i, a) in MESSAGES.iter().enumerate() {
            for b in &MESSAGES[..i] {
                assert!(
                    a.code != b.code && a.name != b.name,
                    "{} and {}",
                    a.name,
                    b.name
                );
            }
        }
    }
}
