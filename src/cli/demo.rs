use allocation::policy;
use anyhow::{Context, ensure};
use root::{Attributes, Root};
use similar::TextDiff;

use super::changes::diff_lines;
use super::options::Format;
use super::output::{DIM, HEADING, print_text, styled};
use super::session::Session;
use super::{Outcome, apply, cdi, detect, doctor, history, plan, status, tags, undo};
use crate::demo::{TASK, lay_out, nodes, wrapped};

/// Runs the commands' functions on a built-in synthetic machine beneath a temporary Root. Nothing of this machine is
/// read or written.
pub(crate) fn run() -> anyhow::Result<Outcome> {
    let dir = tempfile::Builder::new().prefix("rocworker-demo-").tempdir()?;
    lay_out(dir.path())?;
    let session = Session {
        root: Root::open(dir.path())?,
        readers: None,
        config: None,
        format: Format::Table,
        verbose: false,
        programs: None,
    };
    print_text(&format!(
        "A synthetic machine is laid out in {}: an NVIDIA card, an AMD card, and an AMD card in eight partitions.\n\
         Nothing of this machine is read or changed, and the folder goes at the end.\n",
        dir.path().display()
    ))?;

    step("detect", "Every GPU is listed, and whether a container can be given it.")?;
    detect::run(&session)?;
    step("doctor", "Each step from PCI to a container, with what to do: one thing is missing yet.")?;
    doctor::run(&session, None)?;
    setup(&session)?;
    published(&session)?;
    repairs(&session)?;
    restored(&session)?;
    Ok(Outcome::Done)
}

/// The machine set up as a worker.
fn setup(session: &Session) -> anyhow::Result<()> {
    put_engines(&session.root)?;
    step(
        "plan",
        "docker and containerd are there, too. What would change reads like a diff; nothing is written yet.",
    )?;
    plan::run(session, false, None, None)?;
    step("apply", "The plan is applied, and the state before is kept.")?;
    apply::run(session, None, false, None)?;
    step("apply", "Run again, it touches nothing.")?;
    apply::run(session, None, false, None)?;
    Ok(())
}

/// What engines, pipelines and a task see of the machine.
fn published(session: &Session) -> anyhow::Result<()> {
    step("cdi list", "By these names: podman run --device amd.com/gpu=0 …")?;
    cdi::run(session, &cdi::Command::List)?;
    step("cdi validate", "It is valid CDI, true of the machine, and no other spec has its names.")?;
    cdi::run(session, &cdi::Command::Validate { file: None })?;
    step("tags", "By these tags Concourse finds the worker.")?;
    // The demo's machine has no worker.
    tags::print(session, false)?;
    bundle(&session.root)
}

/// A managed file that a person edits, and GPUs that are turned off and on.
fn repairs(session: &Session) -> anyhow::Result<()> {
    let root = &session.root;
    step("status", "A person edits a managed file, and status shows it.")?;
    root.write(RULES, b"KERNEL==\"kfd\", MODE=\"0666\"\n", Attributes { mode: 0o644, owner: None })?;
    status::run(session)?;
    step("apply", "apply repairs it.")?;
    apply::run(session, None, false, None)?;
    step("apply", "compute-runtime: none turns the GPUs off: what publishes them to engines goes.")?;
    root.write(config::PATH, b"compute-runtime: none\n", Attributes { mode: 0o644, owner: None })?;
    apply::run(session, None, false, None)?;
    root.write(config::PATH, b"compute-runtime: auto\n", Attributes { mode: 0o644, owner: None })?;
    apply::run(session, None, false, None)?;
    Ok(())
}

fn restored(session: &Session) -> anyhow::Result<()> {
    step(
        "undo",
        "Everything is as it was before, byte for byte; docker's file has only what its owner wrote.",
    )?;
    undo::run(session, false, false, None)?;
    step("history", "Who changed what, and when.")?;
    history::run(session)?;
    Ok(())
}

/// The managed file that a person edits in the demo.
const RULES: &str = "/etc/udev/rules.d/70-amdgpu.rules";

/// What packages have put on the demo's machine. The programs are empty: nothing runs beneath another Root.
fn put_engines(root: &Root) -> anyhow::Result<()> {
    const PROGRAM: u32 = 0o755;
    const TEXT: u32 = 0o644;
    for (path, mode, text) in [
        ("/usr/lib/rocworker/runc-amd-wrapper", PROGRAM, "\u{7f}ELF"),
        ("/usr/bin/containerd", PROGRAM, ""),
        ("/usr/sbin/dockerd", PROGRAM, ""),
        ("/usr/lib/systemd/system/containerd.service", TEXT, "[Service]\nExecStart=/usr/bin/containerd\n"),
        ("/usr/lib/systemd/system/docker.service", TEXT, "[Service]\nExecStart=/usr/sbin/dockerd\n"),
        ("/etc/containerd/config.toml", TEXT, include_str!("../../templates/demo/containerd.toml")),
        ("/etc/docker/daemon.json", TEXT, include_str!("../../templates/demo/daemon.json")),
        ("/var/lib/dpkg/status", TEXT, include_str!("../../templates/demo/dpkg-status")),
    ] {
        root.write(path, text.as_bytes(), Attributes { mode, owner: None })?;
    }
    Ok(())
}

/// A container's bundle before and after runc-amd-wrapper.
fn bundle(root: &Root) -> anyhow::Result<()> {
    let policy = root.read_text(policy::PATH, policy::LIMIT)?;
    let after =
        wrapped(root, &policy, TASK)?.context("the wrapper left a bundle alone that asks for a GPU")?;
    heading(
        "# the nodes in config.json of a task that asks for AMD_VISIBLE_DEVICES=2",
        "No container runs here: the wrapper has put these nodes into the task's config.json.",
    )?;
    print_text(&nodes(&after)?)?;
    heading(
        "runc-amd-wrapper create --bundle TASK task-1",
        "The wrapper adds that GPU's nodes, their cgroup rules, and the groups that may open them, as they are called in\n\
         the task's user namespace. Nothing else in its config.json changes.",
    )?;
    // For the eye only: the wrapper puts what it adds on the line where it belongs.
    let after_by_lines = after.replace("},{", "},\n        {");
    let diff = TextDiff::from_lines(TASK, &after_by_lines);
    print_text(&diff_lines(&diff.unified_diff().context_radius(2).to_string(), true))?;
    ensure!(wrapped(root, &policy, &after)?.is_none(), "a second pass changed the bundle again");
    print_text("A second pass changes nothing.\n")
}

fn step(command: &str, says: &str) -> anyhow::Result<()> {
    heading(&format!("rocworker {command}"), says)
}

fn heading(command: &str, says: &str) -> anyhow::Result<()> {
    print_text(&format!("\n{}\n{}\n\n", styled(HEADING, format_args!("$ {command}")), styled(DIM, says)))
}
