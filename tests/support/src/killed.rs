//! A program that is killed at a call of the kernel, by strace.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Calls after which other paths are there than before.
pub const TREE: &str =
    "rename,renameat,renameat2,unlink,unlinkat,rmdir,mkdir,mkdirat,symlink,symlinkat,link,linkat";

/// System calls that write: these, and calls that change rights and owners, fill files and sync them.
pub const WRITES: &str = "rename,renameat,renameat2,unlink,unlinkat,rmdir,mkdir,mkdirat,symlink,symlinkat,link,linkat,\
                          fchmod,fchmodat,fchown,fchownat,write,pwrite64,ftruncate,fsync,fdatasync,flock";

/// A call by its name and its number among those of that name in its thread, from 1: so strace counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub name: String,
    pub nth: u32,
    /// The call in strace's spelling.
    pub line: String,
}

/// strace's name for a call in which a thread was when its process ended.
const DETACHED: &str = "???";

/// Runs a program to its end and tells which of these calls it made, in their order.
///
/// # Panics
/// Where strace cannot be run.
pub fn calls(argv: &[&str], of: &str) -> Vec<Call> {
    let log = tempfile::NamedTempFile::new().unwrap();
    let trace = format!("trace={of}");
    let path = log.path().to_str().unwrap();
    // -y: descriptors with their paths.
    run(
        &[
            "strace",
            "-f",
            "-qq",
            "--seccomp-bpf",
            "-y",
            "-s",
            "0",
            "-e",
            "signal=none",
            "-e",
            &trace,
            "-o",
            path,
        ],
        argv,
    );
    let mut counts = BTreeMap::<(String, String), u32>::new();
    let text = fs::read_to_string(log.path()).unwrap();
    let call = |line: &str| {
        // `1234 renameat(…`: the process first.
        let (process, line) = line.split_once(' ')?;
        let line = line.trim_start();
        let name = line.split_once('(').map(|(name, _)| name).filter(|name| *name != DETACHED)?.to_owned();
        let nth = counts.entry((process.to_owned(), name.clone())).or_default();
        *nth += 1;
        Some(Call { name, nth: *nth, line: line.to_owned() })
    };
    text.lines().filter_map(call).collect()
}

/// Runs a program that is killed when it is about to make this call. Says whether it was.
///
/// # Panics
/// Where strace cannot be run.
pub fn killed_at(argv: &[&str], call: &Call) -> bool {
    // strace 6.1 injects no signal with --seccomp-bpf.
    let inject = format!("inject={}:signal=KILL:when={}", call.name, call.nth);
    let trace = format!("trace={}", call.name);
    let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject];
    run(&strace, argv).is_none()
}

/// The exit code; `None` of a killed program. The narrow umask is that of a hardened root: files must still
/// get their modes.
fn run(strace: &[&str], argv: &[&str]) -> Option<i32> {
    let mut command = Command::new("sh");
    command.args(["-c", "umask 077; exec \"$@\"", "sh"]).args(strace).args(argv);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().code()
}

/// Whether a killed write leaves files of this name.
pub fn is_temporary(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".rocworker-"))
}
