//! `doctor --canary`: a short-lived container through each engine that is set up here, to see that what the other
//! checks promise is so: KFD answers inside, a granted GPU's render node opens, another GPU's is refused.
//!
//! No image and no network: the container has this machine's /usr, read-only, and this very program, whose hidden
//! command `probe` does the opens. What is made for it has names of its own, and is gone afterwards.

pub(crate) mod answer;
mod came;
pub(crate) mod kfd;
mod names;
mod nest;
pub mod probe;
mod question;
mod turn;
mod verdict;
mod way;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use allocation::policy::Policy;
use nix::unistd::geteuid;
use reconcile::command::{Error, Programs};
use root::Root;

pub use answer::Answer;

use crate::check::{About, Check};
use crate::config::Config;
use crate::facts::Facts;
use crate::program::Program;
use came::Answered;
pub(crate) use came::CanaryResult;
pub(crate) use names::{NAMESPACE, PREFIX};
pub(crate) use nest::{ANSWER, Mount, Nest, PROGRAM};
pub(crate) use question::{Granted, Question};
use turn::Turn;
pub(crate) use way::Way;

/// The component that the checks belong to.
pub const NAME: &str = "canary";

/// What the wrapper may do.
pub(crate) const POLICY: &str = "/etc/rocworker/wrapper.json";
const POLICY_LIMIT: usize = 1 << 20;

/// How long an engine may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// To run the container, from its creation to its end.
    pub run: Duration,
    /// To answer, or to remove one.
    pub call: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { run: Duration::from_secs(60), call: Duration::from_secs(15) }
    }
}

/// Somebody wanted it to end before its end.
#[derive(Debug, thiserror::Error)]
#[error("doctor --canary was interrupted: the containers that it had started are removed")]
pub struct Interrupted;

/// What is asked of every engine, and what with.
pub(crate) struct CanaryContext<'a> {
    pub(crate) root: &'a Root,
    pub(crate) config: &'a Config,
    /// What ends early once somebody wants it to.
    pub(crate) programs: Programs,
    /// What removes, and is not to be interrupted.
    pub(crate) keepers: &'a Programs,
    pub(crate) facts: &'a Facts,
    pub(crate) limits: Limits,
    pub(crate) nest: Nest<'a>,
    leased: Leased,
}

/// Names of the render nodes that somebody has by a lease.
pub type Leased = fn(&Root) -> Result<Vec<String>, String>;

/// What a canary is made of.
#[derive(Debug)]
pub struct Canary<'a> {
    pub root: &'a Root,
    pub config: &'a Config,
    pub facts: &'a Facts,
    /// `None` beneath another Root than `/`.
    pub programs: Option<&'a Programs>,
    pub limits: Limits,
    pub leased: Leased,
    /// Becomes true when it is to end.
    pub interrupt: &'a Arc<AtomicBool>,
}

/// Starts a container through each engine, as it is tried.
///
/// # Errors
/// When it was interrupted.
pub(crate) fn examine(
    canary: &Canary<'_>,
    engines: impl Iterator<Item = (&'static str, impl Fn(&CanaryContext<'_>) -> CanaryResult)>,
) -> Result<Vec<Check>, Interrupted> {
    let Canary { root, config, facts, programs, limits, leased, interrupt } = *canary;
    let keepers = match ready(config, facts, programs) {
        Ok(programs) => programs,
        Err(why) => return Ok(vec![About::all(NAME).skipped(why)]),
    };
    let turn = match Turn::take(root) {
        Ok(turn) => turn,
        Err(why) => return Ok(vec![About::all(NAME).warning(why, "put that right, then try again")]),
    };
    let mut checks = Vec::new();
    for (engine, try_it) in engines {
        let nest = match turn.nest() {
            Ok(nest) => nest,
            Err(why) => {
                checks.push(About::all(NAME).warning(why, "put that right, then try again"));
                break;
            }
        };
        let programs = keepers.interrupted_by(Arc::clone(interrupt));
        let context = CanaryContext { root, config, programs, keepers, facts, limits, nest, leased };
        checks.extend(try_it(&context).checks(engine));
        if interrupt.load(Ordering::Relaxed) {
            return Err(Interrupted);
        }
        if let Err(left) = context.nest.remove() {
            checks.push(About::one(NAME, engine).warning(left, "remove it by hand"));
        }
    }
    if let Err(left) = turn.end() {
        checks.push(About::all(NAME).warning(left, "remove it by hand"));
    }
    Ok(checks)
}

/// The commands, where a container can be started at all.
fn ready<'a>(config: &Config, facts: &Facts, programs: Option<&'a Programs>) -> Result<&'a Programs, String> {
    let programs = programs.ok_or("reads a Root: no container is started")?;
    if !geteuid().is_root() {
        return Err("starting a container through the machine's engines needs root".to_owned());
    }
    Question::of(config, facts, question::Granted::One, &[])?;
    Ok(programs)
}

impl CanaryContext<'_> {
    /// The wrapper's program as engines are told of it.
    pub(crate) fn wrapper(&self) -> Result<PathBuf, String> {
        Program::find(self.root, None).map(|program| program.path)
    }

    /// The wrapper's policy, by which it decides; `None` where there is none.
    fn policy(&self) -> Result<Option<Policy>, String> {
        let text = match self.root.read_trusted(POLICY, POLICY_LIMIT) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error.to_string()),
        };
        Policy::parse(&text).map(Some).map_err(|error| format!("{POLICY}: {error}"))
    }

    /// What the container answered, once it ran. `left`: what of it could not be removed. `log`: whose log tells more.
    pub(crate) fn came(
        &self,
        question: Question,
        way: String,
        remedy: String,
        left: Option<String>,
        log: &str,
    ) -> CanaryResult {
        match self.nest.answer() {
            Ok(answer) => CanaryResult::Answered(Box::new(Answered { question, answer, way, remedy, left })),
            Err(why) => {
                CanaryResult::failed(why, format!("try again, and look into {log}'s log where it stays so"))
            }
        }
    }

    /// What a command came to, without its arguments, which are many and ours.
    pub(crate) fn told(&self, error: &Error) -> String {
        let program = |argv: &str| argv.split(' ').next().unwrap_or_default().to_owned();
        match error {
            Error::Failed { argv, status, said } => format!("{} ended with {status}{said}", program(argv)),
            Error::TimedOut { argv, limit } => {
                format!("{} was killed: after {} s it had not ended", program(argv), limit.as_secs())
            }
            Error::Start { argv, cause } => format!("cannot run {}: {cause}", program(argv)),
            other => other.to_string(),
        }
    }
}
