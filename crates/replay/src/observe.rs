//! Takes in a request and its answer: what is now in the session, and what was learned by it.
//! A recording is taken in message by message, and so is what a replayer answers itself, from
//! which nothing new is learned.
//!
//! Messages that cannot be understood are left out: what they would have told stays unknown.

use crate::ask;
use crate::facts::{Fetched, row};
use crate::here::Here;
use crate::program::Program;
use crate::session::{Aggregation, row_of};
use crate::term::{Maker, Term};
use contract::codec::{Each, Fixed, List, Malformed, Part};
use contract::message::search::MOVED;
use contract::message::table::{Move, Place, Sealed};
use contract::message::{NOT_PROMOTED, column::Column};
use contract::{Fid, Kind, OpResult, answer, body};
use std::sync::Arc;

/// An answer's body; none if the kind is not answered.
type Answer<'a> = Option<&'a [u8]>;

fn read<'a, T: Part<'a>>(bytes: &'a [u8]) -> Option<T> {
    T::decode(bytes).map_err(|Malformed(_)| ()).ok()
}

impl Here<'_> {
    /// Takes in a message.
    pub fn observe(&mut self, kind: Kind, message: &[u8], answered: Answer<'_>) -> Option<()> {
        match kind {
            Kind::PutEnvelope | Kind::PutBatch | Kind::PutPlain => self.put(kind, message),
            Kind::Eval => self.eval(read(message)?),
            Kind::Declassify => self.declassify(read(message)?, answered?),
            Kind::ProgramRegister => self.register(read(message)?, answered?),
            Kind::EvalBatch => self.eval_batch(&read(message)?, answered?),
            Kind::DeclassifyBatch => self.declassify_batch(&read(message)?, answered?),
            Kind::DeclassifyGroups | Kind::Search => {
                let asked = ask::whole(self, kind, message)?;
                self.keep(asked, answered?);
                if kind == Kind::Search {
                    self.searched(message, answered?);
                } else {
                    self.grouped(&read(message)?, answered?);
                }
                Some(())
            }
            Kind::Descend => self.descended(message, answered?),
            Kind::SearchMany => self.searched_many(&read(message)?, answered?),
            Kind::RankAdd => self.rank_add(&read(message)?),
            Kind::Rank => self.rank(&read(message)?, answered?),
            Kind::RankForget => {
                let body: body::RankForget = read(message)?;
                self.channel.sets.remove(&body.set).map(|_| ())
            }
            Kind::Tokens => self.tokens(&read(message)?, answered?),
            Kind::GetEnvelope | Kind::GetEnvelopes => self.envelopes(kind, message, answered?),
            Kind::Snapshot => {
                let body: body::Snapshot<'_> = read(message)?;
                self.channel.position = body.position;
                Some(())
            }
            Kind::Promote => self.promote(&read(message)?, answered?),
            Kind::PromoteSearch => self.promote_search(&read(message)?, answered?),
            Kind::PromoteRuns => self.promote_runs(&read(message)?, answered?),
            Kind::PartitionOpen => self.partition(&read(message)?, answered?),
            _ => self.observe_aggregates(kind, message, answered),
        }
    }

    fn observe_aggregates(
        &mut self,
        kind: Kind,
        message: &[u8],
        answered: Answer<'_>,
    ) -> Option<()> {
        match kind {
            Kind::AggregateRegister => self.aggregate_register(&read(message)?, answered?),
            Kind::AggregateRows => self.aggregate_rows(&read(message)?),
            Kind::AggregateFetch => self.aggregate_fetch(&read(message)?, answered?),
            Kind::AggregateStore => self.aggregate_store(&read(message)?),
            Kind::AggregateReturn => {
                let asked = ask::whole(self, kind, message)?;
                self.keep(asked, answered?);
                Some(())
            }
            Kind::AggregateReset => {
                let body: body::AggregateReset = read(message)?;
                let aggregation = self.channel.aggregations.get_mut(&body.handle)?;
                aggregation.fetched = 0;
                aggregation.pass += 1;
                if body.goes_on == 0 {
                    (aggregation.rows, aggregation.pass) = (0, 0);
                }
                Some(())
            }
            Kind::AggregateForget => {
                let body: body::AggregateForget = read(message)?;
                self.channel.aggregations.remove(&body.handle).map(|_| ())
            }
            Kind::AggregateHandOver => {
                let body: body::AggregateHandOver = read(message)?;
                let answer: answer::AggregateHandOver = read(answered?)?;
                let aggregation = self.channel.aggregations.remove(&body.handle)?;
                let session = self.world.session(self.session);
                session.handed.insert(answer.number, aggregation);
                Some(())
            }
            Kind::AggregateMerge => {
                let body: body::AggregateMerge = read(message)?;
                let session = self.world.session(self.session);
                let other = session.handed.remove(&body.number)?;
                let aggregation = self.channel.aggregations.get_mut(&body.handle)?;
                aggregation.rows = aggregation.rows.wrapping_add(other.rows);
                Some(())
            }
            Kind::AggregateStep | Kind::AggregateCombine | Kind::AggregateFinal => {
                self.row_by_row(kind, message)
            }
            _ => None,
        }
    }

    pub(crate) fn keep(&mut self, asked: Term, answered: &[u8]) {
        if self.learns {
            let answers = &mut self.world.facts.answers;
            answers.entry(asked).or_insert_with(|| answered.to_vec());
        }
    }

    fn put(&mut self, kind: Kind, message: &[u8]) -> Option<()> {
        let (fid, count, made) = match kind {
            Kind::PutBatch => {
                let body: body::PutBatch<'_> = read(message)?;
                // Magic number, origin, type, flags, then how many values there are.
                let count = body.envelope.get(4..8)?.try_into().ok()?;
                let made = Maker::new("batch").bytes(body.envelope);
                let made = made.number(u64::from(body.typmod.cast_unsigned()));
                (body.fid, u64::from(u32::from_le_bytes(count)), made)
            }
            Kind::PutEnvelope => {
                let body: body::PutEnvelope<'_> = read(message)?;
                let made = Maker::new("envelope").bytes(body.envelope);
                let made = made.number(body.t as u64);
                let made = made.number(u64::from(body.typmod.cast_unsigned()));
                let whole = made.solid();
                self.world.set(self.session, body.fid.0, whole);
                self.world.facts.constants.insert(whole);
                // Whoever asks for it has it already: EXPLAIN does.
                self.learn_envelope(whole, body.envelope);
                return Some(());
            }
            _ => {
                let body: body::PutPlain<'_> = read(message)?;
                let made = Maker::new("cast").bytes(body.value).number(body.t as u64);
                (
                    body.fid,
                    1,
                    made.number(u64::from(body.typmod.cast_unsigned())),
                )
            }
        };
        let whole = made.solid();
        self.world.facts.constants.insert(whole);
        for n in 0..count.min(1 << 20) {
            let term = match kind {
                Kind::PutBatch => Maker::new("of batch").term(whole).number(n).solid(),
                _ => whole,
            };
            self.world.set(self.session, fid.0 + n, term);
        }
        Some(())
    }

    fn eval(&mut self, body: body::Eval<'_>) -> Option<()> {
        let shape = (body.program, body.immediate, body.rows, body.columns);
        let rows = ask::results(self, shape, &body.fids)?;
        for (n, (term, _)) in rows.into_iter().enumerate() {
            self.world.set(self.session, body.first.0 + n as u64, term);
        }
        Some(())
    }

    fn declassify(&mut self, body: body::Declassify<'_>, answered: &[u8]) -> Option<()> {
        if !self.learns {
            return None;
        }
        let shape = (body.program, body.immediate, body.rows, body.columns);
        let rows = ask::results(self, shape, &body.fids)?;
        let mut rest = answered;
        for (term, result) in rows {
            let width = if result == OpResult::Hash { 8 } else { 1 };
            let (bytes, tail) = rest.split_at_checked(width)?;
            self.world.facts.learn(term, result, bytes);
            rest = tail;
        }
        Some(())
    }

    fn register(&mut self, body: body::ProgramRegister<'_>, answered: &[u8]) -> Option<()> {
        let answer: answer::ProgramRegister = read(answered)?;
        let program = Program::new(&body.program, |fid| self.term(fid));
        let session = self.world.session(self.session);
        session.programs.insert(answer.program, Arc::new(program));
        Some(())
    }

    fn eval_batch(&mut self, body: &body::EvalBatch<'_>, answered: &[u8]) -> Option<()> {
        let answer: answer::EvalBatch<'_> = read(answered)?;
        let rows = self
            .world
            .rows(self.session, body.rows as usize, body.batch.iter());
        let mut nulls = answer.nulls.iter();
        for target in body.targets.iter() {
            let program = ask::program(self, target.program)?;
            let which = nulls.next()?;
            for (n, row) in rows.iter().enumerate() {
                let (term, _) = self.world.run(&program, row)?;
                self.world
                    .set(self.session, target.first.0 + n as u64, term);
                if self.learns && n < answer.good as usize {
                    let null = which.rows.get(n).is_some_and(|null| *null == 1);
                    self.world.facts.nulls.insert(term, null);
                }
            }
        }
        if let (Some(_), true) = (answer.error, self.learns) {
            let asked = ask::whole(self, Kind::EvalBatch, &ask::encoded(body))?;
            self.keep(asked, answered);
            self.world.facts.has_failed_batches = true;
        }
        Some(())
    }

    fn declassify_batch(
        &mut self,
        body: &body::DeclassifyBatch<'_>,
        answered: &[u8],
    ) -> Option<()> {
        if !self.learns {
            return None;
        }
        let answer: answer::DeclassifyBatch<'_> = read(answered)?;
        let program = ask::program(self, body.program)?;
        let rows = self
            .world
            .rows(self.session, body.rows as usize, body.batch.iter());
        let width = answer.revealed.width as usize;
        let results = answer.revealed.results.chunks(width.max(1));
        for (row, bytes) in rows.iter().zip(results) {
            let (term, result) = self.world.run(&program, row)?;
            let facts = &mut self.world.facts;
            facts.learn(term, result, bytes);
            if let [truth] = bytes {
                facts.rows.insert(ask::row_asked(&program, row), *truth);
            }
        }
        if let Some(error) = answer.revealed.error {
            let row = rows.get(answer.revealed.good as usize)?;
            let (term, _) = self.world.run(&program, row)?;
            self.world.facts.errors.insert(term, ask::encoded(&error));
        }
        Some(())
    }

    /// A group that does not pass tells of all its rows; one that passes, if it has only one.
    fn grouped(&mut self, body: &body::DeclassifyGroups<'_>, answered: &[u8]) -> Option<()> {
        if !self.learns {
            return None;
        }
        let answer: answer::DeclassifyGroups<'_> = read(answered)?;
        let groups = ask::groups(self, body)?;
        for (rows, passes) in groups.iter().zip(answer.revealed.results) {
            match ((*passes == 1) != (body.none == 1), rows.as_slice()) {
                (false, rows) => {
                    let facts = &mut self.world.facts;
                    rows.iter().for_each(|row| facts.learn_not_true(*row));
                }
                (true, [row]) => self.world.facts.learn_truth(*row, 1),
                _ => {}
            }
        }
        Some(())
    }

    /// Keys of a page are in order, and the value has its place among them.
    pub(crate) fn searched(&mut self, message: &[u8], answered: &[u8]) -> Option<()> {
        if !self.learns {
            return None;
        }
        ask::learn_search(self, &read(message)?, &read(answered)?)
    }

    /// Several searches, each as if it had been asked for alone.
    fn searched_many(&mut self, body: &body::SearchMany<'_>, answered: &[u8]) -> Option<()> {
        if !self.learns {
            return None;
        }
        let mut rest = answered;
        for (message, among) in ask::single(body)?.iter().zip(body.among.iter()) {
            let (places, tail) = rest.split_at_checked(among.values as usize * Place::BYTES)?;
            rest = tail;
            let asked = ask::whole(self, Kind::Search, message)?;
            self.keep(asked, places);
            self.searched(message, places);
        }
        Some(())
    }

    fn rank_add(&mut self, body: &body::RankAdd<'_>) -> Option<()> {
        let (rows, columns) = (body.rows as usize, body.columns as usize);
        let keys: Vec<_> = body.keys.iter().collect();
        let words: Vec<Fid> = body.values.iter().collect();
        let mut added = vec![Vec::with_capacity(columns); rows];
        for (n, key) in keys.iter().enumerate() {
            for (at, row) in added.iter_mut().enumerate() {
                let word = *words.get(n * rows + at)?;
                row.push(match key.t {
                    Some(_) => self.world.term(self.session, word),
                    None => Maker::new("plain").number(word.0).solid(),
                });
            }
        }
        let set = self.channel.sets.entry(body.set).or_default();
        set.keys = keys;
        set.rows.append(&mut added);
        if !self.learns {
            set.first.extend(words.iter().take(rows));
        }
        Some(())
    }

    fn rank(&mut self, body: &body::Rank, answered: &[u8]) -> Option<()> {
        let set = self.channel.sets.get(&body.set)?.clone();
        if body.flags & contract::message::rank::GOES != 0 {
            self.channel.sets.remove(&body.set);
        }
        if !self.learns {
            return None;
        }
        let answer: answer::Rank<'_> = read(answered)?;
        let asked = ask::ranking(&set, body);
        self.keep(asked, answered);
        let order = ask::ranked_domain(&set);
        let first = body.first as usize;
        let mut ranked = Vec::new();
        for (terms, rank) in set.rows.get(first..)?.iter().zip(answer.ranks.iter()) {
            if rank != contract::message::rank::BEYOND {
                ranked.push((ask::ranked_term(&set, terms), rank));
            }
        }
        self.world.facts.order.learn_ranking(order, &ranked);
        if let [key] = set.keys.as_slice() {
            ask::learn_column(self, *key, &set, first, &answer);
        }
        Some(())
    }

    fn tokens(&mut self, body: &body::Tokens<'_>, answered: &[u8]) -> Option<()> {
        if !self.learns {
            return None;
        }
        let answer: answer::Tokens<'_> = read(answered)?;
        let next = self.world.facts.next_universe();
        let universe = *self.channel.universes.entry(body.number).or_insert(next);
        let rows = self
            .world
            .rows(self.session, body.rows as usize, body.batch.iter());
        let (tokens, _) = answer.revealed.results.as_chunks::<16>();
        let begun = self.channel.position;
        for (cells, token) in rows.iter().zip(tokens) {
            self.world
                .facts
                .learn_token(row_of(cells), (universe, begun), *token);
        }
        Some(())
    }

    fn envelopes(&mut self, kind: Kind, message: &[u8], answered: &[u8]) -> Option<()> {
        if !self.learns {
            return None;
        }
        if kind == Kind::GetEnvelope {
            let body: body::GetEnvelope = read(message)?;
            let term = self.term(body.fid);
            self.learn_envelope(term, answered);
            return Some(());
        }
        let body: body::GetEnvelopes<'_> = read(message)?;
        let answer: answer::GetEnvelopes<'_> = read(answered)?;
        for (wanted, sealed) in body.wanted.iter().zip(answer.envelopes.iter()) {
            let term = self.term(wanted.fid);
            self.learn_envelope(term, sealed.envelope);
        }
        Some(())
    }

    fn learn_envelope(&mut self, term: Term, envelope: &[u8]) {
        let envelopes = &mut self.world.facts.envelopes;
        envelopes.entry(term).or_insert_with(|| envelope.to_vec());
    }

    fn promote(&mut self, body: &body::Promote<'_>, answered: &[u8]) -> Option<()> {
        let answer: answer::Promote<'_> = read(answered)?;
        self.promoted((body.moves, answer.fids), answer.envelopes)
    }

    fn promote_search(&mut self, body: &body::PromoteSearch<'_>, answered: &[u8]) -> Option<()> {
        let answer: answer::PromoteSearch<'_> = read(answered)?;
        self.promoted((body.moves, answer.fids), answer.envelopes)?;
        self.placed(body, &answer)
    }

    /// Where new values belong in indexes' pages, as if that had been asked for alone.
    fn placed(
        &mut self,
        body: &body::PromoteSearch<'_>,
        answer: &answer::PromoteSearch<'_>,
    ) -> Option<()> {
        if answer.told == 0 || answer.fids.iter().any(|fid| fid.0 == NOT_PROMOTED) {
            return Some(());
        }
        let mut sought = Vec::new();
        for mut value in body.sought.iter() {
            if value.flags & MOVED != 0 {
                value.fid = answer.fids.get(usize::try_from(value.fid.0).ok()?)?;
                value.flags &= !MOVED;
            }
            value.put(&mut sought);
        }
        self.searched_many(
            &body::SearchMany {
                searches: body.searches,
                values: body.values,
                among: body.among,
                sought: List::new(&sought),
                columns: body.columns,
            },
            answer.places.bytes(),
        )
    }

    /// Values that were stored, and envelopes that came along with those that wanted one.
    fn promoted(
        &mut self,
        (moves, fids): (List<'_, Move>, List<'_, Fid>),
        envelopes: Each<'_, Sealed<'_>>,
    ) -> Option<()> {
        for (moved, fid) in moves.iter().zip(fids.iter()) {
            if fid.0 == NOT_PROMOTED {
                break;
            }
            let term = self.term(moved.source);
            self.world.facts.stored.store(fid, term);
        }
        let wanted = moves.iter().zip(fids.iter());
        let wanted = wanted.filter(|(moved, _)| moved.t.is_some());
        for ((_, fid), sealed) in wanted.zip(envelopes.iter()) {
            if self.learns && !sealed.envelope.is_empty() {
                let term = self.term(fid);
                self.learn_envelope(term, sealed.envelope);
            }
        }
        Some(())
    }

    fn promote_runs(&mut self, body: &body::PromoteRuns<'_>, answered: &[u8]) -> Option<()> {
        let answer: answer::PromoteRuns<'_> = read(answered)?;
        if answer.promoted == 0 {
            return None;
        }
        for (from, to) in body.sources.iter().zip(answer.runs.iter()) {
            let each = |run: contract::message::table::Run| {
                (0..u64::from(run.length)).map(move |n| run.first.0 + n)
            };
            let (from, to) = (from.runs.iter(), to.runs.iter());
            for (from, to) in from.flat_map(each).zip(to.flat_map(each)) {
                let term = self.term(Fid(from));
                self.world.facts.stored.store(Fid(to), term);
            }
        }
        Some(())
    }

    fn partition(&mut self, body: &body::PartitionOpen<'_>, answered: &[u8]) -> Option<()> {
        let answer: answer::PartitionOpen<'_> = read(answered)?;
        let key = (body.database, body.relation, body.attribute);
        let partitions = &mut self.world.facts.partitions;
        partitions.insert(key, answer.partition);
        Some(())
    }

    fn aggregate_register(
        &mut self,
        body: &body::AggregateRegister<'_>,
        answered: &[u8],
    ) -> Option<()> {
        let answer: answer::AggregateRegister = read(answered)?;
        let aggregation = Aggregation {
            registered: ask::registered(self, body)?,
            results: u64::from(body.aggregates),
            ..Aggregation::default()
        };
        self.channel.aggregations.insert(answer.handle, aggregation);
        Some(())
    }

    fn aggregate_rows(&mut self, body: &body::AggregateRows<'_>) -> Option<()> {
        let rows = self
            .world
            .rows(self.session, body.rows as usize, body.batch.iter());
        let sum = rows
            .iter()
            .fold(0, |sum: Term, row| sum.wrapping_add(row_of(row)));
        let aggregation = self.channel.aggregations.get_mut(&body.handle)?;
        aggregation.rows = aggregation.rows.wrapping_add(sum);
        Some(())
    }

    fn aggregate_fetch(&mut self, body: &body::AggregateFetch<'_>, answered: &[u8]) -> Option<()> {
        let asked = ask::fetching(self, body)?;
        self.channel.aggregations.get_mut(&body.handle)?.fetched += 1;
        let answer: answer::AggregateFetch<'_> = read(answered)?;
        for column in answer.columns.iter() {
            let Column::List(values) = column else {
                continue;
            };
            for value in values.iter().filter(|v| ask::is_result(body.first, *v)) {
                let place = value.0 - body.first.0;
                let term = Maker::new("result").term(asked).number(place).computed();
                self.world.set(self.session, value.0, term);
            }
        }
        if self.learns {
            let fetched = Fetched {
                answer: answered.to_vec(),
                first: body.first.0,
            };
            let known = &mut self.world.facts.fetched;
            known.entry(asked).or_insert(fetched);
        }
        Some(())
    }

    /// Results of which nothing is told.
    fn aggregate_store(&mut self, body: &body::AggregateStore) -> Option<()> {
        let aggregation = self.channel.aggregations.get(&body.handle)?;
        let made = Maker::new("store").term(aggregation.registered);
        let asked = made.term(aggregation.rows).computed();
        for place in 0..aggregation.results {
            let term = Maker::new("result").term(asked).number(place).computed();
            self.world.set(self.session, body.first.0 + place, term);
        }
        Some(())
    }

    fn row_by_row(&mut self, kind: Kind, message: &[u8]) -> Option<()> {
        let id = self.session;
        match kind {
            Kind::AggregateStep => {
                let body: body::AggregateStep = read(message)?;
                let term = row([self.term(body.value)]);
                let number = u64::from(body.aggregate);
                let states = &mut self.world.session(id).states;
                let state = states.entry(body.state.0).or_insert((number, 0));
                if body.new == 1 {
                    *state = (number, 0);
                }
                state.1 = state.1.wrapping_add(term);
            }
            Kind::AggregateCombine => {
                let body: body::AggregateCombine = read(message)?;
                let states = &mut self.world.session(id).states;
                let (number, more) = *states.get(&body.from.0)?;
                let state = states.entry(body.into.0).or_insert((number, 0));
                state.1 = state.1.wrapping_add(more);
            }
            _ => {
                let body: body::AggregateFinal = read(message)?;
                let state = self.world.session(id).states.get(&body.from.0);
                let (number, sum) = state.copied()?;
                let term = Maker::new("final").number(number).term(sum).computed();
                self.world.set(id, body.to.0, term);
            }
        }
        Some(())
    }
}
