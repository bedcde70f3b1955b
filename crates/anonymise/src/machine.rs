//! Runs calls by the operators themselves, in a process of its own, which a bad operator may take
//! down: a line in, a line out with what came of it and the path that it took.
//!
//! Invariant: a call whose process died, or that did not end, has an outcome that says so, and the
//! next one has a new process.

use crate::call::{Call, Log, Outcome};
use crate::trace::{self, Path};
use contract::{Op, OpResult};
use std::cmp::Ordering;
use std::io::{BufRead, BufReader, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio, exit};
use values::{Env, Error, Value};

/// What a call gave: a value, which stays here, or what is declassified of it.
pub enum Given {
    /// A value.
    Value(Value),
    /// Something that the database is told.
    Answer(&'static str),
}

/// The operator that a call names.
///
/// # Errors
/// As the operator.
pub fn apply(call: &Call, env: &Env) -> Result<Given, Error> {
    #[cfg(feature = "seeded")]
    {
        let values: Vec<&Value> = call.operands.iter().map(|o| &o.value).collect();
        match seeded::apply(call.op, &values) {
            Some(seeded::Given::Value(value)) => return Ok(Given::Value(value)),
            Some(seeded::Given::Truth(b)) => {
                return Ok(Given::Answer(if b { "true" } else { "false" }));
            }
            None => {}
        }
    }
    properly(call, env)
}

/// As [`apply`], by the operator of the keeper, where a test build has another one.
///
/// # Errors
/// As the operator.
pub fn properly(call: &Call, env: &Env) -> Result<Given, Error> {
    let values: Vec<&Value> = call.operands.iter().map(|o| &o.value).collect();
    let truth = |b: bool| Given::Answer(if b { "true" } else { "false" });
    match (call.op.result(), values.as_slice(), call.ret) {
        (OpResult::Fid, args, Some(ret)) => {
            values::apply(call.op, ret, call.immediate, args, env).map(Given::Value)
        }
        (OpResult::Order, [a, b], None) => {
            let order = values::compare(a, b, env)?;
            Ok(Given::Answer(match order {
                Ordering::Less => "<",
                Ordering::Equal => "=",
                Ordering::Greater => ">",
            }))
        }
        (OpResult::Bool, [Value::Bool(b)], None) if call.op == Op::IsTrue => Ok(truth(*b)),
        (OpResult::Bool, [v, base, offset], None) if call.op == Op::InRange => {
            values::in_range(call.immediate, v, base, offset, env).map(truth)
        }
        (OpResult::Bool, [a, b], None) => values::test(call.op, a, b, env).map(truth),
        _ => Err(Error::new(b"42883", "operator does not exist")),
    }
}

fn outcome(given: &Result<Given, Error>) -> Outcome {
    match given {
        Ok(Given::Value(_)) => Outcome::Value,
        Ok(Given::Answer(answer)) => Outcome::Answer(answer),
        Err(error) if error.is_null() => Outcome::Null,
        Err(error) => Outcome::Error(error.sqlstate_str().into()),
    }
}

/// The process's side: answers calls until there are no more.
///
/// # Errors
/// When a pipe breaks.
pub fn serve(settings: &str) -> Result<(), String> {
    std::panic::set_hook(Box::new(|_| {})); // it would quote what an operator quotes
    let env = Log::parse(settings)?.env()?;
    for line in std::io::stdin().lines() {
        let line = line.map_err(|e| e.to_string())?;
        let Some(call) = Call::parse(&line) else {
            return Err("it is no call".into());
        };
        // A thread of its own: what operators keep for the next call is a thread's.
        std::thread::scope(|scope| {
            let ran = scope.spawn(|| traced(&call, &env)).join();
            let (outcome, path) = ran.unwrap_or((Outcome::Died, Path::default()));
            say(&outcome, path);
        });
    }
    Ok(())
}

fn traced(call: &Call, env: &Env) -> (Outcome, Path) {
    trace::begin(endless);
    let given = catch_unwind(AssertUnwindSafe(|| apply(call, env)));
    let path = trace::end();
    (given.as_ref().map_or(Outcome::Panic, outcome), path)
}

fn say(outcome: &Outcome, path: Path) {
    println!("{outcome}\t{}\t{}", path.hash, path.edges);
    let _ = std::io::stdout().flush();
}

fn endless(path: Path) -> ! {
    say(&Outcome::Endless, path);
    exit(0)
}

/// What came of a call, and its path.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Ran {
    /// What came of it.
    pub outcome: Outcome,
    /// Its path.
    pub path: Path,
}

struct Process {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The process, from outside.
pub struct Machine {
    settings: String,
    process: Option<Process>,
    /// Calls that were run.
    pub runs: u64,
}

impl Machine {
    /// One for calls under a log's settings.
    #[must_use]
    pub fn new(log: &Log) -> Machine {
        let settings = Log {
            settings: log.settings.clone(),
            calls: Vec::new(),
        };
        Machine {
            settings: settings.to_string(),
            process: None,
            runs: 0,
        }
    }

    fn process(&mut self) -> Result<&mut Process, String> {
        if self.process.is_none() {
            let program = std::env::current_exe().map_err(|e| e.to_string())?;
            let mut child = Command::new(program)
                .args(["machine", &self.settings])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .map_err(|e| e.to_string())?;
            let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
                return Err("the machine has no pipes".into());
            };
            self.process = Some(Process {
                child,
                input,
                output: BufReader::new(output),
            });
        }
        self.process
            .as_mut()
            .ok_or_else(|| "there is no machine".into())
    }

    /// Pages that its process has in memory; 0: it has gone.
    #[must_use]
    pub fn resident(&self) -> u64 {
        let Some(process) = &self.process else {
            return 0;
        };
        let file = format!("/proc/{}/statm", process.child.id());
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let pages = text.split(' ').nth(1);
        pages.and_then(|n| n.parse().ok()).unwrap_or(0)
    }

    /// Runs a call.
    ///
    /// # Errors
    /// When there can be no process.
    pub fn run(&mut self, call: &Call) -> Result<Ran, String> {
        self.runs += 1;
        let process = self.process()?;
        let mut line = String::new();
        let said = writeln!(process.input, "{call}")
            .and_then(|()| process.input.flush())
            .and_then(|()| process.output.read_line(&mut line));
        let ran = said.ok().and_then(|_| parse(line.trim_end()));
        let ran = ran.unwrap_or(Ran {
            outcome: Outcome::Died,
            path: Path::default(),
        });
        if matches!(ran.outcome, Outcome::Died | Outcome::Endless) {
            self.process = None;
        }
        Ok(ran)
    }
}

fn parse(line: &str) -> Option<Ran> {
    let mut fields = line.split('\t');
    let outcome = Outcome::parse(fields.next()?)?;
    let hash = fields.next()?.parse().ok()?;
    let edges = fields.next()?.parse().ok()?;
    Some(Ran {
        outcome,
        path: Path { hash, edges },
    })
}
