//! Programs, a worker and the tests' GPU together, as users run them.

mod built;
mod children;
mod ended;
mod interpreter;
mod machine;
mod namespaces;
mod program;
mod python;
mod relay;
mod sid;
mod steps;
mod waiting;
mod worker;

pub use built::built;
pub use children::{children, is_alive, resident};
pub use ended::{Ended, ended};
pub use interpreter::changed;
pub use machine::{EXCLUSIVE, Machine, leased};
pub use namespaces::Namespaces;
pub use program::Program;
pub use python::python;
pub use relay::Relay;
pub use sid::{ROCM_6, SidRoot, sid};
pub use steps::Steps;
pub use waiting::{EVENTUALLY, until};
pub use worker::Worker;
