//! What the user asks for, and how a refusal ends.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Parser;
use hip_transport::{Address, ClientKey};

/// Run a program that uses HIP on the GPUs of a worker elsewhere
///
/// The program needs no change: it loads a HIP library of ours in the place of AMD's. Its exit code becomes that of
/// rocworker-hip-run. 125 is a refusal of rocworker-hip-run, 126 a program that cannot be executed, 127 one that is not found.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
pub(crate) struct Arguments {
    /// The worker, as HOST[:PORT] or unix:/PATH; of several, with commas between them, the first that answers
    #[arg(long, value_name = "ADDRESS", env = "ROCWORKER_HIP_REMOTE", value_parser = Addresses::parse)]
    pub(crate) connect: Addresses,

    /// The client.key that was made with the worker's key
    #[arg(long, value_name = "FILE", env = "ROCWORKER_HIP_KEY")]
    key: Option<PathBuf>,

    /// Ask each worker for its devices, print them and run nothing
    #[arg(long, conflicts_with = "program")]
    pub(crate) check: bool,

    /// The program and its arguments
    #[arg(last = true, value_name = "PROGRAM", required_unless_present = "check")]
    pub(crate) program: Vec<OsString>,
}

#[derive(Clone, Debug)]
pub(crate) struct Addresses(pub(crate) Vec<Address>);

impl Addresses {
    fn parse(text: &str) -> Result<Self, String> {
        Address::list(text).map(Self).map_err(|why| format!("{why} (in --connect or ROCWORKER_HIP_REMOTE)"))
    }
}

impl std::fmt::Display for Addresses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, address) in self.0.iter().enumerate() {
            write!(f, "{}{address}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl Arguments {
    /// The key's path from the root, because the program may change its folder before it uses HIP.
    pub(crate) fn key_path(&self) -> Result<Option<PathBuf>, Failure> {
        let absolute = self.key.as_ref().map(std::path::absolute).transpose();
        absolute.map_err(|why| Failure::own(format!("the key's path cannot be made absolute: {why}")))
    }

    /// The key itself. A bad one is better told before the program has run for an hour.
    pub(crate) fn key(&self) -> Result<Option<ClientKey>, Failure> {
        self.key.as_deref().map(ClientKey::read).transpose().map_err(Failure::own)
    }
}

/// A sentence and the program's exit code, which are env(1)'s.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) sentence: String,
    pub(crate) code: u8,
}

impl Failure {
    pub(crate) const OWN: u8 = 125;

    pub(crate) fn own(sentence: String) -> Self {
        Self { sentence, code: Self::OWN }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_address_is_told_with_both_places_that_it_may_come_from() {
        let said = Arguments::try_parse_from(["run", "--connect", "", "--check"]).unwrap_err().to_string();
        assert!(said.contains("in --connect or ROCWORKER_HIP_REMOTE"), "{said}");
    }
}
