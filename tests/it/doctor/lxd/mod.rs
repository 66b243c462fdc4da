//! `lxd advise`: the commands that pass AMD's cards into a container, from published answers of LXD's and Incus's form
//! and from a real Incus.

mod advise;
mod incus;
mod inside;
