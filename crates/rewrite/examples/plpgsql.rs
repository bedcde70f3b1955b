fn main() {
    println!("{}", pg_query::parse_plpgsql(&std::env::args().nth(1).unwrap()).unwrap());
}
