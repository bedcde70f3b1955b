//! Deterministic cells.

use encodings::det::{Det, OVERHEAD};
use encodings::{ColumnKeys, Error};

type Done = Result<(), Box<dyn std::error::Error>>;

fn det(name: [&str; 3], epoch: u32) -> Result<Det, Error> {
    Det::new(&ColumnKeys::new(&[7; 32], name, epoch))
}

/// Equal values are equal cells in a column and type, and different everywhere else: also
/// where names only together have the same letters.
#[test]
fn equal_where_they_may_be() -> Done {
    let columns = [
        det(["public", "emp", "name"], 0)?,
        det(["public", "empn", "ame"], 0)?,
        det(["publi", "cemp", "name"], 0)?,
        det(["public", "emp", "name"], 1)?,
    ];
    let mut cells = Vec::new();
    for column in &columns {
        for type_code in [1, 2] {
            let cell = column.seal(type_code, b"Ann Miller")?;
            assert_eq!(cell, column.seal(type_code, b"Ann Miller")?);
            assert_eq!(cell.len(), OVERHEAD + 10);
            assert_eq!(column.open(type_code, &cell)?, b"Ann Miller");
            assert!(!cells.contains(&cell));
            cells.push(cell);
        }
    }
    let first = columns.first().ok_or("no column")?;
    for cell in cells.iter().skip(1) {
        assert_eq!(first.open(1, cell), Err(Error::NotAuthentic));
    }
    assert_ne!(first.seal(1, b"")?, first.seal(2, b"")?);
    Ok(())
}

/// No bit of a cell can be another one.
#[test]
fn changes_are_noticed() -> Done {
    let det = det(["public", "emp", "name"], 0)?;
    let cell = det.seal(1, b"Ann")?;
    for place in 0..cell.len() * 8 {
        let mut changed = cell.clone();
        changed[place / 8] ^= 1 << (place % 8);
        assert_eq!(det.open(1, &changed), Err(Error::NotAuthentic));
    }
    assert_eq!(det.open(1, &cell[1..]), Err(Error::NotAuthentic));
    assert_eq!(det.open(1, b""), Err(Error::NotAuthentic));
    Ok(())
}
