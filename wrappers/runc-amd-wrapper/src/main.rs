//! What containerd runs instead of runc.
fn main() {}
