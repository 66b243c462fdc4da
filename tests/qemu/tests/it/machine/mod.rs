//! The content of the machine: programs, bundles, a CDI spec and a policy that are made for the tests.

pub(crate) mod laid;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use qemu_machine::answers::{Answer, Answers};
use qemu_machine::archive::Archive;
use qemu_machine::boot::boot;
use qemu_machine::kernel::Kernel;
use qemu_machine::libraries::copy_program;
use serde_json::{Value, json};
use support::real;

const INIT: &str = concat!(
    include_str!("../../../guest/first.sh"),
    include_str!("../../../guest/card.sh"),
    include_str!("../../../guest/steps.sh"),
    include_str!("../../../guest/init.sh")
);

/// containerd's configuration without CRI, which Concourse does not use.
const CONTAINERD: &str = r#"
version = 2
root = "/run/containerd/root"
state = "/run/containerd"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.internal.v1.opt"]
"#;

/// Asks each driver through the node that the container was given, and through one that it makes itself.
const LOOK: &str = r#"
echo "kfd $(ask kfd /dev/kfd)"
echo "render $(ask drm /dev/dri/renderD128)"
mknod /dev/k c $(awk '$2 == "kfd" { print $1 }' /proc/devices) 0
mknod /dev/r c 226 128
mknod /dev/c c 226 0
echo "kfd-by-number $(ask kfd /dev/k)"
echo "render-by-number $(ask drm /dev/r)"
echo "card-by-number $(ask drm /dev/c)"
"#;

/// A machine that was booted and has ended.
pub(crate) struct Machine {
    pub(crate) release: String,
    answers: Answers,
}

impl Machine {
    /// Boots the kernel of this Debian release, with containerd in the machine or without; `None` where an ordinary
    /// `cargo test` has no kernels.
    #[track_caller]
    pub(crate) fn boot(suite: &str, with_containerd: bool) -> Option<Self> {
        let variables =
            ["ROCWORKER_KERNELS", "ROCWORKER_PROGRAM", "ROCWORKER_WRAPPER", "ROCWORKER_CONTAINERD_BOOKWORM"];
        let programs = ["qemu-system-x86_64", "setpriv", "timeout", "busybox", "runc", "ldd", "xz"];
        let [kernels, rocworker, wrapper, containerd] = real::require_made(variables, &programs)?;
        let place = tempfile::tempdir().unwrap();
        let kernel = Kernel::unpacked_in(&kernels.join(suite));
        let mut archive = Archive::default();
        let mut libraries = BTreeSet::new();
        programs_into(&mut archive, &mut libraries, &rocworker, &wrapper, &build_ask(place.path()));
        if with_containerd {
            containerd_into(&mut archive, &mut libraries, &containerd);
            laid::into(&mut archive);
        }
        kernel.modules_into(&mut archive, &["amdgpu", "vgem"]);
        configuration_into(&mut archive);
        let booted = boot(kernel.image(), &archive.finish(), place.path());
        let machine = Self { release: kernel.release().to_owned(), answers: booted.answers };
        eprintln!(
            "Linux {} ({}): /dev/kfd {} s after the kernel's start, its driver says {}, off after {:.1} s",
            machine.release,
            booted.accelerator,
            machine.said("amdgpu"),
            machine.answer("host-kfd").stdout.trim(),
            booted.took.as_secs_f64()
        );
        Some(machine)
    }

    #[track_caller]
    pub(crate) fn answer(&self, step: &str) -> &Answer {
        self.answers.of(step)
    }

    #[track_caller]
    pub(crate) fn said(&self, step: &str) -> &str {
        self.answers.said(step)
    }

    #[track_caller]
    pub(crate) fn json(&self, step: &str) -> Value {
        serde_json::from_str(self.said(step)).unwrap()
    }
}

/// Compiles guest/ask.rs: for musl where the target is installed, else statically against glibc.
fn build_ask(place: &Path) -> PathBuf {
    let program = place.join("ask");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("guest/ask.rs");
    let musl: &[&str] = &["--target", "x86_64-unknown-linux-musl"];
    let glibc: &[&str] = &["-C", "target-feature=+crt-static"];
    let mut said = String::new();
    for target in [musl, glibc] {
        let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
        rustc.args(["--edition", "2024", "-C", "opt-level=s", "-C", "strip=symbols", "-o"]);
        let output = rustc.arg(&program).args(target).arg(&source).output().unwrap();
        if output.status.success() {
            return program;
        }
        said.push_str(&String::from_utf8_lossy(&output.stderr));
    }
    panic!("compiling {}: {said}", source.display())
}

fn programs_into(
    archive: &mut Archive,
    libraries: &mut BTreeSet<PathBuf>,
    rocworker: &Path,
    wrapper: &Path,
    ask: &Path,
) {
    let runc = real::program("runc").unwrap();
    for (name, program) in [("runc", runc.as_path()), ("rocworker", rocworker), ("runc-amd-wrapper", wrapper)]
    {
        copy_program(archive, libraries, &format!("bin/{name}"), program);
    }
    archive.copy("bin/ask", 0o755, ask);
    let busybox = real::program("busybox").unwrap();
    archive.copy("bin/busybox", 0o755, &busybox);
    archive.copy("rootfs/bin/ask", 0o755, ask);
    archive.copy("rootfs/bin/busybox", 0o755, &busybox);
    for applet in ["sh", "id", "mknod", "awk", "sleep"] {
        archive.link(&format!("rootfs/bin/{applet}"), "busybox");
    }
    for folder in ["rootfs/dev", "rootfs/proc", "rootfs/sys", "rootfs/run", "rootfs/seen"] {
        archive.folder(folder);
    }
    archive.file("rootfs/look", 0o644, LOOK.as_bytes());
    archive.file("init", 0o755, INIT.as_bytes());
    archive.character_device("dev/console", 0o600, (5, 1));
}

/// Debian 12's containerd, with its shim and ctr: its libraries are this machine's own, or the test says which is not.
fn containerd_into(archive: &mut Archive, libraries: &mut BTreeSet<PathBuf>, containerd: &Path) {
    for name in ["containerd", "containerd-shim-runc-v2", "ctr"] {
        copy_program(archive, libraries, &format!("bin/{name}"), &containerd.with_file_name(name));
    }
    archive.link("opt/shim/runc", "/bin/runc-amd-wrapper");
    archive.file("etc/containerd.toml", 0o644, CONTAINERD.as_bytes());
}

/// vgem's render node stands in for a GPU's, on the PCI device that no driver wants.
fn configuration_into(archive: &mut Archive) {
    let gpu = json!({"index": 0, "names": ["0000:00:05.0"], "card": "0000:00:05.0",
                     "nodes": [{"path": "/dev/dri/renderD128"}]});
    let policy = json!({"schema_version": 2, "requests": "all", "default": "none", "sharing": "shared", "gpus": [gpu]});
    archive.file("etc/rocworker/wrapper.json", 0o644, policy.to_string().as_bytes());
    archive.file("etc/group", 0o644, b"root:x:0:\nvideo:x:44:\nrender:x:104:\n");
    archive.file("etc/passwd", 0o644, b"root:x:0:0:root:/:/bin/sh\n");
    let closed = json!([{"allow": false, "access": "rwm"}]);
    let open = json!([{"allow": false, "access": "rwm"}, {"allow": true, "type": "c", "access": "rw"}]);
    let as_user = format!("id -G\n{LOOK}");
    for (name, uid, request, script, rules) in [
        ("plain", 0, None, LOOK, &closed),
        ("allowed", 0, None, LOOK, &open),
        ("silent", 0, None, LOOK, &closed),
        ("asks", 0, Some("0"), LOOK, &closed),
        ("stranger", 0, Some("1"), LOOK, &closed),
        ("user", 1000, Some("0"), as_user.as_str(), &closed),
    ] {
        let bundle = bundle(uid, request, script, rules);
        archive.file(&format!("bundles/{name}/config.json"), 0o644, bundle.to_string().as_bytes());
    }
}

/// A container that may make device nodes: whether it can use them is the device cgroup's to say.
fn bundle(uid: u32, request: Option<&str>, script: &str, rules: &Value) -> Value {
    let mut environment = vec!["PATH=/bin".to_owned()];
    environment.extend(request.map(|gpus| format!("AMD_VISIBLE_DEVICES={gpus}")));
    let mknod = json!(["CAP_MKNOD"]);
    json!({
        "ociVersion": "1.0.2",
        "process": {
            "terminal": false, "user": {"uid": uid, "gid": uid}, "cwd": "/", "env": environment,
            "args": ["/bin/sh", "-c", script],
            "capabilities": {"bounding": mknod, "effective": mknod, "permitted": mknod},
            "noNewPrivileges": true,
        },
        "root": {"path": "/rootfs"},
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
        ],
        "linux": {
            "namespaces": [{"type": "pid"}, {"type": "mount"}, {"type": "ipc"}, {"type": "uts"}],
            "resources": {"devices": rules},
        },
    })
}
