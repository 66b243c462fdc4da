//! The wrapper's reading of a command line against real runc's.

use std::{cell::RefCell, collections::HashSet};

#[allow(dead_code, reason = "shared with the wrapper's own test")]
#[path = "../../wrappers/runc-amd-wrapper/tests/it/reading/mod.rs"]
mod reading;

use reading::{Place, compare};

/// What a line is made of. Nothing here leads out of the place's folder, and no subcommand does anything there but
/// what the place mends.
const WORDS: [&str; 64] = [
    "create",
    "run",
    "exec",
    "delete",
    "state",
    "start",
    "kill",
    "pause",
    "--root=S",
    "-root=S",
    "R",
    "void",
    "--root=R",
    "--log=L2",
    "--log=L1",
    "L2",
    "--log-format=json",
    "json",
    "--debug",
    "-systemd-cgroup",
    "--criu",
    "x",
    "--rootless=auto",
    "c1",
    "c2",
    "b1",
    "x,y",
    "true",
    "void",
    "nobody",
    "a/b",
    "",
    "--bundle",
    "-b",
    "-bundle=b1",
    "-b=./b2/",
    "-b3",
    "b1/..",
    "nowhere",
    "--pid-file",
    "P",
    "--pid-file=-x",
    "--no-pivot",
    "--no-new-keyring=false",
    "--preserve-fds=1",
    "1",
    "--console-socket=",
    "-d",
    "--keep",
    "--process",
    "-p=F",
    "F",
    "-t",
    "--user=0",
    "-e",
    "A=create",
    "--",
    "-",
    "---b",
    "--=x",
    "-h",
    "--force",
    "-f=false",
    "--new",
];

/// More words than this make no new kind of line.
const LONGEST: usize = 16;

thread_local! {
    static PLACE: Place = Place::new();
    /// runc was asked about these: it takes 1,000 times as long as the rest.
    static ASKED: RefCell<HashSet<Vec<u8>>> = RefCell::default();
}

/// A line, a word a byte.
pub fn check(data: &[u8]) {
    let line: Vec<u8> = data.iter().take(LONGEST).map(|byte| byte % 64).collect();
    if !ASKED.with_borrow_mut(|asked| asked.insert(line.clone())) {
        return;
    }
    // Without it runc would look into /run/runc.
    let mut words = vec!["--root".to_owned(), "R".to_owned()];
    words.extend(line.iter().map(|word| WORDS[usize::from(*word)].to_owned()));
    PLACE.with(|place| {
        compare(&words, has_a_newer_flag(&words), &place.run(&words), place);
    });
}

/// Whether runc 1.1.5 may not know something that looks like a flag, wherever the subcommand stands.
fn has_a_newer_flag(words: &[String]) -> bool {
    const GLOBAL: &[&str] = &[
        "debug",
        "log",
        "log-format",
        "root",
        "criu",
        "systemd-cgroup",
        "rootless",
        "help",
        "h",
        "version",
        "v",
    ];
    const CREATE: &[&str] = &[
        "bundle",
        "b",
        "console-socket",
        "pid-file",
        "no-pivot",
        "no-new-keyring",
        "preserve-fds",
        "help",
        "h",
    ];
    const RUN: &[&str] = &["detach", "d", "keep", "no-subreaper"];
    const EXEC: &[&str] = &[
        "console-socket",
        "cwd",
        "env",
        "e",
        "tty",
        "t",
        "user",
        "u",
        "additional-gids",
        "g",
        "process",
        "p",
        "detach",
        "d",
        "pid-file",
        "process-label",
        "apparmor",
        "no-new-privs",
        "cap",
        "c",
        "preserve-fds",
        "cgroup",
        "ignore-paused",
        "help",
        "h",
    ];
    let lacks = |words: &[String], has: &dyn Fn(&str) -> bool| {
        words.iter().filter_map(|word| word.strip_prefix('-')).any(|word| {
            let name = word.trim_start_matches('-').split('=').next().unwrap_or_default();
            !has(name)
        })
    };
    words.iter().enumerate().any(|(at, subcommand)| {
        let has = |name: &str| match subcommand.as_str() {
            "create" => CREATE.contains(&name),
            "run" => CREATE.contains(&name) || RUN.contains(&name),
            "exec" => EXEC.contains(&name),
            "delete" => ["force", "f", "help", "h"].contains(&name),
            _ => true,
        };
        let is_one = ["create", "run", "exec", "delete"].contains(&subcommand.as_str());
        is_one && (lacks(&words[at..], &has) || lacks(&words[..at], &|name| GLOBAL.contains(&name)))
    })
}
