//! AMD's driver, as far as it is installed and can be.

mod distribution;

pub use distribution::{Distribution, Unfit};
