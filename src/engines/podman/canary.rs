//! A container by the CDI name of a GPU.

use crate::canary::{ANSWER, CanaryContext, CanaryResult, Granted, Mount, PREFIX, PROGRAM, Question, Way};

/// podman's own limits are above what it may set on a machine that lacks CAP_SYS_RESOURCE, as containers do, and the
/// start then fails. These are above what the probe needs.
const LIMITS: [&str; 4] = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"];

pub(super) fn try_it(context: &CanaryContext<'_>) -> CanaryResult {
    if context.programs.find("podman").is_none() {
        return CanaryResult::Skipped("not installed".to_owned());
    }
    let question = match Question::of(context.config, context.facts, Granted::One, &[]) {
        Ok(question) => question,
        Err(why) => return CanaryResult::Skipped(why),
    };
    // What a killed one left.
    let stale = remove(context);
    let rootfs = context.nest.rootfs().display().to_string();
    let device = question.device();
    let mut argv = vec!["podman", "run", "--rm", "--name", context.nest.name(), "--network", "none"];
    argv.extend(["--cap-add", "MKNOD", "--security-opt", "label=disable", "--log-driver", "none"]);
    argv.extend(LIMITS);
    argv.extend(["--device", &device]);
    let volumes: Vec<String> = context.nest.mounts().iter().map(volume).collect();
    argv.extend(volumes.iter().flat_map(|volume| ["--volume", volume]));
    argv.extend(["--rootfs", &rootfs, PROGRAM]);
    let arguments = question.arguments(ANSWER);
    argv.extend(arguments.iter().map(String::as_str));

    let ran = context.programs.run(&argv, context.limits.run);
    let left = stale.and(remove(context)).err();
    if let Err(error) = ran {
        return CanaryResult::failed(
            context.told(&error),
            "run podman run --rm --device amd.com/gpu=all by hand, and see what it says",
        );
    }
    let way = Way::by_cdi(&question).told;
    let spec = context.config.cdi.path.display();
    let remedy = "rocworker cdi validate, and rocworker apply where it finds something: podman gives what";
    context.came(question, way, format!("{remedy} {spec} says"), left, "podman")
}

fn volume(mount: &Mount) -> String {
    format!("{}:{}:{}", mount.from, mount.to, if mount.writable { "rw" } else { "ro" })
}

/// Removes every canary that podman knows.
fn remove(context: &CanaryContext<'_>) -> Result<(), String> {
    let filter = format!("name=^{PREFIX}");
    let told = |error: reconcile::command::Error| context.told(&error);
    let limit = context.limits.call;
    let list = ["podman", "ps", "--all", "--quiet", "--no-trunc", "--filter", &filter];
    let listed = context.keepers.run(&list, limit).map_err(told)?;
    let ids = String::from_utf8_lossy(&listed.stdout).into_owned();
    for id in ids.split_whitespace() {
        let removed = context.keepers.run(&["podman", "rm", "--force", "--time", "0", id], limit);
        removed.map_err(|error| format!("podman keeps the container {id}: {}", context.told(&error)))?;
    }
    Ok(())
}
