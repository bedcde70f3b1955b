//! Why a body is refused.

use crate::refusal::Refusal;

/// An argument of a plain type meets something protected.
pub(crate) fn refuse_argument(name: &str) -> Refusal {
    Refusal::unsupported(format!(
        "argument \"{name}\" of a plain type meets a protected value in the body of this routine"
    ))
    .detail("Its values would be sent in the clear whenever the routine is called.")
    .hint("Declare the argument with the protected type.")
    .for_good()
}

/// A constant does, or may, and cannot be sealed.
pub(crate) fn refuse_constants(location: i32) -> Refusal {
    Refusal::unsupported("the body of this routine names something protected and has constants in it")
        .at(location)
        .detail("One of them meets a protected value there, or the proxy cannot tell; it would be stored in the clear.")
        .hint("Pass it as an argument of a protected type, or have a function give it whose body is parsed when it is made (CREATE FUNCTION f() RETURNS enc_text LANGUAGE sql RETURN 'x').")
        .for_good()
}
