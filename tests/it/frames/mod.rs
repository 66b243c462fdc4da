//! Reading a machine's files by a shell: what is read there is what a local command reads.

mod answers;
mod complete;
mod equal;
mod hostile;
mod links;
mod machines;
mod shells;
