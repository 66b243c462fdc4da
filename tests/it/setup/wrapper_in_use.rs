//! What engines are told now, wherever that stands by now: the wrapper stays while one of their files names it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::setup::laid::Laid;
use crate::setup::program::Program;
use crate::setup::undo_conditions::with;

const WRAPPER: &str = "usr/local/lib/rocworker/runc-amd-wrapper";
const DAEMON: &str = "etc/docker/daemon.json";
const MAIN: &str = "etc/containerd/config.toml";
const DOCKER_UNIT: &str = "etc/systemd/system/docker.service";

/// What somebody does after an apply, and what takes it back.
struct Case {
    put: fn(&Laid),
    /// The file that names the wrapper by then.
    names: &'static str,
}

fn moved(laid: &Laid, from: &str, to: &str, more: &str) {
    let text = laid.text(from);
    fs::remove_file(laid.path(from)).unwrap();
    laid.put(to, &if more.starts_with('{') { text.replacen('{', more, 1) } else { text + more });
}

const CASES: [Case; 7] = [
    Case {
        put: |laid| {
            moved(laid, DAEMON, "srv/docker.json", "{\"default-runtime\": \"amd\",");
            let start = "[Service]\nExecStart=/usr/sbin/dockerd --config-file /srv/docker.json\n";
            laid.put(DOCKER_UNIT, start);
        },
        names: "/srv/docker.json",
    },
    // rocworker was told of another file than docker's unit is.
    Case {
        put: |laid| {
            moved(laid, DAEMON, "srv/docker.json", "{\"default-runtime\": \"amd\",");
            let start = "[Service]\nExecStart=/usr/sbin/dockerd --config-file=/srv/docker.json\n";
            laid.put(DOCKER_UNIT, start);
            laid.put("etc/rocworker/config.yaml", "docker: {config: /etc/docker/other.json}\n");
        },
        names: "/srv/docker.json",
    },
    Case {
        put: |laid| {
            let theirs = laid.text(DAEMON).replace("\"amd\"", "\"gpu\"");
            laid.put(DAEMON, &theirs.replacen('{', "{\"default-runtime\": \"gpu\",", 1));
        },
        names: "/etc/docker/daemon.json",
    },
    Case {
        put: |laid| {
            let options = format!("--add-runtime amd=/{WRAPPER} --default-runtime amd");
            let text = format!("[Service]\nExecStart=\nExecStart=/usr/sbin/dockerd {options}\n");
            laid.put("etc/systemd/system/docker.service.d/runtime.conf", &text);
            laid.put(DAEMON, "{}\n");
        },
        names: "docker.service.d/runtime.conf",
    },
    Case {
        put: |laid| {
            moved(
                laid,
                MAIN,
                "srv/containerd.toml",
                "\n[plugins.'io.containerd.grpc.v1.cri'.containerd]\ndefault_runtime_name = 'amd'\n",
            );
            let start = "[Service]\nExecStart=/usr/bin/containerd -c /srv/containerd.toml\n";
            laid.put("etc/systemd/system/containerd.service", start);
            // Whatever rocworker's own configuration says of it.
            laid.put("etc/rocworker/config.yaml", "containerd: {config: /etc/containerd/other.toml}\n");
        },
        names: "/srv/containerd.toml",
    },
    Case {
        put: |laid| {
            let text = format!("[engine]\nruntime = \"amd\"\n[engine.runtimes]\namd = [\"/{WRAPPER}\"]\n");
            laid.put("etc/containers/containers.conf", &text);
        },
        names: "/etc/containers/containers.conf",
    },
    Case {
        put: |laid| laid.put("etc/containers/containers.conf.d/amd.conf", &format!("a = \"/{WRAPPER}\"\n")),
        names: "/etc/containers/containers.conf.d/amd.conf",
    },
];

#[test]
fn the_wrapper_stays_while_a_file_that_an_engine_reads_now_names_it() {
    let program = Program::new();
    for Case { put, names } in CASES {
        for off in [false, true] {
            let laid = with("1.7.24", "28.5.2");
            laid.put(MAIN, "version = 2\n");
            fs::remove_file(laid.path("usr/lib/rocworker/runc-amd-wrapper")).unwrap();
            let (code, said) = program.run(&laid, &["apply"]);
            assert_eq!(code, 0, "{said}");
            put(&laid);
            if off {
                let path = laid.path("etc/rocworker/config.yaml");
                let config = fs::read_to_string(&path).unwrap();
                fs::write(path, format!("{config}compute-runtime: none\n")).unwrap();
            }
            let command = if off { "apply" } else { "undo" };
            let (code, said) = program.run(&laid, &[command]);
            assert_eq!(code, i32::from(!off), "{names}: {said}");
            assert!(said.contains(names), "{names}: {said}");
            assert!(laid.path(WRAPPER).exists(), "{names}: {said}");

            let file = names.trim_start_matches('/');
            let file = if file.starts_with("docker.service.d") {
                format!("etc/systemd/system/{file}")
            } else {
                file.to_owned()
            };
            fs::write(laid.path(&file), if file.ends_with("json") { "{}" } else { "" }).unwrap();
            let (code, said) = program.run(&laid, &[command]);
            assert!(code == 0 && !laid.path(WRAPPER).exists(), "{names}: {said}");
        }
    }
}

/// What dockerd keeps of a container.
fn put_container(laid: &Laid, folder: &str, name: &str, runtime: &str) {
    laid.put(&format!("{folder}/hostconfig.json"), &format!("{{\"Binds\":null,\"Runtime\":\"{runtime}\"}}"));
    laid.put(&format!("{folder}/config.v2.json"), &format!("{{\"ID\":\"1\",\"Name\":\"/{name}\"}}"));
}

#[test]
fn undo_and_plan_name_the_docker_containers_that_need_the_runtime_that_goes() {
    for (data, containers) in [
        ("", "var/lib/docker/containers"),
        ("{\"data-root\": \"/srv/docker\"}\n", "srv/docker/containers"),
        ("{\"userns-remap\": \"default\"}\n", "var/lib/docker/165536.165536/containers"),
    ] {
        let laid = with("2.1.9", "28.5.2");
        laid.put(DAEMON, if data.is_empty() { "{}\n" } else { data });
        laid.run(&["apply"]).success();
        for (id, name, runtime) in
            [("1f", "web", "amd"), ("2f", "db", "runc"), ("3f", "train", "amd"), ("4f", "old", "gpu")]
        {
            put_container(&laid, &format!("{containers}/{id}"), name, runtime);
        }
        let told = "with runtime amd, and cannot start them again without it: train, web; make them anew";
        assert!(!laid.json(&["plan"]).to_string().contains("made these containers"));
        for config in ["compute-runtime: none\n", "docker: {runtime: rocm}\n", "docker: {configure: never}\n"]
        {
            laid.put("etc/rocworker/config.yaml", config);
            let plan = laid.json(&["plan"]);
            assert!(plan["notes"].to_string().contains(told), "{config}: {plan:#}");
        }
        laid.put("etc/rocworker/config.yaml", "");
        let undone = laid.json(&["undo"]);
        assert!(undone["notes"].to_string().contains(told), "{undone:#}");
        laid.run(&["undo"]).success();
    }
}

#[test]
fn the_package_stays_while_a_file_that_an_engine_reads_now_names_its_wrapper() {
    for (path, text) in [
        (DOCKER_UNIT, format!("[Service]\nExecStart=/usr/sbin/dockerd --add-runtime amd={PACKAGED}\n")),
        ("srv/containerd.toml", format!("[a]\nBinaryName = '{PACKAGED}'\n")),
        ("usr/share/containers/containers.conf", format!("[engine]\nruntime = '{PACKAGED}'\n")),
    ] {
        let laid = with("2.1.9", "28.5.2");
        laid.run(&["apply"]).success();
        let start = "[Service]\nExecStart=/usr/bin/containerd -c /srv/containerd.toml\n";
        laid.put("etc/systemd/system/containerd.service", start);
        laid.put("etc/rocworker/config.yaml", "containerd: {config: /etc/containerd/other.toml}\n");
        laid.put(path, &text);
        let (code, said) = laid.fails(&["deb", "leave"]);
        assert!(code == 1 && said.contains(path) && said.contains("which is about to go"), "{path}: {said}");
        fs::remove_file(laid.path(path)).unwrap();
        laid.run(&["deb", "leave"]).success();
    }
}

const PACKAGED: &str = "/usr/lib/rocworker/runc-amd-wrapper";
const APT_HINT: &str = "Correct what is listed above, then remove it again.";

/// Applied by a rocworker that copies its wrapper, and then docker's default was made the wrapper.
fn with_default(program: &Program) -> Laid {
    let laid = with("1.7.24", "28.5.2");
    laid.put(MAIN, "version = 2\n");
    fs::remove_file(laid.path(&PACKAGED[1..])).unwrap();
    let (code, said) = program.run(&laid, &["apply"]);
    assert_eq!(code, 0, "{said}");
    let theirs = laid.text(DAEMON).replacen('{', "{\"default-runtime\": \"amd\",", 1);
    laid.put(DAEMON, &theirs);
    laid
}

#[test]
fn force_does_not_remove_a_runtime_that_dockers_default_names() {
    let program = Program::new();
    let laid = with_default(&program);
    let theirs = laid.text(DAEMON);
    for force in [true, false, true] {
        let (code, said) = program.run(&laid, if force { &["undo", "--force"] } else { &["undo"] });
        assert_eq!(code, 1, "{force}: {said}");
        assert!(said.contains("daemon.json says default-runtime = \"amd\""), "{force}: {said}");
        assert_eq!(laid.text(DAEMON), theirs, "{force}: {said}");
        assert!(laid.path(WRAPPER).exists(), "{force}: {said}");
    }
    laid.put(DAEMON, &theirs.replace("\"default-runtime\": \"amd\"", "\"default-runtime\": \"runc\""));
    let (code, said) = program.run(&laid, &["undo", "--force"]);
    assert!(code == 0 && !laid.path(WRAPPER).exists(), "{said}");
}

#[test]
fn the_wrappers_line_points_to_the_line_of_a_file_that_undo_leaves() {
    let program = Program::new();
    let laid = with_default(&program);
    let (code, said) = program.run(&laid, &["undo"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("set \"default-runtime\": \"runc\" in /etc/docker/daemon.json"), "{said}");
    assert!(
        said.contains("/etc/docker/daemon.json still needs it: do first what is listed for it"),
        "{said}"
    );
    assert!(!said.contains("take it out there"), "{said}");
}

#[test]
fn a_default_whose_runtime_somebody_has_removed_keeps_the_wrapper() {
    let program = Program::new();
    let laid = with_default(&program);
    laid.put(DAEMON, "{\"default-runtime\": \"amd\"}\n");
    for command in [&["undo"][..], &["undo", "--force"]] {
        let (code, said) = program.run(&laid, command);
        assert_eq!(code, 1, "{said}");
        assert!(said.contains("daemon.json says default-runtime = \"amd\""), "{said}");
        assert!(laid.path(WRAPPER).exists(), "{said}");
    }
    laid.put(DAEMON, "{\"default-runtime\": \"runc\"}\n");
    let (code, said) = program.run(&laid, &["undo"]);
    assert!(code == 0 && !laid.path(WRAPPER).exists(), "{said}");
    assert_eq!(laid.text(DAEMON), "{\"default-runtime\": \"runc\"}\n");
}

/// Whoever corrects such a file may make the runtime its default again.
#[test]
fn the_wrapper_stays_while_its_file_cannot_be_read() {
    let program = Program::new();
    let breaks: [fn(&Path); 4] = [
        |path| symlink("/opt/away/daemon.json", path).unwrap(),
        |path| fs::create_dir(path).unwrap(),
        |path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success()),
        |path| fs::write(path, "{\"default-runtime\":\"amd\",").unwrap(),
    ];
    for (n, put) in breaks.into_iter().enumerate() {
        let laid = with_default(&program);
        let path = laid.path(DAEMON);
        fs::rename(&path, laid.path("aside")).unwrap();
        put(&path);
        let (code, said) = program.run(&laid, &["undo"]);
        assert!(code == 1 && said.contains("may name it"), "{n}: {said}");
        assert!(laid.path(WRAPPER).exists(), "{n}: {said}");
        fs::rename(&path, laid.path("broken")).unwrap();
        let (code, said) = program.run(&laid, &["undo"]);
        assert!(code == 0 && !laid.path(WRAPPER).exists(), "{n}: {said}");
    }
}

/// What an engine's unit reads beside itself, and what nobody can read.
#[test]
fn the_wrapper_stays_while_an_environment_file_names_it_or_a_file_cannot_be_read() {
    const ENVIRONMENT: &str = "srv/docker.env";
    const CONF: &str = "etc/containers/containers.conf";
    let program = Program::new();
    for path in [WRAPPER, &PACKAGED[1..]] {
        for (file, put) in [
            (ENVIRONMENT, Some(format!("OPTIONS=--add-runtime amd=/{path}\n"))),
            // Nobody can read a folder as a file.
            (CONF, None),
        ] {
            let laid = with("2.1.9", "28.5.2");
            let start = "[Service]\nEnvironmentFile=-/srv/*.env\nExecStart=/usr/sbin/dockerd $OPTIONS\n";
            laid.put(DOCKER_UNIT, start);
            let run = |arguments: &[&str]| {
                if path == WRAPPER { program.run(&laid, arguments) } else { laid.fails(arguments) }
            };
            if path == WRAPPER {
                fs::remove_file(laid.path(&PACKAGED[1..])).unwrap();
            }
            assert_eq!(run(&["apply"]).0, 0);
            match &put {
                Some(text) => laid.put(file, text),
                None => fs::create_dir_all(laid.path(file)).unwrap(),
            }
            let command: &[&str] = if path == WRAPPER { &["undo"] } else { &["deb", "leave"] };
            let (code, said) = run(command);
            assert!(code == 1 && said.contains(file), "{path} {file}: {said}");
            assert!(path != WRAPPER || laid.path(WRAPPER).exists(), "{file}: {said}");
            if put.is_some() {
                fs::remove_file(laid.path(file)).unwrap();
            } else {
                fs::remove_dir(laid.path(file)).unwrap();
            }
            let (code, said) = run(command);
            assert!(code == 0 && !laid.path(WRAPPER).exists(), "{path} {file}: {said}");
        }
    }
}

#[test]
fn a_comment_that_names_the_wrapper_keeps_neither_it_nor_the_package() {
    let comment = |path: &str| format!("[engine]\n# runtime = \"{path}\"\n");
    let program = Program::new();
    let laid = with_default(&program);
    laid.put(DAEMON, &laid.text(DAEMON).replace("\"default-runtime\": \"amd\",", ""));
    laid.put("etc/containers/containers.conf", &comment(&format!("/{WRAPPER}")));
    let (code, said) = program.run(&laid, &["undo"]);
    assert!(code == 0 && !laid.path(WRAPPER).exists(), "{said}");

    let laid = with("2.1.9", "28.5.2");
    laid.run(&["apply"]).success();
    laid.put("etc/containers/containers.conf", &comment(PACKAGED));
    laid.run(&["deb", "leave"]).success();
}

#[test]
fn the_package_says_to_correct_what_it_lists() {
    let laid = with("2.1.9", "28.5.2");
    laid.run(&["apply"]).success();
    laid.put("etc/crio/crio.conf", &format!("runtime = '{PACKAGED}'\n"));
    let (code, said) = laid.fails(&["deb", "leave"]);
    let bail = format!("Package kept; nothing was reverted. {APT_HINT}");
    assert!(code == 1 && said.contains(&bail) && said.contains("/etc/crio/crio.conf"), "{said}");
}
