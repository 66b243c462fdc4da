//! `explain --journal` with what stands for journalctl: one that is left behind, and one that prints what it should not.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use support::detect::scratch;

/// With a shell script as its journalctl.
fn explain(folder: &Path, script: &str) -> Command {
    let journalctl = folder.join("journalctl");
    fs::write(&journalctl, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&journalctl, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_rocworker"));
    command.args(["explain", "--journal"]).env("PATH", format!("{}:/usr/bin:/bin", folder.display()));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Until it is true, for half a minute at most.
fn wait_for(mut is_so: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        if Instant::now() > until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

/// Not there, or a zombie whose new parent has not asked.
fn has_ended(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.is_empty() || stat.contains(") Z ")
}

#[test]
fn journalctl_ends_with_rocworker_whatever_kills_it() {
    for signal in [Signal::SIGKILL, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT] {
        let folder = scratch();
        let file = folder.path().join("pid");
        let script = format!("echo $$ > '{0}.new' && mv '{0}.new' '{0}' && exec sleep 120", file.display());
        let mut child = explain(folder.path(), &script).spawn().unwrap();
        assert!(wait_for(|| file.exists()), "journalctl was not started");
        let pid = fs::read_to_string(&file).unwrap();
        assert!(!has_ended(&pid));
        kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
        child.wait().unwrap();
        assert!(wait_for(|| has_ended(&pid)), "{signal}: journalctl {pid} was left behind");
    }
}

#[test]
fn journalctl_that_leaves_its_output_to_a_child_ends_with_a_sentence() {
    let folder = scratch();
    let output = explain(folder.path(), "sleep 120 & exit 0").output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.ends_with("what it had started held its output open for 5 s more\n"), "{stderr}");
}

#[test]
fn an_entry_of_any_length_needs_little_memory() {
    let folder = scratch();
    let explain = explain(folder.path(), "head -c 500000000 /dev/zero; echo; echo '{\"MESSAGE\":\"a\"}'");
    let mut limited = Command::new("prlimit");
    limited.arg("--as=250000000").arg(explain.get_program()).args(explain.get_args());
    let path = explain.get_envs().find_map(|(name, value)| value.filter(|_| name == "PATH")).unwrap();
    let output = limited.env("PATH", path).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.ends_with("1 message of the journal could not be read.\n"), "{stdout}");
}

#[test]
fn a_journal_without_a_readable_message_is_an_error_and_others_are_not_counted() {
    let folder = scratch();
    let output = explain(folder.path(), "printf 'x\\n\\377\\n{\"MESSAGE\":3}\\n'").output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    let expected = "rocworker: none of the 3 messages that journalctl printed could be read: compare with \
        journalctl --boot -k --output=json\n";
    assert_eq!((output.status.code(), stderr.as_str()), (Some(1), expected));
    let output = explain(folder.path(), "printf 'x\\n{\"MESSAGE\":\"a\"}\\n'").output().unwrap();
    assert!(output.status.success());
    let expected = "Nothing known was found in 1 line: the meaning is unknown.\n\
        1 message of the journal could not be read.\n";
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}
