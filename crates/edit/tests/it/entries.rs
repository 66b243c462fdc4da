//! A table of a TOML file that rocworker manages by one key of it: it stays or goes as one, wherever it stands by then.

use edit::{Edit, Format, Key, Moved, Reverted, Set};
use serde_json::{Value, json};

fn path(path: &[&str]) -> Vec<String> {
    path.iter().map(|name| (*name).to_owned()).collect()
}

/// A runtime `amd` beneath `r` that runs `/w`.
fn runtime() -> Edit {
    let set = Set::Entry {
        value: json!({"type": "runc", "options": {"Name": "/w", "On": true}}),
        identity: "options/Name".to_owned(),
        instead: path(&["type"]),
    };
    Edit::new(Format::Toml, vec![Key { path: path(&["r", "amd"]), set }])
}

const BEFORE: &str = "[r.runc]\ntype = \"runc\"\n";

/// The text without the entry, and the names that the revert reports as gone.
fn gone(text: &str, went: &[&str]) -> Reverted {
    let went = went.iter().map(|name| (*name).to_owned()).collect();
    Reverted { text: Some(text.to_owned()), went, ..Reverted::default() }
}

fn read(text: &str) -> Value {
    Format::Toml.read(text).unwrap_or_else(|fault| panic!("{fault}\n{text}"))
}

#[test]
fn it_goes_as_one_with_what_somebody_put_into_it_and_that_is_reported() {
    let ours = runtime().apply(BEFORE).unwrap();
    assert_eq!(
        ours,
        format!("{BEFORE}\n[r.amd]\ntype = \"runc\"\n\n[r.amd.options]\nName = \"/w\"\nOn = true\n")
    );
    for (theirs, went) in [
        (ours.replace("[r.amd]\n", "[r.amd]\nnotes = [\"a\"]\n"), "r.amd (with notes)"),
        (ours.replace("Name", "Root = \"/x\"\nName"), "r.amd (with options.Root)"),
        (ours.replace("On = true", "On = false"), "r.amd (with options.On)"),
        (
            format!("{ours}\n[r.amd.empty]\n\n[[r.amd.mounts]]\na = 1\n\n[[r.amd.mounts]]\n"),
            "r.amd (with mounts)",
        ),
        (
            format!("{BEFORE}\n[r]\namd = {{ type = \"runc\", options = {{ Name = \"/w\" }}, x = 1 }}\n"),
            "r.amd (with x)",
        ),
        (
            format!("{BEFORE}\n[r]\namd.type = \"runc\"\namd.options.Name = \"/w\"\namd.x = 1\n"),
            "r.amd (with x)",
        ),
    ] {
        assert_eq!(
            runtime().apply(&theirs).map(|text| read(&text)["r"]["amd"]["options"]["Name"].clone()),
            Ok("/w".into())
        );
        assert_eq!(runtime().revert(&theirs, Some(BEFORE)).unwrap(), gone(BEFORE, &[went]), "{theirs}");
    }
    let braces =
        "r = { runc = { type = \"runc\" }, amd.type = \"runc\", amd.options.Name = \"/w\", amd.x = 1 }\n";
    let before = "r = { runc = { type = \"runc\" } }\n";
    assert_eq!(runtime().revert(braces, Some(before)).unwrap(), gone(before, &["r.amd (with x)"]));
}

#[test]
fn what_somebody_tunes_in_it_stays_while_it_is_there() {
    let ours = runtime().apply(BEFORE).unwrap();
    let tuned = ours.replace("On = true", "On = false").replace("[r.amd]\n", "[r.amd]\nnotes = 1\n");
    assert_eq!(runtime().apply(&tuned).unwrap(), tuned);
}

#[test]
fn one_that_names_somebody_elses_program_stays_as_one() {
    let ours = runtime().apply(BEFORE).unwrap();
    for theirs in [
        ours.replace("/w", "/opt/mine"),
        ours.replace("Name = \"/w\"\n", "").replace("amd]\ntype = \"runc\"", "amd]\ntype = \"runsc\""),
        format!("{BEFORE}\n[r]\namd = 7\n"),
    ] {
        let left = Reverted { text: Some(theirs.clone()), left: path(&["r.amd"]), went: Vec::new() };
        assert_eq!(runtime().revert(&theirs, Some(BEFORE)).unwrap(), left, "{theirs}");
    }
}

#[test]
fn one_that_names_nothing_any_more_is_ours_and_broken() {
    let ours = runtime().apply(BEFORE).unwrap();
    for broken in [
        ours.replace("Name = \"/w\"\n", ""),
        ours.replace("/w", ""),
        ours[..ours.find("\n[r.amd.o").unwrap()].to_owned(),
    ] {
        assert_eq!(read(&runtime().apply(&broken).unwrap()), read(&ours), "{broken}");
        assert_eq!(runtime().revert(&broken, Some(BEFORE)).unwrap(), gone(BEFORE, &[]), "{broken}");
    }
}

#[test]
fn of_one_that_was_there_before_us_our_keys_alone_go() {
    for before in [
        "[r.amd]\ntype = \"runc\" # theirs\n\n[r.amd.options]\nName = '/w'\n",
        "[r]\namd = { options = { Name = '/old' }, x = 1 }\n",
    ] {
        let ours = runtime().apply(before).unwrap();
        assert!(ours.contains("On = true"), "{ours}");
        assert_eq!(runtime().revert(&ours, Some(before)).unwrap(), gone(before, &[]));
        let changed = format!("{ours}\n# somebody\n");
        assert_eq!(
            runtime().revert(&changed, Some(before)).unwrap(),
            gone(&format!("{before}\n# somebody\n"), &[])
        );
    }
}

#[test]
fn a_value_that_was_there_comes_back_under_the_name_that_its_table_has_by_then() {
    let runc = json!({"type": "runc", "mode": "pod", "options": {"Path": "", "Pivot": false}});
    let mut edit = runtime();
    let key = |at: &[&str], set| Key { path: path(at), set };
    edit.keys[0].path = path(&["r", "all", "amd"]);
    edit.keys.insert(0, key(&["r", "cdi"], Set::Value(true.into())));
    edit.keys.insert(1, key(&["r", "all", "runc"], Set::Needed(runc)));
    edit.moved = vec![Moved { from: path(&["r"]), to: path(&["new", "r"]) }];
    let before = "[r]\ncdi = false # mine\nimage = \"x\"\n";
    let ours = edit.apply(before).unwrap();
    // A program that migrates files writes defaults that nobody had set, and renames a key.
    let written =
        |own: &str, runtimes: &str| format!("[new.r]\n{own}image = 'x'\nselinux = false\n{runtimes}");
    let runtimes = |more: &str| {
        format!(
            "\n[new.r.all.runc]\ntype = 'runc'\npath = ''\nsandboxer = 'pod'\n\n[new.r.all.runc.options]\nPath = ''\nPivot = false\n\n\
             [new.r.all.amd]\ntype = 'runc'\nlist = []\nnumber = 0\n{more}\n[new.r.all.amd.options]\nName = '/w'\nOn = true\n"
        )
    };
    assert!(ours.contains("mode = \"pod\"") && ours.contains("cdi = true # mine"), "{ours}");
    let own = "cdi = true\n";
    for (more, went) in [("", &[][..]), ("notes = ['a']\n", &["new.r.all.amd (with notes)"])] {
        let back = edit.revert(&written(own, &runtimes(more)), Some(before)).unwrap();
        assert_eq!(back, gone(&written("cdi = false\n", ""), went));
    }
    // runc as somebody has made it stays, and so does an unmanaged runtime, which needs the one beside it.
    let theirs = written(own, &runtimes(""));
    for (theirs, left) in [
        (theirs.replace("Pivot = false", "Pivot = true"), "new.r.all.runc"),
        (theirs.replace("/w", "/opt/mine"), "new.r.all.amd"),
    ] {
        let back = edit.revert(&theirs, Some(before)).unwrap();
        assert_eq!(back.left, [left]);
        let text = back.text.unwrap();
        assert!(text.starts_with("[new.r]\ncdi = false\n") && text.contains("Pivot"), "{text}");
        assert_eq!(text.contains("[new.r.all.amd]"), left.ends_with("amd"), "{text}");
    }
    // A table of the later name that somebody has beside the managed one is unmanaged.
    for before in [before, "[r]\nimage = \"x\"\n"] {
        let theirs = "\n[new.r]\ncdi = true\n";
        let back = edit.revert(&(edit.apply(before).unwrap() + theirs), Some(before)).unwrap();
        assert_eq!(back.text, Some(before.to_owned() + theirs));
    }
}
