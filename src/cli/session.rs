use std::path::PathBuf;

use root::Root;
use tracing::level_filters::LevelFilter;

use super::args::{Args, Format};

/// What every command works with: the machine, and how to answer.
pub(crate) struct Session {
    pub(crate) root: Root,
    /// `--config`, a path of the machine that the program runs on.
    pub(crate) config: Option<PathBuf>,
    pub(crate) format: Format,
}

/// The command line names something that cannot be worked with.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Misuse(pub(crate) String);

impl Session {
    pub(crate) fn new(args: &Args) -> anyhow::Result<Self> {
        let root = Root::open(&args.root).map_err(|error| Misuse(format!("--root: {error}")))?;
        Ok(Self { root, config: args.config.clone(), format: args.output })
    }
}

/// Warnings always, what is done with `-v`, everything with `-vv`.
pub(crate) fn log_to_stderr(verbose: u8) {
    let level = match verbose {
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        _ => LevelFilter::TRACE,
    };
    tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_target(false)
        .without_time()
        .init();
}
