//! What docker is told: by its version, by what its daemon.json says already, and by how its unit starts it.

mod cdi_spec_dirs;
mod dockerd_hangs;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use config::Config;
use engines::docker::desired::actions;
use engines::docker::{Docker, Installed};
use engines::{CommandLine, Engines, Version, Versions};
use reconcile::{Action, Ask, Desired, Effect, Kind};
use root::Root;

use super::of_engines;

const WRAPPER: &str = "/usr/bin/runc-amd-wrapper";

fn config(text: &str) -> Config {
    Config::parse(Path::new("/etc/rocworker/config.yaml"), text).unwrap()
}

fn docker(version: &str, text: Option<&str>) -> Docker {
    let version = Version::find(version).ok_or_else(|| "dockerd says nothing".to_owned());
    let installed = Installed {
        program: "/usr/bin/dockerd".into(),
        version,
        config: "/etc/docker/daemon.json".into(),
        text: Ok(text.map(str::to_owned)),
        unit: Some(CommandLine::new("/usr/bin/dockerd -H fd://")),
        ends_with: Vec::new(),
        notes: Vec::new(),
    };
    Docker { installed: Some(installed), is_snap: false }
}

fn of(docker: &Docker) -> Desired {
    actions(&config(""), docker, Path::new(WRAPPER))
}

/// The one action, and the text that it makes of `text`.
fn applied(desired: &Desired, text: &str) -> (Action, String) {
    let [action] = desired.actions.as_slice() else { panic!("{:?}", desired.actions) };
    let Kind::Edited(edit) = &action.kind else { panic!("{action:?}") };
    (action.clone(), edit.apply(text).unwrap())
}

fn said(desired: &Desired) -> Vec<(bool, &str)> {
    desired.notes.iter().map(|note| (note.problem, note.text.as_str())).collect()
}

fn reload() -> Vec<Effect> {
    vec![Effect::Reload { unit: "docker.service".to_owned() }]
}

/// CDI is new, and docker is somebody's to restart.
fn waits() -> Vec<Effect> {
    let unit = "docker.service".to_owned();
    vec![Effect::Reload { unit: unit.clone() }, Effect::NextStart { unit, ask: None }]
}

/// CDI is new, docker is somebody's to restart, and the dockerd that runs is asked whether its containers outlive it.
fn asks() -> Vec<Effect> {
    let unit = "docker.service".to_owned();
    let argv = ["docker", "--host", "unix:///run/docker.sock", "info", "--format", "{{.LiveRestoreEnabled}}"];
    let ask = Ask { argv: argv.map(str::to_owned).to_vec(), yes: "true".to_owned() };
    vec![Effect::Reload { unit: unit.clone() }, Effect::NextStart { unit, ask: Some(ask) }]
}

fn restart() -> Vec<Effect> {
    vec![Effect::Restart { unit: "docker.service".to_owned(), drain: None }]
}

#[test]
fn each_version_is_told_what_it_knows() {
    let runtime = r#""runtimes":{"amd":{"path":"/usr/bin/runc-amd-wrapper"}}"#;
    let both = format!(r#"{{"x":1,"features":{{"cdi":true}},{runtime}}}"#);
    let alone = format!(r#"{{"x":1,{runtime}}}"#);
    for (version, expected, notes) in [
        ("20.10.24+dfsg1", &alone, 1),
        ("24.0.9", &alone, 1),
        ("25.0.0", &both, 1),
        ("26.1.5", &both, 1),
        ("28.1.1", &both, 1),
        ("28.2.0", &alone, 0),
        ("29.7.2", &alone, 0),
    ] {
        let docker = docker(version, Some(r#"{"x":1}"#));
        let desired = of(&docker);
        let (action, text) = applied(&desired, r#"{"x":1}"#);
        assert_eq!((&text, desired.notes.len()), (expected, notes), "{version}: {:?}", desired.notes);
        assert!(desired.notes.iter().all(|note| !note.problem), "{version}");
        // Without live-restore nothing of its own accord stops somebody's containers.
        let expected = if text == both { waits() } else { reload() };
        assert_eq!((action.effects, action.path), (expected, "/etc/docker/daemon.json".into()));
    }
    assert_eq!(
        said(&of(&docker("20.10.24", None))),
        [(
            false,
            "docker 20.10.24 knows no CDI (it came with 25.0.0): containers get GPUs by --runtime amd and \
             AMD_VISIBLE_DEVICES alone"
        )]
    );
}

#[test]
fn a_version_that_cannot_be_told_gets_the_runtime_alone() {
    let desired = of(&docker("", None));
    let (_, text) = applied(&desired, "");
    assert_eq!(
        text,
        "{\n    \"runtimes\": {\n        \"amd\": {\n            \"path\": \"/usr/bin/runc-amd-wrapper\"\n        }\n    }\n}\n"
    );
    let why = "the version of docker is unknown, and rocworker leaves CDI as it is: dockerd says nothing";
    assert_eq!(said(&desired), [(true, why)]);
}

#[test]
fn what_an_apply_wrote_of_cdi_stays_ours_when_the_version_is_not_told_once() {
    for configuration in ["", "cdi: {path: /srv/cdi/amd.json}"] {
        let of = |version: &str, text: &str| {
            actions(&config(configuration), &docker(version, Some(text)), Path::new(WRAPPER))
        };
        let (told, text) = applied(&of("26.1.5", "{}"), "{}");
        let (untold, _) = applied(&of("", &text), &text);
        assert_eq!(untold.kind, told.kind, "{configuration}");
        assert_eq!(untold.effects, reload());
    }
    let (action, _) = applied(&of(&docker("", Some(r#"{"features": {"cdi": false}}"#))), "{}");
    let Kind::Edited(edit) = action.kind else { panic!() };
    assert_eq!(edit.keys.len(), 1, "{edit:?}");
}

#[test]
fn docker_is_restarted_only_for_cdi_and_only_where_containers_survive_it_or_it_was_asked_for() {
    let now = "restart: now";
    for (configuration, text, expected) in [
        ("", "{}", waits()),
        (now, "{}", restart()),
        ("", r#"{"live-restore": true}"#, asks()),
        (now, r#"{"live-restore": true}"#, restart()),
        ("", r#"{"live-restore": false}"#, waits()),
        (now, r#"{"features": {"cdi": true}}"#, reload()),
        ("", r#"{"live-restore": true, "features": {"cdi": true}}"#, reload()),
        ("cdi: {path: /srv/cdi/amd.json}", r#"{"live-restore": true, "features": {"cdi": true}}"#, asks()),
    ] {
        let desired = actions(&config(configuration), &docker("26.1.5", Some(text)), Path::new(WRAPPER));
        let (action, after) = applied(&desired, text);
        assert_eq!(action.effects, expected, "{configuration} {text}");
        // Once it stands there, a later change of the runtime alone is a reload.
        let again = actions(&config(configuration), &docker("26.1.5", Some(&after)), Path::new(WRAPPER));
        let (action, same) = applied(&again, &after);
        assert_eq!((action.effects, same), (reload(), after), "{configuration} {text}");
    }
    let note = of(&docker("26.1.5", Some("{}"))).notes.remove(0).text;
    assert_eq!(
        note,
        "docker takes CDI in when it starts, and stops its containers when it ends (live-restore is not set): it is not \
         restarted unless restart is now; systemctl restart docker does it"
    );
}

#[test]
fn what_somebody_has_decided_stays() {
    let cases = [
        (
            r#"{"runtimes": {"amd": {"path": "/opt/amd-container-runtime"}}, "features": {"cdi": true}}"#,
            "/etc/docker/daemon.json: the runtime amd is unmanaged (\"/opt/amd-container-runtime\") and is left \
             alone: choose another name for rocworker's with docker.runtime",
        ),
        (
            r#"{"runtimes": {"amd": {"runtimeType": "io.containerd.runsc.v1"}}, "features": {"cdi": true}}"#,
            "/etc/docker/daemon.json: the runtime amd is unmanaged (\"io.containerd.runsc.v1\") and is left \
             alone: choose another name for rocworker's with docker.runtime",
        ),
        (
            r#"{"features": {"cdi": false}, "runtimes": {"amd": {"path": "/usr/bin/runc-amd-wrapper"}}}"#,
            "/etc/docker/daemon.json: features.cdi is false: docker finds no GPU by --device until it is taken out",
        ),
        (
            r#"{"cdi-spec-dirs": [""], "runtimes": {"amd": {"path": "/usr/bin/runc-amd-wrapper"}}}"#,
            "/etc/docker/daemon.json: cdi-spec-dirs names no folder, which switches CDI off: docker finds no GPU by \
             --device until it is taken out",
        ),
    ];
    for (text, problem) in cases {
        let desired = of(&docker("26.1.5", Some(text)));
        assert_eq!(said(&desired), [(true, problem)]);
        let (_, after) = applied(&desired, text);
        assert_eq!(after, text);
    }
    // Arguments that somebody gave our runtime.
    let text = r#"{"runtimes": {"amd": {"path": "/usr/bin/runc-amd-wrapper", "runtimeArgs": ["--debug"]}}}"#;
    assert_eq!(applied(&of(&docker("28.5.2", Some(text))), text).1, text);
}

#[test]
fn the_default_runtime_is_whose_it_was() {
    let text =
        r#"{"default-runtime": "nvidia", "runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}"#;
    let (_, after) = applied(&of(&docker("28.5.2", Some(text))), text);
    assert_eq!(
        after,
        r#"{"default-runtime": "nvidia", "runtimes": {"nvidia": {"path": "nvidia-container-runtime"}, "amd": {"path": "/usr/bin/runc-amd-wrapper"}}}"#
    );
}

#[test]
fn folders_of_specs_are_named_only_where_ours_is_another_and_then_the_usual_ones_too() {
    let elsewhere = "cdi: {path: /srv/cdi/amd.json}";
    for (configuration, text, expected) in [
        ("cdi: {path: /var/run/cdi/amd.json}", "{\"a\":1}", "{\"a\":1}"),
        (elsewhere, "{\"a\":1}", "{\"a\":1,\"cdi-spec-dirs\":[\"/etc/cdi\",\"/var/run/cdi\",\"/srv/cdi\"]}"),
        (elsewhere, "{\"cdi-spec-dirs\":[\"/opt/cdi\"]}", "{\"cdi-spec-dirs\":[\"/opt/cdi\",\"/srv/cdi\"]}"),
        (
            elsewhere,
            "{\"cdi-spec-dirs\":[\"/var/run/cdi\",\"/etc/cdi\"]}",
            "{\"cdi-spec-dirs\":[\"/var/run/cdi\",\"/etc/cdi\",\"/srv/cdi\"]}",
        ),
    ] {
        let after = |text: &str| {
            let desired = actions(&config(configuration), &docker("28.5.2", Some(text)), Path::new(WRAPPER));
            applied(&desired, text)
                .1
                .replace(",\"runtimes\":{\"amd\":{\"path\":\"/usr/bin/runc-amd-wrapper\"}}", "")
        };
        assert_eq!(after(text), expected);
        assert_eq!(after(expected), expected, "a second time");
    }
}

#[test]
fn what_its_unit_says_is_not_said_a_second_time_in_the_file() {
    let with = |version: &str, line: &str| {
        let mut docker = docker(version, Some("{}"));
        docker.installed.as_mut().unwrap().unit = Some(CommandLine::new(line));
        actions(&config("cdi: {path: /srv/cdi/amd.json}"), &docker, Path::new(WRAPPER))
    };
    for (version, line, problem) in [
        (
            "27.0.0",
            "dockerd --feature x=true",
            "docker.service has --feature, beside which /etc/docker/daemon.json may have no features: add --feature \
             cdi there",
        ),
        (
            "28.5.2",
            "dockerd --cdi-spec-dir=/x",
            "docker.service has --cdi-spec-dir, beside which /etc/docker/daemon.json may have no cdi-spec-dirs: add \
             --cdi-spec-dir /srv/cdi there",
        ),
    ] {
        let desired = with(version, line);
        assert_eq!(said(&desired), [(true, problem)]);
        assert!(!applied(&desired, "{}").1.contains("cdi"));
    }
}

#[test]
fn a_file_that_cannot_be_edited_is_left_and_said() {
    for (text, problem) in [
        ("[]", "line 1: the file holds a list and not an object"),
        ("{\n  // mine\n}", "line 2: this is not JSON: key must be a string"),
        (
            "{\"features\": {},\n\"features\": {}}",
            "line 2: line 1 has the key \"features\" already: keep one of the two, since each reader chooses which one counts",
        ),
        ("{\"runtimes\": []}", "line 1: runtimes is a list where an object is needed"),
    ] {
        let desired = of(&docker("26.1.5", Some(text)));
        let problem = format!("/etc/docker/daemon.json: {problem}: docker is left as it is");
        assert!(desired.actions.is_empty(), "{text}");
        assert_eq!(said(&desired), [(true, problem.as_str())]);
    }
}

#[test]
fn nothing_is_wanted_of_docker_where_it_is_not_there_or_not_ours_to_configure() {
    assert_eq!(of(&Docker::default()), Desired::default());
    let there = Engines { docker: docker("26.1.5", None), ..Engines::default() };
    assert!(!of_engines("", &there).actions.is_empty());
    for text in ["docker: {configure: never}", "compute-runtime: none", "compute-runtime: cuda"] {
        assert_eq!(of_engines(text, &there), Desired::default(), "{text}");
    }
    let snap = of(&Docker { installed: None, is_snap: true });
    assert!(snap.actions.is_empty() && snap.notes.len() == 1, "{snap:?}");
}

fn read(files: &[(&str, &str)]) -> Docker {
    read_with("/etc/docker/daemon.json", files)
}

fn read_with(config: &str, files: &[(&str, &str)]) -> Docker {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match text.strip_prefix("-> ") {
            Some(target) => std::os::unix::fs::symlink(target, path).unwrap(),
            None => fs::write(path, text).unwrap(),
        }
    }
    let root = Root::open(dir.path()).unwrap();
    let mut docker = Docker::read(&root, Path::new(config), &mut Versions::new(&root, None, BTreeMap::new()));
    if let Some(installed) = &mut docker.installed {
        let folder = dir.path().display().to_string();
        installed.notes.iter_mut().chain(installed.text.as_mut().err()).for_each(|said| {
            *said = said.replace(&folder, "ROOT");
        });
    }
    docker
}

#[test]
fn docker_is_found_with_its_version_its_file_and_its_unit() {
    const STATUS: (&str, &str) = (
        "var/lib/dpkg/status",
        "Package: docker-ce\nStatus: install ok installed\nVersion: 5:28.5.2-1~debian.12~bookworm\n",
    );
    assert_eq!(read(&[STATUS]), Docker::default());
    let docker = read(&[
        ("usr/bin/dockerd", ""),
        STATUS,
        ("etc/docker/daemon.json", "{}"),
        (
            "usr/lib/systemd/system/docker.service",
            "[Service]\nEnvironmentFile=-/etc/default/docker\nExecStart=/usr/bin/dockerd -H fd:// $DOCKER_OPTS\n",
        ),
        ("etc/default/docker", "DOCKER_OPTS=\"--feature=cdi\"\n"),
        ("snap/docker/current/x", ""),
    ]);
    let installed = docker.installed.unwrap();
    assert!(docker.is_snap);
    assert_eq!(installed.program, Path::new("/usr/bin/dockerd"));
    assert_eq!(installed.version.unwrap().to_string(), "28.5.2");
    assert_eq!(
        (installed.text, installed.config.to_str()),
        (Ok(Some("{}".to_owned())), Some("/etc/docker/daemon.json"))
    );
    assert!(installed.unit.unwrap().has("feature"));

    let bare = read(&[("usr/sbin/dockerd", "")]).installed.unwrap();
    assert_eq!((bare.text, bare.unit), (Ok(None), None));
    assert!(bare.version.is_err());
}

#[test]
fn the_file_that_its_unit_names_is_the_one_and_a_link_is_not_followed() {
    let unit = "[Service]\nExecStart=/usr/bin/dockerd\n";
    let drop_in = "[Service]\nExecStart=\nExecStart=/usr/bin/dockerd --config-file /srv/docker.json\n";
    let docker = read(&[
        ("usr/bin/dockerd", ""),
        ("lib/systemd/system/docker.service", unit),
        ("etc/systemd/system/docker.service.d/override.conf", drop_in),
        (
            "usr/lib/systemd/system/docker.service.d/override.conf",
            "[Service]\nExecStart=\nExecStart=masked\n",
        ),
        ("srv/docker.json", "{\"debug\": true}"),
    ]);
    let installed = docker.installed.unwrap();
    assert_eq!(installed.config, Path::new("/srv/docker.json"));
    assert_eq!(installed.text, Ok(Some("{\"debug\": true}".to_owned())));
    assert_eq!(installed.notes, [""; 0]);

    let docker = read(&[("usr/bin/dockerd", ""), ("etc/docker/daemon.json", "-> /srv/daemon.json")]);
    let why = "ROOT/etc/docker/daemon.json is a symbolic link, not a regular file, and is left alone";
    assert_eq!(docker.installed.as_ref().unwrap().text, Err(why.to_owned()));
    let desired = of(&docker);
    assert_eq!((desired.actions.len(), said(&desired)), (0, vec![(true, why)]));
}

/// The notes of a docker whose unit has this command line.
fn noted(config: &str, line: &str) -> Vec<String> {
    let unit = format!("[Service]\nExecStart=/usr/bin/dockerd {line}\n");
    let docker = read_with(
        config,
        &[("usr/bin/dockerd", ""), ("usr/lib/systemd/system/docker.service", unit.as_str())],
    );
    docker.installed.unwrap().notes
}

#[test]
fn a_configured_file_that_dockerd_does_not_read_is_said() {
    let said = noted("/srv/mine.json", "--config-file /srv/docker.json");
    assert_eq!(
        said,
        [
            "docker.service starts dockerd with /srv/docker.json, which is edited, and not /srv/mine.json: see \
             docker.config"
        ]
    );
    assert_eq!(noted("/srv/docker.json", "--config-file /srv/docker.json"), [""; 0]);
    assert_eq!(noted("/srv/mine.json", "-H fd:// $DOCKER_OPTS"), [""; 0]);
    assert_eq!(
        noted("/etc/docker/daemon.json", "--config-file=$FILE"),
        [
            "docker.service starts dockerd with --config-file=$FILE, which only systemd can resolve: if that names \
             another configuration file than /etc/docker/daemon.json, set docker.config"
        ]
    );
}

#[test]
fn a_unit_that_cannot_be_read_is_said() {
    let unit = ("usr/lib/systemd/system/docker.service", "[Service]\nExecStart=/usr/bin/dockerd\n");
    let loop_at = "etc/systemd/system/docker.service.d/a.conf";
    for (files, unit_is_there) in [
        (vec![unit, (loop_at, "-> a.conf")], true),
        (vec![("etc/systemd/system/docker.service", "-> docker.service")], false),
        (vec![unit, ("etc/systemd/system/docker.service", "-> /dev/null")], false),
    ] {
        let docker =
            read(&[files.as_slice(), &[("usr/bin/dockerd", ""), ("etc/docker/daemon.json", "{}")]].concat());
        let installed = docker.installed.as_ref().unwrap();
        assert_eq!(installed.unit.is_some(), unit_is_there, "{files:?}");
        let [note] = installed.notes.as_slice() else { panic!("{files:?}: {:?}", installed.notes) };
        assert!(note.contains("ROOT/etc/systemd/system/docker.service"), "{note}");
        assert!(note.ends_with(": how docker.service starts dockerd is not fully known"), "{note}");
        // A note, and no problem: what can be known of it is done.
        assert!(said(&of(&docker)).contains(&(false, note.as_str())), "{note}");
    }
}

#[test]
fn an_idle_grace_is_said_to_end_no_container_of_docker() {
    let there = Engines { docker: docker("26.1.5", None), ..Engines::default() };
    let told = |text: &str| {
        let desired = of_engines(text, &there);
        said(&desired).into_iter().any(|(problem, text)| !problem && text.contains("wrapper.idle-grace-s"))
    };
    for (text, expected) in [
        ("wrapper: {sharing: exclusive, idle-grace-s: 600}", true),
        ("wrapper: {sharing: exclusive}", false),
        ("wrapper: {idle-grace-s: 600}", false),
        ("wrapper: {sharing: exclusive, idle-grace-s: 600}\ndocker: {configure: never}", false),
    ] {
        assert_eq!(told(text), expected, "{text}");
    }
}
