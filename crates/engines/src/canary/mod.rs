//! `doctor --canary`: a short-lived container through each engine that is set up here, to see that what the other
//! checks promise is so: KFD answers inside, a granted GPU's render node opens, another GPU's is refused.
//!
//! No image and no network: the container has nothing but this very program, which needs no library as it is handed out.
//! Its hidden command `probe` does the opens. Everything made for the container has names of its own, and is removed
//! afterwards.

mod checks;
pub mod kfd;
pub mod probe;
mod question;
mod sandbox;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use allocation::policy::{self, Policy};
use check::{About, Check, NO_COMMANDS};
use config::Config;
use host::facts::Facts;
use nix::unistd::geteuid;
use reconcile::command::{Error, Programs};
use root::{Lock, Root};

use crate::program::Program;

pub(crate) use question::Question;
pub(crate) use sandbox::{PREFIX, Sandbox};

pub const NAME: &str = "canary";

const LOCK: &str = "/run/rocworker/canary.lock";
/// How long a canary waits for another one. It gives up if the other, which may take far longer, still runs.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long an engine may take to answer, or to remove a container.
pub(crate) const CALL: Duration = Duration::from_secs(15);

/// A signal ended the canary early.
#[derive(Debug, thiserror::Error)]
#[error("doctor --canary was interrupted: the containers that it had started are removed")]
pub struct Interrupted;

/// Names of the render nodes that a container has by a lease.
pub type Leased = fn(&Root) -> Result<Vec<String>, String>;

/// The machine, the configuration and the programs with which canaries run.
#[derive(Debug)]
pub struct Canary<'a> {
    pub root: &'a Root,
    pub config: &'a Config,
    pub facts: &'a Facts,
    /// `None` beneath another Root than `/`.
    pub programs: Option<&'a Programs>,
    /// How long an engine may take to run its container, from its creation to its end.
    pub limit: Duration,
    pub leased: Leased,
    /// Becomes true when the canary is to end.
    pub interrupt: &'a Arc<AtomicBool>,
}

/// What the function of one engine gets to start its container.
pub(crate) struct CanaryContext<'a> {
    pub(crate) root: &'a Root,
    pub(crate) config: &'a Config,
    pub(crate) facts: &'a Facts,
    pub(crate) sandbox: Sandbox,
    /// Ends early on a signal.
    pub(crate) programs: Programs,
    /// Removes containers, and is not interrupted.
    uninterrupted: &'a Programs,
    engine: &'static str,
    limit: Duration,
    leased: Leased,
}

/// Starts a container through each engine. An engine's function gives its checks, or the one that says why there is no
/// container.
///
/// # Errors
/// When the canary was interrupted.
pub(crate) fn examine(
    canary: &Canary<'_>,
    engines: impl Iterator<Item = (&'static str, impl Fn(&CanaryContext<'_>) -> Result<Vec<Check>, Check>)>,
) -> Result<Vec<Check>, Interrupted> {
    let about = || About::all(NAME);
    let retry = |why| about().warning(why, "put that right, then try again");
    let uninterrupted = match ready(canary) {
        Ok(programs) => programs,
        Err(why) => return Ok(vec![about().skipped(why)]),
    };
    // Canaries take turns: each removes what an earlier one left.
    let lock = match canary.root.lock(LOCK, PATIENCE) {
        Ok(lock) => lock,
        Err(root::Error::Locked { .. }) => {
            return Ok(vec![retry("another rocworker doctor --canary runs".to_owned())]);
        }
        Err(error) => return Ok(vec![retry(error.to_string())]),
    };
    let mut checks = Vec::new();
    let stale = sandbox::remove_stale(canary.root);
    let engines = engines.take_while(|_| stale.is_ok() && !canary.interrupt.load(Ordering::Relaxed));
    checks.extend(stale.as_ref().err().cloned().map(retry));
    for (engine, try_it) in engines {
        // What one engine makes in a root file system, no other finds there.
        let sandbox = match Sandbox::build() {
            Ok(sandbox) => sandbox,
            Err(why) => {
                checks.push(retry(why));
                break;
            }
        };
        let Canary { root, config, facts, limit, leased, interrupt, .. } = *canary;
        let programs = uninterrupted.interrupted_by(Arc::clone(interrupt));
        let context =
            CanaryContext { root, config, facts, limit, sandbox, programs, uninterrupted, engine, leased };
        checks.extend(try_it(&context).unwrap_or_else(|check| vec![check]));
        if let Err(left) = sandbox::remove(root, &context.sandbox.folder) {
            checks.push(About::one(NAME, engine).warning(left, "remove it by hand"));
        }
    }
    if let Err(error) = unlock(canary.root, lock) {
        checks.push(about().warning(error.to_string(), "remove it by hand"));
    }
    if canary.interrupt.load(Ordering::Relaxed) { Err(Interrupted) } else { Ok(checks) }
}

/// The commands, where a container can be started at all.
fn ready<'a>(canary: &Canary<'a>) -> Result<&'a Programs, String> {
    let programs = canary.programs.ok_or(NO_COMMANDS)?;
    if !geteuid().is_root() {
        return Err("starting a container through the machine's engines needs root".to_owned());
    }
    Question::of(canary.config, canary.facts, &[])?;
    Ok(programs)
}

fn unlock(root: &Root, lock: Lock) -> Result<(), root::Error> {
    root.remove(LOCK)?;
    drop(lock);
    // The wrapper's folders may be there.
    root.remove_empty_folder(sandbox::FOLDER).map(drop)
}

impl CanaryContext<'_> {
    fn about(&self) -> About {
        About::one(NAME, self.engine)
    }

    pub(crate) fn skipped(&self, why: impl Into<String>) -> Check {
        self.about().skipped(why)
    }

    pub(crate) fn failed(&self, evidence: impl Into<String>, remedy: impl Into<String>) -> Check {
        self.about().failed(evidence, remedy.into())
    }

    /// The wrapper's program as engines' configuration names it.
    pub(crate) fn wrapper(&self) -> Result<PathBuf, String> {
        Program::find(self.root, None).map(|program| program.path)
    }

    /// The wrapper's policy; `None` where there is none.
    fn policy(&self) -> Result<Option<Policy>, String> {
        let text = match self.root.read_trusted(policy::PATH, policy::LIMIT) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        Policy::parse(&text).map(Some).map_err(|error| format!("{}: {error}", policy::PATH))
    }

    /// Runs a command of the engine's, to the container's end.
    pub(crate) fn run(&self, argv: &[&str]) -> Result<(), String> {
        self.programs.run(argv, self.limit).map(drop).map_err(|error| without_arguments(&error))
    }

    /// The words that a command prints, which no signal ends early.
    pub(crate) fn call(&self, argv: &[&str]) -> Result<Vec<String>, String> {
        let output = self.uninterrupted.run(argv, CALL);
        let output = output.map_err(|error| without_arguments(&error))?;
        Ok(String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect())
    }

    /// The checks of a container. `start` runs it to its end, `remove` removes all that canaries left in this engine.
    /// `remedy`: what to do when the container has not what it asked for, or more. `log`: whose log says more.
    pub(crate) fn checks(
        &self,
        question: &Question,
        (remedy, log): (&str, &str),
        remove: impl Fn() -> Result<(), String>,
        start: impl FnOnce() -> Result<(), String>,
    ) -> Result<Vec<Check>, Check> {
        // A killed canary may have left containers.
        let stale = remove();
        let started = start();
        let left = stale.and(remove()).err();
        started.map_err(|why| self.failed(why, remedy))?;
        let answer = self.sandbox.answer(self.root).map_err(|why| {
            self.failed(why, format!("try again, and look into {log}'s log where it stays so"))
        })?;
        let mut checks = checks::checks(|| self.about(), question, &answer, remedy);
        checks.extend(left.map(|left| self.about().warning(left, "remove it by hand")));
        Ok(checks)
    }

    /// The command `run` of docker or podman with its options, up to the image or the root file system.
    pub(crate) fn docker_run(&self, program: &str, question: &Question) -> Vec<String> {
        let run = [program, "run", "--rm", "--name", &self.sandbox.name, "--network", "none"];
        let rights = ["--cap-add", "MKNOD", "--security-opt", "label=disable", "--log-driver", "none"];
        let mut argv: Vec<String> = run.iter().chain(&rights).map(ToString::to_string).collect();
        argv.extend(question.flags.iter().cloned());
        argv.extend(self.sandbox.mounts.iter().flat_map(|mount| {
            let access = if mount.writable { "" } else { ",readonly" };
            ["--mount".to_owned(), format!("type=bind,source={},target={}{access}", mount.from, mount.to)]
        }));
        argv
    }

    /// Removes every container of a canary, by `rm` with these options.
    pub(crate) fn docker_remove(&self, program: &str, filter: &str, rm: &[&str]) -> Result<(), String> {
        for id in self.call(&[program, "ps", "--all", "--quiet", "--no-trunc", "--filter", filter])? {
            self.call(&[&[program, "rm", "--force"], rm, &[&id]].concat())
                .map_err(|why| format!("{program} keeps the container {id}: {why}"))?;
        }
        Ok(())
    }
}

/// The error of a command without its arguments, which are many and rocworker's own.
pub(crate) fn without_arguments(error: &Error) -> String {
    let (Error::NotFound(argv)
    | Error::Start { argv, .. }
    | Error::Failed { argv, .. }
    | Error::TimedOut { argv, .. }
    | Error::Held { argv }
    | Error::Interrupted { argv }) = error;
    let program = argv.split(' ').next().unwrap_or_default();
    error.to_string().replacen(argv, program, 1)
}

pub fn words(argv: &[String]) -> Vec<&str> {
    argv.iter().map(String::as_str).collect()
}

fn display(path: &Path) -> String {
    path.display().to_string()
}
