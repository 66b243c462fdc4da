//! A container by the CDI name of a GPU.

use check::Check;

use crate::canary::{CanaryContext, PREFIX, Question, words};

/// podman's own limits are above what it may set on a machine that lacks CAP_SYS_RESOURCE, as containers do, and the
/// start then fails. These are above what the probe needs.
const LIMITS: [&str; 4] = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"];

pub(super) fn check(context: &CanaryContext<'_>) -> Result<Vec<Check>, Check> {
    if context.programs.find("podman").is_none() {
        return Err(context.skipped("not installed"));
    }
    let question = Question::of(context.config, context.facts, &[]).map_err(|why| context.skipped(why))?;
    let mut argv = context.docker_run("podman", &question);
    argv.extend(LIMITS.map(str::to_owned));
    argv.extend(["--rootfs".to_owned(), context.sandbox.rootfs().display().to_string()]);
    argv.extend(question.command());
    let spec = context.config.cdi.path.display();
    let remedy = format!(
        "rocworker cdi validate, and rocworker apply where it finds something: podman gives what {spec} says; \
         podman run --rm --device amd.com/gpu=all by hand says more"
    );
    let remove = || context.docker_remove("podman", &format!("name=^{PREFIX}"), &["--time", "0"]);
    context.checks(&question, (&remedy, "podman"), remove, || context.run(&words(&argv)))
}
