//! The C header of the contract.

use contract::describe::Message;
use contract::hello::Status;
use contract::{
    Aggregate, Code, Op, TypeCode, Unit, cell, envelope, fid, hello, message, range, report, ring,
    soft,
};
use std::fmt::Write;

/// `NotLike` becomes `NOT_LIKE`.
pub(super) fn shout(name: &str) -> String {
    let mut out = String::new();
    for (i, c) in name.chars().enumerate() {
        if c.is_uppercase() && i > 0 {
            out.push('_');
        }
        out.push(c.to_ascii_uppercase());
    }
    out
}

struct Header(String);

impl Header {
    fn section(&mut self, title: &str) {
        let _ = write!(self.0, "\n/* {title} */\n");
    }

    fn define(&mut self, name: &str, value: impl std::fmt::Display) {
        let _ = writeln!(self.0, "#define CFD_{name} {value}");
    }

    fn number(&mut self, name: &str, value: u64) {
        match value {
            0..=0x7fff_ffff => self.define(name, value),
            0x8000_0000..=0xffff_ffff => self.define(name, format_args!("UINT32_C({value})")),
            _ => self.define(name, format_args!("UINT64_C({value})")),
        }
    }

    /// A list for a macro that is called with each code and name.
    fn names<'n>(&mut self, name: &str, title: &str, names: impl Iterator<Item = (u64, &'n str)>) {
        self.section(title);
        let _ = write!(self.0, "#define CFD_{name}(X)");
        for (code, name) in names {
            let _ = write!(self.0, " \\\n\tX({code}, \"{name}\")");
        }
        self.0.push('\n');
    }

    fn numbers<T: std::fmt::Debug>(&mut self, prefix: &str, items: &[T], code: impl Fn(&T) -> u64) {
        for item in items {
            let name = format!("{prefix}_{}", shout(&format!("{item:?}")));
            self.define(&name, code(item));
        }
    }
}

pub(super) fn text(all: &[Message]) -> String {
    let mut h = Header(format!(
        "/*\n * contract.h\n *\t  What the extension and the keeper agree on: see crates/contract.\n *\n * {}\n */\n#ifndef CFD_CONTRACT_H\n#define CFD_CONTRACT_H\n",
        super::NOTICE
    ));
    h.section("Version");
    h.define("CONTRACT_VERSION", contract::VERSION);
    fids(&mut h);
    rings(&mut h);
    hellos(&mut h);
    messages(&mut h, all);
    envelopes(&mut h);
    cells(&mut h);
    encodings(&mut h);
    h.section("Types");
    h.numbers("TYPE", TypeCode::ALL, |t| *t as u64);
    h.define(
        "TYPE_MAX",
        TypeCode::ALL.iter().map(|t| *t as u8).max().unwrap_or(0),
    );
    let names = TypeCode::ALL.iter().map(|t| (*t as u64, t.enc_name()));
    h.names("TYPE_NAMES", "Their names: X(code, name)", names);
    h.section("Codes of errors");
    h.numbers("CODE", Code::ALL, |c| *c as u64);
    let names = Code::ALL.iter().map(|c| (*c as u64, c.name()));
    h.names("CODES", "Their names: X(code, name)", names);
    h.section("Generic operations, for EXPLAIN and views");
    h.numbers("OP", Op::ALL, |o| *o as u64);
    h.define("RANGE_PRECEDING", range::PRECEDING);
    h.define("RANGE_UP_TO", range::UP_TO);
    h.section("Aggregates");
    h.numbers("AGGREGATE", Aggregate::ALL, |a| *a as u64);
    let units = Unit::ALL.iter().map(|u| (*u as u64, u.name()));
    let title = "Fields of extract, date_part and date_trunc: X(code, name)";
    h.names("UNITS", title, units);
    reports(&mut h);
    h.0.push_str("\n#endif\n");
    h.0
}

fn reports(h: &mut Header) {
    h.section("Reports of the schema");
    h.define("REPORT_SETTING", format_args!("{:?}", report::SETTING));
    h.define("REPORT_REQUEST", format_args!("{:?}", report::REQUEST));
    for (name, letter) in report::LETTERS {
        let shown = format!("'{}'", char::from(letter));
        h.define(&format!("REPORT_{name}"), shown);
    }
}

fn fids(h: &mut Header) {
    h.section("Field identifiers");
    h.define("SLOT_BITS", fid::SLOT_BITS);
    h.define("SLOT_MAX", format_args!("UINT64CONST({})", fid::SLOT_MAX));
    h.define("ARENA_BASE", fid::ARENA_BASE);
    h.define("PARTITION_END", fid::PARTITION_END);
}

fn rings(h: &mut Header) {
    h.section("Shared memory");
    h.define("RING_MAGIC", format_args!("0x{:08x}", ring::MAGIC));
    h.define("RING_MAGIC_OFFSET", ring::MAGIC_OFFSET);
    h.define("RING_VERSION_OFFSET", ring::VERSION_OFFSET);
    h.define("PERIOD_OFFSET", ring::PERIOD_OFFSET);
    h.define("WATCH_OFFSET", ring::WATCH_OFFSET);
    h.define("OWED_OFFSET", ring::OWED_OFFSET);
    h.define("FAILED_OFFSET", ring::FAILED_OFFSET);
    h.define("WATCH_STATEMENTS", ring::WATCH_STATEMENTS);
    h.define("MAPPING_BYTES", ring::MAPPING_BYTES);
    h.define("REQUEST_CONTROL", ring::REQUEST_CONTROL);
    h.define("REQUEST_DATA", ring::REQUEST_DATA);
    h.define("REQUEST_RING_BYTES", ring::REQUEST_RING_BYTES);
    h.define("ANSWER_CONTROL", ring::ANSWER_CONTROL);
    h.define("ANSWER_DATA", ring::ANSWER_DATA);
    h.define("ANSWER_RING_BYTES", ring::ANSWER_RING_BYTES);
    h.define("CONTROL_WRITTEN", ring::control::WRITTEN);
    h.define("CONTROL_BESIDE", ring::control::BESIDE);
    h.define("BESIDE_BYTES", ring::BESIDE_BYTES);
    h.define("BESIDE_WORDS", ring::BESIDE_WORDS);
    h.define("TAG_SHIFT", ring::TAG_SHIFT);
    h.define("TAG_BYTES", ring::TAG_BYTES);
    h.define("CONTROL_READER_SLEEPS", ring::control::READER_SLEEPS);
    h.define("CONTROL_READ", ring::control::READ);
    h.define("CONTROL_WRITER_SLEEPS", ring::control::WRITER_SLEEPS);
}

fn hellos(h: &mut Header) {
    h.section("First exchange on the socket");
    h.define("HELLO_MAGIC", format_args!("0x{:08x}", hello::MAGIC));
    h.define("HELLO_BYTES", hello::HELLO_BYTES);
    h.define("WELCOME_BYTES", hello::WELCOME_BYTES);
    let statuses: Vec<Status> = (0..16).filter_map(Status::from_u32).collect();
    h.numbers("STATUS", &statuses, |s| *s as u64);
}

fn messages(h: &mut Header, all: &[Message]) {
    h.section("Messages");
    for (name, value) in message::NUMBERS {
        match *name {
            "HEADER_BYTES" | "BODY_MAX" => h.number(&format!("MESSAGE_{name}"), *value),
            _ => h.number(name, *value),
        }
    }
    for message in all {
        h.define(&format!("KIND_{}", shout(message.name)), message.code);
    }
    let answered = all.iter().filter(|m| m.answer.is_some());
    let answered = answered.map(|m| (u64::from(m.code), m.name));
    h.names(
        "ANSWERED",
        "Kinds that are answered: X(code, name)",
        answered,
    );
    for (title, prefix, numbers) in [
        ("Ranks", "RANK", message::rank::NUMBERS),
        ("Searches", "SEARCH", message::search::NUMBERS),
        ("Snapshots", "SNAPSHOT", message::snapshot::NUMBERS),
        ("Delivery", "DELIVERY", message::delivery::NUMBERS),
        ("Aggregations", "AGGREGATION", message::aggregation::NUMBERS),
        ("Programs", "PROGRAM", message::program::NUMBERS),
        ("Columns of batches", "COLUMN", message::column::NUMBERS),
        ("Tokens", "TOKEN", message::token::NUMBERS),
        ("Ledgers", "LEDGER", message::ledger::NUMBERS),
        ("Values of indexes", "DERIVED", message::derived::NUMBERS),
        ("Delivery", "DELIVERY", message::delivery::NUMBERS),
    ] {
        h.section(title);
        for (name, value) in numbers {
            h.number(&format!("{prefix}_{name}"), *value);
        }
    }
}

fn envelopes(h: &mut Header) {
    h.section("Envelopes");
    h.define("ENVELOPE_MAGIC", format_args!("0x{:02x}", envelope::MAGIC));
    h.define(
        "ENVELOPE_PREFIX",
        format_args!("\"{}\"", envelope::TEXT_PREFIX),
    );
    h.define("ENVELOPE_HEADER_BYTES", envelope::HEADER_BYTES);
    h.define("ENVELOPE_EPOCH_BYTES", envelope::EPOCH_BYTES);
    h.define("ENVELOPE_NONCE_BYTES", envelope::NONCE_BYTES);
    h.define("ENVELOPE_TAG_BYTES", envelope::TAG_BYTES);
    h.define("ENVELOPE_FLAG_TEXT", envelope::FLAG_TEXT);
    h.define("ENVELOPE_FLAG_HANDLE", envelope::FLAG_HANDLE);
    h.define("ENVELOPE_FLAG_BATCH", envelope::FLAG_BATCH);
    h.define("ENVELOPE_FLAG_KEYED", envelope::FLAG_KEYED);
    h.define("ENVELOPE_FLAG_FITTED", envelope::FLAG_FITTED);
    h.define("ENVELOPE_COLUMN_BYTES", envelope::COLUMN_BYTES);
    h.define("ENVELOPE_TARGET_BYTES", envelope::TARGET_BYTES);
    h.define("ENVELOPE_COUNT_BYTES", envelope::COUNT_BYTES);
    h.define("ENVELOPE_REFERENCE", envelope::REFERENCE);
    h.define("ENVELOPE_CUT", envelope::CUT);
    h.define("DETAIL_VALUE_BYTES", envelope::DETAIL_VALUE_BYTES);
    h.define("BATCH_MAX", envelope::BATCH_MAX);
    h.define("ORIGIN_CLIENT", envelope::Origin::Client as u8);
    h.define("ORIGIN_KEEPER", envelope::Origin::Keeper as u8);
    h.define("ORIGIN_EXPORT", envelope::Origin::Export as u8);
    h.define("ORIGIN_DELIVERY", envelope::Origin::Delivery as u8);
}

fn cells(h: &mut Header) {
    h.section("Cells");
    h.define("CELL_PREFIX", format_args!("{:?}", cell::TEXT_PREFIX));
    for (name, value) in [
        ("LOOSE", usize::from(cell::LOOSE)),
        ("SEALED", usize::from(cell::SEALED)),
        ("TOKENED", usize::from(cell::TOKENED)),
        ("COLUMN_BYTES", cell::COLUMN_BYTES),
        ("GENERATION_AT", cell::GENERATION_AT),
        ("GENERATION_BYTES", cell::GENERATION_BYTES),
        ("HEADER_BYTES", cell::HEADER_BYTES),
        ("TAG_BYTES", cell::TAG_BYTES),
        ("TOKEN_BYTES", cell::TOKEN_BYTES),
        ("WITH_TOKEN", usize::from(cell::WITH_TOKEN)),
        ("FOR_INDEX", usize::from(cell::FOR_INDEX)),
        ("NUMBERED", cell::NUMBERED as usize),
    ] {
        h.define(&format!("CELL_{name}"), value);
    }
}

fn encodings(h: &mut Header) {
    h.section("Encodings");
    h.define("SOFT_PREFIX", format_args!("{:?}", soft::TEXT_PREFIX));
    h.define("SOFT_ORDER_NAME", format_args!("{:?}", soft::ORDER_NAME));
    for (name, value) in [
        ("VALUE", usize::from(soft::VALUE)),
        ("SUM", usize::from(soft::SUM)),
        ("AVERAGE", usize::from(soft::AVERAGE)),
        ("HEADER_BYTES", soft::HEADER_BYTES),
        ("LENGTH_BYTES", soft::LENGTH_BYTES),
        ("PRODUCT", usize::from(soft::PRODUCT)),
        ("QUOTIENT", usize::from(soft::QUOTIENT)),
        ("ADD_BYTES", soft::ADD_BYTES),
        ("MUL_BYTES", soft::MUL_BYTES),
        ("PRODUCT_BYTES", soft::PRODUCT_BYTES),
        ("PART_BYTES", soft::PART_BYTES),
        ("FACTOR_BYTES", soft::FACTOR_BYTES),
        ("FACTORS_MAX", usize::from(soft::FACTORS_MAX)),
        ("LEFT_BYTES", soft::LEFT_BYTES),
        ("RIGHT_BYTES", soft::RIGHT_BYTES),
        ("NONCE_BYTES", soft::NONCE_BYTES),
        ("EQ", usize::from(soft::EQ)),
        ("ORD", usize::from(soft::ORD)),
        ("ADD", usize::from(soft::ADD)),
        ("MUL", usize::from(soft::MUL)),
        ("KEY_BITS", soft::KEY_BITS as usize),
        ("SHAPE_SHIFT", soft::SHAPE_SHIFT as usize),
        ("ENCODINGS_SHIFT", soft::ENCODINGS_SHIFT as usize),
        ("PRECISION_MAX", usize::from(soft::PRECISION_MAX)),
        ("ORDER_BYTES", usize::from(soft::ORDER_BYTES)),
        ("ORDER_BYTES_MAX", usize::from(soft::ORDER_BYTES_MAX)),
    ] {
        h.define(&format!("SOFT_{name}"), value);
    }
    let key: Vec<String> = soft::ORDER_HASH_KEY
        .iter()
        .map(|b| format!("{b:#04x}"))
        .collect();
    h.define(
        "SOFT_ORDER_HASH_KEY",
        format_args!("{{{}}}", key.join(", ")),
    );
    let names = soft::NAMES
        .iter()
        .map(|(name, bit)| (u64::from(*bit), *name));
    h.names("SOFT_ENCODINGS", "Encodings: bit, name", names);
    let _ = write!(
        h.0,
        "\n/* Types of the family: code, digits of the order, what it can have, what it has */\n#define CFD_SOFT_TYPES(X)"
    );
    for t in soft::TYPES {
        let (code, digits) = (t as u8, soft::digits(t));
        let (possible, usual) = (soft::possible(t), soft::usual(t));
        let _ = write!(h.0, " \\\n\tX({code}, {digits}, {possible}, {usual})");
    }
    h.0.push('\n');
}
