//! `Stats`: lines of name and value. They include what was declassified of each column, because the
//! owner may ask what has been disclosed.

use super::Connection;
use crate::fail::Failure;
use crate::lru::Lru;
use contract::{Kind, answer};
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use store::PartitionStatistics;

/// Maximum number of columns in an answer.
const COLUMNS_MAX: usize = 16_384;

impl Connection {
    pub(super) fn stats(&mut self) -> Result<(), Failure> {
        let mut text = String::new();
        self.keeper_lines(&mut text);
        self.session_lines(&mut text);
        let columns = self.keeper.store.statistics();
        for (number, column) in columns.iter().take(COLUMNS_MAX) {
            column_lines(&mut text, *number, column);
        }
        self.answer(&answer::Stats {
            lines: text.as_bytes(),
        });
        Ok(())
    }

    fn keeper_lines(&self, text: &mut String) {
        let keeper = &self.keeper;
        let counters = &keeper.counters;
        let load = |counter: &AtomicU64| counter.load(Relaxed);
        let budget = keeper.store.budget();
        let paging = keeper.store.paging();
        for (name, value) in [
            ("version", u64::from(contract::VERSION)),
            ("incarnation", keeper.incarnation),
            ("channels", load(&counters.channels)),
            ("channels_total", load(&counters.channels_total)),
            ("sessions", keeper.session_count() as u64),
            ("messages_total", load(&counters.messages_total)),
            ("answered_total", load(&counters.answered_total)),
            ("panics_total", load(&counters.panics_total)),
            ("handshakes_total", load(&counters.handshakes_total)),
            ("renewals_total", load(&counters.renewals_total)),
            ("goodbyes_total", load(&counters.goodbyes_total)),
            ("leases_over_total", load(&counters.leases_over_total)),
            (
                "handshakes_failed_total",
                load(&counters.handshakes_failed_total),
            ),
            ("collections_total", load(&counters.collections_total)),
            ("swept_total", load(&counters.swept_total)),
            ("delivered_total", load(&keeper.delivery.delivered)),
            ("column_keys_given_total", load(&keeper.delivery.keyed)),
            ("delivery_periods_total", load(&keeper.delivery.periods)),
            ("partitions", keeper.store.partitions() as u64),
            ("memory_bytes", budget.used() as u64),
            ("memory_limit_bytes", budget.limit() as u64),
            ("memory_budget_bytes", keeper.config.memory_budget.0 as u64),
            ("segments_resident", paging.resident),
            ("segments_evicted", paging.evicted),
            ("segment_faults_total", paging.faults),
            ("segment_evictions_total", paging.evictions),
            ("segments_ahead_total", paging.ahead),
            ("segments_ahead_used_total", paging.ahead_used),
        ]
        .into_iter()
        .chain(cache_lines(CELLS, keeper.cells.cache.as_ref()))
        .chain(cache_lines(ANSWERS, keeper.cells.answers.as_ref()))
        .chain(keeper.recorder.lines())
        {
            let _ = writeln!(text, "{name} {value}");
        }
    }

    fn session_lines(&self, text: &mut String) {
        let session = &self.session;
        let load = |counter: &AtomicU64| counter.load(Relaxed);
        let (programs, arenas) = session.sizes();
        let slots = self.space.own.statement.read().slots();
        for (name, value) in [
            ("session.id", session.id),
            ("session.client", u64::from(self.client.is_some())),
            ("session.memory_bytes", session.budget.used() as u64),
            ("session.memory_limit_bytes", session.budget.limit() as u64),
            ("session.programs", programs as u64),
            ("session.channels", arenas as u64),
            ("session.statement_slots", slots),
            (
                "session.declassified_rows_total",
                load(&session.counters.declassified),
            ),
            ("session.ranked_rows_total", load(&session.counters.ranked)),
            ("session.searches_total", load(&session.counters.searches)),
            ("channel.answered_total", self.answered_messages()),
            ("session.envelopes_in_total", load(&session.counters.opened)),
            (
                "session.envelopes_out_total",
                load(&session.counters.sealed),
            ),
        ] {
            let _ = writeln!(text, "{name} {value}");
        }
        let mut answered = 0;
        for (kind, open) in self.messages() {
            let all = session.counters.messages(kind, open);
            if all > 0 {
                let _ = writeln!(text, "session.messages.{kind:?} {all}");
            }
            if kind.is_answered() {
                answered += all;
            }
        }
        let _ = writeln!(text, "session.answered_total {answered}");
    }

    /// Number of the channel's requests by kind.
    pub(super) fn messages(&self) -> impl Iterator<Item = (Kind, u64)> {
        let count = |kind: Kind| self.messages.get(usize::from(kind as u16)).copied();
        let counts = Kind::ALL.iter().map(move |kind| (*kind, count(*kind)));
        counts.filter_map(|(kind, count)| Some((kind, count?)))
    }

    pub(super) fn answered_messages(&self) -> u64 {
        let answered = self.messages().filter(|(kind, _)| kind.is_answered());
        answered.map(|(_, count)| count).sum()
    }
}

const CELLS: [&str; 3] = [
    "cell_cache_bytes",
    "cell_cache_hits_total",
    "cell_cache_misses_total",
];
const ANSWERS: [&str; 3] = [
    "answer_cache_bytes",
    "answer_cache_hits_total",
    "answer_cache_misses_total",
];

fn cache_lines(names: [&'static str; 3], cache: Option<&Lru>) -> [(&'static str, u64); 3] {
    let counts = cache.map(Lru::counts).unwrap_or_default();
    let [bytes, hits, misses] = names;
    [
        (bytes, counts.bytes),
        (hits, counts.hits),
        (misses, counts.misses),
    ]
}

fn column_lines(text: &mut String, number: u32, column: &PartitionStatistics) {
    let key = &column.key;
    for (name, value) in [
        ("bytes", column.bytes as u64),
        ("live", column.live),
        ("free", column.free),
        ("declassified_booleans", column.revealed.booleans),
        ("declassified_orders", column.revealed.orders),
        ("declassified_hashes", column.revealed.hashes),
    ] {
        let _ = writeln!(
            text,
            "column.{}.{}.{}.{number}.{name} {value}",
            key.database, key.relation, key.attribute
        );
    }
}
