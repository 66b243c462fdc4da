//! Which GPUs a request gets.

mod pack;
mod pool;

pub use pool::Pool;
