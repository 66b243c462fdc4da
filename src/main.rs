//! rocworker: parse, log, dispatch, exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    rocworker::cli::main()
}
