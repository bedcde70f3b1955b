//! Adding a message is one entry in the table, and its two handlers; adding a function is one
//! entry, and its implementation.
//!
//! Mechanism of the first: a table with one more kind goes through the macros that make Rust's types, and
//! through the generator that makes C's; a handler in Rust and a sender in C are written
//! against what comes out, and talk to each other. Right answer: both compile, and each reads
//! what the other wrote. With a bug a new message needs more than its entry: a size, an offset
//! or a code that somebody keeps by hand.

use contract::codec::{Each, Fixed, List, Malformed, Part, Reader, Sink};
use contract::describe::{Field, Form, Message, Structure, Tail};
use contract::message::table::MESSAGES as OTHERS;
use contract::{Flag, Named, Op, TypeCode};
use std::path::{Path, PathBuf};
use std::process::Command;

contract::structure! {
    /// A name of something that is counted.
    Counted<'a> {
        ;
        /// The name.
        name: &'a str [],
    }
}

contract::messages! {
    /// Counts the values of a relation that are of some types.
    Census = 127, body<'a> {
        /// OID of the relation.
        relation: u32,
        /// Number of types.
        types: u32;
        /// The types.
        list: List<'a, TypeCode> [types],
        /// What to call the counts.
        names: Each<'a, Counted<'a>> [],
    } answer<'a> {
        /// Number of counts.
        count: u64;
        /// The counts.
        counts: List<'a, u64> [count],
    };
}

/// The handler: for each type a count, here its code and the length of its name.
fn census(request: &[u8]) -> Result<Vec<u8>, Malformed> {
    let request = body::Census::decode(request)?;
    let mut counts = Vec::new();
    for (t, counted) in request.list.iter().zip(request.names.iter()) {
        let made = u64::from(request.relation) + t as u64 + counted.name.len() as u64;
        made.put(&mut counts);
    }
    let mut out = Vec::new();
    let counts = List::new(&counts);
    let count = counts.len() as u64;
    answer::Census { count, counts }.put(&mut out);
    Ok(out)
}

const SENDER: &str = r#"
#include <stdio.h>
#include "wire/wire.h"

/* Writes a request; with an argument: reads the answer, and says what it holds. */
int
main(int count, char **arguments)
{
	static char bytes[1000];
	CfdReadCensusAnswer read;
	CfdWireCensus body = {.relation = 1000,.types = 2};
	const uint8_t types[] = {CFD_TYPE_INT4, CFD_TYPE_TEXT};

	(void) arguments;
	if (count == 1)
	{
		fwrite(&body, sizeof(body), 1, stdout);
		fwrite(types, sizeof(types), 1, stdout);
		fwrite("ab\0cde", 7, 1, stdout);
		return CFD_KIND_CENSUS != 127;
	}
	if (!cfd_decode_census_answer(bytes, fread(bytes, 1, sizeof(bytes), stdin), &read))
		return 1;
	for (uint64_t i = 0; i < read.counts_count; i++)
		printf("%d ", (int) read.counts[i]);
	return 0;
}
"#;

/// The extension's wire.h, with headers that were made of the longer table.
fn compile(dir: &Path) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let all: Vec<Message> = OTHERS.iter().chain(MESSAGES).copied().collect();
    for file in catalog::generate::headers(&all) {
        let path = dir.join(file.path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, file.text).unwrap();
    }
    let wire = "extension/src/wire/wire.h";
    std::fs::create_dir_all(dir.join("extension/src/wire")).unwrap();
    std::fs::copy(root.join(wire), dir.join(wire)).unwrap();
    std::fs::write(dir.join("sender.c"), SENDER).unwrap();
    let program = dir.join("sender");
    let compiler = std::env::var("CC").unwrap_or("cc".to_owned());
    let done = Command::new(compiler)
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(dir.join("extension/src"))
        .arg(dir.join("sender.c"))
        .arg("-o")
        .arg(&program)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{said}");
    program
}

#[test]
fn a_message_is_one_entry_and_two_handlers() {
    let dir = std::env::temp_dir().join(format!("confide-one-entry-{}", std::process::id()));
    let program = compile(&dir);
    let request = Command::new(&program).output().unwrap();
    assert!(request.status.success());
    let answer = census(&request.stdout).unwrap();
    let cut = &request.stdout[..request.stdout.len() - 1];
    assert!(census(cut).is_err());
    std::fs::write(dir.join("answer"), answer).unwrap();
    let input = std::fs::File::open(dir.join("answer")).unwrap();
    let told = Command::new(&program).arg("read").stdin(input).output();
    let told = told.unwrap();
    assert!(told.status.success());
    assert_eq!(String::from_utf8_lossy(&told.stdout), "1005 1011 ");
    assert!(Kind::Census.is_answered() && Kind::from_u16(127) == Some(Kind::Census));
    std::fs::remove_dir_all(dir).unwrap();
}

/// Adding a function is one entry. Mechanism: the table of functions with one more entry goes
/// through all generators. Right answer: C wrapper, SQL function, documentation and the tests
/// against plain PostgreSQL have it, and lose nothing. With a bug one of them has a list of its own.
#[test]
fn a_function_is_one_entry() {
    let entry = Named {
        op: Op::Reverse,
        names: &["backwards", "mirrored"],
        args: &[TypeCode::Bytea],
        ret: Some(TypeCode::Bytea),
        flags: &[],
    };
    let more: Vec<Named> = Op::FUNCTIONS.iter().copied().chain([entry]).collect();
    let before = catalog::generate::functions(&catalog::signatures());
    let after = catalog::generate::functions(&catalog::signatures_with(&more));
    let wanted = [
        ("functions.inc", "CFD_EVAL(reverse_bytea, ", 1),
        (
            "generated.sql",
            "(enc_bytea) RETURNS enc_bytea AS 'MODULE_PATHNAME', 'cfd_reverse_bytea'",
            3,
        ),
        ("operators.md", "(bytea)` | bytea |", 2),
        ("catalog.json", "\"args\": [\"bytea\"]", 2),
    ];
    for ((before, after), (file, holds, lines)) in before.iter().zip(&after).zip(wanted) {
        assert!(after.path.ends_with(file));
        let count = |text: &str| text.matches(holds).count();
        assert_eq!(count(&after.text), count(&before.text) + lines, "{file}");
    }
    for name in entry.names {
        assert!(
            after[1]
                .text
                .contains(&format!("pg_catalog.\"{name}\"(enc_bytea)"))
        );
    }
}

/// So is a function whose result may be NULL, and whose name stays PostgreSQL's alone. Right answer: its
/// wrapper asks whether the result is NULL, SQL has it by the name of its operation, and the documentation
/// and the tests by PostgreSQL's. With a bug that is said in another list.
#[test]
fn a_function_with_more_to_say_is_one_entry() {
    let entry = Named {
        op: Op::MinScale,
        names: &["fineness"],
        args: &[TypeCode::Int8],
        ret: Some(TypeCode::Int4),
        flags: &[Flag::Nullable, Flag::Renamed],
    };
    let all = |more: &[Named]| {
        let table: Vec<Named> = Op::FUNCTIONS.iter().chain(more).copied().collect();
        catalog::generate::functions(&catalog::signatures_with(&table))
    };
    let plainly = Named {
        flags: &[],
        ..entry
    };
    let (after, without) = (all(&[entry]), all(&[plainly]));
    assert!(after[0].text.contains("CFD_NULLABLE(minscale_int8, "));
    assert!(without[0].text.contains("CFD_EVAL(minscale_int8, "));
    let sql = |name: &str| format!("FUNCTION pg_catalog.{name}(enc_int8) RETURNS enc_int4");
    assert!(after[1].text.contains(&sql("enc_minscale")));
    assert!(!after[1].text.contains("fineness"));
    assert!(without[1].text.contains(&sql("\"fineness\"")));
    assert!(after[2].text.contains("`fineness("));
    assert!(
        after[3]
            .text
            .contains("\"name\": \"fineness\", \"args\": [\"int8\"]")
    );
}
