//! `rocworker-hip-run`: a program uses the GPUs of a worker elsewhere.

mod arguments;
mod check;
mod needed;
mod program;
mod surroundings;

use std::ffi::OsString;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use arguments::{Arguments, Failure};
use clap::Parser as _;
use surroundings::Surroundings;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(why) => {
            let _ = why.print();
            if why.kind() == clap::error::ErrorKind::UnknownArgument {
                let _ = writeln!(
                    std::io::stderr(),
                    "rocworker-hip-run: -- belongs before the program: … -- ./program"
                );
            }
            return ExitCode::from(if why.use_stderr() { Failure::OWN } else { 0 });
        }
    };
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { sentence, code }) => {
            let _ = writeln!(std::io::stderr(), "rocworker-hip-run: {sentence}");
            ExitCode::from(code)
        }
    }
}

/// Comes back from a check alone, or with what went wrong.
fn run(arguments: &Arguments) -> Result<(), Failure> {
    let key = arguments.key()?;
    if arguments.check {
        return check::workers(&arguments.connect.0, key.as_ref()).map_err(Failure::own);
    }
    let Some((name, rest)) = arguments.program.split_first() else {
        return Err(Failure::own("no program is named: write -- PROGRAM ARGUMENT…".to_owned()));
    };
    let executable =
        std::env::current_exe().map_err(|why| Failure::own(format!("its own path is not known: {why}")))?;
    let ours = Surroundings::beside(&executable).map_err(Failure::own)?;
    let inherited = |name: &str| std::env::var_os(name);
    let path = inherited("PATH").unwrap_or_else(|| OsString::from("/usr/bin:/bin"));
    let program = program::found(name, &path)?;
    let mut command = Command::new(&program);
    command.arg0(name).args(rest).envs(ours.variables(arguments, needed::release(&program), inherited)?);
    Err(program::refused(name, &command.exec()))
}
