//! What should be of the machine itself, on captured machines: golden files, and their readers' own opinion of them.

use crate::desired::wanted;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use layout::{Device, Entry, Machine, XcpNames};
use reconcile::{Content, Desired, Effect, Kind};
use support::captures;
use support::real::{self, program};
use support::stage::{Stage, stdout};
use wanted::{RENDER, on, text, with_group};

const OPTIONS: &str =
    "module-options:\n  user_partt_mode: 2\n  ppfeaturemask: 0xffffffff\n  lockup_timeout: 10000,60000\n";

/// A machine as an LXD container has it: no group or mode of its own on the nodes that were passed in.
fn lxd(machine: Machine) -> Machine {
    machine
        .put("/dev/lxd", Entry::Directory)
        .put("/run/systemd/system", Entry::Directory)
        .put("/dev/kfd", Device::new(237, 0, 0))
        .put("/dev/dri/renderD128", Device::new(226, 128, 0))
}

/// phoenix' GPU (card1, renderD128, KFD's major 237) beside an NVIDIA card (card0, renderD129).
fn passed_in() -> Machine {
    lxd(captures::phoenix_beside_rtx4080()).put("/dev/dri/renderD129", Device::new(226, 129, 0))
}

/// Everything of it that a person or an executor goes by.
fn shown(desired: &Desired) -> String {
    let mut said = String::new();
    for action in &desired.actions {
        writeln!(said, "== {} ({:?}: {})", action.path.display(), action.stage, action.reason).unwrap();
        match &action.kind {
            Kind::Owned(Content::File { bytes, attributes }) => {
                writeln!(said, "mode {:04o}, owner {:?}", attributes.mode, attributes.owner).unwrap();
                said.push_str(std::str::from_utf8(bytes).unwrap());
            }
            Kind::Node { mode, gid } => writeln!(said, "node {mode:04o}, gid {gid}").unwrap(),
            other => writeln!(said, "{other:?}").unwrap(),
        }
        action.effects.iter().for_each(|effect| writeln!(said, "effect {effect:?}").unwrap());
        action.rival.iter().for_each(|rival| writeln!(said, "contested by {rival}").unwrap());
    }
    for note in &desired.notes {
        let kind = if note.problem { "problem" } else { "note" };
        writeln!(said, "{kind} ({}): {}", note.about, note.text).unwrap();
    }
    said
}

#[test]
fn a_machine_gets_rules_and_its_module() {
    insta::assert_snapshot!("machine_render", shown(&on(&captures::phoenix(), "")));
    let open = format!("permissions: open\n{OPTIONS}");
    insta::assert_snapshot!("machine_open_with_options", shown(&on(&Machine::demo(), &open)));
}

#[test]
fn a_file_of_modules_that_somebody_wrote_stays_and_ours_goes_beside_it_where_it_is_needed() {
    let [theirs, beside] = ["/etc/modules-load.d/amdgpu.conf", "/etc/modules-load.d/rocworker-amdgpu.conf"];
    let there = |desired: &Desired| {
        let paths = desired.actions.iter().map(|action| action.path.display().to_string());
        paths.filter(|path| path.starts_with("/etc/modules-load.d/")).collect::<Vec<_>>()
    };
    let with = |said: &str| on(&captures::phoenix().put(theirs, said), "");
    let ours = text(&on(&captures::phoenix(), ""), theirs);
    for (said, expected) in [
        (ours.as_str(), vec![theirs]),
        ("# mine\namdgpu\nvfio-pci\n", vec![]),
        ("  amdgpu", vec![]),
        ("# amdgpu\nvfio\n", vec![beside]),
        ("amdgpu_x\n", vec![beside]),
        ("", vec![beside]),
        ("\u{fffd}", vec![beside]),
    ] {
        let desired = with(said);
        assert_eq!(there(&desired), expected, "{said:?}");
        expected.iter().for_each(|path| assert_eq!(text(&desired, path), ours));
    }
    let folder = on(&captures::phoenix().put(theirs, Entry::Directory), "");
    assert_eq!(there(&folder), [beside]);
}

#[test]
fn udev_goes_over_amds_devices_and_no_others() {
    // The NVIDIA card is renderD129 of that machine.
    let desired = on(&captures::phoenix_beside_rtx4080(), "");
    let effects: Vec<_> = desired.actions.iter().flat_map(|action| &action.effects).collect();
    let devices = ["/sys/class/kfd/kfd", "/sys/class/drm/renderD128"].map(PathBuf::from).to_vec();
    assert_eq!(effects, [&Effect::Udev { devices }]);
}

#[test]
fn a_virtual_machine_is_a_machine() {
    let virtual_machine = captures::phoenix().put("/sys/class/dmi/id/sys_vendor", "QEMU\n");
    assert_eq!(on(&virtual_machine, ""), on(&captures::phoenix(), ""));
}

#[test]
fn a_container_gets_its_nodes_set_and_nothing_of_udev_or_modules() {
    insta::assert_snapshot!("container_render", shown(&on(&passed_in(), "")));
    let open = format!("permissions: open\n{OPTIONS}");
    insta::assert_snapshot!("container_open", shown(&on(&passed_in(), &open)));
}

#[test]
fn each_partition_in_a_container_has_its_node_set() {
    // topology/nodes/2 to 64 of the capture: drm_render_minor 128 to 190. KFD's major is the capture builder's.
    let machine = captures::mi300x(XcpNames::Underscore)
        .put("/dev/incus", Entry::Directory)
        .put("/run/systemd/system", Entry::Directory);
    let desired = on(&machine, "");
    let mut expected = vec!["/etc/tmpfiles.d/rocworker.conf".to_owned(), "/dev/kfd".to_owned()];
    expected.extend((128..=190).map(|minor| format!("/dev/dri/renderD{minor}")));
    let paths: Vec<_> =
        desired.actions.iter().map(|action| action.path.path().unwrap().to_str().unwrap()).collect();
    assert_eq!(paths, expected);
    let lines = text(&desired, "/etc/tmpfiles.d/rocworker.conf");
    assert_eq!(lines.lines().filter(|line| line.starts_with("z /dev/")).count(), 64);
}

#[test]
fn a_container_whose_nodes_are_right_already_wants_the_same_so_that_they_stay_so() {
    let right = passed_in()
        .put("/dev/kfd", Device::new(237, 0, RENDER))
        .put("/dev/dri/renderD128", Device::new(226, 128, RENDER));
    assert_eq!(on(&right, ""), on(&passed_in(), ""));
}

#[test]
fn nothing_is_wanted_where_nothing_is_amds_or_nothing_is_to_be_done() {
    for (machine, config) in [
        (captures::a380(), ""),
        (captures::rtx4080(0, 128), "permissions: open"),
        (captures::phoenix(), "compute-runtime: none"),
        (captures::phoenix(), "compute-runtime: cuda"),
        (passed_in(), "compute-runtime: none"),
        // No node was passed in.
        (captures::phoenix().put("/dev/lxd", Entry::Directory).remove("/dev/kfd").remove("/dev/dri"), ""),
    ] {
        assert_eq!(on(&machine, config), Desired::default(), "{config}");
    }
}

#[test]
fn a_list_of_gpus_says_nothing_about_who_may_open_the_others() {
    let machine = Machine::demo();
    assert_eq!(on(&machine, "gpu-device-ids: 0"), on(&machine, ""));
}

#[test]
fn a_group_that_is_not_there_is_told_and_never_named_to_udev() {
    let [machine, container] = [captures::phoenix(), passed_in()];
    for (machine, config, part) in
        [(&machine, "", "root alone may open"), (&container, "", "left as they were passed in")]
    {
        let desired = with_group(machine, config, None);
        let [note] = desired.notes.as_slice() else { panic!("{desired:#?}") };
        assert!(note.problem && note.text.contains("groupadd --system render, and apply again"), "{note:?}");
        assert!(note.text.contains(part), "{note:?}");
    }
    for config in ["", "permissions: open"] {
        let rules = text(&with_group(&machine, config, None), "/etc/udev/rules.d/70-amdgpu.rules");
        assert!(!rules.contains("GROUP") && rules.contains("MODE=\"06"), "{rules}");
    }
    assert!(with_group(&container, "", None).actions.is_empty());
    // Everybody may open them: the group is left as it is.
    let open = with_group(&container, "permissions: open", None);
    assert_eq!(open.notes, []);
    let kfd = open.actions.iter().find(|action| action.path == Path::new("/dev/kfd")).unwrap();
    assert_eq!(kfd.kind, Kind::Node { mode: 0o666, gid: 0 });
    let lines = text(&open, "/etc/tmpfiles.d/rocworker.conf");
    assert!(lines.contains("\nz /dev/kfd 0666 - - -\n"), "{lines}");
}

#[test]
fn a_container_without_systemd_is_told_that_it_lasts_until_its_next_start() {
    let docker = passed_in().remove("/run/systemd/system").remove("/dev/lxd").put("/.dockerenv", "");
    let desired = on(&docker, "");
    let [note] = desired.notes.as_slice() else { panic!("{desired:#?}") };
    assert!(!note.problem && note.text.contains("(docker) does not run systemd"), "{note:?}");
    let paths: Vec<_> =
        desired.actions.iter().map(|action| action.path.path().unwrap().to_str().unwrap()).collect();
    assert_eq!(paths, ["/dev/kfd", "/dev/dri/renderD128"]);
}

#[test]
fn a_node_whose_owner_or_group_the_container_does_not_map_is_left_with_what_to_do() {
    for (uid, gid) in [(65534, 65534), (0, 65534), (65534, 0)] {
        let foreign = Device { uid, ..Device::new(226, 128, gid) };
        let of = |device| on(&passed_in().put("/dev/dri/renderD128", device), "");
        let desired = of(foreign);
        let [note] = desired.notes.as_slice() else { panic!("{desired:#?}") };
        assert!(note.problem && note.text.starts_with("/dev/dri/renderD128 has an owner"), "{note:?}");
        assert!(!shown(&Desired { notes: Vec::new(), ..desired }).contains("renderD128"));
        // One that everybody may open needs nothing.
        let desired = of(foreign.mode(0o666));
        assert!(desired.notes.is_empty() && !shown(&desired).contains("renderD128"), "{desired:#?}");
    }
}

#[test]
fn real_systemd_tmpfiles_sets_amds_nodes_as_a_container_starts() {
    const UNIT: &str = "/usr/lib/systemd/system/systemd-tmpfiles-setup-dev.service";
    if !real::require_root(&["systemd-tmpfiles", "unshare", "stat"]) {
        return;
    }
    // What systemd itself runs at each start, in a container too: the unit has no condition against that.
    let unit = std::fs::read_to_string(UNIT).unwrap();
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    assert!(!unit.contains("Condition") && start.contains("--boot"), "{unit}");
    for (config, set) in [("", "660 0 992"), ("permissions: open", "666 0 992")] {
        let path = "/etc/tmpfiles.d/rocworker.conf";
        let stage = Stage::set(&passed_in().put("/etc/group", "root:x:0:\nrender:x:992:\n"));
        stage.put(&path[1..], &text(&on(&passed_in(), config), path));
        let nodes = "/dev/kfd /dev/dri/renderD128 /dev/dri/card1 /dev/dri/renderD129";
        // 65 and 73, which the unit takes for success: another line of the system's is not for this /dev.
        let script = format!(
            "{start} >/tmp/said 2>&1 || [ $? = 65 ] || [ $? = 73 ]; stat -c '%n %a %u %g' {nodes}; cat /tmp/said"
        );
        let script = script.replace("/tmp/said", &stage.folder().join("said").display().to_string());
        let said = stdout(&stage.shell(&script));
        let expected = format!(
            "/dev/kfd {set}\n/dev/dri/renderD128 {set}\n/dev/dri/card1 660 0 44\n/dev/dri/renderD129 660 0 0\n"
        );
        assert!(said.starts_with(&expected), "{said}");
        assert!(!said.contains("rocworker.conf"), "it has something to say of our file: {said}");
    }
}

#[test]
fn real_modprobe_reads_the_options_as_they_were_configured() {
    if !real::require(&["modprobe"]) {
        return;
    }
    let desired = on(&captures::phoenix(), OPTIONS);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("rocworker-amdgpu.conf"),
        text(&desired, "/etc/modprobe.d/rocworker-amdgpu.conf"),
    )
    .unwrap();
    let output =
        Command::new(program("modprobe").unwrap()).args(["-c", "-C"]).arg(folder.path()).output().unwrap();
    let said = stdout(&output);
    let options: Vec<&str> = said.lines().filter(|line| line.starts_with("options amdgpu ")).collect();
    let expected = "options amdgpu lockup_timeout=10000,60000 ppfeaturemask=0xffffffff user_partt_mode=2";
    assert_eq!(options, [expected], "{said}");
    assert!(output.stderr.is_empty(), "{output:?}");
}
