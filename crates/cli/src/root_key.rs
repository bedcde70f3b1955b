//! `confide root-key`: creates, checks and rewraps the keeper's root key.
//!
//! No secret is an argument: sources say where secrets are read from.

use broker::Secret;
use clap::{Args, Subcommand};
use rootkey::{Error, Fetched, RootKeyFile, Source};
use std::path::{Path, PathBuf};

#[derive(Subcommand)]
pub enum Command {
    /// Create a root key. The keeper does the same at its first start.
    Create {
        #[command(flatten)]
        file: File,
        /// The source that wraps it.
        #[arg(long)]
        source: String,
    },
    /// Print the root key's name and the kind of its source.
    Show {
        #[command(flatten)]
        file: File,
    },
    /// Unwrap the root key and print its name.
    Check {
        #[command(flatten)]
        file: File,
        /// The source that wraps it.
        #[arg(long)]
        source: String,
    },
    /// Wrap the root key by another source. No data is rewritten; change root_key_source
    /// afterwards.
    Rotate {
        #[command(flatten)]
        file: File,
        /// The present source.
        #[arg(long, value_name = "SOURCE")]
        from: String,
        /// The new source.
        #[arg(long, value_name = "SOURCE")]
        to: String,
    },
}

#[derive(Args)]
pub struct File {
    /// The root key's file.
    #[arg(long, value_name = "FILE")]
    file: PathBuf,
}

pub fn run(command: Command) -> Result<String, Error> {
    match command {
        Command::Create { file, source } => {
            let file = RootKeyFile::new(file.file);
            let root = file.create(&*named(&file, &source)?)?;
            Ok(format!("{} made", root.name()))
        }
        Command::Show { file } => {
            let (name, kind) = RootKeyFile::new(file.file).describe()?;
            Ok(format!("{name} wrapped by {kind}"))
        }
        Command::Check { file, source } => {
            let file = RootKeyFile::new(file.file);
            let root = file.open(&*named(&file, &source)?)?;
            Ok(format!("{} opens", root.name()))
        }
        Command::Rotate { file, from, to } => {
            let file = RootKeyFile::new(file.file);
            let (from, to) = (named(&file, &from)?, named(&file, &to)?);
            let root = file.rotate(&*from, &*to)?;
            Ok(format!("{} is wrapped by {} now", root.name(), to.name()))
        }
    }
}

/// Parses a source. In addition to those of keepers there is `broker-secret:FILE?name=NAME`, the
/// wrapping key that a broker with this secret releases, for whoever has that secret.
fn named(file: &RootKeyFile, text: &str) -> Result<Source, Error> {
    let Some(rest) = text.strip_prefix("broker-secret:") else {
        return file.source(text);
    };
    let wrong = |what: &str| Error::Source {
        text: text.to_owned(),
        what: what.to_owned(),
    };
    let parts = rest.rsplit_once("?name=");
    let (path, name) = parts.ok_or_else(|| wrong("expected broker-secret:FILE?name=NAME"))?;
    let secret = Secret::read(Path::new(path)).map_err(|what| wrong(&what))?;
    let key = secret.wrapping_key(name).map_err(|what| wrong(&what))?;
    let fetch = move || Ok(key.clone());
    let source = Fetched::broker(format!("the broker's key \"{name}\""), Box::new(fetch));
    Ok(Box::new(source))
}
