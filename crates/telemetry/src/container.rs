//! Finds the owner of a process by its cgroups (/proc/PID/cgroup, cgroups(7)).
//!
//! The outermost container counts: the machine's engine lists it, a lease names it, and a program inside
//! cannot choose it. A system container of LXC, LXD or Incus is a machine of its own: its owner is the
//! outermost container inside it, or else the system container.

use foreign_text::is_unsafe_to_show;

/// The length at which names are cut: they are values of labels.
const LONGEST: usize = 128;

/// The owner of a process; what does not apply is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// A container's id, a handle of Concourse, a name of LXC, LXD or Incus.
    pub container: String,
    pub pod_uid: String,
    /// The systemd unit, where there is no container.
    pub unit: String,
}

impl Owner {
    /// Parses /proc/PID/cgroup: a line for each hierarchy of cgroup v1, one that begins with `0::` for v2.
    #[must_use]
    pub fn of_cgroup(text: &str) -> Self {
        let lines = || text.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
        let lines = || lines().map(|(of, path)| (of, path.strip_suffix(" (deleted)").unwrap_or(path)));
        let owners = lines().map(|(_, path)| of_path(path));
        let mut best = Self::default();
        for owner in owners {
            if best.container.is_empty() && (!owner.container.is_empty() || best.pod_uid.is_empty()) {
                best = owner;
            }
        }
        if best.container.is_empty() && best.pod_uid.is_empty() {
            // systemd's own hierarchy is v2's or this one; in others a unit's processes may be in the cgroup above.
            let of_systemd = |controllers: &str| controllers.is_empty() || controllers == "name=systemd";
            let mut units = lines().filter(|(controllers, _)| of_systemd(controllers));
            best.unit = units.find_map(|(_, path)| unit(path)).map(label).unwrap_or_default();
        }
        best
    }

    #[must_use]
    pub fn is_nobody(&self) -> bool {
        *self == Self::default()
    }
}

/// A name as a label's value: bounded, and without what would steer a terminal. Any user can give a process or a container
/// its name.
#[must_use]
pub fn label(name: &str) -> String {
    let is_unsafe = |c: char| is_unsafe_to_show(c) || c == '\u{fffd}';
    let safe: String = name.chars().take(LONGEST).map(|c| if is_unsafe(c) { '?' } else { c }).collect();
    if name.chars().nth(LONGEST).is_some() {
        let cut: String = safe.chars().take(LONGEST - 1).collect();
        return format!("{cut}…");
    }
    safe
}

/// A container's name, or the beginning of its id, as engines list it: nobody reads 64 digits.
#[must_use]
pub fn short(container: &str) -> &str {
    let is_id = container.len() == 64 && is_hexadecimal(container);
    container.get(..12).filter(|_| is_id).unwrap_or(container)
}

fn of_path(path: &str) -> Owner {
    let mut owner = Owner::default();
    let mut parts = path.split('/').filter(|part| !part.is_empty()).peekable();
    let mut is_kubernetes = false;
    let mut depth = 0;
    while let Some(part) = parts.next() {
        depth += 1;
        is_kubernetes |= part.contains("kubepods");
        if let Some(uid) = pod_uid(part).filter(|_| is_kubernetes && owner.pod_uid.is_empty()) {
            owner.pod_uid = uid;
            continue;
        }
        if let Some(name) = part.strip_prefix("lxc.payload.") {
            owner = Owner { container: label(name), ..Owner::default() };
            depth = 0;
            continue;
        }
        if part == "lxc" || part == "lxc.payload" {
            if let Some(name) = parts.next() {
                owner = Owner { container: label(name), ..Owner::default() };
                depth = 0;
            }
            continue;
        }
        let container = match part {
            "garden" => {
                let next = parts.next_if(|next| !matches!(*next, "good" | "bad"));
                next.or_else(|| parts.nth(1))
            }
            // containerd's own name of a cgroup: /NAMESPACE/ID.
            "default" | "k8s.io" | "moby" | "concourse" if depth == 1 => parts.next(),
            part => id(part),
        };
        if let Some(container) = container {
            owner.container = label(container);
            break;
        }
    }
    owner
}

/// A container's id in a cgroup's name: `ID`, `docker-ID.scope`, `crio-ID`, `…:cri-containerd:ID`; of runc and crun any
/// name, `runc-NAME.scope`.
fn id(part: &str) -> Option<&str> {
    let scope = part.strip_suffix(".scope");
    if let Some(name) = scope.and_then(|it| it.strip_prefix("runc-").or_else(|| it.strip_prefix("crun-"))) {
        return Some(name);
    }
    let name = scope.unwrap_or(part);
    let last = name.rsplit(['-', ':']).next().unwrap_or(name);
    if last.len() == 64 && is_hexadecimal(last) {
        return Some(last);
    }
    // Concourse leaves the choice to runc for a privileged container: the handle alone.
    is_uuid(part).then_some(part)
}

/// `podUID`, and `…-podUID.slice` where systemd manages cgroups, with `_` for `-`. A pod of a file has a digest for a uid.
fn pod_uid(part: &str) -> Option<String> {
    let name = match part.strip_suffix(".slice") {
        Some(slice) => slice.rsplit('-').next()?,
        None => part,
    };
    let uid = name.strip_prefix("pod")?.replace('_', "-");
    (is_uuid(&uid) || (uid.len() == 32 && is_hexadecimal(&uid))).then_some(uid)
}

/// The outermost unit that is no slice, as sd_pid_get_unit(3) finds it.
fn unit(path: &str) -> Option<&str> {
    path.split('/').find(|part| {
        let end = part.rsplit_once('.').map(|(_, end)| end);
        matches!(end, Some("service" | "scope" | "socket" | "mount" | "swap"))
    })
}

fn is_hexadecimal(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_uuid(text: &str) -> bool {
    let lengths = [8, 4, 4, 4, 12];
    text.split('-').map(str::len).eq(lengths) && text.split('-').all(is_hexadecimal)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "605439acbd4fb18c145069289094b17f17e0cfa938f78012d4960bc797305f22";
    const UID: &str = "ac04f3f2-1f2c-11e9-b015-1ebee232acfa";
    const HANDLE: &str = "200e7e87-3af9-4a79-4ea5-5ca0364c6cc8";

    fn owner(container: &str, pod_uid: &str, unit: &str) -> Owner {
        Owner { container: container.to_owned(), pod_uid: pod_uid.to_owned(), unit: unit.to_owned() }
    }

    /// Each path stands beside the engine that writes it.
    #[test]
    fn an_owner_is_read_from_what_each_engine_writes() {
        let systemd_uid = UID.replace('-', "_");
        for (source, text, expected) in [
            ("docker, cgroupfs, v1", format!("12:devices:/docker/{ID}\n1:name=systemd:/docker/{ID}\n"), (ID, "", "")),
            ("docker, systemd, v2", format!("0::/system.slice/docker-{ID}.scope\n"), (ID, "", "")),
            ("docker in docker: the outer one", format!("0::/docker/{ID}/docker/{}\n", "a".repeat(64)), (ID, "", "")),
            ("docker with systemd inside, hybrid", format!("1:name=systemd:/docker/{ID}/init.scope\n0::/docker/{ID}/system.slice/x.service\n"), (ID, "", "")),
            ("falcosecurity/libs test/libsinsp: containerd, cgroupfs", format!("11:cpu:/kubepods/besteffort/pod{UID}/{ID}\n"), (ID, UID, "")),
            ("falcosecurity/libs: CRI-O, cgroupfs", format!("11:cpu:/kubepods/besteffort/pod{UID}/crio-{ID}\n"), (ID, UID, "")),
            ("falcosecurity/libs: CRI-O, systemd", format!("0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{systemd_uid}.slice/crio-{ID}.scope\n"), (ID, UID, "")),
            ("containerd's CRI, systemd", format!("0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{systemd_uid}.slice/cri-containerd-{ID}.scope\n"), (ID, UID, "")),
            ("kubelet with a root of its own (kubernetes-sigs/kind)", format!("0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod{systemd_uid}.slice/cri-containerd-{ID}.scope\n"), (ID, UID, "")),
            ("containerd's CRI in systemd's spelling, without systemd", format!("0::/system.slice/containerd.service/kubepods-burstable-pod{systemd_uid}.slice:cri-containerd:{ID}\n"), (ID, "", "")),
            ("a pod of a file on OpenShift", format!("0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pode4e6004e827fdf45941cf777618f60ce.slice/crio-{ID}.scope\n"), (ID, "e4e6004e827fdf45941cf777618f60ce", "")),
            ("a pod's own cgroup", format!("0::/kubepods/pod{UID}\n"), ("", UID, "")),
            ("podman", format!("0::/machine.slice/libpod-{ID}.scope/container\n"), (ID, "", "")),
            ("podman, rootless", format!("0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{ID}.scope/container\n"), (ID, "", "")),
            ("podman, cgroupfs", format!("9:cpu:/libpod_parent/libpod-{ID}\n"), (ID, "", "")),
            ("nerdctl", format!("0::/system.slice/nerdctl-{ID}.scope\n"), (ID, "", "")),
            ("ctr run", "0::/default/train-1\n".to_owned(), ("train-1", "", "")),
            ("runc run with --systemd-cgroup", "0::/system.slice/runc-train-1.scope\n".to_owned(), ("train-1", "", "")),
            ("Concourse 7, guardian, in opencontainers/runc#2366", format!("5:devices:/system.slice/concourse-worker.service/garden/{HANDLE}\n"), (HANDLE, "", "")),
            ("guardian with CPU entitlement, in OpenJDK's TestCgroupSubsystemController", format!("3:cpu:/system.slice/garden.service/garden/good/{HANDLE}\n"), (HANDLE, "", "")),
            ("Concourse, containerd: worker/runtime/spec/spec.go, baseCgroupsPath", format!("0::/garden/{HANDLE}\n"), (HANDLE, "", "")),
            ("the same of a privileged container", format!("0::/system.slice/concourse-worker.service/{HANDLE}\n"), (HANDLE, "", "")),
            ("the same with containerd's own choice", "0::/concourse/check-7\n".to_owned(), ("check-7", "", "")),
            ("LXD 5", "0::/lxc.payload.web01/system.slice/nginx.service\n".to_owned(), ("web01", "", "")),
            ("Incus, a project's", "0::/lxc.payload.ml_web01\n".to_owned(), ("ml_web01", "", "")),
            ("LXC 3, v1", "12:devices:/lxc/web01/system.slice\n1:name=systemd:/lxc/web01/init.scope\n".to_owned(), ("web01", "", "")),
            ("docker in LXD", format!("0::/lxc.payload.web01/system.slice/docker-{ID}.scope\n"), (ID, "", "")),
            ("a Concourse worker in LXD", format!("0::/lxc.payload.juju-1/system.slice/concourse-worker.service/garden/{HANDLE}\n"), (HANDLE, "", "")),
            ("containerd in LXD", "0::/lxc.payload.juju-1/default/train\n".to_owned(), ("train", "", "")),
            ("a cgroup that is gone", format!("0::/docker/{ID} (deleted)\n"), (ID, "", "")),
            ("systemd, v2", "0::/system.slice/ollama.service\n".to_owned(), ("", "", "ollama.service")),
            ("systemd, v1", "4:memory:/system.slice\n1:name=systemd:/system.slice/ollama.service\n0::/system.slice/ollama.service\n".to_owned(), ("", "", "ollama.service")),
            ("a login", "0::/user.slice/user-1000.slice/session-3.scope\n".to_owned(), ("", "", "session-3.scope")),
            ("a user's service", "0::/user.slice/user-1000.slice/user@1000.service/app.slice/a.service\n".to_owned(), ("", "", "user@1000.service")),
            ("no systemd", "0::/\n".to_owned(), ("", "", "")),
            ("nothing", String::new(), ("", "", "")),
            ("no cgroup's line", "x\n:\n0:\n".to_owned(), ("", "", "")),
        ] {
            let (container, pod_uid, unit) = expected;
            assert_eq!(Owner::of_cgroup(&text), owner(container, pod_uid, unit), "{source}: {text}");
        }
    }

    #[test]
    fn an_id_is_short_and_a_name_whole() {
        for (name, expected) in [
            (ID, "605439acbd4f"),
            (
                "worker-605439acbd4fb18c145069289094b17f17e0cfa938f78012d4960bc79",
                "worker-605439acbd4fb18c145069289094b17f17e0cfa938f78012d4960bc79",
            ),
            ("build-8", "build-8"),
            ("", ""),
        ] {
            assert_eq!(short(name), expected);
        }
    }

    #[test]
    fn a_program_inside_does_not_choose_its_owner() {
        let other = "b".repeat(64);
        for inside in
            ["/docker/OTHER", "/garden/other", "/kubepods/podUID", "/docker-OTHER.scope", "/x.service"]
        {
            let inside = inside.replace("OTHER", &other).replace("UID", UID);
            let text = format!("0::/system.slice/docker-{ID}.scope{inside}\n");
            assert_eq!(Owner::of_cgroup(&text), owner(ID, "", ""), "{text}");
        }
    }

    #[test]
    fn hostile_names_are_bounded_and_hold_no_control_character() {
        let long = "x".repeat(4096);
        for name in ["a\"b\\c", "a\u{1b}[31m\u{7}", "ä\u{fffd}ö", &long] {
            for text in [format!("0::/lxc.payload.{name}\n"), format!("0::/system.slice/{name}.service\n")] {
                let found = Owner::of_cgroup(&text);
                for value in [&found.container, &found.unit] {
                    assert!(
                        value.chars().count() <= LONGEST && !value.chars().any(char::is_control),
                        "{value}"
                    );
                }
                assert!(!found.is_nobody() || name == long, "{text}");
            }
        }
        assert_eq!(label("a\nb"), "a?b");
        assert_eq!(label(&"ä".repeat(129)), format!("{}…", "ä".repeat(127)));
        assert_eq!(label(&"ä".repeat(128)), "ä".repeat(128));
    }
}
