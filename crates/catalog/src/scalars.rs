//! Signatures and SQL names of functions of which more is to be said than the table of operations
//! (`contract::op`) has room for: that the result may be NULL though no operand is, or that the name stays
//! PostgreSQL's alone; and of their relatives.
//!
//! Invariant: names, operands and results are those of PostgreSQL's function on plain types.

use contract::{Op, TypeCode};

use TypeCode::*;

/// Functions with one operation behind them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scalar {
    /// The operation.
    pub op: Op,
    /// SQL's names.
    pub names: &'static [&'static str],
    /// The operands' types, and the result's, for each of them.
    pub signatures: &'static [(&'static [TypeCode], TypeCode)],
    /// Whether the result may be NULL though no operand is.
    pub nullable: bool,
    /// Whether the names are PostgreSQL's alone.
    pub renamed: bool,
}

const fn entry(
    op: Op,
    names: &'static [&'static str],
    signatures: &'static [(&'static [TypeCode], TypeCode)],
) -> Scalar {
    Scalar {
        op,
        names,
        signatures,
        nullable: false,
        renamed: false,
    }
}

/// As [`entry`], with a result that may be NULL.
const fn nullable(
    op: Op,
    names: &'static [&'static str],
    signatures: &'static [(&'static [TypeCode], TypeCode)],
) -> Scalar {
    Scalar {
        nullable: true,
        ..entry(op, names, signatures)
    }
}

/// A function without overloads by these names: of untyped arguments only PostgreSQL would no longer
/// find its own (`chr('65')`, `power($1, $2)`). The proxy writes the function behind it instead.
const fn renamed(scalar: Scalar) -> Scalar {
    Scalar {
        renamed: true,
        ..scalar
    }
}

/// A function of one `float8` that gives one.
const FLOAT: &[(&[TypeCode], TypeCode)] = &[(&[Float8], Float8)];
/// The same of `float8` and of `numeric`.
const REAL: &[(&[TypeCode], TypeCode)] = &[(&[Float8], Float8), (&[Numeric], Numeric)];
const DIGEST: &[(&[TypeCode], TypeCode)] = &[(&[Bytea], Bytea)];
const PAD: &[(&[TypeCode], TypeCode)] = &[(&[Text, Int4], Text), (&[Text, Int4, Text], Text)];
const DIVISORS: &[(&[TypeCode], TypeCode)] = &[
    (&[Int4, Int4], Int4),
    (&[Int8, Int8], Int8),
    (&[Numeric, Numeric], Numeric),
];
const SPAN: &[(&[TypeCode], TypeCode)] = &[(&[Interval], Interval)];

/// All of them.
pub(crate) const SCALARS: &[&[Scalar]] = &[STRINGS, BYTES, PATTERNS, NUMBERS, TIMES, FORMATS];

const STRINGS: &[Scalar] = &[
    entry(Op::Initcap, &["initcap"], &[(&[Text], Text)]),
    entry(Op::Lpad, &["lpad"], PAD),
    entry(Op::Rpad, &["rpad"], PAD),
    entry(
        Op::SplitPart,
        &["split_part"],
        &[(&[Text, Text, Int4], Text)],
    ),
    entry(
        Op::Translate,
        &["translate"],
        &[(&[Text, Text, Text], Text)],
    ),
    entry(
        Op::Overlay,
        &["overlay"],
        &[
            (&[Text, Text, Int4], Text),
            (&[Text, Text, Int4, Int4], Text),
            (&[Bytea, Bytea, Int4], Bytea),
            (&[Bytea, Bytea, Int4, Int4], Bytea),
        ],
    ),
    entry(Op::Repeat, &["repeat"], &[(&[Text, Int4], Text)]),
    entry(Op::Ascii, &["ascii"], &[(&[Text], Int4)]),
    renamed(entry(Op::Chr, &["chr"], &[(&[Int4], Text)])),
    entry(Op::QuoteIdent, &["quote_ident"], &[(&[Text], Text)]),
    entry(Op::QuoteLiteral, &["quote_literal"], &[(&[Text], Text)]),
    entry(
        Op::BitLength,
        &["bit_length"],
        &[(&[Text], Int4), (&[Bytea], Int4)],
    ),
    entry(Op::ToHex, &["to_hex"], &[(&[Int4], Text), (&[Int8], Text)]),
];

const BYTES: &[Scalar] = &[
    entry(Op::Md5, &["md5"], &[(&[Text], Text), (&[Bytea], Text)]),
    renamed(entry(Op::Sha224, &["sha224"], DIGEST)),
    renamed(entry(Op::Sha256, &["sha256"], DIGEST)),
    renamed(entry(Op::Sha384, &["sha384"], DIGEST)),
    renamed(entry(Op::Sha512, &["sha512"], DIGEST)),
    entry(Op::Encode, &["encode"], &[(&[Bytea, Text], Text)]),
    entry(Op::Decode, &["decode"], &[(&[Text, Text], Bytea)]),
    entry(Op::ConvertTo, &["convert_to"], &[(&[Text, Text], Bytea)]),
    renamed(entry(
        Op::ConvertFrom,
        &["convert_from"],
        &[(&[Bytea, Text], Text)],
    )),
    renamed(entry(Op::GetByte, &["get_byte"], &[(&[Bytea, Int4], Int4)])),
    renamed(entry(
        Op::SetByte,
        &["set_byte"],
        &[(&[Bytea, Int4, Int4], Bytea)],
    )),
    renamed(entry(Op::GetBit, &["get_bit"], &[(&[Bytea, Int8], Int4)])),
    renamed(entry(
        Op::SetBit,
        &["set_bit"],
        &[(&[Bytea, Int8, Int4], Bytea)],
    )),
    renamed(entry(Op::BitCount, &["bit_count"], &[(&[Bytea], Int8)])),
];

const PATTERNS: &[Scalar] = &[
    entry(
        Op::RegexpReplace,
        &["regexp_replace"],
        &[
            (&[Text, Text, Text], Text),
            (&[Text, Text, Text, Text], Text),
            (&[Text, Text, Text, Int4], Text),
            (&[Text, Text, Text, Int4, Int4], Text),
            (&[Text, Text, Text, Int4, Int4, Text], Text),
        ],
    ),
    nullable(
        Op::RegexpSubstr,
        &["regexp_substr"],
        &[
            (&[Text, Text], Text),
            (&[Text, Text, Int4], Text),
            (&[Text, Text, Int4, Int4], Text),
            (&[Text, Text, Int4, Int4, Text], Text),
            (&[Text, Text, Int4, Int4, Text, Int4], Text),
        ],
    ),
    entry(
        Op::RegexpLike,
        &["regexp_like"],
        &[(&[Text, Text], Bool), (&[Text, Text, Text], Bool)],
    ),
    entry(
        Op::RegexpCount,
        &["regexp_count"],
        &[
            (&[Text, Text], Int4),
            (&[Text, Text, Int4], Int4),
            (&[Text, Text, Int4, Text], Int4),
        ],
    ),
    entry(
        Op::RegexpInstr,
        &["regexp_instr"],
        &[
            (&[Text, Text], Int4),
            (&[Text, Text, Int4], Int4),
            (&[Text, Text, Int4, Int4], Int4),
            (&[Text, Text, Int4, Int4, Int4], Int4),
            (&[Text, Text, Int4, Int4, Int4, Text], Int4),
            (&[Text, Text, Int4, Int4, Int4, Text, Int4], Int4),
        ],
    ),
    nullable(
        Op::RegexSubstring,
        &["substring"],
        &[(&[Text, Text], Text), (&[Text, Text, Text], Text)],
    ),
    entry(
        Op::SimilarToEscape,
        &["similar_to_escape"],
        &[(&[Text], Text), (&[Text, Text], Text)],
    ),
];

const NUMBERS: &[Scalar] = &[
    renamed(entry(
        Op::Power,
        &["power", "pow"],
        &[(&[Float8, Float8], Float8), (&[Numeric, Numeric], Numeric)],
    )),
    entry(Op::Sqrt, &["sqrt"], REAL),
    entry(Op::Exp, &["exp"], REAL),
    entry(Op::Ln, &["ln"], REAL),
    entry(Op::Log10, &["log10", "log"], REAL),
    renamed(entry(
        Op::LogBase,
        &["log"],
        &[(&[Numeric, Numeric], Numeric)],
    )),
    entry(Op::Degrees, &["degrees"], FLOAT),
    entry(Op::Radians, &["radians"], FLOAT),
    entry(Op::Sin, &["sin"], FLOAT),
    entry(Op::Cos, &["cos"], FLOAT),
    entry(Op::Tan, &["tan"], FLOAT),
    entry(Op::Cot, &["cot"], FLOAT),
    entry(Op::Asin, &["asin"], FLOAT),
    entry(Op::Acos, &["acos"], FLOAT),
    entry(Op::Atan, &["atan"], FLOAT),
    renamed(entry(Op::Atan2, &["atan2"], &[(&[Float8, Float8], Float8)])),
    entry(Op::Sind, &["sind"], FLOAT),
    entry(Op::Cosd, &["cosd"], FLOAT),
    entry(Op::Tand, &["tand"], FLOAT),
    entry(Op::Cotd, &["cotd"], FLOAT),
    entry(Op::Asind, &["asind"], FLOAT),
    entry(Op::Acosd, &["acosd"], FLOAT),
    entry(Op::Atand, &["atand"], FLOAT),
    renamed(entry(
        Op::Atan2d,
        &["atan2d"],
        &[(&[Float8, Float8], Float8)],
    )),
    entry(Op::Sinh, &["sinh"], FLOAT),
    entry(Op::Cosh, &["cosh"], FLOAT),
    entry(Op::Tanh, &["tanh"], FLOAT),
    renamed(entry(
        Op::DivTrunc,
        &["div"],
        &[(&[Numeric, Numeric], Numeric)],
    )),
    entry(Op::Gcd, &["gcd"], DIVISORS),
    entry(Op::Lcm, &["lcm"], DIVISORS),
    renamed(entry(Op::Factorial, &["factorial"], &[(&[Int8], Numeric)])),
    renamed(nullable(Op::Scale, &["scale"], &[(&[Numeric], Int4)])),
    renamed(nullable(
        Op::MinScale,
        &["min_scale"],
        &[(&[Numeric], Int4)],
    )),
    renamed(entry(
        Op::TrimScale,
        &["trim_scale"],
        &[(&[Numeric], Numeric)],
    )),
    renamed(entry(
        Op::WidthBucket,
        &["width_bucket"],
        &[
            (&[Float8, Float8, Float8, Int4], Int4),
            (&[Numeric, Numeric, Numeric, Int4], Int4),
        ],
    )),
];

const TIMES: &[Scalar] = &[
    entry(
        Op::TimeZone,
        &["timezone"],
        &[
            (&[Text, Timestamptz], Timestamp),
            (&[Text, Timestamp], Timestamptz),
            (&[Interval, Timestamptz], Timestamp),
            (&[Interval, Timestamp], Timestamptz),
        ],
    ),
    entry(
        Op::DateTruncZone,
        &["date_trunc"],
        &[(&[Text, Timestamptz, Text], Timestamptz)],
    ),
    entry(
        Op::DateBin,
        &["date_bin"],
        &[
            (&[Interval, Timestamp, Timestamp], Timestamp),
            (&[Interval, Timestamptz, Timestamptz], Timestamptz),
        ],
    ),
    renamed(entry(
        Op::Age,
        &["age"],
        &[
            (&[Timestamp, Timestamp], Interval),
            (&[Timestamptz, Timestamptz], Interval),
        ],
    )),
    entry(Op::JustifyDays, &["justify_days"], SPAN),
    entry(Op::JustifyHours, &["justify_hours"], SPAN),
    entry(Op::JustifyInterval, &["justify_interval"], SPAN),
    renamed(entry(
        Op::MakeDate,
        &["make_date"],
        &[(&[Int4, Int4, Int4], Date)],
    )),
    renamed(entry(
        Op::MakeTime,
        &["make_time"],
        &[(&[Int4, Int4, Float8], Time)],
    )),
    renamed(entry(
        Op::MakeTimestamp,
        &["make_timestamp"],
        &[(&[Int4, Int4, Int4, Int4, Int4, Float8], Timestamp)],
    )),
    renamed(entry(
        Op::MakeTimestamptz,
        &["make_timestamptz"],
        &[
            (&[Int4, Int4, Int4, Int4, Int4, Float8], Timestamptz),
            (&[Int4, Int4, Int4, Int4, Int4, Float8, Text], Timestamptz),
        ],
    )),
    renamed(entry(
        Op::MakeInterval,
        &["make_interval"],
        &[
            (&[Int4], Interval),
            (&[Int4, Int4], Interval),
            (&[Int4, Int4, Int4], Interval),
            (&[Int4, Int4, Int4, Int4], Interval),
            (&[Int4, Int4, Int4, Int4, Int4], Interval),
            (&[Int4, Int4, Int4, Int4, Int4, Int4], Interval),
            (&[Int4, Int4, Int4, Int4, Int4, Int4, Float8], Interval),
        ],
    )),
    entry(
        Op::IsFinite,
        &["isfinite"],
        &[
            (&[Date], Bool),
            (&[Timestamp], Bool),
            (&[Timestamptz], Bool),
            (&[Interval], Bool),
        ],
    ),
];

const FORMATS: &[Scalar] = &[
    nullable(
        Op::ToChar,
        &["to_char"],
        &[
            (&[Timestamp, Text], Text),
            (&[Timestamptz, Text], Text),
            (&[Interval, Text], Text),
        ],
    ),
    entry(
        Op::ToChar,
        &["to_char"],
        &[
            (&[Int4, Text], Text),
            (&[Int8, Text], Text),
            (&[Numeric, Text], Text),
            (&[Float4, Text], Text),
            (&[Float8, Text], Text),
        ],
    ),
    renamed(entry(
        Op::ToTimestamp,
        &["to_timestamp"],
        &[(&[Float8], Timestamptz)],
    )),
];

/// All entries.
pub(crate) fn scalars() -> impl Iterator<Item = &'static Scalar> {
    SCALARS.iter().copied().flatten()
}

/// The entry with this signature.
pub(crate) fn find(op: Op, args: &[TypeCode]) -> Option<&'static Scalar> {
    scalars().find(|s| s.op == op && s.signatures.iter().any(|(of, _)| *of == args))
}
