//! A keeper with operators that have bugs of known kinds (crate `seeded`), for tests of logs of
//! calls: `cargo build -p keeper --features seeded --example seeded_keeper`. Nothing installs it.
#![forbid(unsafe_code)]

#[path = "../src/main.rs"]
mod daemon;

fn main() -> std::process::ExitCode {
    daemon::main()
}
