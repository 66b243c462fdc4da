//! The checks of this repository.
fn main() {}
