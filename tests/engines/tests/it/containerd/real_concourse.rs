//! The containerd that a Concourse worker would start, with what rocworker sets for it, run by real containerd. The
//! worker itself cannot be had here: what it does is laid out by hand, after its sources (worker/workercmd): its own
//! folder goes first on PATH, then `$CONCOURSE_CONTAINERD_BIN` or containerd runs with `--address`, `--root` and
//! `--config`.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use config::Config;
use config::selection::select;
use engines::concourse::desired::{SHIM_FOLDER, actions};
use engines::concourse::{self, Charm, Concourse, Worker};
use engines::{CommandLine, Version};
use host::env_file::EnvFile;
use host::facts::Facts;
use layout::Machine;
use real_engines::containerd::{Containerd, Start};
use real_engines::engine::{CONTAINERD_1_6, CONTAINERD_1_7, CONTAINERD_2_1, Engine, Unpacked};
use real_engines::host::Host;
use real_engines::look;
use real_engines::machine::{self, ASKED, seen_on_demo};
use reconcile::{Content, Desired, Kind};
use render::Templates;

/// The configuration that Concourse 7.8 writes into its work folder for containerd 1.x
/// (worker/workercmd/containerd.go).
const DEFAULT_2: &str = "
version = 2

oom_score = -999
disabled_plugins = [\"io.containerd.grpc.v1.cri\", \"io.containerd.snapshotter.v1.aufs\", \
                         \"io.containerd.snapshotter.v1.btrfs\", \"io.containerd.snapshotter.v1.zfs\"]
";
const DEFAULT_3: &str = include_str!("../../../../../templates/concourse/default-3.toml");
const DEFAULT_4: &str = include_str!("../../../../../templates/concourse/default-4.toml");

const BIN: &str = "/var/lib/concourse/bin";
const PATH: &str = "/usr/sbin:/usr/bin";

/// A worker as the charm makes it, with this containerd.
fn worker(containerd: Version, written_config: Option<&str>) -> Worker {
    let environment = [("CONCOURSE_RUNTIME", "containerd"), ("PATH", PATH)];
    Worker {
        unit: "/etc/systemd/system/concourse-worker.service".into(),
        bin: BIN.into(),
        version: Err("not there".to_owned()),
        containerd: concourse::Containerd {
            program: Some(Path::new(BIN).join("containerd")),
            version: Ok(containerd),
        },
        environment: environment.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        options: CommandLine::default(),
        written_config: written_config.map(str::to_owned),
        own_config: None,
        was_given_config: false,
        was_tagged: false,
        charm: Charm::default(),
        later: Vec::new(),
        settings_file: None,
        unread: Vec::new(),
        unfollowed: Vec::new(),
    }
}

/// The desired state for the worker on the demo machine.
fn desired(worker: Worker) -> Desired {
    let stage = machine::stage(&Machine::demo(), ASKED);
    let root = root::Root::open(&stage.folder().join("machine")).unwrap();
    let config = Config::read(&root).unwrap();
    let facts = Facts::read(&root);
    let selection = select(&config, &facts).unwrap();
    let concourse = Concourse { worker: Some(worker), ..Concourse::default() };
    // Where the host has the wrapper.
    let wrapper = Path::new(real_engines::engine::SHIM_FOLDER).join("runc");
    actions(&config, &selection, &concourse, &Templates::built_in(), Some(&wrapper))
}

/// Lays what should be out on a host, and Concourse's own programs: links to the engine's.
fn lay_out(host: &Host, desired: &Desired) -> BTreeMap<String, String> {
    let run = |argv: &[&str]| host.busybox(argv).well();
    run(&["mkdir", "-p", BIN, "/stage/new"]);
    for program in ["/usr/bin/containerd", "/usr/bin/containerd-shim-runc-v2", "/usr/sbin/runc"] {
        run(&["ln", "-s", program, BIN]);
    }
    let mut variables = BTreeMap::new();
    for action in &desired.actions {
        let path = action.path.path().unwrap();
        run(&["mkdir", "-p", path.parent().unwrap().to_str().unwrap()]);
        let path = path.to_str().unwrap();
        match &action.kind {
            Kind::Owned(Content::Link { target }) => {
                run(&["ln", "-s", target.to_str().unwrap(), path]);
            }
            Kind::Owned(Content::File { bytes, attributes }) => {
                let new = host.folder().join("new/file");
                fs::write(&new, bytes).unwrap();
                fs::set_permissions(&new, fs::Permissions::from_mode(attributes.mode)).unwrap();
                run(&["mv", "/stage/new/file", path]);
                if path.ends_with("concourse.env") {
                    variables.extend(EnvFile::parse(std::str::from_utf8(bytes).unwrap()).variables);
                }
            }
            other => panic!("{other:?}"),
        }
    }
    variables
}

/// containerd, started as the worker would.
fn start(engine: &Engine, unpacked: &Unpacked, policy: &str, desired: &Desired, default: &str) -> Containerd {
    start_with(engine, unpacked, policy, desired, default, |_| {})
}

fn start_with(
    engine: &Engine,
    unpacked: &Unpacked,
    policy: &str,
    desired: &Desired,
    default: &str,
    prepare: impl FnOnce(&Host),
) -> Containerd {
    let stage = machine::stage(&Machine::demo(), policy);
    look::lay_out(&machine::rootfs(&stage));
    let seen = stage.folder().join("seen");
    fs::create_dir(&seen).unwrap();
    fs::set_permissions(&seen, fs::Permissions::from_mode(0o777)).unwrap();
    fs::write(stage.folder().join("containerd.toml"), default).unwrap();
    let host = Host::set(stage, unpacked);
    let variables = lay_out(&host, desired);
    prepare(&host);
    let or = |name: &str, default: &str| variables.get(name).map_or(default, String::as_str).to_owned();
    let argv = vec![
        or("CONCOURSE_CONTAINERD_BIN", &format!("{BIN}/containerd")),
        "--address=/run/containerd/containerd.sock".to_owned(),
        "--root=/stage/containerd".to_owned(),
        format!("--config={}", or("CONCOURSE_CONTAINERD_CONFIG", "/stage/containerd.toml")),
    ];
    // The launcher's interpreter: an engine's root has none.
    host.busybox(&["ln", "-sf", "/usr/bin/busybox", "/bin/sh"]).well();
    Containerd::begin(engine, host, Start { path: format!("{BIN}:{PATH}"), argv })
}

fn version((major, minor, patch): (u32, u32, u32)) -> Version {
    Version { major, minor, patch }
}

/// Checks that a container gets the GPUs that it asks for and no others, and that a further process sees
/// them, too.
#[track_caller]
fn assert_wrapper_runs(containerd: &Containerd) {
    assert_eq!(containerd.look(&["--env", "AMD_VISIBLE_DEVICES=0"], "one"), seen_on_demo(0..1, "open"));
    assert_eq!(containerd.look(&[], "none"), "");
    containerd.start_sleeping(&["--env", "AMD_VISIBLE_DEVICES=2"], "stays");
    assert_eq!(containerd.look_in("stays", "further"), seen_on_demo(2..3, "open"));
    containerd.remove("stays");
    containerd.assert_nothing_is_left();
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_concourse_with_containerd_1_runs_the_wrapper_through_the_launcher() {
    for (engine, release) in [(CONTAINERD_1_6, (1, 6, 20)), (CONTAINERD_1_7, (1, 7, 24))] {
        let Some(unpacked) = engine.unpacked() else { return };
        let desired = desired(worker(version(release), Some(DEFAULT_2)));
        let mut containerd = start(&engine, &unpacked, ASKED, &desired, DEFAULT_2);
        assert_wrapper_runs(&containerd);
        containerd.kill_and_start_again();
        assert_wrapper_runs(&containerd);
    }
}

#[test]
fn real_concourse_with_containerd_2_runs_the_wrapper_through_its_configuration() {
    let Some(unpacked) = CONTAINERD_2_1.unpacked() else { return };
    // What is disabled from 8.2 as well, in the version that this containerd reads.
    let newer = DEFAULT_4.replace("version = 4", "version = 3");
    for written in [None, Some(newer.as_str())] {
        let desired = desired(worker(version((2, 1, 9)), written));
        let containerd = start(&CONTAINERD_2_1, &unpacked, ASKED, &desired, DEFAULT_3);
        assert_wrapper_runs(&containerd);
        let config = "--config=/etc/rocworker/concourse-containerd.toml";
        let dump = containerd.host().call(PATH, &["/usr/bin/containerd", config, "config", "dump"]).well();
        let path = format!("env = ['PATH={SHIM_FOLDER}:{BIN}:{PATH}']");
        for line in ["version = 3", "oom_score = -999", &path] {
            assert!(dump.lines().any(|dumped| dumped.trim() == line), "{line}: {dump}");
        }
        let disabled = dump.lines().find(|line| line.starts_with("disabled_plugins")).unwrap();
        assert_eq!(
            disabled.matches("io.containerd.").count(),
            if written.is_some() { 13 } else { 4 },
            "{disabled}"
        );
    }
}

#[test]
fn real_concourse_behind_the_charms_script_the_policy_names_the_real_runc() {
    let Some(unpacked) = CONTAINERD_2_1.unpacked() else { return };
    // A script like the charm's, which edits the bundle of each call that has one.
    let script =
        "#!/usr/bin/sh\necho \"$*\" >>/stage/seen/script\nexec /var/lib/concourse/bin/runc.real \"$@\"\n";
    let prepare = |host: &Host| {
        fs::write(host.folder().join("script"), script).unwrap();
        for argv in [
            &["mkdir", "-p", "/opt/bin"][..],
            &["cp", "/stage/script", "/opt/bin/runc-amd-wrapper"],
            &["chmod", "755", "/opt/bin/runc-amd-wrapper"],
            &["ln", "-sf", "/opt/bin/runc-amd-wrapper", "/var/lib/concourse/bin/runc"],
            &["cp", "/usr/sbin/runc", "/var/lib/concourse/bin/runc.real"],
        ] {
            host.busybox(argv).well();
        }
    };
    for named in [false, true] {
        let real = "\"runtime\":\"/var/lib/concourse/bin/runc.real\",\"requests\"";
        let policy = if named { ASKED.replace("\"requests\"", real) } else { ASKED.to_owned() };
        let desired = desired(worker(version((2, 1, 9)), None));
        let containerd = start_with(&CONTAINERD_2_1, &unpacked, &policy, &desired, DEFAULT_3, prepare);
        assert_eq!(containerd.look(&["--env", "AMD_VISIBLE_DEVICES=0"], "one"), seen_on_demo(0..1, "open"));
        let ran = fs::read_to_string(containerd.host().folder().join("seen/script")).unwrap_or_default();
        assert_eq!(ran.contains(" --bundle "), !named, "the charm's script ran with: {ran}");
    }
}

#[test]
fn real_concourse_8_2s_configuration_is_of_a_version_that_the_containerd_here_refuses() {
    let Some(unpacked) = CONTAINERD_2_1.unpacked() else { return };
    let desired = desired(worker(version((2, 3, 0)), None));
    let host = Host::of(&Machine::demo(), &unpacked);
    lay_out(&host, &desired);
    let config = "--config=/etc/rocworker/concourse-containerd.toml";
    let said = host.call(PATH, &["/usr/bin/containerd", config, "config", "dump"]);
    assert!(!said.status.success() && said.stderr.contains("got `4`"), "{said:?}");
}
