//! The worker's log is its standard error. A log that nobody reads any more ends no worker, as `eprintln!` would.

macro_rules! log {
    ($($words:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "rocworker-hip-worker: {}", format_args!($($words)*));
    }};
}
