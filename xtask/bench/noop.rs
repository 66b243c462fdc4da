//! The runtime that does nothing: it ends with status 42, so that a wrapper which ends with 0 by itself is not taken for
//! one that ran it.

fn main() {
    std::process::exit(42);
}
