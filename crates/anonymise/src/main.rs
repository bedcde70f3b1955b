//! `confide-anonymise`, which `confide anonymise` is (docs/maintenance.md).
//!
//! Exit codes: 0 done, 1 failure or a log that is refused, 2 wrong arguments.
#![forbid(unsafe_code)]

use anonymise::call::{self, Call, Log, Outcome};
use anonymise::machine::{self, Given, Machine};
use anonymise::rules::Rules;
use anonymise::search::Search;
use anonymise::statements;
use anonymise::trace;
use clap::{Args, Parser, Subcommand};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use values::Env;

/// Calls of operators with other operands that take the same paths.
#[derive(Parser)]
#[command(name = "confide-anonymise", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Masks a log of calls. Where values may be seen only.
    Log(Masking),
    /// Runs the calls of a log, and prints what came of each; of what a debugger is attached to.
    Run {
        /// The log.
        log: PathBuf,
        /// So often.
        #[arg(long, default_value_t = 1)]
        times: u64,
    },
    /// Prints the calls of a log as statements, for a keeper on the machine of whoever looks.
    Statements {
        /// The log.
        log: PathBuf,
    },
    /// Runs calls from standard input (for this program itself).
    #[command(hide = true)]
    Machine {
        /// The session's settings.
        settings: String,
    },
}

#[derive(Args)]
struct Masking {
    /// The log of calls.
    log: PathBuf,
    /// The masking rules.
    #[arg(long, value_name = "FILE")]
    rules: PathBuf,
    /// The masked log, made; it must not exist.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// The solver.
    #[arg(long, value_name = "PROGRAM", default_value = "z3")]
    solver: String,
    /// Keeps neither processes nor paths from one call to the next, to compare with.
    #[arg(long, hide = true)]
    plain: bool,
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Log(masking) => mask(&masking),
        Command::Run { log, times } => run(&log, times),
        Command::Statements { log } => print_statements(&log),
        Command::Machine { settings } => machine::serve(&settings),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("confide-anonymise: {message}");
            ExitCode::FAILURE
        }
    }
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn mask(masking: &Masking) -> Result<(), String> {
    if !trace::instrumented() {
        return Err(
            "this build does not see the operators' paths; scripts/traced makes one that does"
                .into(),
        );
    }
    let named = |path: &Path, e: String| format!("{}: {e}", path.display());
    let log = Log::parse(&read(&masking.log)?).map_err(|e| named(&masking.log, e))?;
    let rules = Rules::parse(&read(&masking.rules)?).map_err(|e| named(&masking.rules, e))?;
    let mut search = Search::new(&log, &rules, &masking.solver, masking.plain)?;
    let (all, shown) = (log.calls.len(), std::io::stderr().is_terminal());
    let masked = search.log(&log, |done| {
        if shown {
            eprint!("\r{done} of {all} calls");
        }
    });
    if shown {
        eprintln!();
    }
    let masked = masked?;
    let file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&masking.out);
    let written = file.and_then(|mut file| write!(file, "{masked}"));
    written.map_err(|e| format!("{}: {e}", masking.out.display()))?;
    let counts = search.counts;
    println!(
        "calls {}\ncached {}\nproposals {}",
        counts.calls, counts.cached, counts.proposals
    );
    Ok(())
}

fn print_statements(log: &Path) -> Result<(), String> {
    let log = Log::parse(&read(log)?).map_err(|e| format!("{}: {e}", log.display()))?;
    print!("{}", statements::statements(&log));
    Ok(())
}

/// The value that a call gives, by the operator of this build and by the keeper's.
fn shown(call: &Call, env: &Env, properly: bool) -> String {
    let given = if properly {
        machine::properly(call, env)
    } else {
        machine::apply(call, env)
    };
    match given {
        Ok(Given::Value(value)) => call::text(&value),
        Ok(Given::Answer(answer)) => answer.into(),
        Err(error) if error.is_null() => "null".into(),
        Err(error) => format!("error {}", error.sqlstate_str()),
    }
}

/// Runs each call in the machine, and here for its result if the machine survives it. Run more
/// often than once, a call also tells by how much the machine has grown.
fn run(log: &Path, times: u64) -> Result<(), String> {
    let log = Log::parse(&read(log)?).map_err(|e| format!("{}: {e}", log.display()))?;
    let env = log.env()?;
    let mut machine = Machine::new(&log);
    for (number, call) in log.calls.iter().enumerate() {
        let ran = machine.run(call)?;
        let right = shown(call, &env, true);
        let given = match ran.outcome {
            Outcome::Panic | Outcome::Endless | Outcome::Died => ran.outcome.to_string(),
            _ => shown(call, &env, false),
        };
        let same = if given == right { "" } else { "\tdiffers" };
        println!(
            "{}\t{:?}\t{given}{same}{}",
            number + 1,
            call.op,
            grown(&mut machine, call, times)?
        );
    }
    Ok(())
}

/// By how many kilobytes the machine has grown for each further run of a call, if it has.
fn grown(machine: &mut Machine, call: &Call, times: u64) -> Result<String, String> {
    let before = machine.resident();
    for _ in 1..times {
        machine.run(call)?;
    }
    let pages = machine.resident().saturating_sub(before);
    let each = pages * 4 / times.max(1);
    Ok(if each > 0 {
        format!("\tgrows by {each} kB")
    } else {
        String::new()
    })
}
