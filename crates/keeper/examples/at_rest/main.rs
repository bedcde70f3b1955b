//! `cargo run --release -p keeper --example at_rest`: bytes per value by type, in memory and
//! in the vault's files (docs/durability.md), and how long a checkpoint, the check at the
//! keeper's start and reading back take.
//!
//! Values are random: *any* of the type's whole range, which no compression makes shorter, or
//! *usual* ones: small numbers, prices, days of seven years, words.
//!
//! Not here: TPC-H, whose sizes `make bench-tpch` gives.

use contract::TypeCode;
use std::time::{Duration, Instant};
use store::{Budget, Layout, Listed, NoJournal, Partition, PartitionKey, Scalar, Store};
use values::{Env, Value};
use vault::{Checkpoint, CounterFile, Directory, SegmentId, Vault};

/// Values of each kind: full segments.
const VALUES: u64 = 4 * store::SEGMENT_SLOTS;
const WORDS: &str = "among the regular accounts furiously sleep express ideas carefully final deposits \
    haggle quickly above pending packages blithely ironic requests wake slyly bold theodolites";

/// Numbers that look random and are the same each time (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// Words up to a length.
    fn words(&mut self, length: usize) -> Vec<u8> {
        let words: Vec<&str> = WORDS.split_whitespace().collect();
        let mut text = String::new();
        while text.len() < length {
            text += words[self.below(words.len() as u64) as usize];
            text.push(' ');
        }
        text.into_bytes()[..length].to_vec()
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }
}

/// What a column is filled with.
type Draw = fn(&mut Random) -> Value;

fn numeric(whole: i64) -> Value {
    let text = format!("{}.{:02}", whole / 100, whole % 100);
    values::parse_text(TypeCode::Numeric, -1, text.as_bytes(), &Env::default())
        .unwrap_or(Value::Int8(whole))
}

/// Name, type, modifier, values.
fn columns() -> Vec<(&'static str, TypeCode, i32, Draw)> {
    use TypeCode::*;
    const PRICE: i32 = (15 << 16 | 2) + 4;
    vec![
        ("bool", Bool, -1, |r| Value::Bool(r.below(2) == 1)),
        ("int2, any", Int2, -1, |r| Value::Int2(r.next() as i16)),
        ("int4, any", Int4, -1, |r| Value::Int4(r.next() as i32)),
        ("int4, up to 50", Int4, -1, |r| {
            Value::Int4(r.below(50) as i32)
        }),
        ("int8, any", Int8, -1, |r| Value::Int8(r.next() as i64)),
        ("float8, any", Float8, -1, |r| {
            Value::Float8(f64::from_bits(r.next()))
        }),
        ("date, of 7 years", Date, -1, |r| {
            Value::Date(r.below(2557) as i32)
        }),
        ("timestamp, of 7 years", Timestamp, -1, |r| {
            Value::Timestamp(r.below(220_924_800_000_000) as i64)
        }),
        ("interval, days", Interval, -1, |r| {
            let days = r.below(1000) as i32;
            Value::Interval(values::Interval {
                micros: 0,
                days,
                months: 0,
            })
        }),
        ("uuid, any", Uuid, -1, |r| {
            let (high, low) = (u128::from(r.next()), u128::from(r.next()));
            Value::Uuid((high << 64 | low).to_le_bytes())
        }),
        ("numeric(15,2), up to 100000", Numeric, PRICE, |r| {
            numeric(r.below(10_000_000) as i64)
        }),
        ("numeric(15,2), up to 0.10", Numeric, PRICE, |r| {
            numeric(r.below(11) as i64)
        }),
        ("numeric, up to 100000", Numeric, -1, |r| {
            numeric(r.below(10_000_000) as i64)
        }),
        ("text, one of 8 words of 6", Text, -1, |r| {
            Value::Text(format!("word-{}", r.below(8)).into_bytes().into())
        }),
        ("text, 25 bytes of words", Text, -1, |r| {
            Value::Text(r.words(25).into())
        }),
        ("text, 100 bytes of words", Text, -1, |r| {
            Value::Text(r.words(100).into())
        }),
        ("bytea, 32 bytes, any", Bytea, -1, |r| {
            Value::Bytea(r.bytes(32).into())
        }),
    ]
}

fn vault(directory: &std::path::Path, compress: bool) -> Vault {
    let name = if compress { "packed" } else { "plain" };
    let files = Directory::open(directory.join(name)).expect("a directory");
    let counter = CounterFile::new(directory.join(format!("{name}.freshness")));
    let mut vault = Vault::open(Box::new(files), Box::new(counter), &[7; 32]).expect("a vault");
    vault.compress(compress);
    vault
}

fn size(directory: &std::path::Path) -> u64 {
    let files = std::fs::read_dir(directory).expect("a directory");
    files
        .filter_map(|f| Some(f.ok()?.metadata().ok()?.len()))
        .sum()
}

/// How long it takes a new store to take in what is in the vault.
fn restart(
    vault: &Vault,
    number: u32,
    key: PartitionKey,
    take: fn(&Partition, u32, &[u8]) -> Result<(), values::Error>,
) -> Duration {
    let store = Store::new(Budget::new(1 << 32, "memory_limit"), Box::new(NoJournal));
    store.restore(Listed { number, key }).expect("a partition");
    let partition = store.get(number).expect("the partition");
    let began = Instant::now();
    for id in vault.segments() {
        let content = vault.read(id).expect("a segment").unwrap_or_default();
        take(partition, id.number, &content).expect("values");
    }
    began.elapsed()
}

fn main() {
    println!(
        "{:30} {:>7} {:>7} {:>7}",
        "bytes a value", "memory", "plain", "at rest"
    );
    let mut times = [Duration::ZERO; 4];
    let mut bytes = 0;
    for (name, t, typmod, draw) in columns() {
        let store = Store::new(Budget::new(1 << 32, "memory_limit"), Box::new(NoJournal));
        let layout = Layout::of(t, typmod);
        let key = PartitionKey {
            database: 1,
            relation: 1,
            attribute: 1,
            layout,
        };
        let number = store.open(key).expect("a partition");
        let mut random = Random(1);
        for _ in 0..VALUES {
            let value = draw(&mut random);
            store
                .promote(number, value.type_code(), &Scalar::of(&value))
                .expect("a slot");
        }
        let partition = store.get(number).expect("the partition");
        let memory = partition.statistics().map_or(0, |s| s.bytes);
        let directory = tempfile::tempdir().expect("a directory");
        let mut sizes = [0; 2];
        for compress in [false, true] {
            let mut vault = vault(directory.path(), compress);
            let began = Instant::now();
            let mut change = Checkpoint::new();
            for segment in partition.all_segments() {
                let id = SegmentId {
                    partition: number,
                    number: segment,
                };
                if let Some(content) = partition.write_segment(segment).expect("a segment") {
                    bytes += if compress { content.len() } else { 0 };
                    change.write(id, content);
                }
            }
            vault.commit(change, vec![]).expect("a checkpoint");
            times[usize::from(compress)] += began.elapsed();
            let place = directory
                .path()
                .join(if compress { "packed" } else { "plain" });
            sizes[usize::from(compress)] = size(&place);
            if compress {
                times[2] += restart(&vault, number, key, Partition::adopt_segment);
                times[3] += restart(&vault, number, key, Partition::read_segment);
            }
        }
        let each = |n: u64| n as f64 / VALUES as f64;
        let [plain, packed] = sizes.map(each);
        println!(
            "{name:30} {:7.2} {plain:7.2} {packed:7.2}",
            each(memory as u64)
        );
    }
    let rate = |t: Duration| bytes as f64 / 1e6 / t.as_secs_f64();
    println!(
        "checkpoint: {:.0} MB/s plain, {:.0} compressed",
        rate(times[0]),
        rate(times[1])
    );
    println!(
        "start: {:.0} MB/s checked, {:.0} read back",
        rate(times[2]),
        rate(times[3])
    );
}
