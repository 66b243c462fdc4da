//! `partition`: on a captured server, and on a synthetic one whose driver behaves as the kernel's source says.

mod machine;
mod plan;
mod real_set;
mod show;
