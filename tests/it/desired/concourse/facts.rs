//! What is read of a worker: its unit with all drop-ins, its environment, its programs.

use std::path::Path;

use crate::desired::concourse::worker::{DROP_INS, ENVIRONMENT_FILE, Machine, UNIT};
use crate::desired::concourse::{V7_14, machine};

fn tag(machine: &Machine) -> Option<String> {
    machine.concourse().worker.unwrap().environment.get("CONCOURSE_TAG").cloned()
}

#[test]
fn later_environment_files_win_and_drop_ins_are_read_by_their_names() {
    let machine = machine(V7_14);
    machine.set("CONCOURSE_TAG=first");
    assert_eq!(tag(&machine).as_deref(), Some("first"));
    machine.put("etc/default/concourse", "CONCOURSE_TAG=second\n");
    assert_eq!(tag(&machine).as_deref(), Some("second"));
    machine.drop_in("10-a.conf", "[Service]\nEnvironmentFile=/etc/third\n");
    machine.put("etc/third", "CONCOURSE_TAG=third\n");
    assert_eq!(tag(&machine).as_deref(), Some("third"));
    // A plain value loses to any file, wherever it stands.
    machine.drop_in("20-b.conf", "[Service]\nEnvironment=CONCOURSE_TAG=fourth\n");
    assert_eq!(tag(&machine).as_deref(), Some("third"));
    // Another folder, an earlier name.
    machine.put(
        "usr/lib/systemd/system/concourse-worker.service.d/05-c.conf",
        "[Service]\nEnvironmentFile=/etc/fourth\n",
    );
    machine.put("etc/fourth", "CONCOURSE_TAG=fourth\n");
    assert_eq!(tag(&machine).as_deref(), Some("third"));
    machine.put(
        "run/systemd/system/concourse-.service.d/30-d.conf",
        "[Service]\nEnvironmentFile=\nEnvironmentFile=/etc/fourth\n",
    );
    assert_eq!(tag(&machine).as_deref(), Some("fourth"));
    // A file of the same name in a folder that comes first takes its place.
    machine.put(&format!("{DROP_INS}/30-d.conf"), "");
    assert_eq!(tag(&machine).as_deref(), Some("third"));
    machine.drop_in("40-e.conf", "[Service]\nUnsetEnvironment=CONCOURSE_TAG\n");
    assert_eq!(tag(&machine), None);
}

#[test]
fn what_rocworker_wrote_is_not_the_users() {
    let machine = machine(V7_14);
    machine.set("CONCOURSE_TAG=a");
    machine.drop_in("zz-rocworker.conf", "[Service]\nEnvironmentFile=-/etc/rocworker/concourse.env\n");
    machine.put("etc/rocworker/concourse.env", "CONCOURSE_TAG=a,gpu\nCONCOURSE_CONTAINERD_CONFIG=/x\n");
    let worker = machine.concourse().worker.unwrap();
    assert_eq!(worker.environment["CONCOURSE_TAG"], "a");
    assert!(worker.own_config.is_none() && worker.later.is_empty());
}

#[test]
fn secrets_are_not_kept() {
    let machine = machine(V7_14);
    machine.set("CONCOURSE_VAULT_CLIENT_TOKEN=hvs.secret\nSECRET=hvs.secret");
    machine.drop_in("a.conf", "[Service]\nEnvironment=TOKEN=hvs.secret\n");
    let said = format!("{:?}", machine.concourse());
    assert!(!said.contains("hvs.secret"), "{said}");
}

#[test]
fn what_cannot_be_read_is_said() {
    let machine = machine(V7_14);
    machine.drop_in(
        "a.conf",
        "[Service]\nEnvironmentFile=/etc/missing\nEnvironmentFile=-/etc/also-missing\nEnvironmentFile=/etc/odd\n\
         EnvironmentFile=/etc/none*.env\nEnvironmentFile=/etc/binary\n",
    );
    machine.put("etc/odd", "\u{feff}CONCOURSE_TAG=x\nexport CONCOURSE_TAG=a\nexport OTHER=b\n");
    std::fs::write(machine.root().join("etc/binary"), b"A=\xff\xfe\n").unwrap();
    let unread = machine.concourse().worker.unwrap().unread;
    let root = machine.root().display().to_string();
    let unread: Vec<String> = unread.iter().map(|line| line.replace(&root, "")).collect();
    insta::assert_snapshot!(unread.join("\n"));
    // The tags are those of what can be read.
    assert_eq!(tag(&machine), None);
}

#[test]
fn wildcards_and_the_units_name_are_followed_and_what_is_not_costs_no_tag() {
    let machine = machine(V7_14);
    machine.put("etc/concourse.d/10.env", "CONCOURSE_TAG=ten\n");
    machine.put("etc/concourse.d/20.env", "CONCOURSE_TAG=twenty\n");
    machine.put("etc/concourse.d/30.txt", "CONCOURSE_TAG=thirty\n");
    machine.put("etc/env-concourse-worker.service", "CONCOURSE_TAG=named\n");
    machine.drop_in("a.conf", "[Service]\nEnvironmentFile=-/etc/concourse.d/*.env\n");
    assert_eq!(tag(&machine).as_deref(), Some("twenty"));
    machine.drop_in("b.conf", "[Service]\nEnvironmentFile=-/etc/env-%n\n");
    assert_eq!(tag(&machine).as_deref(), Some("named"));
    assert!(machine.concourse().worker.unwrap().unfollowed.is_empty());
    // The machine's name is not known here; its file may have tags that rocworker's would take the place of.
    machine.drop_in("c.conf", "[Service]\nEnvironmentFile=-/etc/env-%H\n");
    let desired = machine.desired("tag: a");
    // Managed tags that stand there are not taken away either.
    assert_eq!((desired.actions.len(), desired.undecided.as_slice()), (0, &["concourse".to_owned()][..]));
    assert!(desired.notes[0].problem && desired.notes[0].text.contains("/etc/env-%H"), "{:?}", desired.notes);
    machine.put("etc/large", &"#".repeat(300_000));
    machine.drop_in("c.conf", "[Service]\nEnvironmentFile=-/etc/large\n");
    assert!(machine.desired("").notes[0].text.contains("is larger than"), "{:?}", desired.notes);
}

#[test]
fn an_environment_file_with_every_oddity_is_read_as_systemd_does() {
    let machine = machine(V7_14);
    let text = "# a comment \\\n; another\nCONCOURSE_RUNTIME='container'\"d\"\r\nCONCOURSE_TAG=a\\\n,b\r\nexport CONCOURSE_WORK_DIR=/x\n";
    machine.put(ENVIRONMENT_FILE, text);
    let worker = machine.concourse().worker.unwrap();
    assert_eq!(
        (worker.environment["CONCOURSE_RUNTIME"].as_str(), worker.environment["CONCOURSE_TAG"].as_str()),
        ("containerd", "a,b")
    );
    assert!(!worker.environment.contains_key("CONCOURSE_WORK_DIR"));
}

#[test]
fn the_worker_is_where_its_unit_says_and_links_are_followed() {
    let documented = Machine::without_worker(&support::captures::phoenix())
        .with_program("/usr/local/concourse/bin/concourse", (8, 1, 0))
        .with_program("/usr/local/concourse/bin/containerd", (2, 2, 1));
    documented.link("usr/local/bin/concourse", "../concourse/bin/concourse");
    let unit = UNIT.replace(
        "/var/lib/concourse/bin/concourse worker",
        "!/usr/local/bin/concourse worker --tag a --tag=b",
    );
    documented.put("usr/lib/systemd/system/concourse-worker.service", &unit);
    let worker = documented.concourse().worker.unwrap();
    assert_eq!(worker.bin, Path::new("/usr/local/concourse/bin"));
    assert_eq!(worker.version.unwrap().to_string(), "8.1.0");
    assert_eq!(worker.containerd.version.unwrap().to_string(), "2.2.1");
    assert_eq!(worker.options.values(&["tag"]), [("tag", Some("a")), ("tag", Some("b"))]);
}

#[test]
fn what_is_no_worker_of_ours_is_noted() {
    let root = |machine: &Machine| machine.root().display().to_string();
    for (path, text, said) in [
        ("var/lib/concourse/bin/concourse", "ELF", "/var/lib/concourse/bin/concourse is there and no unit"),
        (
            "etc/systemd/system/concourse-worker@.service",
            UNIT,
            "the unit concourse-worker@.service is not configured",
        ),
        ("etc/systemd/system/concourse.service", UNIT, "the unit concourse.service is not configured"),
        ("etc/systemd/system/concourse-worker.service", "", "concourse-worker.service is masked"),
        (
            "etc/systemd/system/concourse-worker.service",
            "[Service]\nExecStart=/x/concourse web\n",
            "runs concourse web",
        ),
    ] {
        let machine = Machine::without_worker(&support::captures::phoenix());
        machine.put(path, text);
        let found = machine.concourse();
        let first = found.unknown.iter().chain(&found.notes).next().unwrap().replace(&root(&machine), "");
        assert!(found.worker.is_none() && first.contains(said), "{found:?}");
        // A unit that cannot be read may start a worker; one that starts something else does not.
        assert_eq!(found.unknown.is_some(), said.contains("masked"), "{found:?}");
    }
    let none = Machine::without_worker(&support::captures::phoenix()).concourse();
    assert!(none.worker.is_none() && none.notes.is_empty());
    let large = Machine::without_worker(&support::captures::phoenix());
    large.put("etc/systemd/system/concourse-worker.service", &"#".repeat(300_000));
    assert!(large.concourse().unknown.unwrap().contains("is larger than"));
}
