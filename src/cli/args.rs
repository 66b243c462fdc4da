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
        /// Keep the plan in this file (a path of this machine, also with --root), for apply FILE
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Bring the machine to what the configuration says; what was there before is kept for undo
    Apply {
        /// Only if this is what would be done, and nothing when the machine has moved since (a path of this machine)
        file: Option<PathBuf>,
        /// Show what would change, and change nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Wait for this start's GPUs and tell engines of them; restarts nothing. rocworker-boot.service runs it
    Boot,
    /// What is ours here, what differs from what should be, what is still to be restarted
    Status,
    /// Take back everything that is ours, the last first
    Undo {
        /// Also files of ours that somebody has changed since
        #[arg(long)]
        force: bool,
    },
    /// What was changed here, when, and by whom
    History,
    /// Run as a Juju charm's dispatch, or from another charm's own hook (docs/charm.md)
    Hook {
        /// The hook, as install or config-changed, or actions/NAME. Left out: what Juju's environment says
        name: Option<String>,
        /// Print the unit's status instead of setting it: the charm whose hook this is sets its own
        #[arg(long)]
        guest: bool,
    },
    /// The CDI spec: what engines read to find the GPUs
    #[command(subcommand)]
    Cdi(super::cdi::Command),
    /// Check the way from PCI to a container, each step with its evidence and its remedy; reads only
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
    /// Who has which GPU, under a policy of exclusive sharing
    #[command(subcommand)]
    Lease(super::lease::Command),
    /// The host's commands that pass AMD's GPUs into a container of LXD or Incus
    #[command(subcommand)]
    Lxd(super::lxd::Command),
    /// Keep the machine so while it runs: follow its GPUs, the configuration and files of ours. rocworker.service runs it
    Serve,
    #[command(subcommand, hide = true)]
    Deb(super::deb::Command),
    #[command(hide = true)]
    Probe(super::probe::Probe),
    /// What waits for a unit that takes long to end, and starts it again
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
    /// The whole story on a built-in synthetic machine: no rights and no GPU needed
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
