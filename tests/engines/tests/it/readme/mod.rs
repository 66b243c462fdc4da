//! The README's quick starts, word for word, by real engines.

mod concourse;
mod operator;
mod podman;
mod system;
