//! Other machines: real sshds in namespaces, asked by ssh and by the program.

mod asker;
mod connecting;
mod copied;
mod document;
mod equal;
mod installed;
mod login;
mod middle;
mod script;
mod several;
mod watched;
