//! `task-check` inside real containers of runc: the static program alone in an image, with and without nodes, device rules
//! and groups.
//!
//! The machine is a laid-out one, and no driver of this kernel answers to its numbers: what opens is a stand-in of
//! /dev/null's kind that sysfs is made to say is AMD's, and KFD is what a real one is shown with in the QEMU machine
//! (tests/qemu).

use std::fs;
use std::path::{Path, PathBuf};

use layout::{Device, Machine};
use serde_json::{Value, json};
use support::stage::Stage;
use support::{real, rootfs};

/// A node as a container is given it.
#[derive(Clone, Copy)]
pub(super) struct Node {
    pub(super) path: &'static str,
    pub(super) number: (u32, u32),
    /// Whether the device cgroup lets it through.
    pub(super) allowed: bool,
}

const fn node(path: &'static str, major: u32, minor: u32) -> Node {
    Node { path, number: (major, minor), allowed: true }
}

/// tests/layout/src/sample.rs: the W7900's, a further partition's of the MI300X, NVIDIA's, and KFD.
pub(super) const RENDER: Node = node("/dev/dri/renderD129", 226, 129);
pub(super) const CARD: Node = node("/dev/dri/card1", 226, 1);
pub(super) const PARTITION: Node = node("/dev/dri/renderD131", 226, 131);
pub(super) const NVIDIA: Node = node("/dev/dri/renderD128", 226, 128);
pub(super) const KFD: Node = node("/dev/kfd", 241, 0);
/// Stand-ins: /dev/zero and /dev/full, of which the machine's sysfs says that they are AMD's, and /dev/null.
pub(super) const OPENS: Node = node("/dev/dri/renderD140", 1, 5);
pub(super) const OPENS_TOO: Node = node("/dev/dri/card9", 1, 7);
pub(super) const NULL: Node = node("/dev/kfd", 1, 3);

/// The root of a task on a Concourse worker is nobody outside.
const CONCOURSE: &[(u32, u32, u32)] = &[(0, 65534, 1), (1, 1, 65533)];

pub(super) struct Machines {
    stage: Stage,
    program: PathBuf,
}

impl Machines {
    #[track_caller]
    pub(super) fn set() -> Option<Self> {
        let program = real::require_root_and_built("ROCWORKER_PROGRAM", &["runc", "unshare"])?;
        let amd = |number: &str| (format!("/sys/dev/char/{number}/device/vendor"), "0x1002\n");
        let [zero, full] = ["1:5", "1:7"].map(amd);
        let machine = Machine::demo()
            .put(&zero.0, zero.1)
            .put(&full.0, full.1)
            .put("/dev/dri/renderD140", Device::new(1, 5, 992))
            .put("/dev/dri/card9", Device::new(1, 7, 44));
        Some(Self { stage: Stage::set(&machine), program })
    }

    /// The exit code and what is said in a container with these nodes. `gids`: the groups of its process.
    #[track_caller]
    fn check(&self, nodes: &[Node], mapping: &[(u32, u32, u32)], gids: &[u32]) -> (i32, String) {
        let bundle = self.bundle();
        let rootfs = bundle.join("rootfs");
        for folder in ["dev", "proc", "sys"] {
            fs::create_dir_all(rootfs.join(folder)).unwrap();
        }
        fs::copy(&self.program, rootfs.join("rocworker")).unwrap();
        let config = config(&["/rocworker", "task-check"], nodes, mapping, gids);
        fs::write(bundle.join("config.json"), config.to_string()).unwrap();
        self.run(&bundle)
    }

    /// Runs another program than task-check, in an image with busybox alone.
    #[track_caller]
    pub(super) fn with_busybox(&self, argv: &[&str], nodes: &[Node]) -> (i32, String) {
        let bundle = self.bundle();
        rootfs::lay_out(&bundle.join("rootfs"));
        fs::write(bundle.join("config.json"), config(argv, nodes, &[], &[]).to_string()).unwrap();
        self.run(&bundle)
    }

    /// A folder for one, without the last.
    fn bundle(&self) -> PathBuf {
        let bundle = self.stage.folder().join("bundle");
        fs::remove_dir_all(&bundle).ok();
        bundle
    }

    fn run(&self, bundle: &Path) -> (i32, String) {
        // Cgroups are this machine's own, and go by the container's name.
        let name = self.stage.folder().file_name().unwrap().to_str().unwrap().trim_start_matches('.');
        let id = format!("task-check-{name}");
        let bundle = bundle.to_str().unwrap();
        let output = self.stage.run(&["runc", "--root", "/run/task-check", "run", "--bundle", bundle, &id]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("rocworker:") && !said.contains("level=error"), "{said}");
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    }
}

fn config(argv: &[&str], nodes: &[Node], mapping: &[(u32, u32, u32)], gids: &[u32]) -> Value {
    let (mut devices, mut rules, mut mounts) =
        (Vec::new(), vec![json!({"allow": false, "access": "rwm"})], Vec::new());
    for node in nodes {
        let (major, minor) = node.number;
        if mapping.is_empty() {
            let gid = if node.path.contains("card") { 44 } else { 992 };
            devices.push(json!({"path": node.path, "type": "c", "major": major, "minor": minor,
                "fileMode": 0o660, "uid": 0, "gid": gid}));
        } else {
            // As runc does by itself in a user namespace, where nobody may make a node.
            mounts.push(
                json!({"destination": node.path, "source": node.path, "type": "bind", "options": ["bind"]}),
            );
        }
        rules.push(
            json!({"allow": node.allowed, "type": "c", "major": major, "minor": minor, "access": "rw"}),
        );
    }
    let mut namespaces = vec![json!({"type": "pid"}), json!({"type": "mount"}), json!({"type": "ipc"})];
    let ids: Vec<Value> = mapping
        .iter()
        .map(|(inside, outside, size)| json!({"containerID": inside, "hostID": outside, "size": size}))
        .collect();
    if !mapping.is_empty() {
        namespaces.push(json!({"type": "user"}));
    }
    let mut all = vec![
        json!({"destination": "/proc", "type": "proc", "source": "proc"}),
        json!({"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]}),
        json!({"destination": "/sys", "type": "bind", "source": "/sys", "options": ["rbind", "ro"]}),
    ];
    all.extend(mounts);
    json!({
        "ociVersion": "1.0.2",
        "process": {"args": argv, "cwd": "/", "user": {"uid": 0, "gid": 0, "additionalGids": gids},
            "env": ["PATH=/bin"], "noNewPrivileges": true},
        "root": {"path": "rootfs"},
        "mounts": all,
        "linux": {"namespaces": namespaces, "devices": devices, "uidMappings": ids, "gidMappings": ids,
            "resources": {"devices": rules}}
    })
}

const NO_CARD: &str = "✗ Found no AMD GPU card devices: ";
const NO_RENDER: &str = "✗ Found no AMD GPU render devices: ";
const CLOSED: &str = "✗ AMD GPU devices are not accessible in container: ";

#[track_caller]
fn lines(said: &str) -> [&str; 3] {
    said.lines().collect::<Vec<_>>().try_into().unwrap_or_else(|_| panic!("{said}"))
}

#[test]
fn real_task_check_in_runc_says_of_each_container_what_it_was_given_and_who_refuses() {
    let Some(machines) = Machines::set() else { return };
    let check = |nodes: &[Node]| {
        let (code, said) = machines.check(nodes, &[], &[]);
        assert_eq!(code, 3, "{said}");
        lines(&said).map(str::to_owned)
    };

    let [render, card, access] = check(&[]);
    assert!(
        render.starts_with(&format!("{NO_RENDER}there is no /dev/dri; the task needs tags: [gpu, ")),
        "{render}"
    );
    assert!(card.starts_with(NO_CARD), "{card}");
    assert_eq!(access, format!("{CLOSED}there is none to open"));

    let [render, card, access] = check(&[NVIDIA, KFD]);
    assert_eq!(
        render,
        format!("{NO_RENDER}/dev/dri/renderD128 is device 226:128, whose vendor is 0x10de, not AMD")
    );
    assert_eq!(card, format!("{NO_CARD}/dev/dri has none; {}", card.rsplit("; ").next().unwrap()));
    assert_eq!(access, format!("{CLOSED}there is none to open"));

    // The device cgroup is past; this kernel has no driver for the numbers.
    let [render, card, access] = check(&[RENDER, CARD, PARTITION, NVIDIA, KFD]);
    assert_eq!(render, "✓ Found AMD GPU render devices: /dev/dri/renderD129 /dev/dri/renderD131");
    assert_eq!(card, "✓ Found AMD GPU card devices: /dev/dri/card1");
    let of =
        |path: &str| format!("{path} has no driver behind it: see rocworker doctor on the worker (ENXIO, ");
    for path in ["/dev/dri/renderD129", "/dev/dri/renderD131", "/dev/kfd"] {
        assert!(access.contains(&of(path)), "{path}: {access}");
    }
    assert!(access.starts_with(CLOSED) && !access.contains("renderD128"), "{access}");

    let refused = |node: Node| Node { allowed: false, ..node };
    let [render, card, access] = check(&[refused(RENDER), refused(CARD), refused(KFD)]);
    assert!(render.starts_with('✓') && card.starts_with('✓'), "{render}\n{card}");
    for path in ["/dev/dri/renderD129", "/dev/kfd"] {
        assert!(access.contains(&format!("{path} is refused by the device cgroup")), "{access}");
    }
}

#[test]
fn real_task_check_in_runc_opens_what_there_is_and_asks_kfd_itself() {
    let Some(machines) = Machines::set() else { return };
    let (code, said) = machines.check(&[OPENS, OPENS_TOO], &[], &[]);
    assert_eq!(code, 3);
    let opened =
        "✓ Found AMD GPU render devices: /dev/dri/renderD140\n✓ Found AMD GPU card devices: /dev/dri/card9\n";
    let absent = format!("{CLOSED}/dev/kfd is not there: the container was not given it (ENOENT, ");
    assert!(said.starts_with(&format!("{opened}{absent}")), "a GPU without KFD: {said}");

    let (code, said) = machines.check(&[OPENS, OPENS_TOO, NULL], &[], &[]);
    assert_eq!(code, 3);
    let strange = format!("{CLOSED}/dev/kfd opens, but no driver behind it answers as KFD does (ENOTTY, ");
    assert!(said.starts_with(&format!("{opened}{strange}")), "{said}");
}

#[test]
fn real_task_check_in_concourses_user_namespace_needs_the_nodes_group() {
    let Some(machines) = Machines::set() else { return };
    let (code, said) = machines.check(&[OPENS, OPENS_TOO], CONCOURSE, &[]);
    let [_, _, access] = lines(&said);
    assert_eq!(code, 3);
    assert!(
        access.contains("/dev/dri/renderD140 is uid 65534:gid 992 0660, and this process is neither (EACCES"),
        "{access}"
    );

    let (_, said) = machines.check(&[OPENS, OPENS_TOO], CONCOURSE, &[992]);
    let [_, _, access] = lines(&said);
    assert!(access.starts_with(&format!("{CLOSED}/dev/kfd is not there")), "the render node opens: {access}");
}

#[test]
fn task_check_says_that_it_is_for_the_container_it_runs_in() {
    let dir = tempfile::tempdir().unwrap();
    let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_rocworker"));
    let output = program.arg("--root").arg(dir.path()).arg("task-check").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && said.contains("the container that it runs in"), "{said}");
}

/// A task runs on a terminal, of whatever kind, and its lines are looked for in a log.
#[test]
fn task_check_writes_no_colours_wherever_it_writes() {
    let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_rocworker"));
    // With it other commands write them to a pipe too, as they do to a terminal.
    let output = program.arg("task-check").env("CLICOLOR_FORCE", "1").output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(!said.contains('\u{1b}'), "{said:?}");
    for (line, name) in lines(&said).into_iter().zip(["render", "card", "access"]) {
        let sign = line.starts_with("✓ ") || line.starts_with("✗ ");
        assert!(sign && line.contains(name), "{line}");
    }
}

#[test]
fn task_check_answers_programs_with_the_same_three_lines() {
    let mut program = std::process::Command::new(env!("CARGO_BIN_EXE_rocworker"));
    let output = program.args(["--output", "json", "task-check"]).output().unwrap();
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    let names: Vec<_> =
        said["lines"].as_array().unwrap().iter().map(|line| line["name"].as_str().unwrap()).collect();
    assert_eq!((&said["schema_version"], names), (&json!(1), vec!["render", "card", "access"]));
    let every = said["lines"].as_array().unwrap().iter().all(|line| line["ok"] == true);
    assert_eq!((said["ok"].as_bool(), output.status.code()), (Some(every), Some(if every { 0 } else { 3 })));
}
