//! Takes in a recording, then serves backends from it.

use crate::answer::Refused;
use crate::facts::Facts;
use crate::here::Here;
use crate::program::Signatures;
use crate::session::{Channel, World};
use crate::stored::Stored;
use channel::{KeeperEnd, Listener};
use contract::codec::Part;
use contract::hello::{Hello, Status, Welcome};
use contract::{Kind, VERSION, body};
use recording::{Chunk, Event, Outcome, Recorded};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What has been asked and answered.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Messages that were answered.
    pub answered: u64,
    /// Messages that were refused.
    pub refused: u64,
}

/// How long answers of a kind took.
#[derive(Clone, Copy, Default)]
struct Took {
    count: u64,
    micros: u64,
}

impl Took {
    /// How long one took in the mean, so many times.
    fn mean(self, factor: f64) -> Duration {
        if self.count == 0 || factor.is_nan() || factor <= 0.0 {
            return Duration::ZERO;
        }
        let micros = self.micros as f64 / self.count as f64 * factor;
        Duration::from_micros(micros as u64)
    }
}

struct State {
    world: World,
    /// What leaders have announced.
    passes: HashMap<u64, [u8; 16]>,
    next_arena: u32,
    next_session: u64,
    counts: Counts,
}

impl State {
    /// Channels may join a session, or may not any more.
    fn joins(&mut self, session: u64, kind: Kind, message: &[u8]) {
        if kind == Kind::Announce
            && let Ok(pass) = body::Announce::decode(message)
        {
            let pass = u128::from(pass.high) << 64 | u128::from(pass.low);
            self.passes.insert(session, pass.to_le_bytes());
        }
        if kind == Kind::Withdraw {
            self.passes.remove(&session);
        }
    }
}

/// A replayer.
pub struct Replayer {
    state: Mutex<State>,
    took: HashMap<u16, Took>,
    /// How much of the recorded delays is reproduced: 0 none, 1 all.
    delay: f64,
    /// Whether what is refused is told on standard error.
    tells: bool,
}

impl Replayer {
    /// With what a recording says.
    ///
    /// If there is an LSN up to which the clone has recovered, identifiers name what they did there.
    #[must_use]
    pub fn new(recorded: &Recorded, clone: Option<u64>, delay: f64, tells: bool) -> Replayer {
        let mut world = World {
            facts: Facts::default(),
            sessions: HashMap::new(),
            signatures: Signatures::default(),
        };
        let took = take_in(&mut world, &recorded.chunks, clone);
        // Their identifiers mean nothing to sessions of a clone.
        world.sessions.clear();
        Replayer {
            state: Mutex::new(State {
                world,
                passes: HashMap::new(),
                next_arena: contract::fid::ARENA_BASE,
                next_session: 1,
                counts: Counts::default(),
            }),
            took,
            delay,
            tells,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What has been asked and answered since the start.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.lock().counts
    }

    /// Serves until the listener is closed; backends of these users only.
    pub fn serve(self: &Arc<Replayer>, listener: &Listener, users: &[u32]) {
        while let Ok(mut pending) = listener.accept() {
            let replayer = Arc::clone(self);
            let users = users.to_vec();
            std::thread::spawn(move || {
                let greeted = pending.hello(Duration::from_secs(5));
                let Ok((hello, peer)) = greeted else {
                    return;
                };
                match replayer.welcome(&hello, users.contains(&peer.uid)) {
                    Ok(welcome) => {
                        if let Ok(end) = pending.accept(welcome, None) {
                            replayer.converse(end, welcome.session);
                        }
                    }
                    Err(status) => {
                        let _ = pending.refuse(status);
                    }
                }
            });
        }
    }

    fn welcome(&self, hello: &Hello, known: bool) -> Result<Welcome, Status> {
        if !known {
            return Err(Status::WrongUser);
        }
        if hello.version != VERSION {
            return Err(Status::WrongVersion);
        }
        let mut guard = self.lock();
        let state = &mut *guard;
        let session = match hello.session {
            0 => {
                state.next_session += 1;
                state.next_session
            }
            joined if state.passes.get(&joined) == Some(&hello.pass) => joined,
            _ => return Err(Status::NoSuchSession),
        };
        let arena = state.next_arena;
        // There are half a million of them: who needs more starts the replayer anew.
        state.next_arena = arena + 2;
        if state.next_arena >= contract::fid::PARTITION_END {
            return Err(Status::TooManyChannels);
        }
        Ok(Welcome {
            version: VERSION,
            status: Status::Accepted,
            arena,
            session,
            range: 0,
            incarnation: 1,
        })
    }

    fn converse(&self, mut end: KeeperEnd, session: u64) {
        let mut buffer = Vec::new();
        let mut channel = Channel::default();
        while let Ok((header, message, _)) = end.request(&mut buffer) {
            let begun = Instant::now();
            let Some(kind) = Kind::from_u16(header.kind) else {
                return;
            };
            let answered = self.handle(&mut channel, session, kind, message);
            if !kind.is_answered() {
                continue;
            }
            self.wait(kind, begun);
            let sent = match answered {
                Ok(answer) => end.answer(header.sequence, &[&answer]),
                Err(Refused(what)) => end.error(header.sequence, &error(&what)),
            };
            if sent.is_err() {
                return;
            }
        }
    }

    fn handle(
        &self,
        channel: &mut Channel,
        session: u64,
        kind: Kind,
        message: &[u8],
    ) -> Result<Vec<u8>, Refused> {
        let mut guard = self.lock();
        let state = &mut *guard;
        state.joins(session, kind, message);
        let mut here = Here {
            world: &mut state.world,
            channel,
            session,
            learns: false,
        };
        if !kind.is_answered() {
            here.observe(kind, message, None);
            return Ok(Vec::new());
        }
        let answered = here.answer(kind, message);
        match &answered {
            Ok(answer) => {
                here.observe(kind, message, Some(answer));
                state.counts.answered += 1;
            }
            Err(Refused(what)) => {
                state.counts.refused += 1;
                if self.tells {
                    eprintln!("confide-replayer: refused {kind:?}: {what}");
                }
            }
        }
        answered
    }

    /// Takes as long as the keeper took for a message of this kind, in the mean.
    fn wait(&self, kind: Kind, begun: Instant) {
        let took = self.took.get(&(kind as u16)).copied().unwrap_or_default();
        let until = took.mean(self.delay);
        if let Some(rest) = until.checked_sub(begun.elapsed()) {
            std::thread::sleep(rest);
        }
    }
}

fn error(what: &str) -> body::Error<'_> {
    body::Error {
        sqlstate: *b"55000",
        t: None,
        code: 0,
        message: "confide: the recording does not say that",
        detail: what,
        hint: "A replayer answers what was recorded, and what follows from it.",
    }
}

/// Takes in messages in the order in which they were handled. Of a session of which messages are
/// missing nothing is taken in: what its temporary values were made of is not known for sure.
/// Without what was freed nothing is: it is not known which values permanent ones are.
fn take_in(world: &mut World, chunks: &[Chunk], clone: Option<u64>) -> HashMap<u16, Took> {
    let mut all: Vec<(&Chunk, Event<'_>)> = Vec::new();
    let gaps: HashSet<u64> = chunks
        .iter()
        .filter_map(|chunk| (chunk.lost > 0).then_some(chunk.session))
        .collect();
    let all_freed = !gaps.contains(&0);
    let known = |chunk: &&Chunk| all_freed && !gaps.contains(&chunk.session);
    for chunk in chunks.iter().filter(known) {
        let events = chunk.events().unwrap_or_default();
        all.extend(events.into_iter().map(|event| (chunk, event)));
    }
    // By when they ended: whoever read what another one stored was answered later. Those of one
    // channel stay in their order.
    all.sort_by_key(|(_, event)| event.at.saturating_add(event.took.into()));
    let mut then = Stored::default();
    let mut channels: HashMap<u32, Channel> = HashMap::new();
    let mut took: HashMap<u16, Took> = HashMap::new();
    for (chunk, event) in all {
        if event.kind == recording::FREED && chunk.session == 0 {
            if let Some((position, fids)) = event.body.split_first_chunk() {
                world.facts.stored.free(fids);
                let position = u64::from_le_bytes(*position);
                if clone.is_none_or(|clone| position <= clone) {
                    then.free(fids);
                }
            }
            continue;
        }
        let Some(kind) = Kind::from_u16(event.kind) else {
            continue;
        };
        let answered = match event.outcome {
            Outcome::OneWay => None,
            Outcome::Answer(answer) => Some(answer),
            Outcome::Error(_) => continue,
        };
        let mut here = Here {
            world,
            channel: channels.entry(chunk.channel).or_default(),
            session: chunk.session,
            learns: true,
        };
        here.observe(kind, event.body, answered);
        let known = took.entry(event.kind).or_default();
        known.count += 1;
        known.micros += u64::from(event.took);
    }
    world.facts.stored.go_back(then);
    world.facts.position = clone;
    took
}

#[cfg(test)]
mod tests {
    use super::*;
    use contract::{Fid, TypeCode};

    #[test]
    fn delays() {
        let took = Took {
            count: 4,
            micros: 1000,
        };
        assert_eq!(took.mean(0.0), Duration::ZERO);
        assert_eq!(took.mean(1.0), Duration::from_micros(250));
        assert_eq!(took.mean(2.0), Duration::from_micros(500));
        assert_eq!(took.mean(f64::NAN), Duration::ZERO);
        assert_eq!(Took::default().mean(1.0), Duration::ZERO);
    }

    /// What was made of a value in a slot is not taken for what was made of the one before it,
    /// whose message is missing. With the bug answers are given that nobody recorded.
    #[test]
    fn gaps() {
        let first = Fid(u64::from(contract::fid::ARENA_BASE) << 44);
        let mut message = Vec::new();
        body::PutPlain {
            fid: first,
            typmod: -1,
            t: TypeCode::Int4,
            value: &[7, 0, 0, 0],
        }
        .put(&mut message);
        let mut events = Vec::new();
        Event {
            at: 1,
            took: 1,
            kind: Kind::PutPlain as u16,
            body: &message,
            outcome: Outcome::OneWay,
        }
        .put(&mut events);
        for (lost, known) in [(0, 1), (1, 0)] {
            let mut world = World {
                facts: Facts::default(),
                sessions: HashMap::new(),
                signatures: Signatures::default(),
            };
            let (session, channel, database) = (3, 1, 5);
            let events = events.clone();
            let chunk = Chunk {
                session,
                channel,
                database,
                lost,
                events,
            };
            take_in(&mut world, &[chunk], None);
            assert_eq!(world.facts.constants.len(), known, "{lost}");
        }
    }
}
