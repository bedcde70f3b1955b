//! Measures the channel beside its floor, in nanoseconds, between two processes:
//! `cargo run -p channel --release --example floor`; with the argument `calls` only
//! calls, to be run several times at once where there are too few processors.
//!
//! Not a keeper: the child answers pings with nothing and drops one-way messages.

use channel::{Answer, BackendEnd, Listener, floor};
use contract::Kind;
use contract::hello::{Hello, Status, Welcome};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, role, path] = arguments.as_slice()
        && role == "keeper"
    {
        return keeper(Path::new(path));
    }
    let path = std::env::temp_dir().join(format!("confide-floor-{}", std::process::id()));
    let mut child = Command::new(std::env::current_exe()?)
        .arg("keeper")
        .arg(&path)
        .stdin(Stdio::null())
        .spawn()?;
    let result = if arguments.get(1).is_some_and(|role| role == "calls") {
        only_calls(&path)
    } else {
        measure(&path)
    };
    child.wait()?;
    result
}

/// Serves one channel to its end.
fn keeper(path: &Path) -> Outcome {
    let listener = Listener::bind(path, 0o600)?;
    let mut pending = listener.accept()?;
    let (hello, _) = pending.hello(Duration::from_secs(5))?;
    let mut end = pending.accept(
        Welcome {
            version: hello.version,
            status: Status::Accepted,
            arena: 0,
            session: 1,
            range: 0,
            incarnation: 1,
        },
        None,
    )?;
    let mut body = Vec::new();
    while let Ok((header, _, _)) = end.request(&mut body) {
        if Kind::from_u16(header.kind).is_some_and(Kind::is_answered) {
            end.answer(header.sequence, &[])?;
        }
    }
    Ok(())
}

fn connect(path: &Path) -> Result<BackendEnd, Box<dyn std::error::Error>> {
    let hello = Hello {
        version: contract::VERSION,
        pid: std::process::id(),
        database: 0,
        session: 0,
        pass: [0; 16],
        role: 0,
    };
    let start = Instant::now();
    loop {
        match BackendEnd::connect(path, hello, Duration::from_secs(5)) {
            Ok(end) => return Ok(end),
            Err(error) if start.elapsed() > Duration::from_secs(5) => return Err(error.into()),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

fn print(what: &str, time: Duration, n: u64) {
    println!("{what:<48} {:>9.1} ns", time.as_nanos() as f64 / n as f64);
}

fn measure(path: &Path) -> Outcome {
    let mut end = connect(path)?;
    let n = 200_000;
    for _ in 0..3 {
        // On one processor two spinning processes take for ever.
        if std::thread::available_parallelism()?.get() > 1 {
            print("floor: round trip of a word", floor::round_trip(n)?, n);
        }
        print("call: ping", calls(&mut end, n)?, n);
        print(
            "one-way, 40 bytes: in bursts of 512",
            bursts(&mut end, 512)?,
            n,
        );
        let start = Instant::now();
        for _ in 0..n {
            end.send(Kind::Release, &[&[0; 40]])?;
        }
        print("one-way, 40 bytes: without end", start.elapsed(), n);
        end.call(Kind::Ping, &[])?;
        let long = vec![7; 16 * 1024 * 1024];
        let start = Instant::now();
        for _ in 0..4 {
            end.call(Kind::Ping, &[&long])?;
        }
        let rate = 64.0 * 1.048_576 / start.elapsed().as_secs_f64();
        println!("{:<48} {rate:>9.1} MB/s", "long requests");
        let start = Instant::now();
        for _ in 0..200 {
            std::thread::sleep(Duration::from_millis(1));
            end.call(Kind::Ping, &[])?;
        }
        let time = start.elapsed() - Duration::from_millis(200);
        print("call after sleeping 1 ms (with timer's slack)", time, 200);
    }
    Ok(())
}

fn only_calls(path: &Path) -> Outcome {
    let mut end = connect(path)?;
    print("call: ping", calls(&mut end, 300_000)?, 300_000);
    Ok(())
}

fn calls(end: &mut BackendEnd, n: u64) -> Result<Duration, Box<dyn std::error::Error>> {
    for _ in 0..1000 {
        end.call(Kind::Ping, &[])?;
    }
    let start = Instant::now();
    for _ in 0..n {
        let answer = end.call(Kind::Ping, &[&[0; 32]])?;
        debug_assert_eq!(answer, Answer::Ok(Vec::new()));
    }
    Ok(start.elapsed())
}

/// Time in the sender for 200,000 messages in bursts that the ring has room for.
fn bursts(end: &mut BackendEnd, burst: u64) -> Result<Duration, Box<dyn std::error::Error>> {
    let mut time = Duration::ZERO;
    let n = 200_000;
    for _ in 0..n / burst {
        end.call(Kind::Ping, &[])?;
        let start = Instant::now();
        for _ in 0..burst {
            end.send(Kind::Release, &[&[0; 40]])?;
        }
        time += start.elapsed();
    }
    Ok(time.mul_f64(n as f64 / (n / burst * burst) as f64))
}
