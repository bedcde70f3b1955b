//! Codes of the protected types. The name of a protected type is `enc_` and
//! the name of the plain type.

/// Declares the enum, the list of all codes and their names in one place.
macro_rules! type_codes {
    ($($(#[$doc:meta])* $variant:ident = $code:literal, $name:literal, $oid:literal;)*) => {
        /// The type of a protected value.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[repr(u8)]
        pub enum TypeCode { $($(#[$doc])* $variant = $code,)* }

        impl TypeCode {
            /// All types, in the order of their codes.
            pub const ALL: &'static [TypeCode] = &[$(TypeCode::$variant),*];

            /// The type with this code, if there is one.
            pub const fn from_u8(code: u8) -> Option<TypeCode> {
                match code { $($code => Some(TypeCode::$variant),)* _ => None }
            }

            /// PostgreSQL's name (`pg_type.typname`) of the plain type.
            pub const fn plain_name(self) -> &'static str {
                match self { $(TypeCode::$variant => $name,)* }
            }

            /// Name of the protected type.
            pub const fn enc_name(self) -> &'static str {
                match self { $(TypeCode::$variant => concat!("enc_", $name),)* }
            }

            /// Name of the type whose values stand in the row as cells (docs/families.md).
            pub const fn rnd_name(self) -> &'static str {
                match self { $(TypeCode::$variant => concat!("rnd_", $name),)* }
            }

            /// Name of the type whose cells have tokens (docs/families.md).
            pub const fn token_name(self) -> &'static str {
                match self { $(TypeCode::$variant => concat!("rnd_det_", $name),)* }
            }

            /// Name of the type whose values are encodings (docs/families.md).
            pub const fn soft_name(self) -> &'static str {
                match self { $(TypeCode::$variant => concat!("soft_", $name),)* }
            }

            /// PostgreSQL's OID of the plain type.
            pub const fn plain_oid(self) -> u32 {
                match self { $(TypeCode::$variant => $oid,)* }
            }
        }
    };
}

type_codes! {
    /// `bool`
    Bool = 1, "bool", 16;
    /// `int2`
    Int2 = 2, "int2", 21;
    /// `int4`
    Int4 = 3, "int4", 23;
    /// `int8`
    Int8 = 4, "int8", 20;
    /// `float4`
    Float4 = 5, "float4", 700;
    /// `float8`
    Float8 = 6, "float8", 701;
    /// `numeric`
    Numeric = 7, "numeric", 1700;
    /// `text`
    Text = 8, "text", 25;
    /// `varchar`: values are the same as those of `text`
    Varchar = 9, "varchar", 1043;
    /// `char(n)`: values are blank-padded
    Bpchar = 10, "bpchar", 1042;
    /// `bytea`
    Bytea = 11, "bytea", 17;
    /// `date`
    Date = 12, "date", 1082;
    /// `time` without time zone
    Time = 13, "time", 1083;
    /// `timestamp` without time zone
    Timestamp = 14, "timestamp", 1114;
    /// `timestamp with time zone`
    Timestamptz = 15, "timestamptz", 1184;
    /// `interval`
    Interval = 16, "interval", 1186;
    /// `uuid`
    Uuid = 17, "uuid", 2950;
    /// `json`: values are texts
    Json = 18, "json", 114;
    /// `jsonb`
    Jsonb = 19, "jsonb", 3802;
}

impl TypeCode {
    /// The type whose protected twin has this name.
    pub fn from_enc_name(name: &str) -> Option<TypeCode> {
        let found = TypeCode::ALL.iter().find(|t| t.enc_name() == name);
        found.copied()
    }

    /// The type whose protected twin, of any family, has this name.
    pub fn from_protected_name(name: &str) -> Option<TypeCode> {
        let named = |t: &&TypeCode| [t.enc_name(), t.rnd_name(), t.token_name()].contains(&name);
        TypeCode::ALL.iter().find(named).copied()
    }

    /// The code under which values of this type are kept: `varchar` values
    /// are `text` values.
    pub const fn stored(self) -> TypeCode {
        match self {
            TypeCode::Varchar => TypeCode::Text,
            other => other,
        }
    }
}
