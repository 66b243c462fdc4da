//! What stands where something should be written, and is nothing that may be written over.

use std::fs;
use std::os::unix::fs::symlink;

use crate::laid::Laid;

const SPEC: &str = "etc/cdi/amd.json";

/// An apply that cannot write the spec: it ends with 1, says why and what to do, and touches nothing there; an undo
/// takes back the rest.
#[track_caller]
fn refused(lay: impl FnOnce(&Laid), parts: &[&str]) {
    let laid = Laid::demo("");
    lay(&laid);
    let before = laid.tree();
    for command in ["plan", "apply", "apply"] {
        let (code, said) = laid.fails(&[command]);
        assert_eq!(code, i32::from(command == "apply"), "{command}: {said}");
        for part in parts {
            assert!(said.contains(part), "{command}: no {part:?} in: {said}");
        }
    }
    let of_specs = |line: &String| line.starts_with("etc/cdi") || line.starts_with("opt");
    let off: Vec<_> = laid.tree().differences(&[&before]).into_iter().filter(of_specs).collect();
    assert!(off.is_empty(), "{}", off.join("\n"));
    laid.fails(&["undo"]);
    assert_eq!(laid.tree(), before);
}

#[test]
fn the_folder_of_specs_is_a_link() {
    let lay = |laid: &Laid| {
        fs::create_dir_all(laid.path("opt/cdi")).unwrap();
        symlink("/opt/cdi", laid.path("etc/cdi")).unwrap();
    };
    refused(lay, &["/etc/cdi", "it is reached through a symbolic link", "name the real folder"]);
}

#[test]
fn the_folder_of_specs_is_a_link_that_leads_nowhere() {
    refused(|laid| symlink("/nowhere", laid.path("etc/cdi")).unwrap(), &["/etc/cdi", "symbolic link"]);
}

#[test]
fn the_folder_of_specs_is_a_file() {
    refused(
        |laid| laid.put("etc/cdi", "a file\n"),
        &["/etc/cdi", "it is not a folder; move it out of the way"],
    );
}

#[test]
fn the_spec_is_a_link() {
    let lay = |laid: &Laid| {
        laid.put("opt/spec.json", "{\"kind\":\"amd.com/gpu\"}");
        fs::create_dir(laid.path("etc/cdi")).unwrap();
        symlink("/opt/spec.json", laid.path(SPEC)).unwrap();
    };
    refused(lay, &["/etc/cdi/amd.json", "symbolic link"]);
}

#[test]
fn the_spec_is_a_folder() {
    refused(|laid| fs::create_dir_all(laid.path(SPEC)).unwrap(), &["/etc/cdi/amd.json", "a folder"]);
}

#[test]
fn our_own_folder_is_a_link_or_a_file() {
    type Lay = fn(&Laid);
    let lays: [(Lay, &str); 2] = [
        (|laid| symlink("/opt", laid.path("var/lib/rocworker")).unwrap(), "symbolic link"),
        (|laid| laid.put("var/lib/rocworker", "a file"), "no"),
    ];
    for (lay, part) in lays {
        let laid = Laid::demo("");
        fs::create_dir_all(laid.path("var/lib")).unwrap();
        fs::create_dir_all(laid.path("opt")).unwrap();
        lay(&laid);
        let before = laid.all();
        let (code, said) = laid.fails(&["apply"]);
        assert_eq!(code, 1, "{said}");
        assert!(said.contains("/var/lib/rocworker") && said.contains(part), "{said}");
        assert_eq!(laid.all(), before, "nothing is changed that could not be taken back: {said}");
    }
}

#[test]
fn a_temporary_file_that_somebody_planted_is_not_followed_or_taken() {
    let laid = Laid::demo("");
    fs::create_dir(laid.path("etc/cdi")).unwrap();
    // Of a process that lives: somebody may be at work there.
    let alive = format!("etc/cdi/.rocworker-amd.json.{}", std::process::id());
    laid.put(&alive, "of a living process");
    // Of none, and a link: it goes itself, and what it leads to stays.
    laid.put("opt/target", "target");
    symlink("/opt/target", laid.path("etc/cdi/.rocworker-amd.json.4194304")).unwrap();
    laid.put("etc/cdi/.rocworker-amd.json.x", "not a number");
    laid.put("etc/cdi/.rocworker-other.json.4194304", "of another file");
    laid.run(&["apply"]).success();
    assert_eq!(laid.text("opt/target"), "target");
    assert_eq!(laid.text(&alive), "of a living process");
    assert!(fs::symlink_metadata(laid.path("etc/cdi/.rocworker-amd.json.4194304")).is_err());
    assert_eq!(laid.text("etc/cdi/.rocworker-amd.json.x"), "not a number");
    assert_eq!(laid.text("etc/cdi/.rocworker-other.json.4194304"), "of another file");
}
