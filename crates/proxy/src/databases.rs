//! The schema of each database, shared by all of its connections and updated from the reports of
//! the servers.
//!
//! A server numbers the committed changes of a database. They are applied in that order: a change
//! that arrives early waits until the preceding ones have arrived, either from other connections or
//! because a connection has asked for them.
//!
//! Invariant: a catalog contains all changes up to its version; a connection whose server has
//! reported a newer version asks for the changes before it classifies a statement.
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rewrite::Catalog;
use rewrite::report::{Head, Record};

/// Number of changes that may wait for preceding ones.
const AHEAD_MAX: usize = 256;
/// Number of servers (or server starts) whose schemas of a database are kept.
const SERVERS_MAX: usize = 8;

/// What is known about a database.
#[derive(Clone, Default)]
pub struct State {
    /// Identifies the database and the start of its server. Empty: nothing is known.
    pub identity: String,
    /// The version of the catalog.
    pub version: u64,
    /// The newest version that a server has reported.
    pub newest: u64,
    /// `None` if the database does not have Confide.
    pub catalog: Option<Arc<Catalog>>,
}

struct Database {
    name: String,
    state: State,
    loaded: Instant,
    doubtful: bool,
    ahead: BTreeMap<u64, Vec<Record>>,
}

/// The databases by the identities that servers report for them, which servers never reuse.
#[derive(Default)]
pub struct Databases(Mutex<HashMap<String, Database>>);

impl Databases {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Database>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what is known about a database.
    pub fn state(&self, identity: &str) -> State {
        let all = self.lock();
        all.get(identity)
            .map(|d| d.state.clone())
            .unwrap_or_default()
    }

    /// Returns the state from which a new connection to a database may start: the schema that was
    /// most recently read as a whole, if it is not older than `age`.
    pub fn latest(&self, name: &str, age: Duration) -> State {
        let all = self.lock();
        let of_name = all.values().filter(|d| d.name == name);
        let last = of_name.max_by_key(|d| d.loaded);
        let young = last.filter(|d| !d.doubtful && d.loaded.elapsed() < age);
        young.map(|d| d.state.clone()).unwrap_or_default()
    }

    /// The server's behaviour contradicts its schema: new connections read the schema again.
    pub fn doubt(&self, identity: &str) {
        if let Some(database) = self.lock().get_mut(identity) {
            database.doubtful = true;
        }
    }

    /// New connections read all schemas again.
    pub fn doubt_all(&self) {
        for database in self.lock().values_mut() {
            database.doubtful = true;
        }
    }

    /// Stores a complete schema, or the fact that there is none.
    pub fn whole(&self, name: &str, head: &Head, catalog: Option<Catalog>) {
        let mut all = self.lock();
        let known = all.get(&head.identity).map(|d| &d.state);
        if known.is_some_and(|state| state.version > head.to) {
            return;
        }
        let catalog = catalog.map(|mut new| {
            if let Some(old) = known.and_then(|state| state.catalog.as_ref()) {
                new.keep_places(old);
            }
            Arc::new(new)
        });
        let state = State {
            identity: head.identity.clone(),
            version: head.to,
            newest: known.map_or(0, |state| state.newest).max(head.to),
            catalog,
        };
        let database = Database {
            name: name.to_owned(),
            state,
            loaded: Instant::now(),
            doubtful: false,
            ahead: BTreeMap::new(),
        };
        all.insert(head.identity.clone(), database);
        forget_old(&mut all, name);
    }

    /// Applies the changes from one version to another.
    pub fn since(&self, head: &Head, records: &[Record]) {
        self.with(&head.identity, head.to, |database| {
            if head.from <= database.state.version && database.state.version < head.to {
                database.apply(head.to, records);
                database.catch_up();
            }
        });
    }

    /// A transaction has committed these changes; `None` if they are unknown.
    pub fn committed(&self, identity: &str, version: u64, records: Option<Vec<Record>>) {
        self.with(identity, version, |database| {
            if database.state.version < version
                && database.ahead.len() < AHEAD_MAX
                && let Some(records) = records
            {
                database.ahead.insert(version, records);
                database.catch_up();
            }
        });
    }

    /// A server has reported a version.
    pub fn told(&self, identity: &str, version: u64) {
        self.with(identity, version, |_| {});
    }

    fn with(&self, identity: &str, version: u64, act: impl FnOnce(&mut Database)) {
        let mut all = self.lock();
        if let Some(database) = all.get_mut(identity) {
            database.state.newest = database.state.newest.max(version);
            if database.state.catalog.is_some() {
                act(database);
            }
        }
    }
}

/// Removes the oldest entry if there are too many: a restarted server gives its databases new
/// identities, and several servers may share an address.
fn forget_old(all: &mut HashMap<String, Database>, name: &str) {
    let of_name = || all.iter().filter(|(_, d)| d.name == name);
    if of_name().count() > SERVERS_MAX {
        let oldest = of_name().min_by_key(|(_, d)| d.loaded);
        if let Some(identity) = oldest.map(|(identity, _)| identity.clone()) {
            all.remove(&identity);
        }
    }
}

impl Database {
    fn apply(&mut self, version: u64, records: &[Record]) {
        self.state.version = version;
        if let Some(catalog) = self.state.catalog.as_mut().filter(|_| !records.is_empty()) {
            Arc::make_mut(catalog).apply(records);
        }
    }

    /// Applies the waiting changes that are no longer preceded by a missing one.
    fn catch_up(&mut self) {
        while let Some((version, records)) = self.ahead.pop_first() {
            if version > self.state.version + 1 {
                self.ahead.insert(version, records);
                return;
            }
            if version == self.state.version + 1 {
                self.apply(version, &records);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DB: &str = "db";

    fn namespace(oid: u32, name: &str) -> Vec<Record> {
        let name = name.to_owned();
        vec![Record::Namespace { oid, name }]
    }

    fn head(from: u64, to: u64) -> Head {
        let identity = "1.5".to_owned();
        let own = false;
        Head {
            own,
            identity,
            from,
            to,
        }
    }

    fn known(version: u64) -> Databases {
        let databases = Databases::default();
        let catalog = Catalog::new(&namespace(2200, "public"), None);
        databases.whole(DB, &head(0, version), Some(catalog));
        databases
    }

    fn versions(databases: &Databases) -> (u64, u64) {
        let state = databases.state("1.5");
        (state.version, state.newest)
    }

    /// Commits reported out of order by two connections are applied in commit order: the later
    /// definition of an object wins.
    #[test]
    fn order_of_commits() {
        let databases = known(7);
        databases.committed("1.5", 9, Some(namespace(2200, "later")));
        assert_eq!(versions(&databases), (7, 9), "8 is missing");
        databases.committed("1.5", 8, Some(namespace(2200, "sooner")));
        assert_eq!(versions(&databases), (9, 9));
        let catalog = databases.state("1.5").catalog.unwrap();
        assert_eq!(catalog.namespaces(), ["later"]);
    }

    /// Changes made by others are requested; the changes waiting for them are then applied.
    #[test]
    fn gaps() {
        let databases = known(7);
        databases.committed("1.5", 10, Some(namespace(1, "a")));
        databases.since(&head(7, 9), &namespace(2, "b"));
        assert_eq!(versions(&databases), (10, 10));
        // The same again, from a connection that asked at the same time.
        databases.since(&head(7, 10), &namespace(2, "old"));
        databases.committed("1.5", 12, None);
        assert_eq!(versions(&databases), (10, 12));
        databases.told("another", 99);
        databases.committed("another", 11, Some(namespace(2, "old")));
        assert_eq!(versions(&databases), (10, 12));
        let catalog = databases.state("1.5").catalog.unwrap();
        assert_eq!(catalog.namespaces(), ["a", "b", "public"]);
    }

    /// Another server, or the same one after a restart: its versions start again, and connections
    /// to the first are not affected.
    #[test]
    fn another_server() {
        let databases = known(7);
        databases.whole(DB, &head(0, 5), None);
        assert_eq!(versions(&databases), (7, 7), "an old answer");
        let age = Duration::from_secs(3600);
        let identity = "2.5".to_owned();
        let new = Head {
            identity,
            ..head(0, 1)
        };
        databases.whole(DB, &new, None);
        assert_eq!(versions(&databases), (7, 7));
        let latest = databases.latest(DB, age);
        assert_eq!((latest.identity.as_str(), latest.version), ("2.5", 1));
        databases.committed("2.5", 2, Some(namespace(1, "a")));
        let latest = databases.latest(DB, age);
        assert_eq!((latest.version, latest.newest), (1, 2), "to be asked for");
        assert_eq!(databases.latest("other", age).identity, "");
        assert_eq!(databases.latest(DB, Duration::ZERO).identity, "");
        for n in 0..20 {
            let identity = n.to_string();
            let another = Head {
                identity,
                ..head(0, 1)
            };
            databases.whole(DB, &another, None);
        }
        assert_eq!(databases.lock().len(), SERVERS_MAX);
    }
}
