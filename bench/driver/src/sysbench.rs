//! The statements of sysbench's OLTP scripts (oltp_common.lua of 1.0), for a comparison
//! without the proxy's hop, which stock sysbench cannot make.
use clap::ValueEnum;

use crate::params;
use crate::random::{Random, Zipf};
use crate::session::{Session, Value};
use crate::wire::Result;

/// What is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Workload {
    ReadOnly,
    ReadWrite,
    WriteOnly,
    Insert,
    PointSelect,
    Range,
}

/// How rows are chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Distribution {
    Uniform,
    Zipfian,
}

/// A client.
pub struct Client {
    session: Session,
    random: Random,
    zipf: Option<Zipf>,
    rows: i64,
    next: i64,
}

const RANGE: i64 = 100;

impl Client {
    pub fn new(
        session: Session,
        number: usize,
        rows: i64,
        distribution: Distribution,
        seed: u64,
    ) -> Client {
        Client {
            session,
            random: Random::new(seed + number as u64),
            zipf: (distribution == Distribution::Zipfian).then(|| Zipf::new(rows, 0.8)),
            rows,
            // Inserted ids are apart from those that exist, and from other clients'.
            next: rows
                + 1
                + (number as i64 + (seed as i64 % 1000) * 64) * 1_000_000 % 2_000_000_000,
        }
    }

    pub fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    fn id(&mut self) -> i64 {
        match &self.zipf {
            Some(zipf) => zipf.next(&mut self.random),
            None => self.random.between(1, self.rows),
        }
    }

    fn run(&mut self, sql: &'static str, values: &[Value]) -> Result<()> {
        self.session.run(sql, values).map(|_| ())
    }

    pub fn next(&mut self, workload: Workload) -> Result<&'static str> {
        match workload {
            Workload::PointSelect => self.point()?,
            Workload::Insert => self.insert()?,
            Workload::Range => self.count_ranges()?,
            _ => {
                self.run("BEGIN", &[])?;
                if let Err(error) = self.body(workload) {
                    self.run("ROLLBACK", &[])?;
                    return Err(error);
                }
                self.run("COMMIT", &[])?;
            }
        }
        Ok("transaction")
    }

    fn body(&mut self, workload: Workload) -> Result<()> {
        if workload != Workload::WriteOnly {
            for _ in 0..10 {
                self.point()?;
            }
            self.ranges()?;
        }
        if workload != Workload::ReadOnly {
            self.writes()?;
        }
        Ok(())
    }

    fn point(&mut self) -> Result<()> {
        let id = self.id();
        self.run("SELECT c FROM sbtest1 WHERE id = $1", params![id])
    }

    fn ranges(&mut self) -> Result<()> {
        for sql in [
            "SELECT c FROM sbtest1 WHERE id BETWEEN $1 AND $2",
            "SELECT sum(k) FROM sbtest1 WHERE id BETWEEN $1 AND $2",
            "SELECT c FROM sbtest1 WHERE id BETWEEN $1 AND $2 ORDER BY c",
            "SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN $1 AND $2 ORDER BY c",
        ] {
            let low = self.id();
            self.run(sql, params![low, low + RANGE - 1])?;
        }
        Ok(())
    }

    /// Ten short ranges of the secondary index (select_random_ranges.lua).
    fn count_ranges(&mut self) -> Result<()> {
        let mut bounds = Vec::with_capacity(20);
        for _ in 0..10 {
            let low = self.id();
            bounds.extend([Value::from(low), Value::from(low + 5)]);
        }
        self.run(
            "SELECT count(k) FROM sbtest1 WHERE k BETWEEN $1 AND $2 OR k BETWEEN $3 AND $4 \
             OR k BETWEEN $5 AND $6 OR k BETWEEN $7 AND $8 OR k BETWEEN $9 AND $10 \
             OR k BETWEEN $11 AND $12 OR k BETWEEN $13 AND $14 OR k BETWEEN $15 AND $16 \
             OR k BETWEEN $17 AND $18 OR k BETWEEN $19 AND $20",
            &bounds,
        )
    }

    fn writes(&mut self) -> Result<()> {
        let (id, other, third) = (self.id(), self.id(), self.id());
        self.run("UPDATE sbtest1 SET k = k + 1 WHERE id = $1", params![id])?;
        let text = c_value(&mut self.random);
        self.run(
            "UPDATE sbtest1 SET c = $1 WHERE id = $2",
            params![text, other],
        )?;
        self.run("DELETE FROM sbtest1 WHERE id = $1", params![third])?;
        let (k, c, pad) = (self.id(), c_value(&mut self.random), pad(&mut self.random));
        // Another client may have deleted and inserted it meanwhile.
        self.run(
            "INSERT INTO sbtest1 (id, k, c, pad) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
            params![third, k, c, pad],
        )
    }

    fn insert(&mut self) -> Result<()> {
        self.next += 1;
        let (id, k) = (self.next, self.id());
        let (c, pad) = (c_value(&mut self.random), pad(&mut self.random));
        self.run(
            "INSERT INTO sbtest1 (id, k, c, pad) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
            params![id, k, c, pad],
        )
    }
}

fn groups(random: &mut Random, count: usize) -> String {
    let groups: Vec<String> = (0..count).map(|_| random.digits(11)).collect();
    groups.join("-")
}

fn c_value(random: &mut Random) -> String {
    groups(random, 10)
}

fn pad(random: &mut Random) -> String {
    groups(random, 5)
}
