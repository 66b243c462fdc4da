//! The content of the machine that systemd starts.

pub(crate) mod debian;
pub(crate) mod set_up;
pub(crate) mod units;
