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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_tenths_of_a_second_below_a_minute_and_minutes_above() {
        let cases = [(250, "0.2 s"), (59_940, "59.9 s"), (60_000, "1 min 00 s"), (125_900, "2 min 05 s")];
        for (milliseconds, expected) in cases {
            assert_eq!(shown(Duration::from_millis(milliseconds)), expected);
        }
    }

    #[test]
    fn a_failing_step_is_named_with_its_remedy_and_its_cause() {
        let error = Steps::default()
            .run("lints", "correct them", || -> Result<()> { anyhow::bail!("clippy found two") });
        let said = format!("{:#}", error.unwrap_err());
        assert_eq!(said, "step 1 (lints) failed: clippy found two; what to do: correct them");
    }
}
