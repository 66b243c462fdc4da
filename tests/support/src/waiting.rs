//! Waiting for what a process does: never longer than it may take, and by its own word.

use std::time::{Duration, Instant};

/// The longest wait. Other tests may slow the machine down, which is no fault of the process's: measured
/// times are printed, and only bounded here.
pub const LONGEST: Duration = Duration::from_secs(60);

/// Between two looks at what it does.
const GLANCE: Duration = Duration::from_millis(5);

/// Waits until something is so, and says how long that took.
#[track_caller]
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) -> Duration {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < LONGEST, "after {LONGEST:?}: not so that {what}");
        std::thread::sleep(GLANCE);
    }
    began.elapsed()
}
