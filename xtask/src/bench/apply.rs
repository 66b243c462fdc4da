//! `rocworker apply` where there is nothing to do, on a machine of 8 cards with 8 partitions each.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use layout::Nodes;

use super::detect::{calls, strace};
use super::report::{Outcome, Report};
use super::timing::{Call, medians};
use crate::command::Command;
use crate::programs::Programs;

/// The p50 of a cold process that the design allows, in milliseconds.
const ALLOWED_MS: f64 = 150.0;

/// Calls of the kernel that change a file system, or begin a process. Writing to a descriptor is looked at by itself:
/// the answer goes to one, too.
const CHANGES: &str = "rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,rmdir,symlink,symlinkat,link,linkat,\
                       truncate,ftruncate,chmod,fchmod,fchmodat,chown,fchown,fchownat,utimensat,mknodat,fsync,\
                       fdatasync,fork,vfork,clone,clone3,execve,execveat,write,pwrite64,writev";

/// Adds the row.
pub(crate) fn measure(programs: &Programs, work: &Path, report: &mut Report) -> Result<()> {
    let outcome = time(&programs.rocworker, work);
    report.add("apply with nothing to do, 8 cards × 8 partitions, cold process", outcome, 1.0, "× 150 ms");
    Ok(())
}

fn time(rocworker: &Path, work: &Path) -> Result<Outcome> {
    let root = lay_out(work, "apply-8x8")?;
    let call = Call::new(rocworker, &["--root", &root.display().to_string(), "apply"]);
    let first = Command::new([&call.program]).arguments(&call.arguments).read()?;
    ensure!(first.contains("/etc/cdi/amd.json"), "the first apply did not write the CDI spec: {first}");
    if let Some(change) = change(&strace(&call, work, CHANGES)?) {
        bail!("an apply with nothing to do changes something: {change}");
    }
    let [p50] = medians(work, &[call], 0, || Ok(()))?;
    let milliseconds = p50.as_secs_f64() * 1e3;
    Ok(Outcome { figures: format!("{milliseconds:.2} ms"), ratio: milliseconds / ALLOWED_MS })
}

/// The machine with the files of containerd and docker, and a wrapper of the size of the real one.
pub(super) fn lay_out(work: &Path, name: &str) -> Result<PathBuf> {
    let root = work.join(name);
    layout::Machine::instinct(8, 8).lay_out(&root, Nodes::Recorded).context("laying a machine out")?;
    let wrapper = [&b"\x7fELF"[..], &[b'x'; 1 << 20]].concat();
    let dpkg = b"Package: containerd\nStatus: install ok installed\nVersion: 1.7.24~ds1-4\n\n\
                 Package: docker.io\nStatus: install ok installed\nVersion: 26.1.5+dfsg1-4\n";
    for (path, bytes) in [
        ("usr/lib/rocworker/runc-amd-wrapper", &wrapper[..]),
        ("usr/bin/containerd", b""),
        ("usr/sbin/dockerd", b""),
        ("etc/docker/daemon.json", b"{\n  \"log-driver\": \"json-file\"\n}\n"),
        ("etc/containerd/config.toml", b"version = 2\n"),
        ("var/lib/dpkg/status", dpkg),
    ] {
        put(&root.join(path), bytes)?;
    }
    Ok(root)
}

/// Writes a file that its owner may run.
pub(super) fn put(path: &Path, bytes: &[u8]) -> Result<()> {
    let written = fs::create_dir_all(path.parent().context("a path without a folder")?)
        .and_then(|()| fs::write(path, bytes))
        .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(0o755)));
    written.with_context(|| format!("writing {}", path.display()))
}

/// The first call in a log of strace that changes something: not the start of the program, nor its answer.
fn change(log: &str) -> Option<&str> {
    calls(log).skip(1).find(|call| !call.starts_with("write(1,") && !call.starts_with("write(2,"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_start_and_its_answer_are_no_changes_and_all_else_is() {
        let quiet = "7 execve(\"/x/rocworker\", []) = 0\n7 write(1, \"everything\", 10) = 10\n7 +++ exited with 0 +++\n";
        assert_eq!(change(quiet), None);
        for call in
            ["write(5, \"x\", 1) = 1", "renameat(3, \"a\", 3, \"b\") = 0", "execve(\"/bin/ls\", []) = 0"]
        {
            assert_eq!(change(&format!("{quiet}7 {call}\n")), Some(call));
        }
    }
}
