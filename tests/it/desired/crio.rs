//! What CRI-O is given, by what its files say already. No registry that the tests reach has CRI-O: what is written is held
//! against golden files and the keys that crio.conf(5) documents.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use config::Config;
use edit::Format;
use engines::crio::desired::actions;
use engines::{Crio, Engines, Versions};
use reconcile::{Content, Desired, Effect, Kind};
use render::Templates;
use root::Root;
use serde_json::Value;
use tempfile::TempDir;

use super::of_engines;

const WRAPPER: &str = "/usr/local/lib/rocworker/runc-amd-wrapper";

/// As CRI-O's packages have it, where runc and conmon are not on PATH.
const PACKAGED: &str = r#"
[crio.image]
signature_policy = "/etc/crio/policy.json"

[crio.runtime]
default_runtime = "crun"

[crio.runtime.runtimes.crun]
runtime_path = "/usr/libexec/crio/crun"
runtime_root = "/run/crun"
monitor_path = "/usr/libexec/crio/conmon"
allowed_annotations = ["io.containers.trace-syscall"]

[crio.runtime.runtimes.runc]
runtime_path = "/usr/libexec/crio/runc"
runtime_root = "/run/runc"
monitor_path = "/usr/libexec/crio/conmon"
"#;

/// As its unit is shipped.
const UNIT: &str = "[Service]\nType=notify\nEnvironmentFile=-/etc/sysconfig/crio\n\
    ExecStart=/usr/bin/crio $CRIO_CONFIG_OPTIONS $CRIO_RUNTIME_OPTIONS\nExecReload=/bin/kill -s HUP $MAINPID\n";

/// A machine with CRI-O of this version on it, as its package tells it, and a runc on PATH.
struct Machine(TempDir);

impl Machine {
    fn with(version: &str) -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        machine.put("usr/bin/crio", "").put("usr/sbin/runc", "");
        let status = format!("Package: cri-o\nStatus: install ok installed\nVersion: {version}-1.1\n");
        machine.put("var/lib/dpkg/status", &status).put("usr/lib/systemd/system/crio.service", UNIT);
        machine
    }

    fn put(&self, path: &str, text: &str) -> &Self {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        self
    }

    fn remove(&self, path: &str) -> &Self {
        fs::remove_file(self.0.path().join(path)).unwrap();
        self
    }

    fn drop_in(&self, name: &str, text: &str) -> &Self {
        self.put(&format!("etc/crio/crio.conf.d/{name}"), text)
    }

    fn found(&self, config: &Config) -> Option<Crio> {
        let root = Root::open(self.0.path()).unwrap();
        Crio::read(&root, config, &mut Versions::new(&root, None, BTreeMap::new()))
    }

    fn wanted(&self, config: &str) -> Desired {
        let config = Config::parse(Path::new("config.yaml"), config).unwrap();
        actions(&config, &self.found(&config).unwrap(), &Templates::built_in(), Path::new(WRAPPER))
    }
}

/// The one file that is written.
#[track_caller]
fn written(desired: &Desired) -> String {
    let [action] = desired.actions.as_slice() else { panic!("{desired:#?}") };
    let Kind::Owned(Content::File { bytes, .. }) = &action.kind else { panic!("{action:?}") };
    format!("==> {} ({}) <==\n{}", action.path.display(), action.reason, String::from_utf8_lossy(bytes))
}

#[track_caller]
fn only_problem(desired: &Desired) -> &str {
    assert!(desired.actions.is_empty() && desired.undecided == ["crio"], "{desired:#?}");
    match &desired.notes[..] {
        [note] if note.problem && note.about == "crio" => &note.text,
        other => panic!("{other:#?}"),
    }
}

/// What crio.conf(5) documents of a runtime, and of `crio.runtime` as far as it is written.
const OF_A_RUNTIME: [&str; 8] = [
    "runtime_path",
    "runtime_type",
    "runtime_root",
    "monitor_path",
    "monitor_cgroup",
    "monitor_env",
    "allowed_annotations",
    "privileged_without_host_devices",
];

#[test]
fn a_drop_in_has_the_runtime_and_what_the_others_have_beside_it() {
    let own = "[crio.runtime]\ndefault_runtime = \"youki\"\ncdi_spec_dirs = [\"/opt/cdi\"]\n\
        [crio.runtime.runtimes.youki]\nruntime_type = \"oci\"\nprivileged_without_host_devices = true\n\
        monitor_env = [\"PATH=/usr/bin\"]\nmonitor_cgroup = \"system.slice\"\n";
    for (name, drop_in, config) in [
        ("bare", "", ""),
        ("packaged", PACKAGED, ""),
        ("another-folder", PACKAGED, "cdi: {path: /srv/cdi/amd.json}"),
        ("not-of-a-virtual-machine", &own.replace("oci", "vm"), ""),
        ("of-the-default-runtime", own, "crio: {runtime: amd-gpu}\ncdi: {path: /srv/cdi/amd.json}"),
    ] {
        let machine = Machine::with("1.34.2");
        machine.drop_in("10-crio.conf", drop_in);
        let desired = machine.wanted(config);
        assert!(desired.notes.is_empty(), "{name}: {desired:#?}");
        let written = written(&desired);
        let said = Format::Toml.read(written.split_once("<==\n").unwrap().1).unwrap();
        let runtime = said["crio"]["runtime"].as_object().unwrap();
        assert!(runtime.keys().all(|key| key == "runtimes" || key == "cdi_spec_dirs"), "{name}: {said:#}");
        let [(_, Value::Object(keys))] =
            runtime["runtimes"].as_object().unwrap().iter().collect::<Vec<_>>()[..]
        else {
            panic!("{name}: {said:#}")
        };
        assert!(keys.keys().all(|key| OF_A_RUNTIME.contains(&key.as_str())), "{name}: {said:#}");
        insta::assert_snapshot!(name, written);
    }
}

#[test]
fn crio_begins_anew_where_systemd_starts_it() {
    let restart = Effect::Restart { unit: "crio.service".to_owned(), drain: None };
    let machine = Machine::with("1.23.0");
    assert_eq!(machine.wanted("").actions[0].effects, [restart]);
    machine.remove("usr/lib/systemd/system/crio.service");
    assert_eq!(machine.wanted("").actions[0].effects, []);
}

#[test]
fn a_second_look_wants_the_same_bytes() {
    let machine = Machine::with("1.34.2");
    machine.drop_in("10-crio.conf", PACKAGED);
    let before = written(&machine.wanted("cdi: {path: /srv/cdi/amd.json}"));
    machine.drop_in("99-rocworker.conf", before.split_once("<==\n").unwrap().1);
    assert_eq!(written(&machine.wanted("cdi: {path: /srv/cdi/amd.json}")), before);
}

#[test]
fn what_cannot_be_right_is_left_alone_and_said() {
    let of_another = "[crio.runtime.runtimes.amd]\nruntime_path = \"/usr/bin/amd-container-runtime\"\n";
    for (version, drop_in, config, said) in [
        ("1.22.5", "", "", "rocworker knows CRI-O 1.23 and later of version 1, and this is 1.22.5"),
        ("2.0.0", "", "", "this is 2.0.0"),
        ("1.34.2", "[crio\n", "", "10-crio.conf: line 1: "),
        ("1.34.2", "crio = 1\n", "", "crio has to be a table"),
        ("1.34.2", "[crio]\nruntime = \"runc\"\n", "", "crio.runtime has to be a table"),
        ("1.34.2", "[crio.runtime]\nruntimes = []\n", "", "crio.runtime.runtimes has to be a table"),
        ("1.34.2", of_another, "", "runtime amd already, which runs /usr/bin/amd-container-runtime"),
        (
            "1.34.2",
            PACKAGED,
            "crio: {runtime: crun}",
            "runtime crun already, which runs /usr/libexec/crio/crun",
        ),
    ] {
        let machine = Machine::with(version);
        machine.drop_in("10-crio.conf", drop_in);
        let desired = machine.wanted(config);
        assert!(only_problem(&desired).contains(said), "{said}: {desired:#?}");
    }
    let machine = Machine::with("1.34.2");
    machine.remove("var/lib/dpkg/status");
    assert!(only_problem(&machine.wanted("")).contains("its version is not known"));
}

#[test]
fn what_a_later_file_says_wins_and_is_said() {
    let runtime =
        "[crio.runtime.runtimes.amd]\nruntime_path = \"/usr/local/lib/rocworker/runc-amd-wrapper\"\n";
    let dirs = "[crio.runtime]\ncdi_spec_dirs = [\"/etc/cdi\"]\n";
    let both = "[crio.runtime]\ncdi_spec_dirs = [\"/etc/cdi\", \"/srv/cdi\"]\n";
    for (text, config, said) in [
        (
            runtime,
            "",
            Some(
                "zz.conf is loaded after /etc/crio/crio.conf.d/99-rocworker.conf and says what runtime amd is",
            ),
        ),
        (dirs, "", None),
        (dirs, "cdi: {path: /srv/cdi/amd.json}", Some("says cdi_spec_dirs, which wins")),
        (both, "cdi: {path: /srv/cdi/amd.json}", None),
    ] {
        let machine = Machine::with("1.34.2");
        machine.drop_in("zz.conf", text);
        let desired = machine.wanted(config);
        assert_eq!(desired.actions.len(), 1, "{desired:#?}");
        let notes: Vec<&str> = desired.notes.iter().map(|note| note.text.as_str()).collect();
        match said {
            Some(said) => assert!(matches!(notes[..], [note] if note.contains(said)), "{notes:#?}"),
            None => assert_eq!(notes, [""; 0]),
        }
    }
}

#[test]
fn files_are_read_as_crio_loads_them() {
    let machine = Machine::with("1.34.2");
    machine.put("etc/crio/crio.conf", "").put("etc/crio/crio.conf.d/20-site/a", "");
    machine.drop_in("10-crio.conf", "").drop_in("99-rocworker.conf", "").drop_in("zz", "");
    let config = Config::parse(Path::new("config.yaml"), "").unwrap();
    let crio = machine.found(&config).unwrap();
    let paths: Vec<&str> = crio.files.iter().map(|file| file.path.to_str().unwrap()).collect();
    assert_eq!(
        paths,
        [
            "/etc/crio/crio.conf",
            "/etc/crio/crio.conf.d/10-crio.conf",
            "/etc/crio/crio.conf.d/20-site/a",
            "/etc/crio/crio.conf.d/zz"
        ]
    );
    assert_eq!(crio.before_drop_in, 3);

    machine.put("etc/sysconfig/crio", "CRIO_CONFIG_OPTIONS=\"--config=/srv/crio.conf -d /srv/crio.d\"\n");
    machine.put("srv/crio.d/1", "").put("srv/crio.conf", "");
    let crio = machine.found(&config).unwrap();
    assert_eq!(crio.drop_in(), Path::new("/srv/crio.d/99-rocworker.conf"));
    assert_eq!(crio.files.len(), 2);
}

#[test]
fn a_runc_that_is_not_on_path_stands_behind_the_wrapper() {
    let config = Config::parse(Path::new("config.yaml"), "").unwrap();
    let machine = Machine::with("1.34.2");
    machine.drop_in("10-crio.conf", PACKAGED);
    let crio = machine.found(&config).unwrap();
    assert_eq!((crio.has_runc, crio.own_runc), (true, None), "runc's program of the file is not there");

    machine.remove("usr/sbin/runc");
    assert!(only_problem(&machine.wanted("")).contains("there is no runc for the wrapper to run"));
    assert_eq!(machine.wanted("wrapper: {runtime: /opt/runc}").actions.len(), 1);

    machine.put("usr/libexec/crio/runc", "");
    let crio = machine.found(&config).unwrap();
    assert_eq!(crio.own_runc.as_deref(), Some(Path::new("/usr/libexec/crio/runc")));
    assert_eq!(machine.wanted("").actions.len(), 1);
}

#[test]
fn nothing_is_wanted_where_crio_is_not_or_is_to_be_left_alone() {
    let machine = Machine::with("1.34.2");
    let default = Config::parse(Path::new("config.yaml"), "").unwrap();
    let there = Engines { crio: machine.found(&default), ..Engines::default() };
    assert!(!of_engines("", &there).actions.is_empty());
    for config in ["crio: {configure: never}", "compute-runtime: none"] {
        assert_eq!(of_engines(config, &there), Desired::default(), "{config}");
    }
    machine.remove("usr/bin/crio");
    assert_eq!(machine.found(&default), None);
}
