//! The canary for containerd: the system's own, and Concourse's. Each is asked through the `ctr` of its installation,
//! in a namespace of rocworker's.

use std::path::{Path, PathBuf};

use allocation::policy;
use check::Check;
use edit::Format;
use host::version::Version;

use super::listener::Listener;
use crate::canary::{CanaryContext, Question, words};

/// Socket on which the system's containerd and Concourse's listen by default.
const ADDRESS: &str = "/run/containerd/containerd.sock";

/// containerd's namespace: rocworker's alone, never Concourse's or Kubernetes'.
const NAMESPACE: &str = "rocworker";

/// `ctr` gives CDI's devices from containerd 2.0 on (containerd#8525): that of 1.7.24 takes paths of devices alone,
/// although its CRI knows CDI.
const CDI: Version = Version { major: 2, minor: 0, patch: 0 };

struct Daemon {
    address: PathBuf,
    /// The wrapper, where the runtime is named; Concourse's shims find it as their runc.
    wrapper: Option<PathBuf>,
    listener: Listener,
}

/// Checks the system's own containerd.
pub(super) fn check(context: &CanaryContext<'_>) -> Result<Vec<Check>, Check> {
    let address = address(context);
    let listener = Listener::at(context.root, &address)
        .map_err(|why| context.failed(why, "see whether containerd runs"))?
        .ok_or_else(|| context.skipped(format!("does not run: nothing answers at {}", address.display())))?;
    if listener.of_concourse {
        return Err(context.skipped(format!("Concourse's listens at {}: see below", address.display())));
    }
    let wrapper = context.wrapper().map_err(|why| context.failed(why, "rocworker apply"))?;
    let remedy = format!(
        "rocworker status says what differs, rocworker apply puts it right: {} has to be the wrapper, and {} has to \
         offer that GPU and no other",
        wrapper.display(),
        policy::PATH
    );
    Daemon { address, wrapper: Some(wrapper), listener }.check(context, &remedy)
}

/// Checks the containerd of a Concourse worker.
pub(crate) fn check_concourses(context: &CanaryContext<'_>) -> Result<Vec<Check>, Check> {
    let listener = Listener::at(context.root, Path::new(ADDRESS)).ok().flatten();
    let listener = listener
        .filter(|listener| listener.of_concourse)
        .ok_or_else(|| context.skipped(format!("no worker's containerd answers at {ADDRESS}")))?;
    let remedy = "rocworker status says what differs and what is to be restarted: the worker's containerd has to find \
                  the wrapper as runc";
    Daemon { address: ADDRESS.into(), wrapper: None, listener }.check(context, remedy)
}

/// The socket on which containerd listens by its configuration.
fn address(context: &CanaryContext<'_>) -> PathBuf {
    let text = context.root.read_text(&context.config.containerd.config, 1 << 20).unwrap_or_default();
    let settings = Format::Toml.read(&text).unwrap_or_default();
    settings.pointer("/grpc/address").and_then(|address| address.as_str()).unwrap_or(ADDRESS).into()
}

impl Daemon {
    fn check(&self, context: &CanaryContext<'_>, remedy: &str) -> Result<Vec<Check>, Check> {
        // The ctr beside the daemon's program, else the ctr on PATH.
        let beside = self.listener.program.with_file_name("ctr");
        let program = if context.root.exists(&beside) { beside } else { PathBuf::from("ctr") };
        let program = program.display().to_string();
        if context.programs.find(&program).is_none() {
            return Err(context.skipped("ctr, by which a container would be started, is not installed"));
        }
        let address = self.address.display().to_string();
        let ctr = [&*program, "--address", &address, "--namespace", NAMESPACE];
        let question = Question::through_wrapper(context, || knows_cdi(context, &program))?;
        let start = || context.run(&[&ctr[..], &words(&self.arguments(context, &question))].concat());
        context.checks(&question, (remedy, "containerd"), || self.remove(context, &ctr), start)
    }

    fn arguments(&self, context: &CanaryContext<'_>, question: &Question) -> Vec<String> {
        let sandbox = &context.sandbox;
        // The cgroup is at the top: nothing would remove a folder above it.
        let mut argv = ["run", "--rm", "--cgroup", &format!("/{}", sandbox.name)].map(str::to_owned).to_vec();
        if let Some(wrapper) = &self.wrapper {
            let wrapper = wrapper.display().to_string();
            argv.extend(["--runtime", "io.containerd.runc.v2", "--runc-binary", &wrapper].map(str::to_owned));
        }
        argv.extend(question.flags.iter().cloned());
        argv.extend(sandbox.mounts.iter().flat_map(|mount| {
            let access = if mount.writable { "rw" } else { "ro" };
            let mount = format!("type=bind,src={},dst={},options=rbind:{access}", mount.from, mount.to);
            ["--mount".to_owned(), mount]
        }));
        let rootfs = sandbox.rootfs().display().to_string();
        argv.extend(["--rootfs", &rootfs, &sandbox.name].map(str::to_owned));
        argv.extend(question.command());
        argv
    }

    /// Removes all that the canary's namespace holds, and the namespace.
    fn remove(&self, context: &CanaryContext<'_>, ctr: &[&str]) -> Result<(), String> {
        let call = |arguments: &[&str]| context.call(&[ctr, arguments].concat());
        for id in call(&["containers", "list", "--quiet"])? {
            // There may be no task to kill or delete: what counts is that the container can be removed.
            call(&["tasks", "kill", "--signal", "SIGKILL", &id]).ok();
            call(&["tasks", "delete", "--force", &id]).ok();
            call(&["containers", "delete", &id])
                .map_err(|why| format!("containerd keeps the container {id}: {why}"))?;
        }
        // A namespace that is not empty stays: another canary uses it.
        call(&["namespaces", "remove", NAMESPACE]).ok();
        for folder in self.listener.folders_of(context.root, NAMESPACE) {
            context.root.remove_empty_folder(folder).map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

fn knows_cdi(context: &CanaryContext<'_>, ctr: &str) -> Result<(), Check> {
    let printed = context
        .call(&[ctr, "--version"])
        .map_err(|why| context.failed(why, "see whether ctr can be run"))?
        .join(" ");
    let version = Version::find(&printed);
    if version.is_some_and(|version| version >= CDI) {
        return Ok(());
    }
    let version = version.map_or_else(|| "of an unknown version".to_owned(), |it| it.to_string());
    Err(context.skipped(format!(
        "the policy lets no container ask for a GPU (wrapper.requests), and the ctr of containerd {version} knows no CDI"
    )))
}
