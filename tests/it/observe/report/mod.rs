//! `report`: what detect said on the machine it says again on the archive, and nothing is in it that is
//! nobody's business.

mod answers;
mod archive;
mod contents;
mod file;
mod secrets;
