//! `demo`: a tour of the commands on a built-in synthetic machine in a temporary folder. Nothing of this machine is read
//! or written.

mod tour;

use std::path::Path;

use allocation::policy;
use anyhow::{Context, ensure};
use printable::quoted;
use root::{Attributes, Root};
use similar::TextDiff;

use self::tour::{Tour, excerpt, prompt};
use super::changes::diff_lines;
use super::options::Format;
use super::output::{HEADING, print_text, styled};
use super::session::{Session, interrupt};
use super::{Outcome, doctor};
use crate::demo::{TASK, lay_out, nodes, wrapped};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Leave the machine's folder, for commands with --root
    #[arg(long)]
    keep: bool,
    /// Do not pause between the commands, as without a terminal
    #[arg(long)]
    no_pause: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let stop = interrupt()?;
    let made = tempfile::Builder::new().prefix("rocworker-demo-").disable_cleanup(args.keep).tempdir()?;
    let shown = Tour::of(made.path(), args.no_pause, &stop).and_then(|tour| show(&tour, args.keep));
    let shown = match args.keep {
        true => shown.with_context(|| format!("the demo's machine stays in {}", made.path().display())),
        false => shown,
    };
    shown.map(|()| Outcome::Done)
}

/// Lays the machine out and shows the whole tour.
fn show(tour: &Tour<'_>, is_kept: bool) -> anyhow::Result<()> {
    lay_out(Path::new(tour.folder))?;
    let root = Root::open(Path::new(tour.folder))?;
    print_text(&format!(
        "A synthetic machine is laid out in {}: an NVIDIA card, an AMD card, and an AMD card in\n\
         eight partitions. Each command works beneath that folder, and nothing of your machine is read or changed.\n",
        tour.folder
    ))?;
    tour.says("Every GPU is listed, and whether a container can be given it.")?;
    tour.command(&["detect"], 3, 2)?;
    tour.says("Each step from PCI to a container is checked. What is not in order has its remedy.")?;
    doctor(tour)?;
    put_engines(&root)?;
    tour.says("docker and containerd are here, too. plan shows what would change, and writes nothing.")?;
    tour.command(&["plan"], 5, 1)?;
    tour.says("apply makes these changes and keeps the state before. A second apply touches nothing.")?;
    tour.command(&["apply"], 2, 1)?;
    tour.command(&["apply"], 1, 0)?;
    tour.says(
        "podman run --device amd.com/gpu=0 … finds a GPU by these names, Concourse a worker by its tags.",
    )?;
    tour.command(&["cdi", "list"], 2, 1)?;
    tour.command(&["tags"], 1, 0)?;
    tour.says("A task asks for a GPU, and the wrapper puts its nodes into the task's config.json. No container runs.")?;
    bundle(&root)?;
    tour.says("A managed file is edited by hand. status shows it, and apply repairs it.")?;
    put(&root, RULES, "KERNEL==\"kfd\", MODE=\"0666\"\n")?;
    tour.command(&["status"], 2, 1)?;
    tour.command(&["apply"], 1, 1)?;
    tour.says("compute-runtime: none turns the GPUs off, and auto turns them on again.")?;
    put(&root, config::PATH, "compute-runtime: none\n")?;
    tour.command(&["apply"], 1, 1)?;
    put(&root, config::PATH, "compute-runtime: auto\n")?;
    tour.command(&["apply"], 1, 1)?;
    tour.says("A GPU hangs. health names the evidence, and explain says what the kernel's lines mean.")?;
    tour.command(&["health"], 6, 0)?;
    tour.command(&["explain", "--journal"], 8, 1)?;
    tour.says("undo restores everything byte for byte, and history names who changed what.")?;
    tour.command(&["undo"], 1, 1)?;
    tour.command(&["history"], 2, 1)?;
    ending(tour.folder, is_kept)
}

/// doctor, without the checks that are in order or skipped: its summary counts them.
fn doctor(tour: &Tour<'_>) -> anyhow::Result<()> {
    prompt("rocworker doctor")?;
    tour.goes_on()?;
    let session = Session {
        root: Root::open(Path::new(tour.folder))?,
        readers: None,
        config: None,
        format: Format::Table,
        verbose: false,
        programs: None,
    };
    print_text(&tour.as_on_a_machine(&doctor::concerns(&session)?))
}

fn put(root: &Root, path: &str, text: &str) -> anyhow::Result<()> {
    root.write(path, text.as_bytes(), Attributes { mode: 0o644, owner: None })?;
    Ok(())
}

/// A container's bundle before and after runc-amd-wrapper.
fn bundle(root: &Root) -> anyhow::Result<()> {
    let policy = root.read_text(policy::PATH, policy::LIMIT)?;
    let after =
        wrapped(root, &policy, TASK)?.context("the wrapper left a bundle alone that asks for a GPU")?;
    ensure!(wrapped(root, &policy, &after)?.is_none(), "a second pass changed the bundle again");
    prompt("AMD_VISIBLE_DEVICES=2 runc-amd-wrapper create --bundle TASK task-1")?;
    print_text(&nodes(&after)?)?;
    // For the eye only: the wrapper puts what it adds on the line where it belongs.
    let after_by_lines = after.replace("},{", "},\n    {");
    let diff = TextDiff::from_lines(TASK, &after_by_lines);
    let diff = diff_lines(&diff.unified_diff().context_radius(0).to_string(), true);
    print_text(&excerpt(&diff.lines().map(str::to_owned).collect::<Vec<_>>(), 3, 1))
}

fn ending(folder: &str, is_kept: bool) -> anyhow::Result<()> {
    let next = "On your own machine these write nothing: rocworker detect, rocworker doctor, rocworker plan.\n\
                Then sudo rocworker apply sets it up, and sudo rocworker undo restores it.\n";
    if !is_kept {
        return print_text(&format!(
            "\n{}\nrocworker demo --keep leaves this machine for top, health, metrics and the exporter's page.\n{next}",
            styled(HEADING, "What next")
        ));
    }
    let folder = quoted(folder);
    let commands = ["health", "explain --journal", "plan", "apply", "serve &", "top", "metrics"];
    let commands: String =
        commands.iter().map(|command| format!("  rocworker --root {folder} {command}\n")).collect();
    print_text(&format!(
        "\n{}\nThe machine stays in {folder}. rm -r {folder} removes it. Commands for it:\n\n{commands}  \
         rocworker-exporter --root {folder}    # a page at http://127.0.0.1:9401/\n\n\
         Once apply has run and while serve runs, top, metrics and the page have the GPUs' health.\n{next}",
        styled(HEADING, "What next")
    ))
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
        ("/etc/containerd/config.toml", TEXT, include_str!("../../../templates/demo/containerd.toml")),
        ("/etc/docker/daemon.json", TEXT, include_str!("../../../templates/demo/daemon.json")),
        ("/var/lib/dpkg/status", TEXT, include_str!("../../../templates/demo/dpkg-status")),
    ] {
        root.write(path, text.as_bytes(), Attributes { mode, owner: None })?;
    }
    Ok(())
}
