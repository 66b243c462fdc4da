//! rocworker asks before it gives a worker its first tags, which keep untagged steps away, and prints the tags by
//! `rocworker tags`.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use config::Config;
use engines::concourse::desired::UNTAGGED;
use reconcile::Desired;

use crate::desired::concourse::worker::{DROP_INS, ENVIRONMENT_FILE, Machine, UNIT, WRAPPER, text, value};
use crate::desired::concourse::{OURS, V7_8, V7_14, machine};

const NO_TAGS: &str = "concourse: {tags: false}";
const TAGGED: &str = "concourse: {tags: true}";

#[test]
fn a_worker_without_tags_gets_none_and_a_problem_until_a_person_has_decided() {
    for (lines, config, is_asked, tags) in [
        ("", "", true, None),
        ("CONCOURSE_TAG=", "", true, None),
        ("CONCOURSE_TAG=\" , ,\"", "", true, None),
        ("", "concourse: {tags: }", true, None),
        ("", TAGGED, false, Some(OURS.to_owned())),
        ("", NO_TAGS, false, None),
        ("CONCOURSE_TAG=linux", "", false, Some(format!("linux,{OURS}"))),
        // The user's own wish.
        ("", "tag: linux", false, Some(format!("linux,{OURS}"))),
        ("", "compute-runtime: none", false, None),
        ("CONCOURSE_RUNTIME=guardian", "", false, None),
    ] {
        let machine = machine(V7_14);
        machine.set(lines);
        let by = Config::parse(Path::new("config.yaml"), config).unwrap();
        let desired = || machine.desired_by(&by, Some(Path::new(WRAPPER)));
        let first = desired();
        let question = first.question.as_ref().map(|note| &*note.text);
        assert_eq!(question, is_asked.then_some(UNTAGGED), "{lines} {config}");
        assert_eq!(value(&first, "CONCOURSE_TAG"), tags, "{lines} {config}");
        // All else is set up: whoever runs without a person's answer leaves the tags alone.
        let is_set = value(&first, "CONCOURSE_CONTAINERD_CONFIG").is_some();
        assert_eq!(
            is_set,
            config != "compute-runtime: none" && !lines.contains("guardian"),
            "{lines} {config}"
        );
        // The first apply says what tags mean, and no later one.
        let says =
            |desired: &Desired| desired.notes.iter().any(|note| note.text.contains("gets its first tags"));
        assert_eq!(says(&first), tags.is_some() && !lines.contains("linux"), "{lines} {config}");
        machine.apply(&first);
        let second = desired();
        assert!(!says(&second), "{lines} {config}");
        assert_eq!(Desired { notes: first.notes.clone(), ..second }, first, "{lines} {config}");
    }
    let machine = machine(V7_14);
    machine.put("etc/systemd/system/concourse-worker.service", &UNIT.replace("worker\n", "worker --tag=a\n"));
    let by = Config::parse(Path::new("config.yaml"), "").unwrap();
    let question = machine.desired_by(&by, Some(Path::new(WRAPPER))).question;
    assert_eq!(question, None, "the command line's tags win");
}

#[test]
fn without_tags_of_the_gpus_the_worker_gives_them_all_the_same() {
    for (lines, config, tags) in [
        ("", NO_TAGS.to_owned(), None),
        ("CONCOURSE_TAG=a", NO_TAGS.to_owned(), None),
        ("CONCOURSE_TAG=a", format!("{NO_TAGS}\ntag: b"), Some("a,b")),
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
        ("nothing of its own", same as Change, TAGGED, OURS.to_owned(), ""),
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
    machine.put("etc/rocworker/config.yaml", TAGGED);
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
fn a_worker_without_tags_is_asked_about_once_and_nothing_changes_before() {
    let machine = laid(machine(V7_8), "");
    let config = machine.root().join("etc/rocworker/config.yaml");
    let stdout = |run: &Assert| String::from_utf8_lossy(&run.get_output().stdout).replace('\n', " ");
    let is_asked_first = |said: &str| {
        let first = said.split("warning: ").nth(1).unwrap_or_default();
        first.starts_with("concourse: this Concourse worker has no tags")
    };
    for arguments in [&["apply"][..], &["tags"]] {
        let asked = run(&machine, arguments).code(2).stdout("");
        assert_eq!(stderr(&asked), format!("rocworker: {}: {UNTAGGED}\n", config.display()));
    }
    for arguments in [&["plan"][..], &["plan", "--exit-code"], &["apply", "--dry-run"]] {
        let said = stdout(&run(&machine, arguments).code(2).stderr(""));
        assert!(is_asked_first(&said) && said.contains("/etc/cdi/amd.json"), "{said}");
        assert!(said.ends_with("makes them, once you have answered the first warning "), "{said}");
    }
    let planned = run(&machine, &["plan", "-o", "json"]).code(2);
    let planned: serde_json::Value = serde_json::from_slice(&planned.get_output().stdout).unwrap();
    assert_eq!(planned["notes"][0]["text"], UNTAGGED);
    let said = stdout(&run(&machine, &["status"]).code(0));
    assert!(is_asked_first(&said), "{said}");
    assert!(said.ends_with("rocworker apply makes it once you have answered the first warning. "), "{said}");
    assert!(!machine.root().join("var/lib/rocworker").exists());
    // Another part of the machine does not wait for the answer.
    run(&machine, &["plan", "--only", "exporter"]).success();
    machine.put("etc/rocworker/config.yaml", TAGGED);
    run(&machine, &["plan"]).success();
    run(&machine, &["apply"]);
    let status = |part: &str| {
        let said = run(&machine, &["status"]);
        String::from_utf8_lossy(&said.get_output().stdout).contains(part)
    };
    assert!(!status("tags of its GPUs") && !status("to apply"), "nothing is left to apply");
    let memory = || fs::read_to_string(machine.root().join("var/lib/rocworker/memory.json")).unwrap();
    let remembered = memory();
    run(&machine, &["apply"]);
    assert_eq!(memory(), remembered, "a second apply has nothing to remember");
}

/// An earlier version tagged each worker, and its memory says nothing of tags.
#[test]
fn a_worker_whose_gpus_were_away_at_the_upgrade_is_asked_nothing_once_they_are_back() {
    for (older, is_asked) in [(None, true), (Some("\"earlier\": true"), false)] {
        // The GPUs are away: no environment file says that the worker had tags.
        let machine = laid(machine(V7_8), "compute-runtime: none\nrestart: now");
        run(&machine, &["apply"]);
        let environment = machine.root().join("etc/rocworker/concourse.env");
        assert!(!environment.exists());
        let memory = machine.root().join("var/lib/rocworker/memory.json");
        let text = fs::read_to_string(&memory).unwrap();
        if let Some(other) = older {
            assert!(text.contains("\"tagged\": false"), "{text}");
            fs::write(&memory, text.replace("\"tagged\": false", other)).unwrap();
        }
        machine.put("etc/rocworker/config.yaml", "restart: now");
        let applied = run(&machine, &["apply"]);
        assert_eq!(stderr(&applied).contains(UNTAGGED), is_asked, "{}", stderr(&applied));
        assert_ne!(
            fs::read_to_string(environment).is_ok_and(|text| text.contains("CONCOURSE_TAG")),
            is_asked
        );
    }
}

/// Tags that an earlier version gave, of which its memory says nothing.
#[test]
fn a_worker_that_was_tagged_before_is_asked_nothing_also_once_its_gpus_have_been_away() {
    let tags = |machine: &Machine| {
        let text = fs::read_to_string(machine.root().join("etc/rocworker/concourse.env")).unwrap_or_default();
        host::env_file::EnvFile::parse(&text).get("CONCOURSE_TAG").map(str::to_owned)
    };
    let machine = laid(machine(V7_8), TAGGED);
    run(&machine, &["apply"]);
    let memory = machine.root().join("var/lib/rocworker/memory.json");
    let text = fs::read_to_string(&memory).unwrap();
    let older = text.replace("  \"tagged\": true,\n", "");
    assert_ne!(older, text);
    fs::write(&memory, older).unwrap();
    for config in ["", "compute-runtime: none", ""] {
        machine.put("etc/rocworker/config.yaml", config);
        run(&machine, &["apply"]);
        assert_eq!(tags(&machine).as_deref(), config.is_empty().then_some(OURS), "{config}");
    }
    // Who has decided against tags is asked again once the decision has gone.
    machine.put("etc/rocworker/config.yaml", NO_TAGS);
    run(&machine, &["apply"]);
    assert_eq!(tags(&machine), None);
    machine.put("etc/rocworker/config.yaml", "");
    run(&machine, &["apply"]).code(2);
    // What no person runs goes on, and leaves the tags alone. An emptied file would not count.
    machine.put("etc/rocworker/config.yaml", "restart: drain\n");
    run(&machine, &["boot"]).success();
    let renewed = run(&machine, &["deb", "renew"]).success();
    let said = String::from_utf8_lossy(&renewed.get_output().stdout);
    assert!(said.contains(&format!("warning: concourse: {UNTAGGED}")), "{said}");
    assert_eq!(tags(&machine), None);
}
