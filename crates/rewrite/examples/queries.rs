//! Prints the queries that load the schema, for psql (a tool for us).
fn main() {
    for query in rewrite::SCHEMA_QUERIES {
        println!("{query};");
    }
}
