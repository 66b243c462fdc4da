//! Waiting for what happens elsewhere.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// For what happens at once, however busy the machine is with other tests.
pub const EVENTUALLY: Duration = Duration::from_secs(20);

/// Waits until something holds, and says how long that took.
///
/// # Panics
/// It does not hold in time.
#[track_caller]
pub fn until(what: &str, time: Duration, mut holds: impl FnMut() -> bool) -> Duration {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < time, "not within {time:?}: {what}");
        sleep(Duration::from_millis(5));
    }
    begin.elapsed()
}
