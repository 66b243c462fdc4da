use std::path::PathBuf;

use clap::{ArgAction, Parser, Subcommand, ValueEnum};

/// Turns a machine with AMD GPUs into a container worker.
#[derive(Debug, Parser)]
#[command(name = "rocworker", version, max_term_width = 110, propagate_version = true)]
pub(crate) struct Args {
    /// Work beneath this directory instead of /: a captured machine, or an image being built
    #[arg(long, global = true, value_name = "DIR", default_value = "/")]
    pub(crate) root: PathBuf,

    /// Read this configuration (a path of this machine, also with --root)
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// How the answer is written
    #[arg(long, global = true, value_enum, default_value_t = Format::Table)]
    pub(crate) output: Format,

    /// Say more on stderr; twice for everything
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Table,
    /// For programs: stable, documented in docs/json.md
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List every GPU, its nodes, and whether a container can use it, and if not why not
    Detect,
    /// Show what apply would change, like a diff; writes nothing
    Plan {
        /// End with 3 when there is something to change
        #[arg(long)]
        exit_code: bool,
        /// Save the plan in this file (a path of this machine, also with --root), for apply FILE
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Apply the configuration; the state before is kept for undo
    Apply {
        /// Apply this saved plan (a path of this machine); refuse if the machine has changed
        file: Option<PathBuf>,
        /// Show what would change, and change nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Wait for this boot's GPUs and publish them to engines; restarts nothing. rocworker-boot.service runs it
    Boot,
    /// Show managed files, drift and pending restarts
    Status,
    /// Revert everything that rocworker manages, the last change first
    Undo {
        /// Also revert managed files that changed since apply
        #[arg(long)]
        force: bool,
    },
    /// Show what rocworker changed here, when, and who asked for it
    History,
    /// Run as a Juju charm's dispatch, or from another charm's own hook (docs/charm.md)
    Hook {
        /// The hook, as install or config-changed, or actions/NAME. Left out: what Juju's environment says
        name: Option<String>,
        /// Print the unit's status instead of setting it: the charm whose hook this is sets its own
        #[arg(long)]
        guest: bool,
    },
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
    /// Show or release who holds each GPU under exclusive sharing
    #[command(subcommand)]
    Lease(super::lease::Command),
    /// Print the host's commands that pass AMD's GPUs into a container of LXD or Incus
    #[command(subcommand)]
    Lxd(super::lxd::Command),
    /// Run the daemon that maintains the configured state. rocworker.service runs it
    Serve,
    /// Unpack an archive of TheRock's to /opt/rocm-VERSION, unmanaged. deploy/install_rocm_tarball.sh runs it
    #[command(hide = true)]
    Therock(super::therock::Archive),
    #[command(subcommand, hide = true)]
    Deb(super::deb::Command),
    #[command(hide = true)]
    Probe(super::probe::Probe),
    /// Wait for a unit that takes long to end, and start it again
    #[command(hide = true)]
    Settle {
        /// The unit, as systemd names it
        unit: String,
    },
    /// Print the worker's tags, comma-joined
    Tags {
        /// As a line for an environment file: CONCOURSE_TAG=…
        #[arg(long)]
        env: bool,
    },
    /// Check from inside a task that it can use AMD's GPUs; its image needs no ROCm for that
    TaskCheck,
    /// Show every command on a built-in synthetic machine; needs no rights and no GPU
    Demo,
    /// Print the completions of a shell
    Completions { shell: clap_complete::Shell },
    /// Print the manual page
    Man {
        /// Write a page for the program and one for each command into this folder of this machine, which is there already
        #[arg(long, value_name = "DIR")]
        into: Option<PathBuf>,
    },
}
