//! CREATE FUNCTION statements with which PL/pgSQL's parser parses a body whose own definition is not at hand.
//!
//! All arguments are text but cursors: the parser only wants to know their names, and which it may open.

/// The statement, whose result is given as SQL; none if the body cannot be quoted.
pub(crate) fn definition(arguments: &[String], result: &str, body: &str) -> Option<String> {
    let mark = (0..=body.len())
        .map(|n| format!("$body{n}$"))
        .find(|mark| !body.contains(mark.as_str()))?;
    let list = arguments.join(", ");
    Some(format!(
        "CREATE FUNCTION routine({list}) {result} LANGUAGE plpgsql AS {mark}{body}{mark}"
    ))
}

/// An argument; the name is empty if it has none.
pub(crate) fn text_argument(name: &str) -> String {
    argument(name, "text")
}

/// An argument of a type.
pub(crate) fn argument(name: &str, ty: &str) -> String {
    match name.is_empty() {
        true => ty.to_owned(),
        false => format!("\"{}\" {ty}", name.replace('"', "\"\"")),
    }
}
