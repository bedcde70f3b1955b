//! Operations that the keeper evaluates. An [`Op`] is generic ("add"); the
//! catalog gives each its signatures, and numbers them: the number of a
//! signature is a *program handle* of a one-instruction program.

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

macro_rules! ops {
    ($($(#[$doc:meta])* $variant:ident = $code:literal => $result:ident;)*) => {
        /// A generic operation.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[repr(u16)]
        pub enum Op { $($(#[$doc])* $variant = $code,)* }

        impl Op {
            /// All operations.
            pub const ALL: &'static [Op] = &[$(Op::$variant),*];

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
    StartsWith = 13 => Bool;
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
    Mod = 24 => Fid;
    /// unary `-`
    Neg = 25 => Fid;
    /// unary `+`
    Plus = 26 => Fid;
    /// `@` and `abs`
    Abs = 27 => Fid;
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
    Round = 34 => Fid;
    /// `trunc(x)` and `trunc(x, digits)`
    Trunc = 35 => Fid;
    /// `ceil`
    Ceil = 36 => Fid;
    /// `floor`
    Floor = 37 => Fid;
    /// `sign`
    Sign = 38 => Fid;
    /// `||`
    Concat = 50 => Fid;
    /// `substring(s, from)` and `substring(s, from, for)`
    Substring = 51 => Fid;
    /// `upper`
    Upper = 52 => Fid;
    /// `lower`
    Lower = 53 => Fid;
    /// `length` in characters
    Length = 54 => Fid;
    /// `octet_length`
    OctetLength = 55 => Fid;
    /// `btrim(s)` and `btrim(s, characters)`
    TrimBoth = 56 => Fid;
    /// `ltrim`
    TrimLeft = 57 => Fid;
    /// `rtrim`
    TrimRight = 58 => Fid;
    /// `strpos(s, sub)` and `position(sub in s)`
    Position = 59 => Fid;
    /// `replace(s, from, to)`
    Replace = 60 => Fid;
    /// `left(s, n)`
    Left = 61 => Fid;
    /// `right(s, n)`
    Right = 62 => Fid;
    /// `reverse`
    Reverse = 63 => Fid;
    /// `like_escape`: a pattern and its `ESCAPE` as a pattern with the default escape character
    LikeEscape = 64 => Fid;
    /// `extract(field from x)` as numeric; the immediate is a [`Unit`]
    Extract = 70 => Fid;
    /// `date_part(field, x)` as float8; the immediate is a [`Unit`]
    DatePart = 71 => Fid;
    /// `date_trunc(field, x)`; the immediate is a [`Unit`]
    DateTrunc = 72 => Fid;
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
