//! The solver: `z3` as a process that stays, SMT-LIB over its pipes.
//!
//! What it answers is a proposal; nobody relies on it (`search.rs`).
//!
//! Invariant: an answer that is not understood is an error, and no answer for what was asked next.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// How much it may think about one question, in units of its own, which no machine's speed changes.
const THINK_MAX: u32 = 4_000_000;

/// A running solver.
pub struct Solver {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// Questions that were asked.
    pub asked: u64,
}

fn failed(what: impl std::fmt::Display) -> String {
    format!("the solver: {what}")
}

impl Solver {
    /// Starts it.
    ///
    /// # Errors
    /// When there is no such program.
    pub fn start(program: &str) -> Result<Solver, String> {
        let mut child = Command::new(program)
            .args(["-in", "-smt2"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| format!("{program}: {e} (Debian's package z3 has it)"))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (Some(input), Some(output)) = (input, output) else {
            return Err(failed("it has no pipes"));
        };
        let mut solver = Solver {
            child,
            input,
            output: BufReader::new(output),
            asked: 0,
        };
        solver.tell("(set-option :print-success false)")?;
        solver.tell("(set-option :produce-unsat-cores true)")?;
        solver.tell(&format!("(set-option :rlimit {THINK_MAX})"))?;
        Ok(solver)
    }

    /// Tells it something that it does not answer.
    ///
    /// # Errors
    /// When it is gone.
    pub fn tell(&mut self, what: &str) -> Result<(), String> {
        writeln!(self.input, "{what}").map_err(failed)
    }

    fn line(&mut self) -> Result<String, String> {
        self.input.flush().map_err(failed)?;
        let mut line = String::new();
        match self.output.read_line(&mut line).map_err(failed)? {
            0 => Err(failed("it has gone")),
            _ => Ok(line.trim().into()),
        }
    }

    /// An answer in parentheses, which may have several lines.
    fn whole(&mut self) -> Result<String, String> {
        let mut text = String::new();
        loop {
            text += &self.line()?;
            text.push(' ');
            let open = text.matches('(').count();
            if open == text.matches(')').count() {
                return Ok(text);
            }
        }
    }

    /// Whether what it was told can be, with these names assumed; `None`: it did not find out.
    ///
    /// # Errors
    /// When it does not understand what it was told.
    pub fn check(&mut self, assumed: &[String]) -> Result<Option<bool>, String> {
        self.asked += 1;
        match assumed {
            [] => self.tell("(check-sat)")?,
            names => self.tell(&format!("(check-sat-assuming ({}))", names.join(" ")))?,
        }
        match self.line()?.as_str() {
            "sat" => Ok(Some(true)),
            "unsat" => Ok(Some(false)),
            "unknown" => Ok(None),
            // What it says may quote what it was told.
            _ => Err(failed("it did not understand")),
        }
    }

    /// Which of the names that were assumed cannot be together, after [`Solver::check`] said no.
    ///
    /// # Errors
    /// When it is gone.
    pub fn core(&mut self) -> Result<Vec<String>, String> {
        self.tell("(get-unsat-core)")?;
        let text = self.whole()?.replace(['(', ')'], " ");
        Ok(text.split_whitespace().map(String::from).collect())
    }

    /// The numbers of these names, after [`Solver::check`] said yes.
    ///
    /// # Errors
    /// When they are no whole numbers.
    pub fn numbers(&mut self, names: &[String]) -> Result<Vec<i128>, String> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        self.tell(&format!("(get-value ({}))", names.join(" ")))?;
        let numbers = parse_numbers(&self.whole()?).filter(|numbers| numbers.len() == names.len());
        numbers.ok_or_else(|| failed("it gave no numbers"))
    }
}

impl Drop for Solver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The numbers of `((name 5) (name (- 3)))`.
fn parse_numbers(text: &str) -> Option<Vec<i128>> {
    let text = text.replace(['(', ')'], " ");
    let mut words = text.split_whitespace();
    let mut found = Vec::new();
    while let Some(_name) = words.next() {
        let number: i128 = match words.next()? {
            "-" => -words.next()?.parse::<i128>().ok()?,
            word => word.parse().ok()?,
        };
        found.push(number);
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers() {
        let text = "((a 5) (b (- 3))\n (c 170141183460469231731687303715884105727))";
        assert_eq!(super::parse_numbers(text), Some(vec![5, -3, i128::MAX]));
        assert_eq!(super::parse_numbers("((a true))"), None);
    }
}
