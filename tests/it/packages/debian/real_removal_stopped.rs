//! A removal that would leave something dangling, or forget what came: it stops with a sentence, and goes on once that is
//! put right.

use lab::key::Key;
use lab::package::Package;
use lab::repository::Repository;
use lab::server::Server;

use crate::packages::debian::worker::{
    CONFIG, RECEIPT, RULES, STOPPED, SYSTEMCTL_SAID, WRAPPER, Worker, on, same,
};

/// What hinders a removal, what takes the hindrance away, and what is said.
struct Hindrance {
    name: &'static str,
    put: fn(&Worker),
    right: fn(&Worker),
    said: &'static [&'static str],
}

const HINDRANCES: [Hindrance; 6] = [
    Hindrance {
        name: "an owned file that somebody has changed",
        put: |worker| worker.machine.put(RULES, "# mine\n"),
        right: |worker| {
            worker.rocworker(&["undo", "--force"]).well();
        },
        said: &[
            "rocworker undo --force reverts it",
            "Package kept; nothing was reverted",
            "then remove it again",
        ],
    },
    Hindrance {
        name: "a file of another's that names the wrapper",
        put: |worker| {
            worker.machine.put("/etc/containers/containers.conf", format!("runtimes = \"{WRAPPER}\"\n"))
        },
        right: |worker| {
            worker.machine.call(&["rm", "/etc/containers/containers.conf"]).well();
        },
        said: &["Package kept; nothing was reverted. Correct what is listed above, then remove it again"],
    },
    Hindrance {
        name: "a unit of docker's that names the wrapper",
        put: |worker| {
            let start = format!("[Service]\nExecStart=/usr/sbin/dockerd --add-runtime amd={WRAPPER}\n");
            worker.machine.put("/etc/systemd/system/docker.service", start);
        },
        right: |worker| {
            worker.machine.call(&["rm", "/etc/systemd/system/docker.service"]).well();
        },
        said: &["Package kept; nothing was reverted. Correct what is listed above, then remove it again"],
    },
    Hindrance {
        name: "a container that runs by the wrapper",
        put: |worker| worker.machine.put(BUNDLE_FILE, format!("{{\"binary_name\":\"{WRAPPER}\"}}")),
        right: |worker| {
            worker.machine.call(&["rm", "-r", BUNDLE]).well();
        },
        said: &["the package stays", "container c1 runs by it", "stop it; then remove it again"],
    },
    Hindrance {
        name: "containerd that is not restarted",
        put: |worker| worker.machine.put(CONFIG, "restart: never\n"),
        right: |worker| {
            worker.machine.put(CONFIG, "restart: now\n");
            worker.rocworker(&["undo"]).well();
        },
        said: &["Package kept; nothing was reverted", "`restart` does not allow restarting"],
    },
    Hindrance {
        name: "a daemon that the machine's policy keeps from being stopped",
        put: |worker| {
            worker.machine.put_script("/usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n");
            let serve =
                "rocworker serve >/dev/null 2>&1 & until [ -S /run/rocworker/daemon.sock ]; do :; done";
            worker.machine.call(&["sh", "-c", serve]).well();
        },
        right: |worker| {
            let end = "for it in /proc/[0-9]*; do case $(readlink $it/exe) in /usr/bin/rocworker*) kill ${it#/proc/} ;; \
                       esac; done";
            worker.machine.call(&["sh", "-c", end]).well();
        },
        said: &[
            "policy-rc.d returned 101",
            "rocworker serve runs still, as process ",
            "systemctl stop rocworker.service, or kill ",
            "then remove it again",
        ],
    },
];

const BUNDLE: &str = "/run/containerd/io.containerd.runtime.v2.task/k8s.io/c1";
const BUNDLE_FILE: &str = "/run/containerd/io.containerd.runtime.v2.task/k8s.io/c1/options.json";

#[test]
#[ignore = "cargo xtask test --all"]
fn real_a_removal_stops_where_something_would_dangle() {
    let Some(worker) = on("trixie") else { return };
    for Hindrance { name, put, right, said } in HINDRANCES {
        worker.machine.call(&["rm", "-f", CONFIG]).well();
        worker.install();
        worker.apply();
        put(&worker);
        let before = worker.written().without(&["run", "var/lib/rocworker/lock"]);
        for way in ["--remove", "--purge"] {
            let ended = worker.dpkg(&[way, "rocworker"]);
            let words = ended.stdout.clone() + &ended.badly();
            for part in said {
                let part = if way == "--purge" {
                    part.replace("then remove it", "then purge it")
                } else {
                    (*part).to_owned()
                };
                assert!(words.contains(&part), "{name} {way}: {part:?} in {words}");
            }
            worker.machine.outside(WRAPPER).metadata().unwrap();
            worker.names_nothing_that_is_gone(name);
            worker.dpkg(&["--configure", "-a"]).well();
            worker.is_whole(name);
            let after = worker.written().without(&["run", "var/lib/rocworker/lock"]);
            same(&after, &before, &format!("{name} {way}: before anything was taken back"));
        }
        right(&worker);
        worker.dpkg(&["--remove", "rocworker"]).well();
        worker.names_nothing_that_is_gone(name);
    }
}

/// Its owner's word on what runs counts for more than a removal that came to nothing.
#[test]
fn real_a_removal_that_stops_starts_what_it_has_stopped_and_nothing_else() {
    let Some(worker) = on("trixie") else { return };
    worker.install();
    for (runs, before) in [(true, ""), (false, ""), (false, "rocworker.service\n")] {
        worker.apply();
        worker.machine.put(RULES, "# mine\n");
        worker.machine.call(&["rm", "-f", "/run/lab/inactive", STOPPED]).well();
        if !runs {
            worker.machine.put("/run/lab/inactive", "");
        }
        // What an upgrade has noted that was killed after it had stopped it.
        if !before.is_empty() {
            worker.machine.put(STOPPED, before);
        }
        worker.machine.call(&["rm", "-f", SYSTEMCTL_SAID]).well();
        worker.dpkg(&["--remove", "rocworker"]).badly();
        let asked = worker.machine.text(SYSTEMCTL_SAID).unwrap();
        let starts = asked.lines().any(|line| line.ends_with(" start rocworker.service"));
        assert_eq!(starts, runs || !before.is_empty(), "{runs} {before:?}: {asked}");
        assert_eq!(worker.machine.text(STOPPED), None, "{runs} {before:?}");
        worker.rocworker(&["undo", "--force"]).well();
    }
    worker.machine.call(&["rm", "-f", "/run/lab/inactive"]).well();
    worker.dpkg(&["--remove", "rocworker"]).well();
    assert_eq!(worker.machine.text(STOPPED), None, "nothing of it is left to be started");
}

/// The package's other versions, and the daemon, take nothing of it up again.
#[test]
fn real_what_an_undo_has_taken_back_in_part_stays_so() {
    let Some(worker) = on("trixie") else { return };
    worker.install();
    worker.apply();
    worker.machine.put(RULES, "# mine\n");
    worker.rocworker(&["undo"]).badly();
    let left = worker.written();
    assert!(left.get("etc/cdi/amd.json").is_none() && left.get(&RULES[1..]).is_some());
    for package in [worker.deb_of("9.0-1"), worker.deb()] {
        let said = worker.dpkg(&["--install", "--force-downgrade", &package]).well();
        assert!(said.contains("rocworker was undone here. `rocworker apply` configures it again."), "{said}");
        same(&worker.written(), &left, &package);
    }
    worker.apply();
    worker.rocworker(&["undo", "--force"]).well();
}

/// A receipt that the program cannot be asked about any more.
#[test]
fn real_without_its_program_the_package_stays_while_a_receipt_stands() {
    let Some(worker) = on("trixie") else { return };
    worker.install();
    worker.apply();
    worker.machine.call(&["rm", "/usr/bin/rocworker"]).well();
    let words = worker.dpkg(&["--remove", "rocworker"]).badly();
    assert!(words.contains("apt-get install --reinstall rocworker, then remove it again"), "{words}");
    worker.install();
    worker.dpkg(&["--remove", "rocworker"]).well();
    worker.names_nothing_that_is_gone("after it was installed again");
    worker.install();
    worker.machine.call(&["rm", "/usr/bin/rocworker"]).well();
    worker.dpkg(&["--purge", "rocworker"]).well();
}

/// What came by apt cannot go while dpkg is at work: a removal leaves it with its receipt, and a purge does not forget it.
#[test]
fn real_what_came_by_apt_outlives_a_removal_and_no_purge_forgets_it() {
    let Some(worker) = on("trixie") else { return };
    let key = Key::generate("AMD's stand-in");
    let packages = vec![Package::new("rocm-smi-lib", "7.8.0.70204-1").file("/opt/rocm-7.2.4/share/it", "it")];
    let mut repository = Repository::new("repo.radeon.com", "jammy", "main").with(packages);
    let folder = repository.release(&key);
    std::fs::write(folder.join("rocm.gpg.key"), key.armored()).unwrap();
    let server = Server::start(&folder);
    let (url, fingerprint) = (server.url(), key.fingerprint());
    worker.machine.put(
        CONFIG,
        format!(
            "packages: {{rocm-smi: install}}\nrepositories:\n  key: {url}/rocm.gpg.key\n  fingerprints: [{fingerprint}]\n  \
             rocm: {{suite: jammy, url: {url}}}\n"
        ),
    );
    worker.install();
    let before = worker.written();
    worker.apply();
    let has_it = || worker.machine.package("rocm-smi-lib").is_some_and(|it| it.starts_with("install ok"));
    assert!(has_it());

    // In time: nothing was reverted when it says so.
    let applied = worker.written();
    let words = worker.dpkg(&["--purge", "rocworker"]).badly();
    assert!(words.contains("run rocworker undo; then purge it again"), "{words}");
    same(&worker.written(), &applied, "a purge that was refused");
    worker.is_whole("a purge that was refused");

    let said = worker.dpkg(&["--remove", "rocworker"]).well();
    assert!(said.contains("what came by apt stays"), "{said}");
    worker.names_nothing_that_is_gone("removed");
    assert!(has_it());
    // dpkg takes what comes after a removal for an upgrade; what was reverted stays so.
    worker.install();
    assert!(worker.machine.text(RULES).is_none());
    worker.dpkg(&["--remove", "rocworker"]).well();
    let receipt = worker.machine.text(RECEIPT).unwrap();
    let words = worker.dpkg(&["--purge", "rocworker"]).badly();
    assert!(words.contains("install rocworker again, run rocworker undo, then purge it"), "{words}");
    assert_eq!(worker.machine.text(RECEIPT), Some(receipt));
    assert!(worker.machine.text(CONFIG).is_some());

    // As it says. What is installed again applies nothing by itself.
    worker.install();
    assert!(worker.machine.text(RULES).is_none());
    worker.rocworker(&["undo"]).well();
    assert!(!has_it());
    // dpkg takes an empty /opt with it where no package holds it.
    same(&worker.written().without(&["var/lib/rocworker", "opt"]), &before, "undone");
    worker.dpkg(&["--purge", "rocworker"]).well();
    assert_eq!(worker.machine.text(CONFIG), None);
}
