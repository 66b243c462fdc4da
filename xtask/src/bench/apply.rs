//! `rocworker apply` where there is nothing to do, on a machine of 8 cards with 8 partitions each.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use layout::Nodes;

use crate::command::Command;

use super::report::{Outcome, Report};
use super::timing::{Call, Stopwatch};

/// The p50 of a cold process that the design allows, in milliseconds.
const ALLOWED_MS: f64 = 150.0;

/// Calls of the kernel that change a file system, or begin a process. Writing to a descriptor is looked at by itself:
/// the answer goes to one, too.
const CHANGES: &str = "rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,rmdir,symlink,symlinkat,link,linkat,\
                       truncate,ftruncate,chmod,fchmod,fchmodat,chown,fchown,fchownat,utimensat,mknodat,fsync,\
                       fdatasync,fork,vfork,clone,clone3,execve,execveat,write,pwrite64,writev";

/// Adds the row.
pub(crate) fn measure(rocworker: &Path, work: &Path, runs: usize, report: &mut Report) {
    println!("measuring: apply");
    let what = "apply with nothing to do, 8 cards × 8 partitions, cold process";
    report.add(what, time(rocworker, work, runs), 1.0, "× 150 ms");
}

fn time(rocworker: &Path, work: &Path, runs: usize) -> Result<Outcome> {
    let root = lay_out(work, "apply-8x8")?;
    let call = apply(rocworker, &root);
    let first = Command::new([&call.program]).arguments(&call.arguments).read()?;
    ensure!(first.contains("/etc/cdi/amd.json"), "the first apply did not write the CDI spec: {first}");
    watch(&call, work)?;
    let [p50] = Stopwatch::new(work)?.medians(&[call], 0, runs, || Ok(()))?;
    let milliseconds = p50.as_secs_f64() * 1e3;
    Ok(Outcome { figures: format!("{milliseconds:.2} ms"), ratio: milliseconds / ALLOWED_MS })
}

fn apply(rocworker: &Path, root: &Path) -> Call {
    let arguments = ["--root", &root.display().to_string(), "apply"].map(str::to_owned).to_vec();
    Call { program: rocworker.to_owned(), arguments }
}

/// The machine with the files of every engine that rocworker configures, and a wrapper of the size of the real one.
pub(super) fn lay_out(work: &Path, name: &str) -> Result<PathBuf> {
    let root = work.join(name);
    let machine = layout::Machine::instinct(8, 8);
    machine.lay_out(&root, Nodes::Recorded).with_context(|| format!("laying out {}", root.display()))?;
    let wrapper = [&b"\x7fELF"[..], &[b'x'; 1 << 20]].concat();
    let docker = b"{\n  \"log-driver\": \"json-file\"\n}\n".to_vec();
    let containerd =
        b"version = 2\n[plugins.\"io.containerd.grpc.v1.cri\"]\n  sandbox_image = \"pause\"\n".to_vec();
    let dpkg = b"Package: containerd\nStatus: install ok installed\nVersion: 1.7.24~ds1-4\n\n\
                 Package: docker.io\nStatus: install ok installed\nVersion: 26.1.5+dfsg1-4\n"
        .to_vec();
    for (path, bytes) in [
        ("usr/lib/rocworker/runc-amd-wrapper", wrapper),
        ("usr/bin/containerd", Vec::new()),
        ("usr/sbin/dockerd", Vec::new()),
        ("etc/docker/daemon.json", docker),
        ("etc/containerd/config.toml", containerd),
        ("var/lib/dpkg/status", dpkg),
    ] {
        let path = root.join(path);
        let folder = path.parent().context("a path of the machine has no folder")?;
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        fs::write(&path, bytes).with_context(|| format!("writing {}", path.display()))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
            .with_context(|| format!("setting the mode of {}", path.display()))?;
    }
    Ok(root)
}

/// Checks by strace that a second apply writes nothing and starts nothing.
fn watch(call: &Call, work: &Path) -> Result<()> {
    let log = work.join("apply.strace");
    Command::new(["strace", "-f", "-qq", "-e", "signal=none", "-e", &format!("trace={CHANGES}"), "-o"])
        .arguments([&log, &call.program])
        .arguments(&call.arguments)
        .read()?;
    let log = fs::read_to_string(&log).with_context(|| format!("reading {}", log.display()))?;
    match changes(&log) {
        Some(change) => bail!("an apply with nothing to do changes something: {change}"),
        None => Ok(()),
    }
}

/// The first call in a log of strace that changes something: not the start of the program, nor its answer.
fn changes(log: &str) -> Option<&str> {
    let calls = log.lines().map(|line| line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' '));
    let calls = calls.filter(|call| !call.is_empty() && !call.starts_with(['+', '-', '<']));
    calls.skip(1).find(|call| !call.starts_with("write(1,") && !call.starts_with("write(2,"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_start_and_its_answer_are_no_changes_and_all_else_is() {
        let quiet = "7 execve(\"/x/rocworker\", []) = 0\n7 write(1, \"everything\", 10) = 10\n7 +++ exited with 0 +++\n";
        assert_eq!(changes(quiet), None);
        for change in [
            "7 write(5, \"x\", 1) = 1",
            "7 renameat(3, \"a\", 3, \"b\") = 0",
            "7 execve(\"/bin/ls\", []) = 0",
        ] {
            let log = format!("{quiet}{change}\n");
            assert_eq!(changes(&log), Some(change.trim_start_matches("7 ")));
        }
    }
}
