//! A crash at every write, for kinds of change that a program makes seldom: managed keys that get another name, links
//! in the place of files and files in the place of links, nodes.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::machine::{Machine, desired, edited, owned};
use edit::Format;
use reconcile::{Action, Content, Desired, Kind, Resource, Stage};
use serde_json::json;
use support::killed::is_temporary;
use support::real;
use support::tree::Tree;

const FILE: &str = "/etc/docker/daemon.json";
const THEIRS: &str = "{\n  \"debug\": false\n}\n";

/// The machine before an older run, what somebody does after that run, and what a newer run wants.
struct Story {
    before: fn(&Machine),
    older: fn() -> Desired,
    since: fn(&Machine),
    newer: fn() -> Desired,
}

const STORIES: [(&str, Story); 5] = [
    (
        "renamed",
        Story {
            before: put_theirs,
            older: || runtime("old", "/a"),
            since: |_| {},
            newer: || runtime("new", "/b"),
        },
    ),
    (
        "edited-and-renamed",
        Story {
            before: put_theirs,
            older: || runtime("old", "/a"),
            since: |machine| {
                let text = machine.text(FILE);
                machine.put(FILE, &text.replace("false", "true"));
            },
            newer: || runtime("new", "/b"),
        },
    ),
    (
        "file-then-link",
        Story {
            before: |machine| machine.put("/usr/bin/it", "theirs\n"),
            older: || desired([owned("/usr/bin/it", "ours\n")]),
            since: |_| {},
            newer: || desired([link("/usr/bin/it", "/opt/it")]),
        },
    ),
    (
        "link-then-file",
        Story {
            before: |machine| machine.put("/usr/bin/it", "theirs\n"),
            older: || desired([link("/usr/bin/it", "/opt/it")]),
            since: |_| {},
            newer: || desired([owned("/usr/bin/it", "ours\n")]),
        },
    ),
    (
        "node",
        Story {
            before: |machine| node_with(machine, "600", "0:0"),
            older: || desired([node(0o660, 105)]),
            since: |_| {},
            newer: || desired([node(0o666, 44)]),
        },
    ),
];

fn put_theirs(machine: &Machine) {
    machine.put(FILE, THEIRS);
}

fn runtime(name: &str, path: &str) -> Desired {
    desired([edited(FILE, Format::Json, &[(&["runtimes", name, "path"], json!(path))])])
}

fn link(path: &str, target: &str) -> Action {
    let content = Content::Link { target: PathBuf::from(target) };
    Action::new(Stage::Expose, path, Kind::Owned(content), "for the test")
}

fn node(mode: u32, gid: u32) -> Action {
    Action::new(Stage::Shape, "/dev/kfd", Kind::Node { mode, gid }, "for the test")
}

fn node_with(machine: &Machine, mode: &str, owner: &str) {
    let script = format!("cd \"$1\" && mknod kfd c 1 3 && chown {owner} kfd && chmod {mode} kfd");
    let dev = machine.path("dev");
    let made = std::process::Command::new("sh").args(["-ec", &script, "sh"]).arg(dev).status().unwrap();
    assert!(made.success());
}

fn crash_each(name: &str) {
    if !real::require_root(&["mknod"]) {
        return;
    }
    let story = &STORIES.iter().find(|(known, _)| *known == name).unwrap().1;
    let machine = Machine::new();
    (story.before)(&machine);
    let pristine = machine.tree();
    machine.apply(&(story.older)());
    (story.since)(&machine);
    let begun = machine.all();
    machine.undo();
    let undone = machine.tree();
    machine.put_back(&begun);
    machine.apply(&(story.newer)());
    let (applied, applied_all) = (machine.tree(), machine.all());
    assert_ne!(applied, begun.clone().without(&["var"]), "the newer run changes something");
    machine.undo();
    assert!(
        undone.differences(&[&machine.tree()]).is_empty(),
        "{name}: an apply does not change what undo leaves"
    );
    if name != "edited-and-renamed" {
        assert_eq!(undone, pristine);
    }

    for (command, from, wanted) in
        [("apply", &begun, (story.newer)()), ("undo", &applied_all, Desired::default())]
    {
        machine.put_back(from);
        let runs = machine.history().len();
        let crashes = machine.crashes(&wanted);
        let changed = machine.tree().differences(&[&from.clone().without(&["var"])]).len();
        assert!(crashes.states.len() > changed + 4, "{name} {command}: {:?}", crashes.points);
        for (point, left) in crashes.first_points() {
            let when = format!("{name}: {command} crashed at {} of {}", point.call, point.path.display());
            machine.put_back(left);
            let has_reported = machine.history().len() > runs;
            // A node's group and mode are two calls: between them it is in between, and the next run ends it.
            if name != "node" {
                whole(left, &[from, &applied, &undone], &when);
            }
            machine.apply(&(story.newer)());
            same(&machine.tree(), &applied, &format!("{when}, then apply"));
            if name != "node" {
                remembers(&machine, (runs, has_reported), left, from, &when);
            }
            machine.undo();
            same(&machine.tree(), &undone, &format!("{when}, then apply and undo"));
            assert!(machine.is_bare());
            machine.put_back(left);
            machine.undo();
            same(&machine.tree(), &undone, &format!("{when}, then undo"));
            assert!(machine.is_bare());
        }
    }
}

#[track_caller]
fn same(tree: &Tree, expected: &Tree, when: &str) {
    let off = tree.differences(&[expected]);
    assert!(off.is_empty(), "{when}:\n{}", off.join("\n"));
}

/// Checks that the history has exactly what the killed run has changed: the next run adds it, or the killed
/// run has come so far itself. `runs`: how many runs the history had before, and whether it had this run when
/// it was killed.
#[track_caller]
fn remembers(machine: &Machine, (runs, has_reported): (usize, bool), left: &Tree, from: &Tree, when: &str) {
    let is_ours = |line: &String| !line.starts_with("var") && !line.contains("/.rocworker-");
    let changed = left.clone().differences(&[from]).into_iter().filter(is_ours);
    let changed: BTreeSet<_> =
        changed.map(|line| Resource::from(format!("/{}", line.split(':').next().unwrap()))).collect();
    let history = machine.history();
    let of_it = history.get(runs).filter(|event| event.killed != has_reported);
    let paths = of_it.into_iter().flat_map(|event| &event.changed).map(|changed| changed.path.clone());
    assert_eq!(paths.collect::<BTreeSet<_>>(), changed, "{when}: what the history says of it");
}

/// Checks that each path is as it was or will be; files that are being written have other names.
#[track_caller]
fn whole(left: &Tree, allowed: &[&Tree], when: &str) {
    let named: Vec<_> =
        left.paths().filter(|it| is_temporary(it)).map(|it| it.display().to_string()).collect();
    let out: Vec<&str> = named.iter().map(String::as_str).chain(["var"]).collect();
    let allowed: Vec<Tree> = allowed.iter().map(|&tree| tree.clone().without(&["var"])).collect();
    let off = left.clone().without(&out).differences(&allowed.iter().collect::<Vec<_>>());
    assert!(off.is_empty(), "{when}:\n{}", off.join("\n"));
}

#[test]
fn real_killed_while_keys_of_ours_get_another_name() {
    crash_each("renamed");
}

#[test]
fn real_killed_while_keys_of_ours_in_a_file_that_was_edited_since_get_another_name() {
    crash_each("edited-and-renamed");
}

#[test]
fn real_killed_while_a_link_takes_the_place_of_a_file() {
    crash_each("file-then-link");
}

#[test]
fn real_killed_while_a_file_takes_the_place_of_a_link() {
    crash_each("link-then-file");
}

#[test]
fn real_killed_between_the_group_and_the_mode_of_a_node() {
    crash_each("node");
}
