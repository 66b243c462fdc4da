//! Additions of the machine's policy: folders, the size of /dev/shm, locked memory, a variable.

use super::*;
use crate::{folder::Folder, policy::UNLIMITED};

/// The text afterwards, and what was left out. A second pass must change nothing.
fn edit(text: &str, injection: &Injection<'_>) -> (Result<Option<String>, String>, Vec<String>) {
    let mut left_out = Vec::new();
    let bundle = Bundle::parse(text).unwrap();
    let edited = bundle.edit(injection, &mut |sentence| left_out.push(sentence.to_owned()));
    let edited = edited.map(|edited| edited.map(|edited| edited.to_string()));
    if let Ok(Some(edited)) = &edited {
        assert_eq!(inject(edited, injection), Ok(None), "a second pass into {edited}");
    }
    (edited.map_err(|error| error.to_string()), left_out)
}

fn assert_edits(injection: &Injection<'_>, table: &[(&str, Option<&str>)]) {
    for (text, expected) in table {
        let (edited, left_out) = edit(text, injection);
        assert_eq!(edited.as_ref().map(Option::as_deref), Ok(*expected), "{text}");
        assert!(left_out.is_empty(), "{text}: {left_out:?}");
    }
}

#[test]
fn folders_are_mounted_where_nothing_is() {
    let mut folders = ["a", "b_rw", "c_writable"].map(|name| Folder::beneath("/srv", name).unwrap());
    // Only what is made read-only is mounted anew with them.
    folders[1].kept = vec!["nosuid"];
    let injection = Injection { folders: &folders, ..Injection::default() };
    let a = r#"{"destination":"/srv/a","type":"bind","source":"/srv/a","options":["rbind","ro"]}"#;
    let b = r#"{"destination":"/srv/b_rw","type":"bind","source":"/srv/b_rw","options":["rbind","rw"]}"#;
    let c = r#"{"destination":"/srv/c_writable","type":"bind","source":"/srv/c_writable","options":["rbind","rw"]}"#;
    assert_edits(
        &injection,
        &[
            ("{}", Some(&format!(r#"{{"mounts":[{a},{b},{c}]}}"#))),
            (r#"{"mounts": null }"#, Some(&format!(r#"{{"mounts": [{a},{b},{c}] }}"#))),
            (
                r#"{"mounts":[ {"destination":"/proc","n":1.0} ],"x":1}"#,
                Some(&format!(r#"{{"mounts":[ {{"destination":"/proc","n":1.0}},{a},{b},{c} ],"x":1}}"#)),
            ),
            // Somebody's own mount stays, however its path is spelt.
            (
                r#"{"mounts":[{"destination":"//srv/./a/","type":"tmpfs"},{"destination":"srv/b_rw"}]}"#,
                Some(&format!(
                    r#"{{"mounts":[{{"destination":"//srv/./a/","type":"tmpfs"}},{{"destination":"srv/b_rw"}},{c}]}}"#
                )),
            ),
            // What it would cover.
            (
                r#"{"mounts":[{"destination":"/srv/a/out","source":"/srv/a/out"},{"destination":"/srv/b_rwx"}]}"#,
                Some(&format!(
                    r#"{{"mounts":[{{"destination":"/srv/a/out","source":"/srv/a/out"}},{{"destination":"/srv/b_rwx"}},{b},{c}]}}"#
                )),
            ),
            // In a volume no folder is made, and the host's own folder has them.
            (r#"{"mounts":[{"destination":"/srv","type":"bind","source":"/data"}]}"#, None),
            (
                r#"{"mounts":[{"destination":"/srv","type":"bind","source":"/srv"}]}"#,
                Some(&format!(
                    r#"{{"mounts":[{{"destination":"/srv","type":"bind","source":"/srv"}},{a},{b},{c}]}}"#
                )),
            ),
            (
                r#"{"mounts":[{"destination":"/"},{"destination":"/srv/ab"},{"destination":"/sr"}]}"#,
                Some(&format!(
                    r#"{{"mounts":[{{"destination":"/"}},{{"destination":"/srv/ab"}},{{"destination":"/sr"}},{a},{b},{c}]}}"#
                )),
            ),
        ],
    );
}

#[test]
fn a_folder_in_a_folder_is_mounted_too() {
    let folders = [("/srv", "a"), ("/srv/a", "x"), ("/opt", "rocm"), ("/o\"pt", "\n")];
    let folders = folders.map(|(parent, name)| Folder::beneath(parent, name).unwrap());
    let injection = Injection { folders: &folders, ..Injection::default() };
    assert_edits(
        &injection,
        &[(
            "{}",
            Some(concat!(
                r#"{"mounts":[{"destination":"/srv/a","type":"bind","source":"/srv/a","options":["rbind","ro"]},"#,
                r#"{"destination":"/srv/a/x","type":"bind","source":"/srv/a/x","options":["rbind","ro"]},"#,
                r#"{"destination":"/opt/rocm","type":"bind","source":"/opt/rocm","options":["rbind","ro"]},"#,
                r#"{"destination":"/o\"pt/\n","type":"bind","source":"/o\"pt/\n","options":["rbind","ro"]}]}"#,
            )),
        )],
    );
}

#[test]
fn folders_fail_nothing_that_can_be_given_otherwise() {
    let folders = [Folder::beneath("/srv", "a").unwrap()];
    let alone = Injection { folders: &folders, ..Injection::default() };
    let with_gpu = Injection { folders: &folders, ..gpu() };
    let with_shm = Injection { shm_bytes: Some(1), ..alone.clone() };
    for mounts in [r#"[{"type":"bind"}]"#, "[5]", r#"[{"destination":"/x","Destination":"/y"}]"#] {
        let text = format!(r#"{{"mounts":{mounts}}}"#);
        let (edited, left_out) = edit(&text, &alone);
        assert_eq!(edited, Ok(None), "{mounts}");
        let begin =
            "the policy's folders are not mounted, since its mounts cannot be edited: the key mounts cannot";
        assert!(left_out.len() == 1 && left_out[0].starts_with(begin), "{left_out:?}");
        let (edited, left_out) = edit(&text, &with_gpu);
        assert!(edited.unwrap().unwrap().contains("renderD128") && left_out.len() == 1, "{left_out:?}");
        let (edited, left_out) = edit(&text, &with_shm);
        assert!(edited.unwrap_err().starts_with("the key mounts cannot be read") && left_out.is_empty());
    }
}

#[test]
fn shm_gets_its_size_and_keeps_its_other_options() {
    let injection = Injection { shm_bytes: Some(8 << 30), ..Injection::default() };
    let whole = r#"{"destination":"/dev/shm","type":"tmpfs","source":"shm","options":["nosuid","noexec","nodev","mode=1777","size=8589934592"]}"#;
    assert_edits(
        &injection,
        &[
            ("{}", Some(&format!(r#"{{"mounts":[{whole}]}}"#))),
            (
                r#"{"mounts":[{"destination":"/dev/shmx"}]}"#,
                Some(&format!(r#"{{"mounts":[{{"destination":"/dev/shmx"}},{whole}]}}"#)),
            ),
            (
                r#"{"mounts":[{"destination":"/dev/shm","type":"tmpfs","options":["nodev", "size=65536k","mode=1777"],"x":1.0}, {"destination":"/z"}]}"#,
                Some(
                    r#"{"mounts":[{"destination":"/dev/shm","type":"tmpfs","options":["nodev", "size=8589934592","mode=1777"],"x":1.0}, {"destination":"/z"}]}"#,
                ),
            ),
            (
                r#"{"mounts":[{"destination":"/dev//shm/","type":"tmpfs","options":["size=1","\u0073ize=2m","sizes=3"]}]}"#,
                Some(
                    r#"{"mounts":[{"destination":"/dev//shm/","type":"tmpfs","options":["size=8589934592","size=8589934592","sizes=3"]}]}"#,
                ),
            ),
            (
                r#"{"mounts":[{"options":[ ],"destination":"/dev/shm","type":"tmpfs"}]}"#,
                Some(
                    r#"{"mounts":[{"options":["size=8589934592" ],"destination":"/dev/shm","type":"tmpfs"}]}"#,
                ),
            ),
            (
                r#"{"mounts":[{"destination":"/dev/shm","type":"tmpfs","options":null}]}"#,
                Some(
                    r#"{"mounts":[{"destination":"/dev/shm","type":"tmpfs","options":["size=8589934592"]}]}"#,
                ),
            ),
            (
                r#"{"mounts":[{"destination":"/dev/shm","type":"tmpfs" }]}"#,
                Some(
                    r#"{"mounts":[{"destination":"/dev/shm","type":"tmpfs","options":["size=8589934592"] }]}"#,
                ),
            ),
            (
                r#"{"mounts":[{"destination":"/dev/shm","type":"tmpfs","options":["size=8589934592","nodev"]}]}"#,
                None,
            ),
            // The last one covers the others.
            (
                r#"{"mounts":[{"destination":"/dev/shm","type":"bind"},{"destination":"/dev/shm","type":"tmpfs"}]}"#,
                Some(
                    r#"{"mounts":[{"destination":"/dev/shm","type":"bind"},{"destination":"/dev/shm","type":"tmpfs","options":["size=8589934592"]}]}"#,
                ),
            ),
        ],
    );
    for mount in [
        r#"{"destination":"/dev/shm","type":"bind","source":"/run/x/shm","options":["rbind","size=1"]}"#,
        r#"{"destination":"/dev/shm","source":"/run/x/shm"}"#,
    ] {
        let (edited, left_out) = edit(&format!(r#"{{"mounts":[{mount}]}}"#), &injection);
        assert_eq!(edited, Ok(None), "{mount}");
        assert!(left_out.len() == 1 && left_out[0].contains("/dev/shm is no tmpfs"), "{left_out:?}");
    }
}

#[test]
fn memory_that_may_be_locked_is_raised_and_never_lowered() {
    let of = |bytes| Injection {
        process: ProcessEdits { memlock_bytes: Some(bytes), ..ProcessEdits::default() },
        ..Injection::default()
    };
    let nofile = r#"{"type":"RLIMIT_NOFILE","hard":1024,"soft":1024}"#;
    assert_edits(
        &of(1 << 30),
        &[
            (
                r#"{"process":{}}"#,
                Some(
                    r#"{"process":{"rlimits":[{"type":"RLIMIT_MEMLOCK","hard":1073741824,"soft":1073741824}]}}"#,
                ),
            ),
            (
                &format!(r#"{{"process":{{"rlimits":[ {nofile} ],"args":["x"]}}}}"#),
                Some(&format!(
                    r#"{{"process":{{"rlimits":[ {nofile},{{"type":"RLIMIT_MEMLOCK","hard":1073741824,"soft":1073741824}} ],"args":["x"]}}}}"#
                )),
            ),
            (
                r#"{"process":{"rlimits":[{"soft": 65536 ,"type":"RLIMIT_MEMLOCK","hard":65536,"x":[]}]}}"#,
                Some(
                    r#"{"process":{"rlimits":[{"soft": 1073741824 ,"type":"RLIMIT_MEMLOCK","hard":1073741824,"x":[]}]}}"#,
                ),
            ),
            (
                r#"{"process":{"rlimits":[{"type":"RLIMIT_MEMLOCK","hard":18446744073709551615,"soft":8}]}}"#,
                Some(
                    r#"{"process":{"rlimits":[{"type":"RLIMIT_MEMLOCK","hard":18446744073709551615,"soft":1073741824}]}}"#,
                ),
            ),
            (
                r#"{"process":{"rlimits":[{"type":"RLIMIT_MEMLOCK","hard":2147483648,"soft":1073741824}]}}"#,
                None,
            ),
            // A bundle without a process has nothing that could use a GPU.
            ("{}", None),
            (r#"{"process":null}"#, None),
        ],
    );
    assert_edits(
        &of(UNLIMITED),
        &[(
            r#"{"process":{"rlimits":[{"type":"RLIMIT_MEMLOCK","hard":1,"soft":1}]}}"#,
            Some(
                r#"{"process":{"rlimits":[{"type":"RLIMIT_MEMLOCK","hard":18446744073709551615,"soft":18446744073709551615}]}}"#,
            ),
        )],
    );
    for (rlimits, expected) in [
        (
            r#"[{"type":"RLIMIT_MEMLOCK","hard":-1,"soft":1}]"#,
            "the key process.rlimits cannot be read: expected a",
        ),
        (
            r#"[{"type":"RLIMIT_MEMLOCK","Hard":1}]"#,
            "the key process.rlimits cannot be read: the key \"soft\" is missing",
        ),
        (r#"{}"#, "the key process.rlimits cannot be read: expected a list, found an object"),
        (r#"[],"rlimits":[]"#, "the key process.rlimits cannot be read: the key \"rlimits\" appears twice"),
    ] {
        let text = format!(r#"{{"process":{{"rlimits":{rlimits}}}}}"#);
        let sentence = edit(&text, &of(1)).0.unwrap_err();
        assert!(sentence.starts_with(expected), "{rlimits}: {sentence}");
        // Where nothing is raised it is nobody's business.
        assert!(inject(&text, &gpu()).is_ok(), "{rlimits}");
    }
}

#[test]
fn a_variable_is_set_unless_somebody_sets_it() {
    let process = ProcessEdits { env: vec!["HSA_OVERRIDE_GFX_VERSION=11.0.0"], ..ProcessEdits::default() };
    assert_edits(
        &Injection { process, ..Injection::default() },
        &[
            (r#"{"process":{}}"#, Some(r#"{"process":{"env":["HSA_OVERRIDE_GFX_VERSION=11.0.0"]}}"#)),
            (
                r#"{"process":{"env":["PATH=/bin"]}}"#,
                Some(r#"{"process":{"env":["PATH=/bin","HSA_OVERRIDE_GFX_VERSION=11.0.0"]}}"#),
            ),
            (r#"{"process":{"env":["HSA_OVERRIDE_GFX_VERSION="]}}"#, None),
            (r#"{"process":{"env":["HSA_\u004fVERRIDE_GFX_VERSION=9.0.0","A=1"]}}"#, None),
        ],
    );
}

/// Everything at once: each edit at its own place, and nothing else moved.
#[test]
fn all_edits_together_leave_the_rest_as_it_was() {
    let text = include_str!("concourse-task.json");
    let kept = vec!["nosuid", "noexec"];
    let folders = [Folder { kept, ..Folder::beneath("/srv", "models").unwrap() }];
    let process = ProcessEdits {
        gids: vec![992],
        env: vec!["HSA_OVERRIDE_GFX_VERSION=11.0.0"],
        memlock_bytes: Some(UNLIMITED),
    };
    let injection = Injection { folders: &folders, process, shm_bytes: Some(8 << 30), ..gpu() };
    let (edited, left_out) = edit(text, &injection);
    assert!(left_out.is_empty(), "{left_out:?}");
    insta::assert_snapshot!(edited.unwrap().unwrap());
}
