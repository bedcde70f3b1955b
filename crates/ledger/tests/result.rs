//! Signed results and single cells: what verifies, and each way to change one.

use ledger::Hash;
use ledger::entry::{Entry, Kind};
use ledger::result::{Cell, Column, Header, Ledger, SignedCell, SignedResult, Version};
use ledger::tree::{Tree, prove_inclusion};
use ledger::{Error, SigningKey, VerifyingKey};
use proptest::prelude::*;

type Done = Result<(), Box<dyn std::error::Error>>;

const NONCE: &[u8] = b"nonce of this request";

fn key() -> Result<SigningKey, Error> {
    SigningKey::from_seed(&[9; 32])
}

fn column(name: &str, type_name: &str, vouched: bool) -> Column {
    Column {
        name: name.into(),
        type_name: type_name.into(),
        origin: Some(["public".into(), "emp".into(), name.into()]),
        vouched,
        ledger: None,
    }
}

fn header() -> Header {
    Header {
        statement: "SELECT id, pay, name FROM emp WHERE id < $1".into(),
        nonce: NONCE.into(),
        time: 817_000_000_000_000,
        principal: "auditor".into(),
        columns: vec![
            column("id", "integer", false),
            column("pay", "integer", true),
            Column {
                origin: None,
                ..column("name", "text", true)
            },
        ],
        rows: 3,
        evidence: b"quote".into(),
        ledgers: Vec::new(),
    }
}

fn cells() -> Vec<Cell> {
    let cells = ["1", "5200", "Ann", "2", "", "Bob", "3", "7300", "Zoë"];
    let cell = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    cells.into_iter().map(cell).collect()
}

fn signed() -> Result<SignedResult, Error> {
    SignedResult::sign(
        header(),
        cells().into_iter().collect(),
        Vec::new(),
        [3; 32],
        &key()?,
    )
}

/// The same with row versions: columns 0 and 1 are of a ledger of 21 entries.
fn from_ledger() -> Result<SignedResult, Error> {
    let entry = |sn| Entry {
        kind: Kind::Write,
        group: 0,
        settled: 0,
        sn,
        other: 0,
        time: 1,
        sealed: 2,
        principal: "ann".into(),
        names: String::new(),
        row: Hash([sn as u8; 32]),
    };
    let entries: Vec<Vec<u8>> = (0..21).map(|sn| entry(sn).encode()).collect();
    let mut tree = Tree::new();
    entries.iter().for_each(|e| tree.push(Entry::leaf(e)));
    let version = |index: u64| {
        Ok(Version {
            index,
            ended: index > 10,
            entry: entries[index as usize].clone(),
            path: prove_inclusion(&tree, index, 21)?.path,
        })
    };
    let versions = [3, 20, 9].into_iter().map(version);
    let mut header = header();
    header.ledgers = vec![Ledger {
        origin: "confide-ledger/s.t".into(),
        size: 21,
        root: tree.root(),
    }];
    header.columns[0].vouched = true;
    header.columns[0].ledger = Some(0);
    header.columns[1].ledger = Some(0);
    SignedResult::sign(
        header,
        cells().into_iter().collect(),
        versions.collect::<Result<_, Error>>()?,
        [3; 32],
        &key()?,
    )
}

fn public() -> Result<VerifyingKey, Error> {
    key()?.verifying_key()
}

/// What was signed verifies in both forms, with and without the nonce.
#[test]
fn results_verify() -> Done {
    let key = public()?;
    for result in [signed()?, from_ledger()?] {
        for copy in [
            SignedResult::from_bytes(&result.to_bytes())?,
            SignedResult::from_json(&result.to_json()?)?,
        ] {
            assert_eq!(copy, result);
            copy.verify(&key, Some(NONCE))?;
            copy.verify(&key, None)?;
            assert!(copy.cells().iter().eq(cells().iter().map(Option::as_deref)));
        }
    }
    Ok(())
}

/// An answer to another request, and another keeper's; with the bug an old answer could
/// be given again.
#[test]
fn replays_are_noticed() -> Done {
    let result = signed()?;
    assert_eq!(result.verify(&public()?, Some(b"mine")), Err(Error::Nonce));
    let other = SigningKey::from_seed(&[8; 32])?.verifying_key()?;
    assert_eq!(result.verify(&other, Some(NONCE)), Err(Error::Signature));
    Ok(())
}

/// No bit of the compact form can be another one: cells, names, types, NULL, places,
/// what is vouched for, evidence, seed.
#[test]
fn every_flipped_bit_is_noticed() -> Done {
    let key = public()?;
    for bytes in [signed()?.to_bytes(), from_ledger()?.to_bytes()] {
        for place in 0..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[place] ^= 1 << bit;
                let result = SignedResult::from_bytes(&changed);
                let verified = result.and_then(|r| r.verify(&key, None));
                assert!(verified.is_err(), "bit {bit} of byte {place}");
            }
        }
    }
    Ok(())
}

/// Rows added, removed and exchanged, and columns renamed, in the form that people edit.
#[test]
fn edited_json_is_noticed() -> Done {
    let (text, key) = (signed()?.to_json()?, public()?);
    let edits: [fn(&mut serde_json::Value); 7] = [
        |file| swap(&mut file["rows"], 0, 1),
        |file| swap(&mut file["rows"][0], 0, 1),
        |file| {
            file["rows"].as_array_mut().and_then(Vec::pop);
        },
        |file| {
            let row = file["rows"][0].clone();
            file["rows"]
                .as_array_mut()
                .into_iter()
                .for_each(|rows| rows.push(row.clone()));
            file["result"]["rows"] = 4.into();
        },
        |file| file["result"]["columns"][1]["name"] = "bonus".into(),
        |file| file["result"]["columns"][0]["vouched"] = true.into(),
        |file| file["result"]["columns"][0]["origin"][1] = "other".into(),
    ];
    for (number, edit) in edits.iter().enumerate() {
        let mut file: serde_json::Value = serde_json::from_str(&text)?;
        edit(&mut file);
        let verified =
            SignedResult::from_json(&file.to_string()).and_then(|r| r.verify(&key, None));
        assert!(verified.is_err(), "edit {number}");
    }
    Ok(())
}

fn swap(list: &mut serde_json::Value, a: usize, b: usize) {
    if let Some(list) = list.as_array_mut() {
        list.swap(a, b);
    }
}

/// Files of earlier versions, whose trees are others: refused by their version, not as forgeries.
#[test]
fn earlier_versions() -> Done {
    for (result, version) in [(signed()?, 3_u16), (from_ledger()?, 4)] {
        let cell = result.cell(1, 1)?;
        let mut bytes = [result.to_bytes(), cell.to_bytes()];
        for bytes in &mut bytes {
            assert_eq!(bytes[8..10], version.to_le_bytes());
            bytes[8..10].copy_from_slice(&(version - 2).to_le_bytes());
        }
        let earlier = Some(Error::Version(version - 2));
        assert_eq!(SignedResult::from_bytes(&bytes[0]).err(), earlier);
        assert_eq!(SignedCell::from_bytes(&bytes[1]).err(), earlier);
        let now = [format!("-v{}\"", version + 2), format!("-v{version}\"")];
        let texts = [result.to_json()?, cell.to_json()?].map(|t| t.replacen(&now[0], &now[1], 1));
        assert!(texts.iter().all(|text| text.contains(&now[1])));
        let earlier = Some(Error::Version(version));
        assert_eq!(SignedResult::from_json(&texts[0]).err(), earlier);
        assert_eq!(SignedCell::from_json(&texts[1]).err(), earlier);
    }
    Ok(())
}

/// One cell proves its place and tells nothing of the others; it proves no other place.
#[test]
fn a_cell_alone() -> Done {
    let (result, key) = (signed()?, public()?);
    let expected = cells();
    for (index, value) in expected.iter().enumerate() {
        let cell = result.cell(index as u64 / 3, index % 3)?;
        let text = cell.to_json()?;
        for copy in [
            SignedCell::from_bytes(&cell.to_bytes())?,
            SignedCell::from_json(&text)?,
        ] {
            assert_eq!(copy.value(), value);
            copy.verify(&key, Some(NONCE))?;
        }
        for other in expected
            .iter()
            .flatten()
            .filter(|o| Some(*o) != value.as_ref())
        {
            assert!(!text.contains(&format!("\"{other}\"")), "{other} is told");
        }
        let mut moved: serde_json::Value = serde_json::from_str(&text)?;
        moved["column"] = ((index + 1) % 3).into();
        let moved = SignedCell::from_json(&moved.to_string())?;
        assert_eq!(moved.verify(&key, None), Err(Error::Proof));
    }
    assert_eq!(result.cell(3, 0), Err(Error::Range));
    assert_eq!(result.cell(0, 3), Err(Error::Range));
    Ok(())
}

/// A cell of a ledger has its row's version, and no other's; one of another column has none.
#[test]
fn a_cell_of_a_ledger() -> Done {
    let (result, key) = (from_ledger()?, public()?);
    for row in 0..3 {
        let cell = result.cell(row, 1)?;
        for copy in [
            SignedCell::from_bytes(&cell.to_bytes())?,
            SignedCell::from_json(&cell.to_json()?)?,
        ] {
            copy.verify(&key, Some(NONCE))?;
            assert_eq!(copy.version(), Some(result.version(row, 0)?));
        }
        let mut file: serde_json::Value = serde_json::from_str(&cell.to_json()?)?;
        let other = result.cell((row + 1) % 3, 1)?.to_json()?;
        let other: serde_json::Value = serde_json::from_str(&other)?;
        file["version"] = other["version"].clone();
        let moved = SignedCell::from_json(&file.to_string())?;
        assert!(moved.verify(&key, None).is_err());
    }
    let cell = result.cell(1, 2)?;
    assert_eq!(cell.version(), None);
    SignedCell::from_json(&cell.to_json()?)?.verify(&key, None)?;
    Ok(())
}

/// No bit of a cell's compact form can be another one.
#[test]
fn every_flipped_bit_of_a_cell_is_noticed() -> Done {
    let key = public()?;
    for cell in [
        signed()?.cell(1, 1)?,
        from_ledger()?.cell(1, 1)?,
        from_ledger()?.cell(1, 2)?,
    ] {
        let bytes = cell.to_bytes();
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 0x10;
            let verified = SignedCell::from_bytes(&changed).and_then(|c| c.verify(&key, None));
            assert!(verified.is_err(), "byte {place}");
        }
    }
    Ok(())
}

/// Results of another shape than their cells, and counts that no file can have: refused
/// before memory is taken.
#[test]
fn shapes() -> Done {
    let sign = |header, cells: Vec<Cell>| {
        let cells = cells.into_iter().collect();
        SignedResult::sign(header, cells, Vec::new(), [0; 32], &key()?)
    };
    let rows = |rows| Header { rows, ..header() };
    assert_eq!(sign(rows(2), cells()).err(), Some(Error::Range));
    assert_eq!(sign(rows(u64::MAX), cells()).err(), Some(Error::Range));
    let none = Header {
        columns: Vec::new(),
        ..rows(5)
    };
    assert!(matches!(sign(none, Vec::new()), Err(Error::Malformed(_))));
    let empty = sign(rows(0), Vec::new())?;
    SignedResult::from_bytes(&empty.to_bytes())?.verify(&public()?, Some(NONCE))?;
    let mut huge = signed()?.to_bytes();
    let count = huge.len() - cells().iter().flatten().map(|c| c.len() + 8).sum::<usize>() - 9 - 8;
    huge[count..count + 8].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(SignedResult::from_bytes(&huge).is_err());
    Ok(())
}

proptest! {
    /// Any bytes are an error or a result, never a panic.
    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200), cut in 0..400_usize) {
        let _ = SignedResult::from_bytes(&bytes);
        let _ = SignedCell::from_bytes(&bytes);
        let whole = signed().map(|r| r.to_bytes()).unwrap_or_default();
        let mut text = whole.get(..cut.min(whole.len())).unwrap_or_default().to_vec();
        text.extend_from_slice(&bytes);
        let _ = SignedResult::from_bytes(&text);
    }
}
