//! The states of a machine from which apply and undo are killed.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, lchown};
use std::path::Path;

use crate::setup::in_process::{crashes, run};
use crate::setup::laid::Laid;
use crate::setup::program::Program;

/// Somebody else's files have odd owners and modes, so that whoever gives them back without these is seen.
const THEIRS: (u32, u32, u32) = (0o604, 1001, 1002);

pub(crate) const CONFIG: &str = "etc/rocworker/config.yaml";
const SPEC: &str = "etc/cdi/amd.json";
const WRAPPER: &str = "usr/local/lib/rocworker/runc-amd-wrapper";
const CONTAINERD: &str = "etc/containerd/config.toml";
const DOCKER: &str = "etc/docker/daemon.json";

/// Brings a machine into a state.
pub(crate) type Start = fn(&Laid, &Program);

/// The states, by name.
pub(crate) const STARTS: [(&str, Start); 10] = [
    ("nothing-there", |_, _| {}),
    ("all-there-by-somebody-else", somebody_else),
    ("older-config", older_config),
    ("gpu-off", gpu_off),
    ("cdi-path-changed", cdi_path_changed),
    ("edited-by-the-user-since", edited_since),
    ("their-file-in-our-folder", their_file_in_our_folder),
    ("killed-apply", killed_apply),
    ("contested", contested),
    ("changed-by-hand", changed_by_hand),
];

/// Where each way of writing a file comes.
pub(crate) const START_WITH_EVERY_FILE: Start = somebody_else;

/// A machine with containerd, docker and a Concourse worker, and without rocworker's package, so that the wrapper's
/// program is one of the managed files.
pub(crate) fn machine() -> Laid {
    let laid = Laid::demo("");
    fs::remove_dir_all(laid.path("usr/lib/rocworker")).unwrap();
    fs::create_dir_all(laid.path("usr/local/lib")).unwrap();
    let concourse = ["var/lib/concourse/bin/concourse", "var/lib/concourse/bin/containerd"];
    for program in ["usr/bin/containerd", "usr/bin/dockerd"].into_iter().chain(concourse) {
        laid.put(program, "");
        fs::set_permissions(laid.path(program), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let package = |name: &str, version: &str| {
        format!("Package: {name}\nStatus: install ok installed\nVersion: {version}\nArchitecture: amd64\n\n")
    };
    laid.put(
        "var/lib/dpkg/status",
        &(package("containerd", "1.7.24~ds1-6") + &package("docker.io", "26.1.5+dfsg1-9")),
    );
    laid.put(
        CONTAINERD,
        "# mine\nversion = 2\n\n[plugins.\"io.containerd.grpc.v1.cri\"] # as kubeadm wants it\n  sandbox_image = \"pause\"\n",
    );
    laid.put(DOCKER, "{\n  \"log-driver\": \"journald\",\n  \"debug\": false\n}\n");
    laid.put_worker("theirs");
    laid.put("etc/group", "root:x:0:\nvideo:x:44:\nrender:x:105:\n");
    laid
}

/// Once: what the program says must not fail.
fn apply(laid: &Laid, program: &Program) {
    let said = run(laid, program, "apply");
    assert!(said.starts_with("Ok("), "{said}");
}

fn put_theirs(laid: &Laid, path: &str, text: &str) {
    laid.put(path, text);
    let (mode, uid, gid) = THEIRS;
    lchown(laid.path(path), Some(uid), Some(gid)).unwrap();
    fs::set_permissions(laid.path(path), fs::Permissions::from_mode(mode)).unwrap();
}

fn somebody_else(laid: &Laid, _: &Program) {
    put_theirs(laid, SPEC, "{\"cdiVersion\":\"0.3.0\",\"kind\":\"amd.com/gpu\",\"devices\":[]}");
    put_theirs(laid, WRAPPER, "somebody else's\n");
    put_theirs(laid, CONTAINERD, &laid.text(CONTAINERD));
    put_theirs(
        laid,
        DOCKER,
        "{\"runtimes\":{\"other\":{\"path\":\"/opt/other\"}},\"features\":{\"buildkit\":true}}",
    );
    let drop_in = "etc/systemd/system/concourse-worker.service.d/zz-rocworker.conf";
    for path in ["etc/udev/rules.d/70-amdgpu.rules", "etc/modules-load.d/amdgpu.conf", drop_in] {
        put_theirs(laid, path, "# somebody else's\n");
    }
}

fn older_config(laid: &Laid, program: &Program) {
    laid.put(
        CONFIG,
        "cdi:\n  names: [pci]\ncontainerd:\n  runtime: gpu\ndocker:\n  runtime: gpu\npermissions: open\ntag: old\n",
    );
    apply(laid, program);
    laid.put(CONFIG, "");
}

fn gpu_off(laid: &Laid, program: &Program) {
    apply(laid, program);
    laid.put(CONFIG, "compute-runtime: none\n");
}

fn cdi_path_changed(laid: &Laid, program: &Program) {
    apply(laid, program);
    laid.put(CONFIG, "cdi:\n  path: /opt/specs/cdi/amd.json\n");
}

fn edited_since(laid: &Laid, program: &Program) {
    apply(laid, program);
    let docker = laid.text(DOCKER).replace("\"debug\": false", "\"debug\": true, \"mtu\": 1400");
    put_theirs(laid, DOCKER, &docker);
    let containerd =
        format!("# a comment of theirs\n{}\n[debug]\n  level = \"info\"\n", laid.text(CONTAINERD));
    put_theirs(laid, CONTAINERD, &containerd);
    // The configuration has changed as well.
    laid.put(CONFIG, "containerd:\n  runtime: gpu\ndocker:\n  runtime: gpu\n");
}

fn their_file_in_our_folder(laid: &Laid, program: &Program) {
    apply(laid, program);
    put_theirs(
        laid,
        "etc/cdi/other.json",
        "{\"cdiVersion\":\"0.5.0\",\"kind\":\"other.com/net\",\"devices\":[]}",
    );
    laid.put(CONFIG, "cdi:\n  names: [index]\n");
}

/// In the middle, with a temporary file left.
fn killed_apply(laid: &Laid, program: &Program) {
    let crashes = crashes(laid, program, "apply");
    let is_of_spec =
        |call: &str, path: &Path| call.starts_with("rename") && path == Path::new("/").join(SPEC);
    let point = crashes.points.iter().find(|point| is_of_spec(point.call, &point.path)).unwrap();
    let left = &crashes.states[point.state];
    assert!(left.paths().any(support::killed::is_temporary), "{point:?}");
    laid.put_back(left);
}

fn contested(laid: &Laid, program: &Program) {
    for _ in 0..4 {
        apply(laid, program);
        laid.put(SPEC, "{\"cdiVersion\":\"0.3.0\",\"kind\":\"amd.com/gpu\",\"devices\":[]}");
    }
    laid.put(CONFIG, "docker:\n  runtime: gpu\n");
}

fn changed_by_hand(laid: &Laid, program: &Program) {
    apply(laid, program);
    laid.put(SPEC, "{}");
    let docker = laid.text(DOCKER).replace("\"debug\": false", "\"debug\": true");
    laid.put(DOCKER, &docker);
    fs::remove_file(laid.path(WRAPPER)).unwrap();
}
