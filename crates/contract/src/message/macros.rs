//! Macros that turn the table's entries into types that can encode, decode and describe themselves.
//! They know no particular message. Callers need [`crate::codec`] and [`crate::describe`] in scope.

/// A record: fields only, so that there can be lists of it. `=> n zeros` after a field means that n
/// zero bytes follow it.
#[macro_export]
macro_rules! record {
    ($($(#[doc = $doc:literal])* $name:ident {
        $($(#[doc = $field_doc:literal])* $field:ident: $t:ty $(=> $zeros:literal zeros)?),* $(,)?
    })*) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct $name { $($(#[doc = $field_doc])* pub $field: $t,)* }

        impl $name {
            /// Description for the generator.
            pub const STRUCTURE: Structure = Structure {
                name: stringify!($name),
                doc: concat!($($doc, "\n"),*),
                fields: $crate::fields!($($(#[doc = $field_doc])* $field: $t $(=> $zeros zeros)?,)*),
                tails: &[],
                same: $crate::codec::same_fixed::<$name>,
            };
        }

        impl Fixed for $name {
            const BYTES: usize = 0 $(+ <$t as Fixed>::BYTES $(+ $zeros)?)*;
            const CHECKED: bool = false $(|| <$t as Fixed>::CHECKED)*;
            const FORM: Form = Form::Structure(&$name::STRUCTURE);

            #[inline]
            fn take(from: &mut Reader<'_>) -> Result<$name, Malformed> {
                $(
                    let $field = <$t as Fixed>::take(from)?;
                    $(from.array::<$zeros>()?;)?
                )*
                Ok($name { $($field),* })
            }

            #[inline]
            fn put(&self, to: &mut impl Sink) {
                $(
                    Fixed::put(&self.$field, to);
                    $(to.put(&[0; $zeros]);)?
                )*
            }
        }
    )*};
}

/// A structure: fields as in a record, then, after a semicolon, tails. In brackets after a tail are
/// the fields whose product is the number of its elements; without them it extends to the end.
#[macro_export]
macro_rules! structure {
    ($($(#[doc = $doc:literal])* $name:ident $(<$life:lifetime>)? {
        $($(#[doc = $field_doc:literal])* $field:ident: $t:ty $(=> $zeros:literal zeros)?),* $(,)?
        $(;$($(#[doc = $tail_doc:literal])* $tail:ident: $tail_t:ty [$($count:ident),*]),+ $(,)?)?
    })*) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct $name $(<$life>)? {
            $($(#[doc = $field_doc])* pub $field: $t,)*
            $($($(#[doc = $tail_doc])* pub $tail: $tail_t,)+)?
        }

        impl $(<$life>)? $name $(<$life>)? {
            /// Size of the fields in bytes.
            pub const FIXED: usize = 0 $(+ <$t as Fixed>::BYTES $(+ $zeros)?)*;
            /// Description for the generator.
            pub const STRUCTURE: Structure = Structure {
                name: stringify!($name),
                doc: concat!($($doc, "\n"),*),
                fields: $crate::fields!($($(#[doc = $field_doc])* $field: $t $(=> $zeros zeros)?,)*),
                tails: &[$($(Tail {
                    name: stringify!($tail),
                    doc: concat!($($tail_doc, "\n"),*),
                    form: <$tail_t as Part<'_>>::FORM,
                    counts: &[$(stringify!($count)),*],
                },)+)?],
                same: |bytes| $crate::codec::same::<$name>(bytes),
            };
        }

        impl<'a> Part<'a> for $name $(<$life>)? {
            const FORM: Form = Form::Structure(&Self::STRUCTURE);

            #[inline]
            fn take(from: &mut Reader<'a>, _: &[usize]) -> Result<Self, Malformed> {
                const FIXED: usize = 0 $(+ <$t as Fixed>::BYTES $(+ $zeros)?)*;
                #[allow(unused_mut, unused_variables)]
                let mut fixed = Reader::new(from.array::<FIXED>()?);
                $(
                    let $field = <$t as Fixed>::take(&mut fixed)?;
                    $(fixed.array::<$zeros>()?;)?
                )*
                $($(let $tail = <$tail_t as Part<'a>>::take(from, &[$($count as usize),*])?;)+)?
                Ok($name { $($field,)* $($($tail,)+)? })
            }

            #[inline]
            #[allow(unused_variables)]
            fn put(&self, to: &mut impl Sink) {
                $(
                    Fixed::put(&self.$field, to);
                    $(to.put(&[0; $zeros]);)?
                )*
                $($(Part::put(&self.$tail, to);)+)?
            }
        }
    )*};
}

/// Descriptions of fields for the generator.
#[macro_export]
macro_rules! fields {
    ($($(#[doc = $doc:literal])* $field:ident: $t:ty $(=> $zeros:literal zeros)?,)*) => {
        &[$(Field {
            name: stringify!($field),
            doc: concat!($($doc, "\n"),*),
            form: <$t as Fixed>::FORM,
            zeros: 0 $(+ $zeros)?,
        },)*]
    };
}

/// Kinds of messages, each with its body, and the body of its answer if it has one.
#[macro_export]
macro_rules! messages {
    ($($(#[doc = $doc:literal])* $name:ident = $code:literal, body $(<$life:lifetime>)?
        { $($body:tt)* } $(answer $(<$answer_life:lifetime>)? { $($answer:tt)* })?;
    )*) => {
        /// Kind of a message.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u16)]
        pub enum Kind { $($(#[doc = $doc])* $name = $code,)* }

        impl Kind {
            /// All kinds.
            pub const ALL: &'static [Kind] = &[$(Kind::$name),*];

            /// Returns the kind with this code, if it exists.
            #[inline]
            pub const fn from_u16(code: u16) -> Option<Kind> {
                match code { $($code => Some(Kind::$name),)* _ => None }
            }

            /// Whether a request of this kind is answered.
            #[inline]
            pub const fn is_answered(self) -> bool {
                match self { $(Kind::$name => false $(|| $crate::answered!($($answer)*))?,)* }
            }

            /// Size of the body's fixed part in bytes.
            #[inline]
            pub const fn fixed_bytes(self) -> usize {
                match self { $(Kind::$name => <body::$name>::FIXED,)* }
            }
        }

        /// Bodies of messages, by kind.
        pub mod body {
            use super::*;
            $crate::structure! { $($(#[doc = $doc])* $name $(<$life>)? { $($body)* })* }
        }

        /// Bodies of answers, by the kind of the request.
        pub mod answer {
            use super::*;
            $crate::structure! { $($(
                /// Body of the answer.
                $name $(<$answer_life>)? { $($answer)* }
            )?)* }
        }

        /// All kinds of messages, for the generator.
        pub const MESSAGES: &[Message] = &[$(Message {
            name: stringify!($name),
            code: $code,
            doc: concat!($($doc, "\n"),*),
            body: &<body::$name>::STRUCTURE,
            answer: $crate::first!($($(@$answer_life)? (&<answer::$name>::STRUCTURE))?),
        },)*];
    };
}

/// Expands to `true` if there is an answer.
#[macro_export]
macro_rules! answered {
    ($($answer:tt)*) => {
        true
    };
}

/// Expands to the answer, if there is one.
#[macro_export]
macro_rules! first {
    () => {
        None
    };
    ($(@$life:lifetime)? ($answer:expr)) => {
        Some($answer)
    };
}

/// Named numbers, as constants and as a list for the generator.
macro_rules! numbers {
    ($($(#[doc = $doc:literal])* $name:ident: $t:ty = $value:expr;)*) => {
        $($(#[doc = $doc])* pub const $name: $t = $value;)*

        /// All of them, for the generator.
        pub const NUMBERS: &[(&str, u64)] = &[$((stringify!($name), $name as u64)),*];
    };
}
