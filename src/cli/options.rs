//! Options that several commands take.

use std::path::PathBuf;

use clap::{ArgAction, ValueEnum};

/// What every command takes, but for those that src/cli/help.rs lists.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Options {
    /// Work beneath this directory instead of /: a captured machine, or an image being built
    #[arg(long, global = true, value_name = "DIR", default_value = "/")]
    pub(crate) root: PathBuf,

    /// Read this configuration (a path of this machine, also with --root)
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// How the answer is written
    #[arg(short, long, global = true, value_enum, value_name = "FORMAT", default_value_t = Format::Table)]
    pub(crate) output: Format,

    /// As -o json
    #[arg(long, global = true, conflicts_with = "output")]
    pub(crate) json: bool,

    /// Ask these machines over ssh, comma-separated, instead of this one: [user@]name,… (docs/fleet.md)
    #[arg(long, global = true, value_name = "HOSTS", value_delimiter = ',', conflicts_with = "root")]
    pub(crate) host: Vec<String>,

    /// Ask the machines of this group of the configuration's inventory
    #[arg(long, visible_alias = "group", global = true, value_name = "GROUP", conflicts_with_all = ["root", "host"])]
    pub(crate) hosts: Option<String>,

    #[command(flatten)]
    pub(crate) color: colorchoice_clap::Color,

    /// Say more on stderr; twice for everything
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people, 100 columns wide
    Table,
    /// For people, with every column in full
    Wide,
    /// For programs: stable, documented in docs/json.md
    Json,
    /// For kubectl, of `rocworker labels` alone
    #[value(hide = true)]
    Yaml,
    /// A feature file of Node Feature Discovery's, of `rocworker labels` alone
    #[value(hide = true)]
    Nfd,
}

impl Format {
    /// The format's name as an argument of `-o`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Wide => "wide",
            Self::Json => "json",
            Self::Yaml => "yaml",
            Self::Nfd => "nfd",
        }
    }

    /// Whether a program asks, rather than a person.
    pub(crate) fn is_json(self) -> bool {
        self == Self::Json
    }
}

/// A part of the machine that can be applied by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Only {
    /// rocm-exporter.service, which serves metrics to Prometheus
    Exporter,
}
