//! Disks that are full or cannot be written: small file systems in a mount namespace of their own, which go with it.

use std::process::Command;

use support::real;
use support::tree::Tree;

use crate::setup::laid::Laid;
use crate::setup::program::Program;
use crate::setup::starting_states;

/// Runs a shell's script in a namespace of its own, with `apply` and `undo` as functions, and `tree` for what is there.
pub(crate) fn inside(laid: &Laid, program: &Program, script: &str) -> String {
    let argv = program.argv(laid, &[]);
    let functions =
        "top=$1; shift; apply() { \"$@\" apply 2>&1; }; rw() { \"$@\" 2>&1 || echo \"code $?\"; }\n";
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", &format!("{functions}{script}"), "sh"]);
    let output = command.arg(laid.top()).args(argv).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

#[track_caller]
fn said_all(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(said.contains(part), "no {part:?} in: {said}");
    }
}

fn machine() -> (Laid, Program, Tree) {
    let (laid, program) = (starting_states::machine(), Program::new());
    std::fs::create_dir_all(laid.path("etc/cdi")).unwrap();
    std::fs::create_dir_all(laid.path("var/lib/rocworker")).unwrap();
    laid.put("etc/cdi/theirs.json", "{\"cdiVersion\":\"0.5.0\",\"kind\":\"other.com/net\",\"devices\":[]}");
    let before = laid.tree();
    (laid, program, before)
}

#[test]
fn real_full_disk_of_specs_changes_nothing_there_and_the_rest_can_be_taken_back() {
    if !real::require_root(&["unshare", "mount"]) {
        return;
    }
    let (laid, program, before) = machine();
    let said = inside(
        &laid,
        &program,
        r#"
        cp -a "$top/etc/cdi" "$top/cdi.was"
        mount -t tmpfs -o size=16k none "$top/etc/cdi" && cp -a "$top/cdi.was/." "$top/etc/cdi/" && rm -r "$top/cdi.was"
        head -c 100000 /dev/zero > "$top/etc/cdi/filler" 2>/dev/null
        rw "$@" apply
        echo left; ls -A "$top/etc/cdi"
        rw "$@" undo
        ls -A "$top/etc/cdi"
        rm "$top/etc/cdi/filler"
        rw "$@" apply && grep -c amd.com/gpu "$top/etc/cdi/amd.json"
        rw "$@" undo
        ls -A "$top/etc/cdi"
        "#,
    );
    said_all(&said, &["/etc/cdi/amd.json: No space left on device: make room on that file system", "code 1"]);
    let left = said.split_once("left\n").unwrap().1;
    assert!(left.starts_with("filler\ntheirs.json\n"), "no temporary file: {said}");
    assert!(said.contains("\n1\n") && said.ends_with("theirs.json\n"), "{said}");
    let off = laid.tree().differences(&[&before]);
    assert!(off.is_empty(), "{}", off.join("\n"));
}

#[test]
fn real_full_disk_of_receipts_changes_nothing_at_all() {
    if !real::require_root(&["unshare", "mount"]) {
        return;
    }
    // From not even a lock to room for all but the last.
    for room in ["nr_inodes=1", "nr_inodes=2", "nr_inodes=3", "size=4k"] {
        let (laid, program, before) = machine();
        let script = r#"
            mount -t tmpfs -o mode=755,ROOM none "$top/var/lib/rocworker"
            head -c 100000 /dev/zero > "$top/var/lib/rocworker/filler" 2>/dev/null
            rw "$@" apply
            echo; rm -f "$top/var/lib/rocworker/filler"; mount -o remount,size=1m,nr_inodes=100 "$top/var/lib/rocworker"
            rw "$@" undo
            "#;
        let said = inside(&laid, &program, &script.replace("ROOM", room));
        said_all(
            &said,
            &["rocworker: cannot ", "/var/lib/rocworker/", "No space left on device: make room", "code 1"],
        );
        let off = laid.tree().differences(&[&before]);
        assert!(off.is_empty(), "{room}: {said}\n{}", off.join("\n"));
    }
}

#[test]
fn real_disk_that_fills_up_before_an_undo_loses_nothing() {
    if !real::require_root(&["unshare", "mount"]) {
        return;
    }
    let (laid, program, before) = machine();
    let said = inside(
        &laid,
        &program,
        r#"
        mount -t tmpfs -o mode=755,size=256k none "$top/var/lib/rocworker"
        rw "$@" apply > /dev/null
        head -c 1000000 /dev/zero > "$top/var/lib/rocworker/filler" 2>/dev/null
        rw "$@" undo
        rm "$top/var/lib/rocworker/filler"
        rw "$@" undo
        "#,
    );
    said_all(
        &said,
        &[
            "/var/lib/rocworker/receipt.json: No space left on device: make room on that file system",
            "reverted",
        ],
    );
    let off = laid.tree().differences(&[&before]);
    assert!(off.is_empty(), "{said}\n{}", off.join("\n"));
}

#[test]
fn real_read_only_file_systems_are_named_and_nothing_is_left_half_done() {
    if !real::require_root(&["unshare", "mount"]) {
        return;
    }
    for (folder, parts) in [
        (
            "var/lib/rocworker",
            ["/var/lib/rocworker/", "Read-only file system: mount that file system for writing"],
        ),
        ("etc/cdi", ["/etc/cdi/amd.json", "Read-only file system: mount that file system for writing"]),
        ("etc", ["/etc/cdi/amd.json", "Read-only file system: mount that file system for writing"]),
        ("usr", ["runc-amd-wrapper", "Read-only file system: mount that file system for writing"]),
    ] {
        let (laid, program, before) = machine();
        let script = r#"
            mount --bind "$top/FOLDER" "$top/FOLDER" && mount -o remount,bind,ro "$top/FOLDER"
            rw "$@" apply
            rw "$@" apply > /dev/null
            rw "$@" undo
            "#;
        let said = inside(&laid, &program, &script.replace("FOLDER", folder));
        said_all(&said, &parts);
        assert!(said.contains("code 1"), "{said}");
        let off = laid.tree().differences(&[&before]);
        assert!(off.is_empty(), "{folder}: {said}\n{}", off.join("\n"));
    }
}

/// A disk that became read-only between an apply and an undo.
#[test]
fn real_read_only_disk_at_an_undo_keeps_what_its_files_name() {
    if !real::require_root(&["unshare", "mount"]) {
        return;
    }
    let (laid, program, before) = machine();
    let (code, said) = program.run(&laid, &["apply"]);
    assert_eq!(code, 0, "{said}");
    let applied = laid.tree();
    let said = inside(
        &laid,
        &program,
        r#"
        mount --bind "$top/etc" "$top/etc" && mount -o remount,bind,ro "$top/etc"
        rw "$@" undo
        "#,
    );
    said_all(
        &said,
        &["/etc/cdi/amd.json", "Read-only file system: mount that file system for writing", "code 1"],
    );
    let wrapper = "usr/local/lib/rocworker/runc-amd-wrapper";
    // A file in /etc that names the wrapper keeps it there.
    let is_named = applied.paths().any(|path| {
        path.starts_with("etc")
            && String::from_utf8_lossy(&applied.get(path).unwrap().bytes).contains(wrapper)
    });
    assert_eq!(laid.path(wrapper).exists(), is_named, "{said}");
    let (code, said) = program.run(&laid, &["undo"]);
    assert_eq!(code, 0, "{said}");
    let off = laid.tree().differences(&[&before]);
    assert!(off.is_empty(), "{}", off.join("\n"));
}

/// Who may read nothing of it: a plan works or says what it cannot read, an apply says one sentence.
#[test]
fn real_unprivileged_caller_changes_nothing_and_is_told_what_he_lacks() {
    if !real::require_root(&["setpriv", "cp"]) {
        return;
    }
    let (laid, program, _) = machine();
    std::fs::set_permissions(laid.top(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let argv = program.argv(&laid, &[]);
    // The program lies in a folder that nobody else enters.
    let copy = tempfile::tempdir().unwrap();
    std::fs::set_permissions(copy.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for name in ["rocworker", "runc-amd-wrapper"] {
        let from = std::path::Path::new(&argv[0]).with_file_name(name);
        std::fs::copy(from, copy.path().join(name)).unwrap();
    }
    let nobody = |command: &[&str]| {
        let output = Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(copy.path().join("rocworker"))
            .args(&argv[1..])
            .args(command)
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap(), said)
    };
    let before = laid.all();
    let (code, out, said) = nobody(&["plan"]);
    assert_eq!(code, 0, "{said}");
    assert!(out.contains("/etc/cdi/amd.json"), "{out}");
    let (code, _, said) = nobody(&["apply"]);
    assert_eq!((code, said.lines().count()), (1, 1), "{said}");
    assert!(said.contains("/var/lib/rocworker/lock: Permission denied"), "{said}");
    assert_eq!(laid.all(), before);

    program.run(&laid, &["apply"]);
    let applied = laid.all();
    // Anybody may see how the machine stands.
    for command in ["plan", "status", "apply"] {
        let (code, _, said) = nobody(&[command]);
        assert_eq!((code, said.as_str()), (0, ""), "{command}");
    }
    let (code, _, said) = nobody(&["undo"]);
    assert_eq!((code, said.lines().count()), (1, 1), "{said}");
    assert!(said.contains("/var/lib/rocworker/lock: Permission denied"), "{said}");
    assert_eq!(laid.all(), applied);
}

#[test]
fn real_what_a_mount_hides_is_not_forgotten_and_a_folder_that_cannot_go_is_told() {
    if !real::require_root(&["unshare", "mount"]) {
        return;
    }
    // An empty folder over that of the specs, and the folder over itself, which shows all and cannot be removed.
    for (mount, part, again) in [
        (
            "mkdir \"$top/empty\"; mount --bind \"$top/empty\" \"$top/etc/cdi\"",
            "/etc/cdi since the last apply hides this file",
            1,
        ),
        ("mount --bind \"$top/etc/cdi\" \"$top/etc/cdi\"", "/etc/cdi: cannot remove the folder ", 0),
    ] {
        let (laid, program) = (starting_states::machine(), Program::new());
        let before = laid.tree();
        let script = r#"
            rw "$@" apply > /dev/null
            MOUNT
            rw "$@" undo; rw "$@" undo; echo; ls "$top/var/lib/rocworker/receipt.json"
            umount "$top/etc/cdi"; rm -fd "$top/empty"
            echo unmounted
            rw "$@" undo
            "#;
        let said = inside(&laid, &program, &script.replace("MOUNT", mount));
        let (hidden, seen) = said.split_once("unmounted\n").unwrap();
        assert_eq!(hidden.matches(part).count(), 2, "{said}");
        assert_eq!(hidden.matches("code 1").count(), 2, "{said}");
        assert!(hidden.ends_with("receipt.json\n"), "{said}");
        assert!(!seen.contains("code") && seen.contains(" reverted\n") == (again == 1), "{said}");
        let off = laid.tree().differences(&[&before]);
        assert!(off.is_empty(), "{said}\n{}", off.join("\n"));
        assert!(!laid.path("var/lib/rocworker/receipt.json").exists());
    }
}

/// A limit on the size of files, as `ulimit -f` and LimitFSIZE= of a unit set it: the kernel's signal ends no apply half-way.
#[test]
fn a_limit_on_the_size_of_files_is_told_and_leaves_no_temporary_file() {
    let (laid, program, before) = machine();
    let argv = program.argv(&laid, &["apply"]);
    let output =
        Command::new("sh").args(["-c", "ulimit -f 4; exec \"$@\"", "sh"]).args(argv).output().unwrap();
    let said =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("receipt.json: File too large"), "{said}");
    laid.run(&["undo"]);
    let off = laid.tree().differences(&[&before]);
    assert!(off.is_empty(), "{}", off.join("\n"));
}

/// Engines are given no runtime whose program is not there.
#[test]
fn real_full_disk_of_the_wrapper_leaves_every_engines_configuration_as_it_was() {
    if !real::require_root(&["unshare", "mount"]) {
        return;
    }
    let (laid, program, before) = machine();
    let said = inside(
        &laid,
        &program,
        r#"
        mkdir -p "$top/usr/local/lib/rocworker"
        mount -t tmpfs -o size=16k none "$top/usr/local/lib/rocworker"
        head -c 100000 /dev/zero > "$top/usr/local/lib/rocworker/filler" 2>/dev/null
        cp -a "$top/etc/docker" "$top/docker.was"; cp -a "$top/etc/containerd" "$top/containerd.was"
        rw "$@" apply
        echo applied
        diff -r "$top/etc/docker" "$top/docker.was" && diff -r "$top/etc/containerd" "$top/containerd.was" && echo same
        rm -r "$top/docker.was" "$top/containerd.was"
        rw "$@" undo
        umount "$top/usr/local/lib/rocworker"; rmdir "$top/usr/local/lib/rocworker"
        "#,
    );
    said_all(&said, &["runc-amd-wrapper: No space left on device", "code 1", "applied\nsame\n"]);
    let off = laid.tree().differences(&[&before]);
    assert!(off.is_empty(), "{}", off.join("\n"));
}
