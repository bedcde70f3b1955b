//! The settings that a template may change, with their ranges. What can load code, run a
//! program, open a door or say where files and logs go is not here.

use crate::Refused;

/// What a setting takes.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Switch,
    /// A whole number.
    Number(i64, i64),
    Real(f64, f64),
    /// Kilobytes.
    Memory(i64, i64),
    /// Milliseconds.
    Time(i64, i64),
    Word(&'static [&'static str]),
}

use Kind::{Memory, Number, Real, Switch, Time, Word};

/// A setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    kind: Kind,
}

const KB: i64 = 1;
const MB: i64 = 1024;
const GB: i64 = 1024 * MB;
const SECOND: i64 = 1000;
const MINUTE: i64 = 60 * SECOND;
const DAY: i64 = 24 * 60 * MINUTE;

const fn of(name: &'static str, kind: Kind) -> Setting {
    Setting { name, kind }
}

/// All of them.
pub const SETTINGS: &[Setting] = &[
    of("autovacuum_max_workers", Number(1, 64)),
    of("autovacuum_naptime", Time(SECOND, 60 * MINUTE)),
    of("autovacuum_vacuum_cost_delay", Time(0, 100)),
    of("autovacuum_vacuum_cost_limit", Number(1, 10_000)),
    of("autovacuum_vacuum_scale_factor", Real(0.0, 1.0)),
    of("autovacuum_vacuum_threshold", Number(0, 1_000_000_000)),
    of("autovacuum_analyze_scale_factor", Real(0.0, 1.0)),
    of("autovacuum_analyze_threshold", Number(0, 1_000_000_000)),
    of("bgwriter_delay", Time(10, 10 * SECOND)),
    of("bgwriter_lru_maxpages", Number(0, 100_000)),
    of("bgwriter_lru_multiplier", Real(0.0, 10.0)),
    of("checkpoint_completion_target", Real(0.1, 1.0)),
    of("checkpoint_timeout", Time(30 * SECOND, DAY)),
    of("compute_query_id", Word(&["auto", "off", "on"])),
    of("confide.mode", Word(&["execution", "maintenance"])),
    of("cpu_index_tuple_cost", Real(0.0, 100.0)),
    of("cpu_operator_cost", Real(0.0, 100.0)),
    of("cpu_tuple_cost", Real(0.0, 100.0)),
    of("deadlock_timeout", Time(10, 10 * MINUTE)),
    of("default_statistics_target", Number(1, 10_000)),
    of("effective_cache_size", Memory(8 * KB, 4096 * GB)),
    of("effective_io_concurrency", Number(0, 1000)),
    of("enable_bitmapscan", Switch),
    of("enable_gathermerge", Switch),
    of("enable_hashagg", Switch),
    of("enable_hashjoin", Switch),
    of("enable_incremental_sort", Switch),
    of("enable_indexonlyscan", Switch),
    of("enable_indexscan", Switch),
    of("enable_material", Switch),
    of("enable_memoize", Switch),
    of("enable_mergejoin", Switch),
    of("enable_nestloop", Switch),
    of("enable_parallel_append", Switch),
    of("enable_parallel_hash", Switch),
    of("enable_partition_pruning", Switch),
    of("enable_seqscan", Switch),
    of("enable_sort", Switch),
    of("from_collapse_limit", Number(1, 100)),
    of("hash_mem_multiplier", Real(1.0, 100.0)),
    of("huge_pages", Word(&["off", "on", "try"])),
    of("idle_in_transaction_session_timeout", Time(0, DAY)),
    of("idle_session_timeout", Time(0, 30 * DAY)),
    of("jit", Switch),
    of("join_collapse_limit", Number(1, 100)),
    of("lock_timeout", Time(0, DAY)),
    of("log_autovacuum_min_duration", Time(-1, DAY)),
    of("log_checkpoints", Switch),
    of("log_lock_waits", Switch),
    of("log_rotation_age", Time(0, 30 * DAY)),
    of("log_rotation_size", Memory(0, 2 * GB)),
    of("log_temp_files", Memory(-1, 4096 * GB)),
    of("maintenance_work_mem", Memory(MB, 64 * GB)),
    of("max_connections", Number(10, 10_000)),
    of("max_parallel_maintenance_workers", Number(0, 64)),
    of("max_parallel_workers", Number(0, 256)),
    of("max_parallel_workers_per_gather", Number(0, 64)),
    of("max_wal_size", Memory(64 * MB, 4096 * GB)),
    of("min_wal_size", Memory(32 * MB, 4096 * GB)),
    of(
        "plan_cache_mode",
        Word(&["auto", "force_generic_plan", "force_custom_plan"]),
    ),
    of("random_page_cost", Real(0.0, 1000.0)),
    of("seq_page_cost", Real(0.0, 1000.0)),
    of("shared_buffers", Memory(MB, 1024 * GB)),
    of("statement_timeout", Time(0, DAY)),
    of("temp_buffers", Memory(800 * KB, 16 * GB)),
    of("temp_file_limit", Memory(-1, 4096 * GB)),
    of("vacuum_cost_delay", Time(0, 100)),
    of("vacuum_cost_limit", Number(1, 10_000)),
    of("wal_buffers", Memory(32 * KB, GB)),
    of("work_mem", Memory(64 * KB, 16 * GB)),
];

const MEMORY_UNITS: &[(&str, i64)] = &[("kB", KB), ("MB", MB), ("GB", GB), ("TB", 1024 * GB)];
const TIME_UNITS: &[(&str, i64)] = &[
    ("ms", 1),
    ("s", SECOND),
    ("min", MINUTE),
    ("h", 60 * MINUTE),
    ("d", DAY),
];

/// The setting of this name.
pub(crate) fn find(name: &str) -> Result<&'static Setting, Refused> {
    SETTINGS
        .iter()
        .find(|s| s.name == name)
        .ok_or_else(|| Refused::new("setting-listed", format!("no template changes \"{name}\"")))
}

/// A number and its unit, in the smallest unit. Without one only 0 and -1 are clear.
fn with_unit(text: &str, units: &[(&str, i64)]) -> Option<i64> {
    let end = text.find(|c: char| c.is_ascii_alphabetic());
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let number: i64 = number.trim_end().parse().ok()?;
    match units.iter().find(|(name, _)| *name == unit) {
        Some((_, factor)) => number.checked_mul(*factor),
        None => (unit.is_empty() && matches!(number, 0 | -1)).then_some(number),
    }
}

impl Setting {
    /// Refuses a value that is none of the setting's, or out of its range.
    pub(crate) fn check(&self, value: &str) -> Result<(), Refused> {
        let no = |wanted: String| {
            let what = format!("{} = \"{value}\": {wanted}", self.name);
            Err(Refused::new("setting-range", what))
        };
        match self.kind {
            Switch if matches!(value, "on" | "off") => Ok(()),
            Switch => no("on or off".into()),
            Number(low, high) => match value.parse::<i64>() {
                Ok(n) if (low..=high).contains(&n) => Ok(()),
                _ => no(format!("a number from {low} to {high}")),
            },
            Real(low, high) => match value.parse::<f64>() {
                Ok(n) if (low..=high).contains(&n) && plain(value) => Ok(()),
                _ => no(format!("a number from {low} to {high}")),
            },
            Memory(low, high) => match with_unit(value, MEMORY_UNITS) {
                Some(n) if (low..=high).contains(&n) => Ok(()),
                _ => no(format!("{low} to {high} kB, with a unit (kB, MB, GB, TB)")),
            },
            Time(low, high) => match with_unit(value, TIME_UNITS) {
                Some(n) if (low..=high).contains(&n) => Ok(()),
                _ => no(format!(
                    "{low} to {high} ms, with a unit (ms, s, min, h, d)"
                )),
            },
            Word(words) if words.contains(&value) => Ok(()),
            Word(words) => no(format!("one of {}", words.join(", "))),
        }
    }
}

/// Digits and a point.
fn plain(value: &str) -> bool {
    value.bytes().all(|b| b.is_ascii_digit() || b == b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values in their ranges pass, all others are refused: also what PostgreSQL would read
    /// otherwise than it looks (a number without a unit), and what is no value at all.
    #[test]
    fn ranges() {
        for (name, value, passes) in [
            ("work_mem", "4MB", true),
            ("work_mem", "16GB", true),
            ("work_mem", "17GB", false),
            ("work_mem", "4096", false),
            ("work_mem", "4MB'; DROP TABLE x; --", false),
            ("work_mem", "99999999999999999999GB", false),
            ("work_mem", "9999999999999999TB", false),
            ("temp_file_limit", "-1", true),
            ("temp_file_limit", "-2", false),
            ("lock_timeout", "5s", true),
            ("lock_timeout", "0", true),
            ("lock_timeout", "25h", false),
            ("lock_timeout", "-1", false),
            ("random_page_cost", "1.1", true),
            ("random_page_cost", "nan", false),
            ("random_page_cost", "1e2", false),
            ("max_connections", "200", true),
            ("max_connections", "0", false),
            ("enable_hashjoin", "off", true),
            ("enable_hashjoin", "maybe", false),
            ("plan_cache_mode", "force_custom_plan", true),
            ("plan_cache_mode", "x", false),
        ] {
            let checked = find(name).and_then(|s| s.check(value));
            assert_eq!(checked.is_ok(), passes, "{name} = {value}");
            if let Err(refused) = checked {
                assert_eq!(refused.rule, "setting-range");
            }
        }
    }

    /// Settings that load code, run programs, or open doors are in no template.
    #[test]
    fn not_listed() {
        for name in [
            "shared_preload_libraries",
            "session_preload_libraries",
            "local_preload_libraries",
            "dynamic_library_path",
            "archive_command",
            "archive_library",
            "restore_command",
            "ssl_passphrase_command",
            "hba_file",
            "ident_file",
            "data_directory",
            "listen_addresses",
            "log_directory",
            "log_statement",
            "log_destination",
            "primary_conninfo",
            "krb_server_keyfile",
            "search_path",
            "default_table_access_method",
            "confide.socket",
            "fsync",
            "full_page_writes",
            "WORK_MEM",
            "",
        ] {
            assert_eq!(find(name).unwrap_err().rule, "setting-listed", "{name}");
        }
    }
}
