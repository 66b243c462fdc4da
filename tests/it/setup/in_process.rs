//! apply and undo as the program calls them, in the test's own process.

use std::path::Path;
use std::time::SystemTime;

use config::Config;
use host::timestamp::Timestamp;
use rocworker::run::{Own, Run};
use root::Root;
use support::crashes::Crashes;

use crate::setup::laid::Laid;
use crate::setup::program::Program;

/// What `rocworker apply` or `rocworker undo` does, and what it answers.
pub(crate) fn run(laid: &Laid, program: &Program, command: &str) -> String {
    run_beneath(&Root::open(laid.top()).unwrap(), &program.path(), command)
}

/// What kill -9 leaves of `rocworker apply` or `rocworker undo` at each of its changes.
pub(crate) fn crashes(laid: &Laid, program: &Program, command: &str) -> Crashes {
    laid.crashes(|hook| {
        let root = Root::open(laid.top()).unwrap().on_change(hook);
        run_beneath(&root, &program.path(), command);
    })
}

fn run_beneath(root: &Root, program: &Path, command: &str) -> String {
    by(root, program, |run| match command {
        "apply" => format!("{:?}", run.apply(None, &mut |_| {})),
        "undo" => format!("{:?}", run.undo(None, false, &mut |_| {})),
        other => panic!("{other} is neither apply nor undo"),
    })
}

pub(crate) fn by<T>(root: &Root, program: &Path, runs: impl FnOnce(&Run<'_>) -> T) -> T {
    let beside = Some(program.with_file_name("runc-amd-wrapper"));
    let own = Own { program: Some(program.to_owned()), beside, waiter: None };
    let config = Config::read(root).unwrap();
    let now = Timestamp::of(SystemTime::now());
    runs(&Run { root, config: &config, programs: None, own, now, caller: "a test".to_owned() })
}
