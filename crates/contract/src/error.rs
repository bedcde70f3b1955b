//! Codes that distinguish errors, in addition to the SQLSTATE. The texts of errors are for people.
//!
//! The keeper sends the code in [`crate::body::Error`]. The extension sends it to the client in the
//! error's constraint name field ([`Code::name`]), with the name of the protected type in the data
//! type field.

macro_rules! codes {
    ($($(#[doc = $doc:literal])* $name:ident = $code:literal, $text:literal;)*) => {
        /// Code of an error.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
        #[repr(u16)]
        pub enum Code {
            /// No particular code.
            #[default]
            Other = 0,
            $($(#[doc = $doc])* $name = $code,)*
        }

        impl Code {
            /// All codes except [`Code::Other`].
            pub const ALL: &'static [Code] = &[$(Code::$name),*];

            /// Returns the code with this number; [`Code::Other`] if it is unknown.
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
    /// Returns the code with this name; [`Code::Other`] if it is unknown.
    pub fn from_name(name: &str) -> Code {
        let found = Code::ALL.iter().find(|code| code.name() == name);
        found.copied().unwrap_or_default()
    }
}
