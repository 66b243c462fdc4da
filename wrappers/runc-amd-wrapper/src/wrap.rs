//! Decides what happens between the caller and runc.

use std::path::PathBuf;

use allocation::policy::DefaultGrant;

use crate::args::{self, Call, Command, ParsedCommandLine};
use crate::container::Container;
use crate::create::Create;
use crate::environment::Environment;
use crate::log::Log;
use crate::paths::Paths;
use crate::policy_file::{self, PolicyFile};
use crate::{exec_process, runtime};

/// The reason why an ordinary user's request fails, whatever failed first.
const ROOTLESS: &str = "only root's runc can be given GPUs by this wrapper: as an ordinary user, name them by CDI, as \
                        `podman run --device amd.com/gpu=0` does";

/// The end of a call.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Run this program in this process's place, with the arguments as they came and with
    /// [`runtime::DEPTH`] set to `depth`.
    Run { runtime: PathBuf, depth: u32 },
    /// Exits with 1, after a sentence was printed.
    Fail,
}

/// Reads the call, does to the bundle or process file what it wants, and names the runtime to run.
/// `arguments` are those after the program's name.
pub fn wrap(arguments: &[&[u8]], environment: &Environment<'_>, paths: &Paths) -> Verdict {
    let reading = args::read(arguments);
    let log = Log::of(&reading.global());
    let wrapper = Wrapper { environment, paths, log };
    match wrapper.prepare(&reading) {
        Ok((runtime, depth)) => Verdict::Run { runtime, depth },
        Err(mut sentence) => {
            if environment.effective_user != paths.lease.owner {
                sentence = [&sentence, "; ", ROOTLESS].concat();
            }
            log.fail(&sentence);
            Verdict::Fail
        }
    }
}

struct Wrapper<'a> {
    environment: &'a Environment<'a>,
    paths: &'a Paths,
    log: Log<'a>,
}

impl Wrapper<'_> {
    fn prepare(&self, reading: &ParsedCommandLine<'_>) -> Result<(PathBuf, u32), String> {
        let depth = runtime::next_depth(self.environment.get(runtime::DEPTH))?;
        let wanted_runtime = match reading {
            ParsedCommandLine::Certain(
                call @ Call { command: Command::Create { bundle, id } | Command::Run { bundle, id }, .. },
            ) => {
                let container = self.container(call, id);
                let create = Create {
                    bundle: *bundle,
                    container: container.as_ref(),
                    paths: self.paths,
                    log: self.log,
                };
                let policy = policy_file::load(&self.paths.policy, self.paths.lease.owner);
                create.prepare(&policy)?;
                match policy {
                    PolicyFile::Good(policy) => policy.runtime.map(PathBuf::from),
                    // Even with a broken policy one runtime has to serve all calls for a container.
                    PolicyFile::Broken(_) => {
                        policy_file::runtime(&self.paths.policy, self.paths.lease.owner).flatten()
                    }
                    PolicyFile::Absent | PolicyFile::NotRoots(_) => None,
                }
            }
            ParsedCommandLine::Certain(call) => {
                self.prepare_other(call)?;
                policy_file::runtime(&self.paths.policy, self.paths.lease.owner).flatten()
            }
            ParsedCommandLine::Doubtful(calls) => {
                match policy_file::runtime(&self.paths.policy, self.paths.lease.owner) {
                    None => None,
                    Some(runtime) => {
                        calls.iter().try_for_each(|call| self.refuse_in_doubt(call))?;
                        runtime
                    }
                }
            }
        };
        let own = runtime::own(&self.paths.own);
        let runtime = match wanted_runtime {
            // No policy may keep a container from starting that asks for nothing.
            Some(path) => runtime::named(&path, own.as_ref()).or_else(|error| {
                self.log.warn(&format!("{error}; the next runc on PATH is run in its place"));
                runtime::on_path(self.environment.get("PATH"), own.as_ref())
            }),
            None => runtime::on_path(self.environment.get("PATH"), own.as_ref()),
        };
        Ok((runtime?, depth))
    }

    fn container<'c>(&self, call: &Call<'c>, id: &'c [u8]) -> Option<Container<'c>> {
        Container::of(call.global.root, id, self.environment, self.paths)
    }

    /// Prepares every call but create and run. The record decides here, and not the policy: a container keeps
    /// what it was given when the policy is gone.
    fn prepare_other(&self, call: &Call<'_>) -> Result<(), String> {
        match call.command {
            Command::Exec { process: Some(file), id } if !file.is_empty() => {
                let Some(container) = self.container(call, id) else { return Ok(()) };
                let user = self.environment.effective_user;
                exec_process::prepare(&container, file, user, self.paths, &self.log)
            }
            Command::Delete { force, id } => {
                if let Some(container) = self.container(call, id) {
                    container.forget(force, self.paths, &self.log);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A possible meaning of the line: fails if GPUs depend on which one is right.
    fn refuse_in_doubt(&self, call: &Call<'_>) -> Result<(), String> {
        const DOUBT: &str = "a flag on runc's command line is not known to this version of the wrapper, so that it is \
                             not certain which container is meant: write the flag as --flag=value, or update the wrapper";
        match call.command {
            Command::Create { bundle, .. } | Command::Run { bundle, .. } => {
                Create { bundle, container: None, paths: self.paths, log: self.log }
                    .refuse_if_it_asks(DOUBT, DefaultGrant::None)
            }
            Command::Exec { process: Some(_), id }
                if self.container(call, id).is_some_and(|container| container.has_record(self.paths)) =>
            {
                Err(format!("a container with GPUs may be meant, but {DOUBT}"))
            }
            _ => Ok(()),
        }
    }
}
