//! Whether SELinux could keep a container from the GPUs' nodes.
//!
//! container-selinux by default keeps a container (`container_t`) from /dev/kfd (`hsa_device_t`); its boolean
//! container_use_devices lets it open every node that it is given. Which engine confines is the engine's answer.

use std::time::Duration;

use check::{About, Check};
use reconcile::command::Programs;
use root::Root;

use super::machine::Subject;

const NAME: &str = "selinux";

/// `0` or `1` (security/selinux/selinuxfs.c), also beneath a `--root` directory.
pub(crate) const ENFORCE: &str = "/sys/fs/selinux/enforce";
/// The value in force and the one that waits for a commit: `0 0`.
pub(crate) const BOOLEAN: &str = "/sys/fs/selinux/booleans/container_use_devices";

const REMEDY: &str = "setsebool -P container_use_devices=1";

/// An engine, and how it says whether it confines containers.
struct Engine {
    name: &'static str,
    argv: &'static [&'static str],
    /// A part of the answer that shows that the engine confines containers.
    says: &'static str,
}

const ENGINES: [Engine; 2] = [
    Engine {
        name: "docker",
        argv: &["docker", "info", "--format", "{{json .SecurityOptions}}"],
        says: "name=selinux",
    },
    Engine {
        name: "podman",
        argv: &["podman", "info", "--format", "{{.Host.Security.SELinuxEnabled}}"],
        says: "true",
    },
];

/// A daemon that hangs does not hang doctor.
const LIMIT: Duration = Duration::from_secs(10);

pub(super) fn check(subject: &Subject<'_>) -> Result<Vec<Check>, Check> {
    // Most machines have no SELinux, and no line about it.
    if !subject.has_amd() || !subject.root.exists(ENFORCE) {
        return Ok(Vec::new());
    }
    let about = About::all(NAME);
    subject.needs_host(about.clone(), "the host's policy decides what a container may open")?;
    subject.needs_kfd(about.clone())?;
    let read = |path| read(subject.root, path).map_err(|why| about.clone().skipped(why));
    if read(ENFORCE)? != '1' {
        return Ok(vec![about.ok("permissive: it logs what it would deny, and denies nothing")]);
    }
    if !subject.root.exists(BOOLEAN) {
        return Ok(vec![about.skipped(
            "enforcing, and the policy has no boolean container_use_devices: ausearch -m avc shows what it denies",
        )]);
    }
    Ok(vec![match (read(BOOLEAN)?, subject.programs.map(confining)) {
        ('1', _) => about.ok("enforcing, and container_use_devices lets containers use the GPUs' nodes"),
        (_, None) => about.warning(
            "enforcing, and container_use_devices is off: a container that an engine confines cannot open /dev/kfd",
            REMEDY,
        ),
        (_, Some(engines)) if engines.is_empty() => {
            about.ok("enforcing, and neither docker nor podman says that it confines containers")
        }
        (_, Some(engines)) => about.failed(
            format!(
                "enforcing, and container_use_devices is off: containers of {} cannot open /dev/kfd",
                engines.join(" and ")
            ),
            REMEDY,
        ),
    }])
}

/// The first character of a file in selinuxfs, which is the value in force.
fn read(root: &Root, path: &str) -> Result<char, String> {
    let text = root.read_text(path, 64).map_err(|error| error.to_string())?;
    text.chars().next().ok_or_else(|| format!("{path} is empty"))
}

fn confining(programs: &Programs) -> Vec<&'static str> {
    let says_so = |engine: &&Engine| {
        programs.find(engine.name).is_some()
            && programs
                .run(engine.argv, LIMIT)
                .is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains(engine.says))
    };
    ENGINES.iter().filter(says_so).map(|engine| engine.name).collect()
}
