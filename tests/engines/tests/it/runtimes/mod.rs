//! Other runtimes than this machine's runc behind the wrapper.

mod real_crun_lives;
mod releases;
mod rootless;
