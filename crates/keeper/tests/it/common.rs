//! A keeper in this process on a socket of its own, and a backend with a client
//! behind it that talk to it as the real ones do.

use catalog::{Signature, Signatures};
use channel::{Answer, BackendEnd};
use contract::codec::Part;
use contract::envelope::FLAG_TEXT;
use contract::hello::Hello;
use contract::{Aggregate, Fid, Kind, Op, TypeCode, answer};
use envelope::handshake::Initiator;
use envelope::{Opener, Sealer, SecretKey};
use keeper::{Bytes, Clients, Config, Connection, Keeper, Keys, Server};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use values::Value;

pub const TIMEOUT: Duration = Duration::from_secs(600);

/// Looks again and again whether something has happened; false if it never does.
pub fn happens(mut look: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + TIMEOUT;
    loop {
        if look() {
            return true;
        }
        if Instant::now() > until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
pub const DATABASE: u32 = 5;

/// A keeper that serves.
pub struct Running {
    _dir: TempDir,
    pub server: Arc<Server>,
    thread: Option<JoinHandle<()>>,
    pub client: SecretKey,
}

impl Running {
    /// A backend's connection without a channel, whose requests this process hands to the keeper.
    pub fn direct(&self) -> Connection {
        Connection::open(self.server.keeper(), &hello(0, [0; 16])).unwrap()
    }

    /// As [`Running::direct`], with a client behind it and the client's keys.
    pub fn direct_client(&self) -> (Connection, Sealer, Opener) {
        let mut connection = self.direct();
        let (mut initiator, first) = Initiator::new(&self.client).unwrap();
        let done = connection.handle(Kind::Handshake, &step(1, &first));
        assert!(matches!(done, Some(Ok(()))));
        initiator.receive(connection.reply()).unwrap();
        let (third, keys) = initiator.finish().unwrap();
        let done = connection.handle(Kind::Handshake, &step(3, &third));
        assert!(matches!(done, Some(Ok(()))));
        let (sealer, opener) = keys.into_client().unwrap();
        (connection, sealer, opener)
    }

    pub fn start() -> Running {
        Running::with(|_| {})
    }

    pub fn with(change: impl FnOnce(&mut Config)) -> Running {
        let dir = tempfile::tempdir().unwrap();
        let client = SecretKey::generate().unwrap();
        let mut config = Config {
            socket: dir.path().join("s"),
            users: Vec::new(),
            key_file: dir.path().join("key"),
            root_key_file: dir.path().join("root"),
            clients_file: dir.path().join("clients"),
            memory_limit: Bytes(256 << 20),
            session_memory_limit: Bytes(64 << 20),
            // Grants have tests of their own.
            require_grants: false,
            ..Config::default()
        };
        change(&mut config);
        let line = format!("{} test\n", client.public().unwrap());
        std::fs::write(&config.clients_file, line).unwrap();
        let keys = Keys::load(&config.key_file, &config.root_key_file).unwrap();
        let clients = Clients::new(&config.clients_file);
        let users = keeper::user_ids(&config).unwrap();
        let device = keeper::device(&config).unwrap();
        let keeper = Keeper::new(config, keys, clients).unwrap();
        let server = Server::bind(keeper, users, device).unwrap();
        let running = Arc::clone(&server);
        let thread = std::thread::spawn(move || running.run().unwrap());
        Running {
            _dir: dir,
            server,
            thread: Some(thread),
            client,
        }
    }

    pub fn socket(&self) -> PathBuf {
        self.server.keeper().config.socket.clone()
    }

    /// A backend without a client.
    pub fn backend(&self) -> Backend {
        self.join(0, [0; 16])
    }

    pub fn join(&self, session: u64, pass: [u8; 16]) -> Backend {
        self.connect(hello(session, pass))
    }

    /// A backend of another database.
    pub fn backend_of(&self, database: u32) -> Backend {
        let hello = Hello {
            database,
            ..hello(0, [0; 16])
        };
        self.connect(hello)
    }

    fn connect(&self, hello: Hello) -> Backend {
        Backend::at(&self.socket(), hello)
    }

    /// A backend with a client.
    pub fn session(&self) -> Backend {
        let mut backend = self.backend();
        backend.handshake(&self.client).unwrap();
        backend
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.server.shut_down();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            if !std::thread::panicking() {
                ended.unwrap();
            }
        }
    }
}

pub fn hello(session: u64, pass: [u8; 16]) -> Hello {
    Hello {
        version: contract::VERSION,
        pid: std::process::id(),
        database: DATABASE,
        session,
        pass,
        role: 10,
    }
}

/// SQLSTATE and message of an error.
pub type Refused = (String, String);

/// A backend, and the client behind it.
pub struct Backend {
    pub end: BackendEnd,
    next: u64,
    next_plan: u64,
    pub sealer: Option<Sealer>,
    pub opener: Option<Opener>,
    /// Seals values that fit a column.
    pub storing: Option<Sealer>,
    pub signatures: Signatures,
}

impl Backend {
    /// A backend of a keeper at a socket.
    pub fn at(socket: &Path, hello: Hello) -> Backend {
        Backend {
            end: BackendEnd::connect(socket, hello, TIMEOUT).unwrap(),
            next: 0,
            next_plan: 0,
            sealer: None,
            opener: None,
            storing: None,
            signatures: catalog::signatures(),
        }
    }

    pub fn call(&mut self, kind: Kind, body: &[u8]) -> Result<Vec<u8>, Refused> {
        match self.end.call(kind, &[body]).unwrap() {
            Answer::Ok(body) => Ok(body),
            Answer::Err {
                sqlstate, message, ..
            } => Err((String::from_utf8(sqlstate.to_vec()).unwrap(), message)),
        }
    }

    pub fn send(&mut self, kind: Kind, body: &[u8]) {
        self.end.send(kind, &[body]).unwrap();
    }

    /// Lets others join its session; the pass.
    pub fn announce(&mut self) -> [u8; 16] {
        let pass = [7; 16];
        self.call(Kind::Announce, &pass).unwrap();
        pass
    }

    /// A worker's channel in this one's session.
    pub fn worker(&mut self, running: &Running) -> Backend {
        let pass = self.announce();
        running.join(self.end.welcome().session, pass)
    }

    pub fn fence(&mut self) -> Result<(), Refused> {
        self.call(Kind::Fence, &[]).map(drop)
    }

    pub fn handshake(&mut self, client: &SecretKey) -> Result<(), Refused> {
        let (mut initiator, first) = Initiator::new(client).unwrap();
        let second = self.call(Kind::Handshake, &step(1, &first))?;
        let keeper = initiator.receive(&second).unwrap();
        assert_eq!(keeper.evidence.session, self.end.welcome().session);
        let (third, keys) = initiator.finish().unwrap();
        self.call(Kind::Handshake, &step(3, &third))?;
        self.storing = Some(Sealer::storing(&keys.storing().unwrap()).unwrap());
        let (sealer, opener) = keys.into_client().unwrap();
        self.sealer = Some(sealer);
        self.opener = Some(opener);
        Ok(())
    }

    /// A slot of the statement arena that was not used yet.
    pub fn slot(&mut self) -> Fid {
        self.slots(1)
    }

    pub fn slots(&mut self, count: u64) -> Fid {
        let fid = Fid::new(self.end.welcome().arena, self.next);
        self.next += count;
        fid
    }

    pub fn plan_slot(&mut self) -> Fid {
        let fid = Fid::new(self.end.welcome().arena + 1, self.next_plan);
        self.next_plan += 1;
        fid
    }

    pub fn seal(&self, t: Option<TypeCode>, flags: u8, plain: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let sealer = self.sealer.as_ref().unwrap();
        let t = t.map_or(0, |t| t as u8);
        sealer.seal(t, flags, plain, &mut out).unwrap();
        out
    }

    pub fn put_bytes(&mut self, fid: Fid, t: TypeCode, typmod: i32, envelope: &[u8]) {
        let body = [&target(fid, t, typmod)[..], envelope].concat();
        self.send(Kind::PutEnvelope, &body);
    }

    /// A value from the client.
    pub fn put(&mut self, value: &Value) -> Fid {
        let t = value.type_code();
        let envelope = self.seal(Some(t), 0, &values::encode_binary(value));
        let fid = self.slot();
        self.put_bytes(fid, t, -1, &envelope);
        fid
    }

    /// A literal from the client.
    pub fn put_text(&mut self, t: TypeCode, typmod: i32, text: &str) -> Fid {
        let envelope = self.seal(None, FLAG_TEXT, text.as_bytes());
        let fid = self.slot();
        self.put_bytes(fid, t, typmod, &envelope);
        fid
    }

    pub fn get_envelope(&mut self, fid: Fid, t: TypeCode) -> Result<Vec<u8>, Refused> {
        let mut body = fid.0.to_le_bytes().to_vec();
        body.extend_from_slice(&[t as u8, 0, 0, 0, 0, 0, 0, 0]);
        self.call(Kind::GetEnvelope, &body)
    }

    /// The text of a value, as the client sees it; none for NULL.
    pub fn get(&mut self, fid: Fid, t: TypeCode) -> Result<Option<String>, Refused> {
        let envelope = self.get_envelope(fid, t)?;
        if envelope.is_empty() {
            return Ok(None);
        }
        let mut plain = Vec::new();
        let opener = self.opener.as_ref().unwrap();
        let parsed = opener.open(&envelope, &mut plain).unwrap();
        assert_eq!(parsed.type_code, Some(t));
        let value = values::decode_binary(t, -1, &plain).unwrap();
        let text = values::format_text(&value, &values::Env::default());
        Ok(Some(String::from_utf8(text).unwrap()))
    }

    pub fn number(&self, op: Op, args: &[TypeCode], ret: Option<TypeCode>) -> u32 {
        let signature = Signature {
            op,
            args: args.to_vec(),
            ret,
        };
        u32::from(self.signatures.number(&signature).unwrap())
    }

    pub fn eval_at(&mut self, program: u32, immediate: i32, to: Fid, rows: u32, columns: &[Fid]) {
        let count = (columns.len() as u32).checked_div(rows).unwrap_or(0);
        let mut body = Vec::new();
        body.extend_from_slice(&program.to_le_bytes());
        body.extend_from_slice(&immediate.to_le_bytes());
        body.extend_from_slice(&to.0.to_le_bytes());
        body.extend_from_slice(&rows.to_le_bytes());
        body.extend_from_slice(&count.to_le_bytes());
        body.extend(columns.iter().flat_map(|fid| fid.0.to_le_bytes()));
        self.send(Kind::Eval, &body);
    }

    pub fn eval(&mut self, program: u32, args: &[Fid]) -> Fid {
        let to = self.slot();
        self.eval_at(program, 0, to, 1, args);
        to
    }

    pub fn declassify(
        &mut self,
        program: u32,
        rows: u32,
        columns: &[Fid],
    ) -> Result<Vec<u8>, Refused> {
        let count = (columns.len() as u32).checked_div(rows).unwrap_or(0);
        let mut body = Vec::new();
        body.extend_from_slice(&program.to_le_bytes());
        body.extend_from_slice(&0i32.to_le_bytes());
        body.extend_from_slice(&rows.to_le_bytes());
        body.extend_from_slice(&count.to_le_bytes());
        body.extend(columns.iter().flat_map(|fid| fid.0.to_le_bytes()));
        self.call(Kind::Declassify, &body)
    }

    pub fn open(&mut self, relation: u32, t: TypeCode, typmod: i32) -> u32 {
        self.open_in(DATABASE, relation, t, typmod, "")
    }

    /// The partition of a column whose names end with a zero byte each.
    pub fn open_named(&mut self, relation: u32, t: TypeCode, names: &str) -> u32 {
        self.open_in(DATABASE, relation, t, -1, names)
    }

    pub fn open_in(
        &mut self,
        database: u32,
        relation: u32,
        t: TypeCode,
        typmod: i32,
        names: &str,
    ) -> u32 {
        let mut body = Vec::new();
        body.extend_from_slice(&database.to_le_bytes());
        body.extend_from_slice(&relation.to_le_bytes());
        body.extend_from_slice(&1i32.to_le_bytes());
        body.extend_from_slice(&typmod.to_le_bytes());
        body.extend_from_slice(&[t as u8, 0, 0, 0, 0, 0, 0, 0]);
        body.extend_from_slice(names.as_bytes());
        let answer = self.call(Kind::PartitionOpen, &body).unwrap();
        u32::from_le_bytes(answer[..4].try_into().unwrap())
    }

    pub fn promote(&mut self, items: &[(Fid, u32)]) -> Result<Vec<Fid>, Refused> {
        let mut body = (items.len() as u64).to_le_bytes().to_vec();
        for (fid, partition) in items {
            body.extend_from_slice(&fid.0.to_le_bytes());
            body.extend_from_slice(&u64::from(*partition).to_le_bytes());
        }
        let answer = self.call(Kind::Promote, &body)?;
        Ok(promoted(&answer).0)
    }

    /// Releases all of the statement arena.
    pub fn end_statement(&mut self) {
        let keep = Fid::new(self.end.welcome().arena, self.next);
        self.release(keep);
    }

    pub fn release(&mut self, keep: Fid) {
        let mut body = u64::from(keep.partition()).to_le_bytes().to_vec();
        body.extend_from_slice(&keep.slot().to_le_bytes());
        self.send(Kind::Release, &body);
    }

    pub fn aggregate_number(&self, aggregate: Aggregate, input: TypeCode) -> u16 {
        let all = catalog::aggregates();
        let found = all
            .iter()
            .find(|a| a.aggregate == aggregate && a.input == input);
        found.unwrap().number
    }

    pub fn step(&mut self, state: Fid, value: Fid, number: u16, new: bool) {
        let mut body = state.0.to_le_bytes().to_vec();
        body.extend_from_slice(&value.0.to_le_bytes());
        body.extend_from_slice(&number.to_le_bytes());
        body.extend_from_slice(&[u8::from(new), 0, 0, 0, 0, 0]);
        self.send(Kind::AggregateStep, &body);
    }

    pub fn two(&mut self, kind: Kind, a: Fid, b: Fid) {
        self.send(kind, &[a.0.to_le_bytes(), b.0.to_le_bytes()].concat());
    }

    pub fn stats(&mut self) -> std::collections::HashMap<String, u64> {
        let text = String::from_utf8(self.call(Kind::Stats, &[]).unwrap()).unwrap();
        text.lines()
            .map(|line| {
                let (name, value) = line.split_once(' ').unwrap();
                (name.to_string(), value.parse().unwrap())
            })
            .collect()
    }

    pub fn register(&mut self, program: &Builder) -> Result<u32, Refused> {
        let answer = self.call(Kind::ProgramRegister, &program.bytes())?;
        Ok(u32::from_le_bytes(answer.try_into().unwrap()))
    }
}

/// FIDs and redo record of a promotion.
pub fn promoted(answer: &[u8]) -> (Vec<Fid>, &[u8]) {
    let answer = answer::Promote::decode(answer).unwrap();
    (answer.fids.iter().collect(), answer.record)
}

/// Writes a program.
#[derive(Default)]
pub struct Builder {
    pub inputs: Vec<TypeCode>,
    pub constants: Vec<Fid>,
    pub code: Vec<(u8, u16, i32)>,
    /// Numbers of the inputs that are plain booleans.
    pub plain: Vec<usize>,
}

impl Builder {
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for n in [self.inputs.len(), self.constants.len(), self.code.len(), 0] {
            out.extend_from_slice(&(n as u16).to_le_bytes());
        }
        for (number, t) in self.inputs.iter().enumerate() {
            let plain = self.plain.contains(&number);
            out.push(if plain { 0 } else { *t as u8 });
        }
        out.extend(self.constants.iter().flat_map(|fid| fid.0.to_le_bytes()));
        for (code, operand, immediate) in &self.code {
            out.extend_from_slice(&[*code, 0]);
            out.extend_from_slice(&operand.to_le_bytes());
            out.extend_from_slice(&immediate.to_le_bytes());
        }
        out
    }
}

pub fn target(fid: Fid, t: TypeCode, typmod: i32) -> Vec<u8> {
    let mut body = fid.0.to_le_bytes().to_vec();
    body.extend_from_slice(&typmod.to_le_bytes());
    body.extend_from_slice(&[t as u8, 0, 0, 0]);
    body
}

pub fn step(step: u32, message: &[u8]) -> Vec<u8> {
    let mut body = u64::from(step).to_le_bytes().to_vec();
    body.extend_from_slice(message);
    body
}

/// The SQLSTATE of an error.
pub fn state<T: std::fmt::Debug>(result: Result<T, Refused>) -> String {
    result.unwrap_err().0
}
