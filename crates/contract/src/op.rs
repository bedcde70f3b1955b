//! Operations that the keeper evaluates. An [`Op`] is generic ("add"); the
//! catalog gives each its signatures, and numbers them: the number of a
//! signature is a *program handle* of a one-instruction program.
//!
//! A function is one entry here, `Name = code => result { ["sql_name"; Flag]: (operands) -> result, … }`,
//! and its implementation in crate `values` (`apply`); all else is generated from the entry. The order
//! of entries numbers their programs; codes of operations only tell them apart.
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

/// What else is to be said of a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flag {
    /// The result may be NULL though no operand is.
    Nullable,
    /// The names are PostgreSQL's alone: with overloads of ours it would not find its own any more for
    /// untyped arguments (`chr('65')`, `power($1, $2)`). The proxy writes another name.
    Renamed,
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
    /// What else is to be said of it.
    pub flags: &'static [Flag],
}

impl Named {
    /// Whether something is said of it.
    pub fn is(&self, flag: Flag) -> bool {
        self.flags.contains(&flag)
    }
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
                names: names!($names),
                args: types!($args),
                ret: first(&[$(TypeCode::$ret)?]),
                flags: flags!($names),
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

macro_rules! names {
    ([$($name:literal),* $(; $($flag:ident),*)?]) => { &[$($name),*] };
}

macro_rules! flags {
    ([$($name:literal),* $(; $($flag:ident),*)?]) => { &[$($(Flag::$flag),*)?] };
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
    /// `@>`
    JsonContains = 15 => Bool { ["jsonb_contains"; Renamed]: (Jsonb, Jsonb) };
    /// `<@`
    JsonContained = 16 => Bool { ["jsonb_contained"; Renamed]: (Jsonb, Jsonb) };
    /// `?`
    JsonExists = 17 => Bool { ["jsonb_exists"; Renamed]: (Jsonb, Text) };
    /// `?|`; the second operand is a list of items
    JsonExistsAny = 18 => Bool { ["enc_jsonexistsany"; Renamed]: (Jsonb, Text) };
    /// `?&`; the second operand is a list of items
    JsonExistsAll = 19 => Bool { ["enc_jsonexistsall"; Renamed]: (Jsonb, Text) };
    /// true of any two `json`, which have no `=`: whether a result is NULL is asked with it
    JsonThere = 40 => Bool { ["enc_jsonthere"; Renamed]: (Json, Json) };
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
    TrimBoth = 56 => Fid { ["btrim"]:
            (Text) -> Text, (Text, Text) -> Text, (Bytea, Bytea) -> Bytea };
    /// `ltrim`
    TrimLeft = 57 => Fid { ["ltrim"]:
            (Text) -> Text, (Text, Text) -> Text, (Bytea, Bytea) -> Bytea };
    /// `rtrim`
    TrimRight = 58 => Fid { ["rtrim"]:
            (Text) -> Text, (Text, Text) -> Text, (Bytea, Bytea) -> Bytea };
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
    /// `extract(field from x)` as numeric; the immediate is a [`crate::Unit`]
    Extract = 70 => Fid { ["extract"]:
            (Date) -> Numeric, (Time) -> Numeric, (Timestamp) -> Numeric,
            (Timestamptz) -> Numeric, (Interval) -> Numeric };
    /// `date_part(field, x)` as float8; the immediate is a [`crate::Unit`]
    DatePart = 71 => Fid { ["date_part"]:
            (Date) -> Float8, (Time) -> Float8, (Timestamp) -> Float8, (Timestamptz) -> Float8,
            (Interval) -> Float8 };
    /// `date_trunc(field, x)`; the immediate is a [`crate::Unit`]
    DateTrunc = 72 => Fid { ["date_trunc"]:
            (Timestamp) -> Timestamp, (Timestamptz) -> Timestamptz, (Interval) -> Interval };
    /// a cast to the signature's result type
    Cast = 80 => Fid;
    /// applies the type modifier in the immediate, as an assignment does
    Typmod = 81 => Fid;
    /// applies the type modifier in the immediate, as an explicit cast does
    TypmodExplicit = 82 => Fid;
    /// `initcap`
    Initcap = 100 => Fid { ["initcap"]: (Text) -> Text };
    /// `lpad(s, n)` and `lpad(s, n, fill)`
    Lpad = 101 => Fid { ["lpad"]: (Text, Int4) -> Text, (Text, Int4, Text) -> Text };
    /// `rpad(s, n)` and `rpad(s, n, fill)`
    Rpad = 102 => Fid { ["rpad"]: (Text, Int4) -> Text, (Text, Int4, Text) -> Text };
    /// `split_part(s, delimiter, n)`
    SplitPart = 103 => Fid { ["split_part"]: (Text, Text, Int4) -> Text };
    /// `translate(s, from, to)`
    Translate = 104 => Fid { ["translate"]: (Text, Text, Text) -> Text };
    /// `overlay(s, new, from)` and `overlay(s, new, from, count)`
    Overlay = 105 => Fid { ["overlay"]:
            (Text, Text, Int4) -> Text, (Text, Text, Int4, Int4) -> Text,
            (Bytea, Bytea, Int4) -> Bytea, (Bytea, Bytea, Int4, Int4) -> Bytea };
    /// `repeat(s, n)`
    Repeat = 106 => Fid { ["repeat"]: (Text, Int4) -> Text };
    /// `ascii`
    Ascii = 112 => Fid { ["ascii"]: (Text) -> Int4 };
    /// `chr`
    Chr = 113 => Fid { ["chr"; Renamed]: (Int4) -> Text };
    /// `quote_ident`
    QuoteIdent = 114 => Fid { ["quote_ident"]: (Text) -> Text };
    /// `quote_literal`
    QuoteLiteral = 115 => Fid { ["quote_literal"]: (Text) -> Text };
    /// `bit_length`
    BitLength = 116 => Fid { ["bit_length"]: (Text) -> Int4, (Bytea) -> Int4 };
    /// `to_hex`
    ToHex = 117 => Fid { ["to_hex"]: (Int4) -> Text, (Int8) -> Text };
    /// `md5`
    Md5 = 107 => Fid { ["md5"]: (Text) -> Text, (Bytea) -> Text };
    /// `sha224`
    Sha224 = 108 => Fid { ["sha224"; Renamed]: (Bytea) -> Bytea };
    /// `sha256`
    Sha256 = 109 => Fid { ["sha256"; Renamed]: (Bytea) -> Bytea };
    /// `sha384`
    Sha384 = 110 => Fid { ["sha384"; Renamed]: (Bytea) -> Bytea };
    /// `sha512`
    Sha512 = 111 => Fid { ["sha512"; Renamed]: (Bytea) -> Bytea };
    /// `encode(bytes, form)`
    Encode = 118 => Fid { ["encode"]: (Bytea, Text) -> Text };
    /// `decode(s, form)`
    Decode = 119 => Fid { ["decode"]: (Text, Text) -> Bytea };
    /// `convert_to(s, encoding)`
    ConvertTo = 120 => Fid { ["convert_to"]: (Text, Text) -> Bytea };
    /// `convert_from(bytes, encoding)`
    ConvertFrom = 121 => Fid { ["convert_from"; Renamed]: (Bytea, Text) -> Text };
    /// `get_byte(bytes, n)`
    GetByte = 122 => Fid { ["get_byte"; Renamed]: (Bytea, Int4) -> Int4 };
    /// `set_byte(bytes, n, value)`
    SetByte = 123 => Fid { ["set_byte"; Renamed]: (Bytea, Int4, Int4) -> Bytea };
    /// `get_bit(bytes, n)`
    GetBit = 124 => Fid { ["get_bit"; Renamed]: (Bytea, Int8) -> Int4 };
    /// `set_bit(bytes, n, value)`
    SetBit = 125 => Fid { ["set_bit"; Renamed]: (Bytea, Int8, Int4) -> Bytea };
    /// `bit_count`
    BitCount = 126 => Fid { ["bit_count"; Renamed]: (Bytea) -> Int8 };
    /// `~`: the second operand is a regular expression
    Regex = 130 => Bool;
    /// `!~`
    NotRegex = 131 => Bool;
    /// `~*`
    RegexFold = 132 => Bool;
    /// `!~*`
    NotRegexFold = 133 => Bool;
    /// `regexp_replace(s, pattern, new)` and with start, n, flags
    RegexpReplace = 134 => Fid { ["regexp_replace"]:
            (Text, Text, Text) -> Text, (Text, Text, Text, Text) -> Text,
            (Text, Text, Text, Int4) -> Text, (Text, Text, Text, Int4, Int4) -> Text,
            (Text, Text, Text, Int4, Int4, Text) -> Text };
    /// `regexp_substr(s, pattern)` and with start, n, flags, group
    RegexpSubstr = 135 => Fid { ["regexp_substr"; Nullable]:
            (Text, Text) -> Text, (Text, Text, Int4) -> Text, (Text, Text, Int4, Int4) -> Text,
            (Text, Text, Int4, Int4, Text) -> Text,
            (Text, Text, Int4, Int4, Text, Int4) -> Text };
    /// `regexp_like(s, pattern)` and with flags
    RegexpLike = 136 => Fid { ["regexp_like"]:
            (Text, Text) -> Bool, (Text, Text, Text) -> Bool };
    /// `regexp_count(s, pattern)` and with start, flags
    RegexpCount = 137 => Fid { ["regexp_count"]:
            (Text, Text) -> Int4, (Text, Text, Int4) -> Int4, (Text, Text, Int4, Text) -> Int4 };
    /// `regexp_instr(s, pattern)` and with start, n, end, flags, group
    RegexpInstr = 138 => Fid { ["regexp_instr"]:
            (Text, Text) -> Int4, (Text, Text, Int4) -> Int4, (Text, Text, Int4, Int4) -> Int4,
            (Text, Text, Int4, Int4, Int4) -> Int4, (Text, Text, Int4, Int4, Int4, Text) -> Int4,
            (Text, Text, Int4, Int4, Int4, Text, Int4) -> Int4 };
    /// `substring(s, pattern)` and `substring(s, pattern, escape)`
    RegexSubstring = 139 => Fid { ["substring"; Nullable]:
            (Text, Text) -> Text, (Text, Text, Text) -> Text };
    /// `similar_to_escape(pattern)` and with its escape character
    SimilarToEscape = 140 => Fid { ["similar_to_escape"]:
            (Text) -> Text, (Text, Text) -> Text };
    /// a part of `regexp_split_to_table(s, pattern)` and with flags, by its number; NULL behind the last
    RegexpPart = 141 => Fid { ["enc_regexppart"; Nullable, Renamed]:
            (Text, Text, Int4) -> Text, (Text, Text, Text, Int4) -> Text };
    /// `power` and `^`
    Power = 150 => Fid { ["power", "pow"; Renamed]:
            (Float8, Float8) -> Float8, (Numeric, Numeric) -> Numeric };
    /// `sqrt` and `|/`
    Sqrt = 151 => Fid { ["sqrt"]: (Float8) -> Float8, (Numeric) -> Numeric };
    /// `exp`
    Exp = 153 => Fid { ["exp"]: (Float8) -> Float8, (Numeric) -> Numeric };
    /// `ln`
    Ln = 154 => Fid { ["ln"]: (Float8) -> Float8, (Numeric) -> Numeric };
    /// `log10` and `log(x)`
    Log10 = 155 => Fid { ["log10", "log"]: (Float8) -> Float8, (Numeric) -> Numeric };
    /// `log(base, x)`
    LogBase = 156 => Fid { ["log"; Renamed]: (Numeric, Numeric) -> Numeric };
    /// `degrees`
    Degrees = 157 => Fid { ["degrees"]: (Float8) -> Float8 };
    /// `radians`
    Radians = 158 => Fid { ["radians"]: (Float8) -> Float8 };
    /// `sin`
    Sin = 159 => Fid { ["sin"]: (Float8) -> Float8 };
    /// `cos`
    Cos = 160 => Fid { ["cos"]: (Float8) -> Float8 };
    /// `tan`
    Tan = 161 => Fid { ["tan"]: (Float8) -> Float8 };
    /// `cot`
    Cot = 162 => Fid { ["cot"]: (Float8) -> Float8 };
    /// `asin`
    Asin = 163 => Fid { ["asin"]: (Float8) -> Float8 };
    /// `acos`
    Acos = 164 => Fid { ["acos"]: (Float8) -> Float8 };
    /// `atan`
    Atan = 165 => Fid { ["atan"]: (Float8) -> Float8 };
    /// `atan2`
    Atan2 = 166 => Fid { ["atan2"; Renamed]: (Float8, Float8) -> Float8 };
    /// `sind`: the sine of degrees
    Sind = 170 => Fid { ["sind"]: (Float8) -> Float8 };
    /// `cosd`
    Cosd = 171 => Fid { ["cosd"]: (Float8) -> Float8 };
    /// `tand`
    Tand = 172 => Fid { ["tand"]: (Float8) -> Float8 };
    /// `cotd`
    Cotd = 173 => Fid { ["cotd"]: (Float8) -> Float8 };
    /// `asind`
    Asind = 174 => Fid { ["asind"]: (Float8) -> Float8 };
    /// `acosd`
    Acosd = 175 => Fid { ["acosd"]: (Float8) -> Float8 };
    /// `atand`
    Atand = 176 => Fid { ["atand"]: (Float8) -> Float8 };
    /// `atan2d`
    Atan2d = 177 => Fid { ["atan2d"; Renamed]: (Float8, Float8) -> Float8 };
    /// `sinh`
    Sinh = 167 => Fid { ["sinh"]: (Float8) -> Float8 };
    /// `cosh`
    Cosh = 168 => Fid { ["cosh"]: (Float8) -> Float8 };
    /// `tanh`
    Tanh = 169 => Fid { ["tanh"]: (Float8) -> Float8 };
    /// `div`: the whole part of a quotient
    DivTrunc = 180 => Fid { ["div"; Renamed]: (Numeric, Numeric) -> Numeric };
    /// `gcd`
    Gcd = 181 => Fid { ["gcd"]:
            (Int4, Int4) -> Int4, (Int8, Int8) -> Int8, (Numeric, Numeric) -> Numeric };
    /// `lcm`
    Lcm = 182 => Fid { ["lcm"]:
            (Int4, Int4) -> Int4, (Int8, Int8) -> Int8, (Numeric, Numeric) -> Numeric };
    /// `factorial`
    Factorial = 183 => Fid { ["factorial"; Renamed]: (Int8) -> Numeric };
    /// `scale`
    Scale = 184 => Fid { ["scale"; Nullable, Renamed]: (Numeric) -> Int4 };
    /// `min_scale`
    MinScale = 185 => Fid { ["min_scale"; Nullable, Renamed]: (Numeric) -> Int4 };
    /// `trim_scale`
    TrimScale = 186 => Fid { ["trim_scale"; Renamed]: (Numeric) -> Numeric };
    /// `width_bucket(x, low, high, count)`
    WidthBucket = 187 => Fid { ["width_bucket"; Renamed]:
            (Float8, Float8, Float8, Int4) -> Int4, (Numeric, Numeric, Numeric, Int4) -> Int4 };
    /// `timezone(zone, t)`, `t AT TIME ZONE zone`
    TimeZone = 200 => Fid { ["timezone"]:
            (Text, Timestamptz) -> Timestamp, (Text, Timestamp) -> Timestamptz,
            (Interval, Timestamptz) -> Timestamp, (Interval, Timestamp) -> Timestamptz };
    /// `date_trunc(field, t, zone)`
    DateTruncZone = 201 => Fid { ["date_trunc"]: (Text, Timestamptz, Text) -> Timestamptz };
    /// `date_bin(stride, t, origin)`
    DateBin = 202 => Fid { ["date_bin"]:
            (Interval, Timestamp, Timestamp) -> Timestamp,
            (Interval, Timestamptz, Timestamptz) -> Timestamptz };
    /// `age(t, t)`
    Age = 203 => Fid { ["age"; Renamed]:
            (Timestamp, Timestamp) -> Interval, (Timestamptz, Timestamptz) -> Interval };
    /// `justify_days`
    JustifyDays = 204 => Fid { ["justify_days"]: (Interval) -> Interval };
    /// `justify_hours`
    JustifyHours = 205 => Fid { ["justify_hours"]: (Interval) -> Interval };
    /// `justify_interval`
    JustifyInterval = 206 => Fid { ["justify_interval"]: (Interval) -> Interval };
    /// `make_date`
    MakeDate = 207 => Fid { ["make_date"; Renamed]: (Int4, Int4, Int4) -> Date };
    /// `make_time`
    MakeTime = 208 => Fid { ["make_time"; Renamed]: (Int4, Int4, Float8) -> Time };
    /// `make_timestamp`
    MakeTimestamp = 209 => Fid { ["make_timestamp"; Renamed]:
            (Int4, Int4, Int4, Int4, Int4, Float8) -> Timestamp };
    /// `make_timestamptz`
    MakeTimestamptz = 210 => Fid { ["make_timestamptz"; Renamed]:
            (Int4, Int4, Int4, Int4, Int4, Float8) -> Timestamptz,
            (Int4, Int4, Int4, Int4, Int4, Float8, Text) -> Timestamptz };
    /// `make_interval`
    MakeInterval = 211 => Fid { ["make_interval"; Renamed]:
            (Int4) -> Interval, (Int4, Int4) -> Interval, (Int4, Int4, Int4) -> Interval,
            (Int4, Int4, Int4, Int4) -> Interval, (Int4, Int4, Int4, Int4, Int4) -> Interval,
            (Int4, Int4, Int4, Int4, Int4, Int4) -> Interval,
            (Int4, Int4, Int4, Int4, Int4, Int4, Float8) -> Interval };
    /// `isfinite`
    IsFinite = 212 => Fid { ["isfinite"]:
            (Date) -> Bool, (Timestamp) -> Bool, (Timestamptz) -> Bool, (Interval) -> Bool };
    /// `to_char(x, format)`
    ToChar = 213 => Fid { ["to_char"; Nullable]:
            (Timestamp, Text) -> Text, (Timestamptz, Text) -> Text, (Interval, Text) -> Text }
        { ["to_char"]: (Int4, Text) -> Text, (Int8, Text) -> Text, (Numeric, Text) -> Text,
            (Float4, Text) -> Text, (Float8, Text) -> Text };
    /// `to_timestamp(s, format)` and `to_timestamp(seconds)`
    ToTimestamp = 215 => Fid { ["to_timestamp"; Renamed]: (Float8) -> Timestamptz }
        { ["to_timestamp"; Nullable, Renamed]: (Text, Text) -> Timestamptz };
    /// `to_date(s, format)`
    ToDate = 214 => Fid { ["to_date"; Nullable, Renamed]: (Text, Text) -> Date };
    /// `to_number(s, format)`
    ToNumber = 216 => Fid { ["to_number"; Nullable, Renamed]: (Text, Text) -> Numeric };
    /// `asinh`
    Asinh = 188 => Fid { ["asinh"; Renamed]: (Float8) -> Float8 };
    /// `acosh`
    Acosh = 189 => Fid { ["acosh"; Renamed]: (Float8) -> Float8 };
    /// `atanh`
    Atanh = 190 => Fid { ["atanh"; Renamed]: (Float8) -> Float8 };
    /// what a type's output function gives, where a cast gives another text
    Output = 220 => Fid { ["enc_output"; Renamed]: (Bool) -> Text, (Bpchar) -> Text };
    /// the output function's text, as an item of the list that `ConcatWs` and `Format` take; the item of NULL is `-`
    Item = 221 => Fid { ["enc_item"; Renamed]: (Bool) -> Text, (Int2) -> Text, (Int4) -> Text,
            (Int8) -> Text, (Float4) -> Text, (Float8) -> Text, (Numeric) -> Text, (Text) -> Text,
            (Bpchar) -> Text, (Bytea) -> Text, (Date) -> Text, (Time) -> Text, (Timestamp) -> Text,
            (Timestamptz) -> Text, (Interval) -> Text, (Uuid) -> Text, (Json) -> Text,
            (Jsonb) -> Text };
    /// `concat_ws(separator, …)` of a list of items
    ConcatWs = 222 => Fid { ["enc_concatws"; Renamed]: (Text, Text) -> Text };
    /// `format(template, …)` of a list of items
    Format = 223 => Fid { ["enc_format"; Renamed]: (Text, Text) -> Text };
    /// `->`
    JsonGet = 230 => Fid { ["json_object_field"; Nullable, Renamed]: (Json, Text) -> Json }
        { ["jsonb_object_field"; Nullable, Renamed]: (Jsonb, Text) -> Jsonb };
    /// `->` with an index
    JsonElement = 227 => Fid { ["json_array_element"; Nullable, Renamed]: (Json, Int4) -> Json }
        { ["jsonb_array_element"; Nullable, Renamed]: (Jsonb, Int4) -> Jsonb };
    /// `->>`
    JsonGetText = 231 => Fid { ["json_object_field_text"; Nullable, Renamed]: (Json, Text) -> Text }
        { ["jsonb_object_field_text"; Nullable, Renamed]: (Jsonb, Text) -> Text };
    /// `->>` with an index
    JsonElementText = 228 => Fid { ["json_array_element_text"; Nullable, Renamed]: (Json, Int4) -> Text }
        { ["jsonb_array_element_text"; Nullable, Renamed]: (Jsonb, Int4) -> Text };
    /// `#>`; the second operand is a list of items
    JsonPath = 232 => Fid { ["enc_jsonpath"; Nullable, Renamed]:
            (Json, Text) -> Json, (Jsonb, Text) -> Jsonb };
    /// `#>>`; the second operand is a list of items
    JsonPathText = 233 => Fid { ["enc_jsonpathtext"; Nullable, Renamed]:
            (Json, Text) -> Text, (Jsonb, Text) -> Text };
    /// `||` of `jsonb`
    JsonConcat = 234 => Fid { ["jsonb_concat"; Renamed]: (Jsonb, Jsonb) -> Jsonb };
    /// `-` of a key or an element
    JsonDelete = 235 => Fid { ["jsonb_delete"; Renamed]:
            (Jsonb, Text) -> Jsonb, (Jsonb, Int4) -> Jsonb };
    /// `-` of keys, as a list of items
    JsonDeleteKeys = 236 => Fid { ["enc_jsondeletekeys"; Renamed]: (Jsonb, Text) -> Jsonb };
    /// `json_typeof`
    JsonTypeof = 237 => Fid { ["json_typeof"; Renamed]: (Json) -> Text }
        { ["jsonb_typeof"; Renamed]: (Jsonb) -> Text };
    /// `json_array_length`
    JsonArrayLength = 238 => Fid { ["json_array_length"; Renamed]: (Json) -> Int4 }
        { ["jsonb_array_length"; Renamed]: (Jsonb) -> Int4 };
    /// `jsonb_set` at a path, which is a list of items, as those below; adds what is not there
    JsonSet = 217 => Fid { ["enc_jsonset"; Renamed]: (Jsonb, Text, Jsonb) -> Jsonb };
    /// `jsonb_set` that adds nothing
    JsonReplace = 218 => Fid { ["enc_jsonreplace"; Renamed]: (Jsonb, Text, Jsonb) -> Jsonb };
    /// `jsonb_insert`
    JsonInsert = 219 => Fid { ["enc_jsoninsert"; Renamed]: (Jsonb, Text, Jsonb) -> Jsonb };
    /// `jsonb_insert` behind the element
    JsonInsertAfter = 224 => Fid { ["enc_jsoninsertafter"; Renamed]: (Jsonb, Text, Jsonb) -> Jsonb };
    /// `#-`
    JsonDeletePath = 225 => Fid { ["enc_jsondeletepath"; Renamed]: (Jsonb, Text) -> Jsonb };
    /// `jsonb_strip_nulls`
    JsonStripNulls = 239 => Fid { ["jsonb_strip_nulls"; Renamed]: (Jsonb) -> Jsonb };
    /// `jsonb_pretty`
    JsonPretty = 229 => Fid { ["jsonb_pretty"; Renamed]: (Jsonb) -> Text };
    /// the JSON of a value, as an item of the list that `JsonArray` and `JsonObject` take
    JsonItem = 240 => Fid { ["enc_jsonitem"; Renamed]: (Bool) -> Text, (Int2) -> Text,
            (Int4) -> Text, (Int8) -> Text, (Float4) -> Text, (Float8) -> Text,
            (Numeric) -> Text, (Text) -> Text, (Bpchar) -> Text, (Bytea) -> Text,
            (Date) -> Text, (Time) -> Text, (Timestamp) -> Text, (Timestamptz) -> Text,
            (Interval) -> Text, (Uuid) -> Text, (Json) -> Text, (Jsonb) -> Text };
    /// `json_build_array` of a list of items
    JsonArray = 241 => Fid { ["enc_jsonarray"; Renamed]: (Text) -> Json };
    /// `json_build_object` of a list of items
    JsonObject = 242 => Fid { ["enc_jsonobject"; Renamed]: (Text) -> Json };
    /// `to_json` of an item
    ToJson = 243 => Fid { ["enc_tojson"; Renamed]: (Text) -> Json };
    /// `jsonb_build_array` of a list of items
    JsonbArray = 244 => Fid { ["enc_jsonbarray"; Renamed]: (Text) -> Jsonb };
    /// `jsonb_build_object` of a list of items
    JsonbObject = 245 => Fid { ["enc_jsonbobject"; Renamed]: (Text) -> Jsonb };
    /// `to_jsonb` of an item
    ToJsonb = 246 => Fid { ["enc_tojsonb"; Renamed]: (Text) -> Jsonb };
    /// `json_object_agg` of a list of keys and values
    JsonPairs = 247 => Fid { ["enc_jsonpairs"; Renamed]: (Text) -> Json };
    /// `jsonb_object_agg` of a list of keys and values
    JsonbPairs = 248 => Fid { ["enc_jsonbpairs"; Renamed]: (Text) -> Jsonb };
    /// `row_to_json` of a list of names and values
    JsonRow = 249 => Fid { ["enc_jsonrow"; Renamed]: (Text) -> Json };
    /// `json_agg` of a list of rows
    JsonRows = 250 => Fid { ["enc_jsonrows"; Renamed]: (Text) -> Json };
    /// `in_range` of windows: a value, the value of the current row and an offset. The immediate
    /// operand is a sum of [`crate::range`]
    InRange = 251 => Bool;
    /// the key of an object's pair, by the pair's number; NULL behind the last
    JsonKey = 252 => Fid { ["enc_jsonkey"; Nullable, Renamed]:
            (Json, Int4) -> Text, (Jsonb, Int4) -> Text };
    /// the value of an object's pair, by the pair's number
    JsonPair = 253 => Fid { ["enc_jsonpair"; Nullable, Renamed]:
            (Json, Int4) -> Json, (Jsonb, Int4) -> Jsonb };
    /// the same as text, NULL for JSON's null
    JsonPairText = 254 => Fid { ["enc_jsonpairtext"; Nullable, Renamed]:
            (Json, Int4) -> Text, (Jsonb, Int4) -> Text };
}
