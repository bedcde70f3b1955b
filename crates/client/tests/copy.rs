//! COPY data: the protected fields, and only they, are replaced; wherever the
//! stream is split.
mod common;

use std::collections::HashMap;

use client::copy::CopyStream;
use common::{Keeper, session};
use contract::TypeCode;
use envelope::format;
use proptest::prelude::*;
use rewrite::{
    ColumnType, CopyColumn, CopyPlan, Direction, Endpoint, Format, Header, Options, Source,
};

impl Keeper {
    /// Whether an envelope text is a batch.
    pub fn is_batch(&self, envelope: &[u8]) -> bool {
        let mut binary = Vec::new();
        format::from_text(envelope, &mut binary).unwrap();
        envelope::Envelope::parse(&binary).unwrap().count.is_some()
    }

    /// The texts in a client's batch.
    pub fn open_batch(&self, envelope: &[u8]) -> Vec<String> {
        let mut binary = Vec::new();
        format::from_text(envelope, &mut binary).unwrap();
        let mut out = Vec::new();
        let seen = self.opener.open(&binary, &mut out).unwrap();
        let mut values = Vec::new();
        let mut rest = out.as_slice();
        while let [length, tail @ ..] = rest {
            // Test values are shorter than 128 bytes.
            let (value, tail) = tail.split_at(*length as usize);
            values.push(String::from_utf8(value.to_vec()).unwrap());
            rest = tail;
        }
        assert_eq!(seen.count, Some(values.len() as u32));
        values
    }
}

/// Columns: plain, protected text, plain, protected text.
fn plan(direction: Direction, format: Format) -> CopyPlan {
    let column = |name: &str, protected: bool| CopyColumn {
        name: name.into(),
        protected,
        ty: Some(if protected {
            ColumnType::Enc(TypeCode::Text)
        } else {
            ColumnType::Plain(25, "text".into())
        }),
        typmod: -1,
    };
    CopyPlan {
        direction,
        endpoint: Endpoint::Client,
        source: Source::Query,
        columns: vec![
            column("a", false),
            column("b", true),
            column("c", false),
            column("d", true),
        ],
        format,
        options: Options::defaults(format),
    }
}

fn run(plan: &CopyPlan, session: &client::Session, pieces: &[&[u8]]) -> Result<Vec<u8>, String> {
    let mut stream = CopyStream::new(plan).unwrap().unwrap();
    let mut out = Vec::new();
    for piece in pieces {
        stream
            .push(session, piece, &mut out)
            .map_err(|f| f.message)?;
    }
    stream.finish(session, &mut out).map_err(|f| f.message)?;
    Ok(out)
}

/// Fields of lines in text format, without regard to escapes (there are none).
fn simple_fields(out: &[u8], delimiter: char) -> Vec<Vec<String>> {
    std::str::from_utf8(out)
        .unwrap()
        .lines()
        .map(|l| l.split(delimiter).map(str::to_owned).collect())
        .collect()
}

/// The values of the columns' batches.
type Batches = HashMap<usize, Vec<String>>;

/// The value of a field to the server: the first one of a batch, or one of a batch.
fn opened(keeper: &Keeper, batches: &mut Batches, column: usize, field: &str) -> String {
    if let Some(number) = field.strip_prefix('@') {
        return batches[&column][number.parse::<usize>().unwrap()].clone();
    }
    let values = keeper.open_batch(field.as_bytes());
    let first = values[0].clone();
    batches.insert(column, values);
    first
}

#[test]
fn text_from_client() {
    let (session, keeper) = session();
    let data = b"1\tse\\tcr\\\\et\\n\tx\\ty\t\\N\n2\t\\x41\\101\t\\N\t\n\\.\n";
    let out = run(&plan(Direction::From, Format::Text), &session, &[data]).unwrap();
    let rows = simple_fields(&out, '\t');
    let all = &mut Batches::new();
    assert_eq!(rows[0][0], "1");
    assert_eq!(opened(&keeper, all, 1, &rows[0][1]), "se\tcr\\et\n");
    assert_eq!(rows[0][2..], ["x\\ty", "\\N"]);
    assert_eq!(rows[1][1], "@1");
    assert_eq!(opened(&keeper, all, 1, &rows[1][1]), "AA");
    assert_eq!(rows[1][2], "\\N");
    assert_eq!(opened(&keeper, all, 3, &rows[1][3]), "");
    assert_eq!(rows[2], ["\\."]);
}

/// Fields beyond the plan would reach the server as they are.
#[test]
fn rows_must_have_the_columns_of_the_plan() {
    let (session, _) = session();
    for format in [Format::Text, Format::Csv] {
        let mut plan = plan(Direction::From, format);
        plan.options.delimiter = b',';
        for data in ["1,2,3\n", "1,2,3,4,5\n", "\n"] {
            let told = run(&plan, &session, &[data.as_bytes()]).unwrap_err();
            assert!(told.contains("data"), "{told}");
        }
    }
}

#[test]
fn csv_from_client() {
    let (session, keeper) = session();
    let mut plan = plan(Direction::From, Format::Csv);
    plan.options.header = Header::Yes;
    let data = "a,b,c,d\r\n1,\"se\"\"cr,\r\net\",\"x,y\",\r\n2,\"\",,ab\"c,\"d\r\n";
    let out = run(&plan, &session, &[data.as_bytes()]).unwrap();
    let text = String::from_utf8(out).unwrap();
    let lines: Vec<&str> = text.split("\r\n").collect();
    assert_eq!(lines[0], "a,b,c,d");
    let first: Vec<&str> = lines[1].splitn(3, ',').collect();
    let all = &mut Batches::new();
    assert_eq!(opened(&keeper, all, 1, first[1]), "se\"cr,\r\net");
    assert_eq!(first[2], "\"x,y\",");
    let second: Vec<&str> = lines[2].split(',').collect();
    assert_eq!(opened(&keeper, all, 1, second[1]), "");
    assert_eq!(opened(&keeper, all, 3, second[3]), "abc,d");
}

#[test]
fn csv_nulls() {
    let (session, keeper) = session();
    let mut plan = plan(Direction::From, Format::Csv);
    plan.options.null = "nil".into();
    plan.options.force_null = vec![1];
    plan.options.force_not_null = vec![3];
    let out = run(&plan, &session, &[b"1,\"nil\",x,nil\n"]).unwrap();
    let row = &simple_fields(&out, ',')[0];
    assert_eq!(row[1], "\"nil\"");
    assert_eq!(opened(&keeper, &mut Batches::new(), 3, &row[3]), "nil");
}

/// Every value arrives at its row, over the ends of batches; one that its type does not
/// take, or that is long, goes alone; no reference is what stands for NULL.
#[test]
fn batches() {
    let (session, keeper) = session();
    let mut plan = plan(Direction::From, Format::Text);
    plan.columns[1].ty = Some(ColumnType::Enc(TypeCode::Int4));
    plan.options.null = "@9".into();
    let value = |row: usize| match row % 100 {
        7 => "bad".to_owned(),
        8 => "@9".to_owned(),
        _ => row.to_string(),
    };
    let long = |row: usize| {
        if row % 1000 == 999 {
            "z".repeat(70_000)
        } else {
            format!("v{row}")
        }
    };
    let mut data = String::new();
    for row in 0..3000 {
        data += &format!("{row}\t{}\tx\t{}\n", value(row), long(row));
    }
    let out = run(&plan, &session, &[data.as_bytes()]).unwrap();
    let rows = simple_fields(&out, '\t');
    let mut all = Batches::new();
    let mut alone = 0;
    for (row, fields) in rows.iter().enumerate() {
        for (column, expected) in [(1, value(row)), (3, long(row))] {
            let field = &fields[column];
            let found = match field.as_str() {
                "@9" => "@9".to_owned(),
                _ if field.starts_with("cfd1.") && !keeper.is_batch(field.as_bytes()) => {
                    alone += 1;
                    keeper.open_text(field.as_bytes())
                }
                _ => opened(&keeper, &mut all, column, field),
            };
            assert_eq!(found, expected, "row {row}");
        }
    }
    // Thirty bad ones, three long ones.
    assert_eq!(alone, 33);
    let envelopes = out.windows(5).filter(|w| w == b"cfd1.").count();
    assert_eq!(envelopes, alone + 6);
}

/// A delimiter that envelopes may contain must not split them.
#[test]
fn odd_delimiters() {
    let (session, _) = session();
    for format in [Format::Text, Format::Csv] {
        for delimiter in [b'A', b'-', b'_'] {
            let mut from = plan(Direction::From, format);
            from.options.delimiter = delimiter;
            for n in 0..20 {
                let d = delimiter as char;
                let data = format!("1{d}zz{n}{d}2{d}z{n}\n");
                let out = run(&from, &session, &[data.as_bytes()]).unwrap();
                // A second pass finds the same number of fields.
                run(&from, &session, &[&out]).unwrap();
            }
        }
    }
}

#[test]
fn text_to_client() {
    let (session, keeper) = session();
    let (b, d) = (keeper.seal_text("se\tc\\r\n"), keeper.seal_text("\\N"));
    let data = format!("1\t{b}\tx\t\\N\n2\t\\N\ty\\t\t{d}\n");
    let out = run(
        &plan(Direction::To, Format::Text),
        &session,
        &[data.as_bytes()],
    )
    .unwrap();
    assert_eq!(out, b"1\tse\\tc\\\\r\\n\tx\t\\N\n2\t\\N\ty\\t\t\\\\N\n");
}

#[test]
fn csv_to_client() {
    let (session, keeper) = session();
    let (b, d) = (keeper.seal_text("a\"b,c"), keeper.seal_text(""));
    let data = format!("1,{b},x,\n2,,\"y\",{d}\n");
    let out = run(
        &plan(Direction::To, Format::Csv),
        &session,
        &[data.as_bytes()],
    )
    .unwrap();
    assert_eq!(out, b"1,\"a\"\"b,c\",x,\n2,,\"y\",\"\"\n");
}

fn binary(rows: &[Vec<Option<Vec<u8>>>]) -> Vec<u8> {
    let mut out = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0".to_vec();
    for row in rows {
        out.extend_from_slice(&(row.len() as i16).to_be_bytes());
        for field in row {
            match field {
                None => out.extend_from_slice(&(-1_i32).to_be_bytes()),
                Some(field) => {
                    out.extend_from_slice(&(field.len() as i32).to_be_bytes());
                    out.extend_from_slice(field);
                }
            }
        }
    }
    out.extend_from_slice(&(-1_i16).to_be_bytes());
    out
}

#[test]
fn binary_to_client() {
    let (session, keeper) = session();
    let mut sealed = Vec::new();
    keeper
        .sealer
        .seal(TypeCode::Text as u8, 0, b"secret", &mut sealed)
        .unwrap();
    let row = |value: &[u8]| vec![Some(b"1".to_vec()), Some(value.to_vec()), None, None];
    let out = run(
        &plan(Direction::To, Format::Binary),
        &session,
        &[&binary(&[row(&sealed)])],
    );
    assert_eq!(out.unwrap(), binary(&[row(b"secret")]));
}

#[test]
fn binary_from_client_and_bad_data() {
    let (session, keeper) = session();
    let plan = plan(Direction::From, Format::Binary);
    let rows = vec![vec![
        Some(b"1".to_vec()),
        Some(b"secret".to_vec()),
        None,
        Some(vec![]),
    ]];
    let data = binary(&rows);
    let out = run(&plan, &session, &[&data]).unwrap();
    assert!(!out.windows(6).any(|w| w == b"secret"));
    // Header, field count, field "1", length.
    let length = i32::from_be_bytes(out[26..30].try_into().unwrap()) as usize;
    let mut plain = Vec::new();
    keeper
        .opener
        .open(&out[30..30 + length], &mut plain)
        .unwrap();
    assert_eq!(plain, b"\x06secret");
    for end in 1..data.len() - 2 {
        let told = run(&plan, &session, &[&data[..end]]);
        assert!(told.is_err() || end == 19, "{end}");
    }
    let wide = binary(&[vec![None; 5]]);
    assert!(run(&plan, &session, &[&wide]).is_err());
}

/// What the server sends must be the session's envelopes.
#[test]
fn foreign_envelopes_are_refused() {
    let (session, _) = session();
    let (_, other) = common::session();
    let data = format!("1\t{}\tx\t\\N\n", other.seal_text("x"));
    let plan = plan(Direction::To, Format::Text);
    assert!(run(&plan, &session, &[data.as_bytes()]).is_err());
    assert!(run(&plan, &session, &[b"1\tplain\tx\t\\N\n"]).is_err());
}

fn field() -> impl Strategy<Value = Option<String>> {
    prop_oneof![
        1 => Just(None),
        6 => "[a-z\\\\\t\n\r\",.N ]{0,12}".prop_map(Some),
    ]
}

/// Writes rows as PostgreSQL's COPY TO does, with a map for protected fields.
fn write(rows: &[Vec<Option<String>>], csv: bool) -> Vec<u8> {
    let mut out = String::new();
    for row in rows {
        let fields: Vec<String> = row
            .iter()
            .map(|field| match (field, csv) {
                (None, false) => "\\N".to_owned(),
                (None, true) => String::new(),
                (Some(v), false) => v
                    .replace('\\', "\\\\")
                    .replace('\t', "\\t")
                    .replace('\n', "\\n")
                    .replace('\r', "\\r"),
                (Some(v), true) if v.is_empty() || v.contains([',', '"', '\n', '\r']) => {
                    format!("\"{}\"", v.replace('"', "\"\""))
                }
                (Some(v), true) => v.clone(),
            })
            .collect();
        out.push_str(&fields.join(if csv { "," } else { "\t" }));
        out.push('\n');
    }
    out.into_bytes()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Sealed rows, opened by the keeper's end, are the rows; split anywhere.
    #[test]
    fn splits_do_not_matter(
        rows in proptest::collection::vec(proptest::collection::vec(field(), 4), 1..6),
        csv in any::<bool>(),
        size in 1_usize..40,
    ) {
        let (session, keeper) = session();
        // What the server would send: protected fields in the keeper's envelopes.
        let sealed: Vec<Vec<Option<String>>> = rows
            .iter()
            .map(|row| row.iter().enumerate().map(|(at, f)| match f {
                Some(v) if at % 2 == 1 => Some(keeper.seal_text(v)),
                other => other.clone(),
            }).collect())
            .collect();
        let format = if csv { Format::Csv } else { Format::Text };
        let data = write(&sealed, csv);
        let pieces: Vec<&[u8]> = data.chunks(size).collect();
        let out = run(&plan(Direction::To, format), &session, &pieces).unwrap();
        let expected = write(&rows, csv);
        prop_assert_eq!(String::from_utf8(out).unwrap(), String::from_utf8(expected.clone()).unwrap());

        // And to the server: whole or split, the same envelopes come out (but for
        // nonces, so compare what the keeper opens).
        let pieces: Vec<&[u8]> = expected.chunks(size).collect();
        let up = run(&plan(Direction::From, format), &session, &pieces).unwrap();
        let mut to = plan(Direction::To, format);
        for column in &mut to.columns {
            column.ty = Some(ColumnType::Plain(25, "text".into()));
            column.protected = false;
        }
        prop_assert!(CopyStream::new(&to).unwrap().is_none());
        for row in &rows {
            for value in [&row[1], &row[3]].into_iter().flatten() {
                if value.len() > 8 {
                    prop_assert!(!up.windows(value.len()).any(|w| w == value.as_bytes())
                        || [&row[0], &row[2]].into_iter().flatten().any(|p| p.contains(value.as_str())));
                }
            }
        }
    }

    /// Any bytes are survived, in any format.
    #[test]
    fn any_bytes(data in proptest::collection::vec(any::<u8>(), 0..200), size in 1_usize..20) {
        let (session, _) = session();
        let pieces: Vec<&[u8]> = data.chunks(size).collect();
        for format in [Format::Text, Format::Csv, Format::Binary] {
            let _ = run(&plan(Direction::From, format), &session, &pieces);
            let _ = run(&plan(Direction::To, format), &session, &pieces);
        }
    }
}
