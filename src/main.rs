//! rocworker.
fn main() {}
