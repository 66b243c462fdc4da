//! The package that the charm carries, by the charm's own dispatch and real dpkg, in a copy of this system.

use std::fs;
use std::path::Path;

use lab::lock::Holder;
use support::real;
use support::said::Said;
use support::waiting::eventually;

use crate::charm::machines::in_context;
use crate::charm::record::golden;
use crate::charm::unit::{Ran, Unit};
use crate::packages::debian::worker::{RULES, WRAPPER, Worker, file, handed_out, on, repack, same};

const AGENTS: &str = "/var/lib/juju/agents";
const CHARM: &str = "/var/lib/rocworker/charm.json";
const NOTE: &str = "/var/lib/rocworker/charm-package";
const VERSION: &str = "0.1.0-1";
const OLD_WRAPPER: &str = "/usr/local/lib/rocworker/runc-amd-wrapper";
const READY: &str = "active: Worker ready";

/// A machine with engines to which Juju deploys units.
struct Host(Worker);

impl Host {
    /// None where the calling test is to be skipped.
    #[track_caller]
    fn new() -> Option<Self> {
        real::require(&["python3", "env", "flock"]).then(|| on("this system"))?.map(Self)
    }

    /// A unit with its agent's folder, in which the charm is unpacked. `deb`: the package that the charm carries.
    fn deploy(&self, name: &str, deb: &str) -> Unit {
        let unit = Unit::in_folder(&self.0.machine.shared(), name);
        self.refresh(&unit, deb);
        unit
    }

    fn refresh(&self, unit: &Unit, deb: &str) {
        let folder = agent(unit);
        let from = handed_out(&[]).unwrap().join("charm");
        self.0
            .machine
            .put_script(&format!("{folder}/dispatch"), &fs::read_to_string(from.join("dispatch")).unwrap());
        self.0.machine.call(&["cp", deb, &format!("{folder}/rocworker.deb")]).well();
    }

    fn command(&self, unit: &Unit, path: &str) -> std::process::Command {
        unit.forget();
        in_context(&self.0.machine, unit, path, &["env", &format!("--chdir={}", agent(unit)), "./dispatch"])
    }

    fn run(&self, unit: &Unit, path: &str) -> Ran {
        let said = Said::from(self.command(unit, path).output().unwrap());
        Ran { said, calls: unit.pending() }
    }

    #[track_caller]
    fn at_once(&self, hooks: &[(&Unit, &str)]) {
        let begun: Vec<_> =
            hooks.iter().map(|(unit, path)| self.command(unit, path).spawn().unwrap()).collect();
        begun.into_iter().for_each(|mut hook| assert!(hook.wait().unwrap().success()));
    }

    #[track_caller]
    fn is_ready(&self, unit: &Unit, path: &str) {
        let status = self.run(unit, path).status();
        assert!(status.starts_with(READY), "{path}: {status}");
        self.0.is_whole(path);
    }

    #[track_caller]
    fn removes(&self, unit: &Unit) -> String {
        let told = golden(&self.run(unit, "hooks/remove").well());
        fs::remove_dir_all(self.0.machine.outside(&agent(unit))).unwrap();
        told
    }

    /// What a person may see of the charm and of what it has set up.
    fn tree(&self) -> support::tree::Tree {
        self.0.written().without(&["var/lib/rocworker", "var/lib/juju"])
    }

    fn version(&self) -> String {
        let status = self.0.machine.package("rocworker").unwrap();
        status.strip_prefix("install ok installed ").unwrap_or(&status).to_owned()
    }
}

fn agent(unit: &Unit) -> String {
    format!("{AGENTS}/unit-{}/charm", unit.name().replace('/', "-"))
}

#[test]
fn real_the_package_comes_with_the_first_unit_and_goes_with_the_last() {
    let Some(host) = Host::new() else { return };
    let before = host.tree();
    let deb = host.0.deb();
    let (first, second) = (host.deploy("rocworker/0", &deb), host.deploy("other/0", &deb));
    host.at_once(&[(&first, "hooks/install"), (&second, "hooks/install")]);
    host.is_ready(&first, "hooks/config-changed");
    assert_eq!(
        (host.version(), host.0.machine.text(NOTE).unwrap()),
        (VERSION.into(), format!("{VERSION}\n"))
    );
    assert!(host.0.machine.text("/etc/docker/daemon.json").unwrap().contains(WRAPPER));

    // A hook with nothing to do asks dpkg, and changes nothing.
    let status = || fs::metadata(host.0.machine.outside("/var/lib/dpkg/status")).unwrap().modified().unwrap();
    let at = status();
    for (unit, path) in [(&first, "hooks/update-status"), (&second, "hooks/install"), (&first, "hooks/start")]
    {
        host.is_ready(unit, path);
    }
    assert_eq!(host.run(&second, "hooks/host-relation-joined").well(), []);
    assert_eq!(status(), at);

    let told = host.removes(&first);
    assert!(told.contains("what is set up here stays: other/0 is on this machine too"), "{told}");
    host.0.is("install ok installed");
    host.is_ready(&second, "hooks/update-status");
    host.removes(&second);
    host.0.is("deinstall ok config-files");
    assert_eq!((host.0.machine.text(CHARM), host.0.machine.text(NOTE)), (None, None));
    same(&host.tree(), &before, "the units are gone");

    // A unit that has never come to install anything needs no package to go, and one that comes again has it again.
    let again = host.deploy("rocworker/1", &deb);
    host.run(&again, "hooks/remove").well();
    host.0.is("deinstall ok config-files");
    host.is_ready(&again, "hooks/install");
    // One goes while another comes.
    let next = host.deploy("rocworker/2", &deb);
    host.at_once(&[(&again, "hooks/remove"), (&next, "hooks/install")]);
    host.is_ready(&next, "hooks/update-status");
    host.removes(&next);
    host.0.is("deinstall ok config-files");
}

#[test]
fn real_somebody_elses_package_stays_and_a_newer_one_is_used() {
    let Some(host) = Host::new() else { return };
    let carried = host.0.deb();
    for (version, way, used) in [
        (VERSION, "--install", VERSION),
        ("9.0-1", "--install", "9.0-1"),
        ("9.1-1", "--unpack", "9.1-1"),
        ("0.0.1-1", "--install", VERSION),
        ("0.0.2-1", "--unpack", VERSION),
    ] {
        host.0.dpkg(&[way, &host.0.deb_of(version)]).well();
        let unit = host.deploy("rocworker/0", &carried);
        host.is_ready(&unit, "hooks/install");
        assert_eq!(host.version(), used, "{version}");
        let told = host.removes(&unit);
        assert!(told.contains(&format!("rocworker {used} stays: the charm has not installed it")), "{told}");
        host.0.is("install ok installed");
        assert!(host.0.machine.text(RULES).is_none(), "{version}");
        host.0.dpkg(&["--purge", "rocworker"]).well();
    }

    // Somebody upgrades the charm's package: it is theirs from then on.
    let unit = host.deploy("rocworker/0", &carried);
    host.is_ready(&unit, "hooks/install");
    host.0.dpkg(&["--install", &host.0.deb_of("9.0-1")]).well();
    host.removes(&unit);
    assert_eq!(host.version(), "9.0-1");
    host.0.dpkg(&["--purge", "rocworker"]).well();

    // A person has set the machine up by a program without a package: what they applied needs the package now.
    let built = handed_out(&[]).unwrap();
    for program in ["rocworker", "rocworker-exporter", "runc-amd-wrapper"] {
        host.0.machine.put_program(&built.join(program), &format!("/usr/local/bin/{program}"));
    }
    host.0.machine.call(&["/usr/local/bin/rocworker", "apply"]).well();
    let unit = host.deploy("rocworker/0", &carried);
    let status = host.run(&unit, "hooks/install").status();
    assert!(status.starts_with("blocked: Set up by rocworker apply on the machine"), "{status}");
    let told = host.removes(&unit);
    assert!(told.contains("applied without the charm"), "{told}");
    host.0.is("install ok installed");
    assert!(host.0.machine.text(RULES).is_some());
}

#[test]
fn real_a_refresh_upgrades_the_charms_package_also_to_another_build_of_one_version() {
    let Some(host) = Host::new() else { return };
    let unit = host.deploy("rocworker/0", &host.0.deb_of("0.0.1-1"));
    host.is_ready(&unit, "hooks/install");
    host.refresh(&unit, &host.0.deb());
    host.is_ready(&unit, "hooks/upgrade-charm");
    assert_eq!(host.version(), VERSION);
    let another = host.0.machine.shared().join("another.deb");
    let mark = |tree: &Path| fs::write(tree.join("usr/share/rocworker/another"), "").unwrap();
    repack(&file(&handed_out(&[]).unwrap(), ".deb"), &another, VERSION, mark);
    host.refresh(&unit, &host.0.machine.shared_name(&another));
    let is_there = || host.0.machine.outside("/usr/share/rocworker/another").exists();
    host.is_ready(&unit, "hooks/update-status");
    assert!(!is_there());
    host.is_ready(&unit, "hooks/upgrade-charm");
    assert!(is_there());
    // An earlier revision of the charm leaves what a later one has installed, and takes it away with itself.
    host.refresh(&unit, &host.0.deb_of("0.0.1-1"));
    host.is_ready(&unit, "hooks/upgrade-charm");
    assert_eq!(host.version(), VERSION);
    host.removes(&unit);
    host.0.is("deinstall ok config-files");
}

/// kill -9 of everything in each of the package's scripts.
#[test]
#[ignore = "cargo xtask test --all"]
fn real_what_a_killed_hook_leaves_is_ended_by_the_next() {
    let Some(host) = Host::new() else { return };
    let before = host.tree();
    let dies = |tree: &Path| {
        for script in ["preinst", "postinst", "prerm", "postrm"] {
            let path = tree.join("DEBIAN").join(script);
            let text = fs::read_to_string(&path).unwrap();
            let dies = format!(
                "#!/bin/sh\nif [ -e /run/lab/die-{script} ]; then rm /run/lab/die-{script}; kill -KILL -1; fi\n"
            );
            fs::write(&path, text.replacen("#!/bin/sh\n", &dies, 1)).unwrap();
        }
    };
    let (deb, newer) = (host.0.deb_with("0.1.0-2", dies), host.0.deb_with("0.1.0-3", dies));
    let killed = |unit: &Unit, path: &str, script: &str| {
        host.0.machine.put(&format!("/run/lab/die-{script}"), "");
        let said = host.command(unit, path).output().unwrap();
        assert!(!said.status.success(), "{path} {script}: {said:?}");
        host.0.machine.kill_all();
        assert!(!host.0.machine.outside(&format!("/run/lab/die-{script}")).exists(), "{path} {script}");
    };
    for script in ["preinst", "postinst"] {
        let unit = host.deploy("rocworker/0", &deb);
        killed(&unit, "hooks/install", script);
        host.is_ready(&unit, "hooks/install");
        for script in ["prerm", "preinst", "postrm", "postinst"] {
            host.refresh(&unit, &newer);
            killed(&unit, "hooks/upgrade-charm", script);
            host.is_ready(&unit, "hooks/upgrade-charm");
        }
        assert_eq!(host.version(), "0.1.0-3");
        for script in ["prerm", "postrm"] {
            killed(&unit, "hooks/remove", script);
            host.is_ready(&unit, "hooks/update-status");
        }
        host.removes(&unit);
        host.0.is("deinstall ok config-files");
        assert_eq!((host.0.machine.text(CHARM), host.0.machine.text(NOTE)), (None, None));
        same(&host.tree(), &before, script);
        host.0.dpkg(&["--purge", "rocworker"]).well();
    }
}

#[test]
fn real_a_lock_is_waited_for_and_other_peoples_half_done_packages_are_in_nobodys_way() {
    let Some(host) = Host::new() else { return };
    let other = lab::package::Package::new("rocworker-lab-other", "1.0").build(&host.0.machine.shared());
    host.0.dpkg(&["--unpack", &host.0.machine.shared_name(&other)]).well();
    let unit = host.deploy("rocworker/0", &host.0.deb());
    for path in ["hooks/install", "hooks/remove"] {
        let holder = Holder::on(&host.0.machine);
        let mut hook = host.command(&unit, path).spawn().unwrap();
        let waits = "status-set maintenance \"waiting up to 300 s for another program that has dpkg's lock\"";
        eventually("the hook waits", || golden(&unit.pending()).contains(waits));
        holder.let_go();
        assert!(hook.wait().unwrap().success(), "{path}");
    }
    host.0.is("deinstall ok config-files");
    assert_eq!(host.0.machine.text(NOTE), None);
}

#[test]
fn real_why_the_package_cannot_come_or_go_is_the_units_status() {
    let Some(host) = Host::new() else { return };
    let unit = host.deploy("rocworker/0", &host.0.deb());
    host.0.machine.leave_free(4 << 20);
    for path in ["hooks/install", "hooks/update-status"] {
        let status = host.run(&unit, path).status();
        assert!(
            status.starts_with("blocked: Installation failed: dpkg --install rocworker: dpkg: error "),
            "{status}"
        );
        assert!(status.contains("No space left on device"), "{status}");
    }
    let told = golden(&host.run(&unit, "actions/detect").well());
    assert!(
        told.contains("action-fail \"dpkg --install rocworker: ") && !told.contains("status-set"),
        "{told}"
    );
    host.0.machine.leave_free(1 << 30);
    host.is_ready(&unit, "hooks/update-status");

    // A container that runs by the wrapper could not be stopped without it.
    let bundle = "/run/containerd/io.containerd.runtime.v2.task/default/one";
    host.0.machine.put(&format!("{bundle}/runtime"), WRAPPER);
    let ran = host.run(&unit, "hooks/remove");
    ran.said.badly();
    let told = golden(&ran.calls);
    assert!(told.contains("status-set blocked \"Removal failed: dpkg --remove rocworker: "), "{told}");
    assert!(told.contains("could not be stopped without it: stop it"), "{told}");
    host.0.is_whole("nothing was removed");
    fs::remove_dir_all(host.0.machine.outside(bundle)).unwrap();
    host.removes(&unit);
    host.0.is("deinstall ok config-files");

    // The charm is not whole, or its state can be written nowhere.
    let unit = host.deploy("rocworker/0", &host.0.deb());
    let damage = || host.0.machine.put(&format!("{}/rocworker.deb", agent(&unit)), "!<arch>\n");
    damage();
    let status = host.run(&unit, "hooks/install").status();
    let why = "blocked: Installation failed: the charm's rocworker.deb cannot be read (dpkg-deb: error: ";
    assert!(status.starts_with(why), "{status}");

    // Neither a stop without the package nor a removal of one needs the charm's.
    assert_eq!(host.run(&unit, "hooks/stop").well(), []);
    host.0.is("deinstall ok config-files");
    host.refresh(&unit, &host.0.deb());
    host.is_ready(&unit, "hooks/install");
    damage();
    host.removes(&unit);
    host.0.is("deinstall ok config-files");
}

/// last-version.tar.gz is what the hook install of commit 6bfa9539 left on this machine, with a line of text in place of
/// each program, and its digest in the records.
#[test]
fn real_a_charm_of_the_last_version_upgrades_in_place() {
    let Some(host) = Host::new() else { return };
    let before = host.tree();
    host.0.machine.put("/run/lab/last-version.tar.gz", include_bytes!("last-version.tar.gz"));
    host.0.machine.call(&["tar", "-C", "/", "-xzf", "/run/lab/last-version.tar.gz"]).well();
    let bundle = "/run/containerd/io.containerd.runtime.v2.task/default/one";
    host.0.machine.put(&format!("{bundle}/runtime"), OLD_WRAPPER);

    let unit = host.deploy("rocworker/0", &host.0.deb());
    for path in ["hooks/upgrade-charm", "hooks/config-changed"] {
        host.is_ready(&unit, path);
        let tree = host.tree();
        for path in tree.paths().filter(|path| path.starts_with("etc")) {
            let text = String::from_utf8_lossy(&tree.get(path).unwrap().bytes).into_owned();
            let old = ["/usr/local/bin/rocworker", OLD_WRAPPER].into_iter().find(|old| text.contains(old));
            assert_eq!(old, None, "{}: {text}", path.display());
        }
        for copy in ["/usr/local/bin/rocworker", "/usr/local/bin/rocworker-exporter"] {
            assert!(!host.0.machine.outside(copy).exists(), "{copy} comes before the package's on PATH");
        }
        assert!(host.0.machine.outside(OLD_WRAPPER).exists(), "a container runs by it");
    }
    for path in ["/etc/docker/daemon.json", "/etc/containerd/conf.d/rocworker.toml"] {
        assert!(host.0.machine.text(path).unwrap().contains(WRAPPER), "{path}");
    }
    fs::remove_dir_all(host.0.machine.outside(bundle)).unwrap();
    host.is_ready(&unit, "hooks/update-status");
    assert!(!host.0.machine.outside(OLD_WRAPPER).exists(), "no container and no engine names it");
    host.removes(&unit);
    host.0.is("deinstall ok config-files");
    same(&host.tree(), &before, "the charm is gone");
}
