//! Installed, upgraded, downgraded, removed and purged, with apply on and off.

use crate::packages::debian::worker::{
    CONFIG, RECEIPT, RULES, STOPPED, SYSTEMCTL_SAID, Worker, on, on_each, same,
};

/// Left out of comparisons: it remembers which builds of programs were run, and an upgrade brings another wrapper.
const MEMORY: &str = "var/lib/rocworker/memory.json";
/// Where `systemctl enable` puts links.
const WANTS: &str = "/etc/systemd/system/multi-user.target.wants";

#[test]
fn real_installing_and_removing_touches_the_packages_own_files_alone() {
    for (system, worker) in on_each() {
        worker.machine.call(&["mkdir", "-p", WANTS]).well();
        let before = worker.written();
        worker.install();
        worker.is_whole(system);
        let own = worker.dpkg(&["--listfiles", "rocworker"]).well();
        let own: Vec<&str> = own.lines().map(|path| path.trim_start_matches('/')).collect();
        let now = worker.written();
        let strange: Vec<_> = now
            .paths()
            .filter(|path| now.get(path) != before.get(path) && !own.contains(&path.to_str().unwrap()))
            .filter(|path| before.get(path).is_none())
            .collect();
        assert!(strange.is_empty(), "{system}: {strange:?}");
        assert_eq!(worker.dpkg(&["--verify", "rocworker"]).well(), "", "{system}");

        // Twice, and another version in its place: nothing is applied that was not.
        worker.install();
        worker.dpkg(&["--install", &worker.deb_of("9.0-1")]).well();
        worker.dpkg(&["--install", "--force-downgrade", &worker.deb()]).well();
        same(&worker.written(), &now, system);
        // As systemctl enable does it, whoever asked for that.
        let unit = "/usr/lib/systemd/system/rocworker-boot.service";
        worker.machine.call(&["ln", "-s", unit, WANTS]).well();
        worker.dpkg(&["--remove", "rocworker"]).well();
        worker.is("deinstall ok config-files");
        same(&worker.written(), &before, system);
        worker.install();
        worker.dpkg(&["--purge", "rocworker"]).well();
        same(&worker.written(), &before, system);
    }
}

#[test]
fn real_an_upgrade_keeps_what_is_configured_and_applies_again_where_it_was() {
    for (system, worker) in on_each() {
        worker.install();
        worker.machine.put(CONFIG, "permissions: render\n");
        worker.apply();
        let receipt = worker.machine.text(RECEIPT).unwrap();
        worker.machine.call(&["rm", SYSTEMCTL_SAID]).well();
        let now = worker.written().without(&[MEMORY]);
        worker.dpkg(&["--install", &worker.deb_of("9.0-1")]).well();
        worker.is_whole(system);
        same(&worker.written().without(&[MEMORY]), &now, system);
        assert_eq!(worker.machine.text(RECEIPT).unwrap(), receipt, "{system}");
        // The new program takes the old one's place where it runs, and no engine is touched for that.
        let asked = worker.machine.text(SYSTEMCTL_SAID).unwrap();
        assert!(asked.contains("rocworker.service") && !asked.contains("containerd"), "{system}: {asked}");

        // What this version makes of the configuration is another thing: brought about by up- and downgrade alike.
        for (package, rights, mode) in
            [(worker.deb_of("10.0-1"), "open", "0666"), (worker.deb_of("9.0-1"), "render", "0660")]
        {
            worker.machine.put(CONFIG, format!("permissions: {rights}\n"));
            let said = worker.dpkg(&["--install", "--force-downgrade", &package]).well();
            assert!(said.contains("made for this version"), "{system}: {said}");
            assert!(worker.machine.text(RULES).unwrap().contains(mode), "{system}: {rights}");
            worker.is_whole(system);
            worker.rocworker(&["status"]).well();
        }
        same(&worker.written().without(&["var/lib/rocworker"]), &now.without(&["var/lib/rocworker"]), system);

        // A configuration that is wrong is no reason for dpkg to stop, and none to change anything.
        worker.machine.put(CONFIG, "permisions: open\n");
        let now = worker.written().without(&[MEMORY]);
        let said = worker.dpkg(&["--install", &worker.deb_of("11.0-1")]);
        assert!(said.stderr.contains("the machine stays as the last version left it"), "{system}: {said:?}");
        said.well();
        same(&worker.written().without(&[MEMORY]), &now, system);
    }
}

/// The package's scripts name no configuration: what another one withholds is not given by an upgrade.
#[test]
fn real_an_upgrade_goes_by_the_configuration_of_the_last_apply() {
    for (system, worker) in on_each() {
        worker.install();
        worker.machine.put("root/other.yaml", "permissions: open\nwrapper: {requests: deny}\n");
        worker.rocworker(&["--config", "/root/other.yaml", "apply"]).well();
        let now = worker.written().without(&[MEMORY]);
        worker.dpkg(&["--install", &worker.deb_of("9.0-1")]).well();
        worker.is_whole(system);
        same(&worker.written().without(&[MEMORY]), &now, system);
        worker.machine.call(&["rm", "/root/other.yaml"]).well();
        let now = worker.written().without(&[MEMORY]);
        let said = worker.dpkg(&["--install", &worker.deb_of("10.0-1")]);
        assert!(said.stderr.contains("other.yaml"), "{system}: {said:?}");
        said.well();
        same(&worker.written().without(&[MEMORY]), &now, system);
    }
}

/// Somebody wanted the CDI spec, and no worker.
#[test]
fn real_an_upgrade_makes_no_worker_of_a_machine_with_a_spec_alone() {
    for (system, worker) in on_each() {
        worker.install();
        worker.rocworker(&["cdi", "generate"]).well();
        let now = worker.written();
        assert!(worker.machine.text("/etc/cdi/amd.json").is_some());
        worker.dpkg(&["--install", &worker.deb_of("9.0-1")]).well();
        worker.is_whole(system);
        same(&worker.written(), &now, system);
    }
}

/// The program that runs would take back what the new one writes.
#[test]
fn real_an_upgrade_stops_the_daemon_while_it_brings_its_own_about() {
    let Some(worker) = on("trixie") else { return };
    worker.install();
    worker.machine.put(CONFIG, "restart: now\n");
    worker.apply();
    let upgraded = |package: &str| {
        worker.machine.call(&["rm", "-f", SYSTEMCTL_SAID]).well();
        worker.dpkg(&["--install", "--force-downgrade", package]).well();
        worker.is_whole(package);
        assert!(worker.machine.text(STOPPED).is_none());
        worker.machine.text(SYSTEMCTL_SAID).unwrap()
    };
    let place = |asked: &str, call: &str| {
        asked.lines().position(|line| line.ends_with(call)).unwrap_or_else(|| panic!("no {call}: {asked}"))
    };
    // What this version makes of the configuration is another thing: containerd is told nothing any more.
    worker.machine.put(CONFIG, "restart: now\ncontainerd: {configure: never}\n");
    let asked = upgraded(&worker.deb_of("9.0-1"));
    let [stopped, renewed, started] =
        ["stop rocworker.service", "restart containerd.service", " start rocworker.service"]
            .map(|call| place(&asked, call));
    assert!(stopped < renewed && renewed < started, "{asked}");

    // The daemon did not run: nobody starts it.
    worker.machine.put("/run/lab/inactive", "");
    let asked = upgraded(&worker.deb_of("10.0-1"));
    assert!(
        !asked.contains(" start rocworker.service") && !asked.contains("stop rocworker.service"),
        "{asked}"
    );
    // An upgrade that was killed had stopped it.
    worker.machine.put(STOPPED, "rocworker.service\n");
    place(&upgraded(&worker.deb_of("11.0-1")), " start rocworker.service");
}

#[test]
fn real_removing_gives_the_machine_back_and_purging_forgets_it() {
    for (system, worker) in on_each() {
        worker.install();
        worker.machine.put(CONFIG, "permissions: open\n");
        // The system that this one is a copy of may have it.
        const STATE: &[&str] = &["var/lib/rocworker"];
        let before = worker.written().without(STATE);
        for way in ["--remove", "--purge"] {
            worker.apply();
            worker.machine.call(&["rm", SYSTEMCTL_SAID]).well();
            worker.dpkg(&[way, "rocworker"]).well();
            worker.names_nothing_that_is_gone(system);
            assert!(worker.machine.text(RECEIPT).is_none(), "{system} {way}");
            // What the user configured and what happened here stay until the purge.
            let stays = way == "--remove";
            assert_eq!(worker.machine.text(CONFIG).is_some(), stays, "{system} {way}");
            assert_eq!(
                worker.machine.text("/var/lib/rocworker/history.json").is_some(),
                stays,
                "{system} {way}"
            );
            worker.install();
            if way == "--purge" {
                assert!(!worker.machine.outside("/var/lib/rocworker").exists(), "{system}");
                worker.machine.put(CONFIG, "permissions: open\n");
            }
            // Installed again, nothing is applied by itself.
            same(&worker.written().without(STATE), &before, &format!("{system} {way}"));
        }
        let asked = worker.machine.text(SYSTEMCTL_SAID).unwrap();
        // The daemon would put right what is reverted.
        let at = |call: &str| asked.find(call).unwrap_or_else(|| panic!("{system}: no {call}: {asked}"));
        assert!(at("stop rocworker.service") < at("try-restart containerd.service"), "{system}: {asked}");
        assert!(!asked.contains("stop rocworker-boot.service"), "{system}: {asked}");
    }
}

/// apt tells dpkg first what it wants, and then does it in several runs.
#[test]
fn real_apt_installs_upgrades_removes_and_purges_it() {
    for (system, worker) in on_each() {
        worker.apt(&["install", &worker.deb()]);
        worker.is_whole(system);
        worker.apply();
        worker.apt(&["install", &worker.deb_of("9.0-1")]);
        assert!(worker.machine.text(RECEIPT).is_some(), "{system}");
        worker.apt(&["remove", "rocworker"]);
        worker.names_nothing_that_is_gone(system);
        worker.apt(&["install", &worker.deb()]);
        assert!(
            worker.machine.text(RECEIPT).is_none(),
            "{system}: an apply that was taken back is not repeated"
        );
        worker.apply();
        worker.apt(&["purge", "rocworker"]);
        worker.names_nothing_that_is_gone(system);
        assert!(!worker.machine.outside("/var/lib/rocworker").exists(), "{system}");
    }
}

impl Worker {
    #[track_caller]
    fn apt(&self, arguments: &[&str]) {
        self.machine
            .apt_get(&[&["-o", "Dpkg::Use-Pty=0", "--no-install-recommends"], arguments].concat())
            .well();
    }
}
