//! What stands where something should be written, and is nothing that may be written over.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use crate::setup::laid::Laid;

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

/// Another user could put anything in the place of what is in it.
fn open_to_others(folder: &Path) {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
}

#[test]
fn the_folder_of_specs_is_a_link() {
    let lay = |laid: &Laid| {
        fs::create_dir_all(laid.path("opt/cdi")).unwrap();
        open_to_others(&laid.path("opt"));
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
        open_to_others(&laid.path("opt"));
        lay(&laid);
        let before = laid.all();
        let (code, said) = laid.fails(&["apply"]);
        assert_eq!(code, 1, "{said}");
        assert!(said.contains("/var/lib/rocworker") && said.contains(part), "{said}");
        assert_eq!(laid.all(), before, "nothing is changed that could not be taken back: {said}");
    }
}

#[test]
fn our_own_folder_that_was_moved_behind_a_link_is_said_at_once_and_not_at_the_undo() {
    for moved in ["var/lib/rocworker", "var/lib"] {
        let laid = Laid::demo("");
        laid.run(&["apply"]).success();
        fs::create_dir_all(laid.path("srv")).unwrap();
        open_to_others(&laid.path("srv"));
        fs::rename(laid.path(moved), laid.path("srv/moved")).unwrap();
        symlink("/srv/moved", laid.path(moved)).unwrap();
        let before = laid.all();
        for command in [&["plan"][..], &["apply"], &["status"], &["cdi", "generate"], &["undo"]] {
            let (code, said) = laid.fails(command);
            let place = "/var/lib/rocworker, where rocworker keeps its state, is no folder or is behind a symbolic link";
            assert!(code == 1 && said.contains(place), "{command:?} {code}: {said}");
            assert_eq!(said.lines().count(), 1, "{command:?}: {said}");
        }
        let (code, said) = laid.fails(&["doctor"]);
        assert!(code == 3 && said.contains("behind a symbolic link"), "{said}");
        assert_eq!(laid.all(), before);
        fs::remove_file(laid.path(moved)).unwrap();
        fs::rename(laid.path("srv/moved"), laid.path(moved)).unwrap();
        laid.run(&["undo"]).success();
    }
}

/// As an administrator moves a folder to a larger disk.
#[test]
fn a_link_that_is_roots_alone_is_followed_and_an_undo_follows_it_too() {
    for (link, target) in [("etc/cdi", "/opt/cdi"), ("var/lib/rocworker", "../../srv/state")] {
        let laid = Laid::demo("");
        let real = laid.path(target.trim_start_matches(['/', '.']));
        fs::create_dir_all(&real).unwrap();
        fs::create_dir_all(laid.path("var/lib")).unwrap();
        symlink(target, laid.path(link)).unwrap();
        let before = laid.tree();
        laid.run(&["apply"]).success();
        assert!(fs::read_dir(&real).unwrap().next().is_some(), "{link}: nothing was written behind it");
        let applied = laid.tree();
        laid.run(&["apply"]).success();
        assert_eq!(laid.tree(), applied, "{link}");
        laid.run(&["undo"]).success();
        assert_eq!(laid.tree().differences(&[&before]), Vec::<String>::new(), "{link}");
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

#[test]
fn somebodys_document_is_not_taken_for_a_broken_spec() {
    let laid = Laid::demo("cdi: {path: /etc/app/settings.json}\n");
    laid.put("etc/app/settings.json", "{\"important\": true}");
    let (code, said) = laid.fails(&["apply"]);
    assert!(code == 1 && said.contains("no CDI spec of amd.com/gpu"), "{said}");
    assert_eq!(laid.text("etc/app/settings.json"), "{\"important\": true}");
}

#[test]
fn state_that_others_could_have_written_is_not_believed() {
    let laid = Laid::demo("");
    laid.run(&["apply"]).success();
    fs::set_permissions(laid.path("var/lib/rocworker"), fs::Permissions::from_mode(0o777)).unwrap();
    for command in ["apply", "undo", "status"] {
        let (code, said) = laid.fails(&[command]);
        assert!(
            code == 1 && said.contains("/var/lib/rocworker can be written by others"),
            "{command}: {said}"
        );
    }
}

#[test]
fn no_engine_is_told_of_a_packaged_wrapper_that_cannot_run() {
    for (text, mode, why) in [
        ("", 0o755, "is no program (ELF)"),
        ("stands for half a download\n", 0o755, "is no program (ELF)"),
        (support::laid::WRAPPER, 0o644, "is not executable"),
    ] {
        let laid = Laid::with_engines("");
        let before = laid.text("etc/docker/daemon.json");
        let program = laid.path("usr/lib/rocworker/runc-amd-wrapper");
        fs::write(&program, text).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
        let (code, said) = laid.fails(&["apply"]);
        assert!(code == 1 && said.contains(why) && said.contains("install rocworker again"), "{said}");
        assert_eq!(laid.text("etc/docker/daemon.json"), before);
        let (code, said) = laid.fails(&["doctor"]);
        assert!(code == 3 && said.contains(why), "{said}");
    }
}
