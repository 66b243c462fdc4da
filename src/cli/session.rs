use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

use anyhow::bail;
use config::selection::Selection;
use config::{ClusterBloom, Config};
use host::facts::Facts;
use host::timestamp::Timestamp;
use reconcile::command::Programs;
use render::Templates;
use root::Root;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use tracing::level_filters::LevelFilter;

use super::options::{self, Format};
use crate::memory::Memory;
use crate::reader::Readers;
use crate::run::{ConfigFile, Own, Run, without_restarts};

/// What every command works with: the machine, and how to answer.
pub(crate) struct Session {
    pub(crate) root: Root,
    /// Who reads the kernel's files for the Root; `None` where each read is answered.
    pub(crate) readers: Option<Arc<Readers>>,
    /// `--config`, a path of the machine that the program runs on.
    pub(crate) config: Option<PathBuf>,
    pub(crate) format: Format,
    /// Whether everything is to be shown.
    pub(crate) verbose: bool,
    /// `None` beneath another Root than `/`.
    pub(crate) programs: Option<Programs>,
}

/// The command line names something that cannot be worked with.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Misuse(pub(crate) String);

impl Session {
    pub(crate) fn new(args: &options::Options) -> anyhow::Result<Self> {
        let root = Root::open(&args.root).map_err(|error| Misuse(not_a_folder(&args.root, &error)))?;
        let readers = root.may_wait().then(|| Arc::new(Readers::of(&root)));
        let root = match &readers {
            Some(readers) => root.read_by(readers.clone()),
            None => root,
        };
        let programs = Programs::of(&root);
        let (config, verbose) = (args.config.clone(), args.verbose > 0);
        Ok(Self { root, readers, config, format: args.output, verbose, programs })
    }

    /// The configuration that a person asks for: `--config`'s, or the machine's own.
    pub(crate) fn config(&self) -> anyhow::Result<Config> {
        Ok(logged(self.config_file()?.asked_for(&self.root)?))
    }

    /// The configuration in force, for commands that run unattended.
    pub(crate) fn config_in_force(&self) -> anyhow::Result<Config> {
        Ok(logged(self.config_file()?.in_force(&self.root)?))
    }

    /// No configuration stops an undo: without one it restarts no unit.
    pub(crate) fn config_for_undo(&self) -> anyhow::Result<Config> {
        self.config().or_else(|error| {
            tracing::warn!("{error:#}; undo continues without it, and restarts nothing");
            Ok(without_restarts(&self.root)?)
        })
    }

    pub(crate) fn config_file(&self) -> anyhow::Result<ConfigFile> {
        let named =
            self.config.as_deref().map(|path| anyhow::Ok((caller()?, absolute(path)?))).transpose()?;
        Ok(ConfigFile { named, environment: ClusterBloom::of(variable).map_err(Misuse)? })
    }

    /// The pipeline by this configuration.
    pub(crate) fn pipeline<'s>(&'s self, config: &'s Config) -> anyhow::Result<Run<'s>> {
        let now = Timestamp::of(SystemTime::now());
        let caller = crate::run::caller(&caller()?);
        Ok(Run { root: &self.root, config, programs: self.programs.as_ref(), own: Own::find(), now, caller })
    }

    /// The machine, and what the configuration's words meant when they were first applied.
    pub(crate) fn facts(&self) -> anyhow::Result<Facts> {
        Ok(Facts::read(&self.root).remembering(Memory::read(&self.root)?.pinned))
    }

    /// The templates, the operator's own among them.
    pub(crate) fn templates(&self) -> Templates {
        let templates = Templates::read(&self.root);
        for path in templates.unknown() {
            tracing::warn!("{} overrides no template: none has this name", path.display());
        }
        templates
    }

    /// A GPU that was asked for and cannot be used is no error, and no secret either.
    pub(crate) fn warn_of_left_out(&self, selection: &Selection<'_>) {
        selection.why_left_out().for_each(|why| tracing::warn!("{why}"));
    }
}

/// Why `--root` cannot be read; where an archive has its name, how the archive becomes a folder.
fn not_a_folder(path: &Path, error: &root::Error) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let packed = path.with_file_name(format!("{name}.tar.gz"));
    let archives =
        [path.to_owned(), packed].into_iter().filter(|path| path.extension() == Some("gz".as_ref()));
    let is_file = |path: &PathBuf| caller().is_ok_and(|it| it.exists(absolute(path).unwrap_or_default()));
    match archives.into_iter().find(is_file) {
        Some(archive) => format!(
            "--root: {0} is packed: unpack a report with `tar xzf {0}` and name its folder; of the repository's \
             captures `cargo xtask captures` makes folders",
            archive.display()
        ),
        None if path.is_file() => {
            format!(
                "--root: {} is no folder: name one that holds a machine, such as an unpacked report; rocworker demo \
                 --keep makes one",
                path.display()
            )
        }
        None => format!("--root: {error}"),
    }
}

fn logged(config: Config) -> Config {
    config.unused_variables.iter().for_each(|text| tracing::info!("{text}"));
    config
}

/// A variable of the environment, if it is text.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place where the environment is read, and handed in as data"
)]
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The machine that the program runs on. A path on the command line is meant there, as with every program;
/// a path in the configuration is meant beneath `--root`.
pub(crate) fn caller() -> anyhow::Result<Root> {
    Ok(Root::open(Path::new("/"))?)
}

pub(crate) fn absolute(path: &Path) -> anyhow::Result<PathBuf> {
    Ok(std::path::absolute(path)?)
}

/// A file of the caller's that is to be written: its path may go through links of the caller's, and the last folder
/// must be there.
pub(crate) fn callers_file(path: &Path) -> anyhow::Result<PathBuf> {
    let path = absolute(path)?;
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        bail!("{} names no file", path.display());
    };
    Ok(callers_folder(folder)?.join(name))
}

/// A folder of the caller's, in which something is to be written.
pub(crate) fn callers_folder(folder: &Path) -> anyhow::Result<PathBuf> {
    let found = folder.canonicalize().and_then(|folder| match folder.is_dir() {
        true => Ok(folder),
        false => Err(std::io::ErrorKind::NotADirectory.into()),
    });
    found.map_err(|error| Misuse(format!("cannot write into {}: {error}", folder.display())).into())
}

/// Becomes true on a signal to end: the program then ends or removes what it has started.
pub(crate) fn interrupt() -> anyhow::Result<Arc<AtomicBool>> {
    let interrupt = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&interrupt))?;
    }
    Ok(interrupt)
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
        // anstream takes the colours out where they are not wanted: a pipe, NO_COLOR.
        .with_writer(|| anstream::AutoStream::auto(std::io::stderr()))
        .with_target(false)
        .without_time()
        .init();
}
