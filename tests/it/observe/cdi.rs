//! The CDI spec through the program, on captured machines: what is written, and what is said of one that is wrong.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use layout::{Gpu, Kfd, KfdNode, Machine, Nodes, XcpNames};
use serde_json::Value;
use support::captures;
use support::detect::scratch;

struct Laid {
    dir: tempfile::TempDir,
}

impl Laid {
    fn out(machine: &Machine, config: &str) -> Self {
        let dir = scratch();
        machine.lay_out(dir.path(), Nodes::Recorded).unwrap();
        fs::create_dir_all(dir.path().join("etc/rocworker")).unwrap();
        fs::write(dir.path().join("etc/rocworker/config.yaml"), config).unwrap();
        Self { dir }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn run(&self, arguments: &[&str]) -> Assert {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rocworker"));
        command.arg("--root").arg(self.dir.path()).args(arguments).assert()
    }

    fn spec(&self) -> Value {
        serde_json::from_slice(&self.run(&["cdi", "generate", "--file", "-"]).success().get_output().stdout)
            .unwrap()
    }

    fn findings(&self) -> Vec<String> {
        let output = self.run(&["cdi", "validate", "--output", "json"]).get_output().clone();
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        let findings: Vec<String> = serde_json::from_value(answer["findings"].clone()).unwrap();
        assert_eq!(output.status.code(), Some(if findings.is_empty() { 0 } else { 3 }), "{answer:#}");
        findings
    }
}

fn paths(edits: &Value) -> Vec<&str> {
    edits["deviceNodes"].as_array().unwrap().iter().map(|node| node["path"].as_str().unwrap()).collect()
}

fn names(spec: &Value) -> Vec<&str> {
    spec["devices"].as_array().unwrap().iter().map(|device| device["name"].as_str().unwrap()).collect()
}

fn device<'a>(spec: &'a Value, name: &str) -> &'a Value {
    let devices = spec["devices"].as_array().unwrap();
    &devices.iter().find(|device| device["name"] == name).unwrap_or_else(|| panic!("no {name}"))["containerEdits"]
}

#[test]
fn the_spec_of_one_card_beside_another_vendors() {
    let spec =
        Laid::out(&captures::phoenix_beside_rtx4080(), "").run(&["cdi", "generate", "--file", "-"]).success();
    insta::assert_snapshot!("phoenix_beside_rtx4080", String::from_utf8_lossy(&spec.get_output().stdout));
}

#[test]
fn sixty_three_partitions_are_one_device_each_and_one_kfd_for_all() {
    let spec = Laid::out(&captures::mi300x(XcpNames::Underscore), "").spec();
    // topology/nodes/2 to 64 of the capture: drm_render_minor 128 to 190, eight a card, seven on the last.
    let expected: Vec<String> = (0..63).map(|index| index.to_string()).collect();
    assert_eq!(names(&spec)[..63], expected);
    let cards = ["05", "27", "47", "65", "85", "a7", "c7", "e5"].map(|bus| format!("0000:{bus}:00.0"));
    // The unique_id in topology/nodes/2, 10, 18 and so on, which the partitions of a card share.
    let uuids = [
        "2250f807caf2231a",
        "a70757a01276547a",
        "b8f159dcba049de9",
        "bd5b5286da906cea",
        "d465af38bcaa89bd",
        "d802d560d4ba851d",
        "dd197ad1b50577f6",
        "e3aa140f9a5f9e31",
    ]
    .map(|id| format!("GPU-{id}"));
    assert_eq!(names(&spec)[63..], [&["all".to_owned()][..], &uuids, &cards].concat());
    let render = |edits: &Value| -> BTreeSet<String> {
        paths(edits).iter().filter(|path| path.contains("renderD")).map(|path| (*path).to_owned()).collect()
    };
    assert_eq!(
        render(device(&spec, "all")),
        (128..=190).map(|minor| format!("/dev/dri/renderD{minor}")).collect()
    );
    assert_eq!(
        render(device(&spec, "0000:05:00.0")),
        (128..=135).map(|m| format!("/dev/dri/renderD{m}")).collect()
    );
    assert_eq!(render(device(&spec, "0000:e5:00.0")).len(), 7);
    for (uuid, address) in [
        ("GPU-e3aa140f9a5f9e31", "0000:05:00.0"),
        ("GPU-2250f807caf2231a", "0000:27:00.0"),
        ("GPU-dd197ad1b50577f6", "0000:e5:00.0"),
    ] {
        assert_eq!(device(&spec, uuid), device(&spec, address), "{uuid}");
    }
    assert_eq!(paths(&spec["containerEdits"]), ["/dev/kfd"]);
    let text = spec.to_string();
    assert_eq!(text.matches("/dev/kfd").count(), 1);
    for key in ["major", "minor", "type", "uid"] {
        assert!(!text.contains(key), "{key} has no place in it");
    }
    // Each node's own group: video for cards, render for the rest (tests/layout/src/drm.rs).
    for node in device(&spec, "all")["deviceNodes"].as_array().unwrap() {
        let group = if node["path"].as_str().unwrap().contains("/card") { 44 } else { 992 };
        assert_eq!(node["gid"], group, "{node}");
    }
    assert_eq!(spec["containerEdits"]["deviceNodes"][0]["gid"], 992);
}

/// From ROCm 7.0.1 a partition has a uuid of its own in KFD, and sysfs still has the card's.
#[test]
fn a_cards_uuid_means_all_its_partitions_where_each_has_its_own_too() {
    let gpu = Gpu::amd("0000:05:00.0", 0x74a1).class(0x12_0000).card(1).render(128).partition(2, 129);
    let gpu = gpu.attribute("unique_id", "00000000000000c0").attribute("current_compute_partition", "DPX");
    let part = |n: u8| {
        let node = KfdNode::gpu(511 + u32::from(n), 0x74a1, 90_402).at("0000:05:00.0").partition(n);
        node.render(128 + u32::from(n)).property("unique_id", 0xa0 + u64::from(n))
    };
    let kfd = Kfd::new(511).node(KfdNode::cpu(1)).node(part(0)).node(part(1));
    let spec = Laid::out(&Machine::new().gpu(gpu).kfd(kfd), "").spec();
    let own = ["GPU-00000000000000a0", "GPU-00000000000000a1"];
    assert_eq!(names(&spec), ["0", "1", "all", own[0], own[1], "GPU-00000000000000c0", "0000:05:00.0"]);
    assert_eq!(paths(device(&spec, own[1])), ["/dev/dri/card2", "/dev/dri/renderD129"]);
    assert_eq!(device(&spec, "GPU-00000000000000c0"), device(&spec, "0000:05:00.0"));
}

/// A board's maker may give two cards one id: a request by it would get both.
#[test]
fn an_id_that_two_cards_have_is_no_name() {
    let card = |address, minor: u32| {
        let gpu = Gpu::amd(address, 0x744c).card(minor).render(128 + minor);
        gpu.attribute("unique_id", "5ca1ab1e00000001")
    };
    let node = |address, minor: u32| {
        let node = KfdNode::gpu(511 + minor, 0x744c, 110_000).at(address).render(128 + minor);
        node.property("unique_id", 0x5ca1_ab1e_0000_0001)
    };
    let [one, other] = ["0000:03:00.0", "0000:c1:00.0"];
    let kfd = Kfd::new(511).node(KfdNode::cpu(1)).node(node(one, 0)).node(node(other, 1));
    let machine = Machine::new().gpu(card(one, 0)).gpu(card(other, 1)).kfd(kfd);
    assert_eq!(names(&Laid::out(&machine, "").spec()), ["0", "1", "all", one, other]);
    let laid = Laid::out(&machine, "gpu-device-ids: [GPU-5ca1ab1e00000001]\n");
    laid.run(&["cdi", "generate"]).code(2);
}

#[test]
fn the_configuration_decides_which_gpus_and_names_there_are_and_where_the_spec_lies() {
    let config = "gpu-device-ids: [2, '0000:03:00.0']\ncdi:\n  path: /etc/cdi/gpus.json\n  names: [uuid]\n";
    let laid = Laid::out(&Machine::demo(), config);
    let spec = laid.spec();
    // Of the demo machine, GPU 0 has a unique id of its own, and GPU 2 shares its card's: of that card only 2 is selected.
    assert_eq!(names(&spec), ["all", "GPU-5ca1ab1e00000001", "GPU-5ca1ab1e00000002"]);
    assert_eq!(paths(device(&spec, "GPU-5ca1ab1e00000002")), ["/dev/dri/card3", "/dev/dri/renderD131"]);
    assert_eq!(
        paths(device(&spec, "all")),
        ["/dev/dri/card1", "/dev/dri/renderD129", "/dev/dri/card3", "/dev/dri/renderD131"]
    );
    laid.run(&["cdi", "generate"]).success();
    assert!(laid.path("etc/cdi/gpus.json").exists());
    assert_eq!(laid.findings(), [""; 0]);
}

#[test]
fn a_second_generate_touches_nothing_and_validate_and_list_agree_with_it() {
    let laid = Laid::out(&captures::phoenix_beside_rtx4080(), "");
    laid.run(&["cdi", "generate"]).success();
    let file = laid.path("etc/cdi/amd.json");
    let first = fs::metadata(&file).unwrap();
    assert_eq!(first.mode() & 0o7777, 0o644);
    let again = laid.run(&["cdi", "generate", "--output", "json"]).success();
    let again: Value = serde_json::from_slice(&again.get_output().stdout).unwrap();
    assert_eq!(again["changed"], false);
    let second = fs::metadata(&file).unwrap();
    assert_eq!(
        (first.ino(), first.ctime(), first.ctime_nsec()),
        (second.ino(), second.ctime(), second.ctime_nsec())
    );
    assert_eq!(laid.findings(), [""; 0]);
    laid.run(&["cdi", "validate", file.to_str().unwrap()]).success();
    let list = laid.run(&["cdi", "list", "--output", "json"]).success();
    let list: Value = serde_json::from_slice(&list.get_output().stdout).unwrap();
    assert_eq!(list["devices"][0]["name"], "amd.com/gpu=0");
    assert_eq!(
        list["devices"][0]["nodes"],
        serde_json::json!(["/dev/dri/card1", "/dev/dri/renderD128", "/dev/kfd"])
    );
}

#[test]
fn nothing_is_made_where_there_is_nothing_to_offer() {
    for (machine, config, code, part) in [
        (captures::a380(), "", 1, "none of this machine's GPUs"),
        (captures::rx7800xt().remove("/sys/class/kfd/kfd"), "", 1, "none of this machine's GPUs"),
        (captures::phoenix(), "gpu-device-ids: 5", 2, "config.yaml:1"),
    ] {
        let laid = Laid::out(&machine, config);
        let run = laid.run(&["cdi", "generate"]).code(code);
        let stderr = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
        assert!(stderr.contains(part), "{stderr}");
        assert!(!laid.path("etc/cdi").exists());
    }
}

#[test]
fn switched_off_there_is_an_answer_and_a_spec_that_still_offers_gpus_is_named() {
    for runtime in ["cuda", "none"] {
        let laid = Laid::out(&captures::phoenix(), &format!("compute-runtime: {runtime}"));
        let answer = laid.run(&["cdi", "generate", "--output", "json"]).success().stderr("");
        let answer: Value = serde_json::from_slice(&answer.get_output().stdout).unwrap();
        assert_eq!((&answer["changed"], &answer["devices"]), (&false.into(), &serde_json::json!([])));
        assert!(answer["reason"].as_str().unwrap().contains("compute-runtime"), "{answer:#}");
        assert_eq!(laid.findings(), [""; 0], "no spec is right where nothing is offered");
        fs::create_dir_all(laid.path("etc/cdi")).unwrap();
        fs::write(laid.path("etc/cdi/amd.json"), "{}").unwrap();
        let said = laid.run(&["cdi", "generate"]).success();
        assert!(String::from_utf8_lossy(&said.get_output().stdout).contains("still offers GPUs: remove it"));
    }
    let laid = Laid::out(&captures::phoenix(), "");
    laid.run(&["cdi", "generate"]).success();
    fs::write(laid.path("etc/rocworker/config.yaml"), "compute-runtime: none").unwrap();
    assert!(laid.findings().iter().any(|finding| finding.contains("leaves AMD's GPUs alone")));
}

#[test]
fn a_machine_that_lost_its_gpus_names_the_spec_that_it_still_has() {
    let laid = Laid::out(&captures::phoenix(), "");
    laid.run(&["cdi", "generate"]).success();
    fs::write(laid.path("capture.json"), r#"{"schema_version":1,"nodes":[]}"#).unwrap();
    let run = laid.run(&["cdi", "generate"]).code(1).stdout("");
    let stderr = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
    assert!(stderr.contains("amd.json still offers GPUs") && stderr.lines().count() == 1, "{stderr}");
}

#[test]
fn a_spec_goes_where_there_was_no_folder_and_a_strangers_names_do_not_steer_the_terminal() {
    let laid = Laid::out(&captures::phoenix(), "cdi:\n  path: /opt/engines/cdi/amd.json\n");
    laid.run(&["cdi", "generate"]).success();
    let file = laid.path("opt/engines/cdi/amd.json");
    let text = fs::read_to_string(&file).unwrap().replace("\"all\"", "\"a\\u001b[31mll\"");
    fs::write(&file, text).unwrap();
    for command in ["list", "validate"] {
        let run = laid.run(&["cdi", command]);
        assert!(!run.get_output().stdout.contains(&0x1b), "{command}");
    }
}

#[test]
fn real_a_spec_or_a_configuration_of_another_user_is_not_believed_and_a_full_disk_changes_nothing() {
    if !support::real::require_root(&["unshare", "mount"]) {
        return;
    }
    let laid = Laid::out(&captures::phoenix(), "tag: a");
    laid.run(&["cdi", "generate"]).success();
    let (spec, config) = (laid.path("etc/cdi/amd.json"), laid.path("etc/rocworker/config.yaml"));
    std::os::unix::fs::chown(&spec, Some(65534), None).unwrap();
    assert!(laid.findings().iter().any(|finding| finding.contains("belongs to uid 65534")));
    std::os::unix::fs::chown(&spec, Some(0), None).unwrap();
    std::os::unix::fs::chown(&config, Some(65534), None).unwrap();
    let run = laid.run(&["tags"]).code(2).stdout("");
    let stderr = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
    assert!(stderr.contains("config.yaml belongs to uid 65534") && stderr.lines().count() == 1, "{stderr}");
    std::os::unix::fs::chown(&config, Some(0), None).unwrap();

    // The spec of another machine on a tmpfs that has no room left: the old one stays, and nothing else. Reverted
    // before, for a mount over what rocworker has written is refused before anything is.
    laid.run(&["undo"]).success();
    let script = format!(
        "mkdir -p {cdi}; mount -t tmpfs -o size=16k none {cdi}; echo old > {cdi}/amd.json; dd if=/dev/zero of={cdi}/rest bs=4k 2>/dev/null || true; \
         if {program} --root {root} cdi generate; then exit 9; fi; cat {cdi}/amd.json; ls -A {cdi}",
        cdi = laid.path("etc/cdi").display(),
        program = env!("CARGO_BIN_EXE_rocworker"),
        root = laid.dir.path().display(),
    );
    let run = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", &script])
        .assert()
        .success();
    let output = run.get_output();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "old\namd.json\nrest\n");
    assert!(String::from_utf8_lossy(&output.stderr).contains("No space left on device"));
}

/// Ruins a good spec (or what is around it), and says what must be found.
type Case = (&'static str, fn(&Path), &'static str);

#[test]
fn what_is_wrong_with_a_spec_is_found_and_said_in_a_sentence() {
    fn rewrite(root: &Path, from: &str, to: &str) {
        let file = root.join("etc/cdi/amd.json");
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains(from), "{text}");
        fs::write(&file, text.replace(from, to)).unwrap();
    }
    const ALL: &str =
        "cdiVersion: 0.5.0\nkind: amd.com/gpu\ndevices: [{name: all, containerEdits: {env: [A=b]}}]\n";
    let cases: [Case; 21] = [
        ("missing", |root| fs::remove_file(root.join("etc/cdi/amd.json")).unwrap(), "No such file"),
        ("empty", |root| fs::write(root.join("etc/cdi/amd.json"), "").unwrap(), "not a CDI spec"),
        (
            "half",
            |root| {
                let file = root.join("etc/cdi/amd.json");
                let text = fs::read_to_string(&file).unwrap();
                fs::write(&file, &text[..text.len() / 2]).unwrap();
            },
            "not a CDI spec",
        ),
        ("binary", |root| fs::write(root.join("etc/cdi/amd.json"), [0xff, 0xfe, 0]).unwrap(), "is not text"),
        (
            "writable",
            |root| {
                fs::set_permissions(root.join("etc/cdi/amd.json"), fs::Permissions::from_mode(0o666))
                    .unwrap();
            },
            "can be written by others",
        ),
        (
            "link",
            |root| {
                fs::rename(root.join("etc/cdi/amd.json"), root.join("etc/amd.json")).unwrap();
                std::os::unix::fs::symlink("../amd.json", root.join("etc/cdi/amd.json")).unwrap();
            },
            "a symbolic link",
        ),
        ("another kind", |root| rewrite(root, "amd.com/gpu", "amd.com/npu"), "its kind is \"amd.com/npu\""),
        ("no kind", |root| rewrite(root, "amd.com/gpu", "gpu"), "kind"),
        ("double name", |root| rewrite(root, "\"all\"", "\"0\""), "0"),
        ("version too low", |root| rewrite(root, "0.5.0", "0.3.0"), "0.5.0"),
        ("relative path", |root| rewrite(root, "\"/dev/kfd\"", "\"dev/kfd\""), "dev/kfd"),
        (
            "a GPU that is gone",
            |root| rewrite(root, "renderD128", "renderD140"),
            "renderD140, which is not there",
        ),
        (
            "another GPU's name",
            |root| rewrite(root, "0000:64:00.0", "0000:65:00.0"),
            "0000:65:00.0, which is none",
        ),
        ("kfd forgotten", |root| rewrite(root, "/dev/kfd", "/dev/dri/card1"), "/dev/kfd"),
        ("the wrong mode", |root| rewrite(root, "432", "438"), "the mode 0666, and it has 0660"),
        ("another group", |root| rewrite(root, "992", "110"), "the group 110, and it has 992: stale"),
        ("root's group", |root| rewrite(root, "992", "0"), "the group 0, and it has 992: stale"),
        (
            "another group under one of its names",
            |root| {
                let file = root.join("etc/cdi/amd.json");
                let text = fs::read_to_string(&file).unwrap();
                fs::write(&file, text.replacen("\"gid\": 992", "\"gid\": 110", 1)).unwrap();
            },
            "renderD128 the group 110, and it has 992: stale",
        ),
        (
            "numbers of 0",
            |root| rewrite(root, "\"permissions\": \"rw\"", "\"major\": 0, \"minor\": 0"),
            "major 0",
        ),
        (
            "another spec with a name of its own",
            |root| fs::write(root.join("etc/cdi/other.yaml"), ALL).unwrap(),
            "engines resolve no name that two specs of one folder have",
        ),
        (
            "another spec with a name of its own, in the folder that wins",
            |root| {
                fs::create_dir_all(root.join("var/run/cdi")).unwrap();
                fs::write(root.join("var/run/cdi/other.yaml"), ALL).unwrap();
            },
            "engines take its devices, since its folder wins",
        ),
    ];
    for (case, ruin, part) in cases {
        let laid = Laid::out(&captures::phoenix(), "");
        laid.run(&["cdi", "generate"]).success();
        ruin(laid.dir.path());
        let findings = laid.findings();
        assert!(findings.iter().any(|finding| finding.contains(part)), "{case}: {findings:?}");
        let text = laid.run(&["cdi", "validate"]).code(3);
        let text = String::from_utf8_lossy(&text.get_output().stdout).into_owned();
        assert!(text.lines().all(|line| line.contains("amd.json: ")), "{case}: {text}");
    }
}

#[test]
fn a_spec_in_amd_ctks_form_is_as_true_as_ours() {
    // The example in facts/containers.md: numbers, /dev/kfd in every device, index names and all, 0.6.0.
    let laid = Laid::out(&captures::phoenix(), "");
    let node = |path: &str, major: u32, minor: u32| {
        format!(
            r#"{{"path":"{path}","type":"c","major":{major},"minor":{minor},"fileMode":432,"permissions":"rwm"}}"#
        )
    };
    let nodes =
        [node("/dev/dri/card1", 226, 1), node("/dev/dri/renderD128", 226, 128), node("/dev/kfd", 237, 0)]
            .join(",");
    let device = |name: &str| format!(r#"{{"name":"{name}","containerEdits":{{"deviceNodes":[{nodes}]}}}}"#);
    let text = format!(
        r#"{{"cdiVersion":"0.6.0","kind":"amd.com/gpu","devices":[{},{}],"containerEdits":{{}}}}"#,
        device("0"),
        device("all")
    );
    fs::create_dir_all(laid.path("etc/cdi")).unwrap();
    fs::write(laid.path("etc/cdi/amd.json"), text).unwrap();
    assert_eq!(laid.findings(), [""; 0]);
}

#[test]
fn a_spec_is_not_written_through_a_link_or_over_a_folder() {
    for (lay, part) in [
        (
            (|root: &Path| std::os::unix::fs::symlink("/tmp", root.join("etc/cdi")).unwrap()) as fn(&Path),
            "symbolic link",
        ),
        (|root| fs::create_dir_all(root.join("etc/cdi/amd.json")).unwrap(), "a folder"),
        (|root| fs::write(root.join("etc/cdi"), "").unwrap(), "not a folder"),
    ] {
        let laid = Laid::out(&captures::phoenix(), "");
        lay(laid.dir.path());
        let run = laid.run(&["cdi", "generate"]).code(1).stdout("");
        let stderr = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
        assert!(
            stderr.contains(part) && stderr.contains("/etc/cdi") && stderr.lines().count() == 1,
            "{stderr}"
        );
    }
}

#[test]
fn a_file_that_the_caller_names_is_the_callers_also_beneath_a_root() {
    let laid = Laid::out(&captures::phoenix(), "");
    let elsewhere = tempfile::tempdir().unwrap();
    let file = elsewhere.path().join("mine.json");
    laid.run(&["cdi", "generate", "--file", file.to_str().unwrap()]).success();
    assert!(file.exists() && !laid.path("etc/cdi").exists());
    laid.run(&["cdi", "validate", file.to_str().unwrap()]).success();
    laid.run(&["cdi", "generate", "--file", "/no/such/folder/x.json"]).code(2).stdout("");
    // A slip of the hand must not cost a file.
    let precious = elsewhere.path().join("passwd");
    fs::write(&precious, "root:x:0:0\n").unwrap();
    let run = laid.run(&["cdi", "generate", "--file", precious.to_str().unwrap()]).code(1).stdout("");
    assert!(String::from_utf8_lossy(&run.get_output().stderr).contains("passwd is there and no CDI spec"));
    assert_eq!(fs::read_to_string(&precious).unwrap(), "root:x:0:0\n");
    fs::create_dir_all(laid.path("etc/cdi")).unwrap();
    fs::write(laid.path("etc/cdi/amd.json"), r#"{"kind":"nvidia.com/gpu"}"#).unwrap();
    let run = laid.run(&["cdi", "generate"]).code(1).stdout("");
    assert!(
        String::from_utf8_lossy(&run.get_output().stderr).contains("nvidia.com/gpu, which is left alone")
    );
}

#[test]
fn a_file_or_folder_that_a_person_names_and_that_is_not_there_is_an_error() {
    let laid = Laid::out(&captures::a380(), "");
    laid.run(&["cdi", "validate"]).success();
    let missing = laid.path("nowhere");
    laid.run(&["cdi", "validate", missing.to_str().unwrap()]).code(2);
    laid.run(&["man", "--into", missing.to_str().unwrap()]).code(2);
    assert!(!missing.exists());
}
