//! A secret in each file that a report reads, whichever those are: none is in the archive.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::UNIX_EPOCH;

use config::Config;
use flate2::read::GzDecoder;
use host::timestamp::Timestamp;
use layout::{Device, Entry, Machine, Module, Nodes};
use reconcile::command::Programs;
use rocworker::report::{Report, take};
use root::Root;
use serde_json::{Value, json};
use support::detect::scratch;

use crate::observe::report::archive::*;

/// Part of every secret.
const MARK: &str = "zqx";

/// Where a machine's files hold what its kernel says of its devices: a report carries that as it is.
const OF_KERNEL: [&str; 5] = ["/sys/bus/", "/sys/class/", "/sys/dev/", "/sys/devices/", "/sys/module/"];

/// How a secret is put into a file.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// Beside what is there.
    Beside,
    /// In place of each text.
    Instead,
    /// In place of the whole.
    Alone,
}

/// Lines as files and programs have them, with SECRET where one can be.
const LINES: &str = "SECRET\n# SECRET amdgpu\n# amdgpu password SECRET\nPASSWORD=SECRET\nSECRET=1\nexport CONCOURSE_TAG=SECRET\n\
    CONCOURSE_TAG=\"linux,SECRET,a=SECRET,SECRET=gpu\"\nCONCOURSE_WORK_DIR=https://ann:SECRET@h/\nPATH=/usr/bin:SECRET:/home/SECRET\n\
    HTTP_PROXY=http://ann:SECRET@proxy:3128/\nNAME=\"SECRET\nrest\"\nID=SECRET\nVERSION_ID=\"SECRET 12\"\nPRETTY_NAME=\"SECRET\"\n\
    [Service]\nEnvironment=\"API_TOKEN=SECRET\" PATH=SECRET CONCOURSE_TAG=SECRET\n\
    ExecStart=/usr/bin/dockerd --password SECRET -pSECRET --default-runtime=SECRET -H tcp://SECRET:1 \\\n  SECRET --data-root SECRET\n\
    ExecStartPre=-/usr/bin/curl -u \"ann:SECRET\" -H \"Authorization: Bearer SECRET\" https://hooks.example/SECRET\nX-SECRET=yes\n\
    options amdgpu dc=SECRET SECRET=1 # SECRET\ninstall amdgpu /bin/sh -c SECRET\nblacklist SECRET\nalias SECRET amdgpu\n\
    SECRET:x:44:SECRET\nvideo:x:44:SECRET\nflags\t\t: hypervisor SECRET\nSerial\t\t: SECRET\nmodel name\t: SECRET\n\
    511 SECRET\nSECRET 511 kfd\namdgpu.dc=SECRET amdgpu.SECRET=SECRET rd.luks.pass=SECRET root=SECRET\n6.8.SECRET-generic\n\
    kernel/SECRET/amdgpu.ko: SECRET\ncontainer=SECRET\0TOKEN=SECRET\0\nhttps://SECRET/\n/SECRET/SECRET\n/root/SECRET\n\
    {\"auths\":{\"SECRET\":{\"auth\":\"SECRET\"}}}\n- SECRET: SECRET\n-----BEGIN PRIVATE KEY-----\nSECRET\n-----END PRIVATE KEY-----\n\
    2026-11-21T07:00:00+0000 kernel: amdgpu 0000:03:00.0: ring gfx timeout, signaled seq=1, emitted seq=2 on SECRET\n\
    2026-11-21T07:00:01+0000 kernel: audit: type=1309 audit(1764.5:12): argc=2 a0=\"amdgpu\" a1=\"-pSECRET\"\n\
    2026-11-21T07:00:01+0000 kernel: [drm:x [amdgpu]] *ERROR* Process information: process SECRET pid 7 thread gpu=SECRET pid 8\n";

fn poisoned(value: Value, way: Way, secret: &str) -> Value {
    match value {
        Value::String(_) if matches!(way, Way::Instead) => secret.into(),
        Value::Array(items) => {
            let more = ["--token", secret, &format!("PASSWORD={secret}")].map(Value::from);
            items.into_iter().map(|item| poisoned(item, way, secret)).chain(more).collect()
        }
        Value::Object(map) => {
            let more = json!({
                secret: { "path": secret }, format!("tag={secret}"): true, "password": secret, "annotations": { "name": secret, "path": [secret] },
                "log-opts": { "token": secret }, "auths": { "r": { "auth": secret } }, "env": [format!("PATH={secret}")],
            });
            let more = more.as_object().unwrap().clone();
            let map = map.into_iter().map(|(key, value)| (key, poisoned(value, way, secret)));
            map.chain(more).collect()
        }
        other => other,
    }
}

/// Of rocworker's own state only the top gets more, so that its readers go on to the files that it names.
fn poisoned_file(path: &Path, value: Value, way: Way, secret: &str) -> Value {
    match (value, way) {
        (Value::Object(map), Way::Beside) if path.starts_with("/var/lib/rocworker") => {
            map.into_iter().chain([(secret.to_owned(), json!({ "path": secret }))]).collect()
        }
        (value, way) => poisoned(value, way, secret),
    }
}

/// The text of a file with secrets in it.
fn with_secrets(path: &Path, text: &str, way: Way, secret: &str) -> String {
    let lines = LINES.replace("SECRET", secret);
    let extension = path.extension().and_then(|it| it.to_str()).unwrap_or_default();
    let extension = if path.starts_with("/etc/crio") { "toml" } else { extension };
    let quoted = |text: &str| -> String {
        text.split('"')
            .enumerate()
            .map(|(nth, part)| if nth % 2 == 1 { format!("\"{secret}\"") } else { part.to_owned() })
            .collect()
    };
    match (way, extension) {
        // No more than a kernel has there is read.
        (_, _) if path.ends_with("osrelease") || path.ends_with("container") => format!("{text} {secret}"),
        (Way::Alone, _) => lines,
        (_, "json") => match serde_json::from_str(text) {
            Ok(value) => poisoned_file(path, value, way, secret).to_string(),
            Err(_) => lines,
        },
        (_, "yaml") => match yaml_serde::from_str(text) {
            Ok(value) => yaml_serde::to_string(&poisoned(value, way, secret)).unwrap(),
            Err(_) => lines,
        },
        (Way::Beside, "toml") => format!(
            "{text}\n# {secret}\n[plugins.x.registry.configs.\"{secret}\".auth]\npassword = \"{secret}\"\npath = \"{secret}\"\n\
             [plugins.x.registry.headers]\nX-Meta = [\"Bearer {secret}\"]\n"
        ),
        (Way::Instead, "toml") => quoted(text),
        (Way::Beside, _) => format!("{text}\n{lines}"),
        (Way::Instead, _) => text
            .lines()
            .map(|line| line.split('=').next().unwrap().to_owned() + "=" + secret + "\n")
            .collect(),
    }
}

/// A machine with every engine, set up by rocworker.
fn set_up(root: &Path) {
    machine_with_engines().lay_out(root, Nodes::Recorded).unwrap();
    let apply = Command::new(PROGRAM).arg("--root").arg(root).arg("apply").output().unwrap();
    let said = String::from_utf8_lossy(&apply.stdout).into_owned() + &String::from_utf8_lossy(&apply.stderr);
    assert!(
        root.join("etc/cdi/amd.json").exists() && root.join("var/lib/rocworker/receipt.json").exists(),
        "{said}"
    );
}

fn machine_with_engines() -> Machine {
    let wrapper = fs::read("/bin/true").unwrap();
    Machine::instinct_in_trouble(2, 1)
        .module(Module::new("amdgpu"))
        .put("/etc/group", "root:x:0:\nvideo:x:44:ann\nrender:x:992:ann\n")
        .put("/etc/os-release", "ID=debian\nVERSION_ID=\"12\"\nPRETTY_NAME=\"Debian\"\n")
        .put("/proc/sys/kernel/osrelease", "6.8.0-45-generic\n")
        .put("/proc/sys/kernel/hostname", "zqxfarm.corp.example\n")
        .put("/proc/cmdline", "root=/dev/sda1 quiet amdgpu.dc=1\n")
        .put("/proc/cpuinfo", "model\t\t: 1\nflags\t\t: fpu\n")
        .put("/run/systemd/system", Entry::Directory)
        .put("/etc/modprobe.d/a.conf", "options amdgpu noretry=0\n")
        .put("/usr/lib/modules/6.8.0-45-generic/modules.dep", "kernel/a/amdgpu.ko.zst: kernel/a/drm.ko\n")
        .put("/boot/config-6.8.0-45-generic", "CONFIG_HSA_AMD=y\n")
        .put("/lib", Entry::Link("usr/lib".into()))
        .put("/usr/lib/rocworker/runc-amd-wrapper", wrapper.clone())
        .put("/usr/bin/runc", wrapper.clone())
        .put("/usr/bin/containerd", "")
        .put("/usr/bin/dockerd", "")
        .put("/usr/bin/crio", "")
        .put("/usr/bin/podman", "")
        .put("/usr/local/concourse/bin/concourse", "")
        .put("/etc/containerd/config.toml", "version = 2\nimports = [\"/etc/containerd/conf.d/*.toml\"]\n[debug]\nlevel = \"info\"\n")
        .put("/etc/containerd/conf.d/x.toml", "version = 2\n")
        .put("/etc/docker/daemon.json", "{\"log-driver\":\"journald\",\"runtimes\":{}}")
        .put("/etc/crio/crio.conf", "[crio.runtime]\ndefault_runtime = \"crun\"\n")
        .put("/etc/cdi/other.yaml", "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices: []\n")
        .put("/etc/default/concourse", "CONCOURSE_RUNTIME=containerd\nCONCOURSE_TAG=linux\n")
        .put("/etc/systemd/system/docker.service.d/x.conf", "[Service]\nExecStart=\nExecStart=/usr/bin/dockerd -H fd://\n")
        .put("/usr/lib/systemd/system/docker.service", "[Service]\nType=notify\nExecStart=/usr/bin/dockerd\n")
        .put("/usr/lib/systemd/system/containerd.service", "[Service]\nExecStart=/usr/bin/containerd\n")
        .put("/usr/lib/systemd/system/crio.service", "[Service]\nExecStart=/usr/bin/crio\n")
        .put(
            "/usr/lib/systemd/system/concourse-worker.service",
            "[Service]\nEnvironmentFile=-/etc/default/concourse\nExecStart=/usr/local/concourse/bin/concourse worker --work-dir /srv/w\n",
        )
        .put("/etc/rocworker/config.yaml", "compute-runtime: auto\ndocker: {configure: auto}\n")
        .put("/dev/dri/renderD128", Device::new(226, 128, 992))
        .put("/sys/class/dmi/id/product_name", "Board\n")
        .put("/sys/class/kfd/kfd/proc/4711/zqx", "")
        .put("/var/lib/docker/containers/zqx/config.v2.json", "{}")
}

fn unzipped(archive: &[u8]) -> String {
    let mut bytes = Vec::new();
    GzDecoder::new(archive).read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).to_ascii_lowercase()
}

#[track_caller]
fn assert_no_secret(report: &Report, way: Way) {
    let all = unzipped(&report.bytes);
    let all = all.replace('\0', "");
    let found = all.find(MARK).map(|at| all.get(at.saturating_sub(900)..at + 80).unwrap_or("?"));
    assert_eq!(found, None, "{way:?}");
}

/// Plants a secret into a file that is there or is looked for. What the kernel says of devices stays.
fn plant(root: &Path, path: &Path, way: Way, secret: &str) {
    let is_kernels = OF_KERNEL.iter().any(|it| path.starts_with(it)) && !path.starts_with("/sys/class/dmi");
    if path.starts_with("/proc/self") || is_kernels {
        return;
    }
    let place = root.join(path.strip_prefix("/").unwrap_or(path));
    // A link can lead out of the machine that is laid out.
    let folder = place.parent().unwrap().canonicalize();
    if !folder.is_ok_and(|folder| folder.starts_with(root.canonicalize().unwrap())) {
        return;
    }
    let text = match fs::symlink_metadata(&place) {
        Ok(meta) if meta.is_file() => String::from_utf8_lossy(&fs::read(&place).unwrap()).into_owned(),
        // What is looked for and is not there, but for folders and for what makes the machine another one.
        Err(_) if matches!(way, Way::Alone) && path.extension().is_some() => String::new(),
        _ => return,
    };
    fs::write(&place, with_secrets(path, &text, way, secret)).unwrap();
}

/// Stands in for every program that a report may run.
fn stand_ins(text: &str) -> tempfile::TempDir {
    let folder = scratch();
    for name in [
        "amd-smi",
        "apt-cache",
        "apt-get",
        "conmon",
        "containerd",
        "crictl",
        "crio",
        "crun",
        "ctr",
        "dkms",
        "dmesg",
        "docker",
        "dockerd",
        "dpkg",
        "dpkg-query",
        "getent",
        "incus",
        "journalctl",
        "kmod",
        "lxc",
        "modinfo",
        "modprobe",
        "mokutil",
        "podman",
        "rocm-smi",
        "runc",
        "systemctl",
        "udevadm",
    ] {
        stand_in(folder.path(), name, text);
    }
    folder
}

fn report_of(root: &Path, config: &Config, programs: &Path) -> Report {
    let root = Root::open(root).unwrap();
    // The folder of the stand-ins and that of the shell's cat.
    let path = std::env::join_paths([programs, Path::new("/usr/bin"), Path::new("/bin")]).unwrap();
    take(&root, Ok(config), Some(&Programs::in_folders(path)), Timestamp::of(UNIX_EPOCH)).unwrap()
}

#[test]
fn of_a_secret_in_each_file_that_is_read_and_in_each_programs_answer_nothing_is_in_the_archive() {
    let programs = stand_ins(&LINES.replace("SECRET", "zqx0"));
    for way in [Way::Beside, Way::Instead, Way::Alone] {
        let root = scratch();
        set_up(root.path());
        let config = Config::read(&Root::open(root.path()).unwrap()).unwrap();
        let mut planted: BTreeSet<PathBuf> = BTreeSet::new();
        // A file with a secret can name others that are read then.
        for round in 0.. {
            let report = report_of(root.path(), &config, programs.path());
            if round > 0 {
                assert_no_secret(&report, way);
            }
            let new: Vec<PathBuf> = report.asked.difference(&planted).cloned().collect();
            if new.is_empty() {
                break;
            }
            for path in new {
                plant(root.path(), &path, way, &format!("zqx{}", planted.len()));
                planted.insert(path);
            }
            assert!(round < 9, "each round finds other files");
        }
        let read: BTreeSet<&str> = planted.iter().filter_map(|it| it.to_str()).collect();
        let expected = [
            "/etc/docker/daemon.json",
            "/etc/containerd/config.toml",
            "/etc/crio/crio.conf",
            "/etc/default/concourse",
            "/etc/rocworker/config.yaml",
            "/etc/rocworker/wrapper.json",
            "/var/lib/rocworker/receipt.json",
            "/var/lib/rocworker/memory.json",
            "/run/rocworker/health.json",
            "/etc/cdi/amd.json",
            "/etc/cdi/other.yaml",
            "/etc/modprobe.d/a.conf",
            "/proc/cmdline",
            "/proc/cpuinfo",
            "/etc/group",
            "/usr/lib/systemd/system/docker.service",
            "/etc/systemd/system/docker.service.d/x.conf",
        ];
        let missing: Vec<&str> = expected.into_iter().filter(|path| !read.contains(path)).collect();
        assert!(missing.is_empty(), "{way:?}: no secret is in {missing:?}");
        if matches!(way, Way::Beside) {
            let report = report_of(root.path(), &config, programs.path());
            let entries = entries(&report.bytes);
            for (path, kept) in [
                ("etc/docker/daemon.json", "\"log-driver\": \"journald\""),
                ("etc/containerd/config.toml", "level = \"info\""),
                ("etc/crio/crio.conf", "default_runtime = \"crun\""),
                ("etc/default/concourse", "CONCOURSE_RUNTIME=containerd\n"),
                ("etc/systemd/system/docker.service.d/x.conf", "ExecStart=/usr/bin/dockerd -H fd://\n"),
                ("etc/rocworker/config.yaml", "compute-runtime: auto\n"),
                ("etc/modprobe.d/a.conf", "options amdgpu noretry=0\n"),
                ("etc/group", "video:x:44:\nrender:x:992:\n"),
            ] {
                assert!(entries.contains_key(path), "{path}: {:#?}", report.left_out);
                assert!(text(&entries, path).contains(kept), "{path}: {}", text(&entries, path));
            }
        }
    }
}

/// An administrator's words, in keys that a report keeps, and numbers in others.
#[test]
fn listed_keys_keep_typed_values_alone() {
    for (path, text_there, kept) in [
        (
            "/etc/docker/daemon.json",
            "{\"default-runtime\":\"zqx\",\"pin\":7391846,\"data-root\":\"/srv/docker\"}",
            "{\n  \"data-root\": \"/srv/docker\"\n}\n",
        ),
        (
            "/etc/docker/daemon.json",
            "{\"runtimes\":{\"zqx\":{\"path\":\"/x\"},\"amd\":{\"path\":\"/usr/bin/w\",\"runtimeArgs\":[\"-p\",\"zqx\"]}}}",
            "{\n  \"runtimes\": {\n    \"amd\": {\n      \"path\": \"/usr/bin/w\",\n      \"runtimeArgs\": []\n    }\n  }\n}\n",
        ),
        (
            "/etc/default/concourse",
            "CONCOURSE_TAG=\"linux,zqx,gpu-type=amd,x=y\"\nDB_PIN=7391846\n",
            "CONCOURSE_TAG=linux,gpu-type=amd\n",
        ),
        (
            "/etc/rocworker/config.yaml",
            "tag: zqx\nrepositories: {amdgpu: {url: 'https://repo.radeon.com/amdgpu/6.4/ubuntu'}}\ngpu-device-ids: [0000:03:00.0, renderD128]\n",
            "gpu-device-ids:\n- 0000:03:00.0\n- renderD128\nrepositories:\n  amdgpu:\n    url: https://repo.radeon.com/amdgpu/6.4/ubuntu\n",
        ),
        (
            "/etc/rocworker/config.yaml",
            "driver: {install: amdgpu-dkms, version: 30.10}\nwrapper: {wait-limit-s: 5, quarantine: true}\n",
            "driver:\n  install: amdgpu-dkms\n  version: '30.10'\nwrapper:\n  quarantine: true\n  wait-limit-s: 5\n",
        ),
        (
            "/etc/modprobe.d/a.conf",
            "# zqx\n\nblacklist amdgpu\noptions x pw=zqx\n",
            "\n\nblacklist amdgpu\noptions\n",
        ),
        (
            "/proc/cmdline",
            "root=/dev/sda1 nomodeset token=zqx amdgpu.dc=1 amdgpu.x=ann\n",
            "nomodeset amdgpu.dc=1\n",
        ),
        ("/run/systemd/container", "zqx\n", "container-other\n"),
    ] {
        let root = scratch();
        let machine = machine_with_engines().put(path, text_there);
        machine.lay_out(root.path(), Nodes::Recorded).unwrap();
        let archive = archive(root.path());
        assert_eq!(text(&entries(&archive), path.trim_start_matches('/')), kept, "{path}");
        assert_nowhere(&archive, MARK);
    }
}
