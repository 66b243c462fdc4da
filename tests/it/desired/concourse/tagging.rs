//! rocworker says that tags keep untagged steps away from a worker, can be told not to tag, and prints the tags by
//! `rocworker tags`.

use std::fs;

use assert_cmd::Command;
use assert_cmd::assert::Assert;

use crate::desired::concourse::worker::{DROP_INS, ENVIRONMENT_FILE, Machine, UNIT, text, value};
use crate::desired::concourse::{OURS, V7_8, V7_14, machine};

const SAID: &str = "an apply gives this worker its first tags, and a tagged worker takes no step without tags. \
                    `concourse: {tags: false}` gives its tasks GPUs without tags";
const NO_TAGS: &str = "concourse: {tags: false}";

#[test]
fn a_worker_that_gets_its_first_tags_is_told_of_and_no_other() {
    for (lines, config, is_said) in [
        ("", "", true),
        ("CONCOURSE_TAG=", "", true),
        ("CONCOURSE_TAG=linux", "", false),
        // The user's own wish.
        ("", "tag: linux", false),
        ("", NO_TAGS, false),
        ("", "compute-runtime: none", false),
        ("CONCOURSE_RUNTIME=guardian", "", false),
    ] {
        let machine = machine(V7_14);
        machine.set(lines);
        let desired = machine.desired(config);
        let notes = desired.notes.iter().filter(|note| note.text == SAID && !note.problem);
        assert_eq!(notes.count(), usize::from(is_said), "{lines} {config}: {:?}", desired.notes);
        // The note is as true once the tags are there.
        machine.apply(&desired);
        assert_eq!(machine.desired(config).notes, desired.notes, "{lines} {config}");
    }
    let machine = machine(V7_14);
    machine.put("etc/systemd/system/concourse-worker.service", &UNIT.replace("worker\n", "worker --tag=a\n"));
    assert!(machine.desired("").notes.iter().all(|note| note.text != SAID), "the command line's tags win");
}

#[test]
fn without_tags_of_the_gpus_the_worker_gives_them_all_the_same() {
    for (lines, config, tags) in [
        ("", NO_TAGS.to_owned(), None),
        ("CONCOURSE_TAG=a", NO_TAGS.to_owned(), None),
        ("CONCOURSE_TAG=a", format!("{NO_TAGS}\ntag: b"), Some("a,b")),
        ("", "concourse: {tags: }".to_owned(), Some(OURS)),
    ] {
        let machine = machine(V7_14);
        machine.set(lines);
        let desired = machine.desired(&config);
        assert_eq!(value(&desired, "CONCOURSE_TAG").as_deref(), tags, "{config}");
        assert!(value(&desired, "CONCOURSE_CONTAINERD_CONFIG").is_some(), "{config}");
        let links =
            desired.actions.iter().filter(|action| action.path.display().to_string().ends_with("/shim/runc"));
        assert_eq!(links.count(), 1, "{config}");
        assert_eq!(machine.set_up(&config), "yes");
        assert!(!text(&desired, &format!("/{DROP_INS}/zz-rocworker.conf")).unwrap().contains("Unset"));
    }
}

/// With a wrapper, so that what is laid out can be applied by the program.
fn laid(machine: Machine, config: &str) -> Machine {
    let machine = machine.with_program("/usr/lib/rocworker/runc-amd-wrapper", (0, 1, 0));
    machine.put("etc/rocworker/config.yaml", config);
    machine
}

fn run(machine: &Machine, arguments: &[&str]) -> Assert {
    Command::new(env!("CARGO_BIN_EXE_rocworker")).arg("--root").arg(machine.root()).args(arguments).assert()
}

fn stderr(run: &Assert) -> String {
    String::from_utf8_lossy(&run.get_output().stderr).into_owned()
}

#[test]
fn tags_prints_what_apply_writes_and_the_same_afterwards() {
    let guardian = |machine: Machine| {
        machine.put(ENVIRONMENT_FILE, "CONCOURSE_RUNTIME=guardian\nCONCOURSE_TAG=a\n");
        machine
    };
    let own = |machine: Machine| {
        machine.set("CONCOURSE_TAG=linux,a");
        machine
    };
    let same = |machine: Machine| machine;
    type Change = fn(Machine) -> Machine;
    let bare = |machine: Machine| {
        machine.put(ENVIRONMENT_FILE, "CONCOURSE_RUNTIME=guardian\n");
        machine
    };
    let none = "no GPU is set up here, and the worker has no tags of its own";
    for (what, change, config, expected, why) in [
        ("nothing of its own", same as Change, "", OURS.to_owned(), ""),
        ("its own tags", own, "tag: b", format!("linux,a,b,{OURS}"), ""),
        ("guardian", guardian, "tag: b", "a,b".to_owned(), ""),
        ("no tags of GPUs", own, NO_TAGS, "linux,a".to_owned(), ""),
        ("no GPU", own, "compute-runtime: none", "linux,a".to_owned(), ""),
        (
            "nothing at all",
            same,
            NO_TAGS,
            String::new(),
            "concourse.tags is false, and the worker has no tags",
        ),
        ("guardian without tags", bare, "", String::new(), "the worker runs guardian"),
        ("neither GPU nor tags", same, "compute-runtime: none", String::new(), none),
    ] {
        let machine = laid(change(machine(V7_8)), config);
        let line = if expected.is_empty() { String::new() } else { format!("CONCOURSE_TAG={expected}\n") };
        for time in ["before", "after"] {
            let printed = if expected.is_empty() { String::new() } else { format!("{expected}\n") };
            run(&machine, &["tags"]).success().stdout(printed);
            let printed = run(&machine, &["tags", "--env"]).success().stdout(line.clone());
            let said = stderr(&printed);
            assert_eq!(said.lines().count(), usize::from(!why.is_empty()), "{what}: {said}");
            assert!(said.contains(why), "{what}: {said}");
            if time == "before" {
                run(&machine, &["apply"]);
            }
        }
        // Where apply has nothing to say of tags, the worker's own file says them.
        let files = ["etc/rocworker/concourse.env", ENVIRONMENT_FILE];
        let texts = files.map(|file| fs::read_to_string(machine.root().join(file)).unwrap_or_default());
        let written = texts.iter().find_map(|text| {
            let file = host::env_file::EnvFile::parse(text);
            file.get("CONCOURSE_TAG").map(str::to_owned)
        });
        assert_eq!(written.unwrap_or_default(), expected, "{what}: {texts:?}");
    }
}

#[test]
fn where_apply_writes_no_tags_this_is_said_beside_them() {
    let machine = laid(machine(V7_8), "concourse: {configure: never}\ntag: a");
    let never = run(&machine, &["tags"]).success().stdout(format!("a,{OURS}\n"));
    assert!(stderr(&never).contains("alone (concourse.configure: never): rocworker apply writes no tags"));
    machine.put("etc/rocworker/config.yaml", "");
    let unit = "etc/systemd/system/concourse-worker.service";
    machine.put(unit, &UNIT.replace("worker\n", "worker --tag=x --tag y,z\n"));
    let options = run(&machine, &["tags", "--env"]).success().stdout("CONCOURSE_TAG=x,y,z\n");
    assert!(stderr(&options).contains("sets the worker's tags by --tag, which wins"), "{}", stderr(&options));
    // Whether it runs containerd is not known: a list would be a guess.
    machine.put(unit, UNIT);
    machine.put(ENVIRONMENT_FILE, "");
    let unknown = run(&machine, &["tags"]).code(1).stdout("");
    let said = stderr(&unknown);
    assert!(said.contains(" apply leaves the worker's tags as they are: whether the worker runs"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    fs::remove_file(machine.root().join(unit)).unwrap();
    let none = run(&machine, &["tags"]).success().stdout(format!("{OURS}\n"));
    assert!(stderr(&none).contains("no Concourse worker is here: rocworker apply writes no tags"));
    assert_eq!(stderr(&none).lines().count(), 1, "{}", stderr(&none));
}

#[test]
fn plan_and_status_say_that_untagged_steps_stay_away() {
    let machine = laid(machine(V7_8), "");
    let plan = run(&machine, &["plan"]).success();
    let said = String::from_utf8_lossy(&plan.get_output().stdout).into_owned();
    assert!(said.contains(SAID), "{said}");
    run(&machine, &["apply"]);
    let status = run(&machine, &["status"]);
    assert!(String::from_utf8_lossy(&status.get_output().stdout).contains(SAID));
}
