//! What errors are told apart by, beside the SQLSTATE: a code. Their texts are for people.
//!
//! The keeper tells it in [`crate::body::Error`]; from the extension to the client it goes in
//! the error's field for a constraint's name ([`Code::name`]), beside the name of the protected
//! type in the field for a data type's.

macro_rules! codes {
    ($($(#[doc = $doc:literal])* $name:ident = $code:literal, $text:literal;)*) => {
        /// What an error is.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
        #[repr(u16)]
        pub enum Code {
            /// Nothing that anybody must know.
            #[default]
            Other = 0,
            $($(#[doc = $doc])* $name = $code,)*
        }

        impl Code {
            /// All codes, but for [`Code::Other`].
            pub const ALL: &'static [Code] = &[$(Code::$name),*];

            /// The code with this number; of those that are not known, [`Code::Other`].
            pub const fn from_u16(code: u16) -> Code {
                match code { $($code => Code::$name,)* _ => Code::Other }
            }

            /// Its name in errors of the database.
            pub const fn name(self) -> &'static str {
                match self { Code::Other => "", $(Code::$name => $text,)* }
            }
        }
    };
}

codes! {
    /// The operation needs a client's session, and there is none.
    NoClient = 1, "confide_no_client";
    /// A permanent FID names nothing.
    Unresolved = 2, "confide_unresolved";
    /// A text is none of its type. PostgreSQL shows it after the message.
    InvalidText = 3, "confide_invalid_text";
    /// A text is a number beyond its type. PostgreSQL shows it in the message.
    OutOfRange = 4, "confide_out_of_range";
    /// A text has a character that is no hexadecimal digit. PostgreSQL shows that.
    InvalidDigit = 5, "confide_invalid_digit";
}

impl Code {
    /// The code with this name; of other names, [`Code::Other`].
    pub fn from_name(name: &str) -> Code {
        let found = Code::ALL.iter().find(|code| code.name() == name);
        found.copied().unwrap_or_default()
    }
}
