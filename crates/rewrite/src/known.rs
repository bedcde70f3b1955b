//! The catalog of protected operations, by name and number of arguments.

use catalog::Arg;
use contract::TypeCode;
use std::collections::HashMap;
use std::sync::OnceLock;

/// Arguments and result of a function, operator or aggregate.
pub(crate) struct Sig {
    pub args: Vec<Arg>,
    pub ret: Arg,
}

type ByArity = HashMap<&'static str, Vec<Sig>>;

/// All protected operations.
pub(crate) struct Known {
    functions: ByArity,
    operators: ByArity,
    aggregates: ByArity,
    written: HashMap<(&'static str, usize), String>,
}

impl Known {
    /// The table, built once.
    pub fn get() -> &'static Known {
        static KNOWN: OnceLock<Known> = OnceLock::new();
        KNOWN.get_or_init(Known::build)
    }

    pub fn function(&self, name: &str, arity: usize) -> Vec<&Sig> {
        find(&self.functions, name, arity)
    }

    pub fn has_function(&self, name: &str) -> bool {
        self.functions.contains_key(name) || self.aggregates.contains_key(name)
    }

    /// The name of a function when its arguments are protected, if different from its normal name.
    pub fn written(&self, name: &str, arity: usize) -> Option<&str> {
        let all = self.written.iter();
        let mut found = all.filter(|((of, count), _)| *of == name && *count == arity);
        found.next().map(|(_, written)| written.as_str())
    }

    pub fn operator(&self, name: &str, arity: usize) -> Vec<&Sig> {
        find(&self.operators, name, arity)
    }

    pub fn aggregate(&self, name: &str, arity: usize) -> Vec<&Sig> {
        find(&self.aggregates, name, arity)
    }

    fn build() -> Known {
        let signatures = catalog::signatures();
        let mut known = Known {
            functions: HashMap::new(),
            operators: HashMap::new(),
            aggregates: HashMap::new(),
            written: HashMap::new(),
        };
        for f in catalog::functions(&signatures) {
            if let Some(written) = f.written {
                known.written.insert((f.name, f.args.len()), written);
            }
            let sig = Sig {
                args: f.args,
                ret: f.ret,
            };
            known.functions.entry(f.name).or_default().push(sig);
        }
        known.add_composed();
        for o in catalog::operators(&signatures) {
            let sig = Sig {
                args: o.signature.args.iter().map(|&t| Arg::Enc(t)).collect(),
                ret: o.signature.ret.map_or(Arg::Plain(TypeCode::Bool), Arg::Enc),
            };
            known.operators.entry(o.name).or_default().push(sig);
        }
        for a in catalog::aggregates() {
            for name in a.names() {
                let sig = Sig {
                    args: a.arguments().into_iter().map(Arg::Enc).collect(),
                    ret: Arg::Enc(a.result),
                };
                known.aggregates.entry(name).or_default().push(sig);
            }
        }
        known
    }

    /// Functions and aggregates implemented in SQL by means of others.
    fn add_composed(&mut self) {
        use TypeCode::{Float8, Int8, Interval, Time, Timestamp, Timestamptz};
        self.aggregates.entry("regr_count").or_default().push(Sig {
            args: vec![Arg::Enc(Float8); 2],
            ret: Arg::Plain(Int8),
        });
        for t in [Timestamp, Timestamptz] {
            self.functions.entry("age").or_default().push(Sig {
                args: vec![Arg::Enc(t)],
                ret: Arg::Enc(Interval),
            });
        }
        for t in [Time, Timestamp, Timestamptz] {
            for (second, fourth) in [(t, t), (t, Interval), (Interval, t), (Interval, Interval)] {
                self.functions.entry("overlaps").or_default().push(Sig {
                    args: [t, second, t, fourth].map(Arg::Enc).to_vec(),
                    ret: Arg::Plain(TypeCode::Bool),
                });
            }
        }
    }
}

/// The signatures with the most arguments of exactly these types, which is how PostgreSQL chooses.
pub(crate) fn closest<'a>(sigs: &[&'a Sig], args: &[Option<TypeCode>]) -> Vec<&'a Sig> {
    let exact = |sig: &Sig| {
        let pairs = sig.args.iter().zip(args);
        pairs
            .filter(|(want, have)| match (want, have) {
                (Arg::Enc(want), Some(have)) => *want == have.stored(),
                _ => false,
            })
            .count()
    };
    let most = sigs.iter().map(|sig| exact(sig)).max().unwrap_or(0);
    sigs.iter()
        .copied()
        .filter(|sig| exact(sig) == most)
        .collect()
}

fn find<'a>(table: &'a ByArity, name: &str, arity: usize) -> Vec<&'a Sig> {
    let all = table.get(name).map(Vec::as_slice).unwrap_or_default();
    all.iter().filter(|sig| sig.args.len() == arity).collect()
}

/// Operators that the family `soft_` has in none of its encodings.
pub(crate) fn beyond_encodings(name: &str) -> bool {
    !matches!(name, "=" | "<>" | "<" | "<=" | ">" | ">=")
}

/// Operators whose result is a declassified boolean, whatever the types.
pub(crate) fn is_comparison(name: &str) -> bool {
    matches!(
        name,
        "=" | "<>"
            | "<"
            | "<="
            | ">"
            | ">="
            | "~~"
            | "!~~"
            | "~~*"
            | "!~~*"
            | "^@"
            | "~"
            | "!~"
            | "~*"
            | "!~*"
    )
}

/// The common result of these signatures for these argument types (`None` for an unknown type).
pub(crate) fn result(sigs: &[&Sig], args: &[Option<TypeCode>]) -> Option<Arg> {
    let exact = |sig: &&&Sig| {
        sig.args
            .iter()
            .zip(args)
            .all(|(want, have)| match (want, have) {
                (Arg::Enc(want), Some(have)) => *want == have.stored(),
                _ => true,
            })
    };
    let common = |mut rets: Vec<Arg>| {
        rets.dedup();
        if rets.len() == 1 { rets.pop() } else { None }
    };
    let matching: Vec<Arg> = sigs.iter().filter(exact).map(|sig| sig.ret).collect();
    if !matching.is_empty() {
        return common(matching);
    }
    let all = common(sigs.iter().map(|sig| sig.ret).collect());
    all.or_else(|| {
        widest(args)
            .filter(|t| sigs.iter().any(|s| s.ret == Arg::Enc(*t)))
            .map(Arg::Enc)
    })
}

/// The result type of PostgreSQL's arithmetic on numbers of different types.
fn widest(args: &[Option<TypeCode>]) -> Option<TypeCode> {
    use TypeCode::{Float4, Float8, Int2, Int4, Int8, Numeric};
    const RANKS: [TypeCode; 6] = [Int2, Int4, Int8, Numeric, Float4, Float8];
    let mut widest = 0;
    for arg in args {
        widest = widest.max(RANKS.iter().position(|t| Some(*t) == *arg)?);
    }
    let mixed = RANKS[widest] == Float4 && args.iter().any(|a| *a != Some(Float4));
    Some(if mixed { Float8 } else { RANKS[widest] })
}

/// The type of an untyped string as an argument: that of the signatures, or text if they differ.
pub(crate) fn argument_type(sigs: &[&Sig], index: usize) -> TypeCode {
    let mut types = sigs.iter().filter_map(|s| match s.args.get(index) {
        Some(Arg::Enc(code)) => Some(*code),
        _ => None,
    });
    let first = types.next().unwrap_or(TypeCode::Text);
    if types.all(|t| t == first) {
        first
    } else {
        TypeCode::Text
    }
}
