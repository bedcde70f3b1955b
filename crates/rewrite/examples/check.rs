//! Analyses statements (separated by zero bytes) from a file against a schema
//! loaded by `psql` (rows of the schema queries): a tool for us.
fn main() {
    let mut args = std::env::args().skip(1);
    let rows = std::fs::read_to_string(args.next().expect("rows")).expect("rows");
    let statements = std::fs::read_to_string(args.next().expect("statements")).expect("statements");
    let results: Vec<Vec<rewrite::Row>> = rows
        .split("\u{1d}\n")
        .take(5)
        .map(|part| {
            let rows = part.split("\u{1e}").filter(|r| !r.is_empty());
            rows.map(|r| {
                r.split("\u{1c}")
                    .map(|f| (f != "\u{1b}").then(|| f.to_owned()))
                    .collect()
            })
            .collect()
        })
        .collect();
    let schema = rewrite::Schema::from_rows(&results).expect("schema");
    println!(
        "{:?} {:?}",
        schema.search_path(),
        schema
            .protected_relations()
            .map(|r| &r.name)
            .collect::<Vec<_>>()
    );
    for sql in statements.split('\0') {
        match rewrite::analyze(sql, &schema) {
            Ok(list) if list.iter().all(|s| s.edits.is_empty()) => {}
            other => println!("---\n{sql}\n=> {other:?}"),
        }
    }
}
