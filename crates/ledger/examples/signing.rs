//! What signing a result costs the keeper, and verifying it a client: a line of JSON for each number of
//! rows, for `make bench-ledger`.

use ledger::result::{Cell, Column, Header, SignedResult};
use ledger::{Error, SigningKey};
use std::time::Instant;

/// So many results of each size.
const RESULTS: u32 = 300;

fn main() -> Result<(), Error> {
    let key = SigningKey::from_seed(&[7; 32])?;
    let public = key.verifying_key()?;
    for rows in [1, 10, 100, 1000] {
        let cells = (0..rows * 3).map(|n| Some(n.to_string()));
        let cells = cells.collect::<Vec<Cell>>();
        let (mut signing, mut writing, mut verifying) = (0.0, 0.0, 0.0);
        for turn in 0..RESULTS {
            let (header, cells) = (header(rows), cells.clone());
            let seed = [turn.to_le_bytes()[0]; 32];
            let begun = Instant::now();
            let result = SignedResult::sign(header, cells, Vec::new(), seed, &key)?;
            signing += begun.elapsed().as_secs_f64();
            let begun = Instant::now();
            let text = result.to_json()?;
            writing += begun.elapsed().as_secs_f64();
            let begun = Instant::now();
            SignedResult::from_json(&text)?.verify(&public, Some(b"nonce"))?;
            verifying += begun.elapsed().as_secs_f64();
        }
        let of_one = |seconds: f64| seconds * 1e6 / f64::from(RESULTS);
        println!(
            "{{\"rows\": {rows}, \"sign, us\": {:.1}, \"as JSON, us\": {:.1}, \"verify, us\": {:.1}}}",
            of_one(signing),
            of_one(writing),
            of_one(verifying),
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
