//! The policy that apply writes for a machine where the configuration says nothing of it: whose requests count, and
//! whether containers see folders of the host.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::Value;

use crate::setup::laid::Laid;

const POLICY: &str = "etc/rocworker/wrapper.json";
const WRAPPER: &str = "/usr/lib/rocworker/runc-amd-wrapper";
const UNIT: &str = "usr/lib/systemd/system/docker.service";
const DAEMON: &str = "etc/docker/daemon.json";
const CRIO_UNIT: &str = "usr/lib/systemd/system/crio.service";
const BY_CDI: &str =
    "any image could ask for GPUs there, so it honours no request until you set wrapper.requests";

fn policy(laid: &Laid) -> Value {
    serde_json::from_str(&laid.text(POLICY)).unwrap()
}

/// `requests` and `default` of the policy.
fn granted(laid: &Laid) -> (String, String) {
    let policy = policy(laid);
    let of = |key: &str| policy[key].as_str().unwrap().to_owned();
    (of("requests"), of("default"))
}

fn is(requests: &str, default: &str) -> (String, String) {
    (requests.to_owned(), default.to_owned())
}

/// The notes of a plan about the wrapper.
fn notes(laid: &Laid) -> Vec<String> {
    let plan = laid.json(&["plan"]);
    let notes = plan["notes"].as_array().unwrap().iter().filter(|note| note["about"] == "wrapper");
    notes.map(|note| note["text"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn where_the_runtime_is_chosen_by_name_every_request_counts_and_nobody_gets_a_gpu_unasked() {
    let laid = Laid::with_engines("");
    assert_eq!(notes(&laid), [""; 0]);
    laid.run(&["apply"]).success();
    assert_eq!(granted(&laid), is("all", "none"));
    let said = policy(&laid);
    assert_eq!((&said["folders"], said.get("pods")), (&Value::Array(Vec::new()), None));

    laid.put("etc/rocworker/config.yaml", "wrapper: {requests: deny}\n");
    let denied = "wrapper.requests is deny: the wrapper provides no GPUs; containers get GPUs by CDI";
    assert_eq!(notes(&laid), [denied]);
    laid.run(&["apply"]).success();
    assert_eq!(granted(&laid), is("deny", "none"));
}

/// What makes the wrapper an engine's default runtime.
type Default = (&'static str, fn(&Laid), &'static str);

const DEFAULTS: [Default; 8] = [
    ("docker", |laid| laid.put("etc/docker/daemon.json", r#"{"default-runtime": "amd"}"#), "daemon.json"),
    (
        "docker",
        |laid| laid.put(UNIT, "[Service]\nExecStart=/usr/sbin/dockerd --default-runtime=amd\n"),
        "docker.service",
    ),
    (
        "docker",
        |laid| {
            let mine = format!(
                "{{\"default-runtime\": \"x\", \"runtimes\": {{\"x\": {{\"path\": \"{WRAPPER}\"}}}}}}"
            );
            laid.put("etc/docker/daemon.json", &mine);
        },
        "daemon.json",
    ),
    (
        "containerd",
        |laid| {
            let main = "version = 3\n[plugins.'io.containerd.cri.v1.runtime'.containerd]\ndefault_runtime_name = 'amd'\n";
            laid.put("etc/containerd/config.toml", main);
        },
        "config.toml",
    ),
    (
        "containerd",
        |laid| {
            laid.put(
                "etc/containerd/config.toml",
                "version = 3\nimports = ['/etc/containerd/more/*.toml']\n",
            );
            let said = format!(
                "version = 3\n[plugins.'io.containerd.cri.v1.runtime'.containerd]\ndefault_runtime_name = 'x'\n\
                 [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.x]\nruntime_type = 'io.containerd.runc.v2'\n\
                 options = {{BinaryName = '{WRAPPER}'}}\n"
            );
            laid.put("etc/containerd/more/a.toml", &said);
        },
        "more/a.toml",
    ),
    (
        "crio",
        |laid| {
            laid.put_program("usr/bin/crio", "");
            laid.put("etc/crio/crio.conf.d/50-mine", "[crio.runtime]\ndefault_runtime = 'amd'\n");
        },
        "50-mine",
    ),
    (
        "podman",
        |laid| {
            laid.put_program("usr/bin/podman", "");
            let mine = format!("[engine]\nruntime = 'x'\n[engine.runtimes]\nx = ['{WRAPPER}']\n");
            laid.put("etc/containers/containers.conf", &mine);
        },
        "containers.conf",
    ),
    (
        "podman",
        |laid| {
            laid.put_program("usr/bin/podman", "");
            laid.put("etc/containers/containers.conf", "[engine]\nruntime = 'crun'\n");
            laid.put(
                "etc/containers/containers.conf.d/a.conf",
                &format!("[engine]\nruntime = '{WRAPPER}'\n"),
            );
        },
        "a.conf",
    ),
];

#[test]
fn where_the_wrapper_becomes_a_default_runtime_no_request_counts_until_the_configuration_says_so() {
    for (engine, make, said_in) in DEFAULTS {
        let laid = Laid::with_engines("");
        laid.run(&["apply"]).success();
        assert_eq!(granted(&laid), is("all", "none"), "{engine} {said_in}");
        make(&laid);
        let said = notes(&laid);
        let [note] = said.as_slice() else { panic!("{engine} {said_in}: {said:?}") };
        let start = format!("{engine}'s default runtime is the wrapper (");
        assert!(note.starts_with(&start) && note.contains(&format!("{said_in}): {BY_CDI}")), "{note}");
        laid.run(&["apply"]);
        assert_eq!(granted(&laid), is("deny", "none"), "{engine} {said_in}");

        laid.put("etc/rocworker/config.yaml", "wrapper: {requests: named}\n");
        assert_eq!(notes(&laid), [""; 0], "{engine} {said_in}");
        laid.run(&["apply"]);
        assert_eq!(granted(&laid), is("named", "none"), "{engine} {said_in}");
    }
}

const CONTAINERD_MAIN: &str = "etc/containerd/config.toml";
const PODMANS: &str = "etc/containers/containers.conf";
/// A link to the wrapper.
const LINK: &str = "/opt/foo";

fn linked(laid: &Laid, from: &str) {
    fs::create_dir_all(laid.path(from).parent().unwrap()).unwrap();
    symlink(WRAPPER, laid.path(from)).unwrap();
}

/// A file of an engine's that makes the wrapper its default runtime without saying so plainly, what is a link to the
/// wrapper, what apply says of it, and where. `W` stands for the wrapper.
const HIDDEN: [(&str, &str, &str, &str, &str); 24] = [
    (
        "docker",
        UNIT,
        "[Service]\nExecStart=/usr/sbin/dockerd --add-runtime x=W --default-runtime x\n",
        "",
        "is",
    ),
    (
        "docker",
        UNIT,
        "[Service]\nExecStart=/usr/sbin/dockerd --add-runtime=x=W --default-runtime=x\n",
        "",
        "is",
    ),
    (
        "docker",
        UNIT,
        "[Service]\nExecStart=/usr/sbin/dockerd --add-runtime=x=${W} --default-runtime=x\n",
        "",
        "may be",
    ),
    ("docker", DAEMON, r#"{"default-runtime": "x", "runtimes": {"x": {"path": "/opt/foo"}}}"#, LINK, "is"),
    (
        "docker",
        DAEMON,
        r#"{"default-runtime": "x", "runtimes": {"x": {"path": "/usr/lib/rocworker/../rocworker/runc-amd-wrapper"}}}"#,
        "",
        "is",
    ),
    (
        "docker",
        DAEMON,
        r#"{"default-runtime": "x", "runtimes": {"x": {"path": "runc-amd-wrapper"}}}"#,
        "/usr/local/bin/runc-amd-wrapper",
        "is",
    ),
    (
        "docker",
        DAEMON,
        r#"{"default-runtime": "x", "runtimes": {"x": {"path": "runc-amd-wrapper"}}}"#,
        "",
        "may be",
    ),
    (
        "docker",
        DAEMON,
        r#"{"default-runtime": "x",
            "runtimes": {"x": {"runtimeType": "io.containerd.runc.v2", "options": {"BinaryName": "W"}}}}"#,
        "",
        "is",
    ),
    ("docker", DAEMON, r#"{"default-runtime": "x"}"#, "", "may be"),
    ("docker", DAEMON, r#"{"default-runtime": "io.containerd.runc.v2"}"#, "/usr/bin/runc", "is"),
    ("docker", DAEMON, r#"{"default-runtime": "runc"}"#, "/usr/bin/runc", "is"),
    ("podman", PODMANS, "[engine]\nruntime = '/usr/bin/amdrunc'\n", "/usr/bin/amdrunc", "is"),
    ("podman", PODMANS, "[engine]\nruntime = 'amdrunc'\n", "", "may be"),
    ("podman", PODMANS, "[engine.runtimes]\ncrun = ['W']\n", "", "is"),
    ("podman", PODMANS, "[engine.runtimes]\nrunc = ['/opt/none', '/opt/foo']\n", LINK, "is"),
    ("podman", PODMANS, "[engine]\nruntime = 'crun'\n", "/usr/bin/crun", "is"),
    ("podman", "usr/share/containers/containers.conf.d/a.conf", "[engine]\nruntime = 'W'\n", "", "is"),
    ("containerd", CONTAINERD_MAIN, "runtimes.runc.options.BinaryName = 'W'\n", "", "is"),
    (
        "containerd",
        CONTAINERD_MAIN,
        "default_runtime_name = 'x'\nruntimes.x.runtime_type = 'io.containerd.runc.v2'\n\
         runtimes.x.options.BinaryName = '/opt/foo'\n",
        LINK,
        "is",
    ),
    ("containerd", CONTAINERD_MAIN, "default_runtime_name = 'x'\n", "", "may be"),
    ("containerd", CONTAINERD_MAIN, "default_runtime.options.BinaryName = 'W'\n", "", "is"),
    ("crio", "etc/crio/crio.conf", "[crio.runtime.runtimes.runc]\nruntime_path = '/opt/foo'\n", LINK, "is"),
    (
        "crio",
        CRIO_UNIT,
        "[Service]\nExecStart=/usr/bin/crio --runtimes x:W:/run/x --default-runtime x\n",
        "",
        "is",
    ),
    ("crio", "etc/crio/crio.conf", "[crio.runtime]\ndefault_runtime = 'x'\n", "", "may be"),
];

#[test]
fn a_default_runtime_that_is_the_wrapper_by_another_name_or_may_be_it_is_recognised() {
    for (engine, file, text, link, verb) in HIDDEN {
        let laid = Laid::with_engines("");
        let program = format!("usr/bin/{engine}");
        if engine != "docker" {
            laid.put_program(&program, "");
        }
        let section = "version = 3\n[plugins.'io.containerd.cri.v1.runtime'.containerd]\n";
        let start = if file == CONTAINERD_MAIN { section } else { "" };
        laid.put(
            file,
            &format!("{start}{}", text.replace("${W}", "$M").replace('W', WRAPPER).replace("$M", "${W}")),
        );
        if !link.is_empty() {
            linked(&laid, &link[1..]);
        }
        let said = notes(&laid);
        let what = format!("{engine} {text}: {said:?}");
        let start = format!("{engine}'s default runtime {verb} the wrapper (");
        assert!(
            said.iter().any(|note| note.starts_with(&start) && note.contains(&format!("): {BY_CDI}"))),
            "{what}"
        );
        laid.run(&["apply"]);
        assert_eq!(granted(&laid), is("deny", "none"), "{what}");
        laid.put("etc/rocworker/config.yaml", "wrapper: {requests: named}\n");
        assert_eq!(notes(&laid), [""; 0], "{what}");
        laid.run(&["apply"]);
        assert_eq!(granted(&laid), is("named", "none"), "{what}");
    }
}

#[test]
fn a_runc_that_is_the_wrapper_is_every_engines_default() {
    let makes: [fn(&Laid); 3] = [
        |laid| linked(laid, "usr/bin/runc"),
        |laid| linked(laid, "usr/local/sbin/runc"),
        |laid| _ = fs::copy(laid.path(&WRAPPER[1..]), laid.path("usr/bin/runc")).unwrap(),
    ];
    for (at, make) in makes.iter().enumerate() {
        let laid = Laid::with_engines("");
        laid.put_program("usr/bin/podman", "");
        make(&laid);
        let said = notes(&laid);
        for engine in ["docker", "containerd", "podman"] {
            let start = format!("{engine}'s default runtime is the wrapper (/usr/");
            assert!(said.iter().any(|note| note.starts_with(&start)), "{at} {engine}: {said:?}");
        }
        laid.run(&["apply"]);
        assert_eq!(granted(&laid), is("deny", "none"), "{at}");
    }
}

#[test]
fn a_default_runtime_that_is_another_program_changes_nothing() {
    let others: [fn(&Laid); 9] = [
        |laid| {
            laid.put_program("opt/mine", "");
            laid.put(DAEMON, r#"{"default-runtime": "x", "runtimes": {"x": {"path": "/opt/mine"}}}"#);
        },
        |laid| {
            let text = r#"{"default-runtime": "x", "runtimes": {"x": {"runtimeType": "io.containerd.kata-qemu.v2"}}}"#;
            laid.put(DAEMON, text);
        },
        |laid| {
            // Not the default.
            laid.put(DAEMON, r#"{"runtimes": {"x": {"path": "/opt/foo"}}}"#);
            linked(laid, "opt/foo");
        },
        |laid| {
            laid.put_program("usr/bin/podman", "");
            laid.put_program("usr/bin/crun", "crun");
            laid.put_program("usr/bin/runc", "runc");
            laid.put_program("usr/bin/crio", "");
        },
        |laid| laid.put("etc/docker/daemon.json", r#"{"default-runtime": "runc"}"#),
        |laid| {
            let text = r#"{"default-runtime": "amd", "runtimes": {"amd": {"path": "/usr/bin/amd-container-runtime"}}}"#;
            laid.put("etc/docker/daemon.json", text);
        },
        |laid| {
            let main = "version = 3\n[plugins.'io.containerd.cri.v1.runtime'.containerd]\ndefault_runtime_name = 'nvidia'\n";
            laid.put("etc/containerd/config.toml", main);
        },
        |laid| {
            laid.put_program("usr/bin/podman", "");
            laid.put("etc/containers/containers.conf", &format!("[engine]\nruntime = '{WRAPPER}'\n"));
            laid.put("etc/containers/containers.conf.d/z.conf", "[engine]\nruntime = 'runc'\n");
        },
        // Not installed.
        |laid| laid.put("etc/containers/containers.conf", &format!("[engine]\nruntime = '{WRAPPER}'\n")),
    ];
    for (at, make) in others.iter().enumerate() {
        let laid = Laid::with_engines("");
        make(&laid);
        laid.run(&["apply"]);
        assert_eq!(granted(&laid), is("all", "none"), "{at}");
    }
}

/// Where it cannot be read whether the wrapper is the default runtime, what containers may have stays as it is.
#[test]
fn an_engines_file_that_cannot_be_read_leaves_the_policy_as_it_is() {
    for (file, broken) in [("etc/docker/daemon.json", "{\n"), ("etc/containerd/config.toml", "version = \n")]
    {
        for (start, granted_then) in
            [("", is("all", "none")), ("wrapper: {requests: deny}", is("deny", "none"))]
        {
            let laid = Laid::with_engines(start);
            laid.run(&["apply"]).success();
            laid.put(file, broken);
            laid.put("etc/rocworker/config.yaml", "");
            laid.run(&["apply"]);
            assert_eq!(granted(&laid), granted_then, "{file}");
            // A configured one does not depend on it.
            laid.put("etc/rocworker/config.yaml", "wrapper: {requests: count}\n");
            laid.run(&["apply"]);
            assert_eq!(granted(&laid), is("count", "none"), "{file}");
        }
    }
}

/// A worker that is configured beneath another root. `script`: the charm's in runc's place, with the real runc beside it
/// or without.
fn worker(config: &str, script: Option<(&str, bool)>) -> Laid {
    let laid = Laid::with_engines(config);
    laid.put_worker("linux");
    let bin = "var/lib/concourse/bin";
    for program in ["concourse", "containerd"] {
        laid.put_program(&format!("{bin}/{program}"), "");
    }
    let Some((script, with_real)) = script else {
        laid.put_program(&format!("{bin}/runc"), "\u{7f}ELF");
        return laid;
    };
    laid.put_program(&format!("opt/bin/{script}"), "#!/bin/bash\nexec /opt/bin/runc.real \"$@\"\n");
    symlink(format!("/opt/bin/{script}"), laid.path(&format!("{bin}/runc"))).unwrap();
    if with_real {
        laid.put_program(&format!("{bin}/runc.real"), "\u{7f}ELF");
    }
    laid
}

#[test]
fn a_task_sees_the_hosts_folders_only_on_an_adopted_worker_whose_charm_has_mounted_them() {
    const GPUS: &str = "runc-amd-wrapper";
    const PLAIN: &str = "runc-wrapper";
    const ADOPT: &str = "concourse: {existing: adopt}\n";
    for (config, script, folders, runs_real) in [
        ("", None, &[][..], false),
        (ADOPT, None, &[], false),
        // The charm's own script goes on mounting them: it stays behind the wrapper.
        ("", Some((PLAIN, true)), &[], false),
        ("", Some((PLAIN, false)), &[], false),
        (ADOPT, Some((PLAIN, true)), &["/srv"], true),
        (ADOPT, Some((GPUS, true)), &["/srv"], true),
        (ADOPT, Some((GPUS, false)), &[], false),
    ] {
        let laid = worker(config, script);
        let noted = notes(&laid);
        laid.run(&["apply"]);
        let what = format!("{config}{script:?}: {noted:?}");
        assert_eq!(granted(&laid), is("all", "all"), "{what}");
        let policy = policy(&laid);
        assert_eq!(policy["folders"], Value::from(folders.to_vec()), "{what}");
        let real = runs_real.then_some("/var/lib/concourse/bin/runc.real");
        assert_eq!(policy["runtime"].as_str(), real, "{what}");
        let told = noted.iter().any(|note| {
            note.starts_with("the wrapper mounts the folders in /srv into every container, as /opt/bin/runc-")
                && note.ends_with("; `wrapper: {folders: []}` ends that")
        });
        assert_eq!((told, noted.len()), (!folders.is_empty(), folders.len()), "{what}");
    }
    for (config, script, folders) in [
        ("wrapper: {folders: [/srv]}\n", None, "/srv"),
        ("concourse: {existing: adopt}\nwrapper: {folders: []}\n", Some((GPUS, true)), ""),
    ] {
        let laid = worker(config, script);
        assert_eq!(notes(&laid), [""; 0], "{config}");
        laid.run(&["apply"]).success();
        assert_eq!(policy(&laid)["folders"].as_array().map(Vec::len), Some(folders.len() / 4), "{config}");
    }
}

/// The worker's tasks get every GPU, and so does everything else that runs by the wrapper.
#[test]
fn on_a_worker_a_default_runtime_of_the_wrappers_gets_every_gpu_and_the_plan_says_so() {
    let laid = worker("", None);
    laid.put("etc/docker/daemon.json", r#"{"default-runtime": "amd"}"#);
    let said = notes(&laid);
    let [note] = said.as_slice() else { panic!("{said:?}") };
    assert!(note.contains("docker/daemon.json): each of its containers gets every GPU"), "{note}");
    laid.run(&["apply"]).success();
    assert_eq!(granted(&laid), is("all", "all"));
}
