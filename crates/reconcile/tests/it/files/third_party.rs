//! Somebody else's hand between an apply and an undo: their text stays, managed text goes.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use crate::machine::{Machine, NOW, Ran, desired, edited, owned};
use edit::Format;
use reconcile::Desired;
use serde_json::{Value, json};

const FILE: &str = "/etc/docker/daemon.json";
const THEIRS: &str = "{\n  \"log-driver\": \"journald\",\n  \"features\": {\"buildkit\": true}\n}\n";
const WRAPPER: &str = "/usr/local/lib/wrapper";
const RECEIPT: &str = "/var/lib/rocworker/receipt.json";

fn runtime() -> Desired {
    desired([
        owned(WRAPPER, "program"),
        edited(
            FILE,
            Format::Json,
            &[(&["runtimes", "amd", "path"], json!(WRAPPER)), (&["features", "cdi"], json!(true))],
        ),
    ])
}

/// A machine on which somebody has done something after an apply.
fn since(hand: impl FnOnce(&Machine)) -> Machine {
    let machine = Machine::new();
    machine.put(FILE, THEIRS);
    machine.apply(&runtime());
    assert!(machine.text(FILE).contains("amd"));
    hand(&machine);
    machine
}

fn json_of(machine: &Machine) -> Value {
    serde_json::from_str(&machine.text(FILE)).unwrap()
}

fn texts(ran: &Ran) -> Vec<&str> {
    ran.left.iter().map(|finding| finding.text.as_str()).collect()
}

#[test]
fn a_key_that_they_add_stays_and_the_rest_is_as_they_wrote_it() {
    let machine = since(|machine| {
        let text = machine.text(FILE).replacen("{\n", "{\n  \"debug\" : true,\n", 1);
        machine.put(FILE, &text);
    });
    let ran = machine.undo();
    assert!(ran.left.is_empty(), "{ran:?}");
    assert_eq!(machine.text(FILE), THEIRS.replacen("{\n", "{\n  \"debug\" : true,\n", 1));
    assert!(machine.is_bare() && !machine.path(WRAPPER).exists());
}

#[test]
fn of_a_file_that_its_owner_rewrote_and_sorted_only_our_keys_go() {
    let machine = since(|machine| {
        // serde_json's map is sorted.
        let text = serde_json::to_string_pretty(&json_of(machine)).unwrap();
        machine.put(FILE, &text);
    });
    // What is right stays as it is written: nobody repairs an order.
    let before = machine.all();
    machine.apply(&runtime());
    assert_eq!(machine.all(), before);
    machine.undo();
    assert_eq!(json_of(&machine), serde_json::from_str::<Value>(THEIRS).unwrap());
}

#[test]
fn a_file_that_they_deleted_stays_deleted() {
    let machine = since(|machine| fs::remove_file(machine.path(FILE)).unwrap());
    let ran = machine.undo();
    assert!(ran.left.is_empty(), "{ran:?}");
    assert!(!machine.path(FILE).exists() && machine.is_bare());
}

#[test]
fn a_file_that_they_moved_behind_a_link_is_left_and_told_and_so_is_what_it_names() {
    let machine = since(|machine| {
        fs::create_dir(machine.path("usr/share")).unwrap();
        fs::rename(machine.path(FILE), machine.path("usr/share/daemon.json")).unwrap();
        symlink("/usr/share/daemon.json", machine.path(FILE)).unwrap();
    });
    let before = machine.tree();
    let ran = machine.undo();
    let expected = "it is a symbolic link to /usr/share/daemon.json by now, and rocworker's keys may be there: put the \
                    file back in its place, then undo again";
    assert_eq!(texts(&ran)[0], expected);
    assert_eq!(machine.tree(), before);
    assert!(!machine.is_bare(), "it is not forgotten");
    // Put back, it is undone.
    fs::remove_file(machine.path(FILE)).unwrap();
    fs::rename(machine.path("usr/share/daemon.json"), machine.path(FILE)).unwrap();
    assert!(machine.undo().left.is_empty());
    assert_eq!(machine.text(FILE), THEIRS);
    assert!(machine.is_bare());
}

#[test]
fn what_a_file_that_stays_names_stays_too() {
    let machine = since(|machine| {
        // Somebody has changed the runtime, which still runs the managed program.
        let text = machine.text(FILE).replace("{\"path\"", "{\"runtimeArgs\": [], \"path\"");
        machine.put(FILE, &text.replace("\"cdi\": true", "\"cdi\": true ,"));
    });
    // A syntax error: nothing can be taken out of it.
    let ran = machine.undo();
    assert!(texts(&ran)[0].starts_with("line "), "{ran:?}");
    assert_eq!(
        texts(&ran)[1],
        "/etc/docker/daemon.json still needs it: do first what is listed for it, then undo again"
    );
    assert!(machine.path(WRAPPER).exists());
    // Corrected, all of it goes.
    machine.put(FILE, THEIRS);
    assert!(machine.undo().left.is_empty());
    assert!(!machine.path(WRAPPER).exists() && machine.is_bare());
}

#[test]
fn a_comment_of_theirs_that_names_ours_holds_nothing_back() {
    const UNIT: &str = "/etc/systemd/system/x.service.d/ours.conf";
    for (theirs, is_held) in [
        ("[Service]\n# was: ExecStart=/usr/local/lib/wrapper\n; /usr/local/lib/wrapper\n", false),
        ("[Service]\nExecStart=/usr/local/lib/wrapper # no comment to systemd\n", true),
        ("A=1\n  # B=/usr/local/lib/wrapper\n", false),
        ("A=1\nB=/usr/local/lib/wrapper\n", true),
        ("#!/usr/local/lib/wrapper\n", true),
        ("x = 1 # not /usr/local/lib/wrapper\n", false),
        ("x = \"\"\"\n# /usr/local/lib/wrapper\"\"\"\n", true),
        ("[\"/usr/local/lib/wrapper\"]\nx = 1\n", true),
        ("{\"x\": [\"\\/usr\\/local\\/lib\\/wrapper\"]}", true),
        ("{\"# /usr/local/lib/wrapper\": 1}", true),
    ] {
        let machine = Machine::new();
        machine.apply(&desired([owned(WRAPPER, "program"), owned(UNIT, "ours\n")]));
        machine.put(UNIT, theirs);
        let ran = machine.undo();
        assert_eq!(machine.path(WRAPPER).exists(), is_held, "{theirs}: {ran:?}");
        assert_eq!(ran.left.len(), if is_held { 2 } else { 1 }, "{theirs}: {ran:?}");
    }
}

#[test]
fn a_managed_runtime_that_they_point_elsewhere_is_unmanaged_and_is_reported() {
    let machine = since(|machine| {
        let text = machine.text(FILE).replace(WRAPPER, "/opt/theirs");
        machine.put(FILE, &text);
    });
    let ran = machine.undo();
    assert_eq!(json_of(&machine)["runtimes"]["amd"]["path"], "/opt/theirs");
    assert_eq!(json_of(&machine)["features"], json!({"buildkit": true}));
    assert!(ran.carried.failed.is_empty() && machine.is_bare());
    assert!(!machine.path(WRAPPER).exists(), "nothing names it any more");
}

#[test]
fn mode_and_owner_that_they_gave_a_file_since_stay() {
    let machine = since(|machine| {
        fs::set_permissions(machine.path(FILE), fs::Permissions::from_mode(0o600)).unwrap();
    });
    machine.undo();
    assert_eq!(machine.text(FILE), THEIRS);
    assert_eq!(fs::metadata(machine.path(FILE)).unwrap().permissions().mode() & 0o7777, 0o600);
}

#[test]
fn an_owned_file_that_they_edited_is_left_and_only_force_takes_it() {
    let machine = Machine::new();
    machine.apply(&desired([owned("/etc/ours", "ours\n")]));
    machine.put("/etc/ours", "theirs\n");
    let ran = machine.undo();
    assert_eq!(ran.left.len(), 1);
    assert_eq!(machine.text("/etc/ours"), "theirs\n");
    assert!(machine.undo_by_force().left.is_empty());
    assert!(!machine.path("/etc/ours").exists() && machine.is_bare());
}

#[test]
fn an_older_one_of_ours_that_keeps_coming_back_is_contested_like_any_other() {
    let machine = Machine::new();
    let (old, new) = (desired([owned("/etc/ours", "old\n")]), desired([owned("/etc/ours", "new\n")]));
    machine.apply(&old);
    machine.apply(&new);
    let mut rounds = 0;
    while machine.apply(&new).contested.is_empty() {
        rounds += 1;
        assert!(rounds < 9, "it is fought over without an end");
        machine.put("/etc/ours", "old\n");
    }
    assert_eq!(rounds, 4);
}

#[test]
fn two_things_at_one_path_are_refused() {
    let machine = Machine::new();
    let both = desired([owned("/etc/ours", "1"), owned("/etc/ours", "2")]);
    for _ in 0..2 {
        let ran = machine.apply(&both);
        assert!(ran.blocked[0].text.starts_with("two things are to be written there"), "{ran:?}");
    }
    assert_eq!(machine.text("/etc/ours"), "1");
}

/// The bytes of what was there before stand in files of their own.
fn each_kept(machine: &Machine, act: impl Fn(&std::path::Path)) {
    let kept = fs::read_dir(machine.path("var/lib/rocworker/before")).unwrap();
    kept.for_each(|it| act(&it.unwrap().path()));
}

#[test]
fn what_was_there_before_and_is_lost_stops_its_own_path_alone() {
    type Spoil = fn(&std::path::Path);
    let spoils: [(Spoil, &str); 3] = [
        (|path| fs::remove_file(path).unwrap(), "it is not there any more"),
        (|path| fs::write(path, "{}").unwrap(), "its bytes are not those that were kept"),
        (|path| fs::write(path, "").unwrap(), "its bytes are not those that were kept"),
    ];
    for (spoil, why) in spoils {
        let machine = since(|machine| each_kept(machine, spoil));
        let tree = machine.tree();
        // With nothing to do, the lost text is not read.
        assert!(machine.apply(&runtime()).blocked.is_empty());
        let mut other = runtime();
        other.extend(desired([owned("/etc/more", "more\n")]));
        assert!(machine.apply(&other).blocked.is_empty());
        let ran = machine.undo();
        assert!(!machine.path("/etc/more").exists(), "the rest is taken back");
        let text = texts(&ran)[0];
        assert!(text.contains("var/lib/rocworker/before/") && text.contains(why), "{text}");
        assert!(text.contains("restore it from a backup"), "{text}");
        assert_eq!(machine.tree(), tree, "nothing is lost, and what it names is there");
        // By hand, and then no more of it.
        machine.put(FILE, THEIRS);
        machine.undo_by_force();
        assert!(machine.is_bare() && !machine.path(WRAPPER).exists());
    }
}

const TOML: &str = "/etc/containerd/config.toml";
const THEIR_TOML: &str = "# mine\nversion = 2\n\n[plugins.\"io.containerd.grpc.v1.cri\"] # as kubeadm wants it\n  \
                          sandbox_image = \"pause\"\n";

fn containerd() -> Desired {
    const RUNTIMES: [&str; 5] = ["plugins", "io.containerd.grpc.v1.cri", "containerd", "runtimes", "amd"];
    let key = |rest: &[&'static str]| [&RUNTIMES[..], rest].concat();
    let (kind, binary) = (key(&["runtime_type"]), key(&["options", "BinaryName"]));
    desired([edited(
        TOML,
        Format::Toml,
        &[
            (&["plugins", "io.containerd.grpc.v1.cri", "enable_cdi"], json!(true)),
            (&kind, json!("io.containerd.runc.v2")),
            (&binary, json!(WRAPPER)),
        ],
    )])
}

#[test]
fn in_toml_a_comment_a_key_a_table_and_another_order_of_theirs_stay() {
    type Hand = fn(&str) -> String;
    // Edits by a person. Each must have one effect on a text with rocworker's keys and on one without them.
    let hands: [Hand; 5] = [
        |text| format!("# by hand\n{text}"),
        |text| text.replace("# as kubeadm wants it", "# as nobody wants it"),
        |text| text.replace("version = 2\n", "version = 2\noom_score = -999 # theirs\n"),
        |text| format!("{text}\n[debug]\n  level = \"info\"\n"),
        |text| text.replace('\n', "\r\n"),
    ];
    for hand in hands {
        let machine = Machine::new();
        machine.put(TOML, THEIR_TOML);
        machine.apply(&containerd());
        assert!(machine.text(TOML).contains("BinaryName"));
        machine.put(TOML, &hand(&machine.text(TOML)));
        let before = machine.all();
        machine.apply(&containerd());
        assert_eq!(machine.all(), before, "ours are right as they stand");
        let ran = machine.undo();
        assert!(ran.left.is_empty(), "{ran:?}");
        assert_eq!(machine.text(TOML), hand(THEIR_TOML));
        assert!(machine.is_bare());
    }
}

#[test]
fn toml_that_its_owner_wrote_anew_without_our_keys_gets_them_back_and_goes_back_to_his() {
    const ANEW: &str = "version = 2\nroot = \"/srv/containerd\"\n";
    let machine = Machine::new();
    machine.put(TOML, THEIR_TOML);
    machine.apply(&containerd());
    machine.put(TOML, ANEW);
    // An upgrade writes its file; that is put right, and what undo gives back is the new one.
    machine.apply(&containerd());
    assert!(machine.text(TOML).contains("BinaryName") && machine.text(TOML).contains("/srv/containerd"));
    machine.undo();
    assert_eq!(machine.text(TOML), ANEW);
    assert!(machine.is_bare());
}

#[test]
fn a_file_that_was_not_there_goes_unless_somebody_wrote_into_it() {
    let machine = Machine::new();
    let before = machine.tree();
    machine.apply(&containerd());
    machine.undo();
    assert_eq!(machine.tree(), before, "its folder too");
    machine.apply(&containerd());
    let text = machine.text(TOML);
    machine.put(TOML, &format!("root = \"/srv/containerd\"\n{text}"));
    machine.undo();
    assert_eq!(machine.text(TOML), "root = \"/srv/containerd\"\n");
    assert!(machine.is_bare());
}

/// The clock of a machine was in the next decade when it was repaired: that day never comes to an end.
#[test]
fn repairs_of_a_day_that_is_still_to_come_are_forgiven_like_those_of_long_ago() {
    let machine = Machine::new();
    let wanted = desired([owned(WRAPPER, "program")]);
    machine.apply(&wanted);
    for time in 1..=5 {
        machine.put(WRAPPER, "theirs");
        let ran = machine.apply(&wanted);
        assert!(ran.contested.is_empty(), "the {time}. time: {ran:?}");
        let receipt = machine.text(RECEIPT);
        assert!(receipt.contains("\"count\": 1,"), "the {time}. time: {receipt}");
        let later = (NOW + 10 * 365 * 24 * 3600).to_string();
        machine.put(RECEIPT, &receipt.replace(&NOW.to_string(), &later));
    }
}

#[test]
fn a_path_whose_folder_is_no_folder_any_more_is_let_go_of_by_force() {
    for link in [false, true] {
        let machine = Machine::new();
        machine.apply(&desired([owned("/etc/ours/one", "1"), owned("/etc/two", "2")]));
        fs::rename(machine.path("etc/ours"), machine.path("etc/aside")).unwrap();
        if link {
            symlink("/etc/aside", machine.path("etc/ours")).unwrap();
            // A link that root alone could have put there would be followed.
            fs::set_permissions(machine.path("etc"), fs::Permissions::from_mode(0o777)).unwrap();
        } else {
            machine.put("etc/ours", "a file\n");
        }
        let ran = machine.undo();
        assert!(ran.left.len() == 1 && !machine.is_bare(), "{ran:?}");
        let ran = machine.undo_by_force();
        assert!(texts(&ran)[0].ends_with("rocworker no longer manages it"), "{ran:?}");
        assert!(ran.carried.failed.is_empty() && machine.is_bare(), "{ran:?}");
        assert!(machine.path("etc/aside/one").exists());
        assert!(fs::symlink_metadata(machine.path("etc/ours")).is_ok());
        assert!(machine.undo().left.is_empty());
    }
}
