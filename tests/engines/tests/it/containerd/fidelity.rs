//! The wrapper is runc to whoever calls it: the same words, the same exit status, the same log, under runc 1.1 of two
//! releases and 1.3, each beside the same runc without the wrapper. A policy is in force all the while.

use std::fs;
use std::io::Read as _;
use std::os::unix::net::UnixListener;
use std::process::Stdio;

use real_engines::engine::CONTAINERD_2_1;
use real_engines::machine::ASKED;
use real_engines::pair::{Pair, Program, STATE, without_time};
use support::said::Said;

/// A bundle of nobody who asks for GPUs.
const PLAIN: &str = "/stage/bundles/plain";

/// Calls of runc while the container `c1` runs, and whether each succeeds.
const CALLS: &[(&[&str], bool)] = &[
    (&["--version"], true),
    (&["-v"], true),
    (&["--help"], true),
    (&["help"], true),
    (&["help", "run"], true),
    (&["create", "--help"], true),
    (&["exec", "-h"], true),
    (&["features"], true),
    (&["list"], true),
    (&["list", "--quiet"], true),
    (&["list", "--format", "json"], true),
    (&["state", "c1"], true),
    (&["ps", "--format", "json", "c1"], true),
    (&["exec", "c1", "sh", "-c", "echo out; echo err >&2"], true),
    (&["exec", "c1", "sh", "-c", "exit 42"], false),
    (&["exec", "c1", "sh", "-c", "kill -9 $$"], false),
    (&["exec", "c1", "/bin/nosuch"], false),
    (&["exec", "c1"], false),
    (&["exec", "nobody", "true"], false),
    (&["exec", "--process", "/nowhere", "c1"], false),
    (&["update", "--pids-limit", "77", "c1"], true),
    (&["resume", "c1"], false),
    (&["start", "c1"], false),
    (&["start", "nobody"], false),
    (&["state", "nobody"], false),
    (&["state"], false),
    (&["kill", "c1", "NOSUCH"], false),
    (&["kill", "nobody", "KILL"], false),
    (&["kill", "c1", "0"], true),
    (&["delete", "c1"], false),
    (&["delete", "nobody"], false),
    (&["delete", "--force", "nobody"], true),
    (&["create"], false),
    (&["create", "a", "b"], false),
    (&["create", "--bundle", "/nowhere", "c2"], false),
    (&["create", "--bundle", PLAIN, "c1"], false),
    (&["create", "--bundle", PLAIN, "in/valid"], false),
    (&["create", "--nosuchflag", "--bundle", PLAIN, "c2"], false),
    (&["create", "--bundle", PLAIN, "--console-socket", "/nowhere", "c2"], false),
    (&["run", "--bundle", PLAIN, "c2"], true),
    (&["nosuchcommand"], false),
    (&["--nosuchflag", "list"], false),
    (&["--log-format", "xml", "list"], false),
    (&["--log", "/nowhere/log", "list"], false),
    (&["--rootless", "perhaps", "list"], true),
    (&["spec", "--bundle", "/nowhere"], false),
    (&["restore", "--bundle", PLAIN, "c3"], false),
    // Neither criu nor systemd is there: what matters is that runc is asked, and its words come through.
    (&["checkpoint", "--image-path", "/tmp/image", "c1"], false),
    (&["--systemd-cgroup", "create", "--bundle", PLAIN, "c2"], false),
];

/// A container that the wrapper made, with GPUs or without, and that runs.
fn running(pair: &Pair, id: &str, env: &[&str]) {
    let bundle = pair.bundle(id, env, "sleep 1000");
    let create = ["create", "--bundle", &bundle, id];
    let status = pair.command(Program::Wrapper, &create).stdout(Stdio::null()).status().unwrap();
    assert!(status.success());
    pair.say(Program::Wrapper, &["start", id]).well();
}

/// Removes criu, whose output differs from call to call.
fn take_criu_away(pair: &Pair) {
    pair.host.busybox(&["rm", "-f", "/usr/sbin/criu"]).well();
}

#[test]
fn real_runc_says_the_same_through_the_wrapper_whatever_it_is_asked() {
    for pair in Pair::of_every_engine(ASKED) {
        take_criu_away(&pair);
        running(&pair, "c1", &["AMD_VISIBLE_DEVICES=0"]);
        assert_eq!(pair.host.records().len(), 1);
        assert_eq!(pair.bundle("plain", &[], "true"), PLAIN);
        let mut unlike = Vec::new();
        for (arguments, succeeds) in CALLS {
            let said = pair.same(arguments);
            // Who had the wrapper's word for it, or an error where there should be none, was not asked what is meant here.
            if said.status.success() != *succeeds || said.stderr.contains("runc-amd-wrapper") {
                unlike.push((arguments, said));
            }
        }
        assert!(unlike.is_empty(), "{}: {unlike:#?}", pair.engine.name);
        // Each is undone before anything is held, since a frozen process ends with nothing.
        let paused = Program::BOTH.map(|program| {
            ["pause", "state", "pause", "resume"].map(|subcommand| pair.say(program, &[subcommand, "c1"]))
        });
        assert_eq!(paused[0], paused[1], "{}", pair.engine.name);
        assert!(paused[1][1].stdout.contains("\"paused\""), "{paused:?}");
        let at_large = |program| pair.say_at_large(program, &["--root", "/run/other", "list"]);
        assert_eq!(at_large(Program::Runc), at_large(Program::Wrapper));
        let [runc, wrapper] =
            Program::BOTH.map(|program| without_numbers(&pair.say(program, &["events", "--stats", "c1"])));
        assert!(runc.contains("\"type\":\"stats\",\"id\":\"c#\""), "{runc}");
        assert_eq!(runc, wrapper, "{}", pair.engine.name);
        for program in Program::BOTH {
            let folder = pair.outside(&format!("spec-{program:?}"));
            fs::create_dir(&folder).unwrap();
            let inside = format!("/stage/spec-{program:?}");
            pair.say(program, &["spec", "--bundle", &inside]).well();
        }
        let [runc, wrapper] = Program::BOTH
            .map(|program| fs::read(pair.outside(&format!("spec-{program:?}/config.json"))).unwrap());
        assert_eq!(runc, wrapper, "{}", pair.engine.name);
        pair.say(Program::Wrapper, &["delete", "--force", "c1"]).well();
        assert_eq!(pair.host.records(), [""; 0]);
    }
}

/// Replaces measured numbers, which change from call to call.
fn without_numbers(said: &Said) -> String {
    let mut text = String::new();
    for letter in said.stdout.chars() {
        match letter {
            '0'..='9' if text.ends_with('#') => {}
            '0'..='9' => text.push('#'),
            letter => text.push(letter),
        }
    }
    text
}

#[test]
fn real_runc_ends_as_its_container_ends_through_the_wrapper_too() {
    for pair in Pair::of_every_engine(ASKED) {
        for (n, env) in [&[][..], &["AMD_VISIBLE_DEVICES=0"]].into_iter().enumerate() {
            for code in [0, 1, 2, 3, 77, 125, 126, 127, 128, 137, 254, 255] {
                let id = format!("e{n}-{code}");
                let script = format!("echo {code}; echo {n} >&2; exit {code}");
                let said = Program::BOTH.map(|program| {
                    let bundle = pair.bundle(&id, env, &script);
                    pair.say(program, &["run", "--bundle", &bundle, &id])
                });
                assert_eq!(said[0], said[1], "{}: {id}", pair.engine.name);
                assert_eq!(
                    (said[1].status.code(), said[1].stdout.as_str(), said[1].stderr.as_str()),
                    (Some(code), format!("{code}\n").as_str(), format!("{n}\n").as_str()),
                    "{}",
                    pair.engine.name
                );
            }
            // Each decision clears away what the dead before it had: `run` removes its container by itself.
            assert_eq!(pair.host.records().len(), n);
        }
    }
}

#[test]
fn real_runc_keeps_its_own_log_through_the_wrapper_in_either_format() {
    for pair in Pair::of_every_engine(ASKED) {
        let bundle = pair.bundle("no-such-program", &[], "true");
        let mut config = pair.config("no-such-program", &[], "true");
        config["process"]["args"] = serde_json::json!(["/bin/nosuch"]);
        pair.bundle_of("no-such-program", &config);
        for format in [&[][..], &["--log-format", "json"], &["-log-format=text", "--debug=false"]] {
            let logs = Program::BOTH.map(|program| {
                let log = format!("/stage/log-{program:?}");
                let arguments = [&["--log", &log], format, &["create", "--bundle", &bundle, "c1"]].concat();
                let said = pair.say(program, &arguments);
                assert_eq!(said.status.code(), Some(1), "{said:?}");
                let file = pair.outside(&format!("log-{program:?}"));
                let text = without_time(&fs::read_to_string(&file).unwrap());
                fs::remove_file(file).unwrap();
                (said, text)
            });
            assert_eq!(logs[0], logs[1], "{}: {format:?}", pair.engine.name);
            assert!(logs[1].1.contains("/bin/nosuch"), "{logs:?}");
            assert_eq!(logs[1].1.starts_with('{'), format.contains(&"json"), "{logs:?}");
        }
    }
}

#[test]
fn real_runc_hands_the_console_over_through_the_wrapper() {
    for pair in Pair::of_every_engine(ASKED) {
        let told = Program::BOTH.map(|program| {
            let name = format!("console-{program:?}");
            let script = format!("test -t 0 && test -t 1 && test -t 2 && echo a terminal >/seen/{name}");
            let mut config = pair.config(&name, &["AMD_VISIBLE_DEVICES=0"], &script);
            config["process"]["terminal"] = true.into();
            let bundle = pair.bundle_of(&name, &config);
            let listener = UnixListener::bind(pair.outside(&name)).unwrap();
            let socket = format!("/stage/{name}");
            pair.say(program, &["create", "--bundle", &bundle, "--console-socket", &socket, &name]).well();
            let (mut stream, _) = listener.accept().unwrap();
            pair.say(program, &["start", &name]).well();
            let written = pair.outside("seen").join(&name);
            while !fs::read_to_string(&written).is_ok_and(|text| text.ends_with('\n')) {
                let state = pair.say(program, &["state", &name]).well();
                assert!(!state.contains("\"stopped\"") || written.exists(), "no terminal: {state}");
            }
            // Read only now: the terminal's other end travels with these bytes, and would be closed.
            let mut bytes = [0; 4096];
            let length = stream.read(&mut bytes).unwrap();
            pair.say(program, &["delete", "--force", &name]).well();
            (String::from_utf8(bytes[..length].to_vec()).unwrap(), pair.seen(&name))
        });
        assert_eq!(told[0], told[1], "{}", pair.engine.name);
        assert!(told[1].0.contains("pt"), "{told:?}");
        assert_eq!(told[1].1, "a terminal\n");
    }
}

#[test]
fn real_runc_without_criu_changes_nothing_of_a_container_that_it_cannot_checkpoint() {
    for pair in Pair::of_every_engine(ASKED) {
        take_criu_away(&pair);
        running(&pair, "c1", &["AMD_VISIBLE_DEVICES=0"]);
        pair.bundle("c9", &["AMD_VISIBLE_DEVICES=0"], "true");
        let before = pair.say(Program::Runc, &["state", "c1"]).well();
        let bundle = pair.outside("bundles/c9/config.json");
        let config = fs::read(&bundle).unwrap();
        for arguments in [
            &["checkpoint", "--image-path", "/tmp/image", "--leave-running", "c1"][..],
            &["restore", "--image-path", "/tmp/image", "--bundle", "/stage/bundles/c9", "c9"],
        ] {
            let said = pair.same(arguments);
            assert!(!said.status.success() && said.stderr.contains("criu"), "{said:?}");
        }
        assert_eq!(pair.say(Program::Runc, &["state", "c1"]).well(), before);
        assert_eq!(fs::read(&bundle).unwrap(), config);
        assert_eq!(pair.host.names_in(STATE), ["c1"]);
        pair.say(Program::Wrapper, &["delete", "--force", "c1"]).well();
    }
}

/// The container's streams are its own and its network is everybody's, so that neither has to be carried over.
const COUNTS: &str =
    "exec </dev/null >/dev/null 2>&1; n=0; while :; do n=$((n+1)); echo $n >/seen/count; sleep 0.02; done";

/// A container with GPUs goes to disk and comes back with them, by sid's criu and sid's runc.
#[test]
fn real_runc_checkpoints_and_restores_a_container_with_gpus_through_the_wrapper() {
    for pair in Pair::of_every_engine(ASKED).into_iter().filter(|pair| pair.engine == CONTAINERD_2_1) {
        // criu packs the container's tmpfs by tar, and tar calls gzip by a shell.
        pair.host.busybox(&["ln", "-s", "busybox", "/usr/bin/sh"]).well();
        let told = Program::BOTH.map(|program| {
            let mut config = pair.config("frozen", &["AMD_VISIBLE_DEVICES=0"], COUNTS);
            let namespaces = config["linux"]["namespaces"].as_array_mut().unwrap();
            namespaces.retain(|namespace| namespace["type"] != "network");
            let bundle = pair.bundle_of("frozen", &config);
            let create = ["create", "--bundle", &bundle, "frozen"];
            let created = pair.command(program, &create).stdout(Stdio::null()).status().unwrap();
            assert!(created.success());
            pair.say(program, &["start", "frozen"]).well();
            let image = format!("/stage/image-{program:?}");
            let to_disk = ["--image-path", &image, "--work-path", &image, "--manage-cgroups-mode", "ignore"];
            let said = [
                pair.say(program, &[&["checkpoint"], &to_disk[..], &["frozen"]].concat()),
                pair.say(program, &["state", "frozen"]),
                pair.say(
                    program,
                    &[&["restore"], &to_disk[..], &["--bundle", &bundle, "--detach", "frozen"]].concat(),
                ),
            ];
            let nodes = pair.say(program, &["exec", "frozen", "find", "/dev/kfd", "/dev/dri", "-type", "c"]);
            let count = || fs::read_to_string(pair.outside("seen/count")).unwrap();
            let before = count();
            let state = pair.say(program, &["state", "frozen"]).well();
            assert!(state.contains("\"running\""), "{state}");
            std::iter::repeat_with(count).find(|now| !now.is_empty() && *now != before).unwrap();
            pair.say(program, &["delete", "--force", "frozen"]).well();
            (said, nodes.stdout)
        });
        let [(runc, without), (wrapper, with)] = told;
        assert_eq!(runc, wrapper);
        assert!(wrapper[0].status.success() && wrapper[2].status.success(), "{wrapper:#?}");
        assert!(wrapper[1].stderr.contains("does not exist"), "{wrapper:#?}");
        let mut with: Vec<&str> = with.lines().collect();
        with.sort_unstable();
        assert_eq!((without.as_str(), with), ("", vec!["/dev/dri/card1", "/dev/dri/renderD129", "/dev/kfd"]));
        assert_eq!(pair.host.records(), [""; 0]);
    }
}
