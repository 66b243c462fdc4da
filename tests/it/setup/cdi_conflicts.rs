//! Specs of other programs that have names of rocworker's: what plan, apply, status and doctor make of each.
//! tests/it/doctor/real_podman.rs and tests/engines hold what engines make of them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::setup::laid::Laid;

const SPEC: &str = "etc/cdi/amd.json";

/// A spec with one device of this name.
fn yaml(name: &str) -> String {
    format!(
        "cdiVersion: 0.5.0\nkind: amd.com/gpu\ndevices:\n- name: {name}\n  containerEdits:\n    deviceNodes:\n    \
         - path: /dev/dri/renderD129\n"
    )
}

fn json(kind: &str, name: &str) -> String {
    format!(
        r#"{{"cdiVersion":"0.5.0","kind":"{kind}","devices":[{{"name":"{name}","containerEdits":{{"env":["A=b"]}}}}]}}"#
    )
}

/// The findings of doctor about the spec: evidence and remedy.
fn doctor(laid: &Laid) -> Vec<(String, String)> {
    let diagnosis = laid.json(&["doctor"]);
    let checks = diagnosis["checks"].as_array().unwrap().iter();
    let of_spec = checks.filter(|check| check["name"] == "cdi" && check["status"] != "ok");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    of_spec.map(|check| (text(&check["evidence"]), text(&check["remedy"]))).collect()
}

/// What a spec in a file does to an apply on the demo's machine.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Means {
    Nothing,
    /// The apply writes no spec.
    Refused,
    /// The apply writes the spec, and engines take the other one's device.
    Hidden,
}

#[test]
fn a_spec_is_not_written_where_that_would_end_a_name_that_works() {
    use Means::{Hidden, Nothing, Refused};
    let two = |name: &str| format!("---\n{}---\nkind: amd.com/gpu\n", yaml(name));
    let twice = yaml("\"0\"") + "- name: \"0\"\n  containerEdits: {env: [A=b]}\n";
    for (file, text, means) in [
        ("etc/cdi/amd.yaml", yaml("\"0\""), Refused),
        ("etc/cdi/other.json", json("amd.com/gpu", "0000:03:00.0"), Refused),
        ("etc/cdi/.hidden.json", json("amd.com/gpu", "all"), Refused),
        // As people write it; engines take the number for a text.
        ("etc/cdi/amd.yaml", yaml("0 # the W7900"), Refused),
        ("etc/cdi/amd.yaml", two("all"), Refused),
        // In doubt a name counts: podman resolves most of these.
        ("etc/cdi/amd.yaml", format!("\u{feff}{}", yaml("all")), Refused),
        ("etc/cdi/amd.yaml", yaml("00"), Refused),
        ("etc/cdi/amd.yaml", yaml("0").replace("kind", "Kind").replace("name", "Name"), Refused),
        ("etc/cdi/amd.yaml", yaml("0") + "    hooks: [{hookName: prestart, path: a, timeout: 0}]\n", Refused),
        ("run/cdi/amd.yaml", yaml("all"), Hidden),
        ("etc/cdi/amd.yaml", yaml("w7900"), Nothing),
        ("etc/cdi/amd.yml", yaml("all"), Nothing),
        ("etc/cdi/amd.json.bak", json("amd.com/gpu", "0"), Nothing),
        ("etc/cdi/below/amd.json", json("amd.com/gpu", "0"), Nothing),
        ("etc/cdi/other.json", json("nvidia.com/gpu", "0"), Nothing),
        ("etc/cdi/other.json", json("amd.com/npu", "all"), Nothing),
        // Engines leave both out.
        ("etc/cdi/amd.yaml", twice, Nothing),
        ("etc/cdi/amd.yaml", "kind: amd.com/gpu\ndevices: [{".to_owned(), Nothing),
    ] {
        let laid = Laid::demo("");
        laid.put(file, &text);
        let named = laid.path(file).display().to_string();
        let (plan, (code, said)) = (laid.fails(&["plan"]).1, laid.fails(&["apply"]));
        assert_eq!(laid.text(file), text);
        assert_eq!(laid.path(SPEC).exists(), means != Refused, "{file}: {said}");
        assert_eq!(code, i32::from(means != Nothing), "{file}: {said}");
        let (status, found) = (laid.fails(&["status"]), doctor(&laid));
        if means == Nothing {
            assert!(!plan.contains(&named) && !said.contains(&named), "{file}: {plan}{said}");
            assert!(status.0 == 0 && found.is_empty(), "{file}: {}{found:?}", status.1);
            continue;
        }
        for said in [&plan, &said, &status.1] {
            assert!(said.contains(&format!("{named} has amd.com/gpu=")), "{file}: {said}");
            assert!(
                said.contains(&format!("remove {named}, or rename these devices in it")),
                "{file}: {said}"
            );
        }
        assert_eq!(status.0, 3, "{file}: {}", status.1);
        let [(evidence, remedy)] = found.as_slice() else { panic!("{file}: {found:?}") };
        assert!(remedy.contains(&format!("remove {named}, or rename")), "{file}: {evidence}: {remedy}");
        let generated = laid.fails(&["cdi", "generate"]);
        assert_eq!(generated.0, i32::from(means == Refused), "{file}: {}", generated.1);

        fs::remove_file(laid.path(file)).unwrap();
        laid.run(&["apply"]).success();
        assert!(laid.path(SPEC).exists(), "{file}");
        laid.run(&["status"]).success();
        assert_eq!(doctor(&laid), [], "{file}");
    }
}

/// A machine of a user's report: podman works by a hand-written spec.
#[test]
fn a_hand_written_spec_of_a_users_report_goes_on_working() {
    let Some(case) = support::cases::machine("cdi-yaml") else { return };
    let (root, file) = (case.root(), case.root().join("etc/cdi/amd.yaml"));
    let run = |arguments: &[&str]| -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rocworker"));
        command.arg("--root").arg(&root).args(arguments).output().unwrap()
    };
    let said = |output: &Output| String::from_utf8([&output.stdout[..], &output.stderr].concat()).unwrap();
    let before = fs::read_to_string(&file).unwrap();
    let named = format!("{} has amd.com/gpu=0, amd.com/gpu=all too", file.display());
    for (command, code) in [("plan", 0), ("apply", 1), ("status", 3), ("doctor", 3)] {
        let output = run(&[command]);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(code), "{command}: {said}");
        assert!(said.contains(&named), "{command}: {said}");
    }
    assert!(!root.join(SPEC).exists());
    assert_eq!(fs::read_to_string(&file).unwrap(), before);

    // Either remedy.
    fs::write(&file, before.replace("\"0\"", "mine").replace("\"all\"", "both")).unwrap();
    let output = run(&["apply"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(root.join(SPEC).exists());
    assert!(run(&["status"]).status.success());
}

/// Nothing is ended by then: rocworker's spec stays and follows the machine.
#[test]
fn a_file_that_comes_later_is_named_until_it_goes() {
    for file in ["etc/cdi/amd.yaml", "etc/cdi/link.json", "run/cdi/amd.json"] {
        let laid = Laid::demo("");
        laid.run(&["apply"]).success();
        let spec = laid.text(SPEC);
        match file {
            // A second name of rocworker's own: each device is there twice.
            "etc/cdi/link.json" => symlink("amd.json", laid.path(file)).unwrap(),
            file => laid.put(file, &yaml("all")),
        }
        let named = laid.path(file).display().to_string();
        for (command, expected) in [("plan", 0), ("status", 3), ("apply", 1), ("doctor", 3)] {
            let (code, said) = laid.fails(&[command]);
            assert!(code == expected && said.contains(&named), "{command} of {file}: {code}: {said}");
        }
        let found = doctor(&laid);
        let [(evidence, remedy)] = found.as_slice() else { panic!("{file}: {found:?}") };
        assert!(evidence.starts_with(&format!("{named} has amd.com/gpu=")), "{evidence}");
        assert_eq!(*remedy, format!("remove {named}, or rename these devices in it"));
        laid.run(&["cdi", "validate"]).code(3);
        assert_eq!(laid.text(SPEC), spec);

        // What the spec says follows the machine: names that are lost already are no reason to let the others go stale.
        laid.put("etc/rocworker/config.yaml", "gpu-device-ids: 0\n");
        assert_eq!(laid.fails(&["apply"]).0, 1);
        assert_ne!(laid.text(SPEC), spec);

        fs::remove_file(laid.path(file)).unwrap();
        laid.run(&["apply"]).success();
        laid.run(&["cdi", "validate"]).success();
        assert_eq!(doctor(&laid), []);
    }
}

/// A spec at an earlier `cdi.path` goes in the same run. One that somebody has changed stays, and keeps its names.
#[test]
fn a_spec_of_rocworkers_at_an_earlier_path_is_in_the_way_only_where_it_stays() {
    for edited in [false, true] {
        let laid = Laid::demo("");
        laid.run(&["apply"]).success();
        if edited {
            let text = laid.text(SPEC).replace("\"rw\"", "\"rwm\"");
            laid.put(SPEC, &text);
        }
        laid.put("etc/rocworker/config.yaml", "cdi: {path: /etc/cdi/gpus.json}\n");
        for command in [&["cdi", "list"][..], &["cdi", "generate"], &["doctor"]] {
            let said = laid.fails(command).1;
            assert_eq!(said.contains("or rename these devices"), edited, "{command:?}: {said}");
        }
        let (code, said) = laid.fails(&["apply"]);
        assert_eq!(laid.path("etc/cdi/gpus.json").exists(), !edited, "{said}");
        assert_eq!(laid.path(SPEC).exists(), edited, "{said}");
        assert!(!edited || code == 1 && said.contains("amd.json has amd.com/gpu=0"), "{said}");
    }
}

/// Nothing is said that is not known, and nothing is refused for it.
#[test]
fn a_spec_that_cannot_be_read_is_named_and_stops_nothing() {
    let laid = Laid::demo("");
    laid.put("etc/cdi/large.json", &"x".repeat((4 << 20) + 1));
    // Engines read no folder.
    fs::create_dir(laid.path("etc/cdi/folder.yaml")).unwrap();
    let (code, said) = laid.fails(&["apply"]);
    let large = laid.path("etc/cdi/large.json");
    assert!(code == 0 && said.contains(&format!("is not known: {} is larger", large.display())), "{said}");
    assert!(!said.contains("folder.yaml"), "{said}");
    assert!(laid.path(SPEC).exists());
    let found = doctor(&laid);
    assert!(found.len() == 1 && found[0].0.contains("large.json"), "{found:?}");
    laid.run(&["status"]).success();
}

/// podman 4.3 finds no spec there.
#[test]
fn a_folder_of_specs_that_is_a_link_is_named() {
    for (config, folder) in [("", "etc/cdi"), ("cdi: {path: /srv/here/cdi/amd.json}\n", "srv/here/cdi")] {
        let laid = Laid::demo(config);
        laid.run(&["apply"]).success();
        let (folder, above) = (laid.path(folder), laid.path("srv/here"));
        let shown = Path::new("/").join(folder.strip_prefix(laid.path("")).unwrap());
        let named = |evidence: &str| evidence.contains(&format!("{} is a link, which", shown.display()));
        fs::create_dir_all(laid.path("srv")).unwrap();
        fs::rename(&folder, laid.path("srv/specs")).unwrap();
        symlink("/srv/specs", &folder).unwrap();
        let found = doctor(&laid);
        let [(evidence, remedy)] = found.as_slice() else { panic!("{config}: {found:?}") };
        assert!(named(evidence), "{evidence}");
        let make = format!("make {} a folder, then rocworker", shown.display());
        assert!(remedy.starts_with(&make), "{remedy}");
        fs::remove_file(&folder).unwrap();
        fs::rename(laid.path("srv/specs"), &folder).unwrap();
        // Every library follows a link on the way.
        if above.exists() {
            fs::rename(&above, laid.path("srv/there")).unwrap();
            symlink("/srv/there", &above).unwrap();
        }
        let found = doctor(&laid);
        assert!(!found.iter().any(|(evidence, _)| named(evidence)), "{config}: {found:?}");
    }
}

/// A folder of the configuration's is put behind those that engines have, so that its names win.
#[test]
fn a_spec_in_a_folder_that_wins_names_those_whose_names_it_takes() {
    let laid = Laid::demo("cdi: {path: /var/run/cdi/amd.json}\n");
    laid.put("etc/cdi/amd.yaml", &yaml("all"));
    let (code, said) = laid.fails(&["apply"]);
    assert!(
        code == 0 && said.contains("amd.yaml has amd.com/gpu=all too, and engines take rocworker's"),
        "{said}"
    );
    assert!(laid.path("var/run/cdi/amd.json").exists() && Path::new(&laid.path("etc/cdi/amd.yaml")).exists());
    assert_eq!(doctor(&laid), []);
    laid.run(&["status"]).success();
}

#[test]
fn plan_names_the_devices_of_a_hand_written_spec_that_it_replaces() {
    let laid = Laid::demo("");
    laid.put(SPEC, &json("amd.com/gpu", "w7900"));
    let part = "is replaced, and rocworker's spec lacks these devices of it: amd.com/gpu=w7900";
    for command in ["plan", "apply"] {
        let (code, said) = laid.fails(&[command]);
        assert!(code == 0 && said.contains(part), "{command}: {said}");
    }
    let said = laid.fails(&["plan"]).1;
    assert!(!said.contains("is replaced"), "{said}");
    laid.run(&["undo"]).success();
    assert_eq!(laid.text(SPEC), json("amd.com/gpu", "w7900"));
}
