//! Finds who computes on a GPU from what the amdgpu driver reports. That includes podman, the host and a
//! sibling worker, which have no lease.
//!
//! The driver has `/sys/class/kfd/kfd/proc/PID` for every process that has `/dev/kfd` open, with a
//! `vram_GPUID` for every GPU that the process could reach (drivers/gpu/drm/amd/amdkfd/kfd_process.c,
//! `kfd_procfs_show`, a number and a newline). So a process uses a GPU on which it has memory, or a queue
//! (`queues/N/gpuid`, `kfd_procfs_queue_show`, a number alone). A monitor has neither. A process with several
//! contexts has a folder `context_N` of that shape for each but the first (`kfd_create_process_sysfs`, since
//! the end of 2025).

use std::fs;
use std::path::{Path, PathBuf};

use allocation::Render;

use crate::paths::Paths;

/// The pid namespace that the kernel starts with, as `/proc/PID/ns/pid` names it (include/linux/proc_ns.h,
/// `PROC_PID_INIT_INO`).
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// KFD's state when it was read.
#[derive(Debug, Default)]
pub struct Kfd {
    /// Render nodes' numbers and KFD's ids.
    ids: Vec<(u32, String)>,
    /// A process and the id of a GPU that it is on.
    uses: Vec<(u32, String)>,
    /// proc, for the names of processes, where it numbers them as the driver does.
    proc: Option<PathBuf>,
}

impl Kfd {
    /// Reads it. Where there is no KFD, or no process on it, no process uses any GPU as far as is known.
    pub fn read(paths: &Paths) -> Self {
        let kfd = paths.sys.join("class/kfd/kfd");
        let mut uses = Vec::new();
        // The driver numbers processes as the first namespace does. There one that /proc does not have has
        // ended, and the driver is just clearing up behind it.
        let is_first_namespace = fs::read_link(paths.proc.join("self/ns/pid"))
            .is_ok_and(|namespace| namespace.as_os_str() == FIRST_PID_NAMESPACE);
        for name in names(&kfd.join("proc")) {
            let Ok(pid) = name.parse::<u32>() else { continue };
            if is_first_namespace && !paths.proc.join(&name).exists() {
                continue;
            }
            uses.extend(gpus_of(&kfd.join("proc").join(&name)).into_iter().map(|id| (pid, id)));
        }
        let ids = if uses.is_empty() { Vec::new() } else { ids(&kfd.join("topology/nodes")) };
        Self { ids, uses, proc: is_first_namespace.then(|| paths.proc.clone()) }
    }

    /// Every GPU that a process uses, with the first such process as messages name it.
    pub fn users(&self) -> Vec<(Render, String)> {
        let renders = self.ids.iter().filter_map(|(number, _)| render(*number));
        renders.filter_map(|render| Some((render, self.user_of(render)?))).collect()
    }

    /// The first process that is on a GPU, as a message names it.
    pub fn user_of(&self, render: Render) -> Option<String> {
        let mut ids = self.ids.iter().filter(|(number, _)| *number == render.number()).map(|(_, id)| id);
        let (pid, _) = ids.find_map(|id| self.uses.iter().find(|(_, used)| used == id))?;
        let Some(proc) = &self.proc else {
            return Some(format!("the process {pid} of another pid namespace"));
        };
        // A process that was there a moment ago may have ended.
        let name = fs::read_to_string(proc.join(pid.to_string()).join("comm")).unwrap_or_default();
        Some(format!("the process {pid} ({})", allocation::Quoted(name.trim_end())))
    }
}

/// The render nodes of the GPUs that KFD has now: a card that is divided otherwise has fewer than its containers may have
/// been given. `None` where that is not known.
#[must_use]
pub fn renders(paths: &Paths) -> Option<Vec<Render>> {
    let folder = paths.sys.join("class/kfd/kfd/topology/nodes");
    let nodes: Vec<(u32, String)> =
        names(&folder).iter().map(|name| node(&folder.join(name))).collect::<Option<_>>()?;
    if nodes.is_empty() {
        return None;
    }
    // A processor's node has no GPU's id. A GPU's node without a render node is not known.
    nodes.into_iter().filter(|(_, id)| id != "0").map(|(minor, _)| render(minor)).collect()
}

/// The ids of the GPUs that a process has memory or queues on.
fn gpus_of(process: &Path) -> Vec<String> {
    let mut ids = Vec::new();
    for name in names(process) {
        if name.starts_with("context_") {
            ids.extend(gpus_of(&process.join(&name)));
        }
        let Some(id) = name.strip_prefix("vram_") else { continue };
        let bytes = text(&process.join(&name)).and_then(|text| text.parse::<u64>().ok());
        if bytes.is_some_and(|bytes| bytes > 0) {
            ids.push(id.to_owned());
        }
    }
    for queue in names(&process.join("queues")) {
        ids.extend(text(&process.join("queues").join(queue).join("gpuid")));
    }
    ids
}

/// The render minor and id of each KFD node that has a render node.
fn ids(nodes: &Path) -> Vec<(u32, String)> {
    let all = names(nodes).into_iter().filter_map(|name| node(&nodes.join(name)));
    all.filter(|(minor, _)| *minor != 0).collect()
}

/// The render minor of a KFD node, 0 where it has none, and its id, "0" for a processor's.
fn node(node: &Path) -> Option<(u32, String)> {
    let properties = text(&node.join("properties"))?;
    let minor = properties.lines().find_map(|line| line.strip_prefix("drm_render_minor "));
    Some((minor.map_or(Some(0), |minor| minor.trim().parse().ok())?, text(&node.join("gpu_id"))?))
}

fn render(minor: u32) -> Option<Render> {
    (minor != 0).then(|| Render::parse(&format!("renderD{minor}")))?
}

/// A small file without the blanks around it.
fn text(path: &Path) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Synthetic: as kfd_process.c and kfd_topology.c of Linux 6.12 lay these files out.
    fn lay_out(sys: &Path, files: &[(String, &str)]) {
        for (name, text) in files {
            let path = sys.join("class/kfd/kfd").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn a_process_with_memory_or_a_queue_on_a_gpu_is_named_and_one_that_only_looks_is_not() {
        let own = std::process::id();
        let topology = |node: u32, id: &'static str, properties: &'static str| {
            [
                (format!("topology/nodes/{node}/gpu_id"), id),
                (format!("topology/nodes/{node}/properties"), properties),
            ]
        };
        let nodes: Vec<(String, &str)> = [
            topology(0, "0\n", "cpu_cores_count 8\ndrm_render_minor 0\n"),
            topology(1, "4711\n", "simd_count 4\ndrm_render_minor 128\n"),
            topology(2, "815\n", "simd_count 4\ndrm_render_minor 129\n"),
        ]
        .concat();
        let of_own = |name: &str| format!("proc/{own}/{name}");
        let gone = u32::MAX;
        for (files, on_128, on_129) in [
            (vec![], false, false),
            (vec![(of_own("pasid"), "1\n")], false, false),
            (vec![(of_own("vram_4711"), "0\n"), (of_own("vram_815"), "0\n")], false, false),
            (vec![(of_own("vram_4711"), "4096\n"), (of_own("vram_815"), "0\n")], true, false),
            (vec![(of_own("vram_4711"), "0\n"), (of_own("queues/1/gpuid"), "815")], false, true),
            (vec![(of_own("vram_4711"), "unreadable\n")], false, false),
            (vec![(of_own("vram_815"), "0\n"), (of_own("context_0/vram_815"), "4096\n")], false, true),
            (
                vec![(of_own("context_0/vram_815"), "0\n"), (of_own("context_1/queues/0/gpuid"), "4711")],
                true,
                false,
            ),
            (vec![(format!("proc/{gone}/vram_4711"), "4096\n")], false, false),
        ] {
            let place = tempfile::tempdir().unwrap();
            let proc = place.path().join("proc");
            fs::create_dir_all(proc.join("self/ns")).unwrap();
            std::os::unix::fs::symlink(FIRST_PID_NAMESPACE, proc.join("self/ns/pid")).unwrap();
            fs::create_dir_all(proc.join(own.to_string())).unwrap();
            fs::write(proc.join(own.to_string()).join("comm"), "python3\n").unwrap();
            let paths = Paths { sys: place.path().to_owned(), proc: proc.clone(), ..Paths::system() };
            lay_out(place.path(), &nodes);
            lay_out(place.path(), &files);
            let kfd = Kfd::read(&paths);
            let expected = |on: bool| on.then(|| format!("the process {own} (\"python3\")"));
            let user = |name: &str| kfd.user_of(Render::parse(name).unwrap());
            assert_eq!(
                (user("renderD128"), user("renderD129")),
                (expected(on_128), expected(on_129)),
                "{files:?}"
            );
            let users: Vec<u32> = kfd.users().into_iter().map(|(render, _)| render.number()).collect();
            let on: Vec<u32> =
                [(on_128, 128), (on_129, 129)].into_iter().filter(|on| on.0).map(|on| on.1).collect();
            assert!(
                users.len() == on.len() && on.iter().all(|on| users.contains(on)),
                "{files:?}: {users:?}"
            );
        }
    }

    #[test]
    fn in_another_pid_namespace_a_process_that_cannot_be_seen_counts_and_is_given_nobodys_name() {
        let place = tempfile::tempdir().unwrap();
        let proc = place.path().join("proc");
        fs::create_dir_all(proc.join("self/ns")).unwrap();
        std::os::unix::fs::symlink("pid:[4026532000]", proc.join("self/ns/pid")).unwrap();
        // Another process has that number here.
        fs::create_dir(proc.join("77")).unwrap();
        fs::write(proc.join("77/comm"), "innocent\n").unwrap();
        let files = [
            ("topology/nodes/1/gpu_id".to_owned(), "4711\n"),
            ("topology/nodes/1/properties".to_owned(), "drm_render_minor 128\n"),
            ("proc/77/vram_4711".to_owned(), "4096\n"),
        ];
        lay_out(place.path(), &files);
        let kfd = Kfd::read(&Paths { sys: place.path().to_owned(), proc, ..Paths::system() });
        let user = kfd.user_of(Render::parse("renderD128").unwrap());
        assert_eq!(user.as_deref(), Some("the process 77 of another pid namespace"));
    }
}
