//! Selects the GPUs for a request.

mod pack;
mod pool;

pub use pool::Pool;
