//! What signing a result costs the keeper, and verifying it a client: a line of JSON for each number of
//! rows, for `make bench-ledger`. Of processor time, so that it does not matter what else the machine does.

use ledger::result::{Cells, Column, Header, SignedResult};
use ledger::{Error, SigningKey};

/// So many results of each size, which take longer than the kernel's tick, by which it counts.
const CELLS: u64 = 600_000;

/// Microseconds of processor time that this thread has used.
fn spent() -> f64 {
    let line = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = line.split(' ').next().and_then(|word| word.parse().ok());
    nanoseconds.unwrap_or(0.0) / 1e3
}

/// Does something for each; what it made, and the microseconds for one.
fn timed<A, B>(all: Vec<A>, each: impl Fn(A) -> Result<B, Error>) -> Result<(Vec<B>, f64), Error> {
    let count = all.len() as f64;
    let begun = spent();
    let made = all.into_iter().map(each).collect::<Result<Vec<B>, _>>()?;
    Ok((made, (spent() - begun) / count))
}

fn main() -> Result<(), Error> {
    let key = SigningKey::from_seed(&[7; 32])?;
    let public = key.verifying_key()?;
    for rows in [1, 10, 100, 1000] {
        let results = (CELLS / (rows * 3)).min(10_000);
        let cells = (0..rows * 3).map(|n| Some(n.to_string()));
        let cells = cells.collect::<Cells>();
        let asked = (0..results).map(|n| (header(rows), cells.clone(), [n.to_le_bytes()[0]; 32]));
        let (signed, sign) = timed(asked.collect(), |(header, cells, seed)| {
            SignedResult::sign(header, cells, Vec::new(), seed, &key)
        })?;
        let (texts, write) = timed(signed, |result| result.to_json())?;
        let (_, verify) = timed(texts, |text| {
            SignedResult::from_json(&text)?.verify(&public, Some(b"nonce"))
        })?;
        println!(
            "{{\"rows\": {rows}, \"sign, us\": {sign:.1}, \"as JSON, us\": {write:.1}, \
             \"verify, us\": {verify:.1}}}",
        );
    }
    Ok(())
}

fn header(rows: u64) -> Header {
    let column = |name: &str| Column {
        name: name.into(),
        type_name: "integer".into(),
        origin: Some(["public".into(), "work".into(), name.into()]),
        vouched: true,
        ledger: None,
    };
    Header {
        statement: "SELECT id, artist, price FROM work WHERE id BETWEEN $1 AND $2".into(),
        nonce: b"nonce".into(),
        time: 0,
        principal: "app".into(),
        columns: ["id", "artist", "price"].map(column).into(),
        rows,
        evidence: vec![0; 400],
        ledgers: Vec::new(),
    }
}
