//! The command line: every command and its arguments.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use super::options::{Only, Options};

/// What stands below the options: its title in the help and in the manual page, and its lines.
pub(crate) const MORE: [(&str, &str, &str); 3] = [
    (
        "Example",
        "EXAMPLES",
        "  rocworker detect               which GPUs there are, and whether a container can use them
  rocworker plan                 what apply would change
  sudo rocworker apply           change it; the state before is kept
  sudo rocworker undo            restore the machine",
    ),
    (
        "Files",
        "FILES",
        "  /etc/rocworker/config.yaml     the configuration; every key is optional
  /etc/rocworker/templates/      templates that replace built-in ones
  /etc/cdi/amd.json              the CDI spec, by which engines find the GPUs
  /var/lib/rocworker/            what rocworker manages, the state before, the history",
    ),
    (
        "Exit codes",
        "EXIT STATUS",
        "  0  success
  1  failed
  2  wrong arguments or configuration
  3  pending changes (plan --exit-code), drift (status),
     failed check (doctor, cdi validate, task-check),
     an unhealthy GPU (health)",
    ),
];

fn more() -> String {
    MORE.map(|(title, _, lines)| format!("{title}:\n{lines}")).join("\n\n")
}

/// Turns a machine with AMD GPUs into a container worker.
#[derive(Debug, Parser)]
#[command(name = "rocworker", version, max_term_width = 100, propagate_version = true, after_help = more())]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) options: Options,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[command(flatten)]
    Person(Person),
    #[command(flatten)]
    Script(Script),
}

/// The commands that a person runs.
#[derive(Debug, Subcommand)]
pub(crate) enum Person {
    /// List every GPU, its nodes, and whether a container can use it, and if not why not
    Detect,
    /// Show what apply would change, like a diff; writes nothing
    Plan {
        /// End with 3 when there is something to change
        #[arg(long)]
        exit_code: bool,
        /// Save the plan in this file (a path of this machine, also with --root), for apply FILE
        #[arg(long, value_name = "FILE", alias = "out")]
        save: Option<PathBuf>,
        /// Show what apply --only would change
        #[arg(long, value_enum, value_name = "COMPONENT", conflicts_with = "save")]
        only: Option<Only>,
    },
    /// Apply the configuration; the state before is kept for undo
    Apply {
        /// Apply this saved plan (a path of this machine); refuse if the machine has changed
        file: Option<PathBuf>,
        /// Show what would change, and change nothing
        #[arg(long)]
        dry_run: bool,
        /// Apply this part alone; everything else stays as it is, and nothing else restarts
        #[arg(long, value_enum, value_name = "COMPONENT", conflicts_with = "file")]
        only: Option<Only>,
    },
    /// Show managed files, drift and pending restarts
    Status,
    /// Revert everything that rocworker manages, the last change first
    Undo {
        /// Also revert managed files that changed since apply
        #[arg(long)]
        force: bool,
        /// Show what would be reverted, and change nothing
        #[arg(long)]
        dry_run: bool,
        /// Revert this part alone
        #[arg(long, value_enum, value_name = "COMPONENT", conflicts_with = "dry_run")]
        only: Option<Only>,
    },
    /// Show what rocworker changed here, when, and who asked for it
    History,
    /// Check a configuration
    #[command(subcommand)]
    Config(super::config::Command),
    /// Write, list or check the CDI spec, by which engines find the GPUs
    #[command(subcommand)]
    Cdi(super::cdi::Command),
    /// Check every step from PCI to a container, with evidence and remedy; reads only
    Doctor {
        /// Also start a short-lived container through each engine that is set up here, and see what it can open
        #[arg(long)]
        canary: bool,
        /// How long an engine may take until its container has ended
        #[arg(long, value_name = "SECONDS", default_value_t = 60, requires = "canary")]
        canary_limit: u64,
    },
    /// Pack a support bundle without secrets that --root reads again as this machine
    Report {
        /// Write it here (a path of this machine, also with --root), or to stdout with -
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
    },
    /// Print how the GPUs are, once, as rocworker-exporter serves it at port 9401
    Metrics {
        /// The text's format, prometheus if left out; not with --output json
        #[arg(long, value_enum, value_name = "FORMAT")]
        format: Option<super::metrics::TextFormat>,
    },
    /// Say how well each GPU is, from 0 to 100, and why; ends with 3 when one is unhealthy
    Health {
        /// Judge by these rules (a path of this machine, or - for stdin) instead of the daemon's
        #[arg(long, value_name = "FILE")]
        rules: Option<PathBuf>,
    },
    /// Watch GPUs, partitions and the processes on them
    Top(super::top::Args),
    /// Show how the GPUs are linked: XGMI, PCIe and NUMA
    Topology(super::topology::Args),
    /// Say what labels this machine has as a Kubernetes node; -o json, yaml or nfd
    Labels,
    /// Divide cards into devices: show, plan and set their modes
    #[command(subcommand)]
    Partition(super::partition::Command),
    /// Install, check or remove the exporter on other machines
    #[command(subcommand)]
    Remote(super::remote::Command),
    /// Explain an error's number, or what the kernel says of GPUs: a line, a log, a journal
    Explain(super::explain::Args),
    /// List the errors 1 to 8; explain --list has what the kernel and HIP say, too
    ListErrors,
    /// Show or release who holds each GPU under exclusive sharing
    #[command(subcommand)]
    Lease(super::lease::Command),
    /// Print the host's commands that pass AMD's GPUs into a container of LXD or Incus
    #[command(subcommand)]
    Lxd(super::lxd::Command),
    /// Print the Concourse worker's tags as `rocworker apply` leaves them, comma-joined
    Tags {
        /// As a line for an environment file: CONCOURSE_TAG=…
        #[arg(long)]
        env: bool,
    },
    /// Check from inside a task that it can use AMD's GPUs; its image needs no ROCm for that
    TaskCheck,
    /// Show the commands on a built-in synthetic machine; needs no rights and no GPU
    Demo(super::demo::Args),
    /// Run the daemon that maintains the configured state. rocworker.service runs it
    Serve,
    /// Print the completions of a shell
    Completions { shell: clap_complete::Shell },
    /// Print the manual page
    Man {
        /// Write a page for the program and one for each command into this folder of this machine, which is there already
        #[arg(long, value_name = "DIR")]
        into: Option<PathBuf>,
    },
}

/// The commands that only units, hooks, packages and this program itself run: no help, suggestion or completion names
/// them. docs/charm.md, docs/host.md and docs/packages.md do.
#[derive(Debug, Subcommand)]
pub(crate) enum Script {
    /// Wait for this boot's GPUs and publish them to engines; restarts nothing. rocworker-boot.service runs it
    #[command(hide = true)]
    Boot,
    /// Wait for this boot's cards and set the profile of the configuration. rocworker-partition.service runs it
    #[command(hide = true)]
    BootPartitions,
    #[command(hide = true)]
    /// Run as a Juju charm's dispatch, or from another charm's own hook (docs/charm.md)
    Hook {
        /// The hook, as install or config-changed, or actions/NAME. Left out: what Juju's environment says
        name: Option<String>,
        /// Print the unit's status instead of setting it: the charm whose hook this is sets its own
        #[arg(long)]
        guest: bool,
    },
    #[command(subcommand, hide = true)]
    Deb(super::deb::Command),
    /// What `rocworker remote` runs on the target machine (docs/monitoring.md); the exporter is rocworker-exporter
    #[command(subcommand, hide = true)]
    Exporter(super::exporter::Command),
    #[command(hide = true)]
    Probe(super::probe::Probe),
    /// Print a snapshot of the machine for each line of stdin. `rocworker --host HOST top` runs it there
    #[command(hide = true)]
    Snapshots,
    /// Read files for the rocworker that has started this one (src/reader)
    #[command(hide = true)]
    ReadFiles,
    /// Wait for a unit that takes long to end, and start it again
    #[command(hide = true)]
    Settle {
        /// The unit, as systemd names it
        unit: String,
    },
    /// Unpack an archive of TheRock's to /opt/rocm-VERSION, unmanaged. deploy/install_rocm_tarball.sh runs it
    #[command(hide = true)]
    Therock(super::therock::Archive),
}
