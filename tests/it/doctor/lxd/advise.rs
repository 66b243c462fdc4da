//! The command line: where the answer comes from, what is printed, and how it ends.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use layout::{Machine, Nodes};
use serde_json::{Value, json};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_rocworker");

/// As LXD writes them (shared/api/resource.go): an NVIDIA card, one of AMD's, and one that a virtual machine has.
fn answer() -> Value {
    let nvidia = json!({"driver": "nvidia", "driver_version": "550.90", "drm": {"id": 0, "card_name": "card0",
        "card_device": "226:0", "render_name": "renderD128", "render_device": "226:128"}, "numa_node": 0,
        "pci_address": "0000:01:00.0", "vendor": "NVIDIA Corporation", "vendor_id": "10de",
        "product": "AD103", "product_id": "2704", "nvidia": {"cuda_version": "12.4"}});
    let amd = json!({"driver": "amdgpu", "drm": {"id": 1, "card_name": "card1", "card_device": "226:1",
        "control_name": "controlD64", "render_name": "renderD129", "render_device": "226:129"}, "numa_node": 0,
        "sriov": {"current_vfs": 2, "maximum_vfs": 8, "vfs": []}, "pci_address": "0000:03:00.0",
        "vendor": "Advanced Micro Devices, Inc. [AMD/ATI]", "vendor_id": "1002", "product": "Navi 31", "product_id": "7448"});
    let taken = json!({"driver": "vfio-pci", "numa_node": 0, "pci_address": "0000:c3:00.0", "vendor_id": "1002",
        "product": "Navi 32", "product_id": "7470"});
    json!({"cpu": {"total": 16}, "gpu": {"cards": [nvidia, amd, taken], "total": 3}, "storage": null})
}

fn run(arguments: &[&str], stdin: &[u8]) -> Output {
    let mut command = Command::new(PROGRAM);
    // Neither lxc nor incus is here, whatever this machine has.
    command.args(arguments).env("PATH", "/nonexistent");
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // One that refuses its arguments does not read.
    child.stdin.take().unwrap().write_all(stdin).ok();
    child.wait_with_output().unwrap()
}

/// The exit code and both streams.
fn advise(arguments: &[&str], answer: &Value) -> (i32, String, String) {
    let output = run(&[&["lxd", "advise"], arguments].concat(), answer.to_string().as_bytes());
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_commands_and_why_come_as_text_that_a_shell_takes() {
    let (code, said, _) = advise(&["--resources", "-", "--container", "c1", "--gid", "992"], &answer());
    assert_eq!(code, 0);
    insta::assert_snapshot!(said);
}

#[test]
fn a_file_is_read_and_programs_get_argv_and_what_is_not_known_as_null() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("resources.json");
    fs::write(&file, answer().to_string()).unwrap();
    let file = file.to_str().unwrap();
    let output = run(&["--output", "json", "lxd", "advise", "--resources", file, "--client", "incus"], b"");
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said["source"], file);
    assert_eq!(
        (&said["schema_version"], &said["client"], &said["container"], &said["gid"], &said["cdi"]),
        (&json!(1), &json!("incus"), &Value::Null, &Value::Null, &Value::Null)
    );
    let argv = "incus config device add CONTAINER gpu0 gpu pci=0000:03:00.0 gid=GID-OF-RENDER-IN-THE-CONTAINER mode=0660";
    assert_eq!(said["add"][1], json!(argv.split(' ').collect::<Vec<_>>()));
    assert_eq!(said["remove"][1], json!(["incus", "config", "device", "remove", "CONTAINER", "kfd"]));
    assert_eq!(said["cards"][2]["why_not"], "vfio-pci is bound to it: it is for a virtual machine");
}

#[test]
fn what_cannot_be_advised_ends_with_one_line_and_what_cannot_be_asked_with_two() {
    let without = json!({"gpu": {"cards": [answer()["gpu"]["cards"][0], answer()["gpu"]["cards"][2]]}});
    let root = tempfile::tempdir().unwrap();
    let beneath = root.path().to_str().unwrap();
    for (arguments, answer, code, said) in [
        (&["--resources", "-"][..], json!({"gpu": {"cards": null}}), 1, "the host has no GPU that lxc sees"),
        (
            &["--resources", "-"],
            without,
            1,
            "no card of AMD's can be passed into a container: 0000:01:00.0 (NVIDIA Corporation AD103): not AMD's; \
             0000:c3:00.0 (Navi 32): vfio",
        ),
        (
            &["--resources", "-"],
            json!({"cpu": {}}),
            1,
            "cannot use stdin: it is no answer to `lxc query /1.0/resources`",
        ),
        (&["--resources", "/nonexistent/f"], json!({}), 2, "/nonexistent/f"),
        (&[], json!({}), 1, "neither lxc nor incus is in a folder of PATH"),
        (&["--root", beneath], json!({}), 2, "with --root rocworker asks no daemon: give --resources FILE"),
        (&["--resources", "-", "--container", "c1; reboot"], json!({}), 2, "letters, digits and dashes"),
        (&["--resources", "-", "--gid", "0"], json!({}), 2, "0 is not in 1.."),
        (&["--resources", "-", "--client", "docker"], json!({}), 2, "invalid value 'docker'"),
    ] {
        let (ended, out, err) = advise(arguments, &answer);
        assert_eq!((ended, out.as_str()), (code, ""), "{arguments:?}: {err}");
        assert!(err.contains(said), "{arguments:?}: {err}");
        assert!(code == 2 || err.lines().count() == 1, "{err}");
    }
}

/// A `lxc` that writes down what it is called with.
fn recording(dir: &Path) {
    let lxc = dir.join("lxc");
    fs::write(&lxc, format!("#!/bin/sh\necho \"$*\" >>{}/called\n", dir.display())).unwrap();
    fs::set_permissions(&lxc, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}

/// A stand-in for LXD's client, which is not to be had: it says what the files beside it hold.
const CLIENT: &str = r#"#!/bin/sh
case "$*" in
"query /1.0/resources") cat FOLDER/resources ;;
"query /1.0") cat FOLDER/server ;;
"file pull c1/etc/group -") cat FOLDER/group ;;
*) echo "Error: what is $*" >&2; exit 1 ;;
esac
"#;

fn client(answer: &str, server: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let lxc = dir.path().join("lxc");
    fs::write(&lxc, CLIENT.replace("FOLDER", dir.path().to_str().unwrap())).unwrap();
    fs::set_permissions(&lxc, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for (file, text) in [("resources", answer), ("server", server), ("group", "root:x:0:\nrender:x:110:\n")] {
        fs::write(dir.path().join(file), text).unwrap();
    }
    dir
}

fn asked(client: &TempDir, arguments: &[&str]) -> Output {
    let path = format!("{}:/usr/bin:/bin", client.path().display());
    Command::new(PROGRAM).args(arguments).env("PATH", path).output().unwrap()
}

#[test]
fn a_daemon_is_asked_for_cards_for_the_group_and_for_what_it_can() {
    let arguments = ["--output", "json", "lxd", "advise", "--container", "c1"];
    let argv =
        ["lxc", "config", "device", "add", "c1", "amd", "gpu", "gputype=physical", "id=amd.com/gpu=all"];
    let cdi = json!({"add": [argv], "remove": [["lxc", "config", "device", "remove", "c1", "amd"]]});
    for (server, cdi) in [
        (r#"{"api_extensions":["gpu_cdi","gpu_cdi_amd"],"environment":{}}"#, cdi),
        (r#"{"api_extensions":["gpu_cdi"]}"#, Value::Null),
        ("nothing that can be read", Value::Null),
    ] {
        let output = asked(&client(&answer().to_string(), server), &arguments);
        let said: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        assert_eq!((&said["gid"], &said["cdi"]), (&json!(110), &cdi), "{server}");
        assert_eq!(said["source"], "lxc query /1.0/resources");
    }
    let taken = client(&answer().to_string(), r#"{"api_extensions":["gpu_cdi_amd"]}"#);
    let text = String::from_utf8(asked(&taken, &["lxd", "advise"]).stdout).unwrap();
    let form = "\n# or, in place of all these commands, by CDI:\n#   lxc config device add CONTAINER amd gpu gputype=physical";
    assert!(text.contains(form), "{text}");
}

#[test]
fn a_client_that_fails_or_answers_without_end_is_an_error_that_says_what_to_do() {
    let endless = " ".repeat((16 << 20) + 1);
    for (answer, said) in [
        ("", "cannot use lxc query /1.0/resources: it is no answer"),
        (endless.as_str(), "lxc query /1.0/resources answers more than 16 MiB, which no machine has"),
    ] {
        let output = asked(&client(answer, "{}"), &["lxd", "advise"]);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && stderr.contains(said), "{stderr}");
    }
    let gone = client("", "");
    fs::remove_file(gone.path().join("resources")).unwrap();
    let output = asked(&gone, &["lxd", "advise"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.starts_with("rocworker: lxc query /1.0/resources ended with exit status: 1: "),
        "{stderr}"
    );
    // What a container has is not worth failing for.
    let output = asked(&client(&answer().to_string(), "{}"), &["lxd", "advise", "--container", "c2"]);
    let stdout = String::from_utf8(output.stdout).unwrap();
    let note = "rocworker cannot read it (lxc file pull c2/etc/group - ended with exit status: 1: Error: what is file pull";
    assert!(output.status.success() && stdout.contains(note), "{stdout}");
}

#[test]
fn names_that_would_break_out_of_a_remark_run_nothing() {
    let mut hostile = answer();
    let cards = hostile["gpu"]["cards"].as_array_mut().unwrap();
    cards[0]["product"] = json!("AD103\nlxc delete c1\r\nlxc stop c1\u{2028}lxc x");
    cards[1]["product"] = json!("`lxc y`$(lxc z)\u{1b}[2J");
    cards[2]["pci_address"] = json!("0000:c3:00.0\nlxc w");
    let (_, script, _) = advise(&["--resources", "-", "--container", "c1", "--gid", "992"], &hostile);
    assert!(!script.contains('\u{1b}') && !script.contains('\r'), "{script:?}");
    let dir: TempDir = tempfile::tempdir().unwrap();
    recording(dir.path());
    let path = format!("{}:/usr/bin:/bin", dir.path().display());
    let ran = Command::new("sh").args(["-ec", &script]).env("PATH", path).output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let called = fs::read_to_string(dir.path().join("called")).unwrap();
    assert_eq!(
        called,
        "config device add c1 kfd unix-char source=/dev/kfd path=/dev/kfd gid=992 mode=0660\n\
         config device add c1 gpu0 gpu pci=0000:03:00.0 gid=992 mode=0660\n"
    );
}

/// The sysfs that goes with the file is that of `--root`.
#[test]
fn a_partition_in_a_file_is_told_from_a_stranger_by_the_root_beneath_which_it_is() {
    let root = tempfile::tempdir().unwrap();
    Machine::instinct(1, 8).lay_out(root.path(), Nodes::Recorded).unwrap();
    let bare = |card: u32, render: u32| json!({"drm": {"id": card, "card_name": format!("card{card}"), "render_name": format!("renderD{render}")}});
    let amd = answer()["gpu"]["cards"][1].clone();
    // tests/layout/src/sample.rs: a server's first card has renderD128 to renderD135.
    let cards = json!({"gpu": {"cards": [amd, bare(3, 130), bare(40, 190)]}});
    let (code, said, err) = advise(&["--root", root.path().to_str().unwrap(), "--resources", "-"], &cards);
    assert_eq!(code, 0, "{err}");
    assert!(said.contains("add CONTAINER renderD130 unix-char source=/dev/dri/renderD130"), "{said}");
    assert!(said.contains("left out: card40: no PCI card. A partition"), "{said}");
    let (_, said, _) = advise(&["--resources", "-"], &cards);
    assert!(said.contains("left out: card3: no PCI card. A partition"), "{said}");
}
