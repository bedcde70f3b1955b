//! The threads that serve connections. Each has its own event loop, and a connection stays on one
//! thread: its steps are short and it mostly waits for sockets, so moving connections between
//! threads would cost more than the better balance gains.
use std::future::{Future, pending};

use tokio::runtime::{Builder, Handle};

/// The event loops, one for each processor.
pub struct Workers {
    loops: Vec<Handle>,
}

impl Workers {
    /// Starts the threads; they end with the process.
    pub fn start() -> std::io::Result<Workers> {
        let count = std::thread::available_parallelism()?.get();
        let start = |_| {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            let handle = runtime.handle().clone();
            std::thread::Builder::new()
                .name("connections".into())
                .spawn(move || runtime.block_on(pending::<()>()))?;
            Ok(handle)
        };
        let loops = (0..count)
            .map(start)
            .collect::<Result<_, std::io::Error>>()?;
        Ok(Workers { loops })
    }

    /// Runs a connection on the thread that has the fewest.
    pub fn spawn(&self, connection: impl Future<Output = ()> + Send + 'static) {
        let fewest = self
            .loops
            .iter()
            .min_by_key(|one| one.metrics().num_alive_tasks());
        if let Some(one) = fewest {
            one.spawn(connection);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_spread() {
        let workers = Workers::start().unwrap();
        for _ in 0..3 * workers.loops.len() {
            workers.spawn(pending());
        }
        for one in &workers.loops {
            assert_eq!(one.metrics().num_alive_tasks(), 3);
        }
    }
}
