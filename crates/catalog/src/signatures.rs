//! Signatures: an operation with the types of its operands and result. Their
//! numbers are the handles of one-instruction programs.

use contract::{Flag, Named, Op, OpResult, TypeCode};
use std::collections::HashMap;

use TypeCode::*;

/// An operation on operands of given types.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Signature {
    /// The operation.
    pub op: Op,
    /// Types of the operands.
    pub args: Vec<TypeCode>,
    /// Type of the result where it is a protected value.
    pub ret: Option<TypeCode>,
}

impl Signature {
    /// Name of the C function, without the prefix: operation, operand types,
    /// and for a cast the result type.
    pub fn symbol(&self) -> String {
        let mut name = format!("{:?}", self.op).to_lowercase();
        for arg in &self.args {
            name.push('_');
            name.push_str(arg.plain_name());
        }
        if let (Op::Cast, Some(ret)) = (self.op, self.ret) {
            name.push_str("_to_");
            name.push_str(ret.plain_name());
        }
        name
    }
}

/// All signatures, and their numbers by content.
pub struct Signatures {
    list: Vec<Signature>,
    numbers: HashMap<Signature, u16>,
    functions: Vec<Named>,
}

impl Signatures {
    /// The signature with this number (numbers start at 1).
    pub fn get(&self, number: u16) -> Option<&Signature> {
        self.list.get(usize::from(number).checked_sub(1)?)
    }

    /// The number of a signature, if it is one of ours.
    pub fn number(&self, signature: &Signature) -> Option<u16> {
        self.numbers.get(signature).copied()
    }

    /// The names under which SQL knows a signature as a function.
    pub fn names(&self, signature: &Signature) -> &'static [&'static str] {
        self.named(signature).map_or(&[], |named| named.names)
    }

    /// Whether something is said of the function with this signature.
    pub(crate) fn is(&self, signature: &Signature, flag: Flag) -> bool {
        self.named(signature).is_some_and(|named| named.is(flag))
    }

    fn named(&self, signature: &Signature) -> Option<&Named> {
        let mut all = self.functions.iter();
        all.find(|f| f.op == signature.op && f.args == signature.args)
    }

    /// Numbers and signatures in the order of numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u16, &Signature)> {
        (1..).zip(&self.list)
    }
}

/// The integer types, from narrow to wide.
pub(crate) const INTEGERS: [TypeCode; 3] = [Int2, Int4, Int8];
/// The floating-point types, from narrow to wide.
pub(crate) const FLOATS: [TypeCode; 2] = [Float4, Float8];
/// The types of the datetime operator family.
pub(crate) const DATETIMES: [TypeCode; 3] = [Date, Timestamp, Timestamptz];

/// Types that can be compared with each other, as in PostgreSQL's B-tree
/// operator families, with the family's name.
pub(crate) const FAMILIES: &[(&str, &[TypeCode])] = &[
    ("enc_bool_ops", &[Bool]),
    ("enc_integer_ops", &INTEGERS),
    ("enc_float_ops", &FLOATS),
    ("enc_numeric_ops", &[Numeric]),
    ("enc_text_ops", &[Text]),
    ("enc_bpchar_ops", &[Bpchar]),
    ("enc_bytea_ops", &[Bytea]),
    ("enc_datetime_ops", &DATETIMES),
    ("enc_time_ops", &[Time]),
    ("enc_interval_ops", &[Interval]),
    ("enc_uuid_ops", &[Uuid]),
    ("enc_jsonb_ops", &[Jsonb]),
];

/// The support functions `in_range` of PostgreSQL's B-trees: the operator family, the type of the
/// values and that of the offset.
pub(crate) const IN_RANGE: &[(&str, TypeCode, TypeCode)] = &[
    ("enc_integer_ops", Int2, Int2),
    ("enc_integer_ops", Int2, Int4),
    ("enc_integer_ops", Int2, Int8),
    ("enc_integer_ops", Int4, Int2),
    ("enc_integer_ops", Int4, Int4),
    ("enc_integer_ops", Int4, Int8),
    ("enc_integer_ops", Int8, Int8),
    ("enc_float_ops", Float4, Float8),
    ("enc_float_ops", Float8, Float8),
    ("enc_numeric_ops", Numeric, Numeric),
    ("enc_datetime_ops", Date, Interval),
    ("enc_datetime_ops", Timestamp, Interval),
    ("enc_datetime_ops", Timestamptz, Interval),
    ("enc_time_ops", Time, Interval),
    ("enc_interval_ops", Interval, Interval),
];

/// The wider of two types of one family that is ordered from narrow to wide.
pub(crate) fn wider(a: TypeCode, b: TypeCode) -> TypeCode {
    a.max(b)
}

#[derive(Default)]
struct Builder(Vec<Signature>);

impl Builder {
    fn fid(&mut self, op: Op, args: &[TypeCode], ret: TypeCode) {
        debug_assert_eq!(op.result(), OpResult::Fid);
        self.push(op, args, Some(ret));
    }

    fn plain(&mut self, op: Op, args: &[TypeCode]) {
        debug_assert_ne!(op.result(), OpResult::Fid);
        self.push(op, args, None);
    }

    fn push(&mut self, op: Op, args: &[TypeCode], ret: Option<TypeCode>) {
        self.0.push(Signature {
            op,
            args: args.to_vec(),
            ret,
        });
    }

    fn comparisons(&mut self) {
        for (_, family) in FAMILIES {
            for &a in *family {
                for &b in *family {
                    for op in [Op::Lt, Op::Le, Op::Eq, Op::Ge, Op::Gt, Op::Ne, Op::Cmp] {
                        self.plain(op, &[a, b]);
                    }
                }
                self.plain(Op::Hash, &[a]);
            }
        }
        self.plain(Op::IsTrue, &[Bool]);
    }

    fn numbers(&mut self) {
        for a in INTEGERS {
            for b in INTEGERS {
                for op in [Op::Add, Op::Sub, Op::Mul, Op::Div] {
                    self.fid(op, &[a, b], wider(a, b));
                }
            }
            for op in [Op::BitAnd, Op::BitOr, Op::BitXor] {
                self.fid(op, &[a, a], a);
            }
            self.fid(Op::BitNot, &[a], a);
            for op in [Op::ShiftLeft, Op::ShiftRight] {
                self.fid(op, &[a, Int4], a);
            }
        }
        for a in FLOATS {
            for b in FLOATS {
                for op in [Op::Add, Op::Sub, Op::Mul, Op::Div] {
                    self.fid(op, &[a, b], wider(a, b));
                }
            }
        }
        for op in [Op::Add, Op::Sub, Op::Mul, Op::Div] {
            self.fid(op, &[Numeric, Numeric], Numeric);
        }
        for a in [Int2, Int4, Int8, Float4, Float8, Numeric] {
            for op in [Op::Neg, Op::Plus] {
                self.fid(op, &[a], a);
            }
        }
    }

    fn datetimes(&mut self) {
        self.fid(Op::Add, &[Date, Int4], Date);
        self.fid(Op::Add, &[Int4, Date], Date);
        self.fid(Op::Sub, &[Date, Int4], Date);
        self.fid(Op::Sub, &[Date, Date], Int4);
        self.fid(Op::Add, &[Date, Time], Timestamp);
        self.fid(Op::Add, &[Time, Date], Timestamp);
        for (at, result) in [
            (Date, Timestamp),
            (Timestamp, Timestamp),
            (Timestamptz, Timestamptz),
            (Time, Time),
        ] {
            self.fid(Op::Add, &[at, Interval], result);
            self.fid(Op::Add, &[Interval, at], result);
            self.fid(Op::Sub, &[at, Interval], result);
        }
        for at in [Timestamp, Timestamptz, Time] {
            self.fid(Op::Sub, &[at, at], Interval);
        }
        for op in [Op::Add, Op::Sub] {
            self.fid(op, &[Interval, Interval], Interval);
        }
        self.fid(Op::Neg, &[Interval], Interval);
        self.fid(Op::Mul, &[Interval, Float8], Interval);
        self.fid(Op::Mul, &[Float8, Interval], Interval);
        self.fid(Op::Div, &[Interval, Float8], Interval);
    }

    fn strings(&mut self) {
        for op in [Op::Like, Op::NotLike, Op::Ilike, Op::NotIlike] {
            self.plain(op, &[Text, Text]);
            self.plain(op, &[Bpchar, Text]);
        }
        for a in [Text, Bytea] {
            self.fid(Op::Concat, &[a, a], a);
        }
        for op in [Op::Like, Op::NotLike] {
            self.plain(op, &[Bytea, Bytea]);
        }
        for op in [Op::Regex, Op::NotRegex, Op::RegexFold, Op::NotRegexFold] {
            self.plain(op, &[Text, Text]);
            self.plain(op, &[Bpchar, Text]);
        }
    }

    /// What windows with an offset ask.
    fn ranges(&mut self) {
        for &(_, of, offset) in IN_RANGE {
            self.plain(Op::InRange, &[of, of, offset]);
        }
    }

    fn functions<'f>(&mut self, functions: impl Iterator<Item = &'f Named>) {
        functions.for_each(|named| self.push(named.op, named.args, named.ret));
    }

    fn conversions(&mut self) {
        for cast in crate::casts::functional() {
            self.fid(Op::Cast, &[cast.0], cast.1);
        }
        for a in [
            Numeric,
            Varchar,
            Bpchar,
            Time,
            Timestamp,
            Timestamptz,
            Interval,
        ] {
            self.fid(Op::Typmod, &[a], a);
        }
        for a in [Varchar, Bpchar] {
            self.fid(Op::TypmodExplicit, &[a], a);
        }
    }
}

/// Functions of operations with codes from here on are numbered behind the casts.
const LATE: u16 = Op::Initcap as u16;

/// The table of all signatures.
pub fn signatures() -> Signatures {
    signatures_with(Op::FUNCTIONS)
}

/// The table with these functions.
pub fn signatures_with(functions: &[Named]) -> Signatures {
    let mut builder = Builder::default();
    builder.comparisons();
    builder.numbers();
    builder.datetimes();
    builder.strings();
    let early = |named: &&Named| (named.op as u16) < LATE;
    builder.functions(functions.iter().filter(early));
    builder.conversions();
    builder.functions(functions.iter().filter(|named| !early(named)));
    builder.ranges();
    let list = builder.0;
    let numbers = (1..).zip(&list).map(|(n, s)| (s.clone(), n)).collect();
    Signatures {
        list,
        numbers,
        functions: functions.to_vec(),
    }
}
