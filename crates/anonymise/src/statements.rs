//! Calls as SQL, for a keeper on the machine of whoever looks for a bug: each call of a masked log
//! is a statement that has the keeper make it.
//!
//! Does not: casts, and calls that depend on a field's name. These have no statement here.

use crate::call::{Call, Log, text};
use catalog::{Arg, Signature, functions, operators, signatures};
use values::Value;

/// A literal of the protected type.
fn literal(value: &Value) -> String {
    let quoted = text(value).replace('\'', "''");
    // Backslashes stand for themselves, whatever the session's settings say.
    let (mark, quoted) = match quoted.contains('\\') {
        true => ("E", quoted.replace('\\', "\\\\")),
        false => ("", quoted),
    };
    format!("{mark}'{quoted}'::{}", value.type_code().enc_name())
}

/// The statement of a call, if SQL has one for it.
#[must_use]
pub fn statement(call: &Call) -> Option<String> {
    let all = signatures();
    let types = call.operands.iter().map(|o| o.value.type_code());
    let number = all.number(&Signature {
        op: call.op,
        args: types.collect(),
        ret: call.ret,
    })?;
    let operands: Vec<String> = call.operands.iter().map(|o| literal(&o.value)).collect();
    let operator = operators(&all).into_iter().find(|o| o.number == number);
    if let Some(operator) = operator {
        return match operands.as_slice() {
            [a] => Some(format!("SELECT {} {a};", operator.name)),
            [a, b] => Some(format!("SELECT {a} {} {b};", operator.name)),
            _ => None,
        };
    }
    let all = functions(&all);
    let function = all.iter().find(|f| f.number == number)?;
    let whole = function.args.iter().all(|arg| matches!(arg, Arg::Enc(_)));
    whole.then(|| format!("SELECT {}({});", function.name, operands.join(", ")))
}

/// All statements of a log, each after a comment that says which call it is.
#[must_use]
pub fn statements(log: &Log) -> String {
    let settings = log.settings.iter().filter(|(name, _)| name != "now");
    let mut out: String = settings
        .map(|(name, value)| format!("SET {name} = '{}';\n", value.replace('\'', "''")))
        .collect();
    for (number, call) in log.calls.iter().enumerate() {
        out += &format!("-- {}: {}, {}\n", number + 1, call.name(), call.outcome);
        match statement(call) {
            Some(statement) => out += &statement,
            None => out += "-- SQL has no statement for it alone",
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_functions_and_operators() {
        for (line, sql) in [
            (
                "call\tLeft\ttext\t0\t?\ttext\ts.t.c\tO'Neill\\\\\tint4\t-\t2",
                Some("SELECT left(E'O''Neill\\\\'::enc_text, '2'::enc_int4);"),
            ),
            (
                "call\tLt\t-\t0\ttrue\tint4\ts.t.c\t1\tint4\t-\t2",
                Some("SELECT '1'::enc_int4 < '2'::enc_int4;"),
            ),
            (
                "call\tNeg\tint4\t0\tvalue\tint4\ts.t.c\t1",
                Some("SELECT - '1'::enc_int4;"),
            ),
            ("call\tCmp\t-\t0\t<\tint4\ts.t.c\t1\tint4\t-\t2", None),
        ] {
            let call = Call::parse(line).expect("a call");
            assert_eq!(statement(&call).as_deref(), sql, "{line}");
        }
    }
}
