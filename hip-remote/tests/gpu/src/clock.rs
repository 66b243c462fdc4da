//! The time that events and kernels read.

use std::sync::LazyLock;
use std::time::Instant;

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Since this library first asked.
pub fn nanoseconds() -> u64 {
    START.elapsed().as_nanos() as u64
}
