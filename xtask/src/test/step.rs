use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

/// Runs named steps and says how long each took. Steps of several threads may run at once: each line about one names it.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    count: AtomicUsize,
}

impl Steps {
    /// Runs one step; a failure is named with what to do about it.
    pub(crate) fn run<T>(&self, name: &str, remedy: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let number = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        println!("\n== {number}. {name}");
        let started = Instant::now();
        let done = work()
            .map_err(|error| anyhow!("step {number} ({name}) failed: {error:#}; what to do: {remedy}"))?;
        println!("== {name}: {}", shown(started.elapsed()));
        Ok(done)
    }

    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }
}

/// A duration as a person reads it: tenths of a second below a minute, else minutes and seconds.
pub(crate) fn shown(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds < 60 {
        format!("{:.1} s", duration.as_secs_f64())
    } else {
        format!("{} min {:02} s", seconds / 60, seconds % 60)
    }
}
