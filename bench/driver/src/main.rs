//! The driver of benchmarks: loads and runs, and prints figures as one line of JSON.
//! What is compared with what is decided by the scripts in `bench/`.
#![allow(missing_docs)]
mod commits;
mod load;
mod random;
mod session;
mod sysbench;
mod tpcc;
mod waits;
mod wire;

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, Parser, Subcommand};
use serde_json::{Value as Json, json};

use session::{Keys, Session};
use wire::{Address, Result};

#[derive(Parser)]
struct Arguments {
    /// Host and port of PostgreSQL or of the proxy
    #[arg(long)]
    host: String,
    #[arg(long, default_value = "app")]
    user: String,
    #[arg(long, env = "PGPASSWORD", hide_env_values = true)]
    password: String,
    #[arg(long, default_value = "app")]
    database: String,
    #[arg(long)]
    schema: String,
    /// With both keys: protected by the client library, in this process
    #[arg(long, requires = "keeper_key")]
    client_key: Option<PathBuf>,
    #[arg(long)]
    keeper_key: Option<String>,
    #[command(subcommand)]
    task: Task,
}

#[derive(Args)]
struct Load {
    #[arg(long, default_value_t = 1)]
    clients: usize,
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Args)]
struct SysbenchWaits {
    #[arg(long)]
    workload: sysbench::Workload,
    #[arg(long)]
    distribution: sysbench::Distribution,
    #[arg(long)]
    rows: i64,
    /// Transactions that are counted; as many run before
    #[arg(long)]
    transactions: u64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Subcommand)]
enum Task {
    /// Makes and fills TPC-C's tables
    TpccLoad {
        #[arg(long)]
        policy: tpcc::schema::Policy,
        #[arg(long)]
        warehouses: i64,
        /// All tables are ledger tables
        #[arg(long)]
        ledger: bool,
    },
    /// Runs TPC-C
    Tpcc {
        #[arg(long)]
        warehouses: i64,
        #[command(flatten)]
        load: Load,
    },
    /// Counts what the statements of TPC-C wait for
    TpccWaits {
        #[arg(long)]
        warehouses: i64,
        /// Transactions that are counted; as many run before
        #[arg(long)]
        transactions: u64,
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Runs sysbench's statements
    Sysbench {
        #[arg(long)]
        workload: sysbench::Workload,
        #[arg(long)]
        distribution: sysbench::Distribution,
        #[arg(long)]
        rows: i64,
        #[command(flatten)]
        load: Load,
    },
    /// Counts what the statements of sysbench wait for
    SysbenchWaits(SysbenchWaits),
    /// Commits single rows
    Commits {
        #[arg(long)]
        kind: commits::Kind,
        #[arg(long)]
        rows: i64,
        /// Setting of synchronous_commit
        #[arg(long, default_value = "on")]
        synchronous: String,
        #[command(flatten)]
        load: Load,
    },
    /// Loads a file of TPC-H
    Copy {
        #[arg(long)]
        table: String,
        #[arg(long)]
        file: PathBuf,
    },
}

fn main() -> std::process::ExitCode {
    match run(Arguments::parse()) {
        Ok(figures) => {
            println!("{figures}");
            std::process::ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("bench-driver: {} {}", error.sqlstate, error.message);
            std::process::ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> Result<Json> {
    let address = Address {
        host: arguments.host,
        user: arguments.user,
        password: arguments.password,
        database: arguments.database,
        schema: arguments.schema,
    };
    let keys = match (&arguments.client_key, &arguments.keeper_key) {
        (Some(client), Some(keeper)) => Some(Keys::read(client, keeper)?),
        _ => None,
    };
    let open = || Session::open(&address, keys.as_ref());
    match arguments.task {
        Task::TpccLoad {
            policy,
            warehouses,
            ledger,
        } => load_tpcc(&mut open()?, policy, warehouses, ledger),
        Task::Tpcc {
            warehouses,
            load: l,
        } => load::run(l.clients, l.seconds, |number| {
            let mut terminal =
                tpcc::transactions::Terminal::new(open()?, number, warehouses, l.seed);
            Ok(Box::new(move || terminal.next()))
        }),
        Task::TpccWaits {
            warehouses,
            transactions,
            seed,
        } => waits_of_tpcc(open()?, warehouses, transactions, seed),
        Task::Sysbench {
            workload,
            distribution,
            rows,
            load: l,
        } => load::run(l.clients, l.seconds, |number| {
            let mut client = sysbench::Client::new(open()?, number, rows, distribution, l.seed);
            Ok(Box::new(move || client.next(workload)))
        }),
        Task::SysbenchWaits(task) => waits_of_sysbench(open()?, &task),
        Task::Commits {
            kind,
            rows,
            synchronous,
            load: l,
        } => load::run(l.clients, l.seconds, |number| {
            let mut session = open()?;
            session.simple(&format!("SET synchronous_commit = {synchronous}"))?;
            let mut random = random::Random::new(l.seed + number as u64);
            Ok(Box::new(move || {
                commits::one(&mut session, &mut random, kind, rows).map(|()| "commit")
            }))
        }),
        Task::Copy { table, file } => copy(&mut open()?, &table, file),
    }
}

fn load_tpcc(
    session: &mut Session,
    policy: tpcc::schema::Policy,
    warehouses: i64,
    ledger: bool,
) -> Result<Json> {
    let option = if ledger {
        " WITH (confide.ledger = on)"
    } else {
        ""
    };
    for table in &tpcc::schema::TABLES {
        session.simple(&(tpcc::schema::create(table, policy) + option))?;
    }
    session.refresh()?;
    let began = Instant::now();
    for (number, table) in tpcc::schema::TABLES.iter().enumerate() {
        let rows = tpcc::data::rows(table.name, warehouses, number as u64 + 1);
        session.copy(&format!("COPY {} FROM STDIN", table.name), rows)?;
    }
    let copied = began.elapsed();
    for statement in tpcc::schema::constraints() {
        session.simple(&statement)?;
    }
    let indexed = began.elapsed();
    session.simple("SET default_statistics_target = 10")?;
    for table in &tpcc::schema::TABLES {
        session.simple(&format!("ANALYZE {}", table.name))?;
    }
    Ok(json!({
        "copy_seconds": copied.as_secs_f64(),
        "index_seconds": (indexed - copied).as_secs_f64(),
        "analyze_seconds": (began.elapsed() - indexed).as_secs_f64(),
    }))
}

fn waits_of_tpcc(session: Session, warehouses: i64, transactions: u64, seed: u64) -> Result<Json> {
    let mut terminal = tpcc::transactions::Terminal::new(session, 0, warehouses, seed);
    let one = tpcc::transactions::Terminal::next;
    waits_of(&mut terminal, transactions, one, |t| t.session())
}

fn waits_of_sysbench(session: Session, task: &SysbenchWaits) -> Result<Json> {
    let mut client = sysbench::Client::new(session, 0, task.rows, task.distribution, task.seed);
    let one = |c: &mut sysbench::Client| c.next(task.workload);
    waits_of(&mut client, task.transactions, one, |c| c.session())
}

/// One client, so that the same seed gives the same figures.
fn waits_of<C>(
    client: &mut C,
    transactions: u64,
    one: impl Fn(&mut C) -> Result<&'static str>,
    session: impl Fn(&mut C) -> &mut Session,
) -> Result<Json> {
    for _ in 0..transactions {
        one(client)?;
    }
    session(client).count_waits()?;
    for _ in 0..transactions {
        one(client)?;
    }
    let waits = session(client).waits();
    let statements: Vec<Json> = waits
        .into_iter()
        .map(|(sql, w)| json!({ "sql": sql, "calls": w.calls, "answers": w.answers }))
        .collect();
    Ok(json!({ "transactions": transactions, "statements": statements }))
}

/// Rows of TPC-H end with a delimiter, which PostgreSQL does not want.
fn copy(session: &mut Session, table: &str, path: PathBuf) -> Result<Json> {
    let mut text = String::new();
    BufReader::new(File::open(path)?).read_to_string(&mut text)?;
    let text = text.replace("|\n", "\n").into_bytes();
    let mut pieces = text.chunks(1 << 18).map(<[u8]>::to_vec);
    let sql = format!("COPY {table} FROM STDIN WITH (DELIMITER '|')");
    let began = Instant::now();
    session.copy(&sql, || pieces.next())?;
    Ok(json!({ "seconds": began.elapsed().as_secs_f64() }))
}
