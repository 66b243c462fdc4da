//! A machine without rocworker gets a copy of this program once, and the copy runs only if nobody else can have written it.

use std::process::Stdio;

use layout::Machine as Laid;
use support::machines::{self, Fleet, Machine, Shell, Sudo};
use support::real;
use support::said::Said;
use support::waiting::eventually;

use crate::fleet::asker::PROGRAM;

/// The asker's program without what a debugger needs, as a release has none.
const STRIPPED: &str = "/root/rocworker";

fn asker() -> Option<Fleet> {
    let fleet = (machines::require() && real::require(&["strip"])).then(Fleet::new)?;
    fleet.run(&["strip", "-o", STRIPPED, PROGRAM]).well();
    Some(fleet)
}

fn detects(fleet: &Fleet, host: &str) -> Said {
    fleet.run(&[STRIPPED, "--host", host, "-o", "json", "detect"])
}

/// The one sentence of an error.
#[track_caller]
fn refused(fleet: &Fleet, host: &str) -> String {
    let said = detects(fleet, host);
    assert_eq!((said.status.code(), &*said.stdout), (Some(1), ""), "{said:?}");
    let lines: Vec<&str> =
        said.stderr.lines().filter(|line| !line.contains("copying this rocworker")).collect();
    let start = format!("rocworker: {host}: ");
    assert!(lines.len() == 1 && lines[0].starts_with(&start), "{said:?}");
    lines[0].trim_start_matches(&start).to_owned()
}

/// The names in the cache folder of root.
fn cached(machine: &Machine<'_>) -> Vec<String> {
    machine.shell("ls -A /root/.cache/rocworker").well().lines().map(str::to_owned).collect()
}

#[test]
fn real_a_copy_is_made_once_kept_private_and_replaces_older_ones() {
    let Some(fleet) = asker() else { return };
    for (name, shell) in [("gpu1", Shell::Dash), ("gpu2", Shell::Busybox)] {
        let machine = fleet.machine(name, |m| {
            m.laid(Laid::instinct(2, 1)).shell(shell).prepare(
                "mkdir -m 700 /root/.cache /root/.cache/rocworker; cd /root/.cache/rocworker
                 old=rocworker-$(printf %064d 7); echo old > $old; echo part > .$old.7; echo new > rocworker-$(printf %064d 8)
                 touch -t 202001010000 $old .$old.7; touch rocworker-thesis.tex",
            )
        });
        let first = detects(&fleet, name);
        let copying = format!("{name}: copying this rocworker to /root/.cache/rocworker (");
        assert!(first.stderr.starts_with(&copying), "{first:?}");
        assert!(first.clone().well().contains("\"usable\": true"), "{first:?}");
        let second = detects(&fleet, name);
        assert_eq!((second.stdout, &*second.stderr), (first.stdout, ""));
        let mut names = cached(&machine);
        names.retain(|name| name != "rocworker-thesis.tex" && *name != format!("rocworker-{:064}", 8));
        assert!(names.len() == 1 && names[0].len() == "rocworker-".len() + 64, "{names:?}");
        let modes = machine
            .shell(&format!("stat -c '%a %U' /root/.cache/rocworker /root/.cache/rocworker/{}", names[0]))
            .well();
        assert_eq!(modes, "700 root\n700 root\n");
    }
}

#[test]
fn real_a_login_without_root_has_its_own_copy_and_sudo_runs_it() {
    let Some(fleet) = asker() else { return };
    let gpu1 = fleet.machine("gpu1", |m| {
        m.laid(Laid::instinct(1, 1))
            .user("ops", Sudo::NoPassword)
            .user("guest", Sudo::No)
            .prepare("mkdir /srv/cache; chmod 3777 /srv/cache; chmod 700 /home/ops")
            .sshd("SetEnv XDG_CACHE_HOME=/srv/cache")
    });
    detects(&fleet, "ops@gpu1").well();
    assert_eq!(gpu1.shell("stat -c '%a %U' /srv/cache/rocworker/*").well(), "700 ops\n");
    let not_guests = "/srv/cache/rocworker is not a folder of guest alone (mode 0700, no link): find out who made it, and remove it";
    assert_eq!(refused(&fleet, "guest@gpu1"), not_guests);
    gpu1.shell("rm -r /srv/cache/rocworker").well();
    let said = detects(&fleet, "guest@gpu1");
    let why = "guest@gpu1: data that only root can read is unknown, such as the kernel's log: `sudo -n` failed for guest (sudo: ";
    assert!(said.stderr.contains(why) && said.status.success(), "{said:?}");
    assert_eq!(gpu1.shell("stat -c '%a %U' /srv/cache/rocworker/*").well(), "700 guest\n");
}

/// sudo may start a program from another folder, which somebody else has.
#[test]
fn real_sudo_that_changes_the_folder_runs_the_checked_copy() {
    let Some(fleet) = asker() else { return };
    let gpu1 = fleet.machine("gpu1", |m| {
        m.laid(Laid::instinct(1, 1))
            .user("ops", Sudo::NoPassword)
            .prepare("mkdir -m 1777 /srv/open; echo 'Defaults runcwd=/srv/open' > /etc/sudoers.d/folder")
    });
    let first = detects(&fleet, "ops@gpu1").well();
    gpu1.shell(
        "name=$(basename /home/ops/.cache/rocworker/*)
         printf '#!/bin/sh\\necho planted\\n' > /srv/open/$name; chmod 755 /srv/open/$name",
    )
    .well();
    let said = detects(&fleet, "ops@gpu1");
    assert_eq!((&*said.stdout, &*said.stderr), (&*first, ""), "root runs what was checked");
}

#[test]
fn real_a_copy_or_folder_of_somebody_else_is_not_run() {
    let Some(fleet) = asker() else { return };
    let gpu1 = fleet.machine("gpu1", |m| m.laid(Laid::instinct(1, 1)).user("guest", Sudo::No));
    detects(&fleet, "gpu1").well();
    let name = cached(&gpu1).remove(0);
    let [folder, file] = ["/root/.cache/rocworker".to_owned(), format!("/root/.cache/rocworker/{name}")];
    let not_a_file = format!(
        "{file} is not a file of root alone (mode 0700, no link): find out who made it, and remove it"
    );
    let not_a_folder = format!(
        "{folder} is not a folder of root alone (mode 0700, no link): find out who made it, and remove it"
    );
    let changed = format!(
        "{file} is not the program that rocworker copied there: find out who changed it, and remove it"
    );
    for (spoil, mend, sentence) in [
        ("printf x >> FILE", "rm FILE", &changed),
        (": > FILE", "rm FILE", &changed),
        ("chmod 770 FILE", "rm FILE", &not_a_file),
        ("chown guest FILE", "rm FILE", &not_a_file),
        ("mv FILE /root/x; ln -s /root/x FILE", "rm FILE /root/x", &not_a_file),
        ("rm FILE; ln -s /nowhere FILE", "rm FILE", &not_a_file),
        ("rm FILE; mkdir -m 700 FILE", "rmdir FILE", &not_a_file),
        ("chmod 777 FOLDER", "chmod 700 FOLDER", &not_a_folder),
        ("chown guest FOLDER", "chown root FOLDER", &not_a_folder),
        ("mv FOLDER /root/f; ln -s /root/f FOLDER", "rm FOLDER; mv /root/f FOLDER", &not_a_folder),
    ] {
        let [spoil, mend] = [spoil, mend].map(|it| it.replace("FILE", &file).replace("FOLDER", &folder));
        gpu1.shell(&spoil).well();
        assert_eq!(refused(&fleet, "gpu1"), *sentence, "{spoil}");
        gpu1.shell(&mend).well();
        detects(&fleet, "gpu1").well();
    }
}

#[test]
fn real_a_machine_that_cannot_take_or_run_a_copy_says_why() {
    let Some(fleet) = asker() else { return };
    let elsewhere = "install rocworker's package there, or set XDG_CACHE_HOME for root to another folder";
    let uname = "printf '#!/bin/sh\\necho aarch64\\n' > /usr/local/bin/uname; chmod 755 /usr/local/bin/uname";
    let mounted =
        |options: &str| format!("mkdir /root/.cache; mount -t tmpfs -o {options} none /root/.cache");
    for (name, prepare, start, end) in [
        (
            "arm",
            uname.to_owned(),
            "its processor is aarch64, and this rocworker is for x86_64: ",
            "install rocworker's package for it there",
        ),
        (
            "readonly",
            mounted("ro"),
            "rocworker cannot make the folder /root/.cache/rocworker (mkdir: cannot create directory ",
            elsewhere,
        ),
        (
            "full",
            mounted("size=1m"),
            "rocworker cannot be copied to /root/.cache/rocworker (gzip: ",
            elsewhere,
        ),
        (
            "noexec",
            mounted("noexec"),
            "rocworker cannot be executed there, maybe from a file system mounted noexec: ",
            "install its package there, or set XDG_CACHE_HOME for ssh's user to another folder",
        ),
    ] {
        let machine = fleet.machine(name, |m| m.prepare(&prepare));
        let said = if name == "noexec" {
            let said = detects(&fleet, name);
            assert_eq!(said.status.code(), Some(1), "{said:?}");
            said.stderr.lines().last().unwrap().trim_start_matches("rocworker: noexec: ").to_owned()
        } else {
            refused(&fleet, name)
        };
        assert!(said.starts_with(start) && said.ends_with(end), "{name}: {said}");
        if name == "full" {
            assert_eq!(cached(&machine), [""; 0], "a part stays");
        }
    }
}

#[test]
fn real_two_at_once_and_one_that_is_killed_leave_a_whole_copy() {
    let Some(fleet) = asker() else { return };
    let gpu1 = fleet.machine("gpu1", |m| m.laid(Laid::instinct(1, 1)));
    let start = || {
        let mut command = fleet.command(&[STRIPPED, "--host", "gpu1", "detect"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let mut killed = start();
    eventually("it is copied", || {
        gpu1.shell("ls -A /root/.cache/rocworker").stdout.starts_with(".rocworker-")
    });
    killed.kill().unwrap();
    killed.wait().unwrap();
    let mut both = [start(), start()];
    for asked in &mut both {
        assert!(asked.wait().unwrap().success());
    }
    detects(&fleet, "gpu1").well();
    eventually("parts are gone", || cached(&gpu1).len() == 1);
}
