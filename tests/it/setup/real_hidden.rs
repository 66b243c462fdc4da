//! Files that a mount hides, and files that cannot be replaced: what rocworker has written is neither forgotten nor half
//! reverted.

use support::real;
use support::tree::Tree;

use crate::setup::laid::Laid;
use crate::setup::program::Program;
use crate::setup::real_disks::inside;
use crate::setup::starting_states;

const RECEIPT: &str = "var/lib/rocworker/receipt.json";
const WRAPPER: &str = "usr/local/lib/rocworker/runc-amd-wrapper";

fn machine() -> (Laid, Program, Tree) {
    let (laid, program) = (starting_states::machine(), Program::new());
    let before = laid.tree();
    (laid, program, before)
}

#[track_caller]
fn is_as_before(laid: &Laid, before: &Tree, said: &str) {
    let off = laid.tree().differences(&[before]);
    assert!(off.is_empty(), "{said}\n{}", off.join("\n"));
    assert!(!laid.path(RECEIPT).exists(), "{said}");
}

/// What may stand in the place of docker's configuration: nothing, another file with and without rocworker's keys, the
/// very file that was there before; by a mount over its folder or over the file.
#[test]
fn real_edited_file_that_a_mount_hides_is_restored_once_the_mount_has_gone() {
    if !real::require_root(&["unshare", "mount"]) {
        return;
    }
    for other in [
        "true",
        "echo '{\"mine\": true}' > $new/daemon.json",
        "cp $docker/daemon.json $new/ && sed -i 's/journald/syslog/' $new/daemon.json",
        "cp $docker.was $new/daemon.json",
    ] {
        for of_file in [false, true] {
            if of_file && other == "true" {
                continue;
            }
            let (laid, program, before) = machine();
            let over = if of_file {
                "mount --bind $new/daemon.json $docker/daemon.json"
            } else {
                "mount --bind $new $docker"
            };
            let said = inside(
                &laid,
                &program,
                &format!(
                    r#"
                    docker=$top/etc/docker; new=$top/other; mkdir $new; cp -a $docker/daemon.json $docker.was
                    rw "$@" apply > /dev/null
                    {other}
                    {over}
                    cp -a $new $new.was
                    echo applied; rw "$@" apply; echo undone; rw "$@" undo; rw "$@" undo
                    diff -r $new $new.was && echo "theirs is theirs"
                    umount $docker/daemon.json 2>/dev/null || umount $docker
                    echo unmounted
                    rw "$@" undo
                    rm -r $new $new.was $docker.was
                    "#
                ),
            );
            let (hidden, seen) = said.split_once("unmounted\n").unwrap();
            let (applied, undone) = hidden.split_once("undone\n").unwrap();
            let mount = if of_file { "/etc/docker/daemon.json" } else { "/etc/docker" };
            // Where the other file has rocworker's keys, there is nothing to apply.
            let refused = [undone, applied].into_iter().take(if other.contains("sed") { 1 } else { 2 });
            for again in refused {
                let part = format!("{mount} since the last apply hides this file: umount ");
                assert!(again.contains(&part) && again.contains("code 1"), "{other} {over}: {said}");
            }
            assert!(hidden.contains("theirs is theirs"), "{other} {over}: {said}");
            assert!(!seen.contains("code"), "{other} {over}: {said}");
            is_as_before(&laid, &before, &said);
        }
    }
}

/// The other way round: it was written to a file system that is not mounted when it is to be reverted.
#[test]
fn real_edited_file_on_a_file_system_that_is_not_mounted_is_restored_once_it_is_again() {
    if !real::require_root(&["unshare", "mount"]) {
        return;
    }
    for theirs in ["true", "echo '{\"mine\": true}' > $docker/daemon.json"] {
        let (laid, program, _) = machine();
        let said = inside(
            &laid,
            &program,
            &format!(
                r#"
                docker=$top/etc/docker; disk=$top/disk; mv $docker $disk; mkdir $docker
                {theirs}
                mount --bind $disk $docker
                cp -a $disk $disk.was
                rw "$@" apply > /dev/null
                umount $docker
                rw "$@" undo
                echo unmounted
                mount --bind $disk $docker
                rw "$@" undo
                echo undone
                diff -r $disk $disk.was && echo same
                umount $docker
                "#
            ),
        );
        let (away, seen) = said.split_once("unmounted\n").unwrap();
        assert!(
            away.contains("/etc/docker, and nothing is mounted there now: mount it, then undo again"),
            "{said}"
        );
        assert!(
            away.contains("code 1") && seen.ends_with("undone\nsame\n") && !seen.contains("code"),
            "{said}"
        );
        assert!(!laid.path(RECEIPT).exists(), "{said}");
    }
}

/// By force it is forgotten, and what hides it stays as it is.
#[test]
fn real_hidden_file_is_forgotten_by_force_alone_and_what_hides_it_stays() {
    if !real::require_root(&["unshare", "mount"]) {
        return;
    }
    let (laid, program, _) = machine();
    let said = inside(
        &laid,
        &program,
        r#"
        new=$top/other; mkdir $new; echo '{"mine": true}' > $new/daemon.json
        rw "$@" apply > /dev/null
        mount --bind $new $top/etc/docker
        rw "$@" undo --force
        cat $new/daemon.json
        "#,
    );
    assert!(said.contains("rocworker no longer manages it"), "{said}");
    assert!(said.ends_with("{\"mine\": true}\n"), "{said}");
    assert!(!laid.path(RECEIPT).exists(), "{said}");
}

/// A disk that cannot be written, a file that chattr(1) or a mount keeps: an undo says so before its first change, and one
/// after that takes all of it back.
#[test]
fn real_what_would_stop_an_undo_is_said_before_its_first_change() {
    if !real::require_root(&["unshare", "mount", "chattr"]) {
        return;
    }
    for (hinder, free, said_of_it) in [
        (
            "mount --bind $file $file",
            "umount $file",
            "/etc/docker/daemon.json: Device or resource busy: something is mounted there, umount it",
        ),
        (
            "mount --bind $top/etc/docker $top/etc/docker; mount -o remount,bind,ro $top/etc/docker",
            "umount $top/etc/docker",
            "/etc/docker/daemon.json: Read-only file system: mount that file system for writing",
        ),
        (
            "chattr +i $file",
            "chattr -i $file",
            "/etc/docker/daemon.json is immutable, so that nothing is changed there: chattr -i ",
        ),
        (
            "chattr +a $top/etc/docker",
            "chattr -a $top/etc/docker",
            "/etc/docker is append-only, so that nothing",
        ),
    ] {
        let (laid, program, before) = machine();
        let said = inside(
            &laid,
            &program,
            &format!(
                r#"
                file=$top/etc/docker/daemon.json
                rw "$@" apply > /dev/null
                cp -a $top/etc $top/etc.was; cp -a $top/usr $top/usr.was
                {hinder}
                rw "$@" undo
                diff -r --no-dereference $top/etc $top/etc.was && diff -r --no-dereference $top/usr $top/usr.was && echo "nothing was changed"
                {free}
                rm -r $top/etc.was $top/usr.was
                echo free
                rw "$@" undo
                "#
            ),
        );
        let (hindered, freed) = said.split_once("free\n").unwrap();
        assert!(hindered.contains(said_of_it) && hindered.contains("code 1"), "{hinder}: {said}");
        assert!(hindered.contains("Nothing was reverted.\n"), "{hinder}: {said}");
        assert!(hindered.ends_with("nothing was changed\n"), "{hinder}: {said}");
        assert!(!freed.contains("code"), "{hinder}: {said}");
        is_as_before(&laid, &before, &said);
    }
}

/// What a hidden file names is not known: nothing goes, the wrapper's program first of all, until the file is seen again.
#[test]
fn real_undo_changes_nothing_while_a_mount_hides_a_file_that_may_name_the_wrapper() {
    if !real::require_root(&["unshare", "mount"]) {
        return;
    }
    const FORGET: &str = r#"sed -i 's/"default-runtime": "amd",//' $top/etc/docker/daemon.json"#;
    const DOCKER: &str = r#"sed -i '0,/{/s//{"default-runtime": "amd",/' $top/etc/docker/daemon.json"#;
    for (name_it, hide, shown, forget_it) in [
        (DOCKER, "mkdir $top/other; mount --bind $top/other $top/etc/docker", "etc/docker", FORGET),
        (
            DOCKER,
            "mkdir $top/other; echo '{}' > $top/other/empty; mount --bind $top/other/empty $top/etc/docker/daemon.json",
            "etc/docker/daemon.json",
            FORGET,
        ),
        (
            r#"sed -i 's/^\( *\)sandbox_image = .*/&\n[plugins."io.containerd.grpc.v1.cri".containerd]\ndefault_runtime_name = "amd"/' $top/etc/containerd/config.toml"#,
            "mkdir $top/other; mount -t tmpfs none $top/etc/containerd",
            "etc/containerd",
            r#"sed -i '/default_runtime_name/d' $top/etc/containerd/config.toml"#,
        ),
        // No JSON, no object, no file.
        (DOCKER, "mount --bind /dev/null $top/etc/docker/daemon.json", "etc/docker/daemon.json", FORGET),
        (
            DOCKER,
            "mkdir $top/other; echo '{' > $top/other/daemon.json; mount --bind $top/other $top/etc/docker",
            "etc/docker",
            FORGET,
        ),
        (
            DOCKER,
            "mkdir $top/other; echo '[]' > $top/other/daemon.json; mount --bind $top/other $top/etc/docker",
            "etc/docker",
            FORGET,
        ),
        (
            DOCKER,
            "mkdir -p $top/other/daemon.json; mount --bind $top/other $top/etc/docker",
            "etc/docker",
            FORGET,
        ),
        (
            DOCKER,
            "mkdir $top/other; ln -s /no $top/other/daemon.json; mount --bind $top/other $top/etc/docker",
            "etc/docker",
            FORGET,
        ),
        (
            "true",
            "mount --bind /dev/null $top/etc/containerd/config.toml",
            "etc/containerd/config.toml",
            "true",
        ),
        // The drop-in of the worker's unit is rocworker's own file.
        (
            "true",
            "mkdir $top/other; mount --bind $top/other $top/etc/systemd/system",
            "etc/systemd/system",
            "true",
        ),
    ] {
        let (laid, program, _) = machine();
        let said = inside(
            &laid,
            &program,
            &format!(
                r#"
                wrapper={WRAPPER}
                rw "$@" apply > /dev/null
                {name_it}
                cp -a $top/usr $top/usr.was; cp -a $top/etc/cdi $top/cdi.was
                {hide}
                rw "$@" undo --dry-run; echo undone; rw "$@" undo
                diff -r --no-dereference $top/usr $top/usr.was && diff -r $top/etc/cdi $top/cdi.was && echo "nothing was changed"
                echo off; echo 'compute-runtime: none' >> $top/etc/rocworker/config.yaml; rw "$@" apply
                cmp $top/{WRAPPER} $top/usr.was/${{wrapper#usr}} && echo "the wrapper stays"
                umount $top/{shown}
                {forget_it}
                echo seen; rw "$@" undo; find $top/usr -name runc-amd-wrapper
                "#
            ),
        );
        let (hidden, seen) = said.split_once("seen\n").unwrap();
        let (undone, off) = hidden.split_once("off\n").unwrap();
        let (planned, undone) = undone.split_once("undone\n").unwrap();
        let part = format!("/{shown} since the last apply hides this file: umount ");
        assert!(planned.contains(&part), "{shown}: {said}");
        assert!(undone.contains(&part) && undone.contains("code 1"), "{shown}: {said}");
        assert!(undone.contains("Nothing was reverted.\n"), "{shown}: {said}");
        assert!(undone.ends_with("nothing was changed\n"), "{shown}: {said}");
        assert!(off.contains(&part) && off.ends_with("the wrapper stays\n"), "{shown}: {said}");
        assert!(!seen.contains("code") && !seen.contains("runc-amd-wrapper\n"), "{shown}: {said}");
    }
}

/// A file that rocworker does not manage: nothing in the receipt says that it was there.
#[test]
fn real_undo_keeps_the_wrapper_while_a_mount_hides_a_folder_in_which_an_unmanaged_file_may_name_it() {
    if !real::require_root(&["unshare", "mount"]) {
        return;
    }
    const RUNTIME: &str = "/usr/local/lib/rocworker/runc-amd-wrapper";
    let drop_in = format!("[Service]\nExecStart=\nExecStart=/usr/bin/dockerd --add-runtime gpu={RUNTIME}");
    let podmans = format!("[engine.runtimes]\ngpu = [\"{RUNTIME}\"]");
    for (folder, file, text) in [
        ("etc/systemd/system/docker.service.d", "x.conf", &drop_in),
        ("etc/systemd/system/service.d", "x.conf", &drop_in),
        ("etc/containers", "containers.conf", &podmans),
        ("etc/containers/containers.conf.d", "x.conf", &podmans),
    ] {
        let (laid, program, _) = machine();
        let said = inside(
            &laid,
            &program,
            &format!(
                r#"
                mkdir -p $top/usr/lib/systemd/system $top/{folder} $top/proc/sys/kernel/random
                echo 5ca1ab1e > $top/proc/sys/kernel/random/boot_id
                printf '[Service]\nExecStart=/usr/bin/dockerd\n' > $top/usr/lib/systemd/system/docker.service
                cat > $top/{folder}/{file} <<'END'
{text}
END
                rw "$@" apply > /dev/null
                mount -t tmpfs none $top/{folder}
                rw "$@" status > /dev/null
                echo planned; rw "$@" undo --dry-run
                echo off; echo 'compute-runtime: none' >> $top/etc/rocworker/config.yaml; rw "$@" apply
                echo undone; rw "$@" undo
                test -x $top/{WRAPPER} && echo "the wrapper stays"
                umount $top/{folder}
                echo seen; rw "$@" undo
                test -x $top/{WRAPPER} && echo "named"
                echo forgotten; rm $top/{folder}/{file}; rw "$@" undo; find $top/usr -name runc-amd-wrapper
                "#
            ),
        );
        let part = format!("/{folder}; correct that");
        let (hidden, seen) = said.split_once("seen\n").unwrap();
        let (seen, forgotten) = seen.split_once("forgotten\n").unwrap();
        let (planned, off) = hidden.split_once("off\n").unwrap();
        let (off, undone) = off.split_once("undone\n").unwrap();
        assert!(planned.contains(&part) && off.contains(&part), "{folder}: {said}");
        assert!(undone.contains(&part) && undone.contains("code 1"), "{folder}: {said}");
        assert!(undone.ends_with("the wrapper stays\n"), "{folder}: {said}");
        assert!(
            seen.contains(file) && seen.contains("code 1") && seen.ends_with("named\n"),
            "{folder}: {said}"
        );
        assert!(!forgotten.contains("code") && !forgotten.contains("runc-amd-wrapper\n"), "{folder}: {said}");
    }
}

/// A file system that was there at the first apply hides nothing, and is missed once it has gone.
#[test]
fn real_a_mount_of_the_first_apply_hides_nothing_and_is_asked_for_once_it_has_gone() {
    if !real::require_root(&["unshare", "mount"]) {
        return;
    }
    let (laid, program, _) = machine();
    let said = inside(
        &laid,
        &program,
        &format!(
            r#"
            mkdir -p $top/proc/sys/kernel/random; echo 5ca1ab1e > $top/proc/sys/kernel/random/boot_id
            mkdir -p $top/etc/containers $top/other; mount --bind $top/other $top/etc/containers
            rw "$@" apply > /dev/null
            umount $top/etc/containers
            rw "$@" undo
            test -x $top/{WRAPPER} && echo "the wrapper stays"
            echo mounted; mount --bind $top/other $top/etc/containers
            rw "$@" undo; find $top/usr -name runc-amd-wrapper
            umount $top/etc/containers
            "#
        ),
    );
    let (away, again) = said.split_once("mounted\n").unwrap();
    assert!(
        away.contains("/etc/containers at the first apply: mount it") && away.contains("code 1"),
        "{said}"
    );
    assert!(away.ends_with("the wrapper stays\n"), "{said}");
    assert!(!again.contains("code") && !again.contains("runc-amd-wrapper\n"), "{said}");
}

/// An earlier version looked at fewer places at its first apply, and remembers that nothing was mounted there.
#[test]
fn real_a_mount_on_which_the_first_apply_wrote_hides_nothing_whatever_an_older_memory_says() {
    if !real::require_root(&["unshare", "mount"]) {
        return;
    }
    for (is_older, expected) in [(true, ""), (false, "umount ")] {
        let (laid, program, _) = machine();
        // The second time the file system comes later: then it may hide something.
        let [before, later] = if is_older { [OVER, "true"] } else { ["true", OVER] };
        let said = inside(
            &laid,
            &program,
            &format!(
                r#"
                mkdir -p $top/proc/sys/kernel/random; echo 5ca1ab1e > $top/proc/sys/kernel/random/boot_id
                cp -a $top/etc $top/other
                {before}
                rw "$@" apply > /dev/null
                {later}
                sed -z -i 's/"mounts": \[[^]]*\]/"mounts": []/' $top/var/lib/rocworker/memory.json
                grep -c '"mounts": \[\]' $top/var/lib/rocworker/memory.json
                rw "$@" undo
                umount $top/etc
                "#
            ),
        );
        assert!(said.starts_with("1\n"), "{said}");
        assert_eq!(said.contains("umount "), !expected.is_empty(), "{is_older}: {said}");
        assert_eq!(said.contains("code 1"), !is_older, "{is_older}: {said}");
    }
}

const OVER: &str = "mount --bind $top/other $top/etc";

/// What an image had mounted while it was built says nothing of the machine that it becomes, and /run is new at each boot.
#[test]
fn real_an_image_is_undone_on_the_machine_that_it_became() {
    if !real::require_root(&["unshare", "mount"]) {
        return;
    }
    for boots in
        ["", "mkdir -p $top/proc/sys/kernel/random; echo 5ca1ab1e > $top/proc/sys/kernel/random/boot_id"]
    {
        let (laid, program, _) = machine();
        let said = inside(
            &laid,
            &program,
            &format!(
                r#"
                {boots}
                rw "$@" apply > /dev/null
                mkdir -p $top/run; mount -t tmpfs none $top/run
                rw "$@" undo; find $top/usr -name runc-amd-wrapper
                umount $top/run
                "#
            ),
        );
        assert!(!said.contains("code") && !said.contains("runc-amd-wrapper\n"), "{boots}: {said}");
    }
}
