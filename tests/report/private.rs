//! What must not be in a report, wherever it stands on the machine.

use std::fs;
use std::os::unix::fs::symlink;

use layout::{Entry, Nodes};
use serde_json::Value;
use support::detect::scratch;

use super::{SECRET, archive, assert_nowhere, entries, machine, text, unpack};

#[test]
fn secrets_serial_numbers_and_the_machines_name_are_nowhere_in_the_archive() {
    let mut machine = machine()
        .put("/proc/sys/kernel/hostname", "gpu-farm-17.corp.example\n")
        .put("/etc/containerd/config.toml", format!(
            "version = 3\n[plugins.x.registry.configs.\"r\".auth]\n  password = \"{SECRET}\"\n# token: {SECRET}\n[debug]\n  level = \"info\"\n"
        ))
        .put("/etc/containerd/conf.d/x.toml", format!("[h.header]\n  X-Meta = [\n\"Bearer {SECRET}\"]\n"))
        .put("/etc/docker/daemon.json", format!(
            "{{\"proxies\":{{\"http-proxy\":\"http://ann:{SECRET}@proxy:3128\"}},\"runtimes\":{{}}}}"
        ))
        .put("/etc/default/concourse", format!("CONCOURSE_SESSION_SIGNING_KEY={SECRET}\nCONCOURSE_RUNTIME=containerd\n"))
        .put("/var/lib/concourse-worker/worker-config.env", format!(
            "CONCOURSE_TSA_WORKER_PRIVATE_KEY={SECRET}\nCONCOURSE_NAME=gpu-farm-17\nCONCOURSE_TAG=gpu\n"
        ))
        .put("/etc/systemd/system/concourse-worker.service.d/x.conf", format!(
            "[Service]\nEnvironment=\"API_TOKEN={SECRET}\"\nExecStart=/bin/worker --client-secret {SECRET}\n"
        ))
        .put("/etc/rocworker/config.yaml", format!("# api-key: {SECRET}\ncompute-runtime: auto\n"))
        .put("/etc/rocworker/id_rsa", SECRET)
        .put("/etc/containerd/certs.d/r/client.key", SECRET)
        .put("/proc/1/environ", format!("HOME=/root\0TOKEN={SECRET}\0"))
        .put("/run/.containerenv", format!("name={SECRET}\n"))
        .put("/proc/cpuinfo", format!("model\t\t: 1\nSerial\t\t: {SECRET}\n"))
        .put("/sys/class/dmi/id/product_serial", SECRET)
        .put("/sys/class/drm/card0-DP-1/edid", SECRET);
    for attribute in [
        "serial_number",
        "config",
        "vbios_version",
        "rom",
        "resource",
        "resource0",
        "pcie_bw",
        "pp_table",
        "ras/umc_err_count",
        "ip_discovery/x",
    ] {
        machine = machine.put(&format!("/sys/class/drm/card0/device/{attribute}"), SECRET);
    }
    let root = scratch();
    machine.lay_out(root.path(), Nodes::Recorded).unwrap();
    let archive = archive(root.path());
    for needle in [SECRET, "gpu-farm-17", "ann", root.path().to_str().unwrap()] {
        assert_nowhere(&archive, needle);
    }
    let entries = entries(&archive);
    assert!(text(&entries, "etc/containerd/config.toml").contains("level = \"info\""));
    assert!(text(&entries, "etc/docker/daemon.json").contains("[removed]@proxy:3128"));
    assert!(text(&entries, "etc/default/concourse").contains("CONCOURSE_RUNTIME=containerd"));
    let worker = text(&entries, "var/lib/concourse-worker/worker-config.env");
    assert_eq!(
        worker,
        "CONCOURSE_TSA_WORKER_PRIVATE_KEY=\"[removed]\"\nCONCOURSE_NAME=HOST\nCONCOURSE_TAG=gpu\n"
    );
    let record: Value = serde_json::from_str(text(&entries, "capture.json")).unwrap();
    assert_eq!(record["removed"]["/etc/default/concourse"], 1, "{record:#}");
    assert_eq!(
        text(&entries, "etc/group"),
        "root:x:0:\nvideo:x:44:\nrender:x:992:\n".replace("root:x:0:\n", "")
    );
}

#[test]
fn no_link_is_followed_out_of_what_is_listed_and_no_fifo_is_waited_for() {
    let shadow = format!("root:{SECRET}:1::::::\n");
    let machine = machine()
        .put("/etc/shadow", shadow)
        .put("/root/secret/daemon.json", format!("{{\"x\":\"{SECRET}\"}}"))
        .put("/etc/rocworker/config.yaml", Entry::Link("/etc/shadow".into()))
        .put("/etc/rocworker/policy.json", Entry::Link("../shadow".into()))
        .put("/etc/docker", Entry::Link("/root/secret".into()))
        .put("/etc/group", Entry::Link("shadow".into()))
        .put("/proc/modules", Entry::Link("/etc/shadow".into()))
        .put("/sys/class/drm/card0/device/product_number", Entry::Link("/etc/shadow".into()))
        .put("/sys/class/drm/card0/device/revision", Entry::Link("../../../../../../etc/shadow".into()))
        .put("/sys/class/drm/card7", Entry::Link("../../../etc".into()))
        .put("/sys/class/drm/card8", Entry::Link("card8".into()))
        .put("/sys/class/drm/card9", Entry::Link("/etc".into()))
        .put("/sys/class/kfd/kfd/topology/nodes/9", Entry::Link("/root/secret".into()));
    let (root, into) = (scratch(), scratch());
    machine.lay_out(root.path(), Nodes::Recorded).unwrap();
    let fifo =
        |path: &str| nix::unistd::mkfifo(&root.path().join(path), nix::sys::stat::Mode::S_IRWXU).unwrap();
    fs::create_dir_all(root.path().join("etc/cdi")).unwrap();
    fifo("etc/cdi/amd.json");
    fifo("sys/bus/pci/devices/0000:03:00.0/boot_vga");
    symlink("/dev/zero", root.path().join("etc/cdi/zero.json")).unwrap();

    let archive = archive(root.path());
    assert_nowhere(&archive, SECRET);
    let entries = entries(&archive);
    for path in
        ["etc/rocworker/config.yaml", "etc/docker/daemon.json", "etc/cdi/amd.json", "etc/cdi/zero.json"]
    {
        assert!(!entries.contains_key(path), "{path}");
    }
    let record = text(&entries, "capture.json");
    for said in [
        "\"/etc/rocworker/config.yaml\"",
        "\"/etc/docker\"",
        "\"/etc/cdi/amd.json\"",
        "boot_vga",
        "out of /sys",
    ] {
        assert!(record.contains(said), "{said}: {record}");
    }
    // Nor does an archive lead anybody who unpacks it anywhere.
    for (path, (header, _)) in &entries {
        if let Some(target) = header.link_name().unwrap() {
            let up = target.components().filter(|part| part.as_os_str() == "..").count();
            assert!(!target.is_absolute() && up < path.split('/').count(), "{path} -> {}", target.display());
        }
    }
    unpack(&archive, into.path());
}
