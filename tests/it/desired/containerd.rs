//! What the system's containerd is given, by its version and by what its files say already.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use config::Config;
use edit::{Edit, Format};
use engines::containerd::desired::actions;
use engines::{Containerd, Engines, Versions};
use reconcile::{Content, Desired, Effect, Kind};
use render::Templates;
use root::Root;
use tempfile::TempDir;

use super::of_engines;

const WRAPPER: &str = "/usr/local/lib/rocworker/runc-amd-wrapper";
const CRI_2: &str = "io.containerd.grpc.v1.cri";

/// A machine with containerd of this version on it, as its package tells it.
struct Machine(TempDir);

impl Machine {
    fn with(version: &str) -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        machine.put("usr/bin/containerd", "");
        let status = format!("Package: containerd.io\nStatus: install ok installed\nVersion: {version}-1\n");
        machine.put("var/lib/dpkg/status", &status);
        machine.put("lib/systemd/system/containerd.service", "[Service]\nExecStart=/usr/bin/containerd\n");
        machine
    }

    fn with_main(version: &str, main: &str) -> Self {
        let machine = Self::with(version);
        machine.put("etc/containerd/config.toml", main);
        machine
    }

    fn put(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    fn found(&self, config: &Config) -> Option<Containerd> {
        let root = Root::open(self.0.path()).unwrap();
        Containerd::read(&root, config, &mut Versions::new(&root, None, BTreeMap::new()))
    }

    fn wanted_with(&self, config: &str) -> Desired {
        let config = Config::parse(Path::new("config.yaml"), config).unwrap();
        actions(&config, &self.found(&config).unwrap(), &Templates::built_in(), Path::new(WRAPPER))
    }

    fn wanted(&self) -> Desired {
        self.wanted_with("")
    }

    fn text(&self, path: &Path) -> Option<String> {
        fs::read_to_string(self.0.path().join(path.strip_prefix("/").unwrap())).ok()
    }

    /// Every file that is written, with its text after that.
    fn written(&self, desired: &Desired) -> String {
        let each = desired.actions.iter().map(|action| {
            let text = match &action.kind {
                Kind::Owned(Content::File { bytes, .. }) => String::from_utf8(bytes.clone()).unwrap(),
                Kind::Edited(edit) => {
                    edit.apply(&self.text(action.path.path().unwrap()).unwrap_or_default()).unwrap()
                }
                other => panic!("{other:?}"),
            };
            format!("==> {} ({}) <==\n{text}", action.path.display(), action.reason)
        });
        let notes = desired.notes.iter().map(|note| format!("note: {}\n", note.text));
        each.chain(notes).collect()
    }
}

#[track_caller]
fn only_problem(desired: &Desired) -> &str {
    assert!(desired.actions.is_empty(), "{desired:#?}");
    match &desired.notes[..] {
        [note] if note.problem && note.about == "containerd" => &note.text,
        other => panic!("{other:#?}"),
    }
}

#[test]
fn each_version_is_given_what_it_reads() {
    let kubeadm = format!(
        "version = 2\n[plugins.\"{CRI_2}\".containerd.runtimes.runc]\nruntime_type = \"io.containerd.runc.v2\"\n\
         [plugins.\"{CRI_2}\".containerd.runtimes.runc.options]\nSystemdCgroup = true\n"
    );
    let cni = format!("version = 2\n\n[plugins.\"{CRI_2}\".cni]\nbin_dir = \"/usr/lib/cni\"\n");
    for (name, version, main, config) in [
        ("1.6-absent", "1.6.20~ds1", None, ""),
        ("1.6-no-version", "1.6.20", Some("[plugins.cri]\nmax_concurrent_downloads = 4\n"), ""),
        ("1.7-cni", "1.7.24", Some(cni.as_str()), ""),
        ("1.7-kubeadm", "1.7.24", Some(&kubeadm), "cdi: {path: /srv/cdi/amd.json}"),
        ("2.1-absent", "2.1.9", None, ""),
        ("2.1-version-2", "2.1.9", Some(&cni), ""),
        ("2.1-kubeadm", "2.1.9", Some(&kubeadm), "containerd: {runtime: amd-gpu}"),
        ("2.1-no-version", "2.1.9", Some("root = \"/srv\"\n[plugins.cri]\nenable_selinux = true\n"), ""),
        ("2.2-covered", "2.2.1", Some("version = 3\nimports = ['/etc/containerd/conf.d/*.toml']\n"), ""),
        ("2.3-version-4", "2.3.0", Some("version = 4\n"), "cdi: {path: /srv/cdi/amd.json}"),
        (
            "2.1-cdi-off",
            "2.1.9",
            Some("version = 3\n[plugins.\"io.containerd.cri.v1.runtime\"]\nenable_cdi = false\n"),
            "",
        ),
    ] {
        let machine = Machine::with(version);
        if let Some(main) = main {
            machine.put("etc/containerd/config.toml", main);
        }
        let desired = machine.wanted_with(config);
        assert!(desired.notes.iter().all(|note| !note.problem), "{name}: {desired:#?}");
        insta::assert_snapshot!(name, machine.written(&desired));
    }
}

#[test]
fn a_file_that_cannot_be_right_is_left_alone_and_said_where() {
    let v = |version: &str, main: &str| (version.to_owned(), main.to_owned());
    for ((version, main), said) in [
        (v("1.5.9", ""), "rocworker knows containerd 1.6 to 2, and this is 1.5.9"),
        (v("3.0.0", ""), "this is 3.0.0"),
        (v("1.7.24", "version = 2\n\n[plugins\n"), "etc/containerd/config.toml: line 3: "),
        (v("2.1.9", "version = 2\nversion = 3\n"), "line 2: duplicate key"),
        (v("1.7.24", "version = \"2\"\n"), "version = \"2\", which has to be a number"),
        (v("2.1.9", "version = \"2\"\n"), "version = \"2\", which has to be a number"),
        (
            v("2.1.9", "version = 3\nimports = [1]\n"),
            "imports = [1], which has to be a list of paths: correct it",
        ),
        (
            v("1.7.24", "version = 2\nimports = [1]\n"),
            "imports = [1], which has to be a list of paths: correct it",
        ),
        (v("2.1.9", "version = -1\n"), "version = -1, which has to be a number"),
        (v("1.7.24", "version = 99\n"), "has version 99, and containerd 1.7.24 knows 2 at most"),
        (v("2.1.9", "version = 99\n"), "knows 3 at most"),
        (v("2.2.0", "version = 4\n"), "knows 3 at most"),
        (v("2.3.0", "version = 5\n"), "knows 4 at most"),
        (v("2.1.9", "version = 1\n"), "containerd config migrate"),
        (v("2.1.9", "\u{feff}version = 2\n"), "byte order mark"),
        (v("1.7.24", "version = 2\nplugins = \"none\"\n"), "plugins has to be a table"),
        (v("2.1.9", "version = 2\nplugins = \"none\"\n"), "plugins has to be a table"),
        (
            v("1.7.24", &format!("version = 2\n[plugins.\"{CRI_2}\".containerd]\nruntimes = \"runc\"\n")),
            "plugins.io.containerd.grpc.v1.cri.containerd.runtimes has to be a table",
        ),
        (
            v("1.7.24", &format!("version = 2\n[[plugins.\"{CRI_2}\".containerd.runtimes.amd]]\n")),
            "a runtime amd already, which runs another program than the wrapper",
        ),
        (
            v("1.7.24", &format!("version = 2\n[plugins.\"{CRI_2}\".enable_cdi]\nwhat = 1\n")),
            "config.toml: line 2: plugins.\"io.containerd.grpc.v1.cri\".enable_cdi is a table where a value is needed",
        ),
        (
            v("2.1.9", "version = 3\nimports = \"conf.d\"\n"),
            "config.toml has imports = \"conf.d\", which has to be a list of paths",
        ),
    ] {
        let desired = Machine::with_main(&version, &main).wanted();
        let problem = only_problem(&desired);
        assert!(
            problem.starts_with("containerd is left alone: ") && problem.contains(said),
            "{main}: {problem}"
        );
        assert!(!problem.contains('\n'), "{problem}");
    }
}

#[test]
fn what_is_no_text_of_its_own_is_left_alone() {
    let machine = Machine::with("1.7.24");
    machine.put("etc/containerd/config.toml", b"version = 2 # \xff\n");
    assert!(only_problem(&machine.wanted()).ends_with("config.toml is not text"));

    let machine = Machine::with("1.7.24");
    machine.put("etc/containerd/site.toml", "version = 2\n");
    symlink("site.toml", machine.0.path().join("etc/containerd/config.toml")).unwrap();
    assert!(only_problem(&machine.wanted()).contains("config.toml is a link"));

    let machine = Machine::with("2.1.9");
    fs::create_dir_all(machine.0.path().join("etc/containerd/config.toml")).unwrap();
    assert!(only_problem(&machine.wanted()).contains("config.toml"));

    // A drop-in needs no word in a main file that imports its folder: that may be a link.
    let machine = Machine::with("2.1.9");
    machine.put("etc/containerd/site.toml", "version = 3\nimports = [\"conf.d/*.toml\"]\n");
    symlink("site.toml", machine.0.path().join("etc/containerd/config.toml")).unwrap();
    let desired = machine.wanted();
    assert_eq!(desired.actions.len(), 1, "{desired:#?}");
    assert_eq!(desired.actions[0].path, Path::new("/etc/containerd/conf.d/rocworker.toml"));

    let machine = Machine::with("2.1.9");
    fs::remove_file(machine.0.path().join("var/lib/dpkg/status")).unwrap();
    assert!(only_problem(&machine.wanted()).contains("its version is not known: "));
}

#[test]
fn nothing_is_wanted_where_nothing_is_offered_or_there() {
    let machine = Machine::with("2.1.9");
    let config = Config::parse(Path::new("config.yaml"), "").unwrap();
    let there = Engines { containerd: machine.found(&config), ..Engines::default() };
    assert!(!of_engines("", &there).actions.is_empty());
    for config in ["compute-runtime: cuda", "compute-runtime: none", "containerd: {configure: never}"] {
        assert_eq!(of_engines(config, &there), Desired::default(), "{config}");
    }
    fs::remove_file(machine.0.path().join("usr/bin/containerd")).unwrap();
    assert!(machine.found(&config).is_none());
    // k3s brings one of its own, which is not the system's.
    machine.put("var/lib/rancher/k3s/data/current/bin/containerd", "");
    assert!(machine.found(&config).is_none());
}

#[test]
fn a_unit_is_started_again_and_its_main_file_is_the_one() {
    let machine = Machine::with("2.1.9");
    let restart = Effect::Restart { unit: "containerd.service".to_owned(), drain: None };
    assert!(machine.wanted().actions.iter().all(|action| action.effects == [restart.clone()]));

    machine.put("opt/containerd/bin/containerd", "");
    machine.put(
        "etc/systemd/system/containerd.service.d/10-site.conf",
        "[Service]\nExecStart=\nExecStart=/opt/containerd/bin/containerd --config /srv/containerd/main.toml\n",
    );
    machine.put("srv/containerd/main.toml", "version = 2\n");
    let config = Config::parse(Path::new("config.yaml"), "").unwrap();
    let found = machine.found(&config).unwrap();
    assert_eq!(found.program, Path::new("/opt/containerd/bin/containerd"));
    let desired = machine.wanted();
    let paths: Vec<&Path> = desired.actions.iter().map(|action| action.path.path().unwrap()).collect();
    assert_eq!(
        paths,
        [Path::new("/srv/containerd/conf.d/rocworker.toml"), Path::new("/srv/containerd/main.toml")]
    );
    assert!(
        desired.notes.iter().any(|note| note.text.contains("names its main file: /srv/containerd/main.toml"))
    );
    // What is configured here counts, and that they differ is said.
    let desired = machine.wanted_with("containerd: {config: /etc/c/config.toml}");
    assert_eq!(desired.actions[1].path, Path::new("/etc/c/config.toml"));
    assert!(desired.notes.iter().any(|note| note.text.contains("see containerd.config")), "{desired:#?}");

    for path in
        ["lib/systemd/system/containerd.service", "etc/systemd/system/containerd.service.d/10-site.conf"]
    {
        fs::remove_file(machine.0.path().join(path)).unwrap();
    }
    assert!(machine.wanted().actions.iter().all(|action| action.effects.is_empty()));
}

/// The edits of a machine's files, with their texts before.
fn edits(machine: &Machine) -> Vec<(Edit, Option<String>)> {
    let desired = machine.wanted();
    let edits = desired.actions.iter().filter_map(|action| match &action.kind {
        Kind::Edited(edit) => Some((edit.clone(), machine.text(action.path.path().unwrap()))),
        _ => None,
    });
    edits.collect()
}

#[test]
fn every_start_is_edited_in_every_release_and_what_others_add_stays() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/engines/configs");
    let mut done = 0;
    for start in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        for version in ["1.6.20", "1.7.24", "2.1.9", "2.3.0"] {
            let name = format!("{} with {version}", start.display());
            let machine = Machine::with(version);
            for sub in ["", "conf.d"] {
                for file in
                    fs::read_dir(start.join(sub)).into_iter().flatten().map(|entry| entry.unwrap().path())
                {
                    if file.extension().is_some_and(|extension| extension == "toml") {
                        let below = Path::new("etc/containerd").join(sub).join(file.file_name().unwrap());
                        machine.put(below.to_str().unwrap(), fs::read(&file).unwrap());
                    }
                }
            }
            for (edit, before) in edits(&machine) {
                let text = before.clone().unwrap_or_default();
                let ours = edit.apply(&text).unwrap();
                assert_eq!(edit.apply(&ours).unwrap(), ours, "{name}");
                let back = edit.revert(&ours, before.as_deref()).unwrap();
                assert_eq!((back.text.as_deref(), back.left.len()), (before.as_deref(), 0), "{name}");
                // Every unmanaged line is still there, in its order; in a list and in braces there is one more.
                let plain = |line: &str| line.replace(',', "").trim_end().to_owned();
                let mut lines = ours.lines().map(plain);
                let edited = ["enable_cdi", "plugins = {", "cri\" = {"];
                let kept = text.lines().filter(|line| edited.iter().all(|part| !line.contains(part)));
                for line in kept {
                    let at = plain(line.split(']').next().unwrap_or(line));
                    assert!(lines.any(|ours| ours.starts_with(&at)), "{name}: {line}\n{ours}");
                }
                let changed = format!("{ours}\n# somebody's\n[debug.somebody]\nlevel = \"x\"\n");
                let Ok(mut expected) = Format::Toml.read(&text) else { continue };
                if Format::Toml.read(&changed).is_err() {
                    continue;
                }
                let back = edit.revert(&changed, before.as_deref()).unwrap();
                let back_text = back.text.unwrap();
                assert_eq!(back.left, Vec::<String>::new(), "{name}");
                assert!(back_text.contains("# somebody's\n"), "{name}: {back_text}");
                expected["debug"]["somebody"] = serde_json::json!({"level": "x"});
                let mut now = Format::Toml.read(&back_text).unwrap();
                if expected.get("version").is_none() {
                    // What was written beside it may need it.
                    now.as_object_mut().unwrap().remove("version");
                }
                assert_eq!(now, expected, "{name}:\n{back_text}");
                done += 1;
            }
        }
    }
    assert!(done > 80, "{done}");
}

#[test]
fn imports_are_followed_and_the_section_that_counts_is_edited() {
    let kata = |name: &str| {
        format!("version = 2\n[plugins.\"{CRI_2}\".containerd.runtimes.{name}]\nruntime_type = \"x\"\n")
    };
    let machine =
        Machine::with_main("1.7.24", "version = 2\nimports = [\"conf.d/*.toml\", \"/srv/last.toml\"]\n");
    machine.put("etc/containerd/conf.d/a.toml", kata("a"));
    machine.put("etc/containerd/conf.d/99-nvidia.toml", kata("nvidia"));
    machine.put("etc/containerd/conf.d/a.toml.bak", kata("c"));
    machine.put("srv/last.toml", "");
    let wanted = |path: &str| {
        let desired = machine.wanted();
        assert_eq!(desired.actions.len(), 1, "{desired:#?}");
        assert_eq!(desired.actions[0].path, Path::new(path));
        desired.actions[0].rival.clone()
    };
    assert_eq!(wanted("/etc/containerd/conf.d/a.toml"), None);
    machine.put("srv/last.toml", "version = 2\nimports = [\"more/nvidia.toml\"]\n");
    machine.put("srv/more/nvidia.toml", kata("nvidia"));
    assert_eq!(wanted("/srv/more/nvidia.toml").as_deref(), Some("the NVIDIA Container Toolkit"));
    // A circle ends.
    machine.put("srv/last.toml", "imports = [\"/etc/containerd/config.toml\", \"last.toml\"]\n");
    assert_eq!(wanted("/etc/containerd/conf.d/a.toml"), None);
}

#[test]
fn a_file_of_a_megabyte_is_configured() {
    let mut main = String::from("version = 2\n");
    while main.len() < 1 << 20 {
        let n = main.len();
        main.push_str(&format!(
            "[plugins.\"{CRI_2}\".registry.mirrors.\"r{n}\"]\nendpoint = [\"https://r{n}\"]\n"
        ));
    }
    for version in ["1.7.24", "2.1.9"] {
        let machine = Machine::with_main(version, &main);
        let desired = machine.wanted();
        assert!(desired.notes.is_empty() && !desired.actions.is_empty(), "{:#?}", desired.notes);
        assert!(machine.written(&desired).contains(WRAPPER));
    }
}

#[test]
fn a_folder_that_somebody_adds_to_our_list_of_specs_stays_beside_those_of_containerd_itself() {
    let elsewhere = "cdi: {path: /srv/cdi/amd.json}";
    let before = format!("version = 2\n[plugins.\"{CRI_2}\"]\nsandbox_image = \"x\"\n");
    let machine = Machine::with_main("1.7.24", &before);
    let edit = |machine: &Machine| match machine.wanted_with(elsewhere).actions.as_slice() {
        [action] => match &action.kind {
            Kind::Edited(edit) => edit.clone(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    let ours = edit(&machine);
    let text = ours.apply(&before).unwrap();
    let list = |folders: &str| format!("cdi_spec_dirs = [{folders}]\n");
    assert!(text.contains(&list("\"/etc/cdi\", \"/var/run/cdi\", \"/srv/cdi\"")), "{text}");

    let theirs = text.replace("\"/srv/cdi\"]", "\"/srv/cdi\", \"/opt/cdi\"]");
    machine.put("etc/containerd/config.toml", &theirs);
    assert_eq!(edit(&machine), ours, "what they add is no other wish");
    let left = ours.revert(&theirs, Some(&before)).unwrap();
    assert_eq!(left.left, Vec::<String>::new());
    let left = left.text.unwrap();
    assert!(left.contains(&list("\"/etc/cdi\", \"/var/run/cdi\", \"/opt/cdi\"")), "{left}");

    let commented = text.replace("sandbox_image", "# mine\nsandbox_image");
    let expected = before.replace("sandbox_image", "# mine\nsandbox_image");
    assert_eq!(ours.revert(&commented, Some(&before)).unwrap().text, Some(expected));
}

#[test]
fn a_file_that_is_loaded_after_ours_and_says_otherwise_is_named() {
    let site = "version = 3\n[plugins.'io.containerd.cri.v1.runtime']\n";
    for (main, file, said, expected) in [
        ("imports = ['conf.d/*.toml']\n", "etc/containerd/conf.d/site.toml", "enable_cdi = false\n", true),
        // containerd loads a.toml before the managed file.
        ("imports = ['conf.d/*.toml']\n", "etc/containerd/conf.d/a.toml", "enable_cdi = false\n", false),
        ("imports = ['conf.d/*.toml']\n", "etc/containerd/conf.d/site.toml", "enable_cdi = true\n", false),
        ("imports = ['conf.d/*.toml', '/srv/a.toml']\n", "srv/a.toml", "enable_cdi = false\n", true),
        // containerd loads the managed file after an unmanaged import.
        ("imports = ['/srv/a.toml']\n", "srv/a.toml", "enable_cdi = false\n", false),
        (
            "imports = ['conf.d/*.toml']\n",
            "etc/containerd/conf.d/site.toml",
            "cdi_spec_dirs = ['/x']\n",
            true,
        ),
        (
            "imports = ['conf.d/*.toml']\n",
            "etc/containerd/conf.d/site.toml",
            "[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.amd]\nruntime_type = 'x'\n\
             options.BinaryName = '/usr/local/lib/rocworker/runc-amd-wrapper'\n",
            true,
        ),
    ] {
        let machine = Machine::with_main("2.1.9", &format!("version = 3\n{main}"));
        machine.put(file, format!("{site}{said}"));
        for is_there in [false, true] {
            let desired = machine.wanted_with("cdi: {path: /srv/cdi/amd.json}");
            let problems: Vec<_> = desired.notes.iter().filter(|note| note.problem).collect();
            assert_eq!(!problems.is_empty(), expected, "{file} {said}: {problems:#?}");
            let named = format!("/{file} is loaded after /etc/containerd/conf.d/rocworker.toml and says ");
            assert!(problems.iter().all(|note| note.text.starts_with(&named)), "{problems:#?}");
            assert!(!desired.actions.is_empty());
            if !is_there {
                let Kind::Owned(Content::File { bytes, .. }) = &desired.actions[0].kind else { panic!() };
                machine.put("etc/containerd/conf.d/rocworker.toml", bytes);
            }
        }
    }
}
