//! Machines of users' reports: detect, doctor and plan name the true cause under the machine's own manager, and agree.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use support::cases;

use crate::doctor::PROGRAM;

/// A command, what it says, and what it does not say.
type Says<'t> = (&'t str, &'t [&'t str], &'t [&'t str]);

/// Runs each command beneath the case's machine, which `change` has changed.
#[track_caller]
fn says(case: &'static str, change: impl Fn(&Path), table: &[Says<'_>]) {
    let Some(case) = cases::machine(case) else { return };
    let root = case.root();
    change(&root);
    for (command, parts, but_not) in table {
        let output =
            Command::new(PROGRAM).arg("--root").arg(&root).args(command.split(' ')).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in *parts {
            assert!(text.contains(part), "{command}: no {part:?} in: {text}");
        }
        for part in *but_not {
            assert!(!text.contains(part), "{command}: {part:?} in: {text}");
        }
    }
}

fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn as_it_is(_: &Path) {}

#[test]
fn a_container_of_proxmox_gets_the_command_of_proxmox() {
    let kfd = "pct set ID -devN /dev/kfd,gid=991";
    says(
        "pve-ct-nokfd",
        as_it_is,
        &[("detect", &["/dev/kfd is not there"], &[]), ("doctor", &[kfd, "pct reboot ID"], &["--device"])],
    );
    // Without any node, each is passed.
    let bare = |root: &Path| fs::remove_dir_all(root.join("dev/dri")).unwrap();
    let both = "pct set ID -devN /dev/kfd,gid=991 -devN /dev/dri/renderD128,gid=991";
    says("pve-ct-nokfd", bare, &[("doctor", &[both], &["--device"])]);
    // apply gives the nodes for computing their group, in a container too. The card's node it leaves.
    let by_apply = "its group 993 has no name in /etc/group → rocworker apply";
    let table: &[Says<'_>] =
        &[("doctor", &[by_apply], &["groupadd", "gid=991, which"]), ("plan", &["owner 0:993 → 0:991"], &[])];
    says("pve-ct-nokfd", as_it_is, table);
    let other_video = |root: &Path| put(root, "etc/group", "root:x:0:\nvideo:x:45:\nrender:x:991:\n");
    let by_manager =
        "its group 44 has no name in /etc/group → pass the node in with gid=45, which is video here";
    says("pve-ct-nokfd", other_video, &[("doctor", &[by_manager], &["groupadd"])]);
}

#[test]
fn another_container_gets_the_words_of_its_own_manager() {
    let plain = |root: &Path| put(root, "proc/sys/kernel/osrelease", "6.12.0-amd64\n");
    let mount = "lxc.mount.entry = /dev/kfd dev/kfd none bind,create=file";
    says("pve-ct-nokfd", plain, &[("doctor", &[mount, "lxc.cgroup2.devices.allow"], &["pct", "--device"])]);
    let nspawn = |root: &Path| put(root, "run/systemd/container", "systemd-nspawn\n");
    let bind = "systemd-nspawn --bind=/dev/kfd --property=DeviceAllow=/dev/kfd";
    says("pve-ct-nokfd", nspawn, &[("doctor", &[bind], &["pct", "--device"])]);
    // Incus on a Proxmox host is Incus.
    let incus = |root: &Path| put(root, "dev/incus/sock", "");
    says("pve-ct-nokfd", incus, &[("doctor", &["incus config device add ct220 kfd"], &["pct"])]);
    let docker = |root: &Path| put(root, "run/systemd/container", "docker\n");
    says("pve-ct-nokfd", docker, &[("doctor", &["start it with --device /dev/kfd"], &["pct"])]);
}

#[test]
fn where_windows_keeps_the_card_nothing_is_promised() {
    let why = "Windows gives its GPU here as /dev/dxg, for which there is no amdgpu and no KFD";
    let table: &[Says<'_>] = &[
        ("detect", &[why, "not supported", "inside wsl"], &[]),
        ("doctor", &[why, "Linux host"], &["lspci"]),
        ("plan", &[why, "nothing to change"], &[]),
    ];
    says("wsl", as_it_is, table);
    // WSL 1 has no such node.
    let first = |root: &Path| {
        fs::remove_file(root.join("dev/dxg")).unwrap();
        put(root, "proc/sys/kernel/osrelease", "4.4.0-19041-Microsoft\n");
    };
    let why = "WSL has no amdgpu and no KFD";
    says("wsl", first, &[("detect", &[why], &[]), ("doctor", &[why], &["lspci"]), ("plan", &[why], &[])]);
    // A Linux guest of Hyper-V, with a kernel of its own.
    let guest = |root: &Path| put(root, "proc/sys/kernel/osrelease", "6.8.0-45-generic\n");
    says(
        "wsl",
        guest,
        &[("detect", &["as /dev/dxg"], &["inside wsl"]), ("doctor", &["as /dev/dxg"], &["lspci"])],
    );
}

#[test]
fn roots_own_link_to_usr_local_is_followed() {
    let wrapper = "usr/local/lib/rocworker/runc-amd-wrapper";
    says("ostree", as_it_is, &[("plan", &[wrapper], &["blocked", "symbolic link"])]);
    let others = |root: &Path| {
        fs::set_permissions(root.join("var/usrlocal"), fs::Permissions::from_mode(0o777)).unwrap();
    };
    says("ostree", others, &[("plan", &["blocked", "symbolic link"], &[])]);
    let absolute = |root: &Path| {
        fs::remove_file(root.join("usr/local")).unwrap();
        symlink("/var/usrlocal", root.join("usr/local")).unwrap();
    };
    says("ostree", absolute, &[("plan", &[wrapper], &["blocked"])]);
}

#[test]
fn groups_that_a_name_service_has_are_not_made_again() {
    let table: &[Says<'_>] = &[
        ("doctor", &["gid 105, by /usr/lib/group", "root:render 0660", "root:video 0660"], &["groupadd"]),
        ("plan", &["GROUP=\"render\""], &["groupadd"]),
    ];
    says("altfiles", as_it_is, table);
    // No name service has them: the card node's group is video's, never render's.
    let none = |root: &Path| fs::remove_file(root.join("usr/lib/group")).unwrap();
    says("altfiles", none, &[("doctor", &["groupadd"], &["groupadd --system --gid 39 render"])]);
}

#[test]
fn a_blacklist_that_the_gpu_operator_wrote_is_left_alone() {
    let meant = "keeps the kernel's own amdgpu out, and KMM has loaded another build: leave it";
    let table: &[Says<'_>] =
        &[("doctor", &[meant], &["remove the line", "update-grub"]), ("plan", &[], &["modules-load.d"])];
    says("kmm", as_it_is, table);
    // OpenShift's MachineConfig has no comment: an AMD build runs on a node whose disk has the kernel's own.
    let openshift = |root: &Path| {
        put(root, "etc/modprobe.d/blacklist-amdgpu.conf", "blacklist amdgpu\n");
        put(root, "var/lib/kubelet/config.yaml", "");
        let modules = "kernel/drivers/gpu/drm/amd/amdgpu/amdgpu.ko.zst:\n";
        put(root, "lib/modules/6.8.0-79-generic/modules.dep", modules);
    };
    says("kmm", openshift, table);
    // The operator's module is not loaded: its own build is what is missing.
    let unloaded = |root: &Path| {
        fs::remove_dir_all(root.join("sys/module/amdgpu")).unwrap();
        change_uevents(root, |text| text.replace("DRIVER=amdgpu\n", ""));
        for address in ["0000:05:00.0", "0000:06:00.0"] {
            fs::remove_file(root.join(format!("sys/devices/pci0000:00/{address}/driver"))).unwrap();
        }
    };
    says("kmm", unloaded, &[("doctor", &["leave it", "kubectl"], &["remove the line", "update-grub"])]);
    // Nobody's: it keeps the driver out at the next boot.
    let nobodys = |root: &Path| put(root, "etc/modprobe.d/blacklist-amdgpu.conf", "blacklist amdgpu\n");
    says("kmm", nobodys, &[("doctor", &["at the next boot", "remove the line"], &["KMM"])]);
}

/// Replaces a line's beginning in the file that the kernel names a card's driver and ids in.
fn change_uevents(root: &Path, change: impl Fn(&str) -> String) {
    for address in ["0000:01:00.0", "0000:02:00.0", "0000:05:00.0", "0000:06:00.0"] {
        let file = root.join(format!("sys/devices/pci0000:00/{address}/uevent"));
        if let Ok(text) = fs::read_to_string(&file) {
            fs::write(file, change(&text)).unwrap();
        }
    }
}

fn with_device(id: &str) -> impl Fn(&Path) {
    move |root| change_uevents(root, |text| text.replace("6798", id).replace("6811", id))
}

#[test]
fn a_generation_that_never_computes_is_no_fault_of_its_driver() {
    const NOTHING: &[&str] = &["modprobe amdgpu", "bind it to amdgpu", "newer kernel", "read dmesg"];
    for (case, id, why) in [
        ("firepro-radeon", "6798", "GCN 1 (Southern Islands)"),
        ("pitcairn", "6811", "GCN 1 (Southern Islands)"),
        ("firepro-radeon", "6660", "GCN 1 (Southern Islands)"),
        ("firepro-radeon", "68b8", "older than GCN"),
        ("pitcairn", "6658", "GCN 2 (Sea Islands)"),
    ] {
        let table: &[Says<'_>] = &[
            ("detect", &["it never computes"], NOTHING),
            ("doctor", &["it never computes", "no AMD card of this machine can compute"], NOTHING),
            ("plan", &["that can compute", "nothing is set up"], &["create"]),
        ];
        says(case, with_device(id), table);
        says(case, with_device(id), &[("detect", &[why], &[]), ("plan", &[why], &[])]);
    }
    // Hawaii can move to amdgpu; KFD calls it experimental.
    let parameters = "radeon.cik_support=0 amdgpu.cik_support=1 amdgpu.exp_hw_support=1";
    let table: &[Says<'_>] =
        &[("detect", &[parameters], &["never computes"]), ("doctor", &[parameters], &[])];
    says("firepro-radeon", with_device("67b1"), table);
    says(
        "firepro-radeon",
        with_device("130f"),
        &[("doctor", &["radeon.cik_support=0 amdgpu.cik_support=1"], &["exp_hw"])],
    );
}

#[test]
fn a_servers_display_chip_is_left_out_of_what_computes() {
    let table: &[Says<'_>] = &[
        (
            "detect",
            &["an ES1000 is a server's display chip: it never computes", "2 of 3"],
            &["radeon is bound"],
        ),
        ("doctor", &["an ES1000 is a server's display chip"], &["unbind", "! 0000:01:03.0"]),
        ("plan", &["renderD128"], &["nothing is set up"]),
    ];
    says("es1000", as_it_is, table);
}

#[test]
fn an_engine_that_is_not_served_is_named_with_its_file() {
    for (case, file) in [
        ("k3s", "/var/lib/rancher/k3s/agent/etc/containerd/"),
        ("rke2", "/var/lib/rancher/rke2/agent/etc/containerd/"),
        ("microk8s", "/var/snap/microk8s/current/args/containerd-template.toml"),
        ("docker-desktop", "~/.docker/daemon.json"),
        ("docker-rootless", "/home/ann/.config/docker/daemon.json"),
    ] {
        let parts = [format!("{case} is here"), format!("rocworker does not configure {file}")];
        let parts = parts.each_ref().map(String::as_str);
        says(case, as_it_is, &["detect", "doctor", "plan"].map(|command| (command, &parts[..], &[][..])));
    }
    let k0s = |root: &Path| put(root, "etc/k0s/k0s.yaml", "");
    says("k3s", k0s, &[("plan", &["/etc/k0s/containerd.d/"], &[])]);
    let of_ostree = |root: &Path| {
        fs::create_dir_all(root.join("var")).unwrap();
        fs::rename(root.join("home"), root.join("var/home")).unwrap();
        symlink("var/home", root.join("home")).unwrap();
    };
    let file = "rocworker does not configure /var/home/ann/.config/docker/daemon.json";
    says("docker-rootless", of_ostree, &[("doctor", &[file], &["configure /home"])]);
}

#[test]
fn a_processors_own_graphics_beside_a_card_are_named_and_can_be_left_out() {
    let said = "GPU 1 is a processor's own graphics (an APU) beside a card";
    let table: &[Says<'_>] = &[
        ("detect", &[said, "gpu-device-ids: discrete"], &[]),
        ("doctor", &[said, "write gpu-device-ids: discrete"], &[]),
        ("plan -v", &[said, "\"path\": \"/dev/dri/renderD129\"", "\"integrated\": true"], &[]),
    ];
    says("igpu-beside", as_it_is, table);
    let discrete = |root: &Path| put(root, "etc/rocworker/config.yaml", "gpu-device-ids: discrete\n");
    let table: &[Says<'_>] = &[
        ("doctor", &["containers may be given GPU 0"], &["beside a card"]),
        ("plan -v", &["renderD128"], &["renderD129", "integrated", "beside a card"]),
    ];
    says("igpu-beside", discrete, table);
    // Alone it is what the machine has: nothing to say, and nothing to prefer.
    let alone = |root: &Path| {
        fs::remove_dir_all(root.join("sys/class/kfd/kfd/topology/nodes/1")).unwrap();
    };
    says("igpu-beside", alone, &[("plan -v", &["renderD129"], &["integrated", "beside a card"])]);
    let none_left = |root: &Path| {
        alone(root);
        discrete(root);
    };
    says(
        "igpu-beside",
        none_left,
        &[("doctor", &["each usable GPU is a processor's own", "gpu-device-ids: all"], &[])],
    );
}
