//! Runs clients for some seconds and says how many transactions of which kind they did,
//! and how long each took.
use std::collections::BTreeMap;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use crate::wire::{Error, Result};

/// What a client does, again and again: a transaction, and its kind.
pub type Transaction<'a> = Box<dyn FnMut() -> Result<&'static str> + 'a>;

/// Times of one client.
#[derive(Default)]
struct Log {
    times: BTreeMap<&'static str, Vec<Duration>>,
    retries: u64,
    /// Transactions, also those before counting began.
    done: u64,
}

/// Runs `clients` for `seconds`, after a tenth of it to warm up.
pub fn run<'a>(
    clients: usize,
    seconds: f64,
    make: impl Fn(usize) -> Result<Transaction<'a>> + Sync,
) -> Result<Json> {
    let start = Barrier::new(clients + 1);
    let counting = AtomicBool::new(false);
    let stop = AtomicBool::new(false);
    let mut measured = Duration::ZERO;
    let logs: Vec<Result<Log>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..clients)
            .map(|number| {
                let (start, counting, stop, make) = (&start, &counting, &stop, &make);
                scope.spawn(move || client(number, start, counting, stop, make))
            })
            .collect();
        start.wait();
        std::thread::sleep(Duration::from_secs_f64(seconds / 10.0));
        counting.store(true, Ordering::Relaxed);
        let began = Instant::now();
        std::thread::sleep(Duration::from_secs_f64(seconds));
        stop.store(true, Ordering::Relaxed);
        measured = began.elapsed();
        let told = |_| Err(Error::new("a client's thread panicked"));
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(told))
            .collect()
    });
    let mut all: BTreeMap<&str, Vec<Duration>> = BTreeMap::new();
    let mut retries = 0;
    let mut done = 0_u64;
    for log in logs {
        let log = log?;
        retries += log.retries;
        done += log.done;
        for (kind, times) in log.times {
            all.entry(kind).or_default().extend(times);
        }
    }
    let kinds: serde_json::Map<String, Json> = all
        .iter_mut()
        .map(|(kind, times)| ((*kind).to_owned(), summary(times)))
        .collect();
    let mut every: Vec<Duration> = all.values().flatten().copied().collect();
    Ok(json!({
        "clients": clients,
        "seconds": measured.as_secs_f64(),
        "per_second": every.len() as f64 / measured.as_secs_f64(),
        "retries": retries,
        "done": done,
        "all": summary(&mut every),
        "kinds": kinds,
    }))
}

fn client<'a>(
    number: usize,
    start: &Barrier,
    counting: &AtomicBool,
    stop: &AtomicBool,
    make: impl Fn(usize) -> Result<Transaction<'a>>,
) -> Result<Log> {
    let made = make(number);
    start.wait();
    let mut transaction = made?;
    let mut log = Log::default();
    while !stop.load(Ordering::Relaxed) {
        let began = Instant::now();
        match transaction() {
            Ok(kind) => {
                log.done += 1;
                if counting.load(Ordering::Relaxed) && !stop.load(Ordering::Relaxed) {
                    log.times.entry(kind).or_default().push(began.elapsed());
                }
            }
            Err(error) if error.transient() => log.retries += 1,
            Err(error) => return Err(error),
        }
    }
    Ok(log)
}

/// Count and percentiles in milliseconds.
fn summary(times: &mut [Duration]) -> Json {
    times.sort_unstable();
    let at = |share: f64| {
        let index = (times.len() as f64 * share) as usize;
        let time = times.get(index.min(times.len().saturating_sub(1)));
        time.map(|t| t.as_secs_f64() * 1e3)
    };
    json!({
        "count": times.len(),
        "p50": at(0.5), "p95": at(0.95), "p99": at(0.99), "max": at(1.0),
    })
}
