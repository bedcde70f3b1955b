//! Operations that the keeper evaluates. An [`Op`] is generic ("add"); the
//! catalog gives each its signatures, and numbers them: the number of a
//! signature is a *program handle* of a one-instruction program.
//!
//! A function is one entry here, `Name = code => result { ["sql_name"]: (operands) -> result, … }`,
//! and its implementation in crate `values` (`apply`); all else is generated from the entry.
//! Operators and casts, whose signatures follow from families of types, have theirs in the catalog.

use crate::TypeCode;

/// What an operation gives back (design, section 7): a FID, or one of the
/// explicitly declassified kinds. Nothing else can leave an evaluation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Result {
    /// A protected value, stored under the FID that the backend chose.
    Fid = 0,
    /// A declassified boolean.
    Bool = 1,
    /// A declassified order: -1, 0 or 1.
    Order = 2,
    /// A declassified keyed 64-bit hash.
    Hash = 3,
}

/// A function by one of its SQL names' lists, with the types of its operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Named {
    /// The operation behind it.
    pub op: Op,
    /// Its names, in `pg_catalog`.
    pub names: &'static [&'static str],
    /// Types of the operands.
    pub args: &'static [TypeCode],
    /// Type of the result where it is a protected value.
    pub ret: Option<TypeCode>,
}

const fn first(types: &[TypeCode]) -> Option<TypeCode> {
    match types {
        [t, ..] => Some(*t),
        [] => None,
    }
}

macro_rules! ops {
    ($($(#[$doc:meta])* $variant:ident = $code:literal => $result:ident
        $({ $names:tt: $($args:tt $(-> $ret:ident)?),+ })*;)*) => {
        /// A generic operation.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[repr(u16)]
        pub enum Op { $($(#[$doc])* $variant = $code,)* }

        impl Op {
            /// All operations.
            pub const ALL: &'static [Op] = &[$(Op::$variant),*];

            /// All functions: what is called by name.
            pub const FUNCTIONS: &'static [Named] = &[$($($(Named {
                op: Op::$variant,
                names: &$names,
                args: types!($args),
                ret: first(&[$(TypeCode::$ret)?]),
            },)+)*)*];

            /// The operation with this code, if there is one.
            pub const fn from_u16(code: u16) -> Option<Op> {
                match code { $($code => Some(Op::$variant),)* _ => None }
            }

            /// What the operation gives back.
            #[inline]
            pub const fn result(self) -> Result {
                match self { $(Op::$variant => Result::$result,)* }
            }
        }
    };
}

macro_rules! types {
    (($($t:ident),*)) => { &[$(TypeCode::$t),*] };
}

ops! {
    /// `<`
    Lt = 1 => Bool;
    /// `<=`
    Le = 2 => Bool;
    /// `=`
    Eq = 3 => Bool;
    /// `>=`
    Ge = 4 => Bool;
    /// `>`
    Gt = 5 => Bool;
    /// `<>`
    Ne = 6 => Bool;
    /// B-tree comparison
    Cmp = 7 => Order;
    /// keyed hash
    Hash = 8 => Hash;
    /// `LIKE`; the second operand is the pattern
    Like = 9 => Bool;
    /// `NOT LIKE`
    NotLike = 10 => Bool;
    /// `ILIKE`
    Ilike = 11 => Bool;
    /// `NOT ILIKE`
    NotIlike = 12 => Bool;
    /// `^@` and `starts_with`
    StartsWith = 13 => Bool { ["starts_with"]: (Text, Text) };
    /// declassifies a boolean: the value itself (`WHERE flag`)
    IsTrue = 14 => Bool;
    /// `+`, including dates and intervals
    Add = 20 => Fid;
    /// `-`
    Sub = 21 => Fid;
    /// `*`
    Mul = 22 => Fid;
    /// `/`
    Div = 23 => Fid;
    /// `%` and `mod`
    Mod = 24 => Fid { ["mod"]:
            (Int2, Int2) -> Int2, (Int4, Int4) -> Int4, (Int8, Int8) -> Int8,
            (Numeric, Numeric) -> Numeric };
    /// unary `-`
    Neg = 25 => Fid;
    /// unary `+`
    Plus = 26 => Fid;
    /// `@` and `abs`
    Abs = 27 => Fid { ["abs"]:
            (Int2) -> Int2, (Int4) -> Int4, (Int8) -> Int8, (Float4) -> Float4,
            (Float8) -> Float8, (Numeric) -> Numeric };
    /// `&`
    BitAnd = 28 => Fid;
    /// `|`
    BitOr = 29 => Fid;
    /// `#`
    BitXor = 30 => Fid;
    /// `~`
    BitNot = 31 => Fid;
    /// `<<`
    ShiftLeft = 32 => Fid;
    /// `>>`
    ShiftRight = 33 => Fid;
    /// `round(x)` and `round(x, digits)`
    Round = 34 => Fid { ["round"]:
            (Float8) -> Float8, (Numeric) -> Numeric, (Numeric, Int4) -> Numeric };
    /// `trunc(x)` and `trunc(x, digits)`
    Trunc = 35 => Fid { ["trunc"]:
            (Float8) -> Float8, (Numeric) -> Numeric, (Numeric, Int4) -> Numeric };
    /// `ceil`
    Ceil = 36 => Fid { ["ceil", "ceiling"]: (Float8) -> Float8, (Numeric) -> Numeric };
    /// `floor`
    Floor = 37 => Fid { ["floor"]: (Float8) -> Float8, (Numeric) -> Numeric };
    /// `sign`
    Sign = 38 => Fid { ["sign"]: (Float8) -> Float8, (Numeric) -> Numeric };
    /// `||`
    Concat = 50 => Fid;
    /// `substring(s, from)` and `substring(s, from, for)`
    Substring = 51 => Fid { ["substring", "substr"]:
            (Text, Int4) -> Text, (Text, Int4, Int4) -> Text, (Bytea, Int4) -> Bytea,
            (Bytea, Int4, Int4) -> Bytea };
    /// `upper`
    Upper = 52 => Fid { ["upper"]: (Text) -> Text };
    /// `lower`
    Lower = 53 => Fid { ["lower"]: (Text) -> Text };
    /// `length` in characters
    Length = 54 => Fid { ["length", "char_length", "character_length"]:
            (Text) -> Int4, (Bpchar) -> Int4 } { ["length"]: (Bytea) -> Int4 };
    /// `octet_length`
    OctetLength = 55 => Fid { ["octet_length"]:
            (Text) -> Int4, (Bpchar) -> Int4, (Bytea) -> Int4 };
    /// `btrim(s)` and `btrim(s, characters)`
    TrimBoth = 56 => Fid { ["btrim"]: (Text) -> Text, (Text, Text) -> Text };
    /// `ltrim`
    TrimLeft = 57 => Fid { ["ltrim"]: (Text) -> Text, (Text, Text) -> Text };
    /// `rtrim`
    TrimRight = 58 => Fid { ["rtrim"]: (Text) -> Text, (Text, Text) -> Text };
    /// `strpos(s, sub)` and `position(sub in s)`
    Position = 59 => Fid { ["strpos", "position"]: (Text, Text) -> Int4 } { ["position"]:
            (Bytea, Bytea) -> Int4 };
    /// `replace(s, from, to)`
    Replace = 60 => Fid { ["replace"]: (Text, Text, Text) -> Text };
    /// `left(s, n)`
    Left = 61 => Fid { ["left"]: (Text, Int4) -> Text };
    /// `right(s, n)`
    Right = 62 => Fid { ["right"]: (Text, Int4) -> Text };
    /// `reverse`
    Reverse = 63 => Fid { ["reverse"]: (Text) -> Text };
    /// `like_escape`: a pattern and its `ESCAPE` as a pattern with the default escape character
    LikeEscape = 64 => Fid { ["like_escape"]: (Text, Text) -> Text };
    /// `extract(field from x)` as numeric; the immediate is a [`Unit`]
    Extract = 70 => Fid { ["extract"]:
            (Date) -> Numeric, (Time) -> Numeric, (Timestamp) -> Numeric,
            (Timestamptz) -> Numeric, (Interval) -> Numeric };
    /// `date_part(field, x)` as float8; the immediate is a [`Unit`]
    DatePart = 71 => Fid { ["date_part"]:
            (Date) -> Float8, (Time) -> Float8, (Timestamp) -> Float8, (Timestamptz) -> Float8,
            (Interval) -> Float8 };
    /// `date_trunc(field, x)`; the immediate is a [`Unit`]
    DateTrunc = 72 => Fid { ["date_trunc"]:
            (Timestamp) -> Timestamp, (Timestamptz) -> Timestamptz, (Interval) -> Interval };
    /// a cast to the signature's result type
    Cast = 80 => Fid;
    /// applies the type modifier in the immediate, as an assignment does
    Typmod = 81 => Fid;
    /// applies the type modifier in the immediate, as an explicit cast does
    TypmodExplicit = 82 => Fid;
}

macro_rules! coded {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $code:literal, $text:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u8)]
        pub enum $name { $(#[doc = concat!("`", $text, "`")] $variant = $code,)* }

        impl $name {
            /// All members.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];

            /// The member with this code, if there is one.
            pub const fn from_u8(code: u8) -> Option<$name> {
                match code { $($code => Some($name::$variant),)* _ => None }
            }

            /// The SQL name.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }
        }
    };
}

coded! {
    /// Fields of `extract`, `date_part` and `date_trunc`.
    Unit {
        Microseconds = 1, "microseconds";
        Milliseconds = 2, "milliseconds";
        Second = 3, "second";
        Minute = 4, "minute";
        Hour = 5, "hour";
        Day = 6, "day";
        Week = 7, "week";
        Month = 8, "month";
        Quarter = 9, "quarter";
        Year = 10, "year";
        Decade = 11, "decade";
        Century = 12, "century";
        Millennium = 13, "millennium";
        Dow = 14, "dow";
        Isodow = 15, "isodow";
        Doy = 16, "doy";
        Isoyear = 17, "isoyear";
        Julian = 18, "julian";
        Epoch = 19, "epoch";
        Timezone = 20, "timezone";
        TimezoneHour = 21, "timezone_hour";
        TimezoneMinute = 22, "timezone_minute";
    }
}

coded! {
    /// Aggregates whose transition state lives in the keeper.
    Aggregate {
        Sum = 1, "sum";
        Avg = 2, "avg";
        Min = 3, "min";
        Max = 4, "max";
    }
}
