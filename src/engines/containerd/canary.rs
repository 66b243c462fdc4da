//! containerd: the system's own, and Concourse's. Each by `ctr` of its installation, in a namespace of our own.

use std::path::{Path, PathBuf};

use super::listener::Listener;
use crate::canary::{ANSWER, CanaryContext, CanaryResult, Mount, NAMESPACE, POLICY, PROGRAM, Question, Way};
use crate::version::Version;

/// Where both listen unless told otherwise.
const ADDRESS: &str = "/run/containerd/containerd.sock";

/// `ctr` gives CDI's devices from containerd 2.0 on (containerd#8525): that of 1.7.24 takes paths of devices alone,
/// although its CRI knows CDI.
const CDI: Version = Version { major: 2, minor: 0, patch: 0 };

/// Which containerd is tried.
struct Daemon {
    address: PathBuf,
    ctr: String,
    /// The wrapper, where the runtime is named; Concourse's shims find it as their runc.
    wrapper: Option<PathBuf>,
    remedy: String,
    listener: Listener,
}

/// The system's own.
pub(super) fn try_it(context: &CanaryContext<'_>) -> CanaryResult {
    let address = address(context);
    let listener = match Listener::at(context.root, &address) {
        Ok(Some(listener)) if listener.of_concourse => {
            return CanaryResult::Skipped(format!("Concourse's listens at {}: see below", address.display()));
        }
        Ok(Some(listener)) => listener,
        Ok(None) => {
            return CanaryResult::Skipped(format!("does not run: nothing answers at {}", address.display()));
        }
        Err(why) => return CanaryResult::failed(why, "see whether containerd runs"),
    };
    let wrapper = match context.wrapper() {
        Ok(wrapper) => wrapper,
        Err(why) => return CanaryResult::failed(why, "rocworker apply"),
    };
    let remedy = format!(
        "rocworker status says what differs, rocworker apply puts it right: {} has to be the wrapper, and {} has to \
         offer that GPU and no other",
        wrapper.display(),
        POLICY
    );
    let daemon = Daemon { ctr: ctr(context, &listener), address, wrapper: Some(wrapper), remedy, listener };
    daemon.run(context)
}

/// Concourse's.
pub(in crate::engines) fn try_concourses(context: &CanaryContext<'_>) -> CanaryResult {
    let listener = match Listener::at(context.root, Path::new(ADDRESS)) {
        Ok(Some(listener)) if listener.of_concourse => listener,
        _ => return CanaryResult::Skipped(format!("no worker's containerd answers at {ADDRESS}")),
    };
    let remedy = "rocworker status says what differs and what is to be restarted: the worker's containerd has to find \
                  the wrapper as runc"
        .to_owned();
    let daemon =
        Daemon { ctr: ctr(context, &listener), address: ADDRESS.into(), wrapper: None, remedy, listener };
    daemon.run(context)
}

/// Where the configuration says that it listens.
fn address(context: &CanaryContext<'_>) -> PathBuf {
    let text = context.root.read_text(&context.config.containerd.config, 1 << 20).unwrap_or_default();
    let document: Option<toml_edit::DocumentMut> = text.parse().ok();
    let address = document.as_ref().and_then(|document| document.get("grpc")?.get("address")?.as_str());
    PathBuf::from(address.unwrap_or(ADDRESS))
}

/// The `ctr` beside the daemon's program, else the one on PATH.
fn ctr(context: &CanaryContext<'_>, listener: &Listener) -> String {
    let beside = listener.beside("ctr");
    if context.root.exists(&beside) { beside.display().to_string() } else { "ctr".to_owned() }
}

impl Daemon {
    fn run(&self, context: &CanaryContext<'_>) -> CanaryResult {
        if context.programs.find(&self.ctr).is_none() {
            return CanaryResult::Skipped(
                "ctr, by which a container would be started, is not installed".to_owned(),
            );
        }
        let (question, way) = match Way::through_wrapper(context, || self.cdi(context)) {
            Ok(asked) => asked,
            Err(came) => return came,
        };
        // What a killed one left.
        let stale = self.remove(context);
        let ran = context.programs.run(&as_words(&self.argv(context, &question, &way)), context.limits.run);
        let left = stale.and(self.remove(context)).err();
        if let Err(error) = ran {
            return CanaryResult::failed(context.told(&error), self.remedy.clone());
        }
        context.came(question, way.told, self.remedy.clone(), left, "containerd")
    }

    /// Whether its `ctr` knows CDI.
    fn cdi(&self, context: &CanaryContext<'_>) -> Result<(), CanaryResult> {
        let said = context.programs.run(&[&self.ctr, "--version"], context.limits.call);
        let said =
            said.map_err(|error| CanaryResult::failed(context.told(&error), "see whether ctr can be run"))?;
        let version = Version::find(&String::from_utf8_lossy(&said.stdout));
        if version.is_some_and(|version| version >= CDI) {
            return Ok(());
        }
        let version = version.map_or_else(|| "of an unknown version".to_owned(), |it| it.to_string());
        Err(CanaryResult::Skipped(format!(
            "the policy lets no container ask for a GPU (wrapper.requests), and the ctr of containerd {version} knows no CDI"
        )))
    }

    /// ctr, as far as its subcommand.
    fn ctr(&self) -> Vec<String> {
        let address = self.address.display().to_string();
        [&self.ctr, "--address", &address, "--namespace", NAMESPACE].map(ToString::to_string).to_vec()
    }

    fn argv(&self, context: &CanaryContext<'_>, question: &Question, way: &Way) -> Vec<String> {
        let name = context.nest.name();
        let mut argv = self.ctr();
        // At the top: a folder above it would stay.
        argv.extend(["run", "--rm", "--cgroup", &format!("/{name}")].map(str::to_owned));
        if let Some(wrapper) = &self.wrapper {
            let wrapper = wrapper.display().to_string();
            argv.extend(["--runtime", "io.containerd.runc.v2", "--runc-binary", &wrapper].map(str::to_owned));
        }
        argv.extend(way.flags.iter().cloned());
        argv.extend(context.nest.mounts().iter().flat_map(|it| ["--mount".to_owned(), mount(it)]));
        let rootfs = context.nest.rootfs().display().to_string();
        argv.extend(["--rootfs", &rootfs, name, PROGRAM].map(str::to_owned));
        argv.extend(question.arguments(ANSWER));
        argv
    }

    /// Removes all that our namespace holds, and the namespace.
    fn remove(&self, context: &CanaryContext<'_>) -> Result<(), String> {
        let call = |arguments: &[&str]| {
            let argv = [self.ctr(), arguments.iter().map(ToString::to_string).collect()].concat();
            context.keepers.run(&as_words(&argv), context.limits.call)
        };
        let listed = call(&["containers", "list", "--quiet"]).map_err(|error| context.told(&error))?;
        for id in String::from_utf8_lossy(&listed.stdout).split_whitespace() {
            // Whichever of them there is nothing for: what counts is that the container can be removed.
            call(&["tasks", "kill", "--signal", "SIGKILL", id]).ok();
            call(&["tasks", "delete", "--force", id]).ok();
            call(&["containers", "delete", id])
                .map_err(|error| format!("containerd keeps the container {id}: {}", context.told(&error)))?;
        }
        // Another's, if it is not empty.
        call(&["namespaces", "remove", NAMESPACE]).ok();
        for folder in self.listener.folders_of(context.root, NAMESPACE) {
            context.root.remove_empty_folder(folder).map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

fn as_words(argv: &[String]) -> Vec<&str> {
    argv.iter().map(String::as_str).collect()
}

fn mount(mount: &Mount) -> String {
    let access = if mount.writable { "rw" } else { "ro" };
    format!("type=bind,src={},dst={},options=rbind:{access}", mount.from, mount.to)
}
