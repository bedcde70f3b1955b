//! Writes the generated files, or with `--check` says which are stale.

use std::process::ExitCode;

fn main() -> ExitCode {
    let check = std::env::args().any(|a| a == "--check");
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut failed = false;
    for file in catalog::generate::all() {
        let path = root.join(file.path);
        let current = std::fs::read_to_string(&path).unwrap_or_default();
        if current == file.text {
            continue;
        }
        if check {
            eprintln!("{} is stale: run `make generate`", file.path);
            failed = true;
            continue;
        }
        let written = path
            .parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| std::fs::write(&path, file.text));
        match written {
            Ok(()) => println!("wrote {}", file.path),
            Err(e) => {
                eprintln!("cannot write {}: {e}", file.path);
                failed = true;
            }
        }
    }
    if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}
