//! `rocworker-hip-worker`: serves this machine's GPUs to HIP programs on other machines.
//!
//! The parent process ([`supervisor`]) accepts connections and starts this program once more for each ([`client`]). That
//! process opens the HIP library and executes what its client sends ([`serving`]).
#![deny(unsafe_code)]

#[macro_use]
mod log;

mod arguments;
mod batches;
mod budget;
mod cache;
mod chunks;
mod client;
mod counters;
mod devices;
mod downloads;
mod events;
mod grant;
mod hip;
mod images;
mod keys;
mod lane;
mod listeners;
mod locked;
mod memory;
mod metrics;
mod modules;
mod output;
mod releases;
mod request;
mod rows;
mod serving;
mod session;
mod staging;
mod streams;
mod supervisor;
mod tables;
mod trial;
mod uploads;
mod version_1;
mod watch;

use std::process::ExitCode;

use arguments::{Arguments, Command};
use clap::Parser as _;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.command {
        Some(Command::Key { dir }) => keys::make(&dir),
        None if arguments.serve.serve_one => client::serve(&arguments.serve),
        None if arguments.serve.try_library => trial::open(&arguments.serve),
        None => supervisor::run(&arguments.serve),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            log!("{sentence}");
            ExitCode::FAILURE
        }
    }
}
