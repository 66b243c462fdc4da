//! `partition`: on a captured server, and on a synthetic one whose driver behaves as the kernel's source says.

mod device;
pub(crate) mod machine;
mod plan;
mod real_boot;
mod real_killed;
mod real_reload;
mod real_set;
mod show;
