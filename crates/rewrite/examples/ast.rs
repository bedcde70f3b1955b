//! Prints the parse tree of the statement in the first argument (a tool for us).
fn main() {
    let sql = std::env::args().nth(1).unwrap_or_default();
    match pg_query::parse(&sql, 0) {
        Ok(tree) => println!("{:#?}", tree.protobuf),
        Err(e) => println!("{e:?}"),
    }
}
