//! A keeper in a process of its own, from the binary beside this one, and a
//! backend with a client that speaks to it.

use channel::{Answer, BackendEnd};
use contract::codec::Part;
use contract::hello::Hello;
use contract::{Fid, Kind, Op, TypeCode, answer};
use envelope::handshake::Initiator;
use envelope::{Opener, Sealer, SecretKey};
use std::error::Error;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

pub type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A keeper's process.
pub struct Process {
    child: Child,
    dir: tempfile::TempDir,
    client: SecretKey,
}

/// The keeper's binary, of the same build as this one.
fn binary() -> Result<PathBuf> {
    let me = std::env::current_exe()?;
    let built = me.parent().and_then(Path::parent).ok_or("no directory")?;
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let mut build = Command::new(cargo);
    build.args([
        "build",
        "--quiet",
        "-p",
        "keeper",
        "--bin",
        "confide-keeper",
    ]);
    if !cfg!(debug_assertions) {
        build.arg("--release");
    }
    build.stdout(Stdio::null()).status()?;
    let path = built.join("confide-keeper");
    match path.exists() {
        true => Ok(path),
        false => Err(format!("{} is missing: build it first", path.display()).into()),
    }
}

impl Process {
    pub fn start() -> Result<Process> {
        let dir = tempfile::tempdir()?;
        let client = SecretKey::generate()?;
        std::fs::write(
            dir.path().join("clients"),
            format!("{} bench\n", client.public()?),
        )?;
        let mut command = Command::new(binary()?);
        for (setting, file) in [
            ("SOCKET", "socket"),
            ("KEY_FILE", "key"),
            ("ROOT_KEY_FILE", "root"),
            ("CLIENTS_FILE", "clients"),
        ] {
            command.env(format!("CONFIDE_KEEPER_{setting}"), dir.path().join(file));
        }
        let mut child = command
            .env("CONFIDE_KEEPER_USERS", "")
            .env("CONFIDE_KEEPER_LOG", "error")
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        let out = child.stdout.take().ok_or("no output")?;
        BufReader::new(out).read_line(&mut line)?;
        match line.contains("ready") {
            true => Ok(Process { child, dir, client }),
            false => Err("the keeper did not start".into()),
        }
    }

    /// Processor time so far, in seconds.
    pub fn processor_seconds(&self) -> Result<f64> {
        let text = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let fields = text.rsplit(')').next().ok_or("stat")?;
        let ticks: Vec<f64> = fields
            .split_ascii_whitespace()
            .skip(11)
            .take(2)
            .filter_map(|f| f.parse().ok())
            .collect();
        Ok(ticks.iter().sum::<f64>() / 100.0)
    }

    pub fn connect(&self) -> Result<Backend> {
        let hello = Hello {
            version: contract::VERSION,
            pid: std::process::id(),
            database: 1,
            session: 0,
            pass: [0; 16],
            role: 0,
        };
        let path = self.dir.path().join("socket");
        let mut end = BackendEnd::connect(&path, hello, Duration::from_secs(5))?;
        let (mut initiator, first) = Initiator::new(&self.client)?;
        let second = answer_of(end.call(Kind::Handshake, &[&step(1), &first])?)?;
        initiator.receive(&second)?;
        let (third, keys) = initiator.finish()?;
        answer_of(end.call(Kind::Handshake, &[&step(3), &third])?)?;
        let (sealer, opener) = keys.into_client()?;
        Ok(Backend {
            arena: end.welcome().arena,
            end,
            sealer,
            opener,
            next: 0,
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn step(step: u64) -> [u8; 8] {
    step.to_le_bytes()
}

fn answer_of(answer: Answer) -> Result<Vec<u8>> {
    match answer {
        Answer::Ok(body) => Ok(body),
        Answer::Err { message, .. } => Err(message.into()),
    }
}

/// A backend with a client.
pub struct Backend {
    pub end: BackendEnd,
    pub sealer: Sealer,
    pub opener: Opener,
    pub arena: u32,
    pub next: u64,
}

impl Backend {
    pub fn call(&mut self, kind: Kind, body: &[u8]) -> Result<Vec<u8>> {
        answer_of(self.end.call(kind, &[body])?)
    }

    /// As `call`, into a buffer that is used again, as the real backend has one.
    pub fn call_into(&mut self, kind: Kind, body: &[u8], answer: &mut Vec<u8>) -> Result<()> {
        match self.end.call_into(kind, &[body], answer)? {
            None => Ok(()),
            Some(other) => answer_of(other).map(drop),
        }
    }

    pub fn slots(&mut self, count: u64) -> Fid {
        self.next += count;
        Fid::new(self.arena, self.next - count)
    }

    pub fn release(&mut self) -> Result<()> {
        let body = [u64::from(self.arena), self.next]
            .map(u64::to_le_bytes)
            .concat();
        self.end.send(Kind::Release, &[&body])?;
        Ok(())
    }

    /// A column with these values, given in binary.
    pub fn column(
        &mut self,
        relation: u32,
        t: TypeCode,
        typmod: i32,
        values: &[values::Value],
    ) -> Result<Vec<Fid>> {
        let mut open = [1, relation, 1].map(u32::to_le_bytes).concat();
        open.extend_from_slice(&typmod.to_le_bytes());
        open.extend_from_slice(&[t as u8, 0, 0, 0, 0, 0, 0, 0]);
        let opened = self.call(Kind::PartitionOpen, &open)?;
        let partition = u32::from_le_bytes(*opened.first_chunk().ok_or("no partition")?);
        let mut promote = (values.len() as u64).to_le_bytes().to_vec();
        for value in values {
            let fid = self.slots(1);
            let mut put = fid.0.to_le_bytes().to_vec();
            put.extend_from_slice(&(-1i32).to_le_bytes());
            put.extend_from_slice(&[t as u8, 0, 0, 0]);
            put.extend_from_slice(&values::encode_binary(value));
            self.end.send(Kind::PutPlain, &[&put])?;
            promote.extend_from_slice(&fid.0.to_le_bytes());
            promote.extend_from_slice(&u64::from(partition).to_le_bytes());
        }
        let answer = self.call(Kind::Promote, &promote)?;
        self.release()?;
        let answer = answer::Promote::decode(&answer).map_err(|_| "no promotion")?;
        Ok(answer.fids.iter().collect())
    }
}

/// Number of a signature.
pub fn number(op: Op, t: TypeCode, ret: Option<TypeCode>) -> Result<u32> {
    let signature = catalog::Signature {
        op,
        args: vec![t, t],
        ret,
    };
    let number = catalog::signatures().number(&signature);
    Ok(u32::from(number.ok_or("no such signature")?))
}

/// Body of `Declassify`.
pub fn declassify(program: u32, rows: usize, columns: &[&[Fid]]) -> Vec<u8> {
    let mut body = [program, 0, rows as u32, columns.len() as u32]
        .map(u32::to_le_bytes)
        .concat();
    for column in columns {
        body.extend(column.iter().take(rows).flat_map(|fid| fid.0.to_le_bytes()));
    }
    body
}

/// Body of `Eval`; the destination is at bytes 8..16.
pub fn eval(program: u32, to: Fid, rows: usize, columns: &[&[Fid]]) -> Vec<u8> {
    let tail = declassify(program, rows, columns);
    let (head, rest) = tail.split_at(8);
    [head, &to.0.to_le_bytes(), rest].concat()
}
