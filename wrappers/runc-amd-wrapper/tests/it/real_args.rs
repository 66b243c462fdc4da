//! The wrapper's reading of a command line against real runc's, of two releases, on generated lines.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command as Process;

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use support::real;

use crate::reading::{Place, ROOTS, Tally, compare};

/// How many command lines; the second number with `cargo xtask test --all`.
const LINES: [usize; 2] = [600, 3000];
const WORKERS: usize = 3;

#[test]
fn real_runc_agrees_with_the_reading_of_a_command_line() {
    if real::require_root(&["runc"]) {
        agrees_with(&["runc".into()]);
    }
}

/// runc 1.3 in November 2026. Its libraries are later than this machine's, so that it takes their own loader to run it.
#[test]
#[ignore = "cargo xtask test --all"]
fn real_runc_of_sid_agrees_with_the_reading_of_a_command_line() {
    let Some(containerd) = real::require_root_and_built("ROCWORKER_CONTAINERD_SID", &[]) else { return };
    let usr = containerd.parent().and_then(Path::parent).unwrap();
    let listed = |folder: PathBuf| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let libraries = listed(usr.join("lib")).find(|folder| folder.join("libseccomp.so.2").exists()).unwrap();
    let is_loader =
        |file: &PathBuf| file.file_name().is_some_and(|name| name.as_bytes().starts_with(b"ld-linux-"));
    let loader = listed(libraries.clone()).find(is_loader).unwrap();
    let runc = [loader, "--library-path".into(), libraries, usr.join("sbin/runc")];
    let version = Process::new(&runc[0]).args(&runc[1..]).arg("--version").output().unwrap();
    let version = String::from_utf8(version.stdout).unwrap();
    assert!(version.starts_with("runc version ") && !version.starts_with("runc version 1.1."), "{version}");
    agrees_with(&runc);
}

/// `runc`: the program, and what stands before runc's own arguments.
fn agrees_with(runc: &[PathBuf]) {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let count = LINES[usize::from(real::is_all())];
    let lines: Vec<Vec<String>> =
        (0..count).map(|_| line().new_tree(&mut runner).unwrap().current()).collect();
    let tallies: Vec<Tally> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|n| {
                let lines = &lines;
                scope.spawn(move || {
                    let place = Place::of(runc);
                    lines.iter().skip(n).step_by(WORKERS).fold(Tally::default(), |tally, line| {
                        tally.with(compare(line, has_a_newer_flag(line), &place.run(line), &place))
                    })
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    let sum = |field: fn(&Tally) -> usize| tallies.iter().map(field).sum::<usize>();
    // The lines must be such that they can show a difference, and hardly ever leave a doubt.
    assert!(sum(|t| t.created) > count / 10, "{tallies:?}");
    assert!(sum(|t| t.executed) > count / 20, "{tallies:?}");
    assert!(sum(|t| t.deleted) > count / 40, "{tallies:?}");
    assert!(sum(|t| t.refused) > count / 20, "{tallies:?}");
    assert!(sum(|t| t.doubtful) < count / 10, "{tallies:?}");
}

fn has_a_newer_flag(line: &[String]) -> bool {
    line.iter().any(|word| word.contains("new") || ["--keep", "-d", "-x"].contains(&word.as_str()))
}

/// A flag with one dash or two, its value attached or not.
fn flag(name: &'static str, values: &'static [&'static str]) -> BoxedStrategy<Vec<String>> {
    (prop::sample::select(vec!["-", "--"]), prop::sample::select(values), any::<bool>())
        .prop_map(move |(dashes, value, attached)| {
            if attached {
                vec![format!("{dashes}{name}={value}")]
            } else {
                vec![format!("{dashes}{name}"), value.to_owned()]
            }
        })
        .boxed()
}

fn words(list: &'static [&'static str]) -> BoxedStrategy<Vec<String>> {
    prop::sample::select(list).prop_map(|word| vec![word.to_owned()]).boxed()
}

fn global() -> BoxedStrategy<Vec<String>> {
    prop_oneof![
        4 => flag("root", ROOTS),
        1 => flag("log", &["L1", "L2"]),
        1 => flag("log-format", &["json", "text"]),
        1 => flag("criu", &["create", "x"]),
        1 => words(&["--debug", "-debug", "--debug=false", "-systemd-cgroup", "--systemd-cgroup=true"]),
    ]
    .boxed()
}

fn id() -> BoxedStrategy<Vec<String>> {
    words(&[
        "c1", "c1", "c2", "create", "run", "exec", "b1", "x,y", "true", "void", "void", "nobody", "a/b", "",
    ])
}

fn bundle() -> BoxedStrategy<Vec<String>> {
    const PATHS: &[&str] = &["b1", "./b2/", "b1/../b2", "create", "-b3", "", "b1/..", "nowhere"];
    prop_oneof![flag("bundle", PATHS), flag("b", PATHS)].boxed()
}

fn piece() -> BoxedStrategy<Vec<String>> {
    prop_oneof![
        2 => flag("pid-file", &["P", "create", "-x", "c1"]),
        1 => flag("preserve-fds", &["0", "1"]),
        1 => flag("console-socket", &[""]),
        2 => words(&["--no-pivot", "-no-pivot=false", "--no-new-keyring=true", "-no-new-keyring", "--keep", "-d"]),
        1 => words(&["--help=false", "-h", "--", "-", "---bundle", "--=x", "-b=", "--no-pivot=perhaps"]),
        1 => words(&["--new", "--new=x", "-newer"]),
    ]
    .boxed()
}

fn exec_piece() -> BoxedStrategy<Vec<String>> {
    prop_oneof![
        4 => flag("process", &["F", "create"]),
        2 => flag("p", &["F", "-x"]),
        2 => flag("e", &["A=create", "B="]),
        2 => flag("user", &["0", "0:0"]),
        2 => flag("g", &["992"]),
        2 => flag("cwd", &["/"]),
        3 => words(&["-t", "--tty=false", "-d", "--detach", "--no-new-privs", "--ignore-paused"]),
        1 => words(&["--", "--new", "--new=x"]),
    ]
    .boxed()
}

/// Global flags, a subcommand, and pieces with the bundle and the id anywhere among them.
fn line() -> BoxedStrategy<Vec<String>> {
    let globals = prop::collection::vec(global(), 0..3);
    let creates =
        (prop::collection::vec(piece(), 0..3), prop::option::weighted(0.7, bundle()), id(), 0..4_usize)
            .prop_map(|(mut pieces, bundle, id, at)| {
                pieces.insert(at.min(pieces.len()), id);
                if let Some(bundle) = bundle {
                    pieces.insert((at * 3 + 1) % (pieces.len() + 1), bundle);
                }
                pieces
            });
    let execs = (
        prop::collection::vec(exec_piece(), 0..3),
        id(),
        prop::collection::vec(words(&["create", "c2", "-p", "sh", "--bundle"]), 0..3),
    )
        .prop_map(|(mut pieces, id, command)| {
            pieces.push(id);
            pieces.extend(command);
            pieces
        });
    let deletes =
        (prop::option::of(words(&["-f", "--force", "--force=false", "-force=true"])), id(), any::<bool>())
            .prop_map(|(force, id, first)| {
                let mut pieces: Vec<_> = force.into_iter().collect();
                pieces.insert(if first { 0 } else { pieces.len() }, id);
                pieces
            });
    let others = (prop::collection::vec(words(&["c1", "create", "-x", "--bundle", "KILL"]), 0..3)).boxed();
    let call = prop_oneof![
        5 => creates.clone().prop_map(|pieces| ("create", pieces)),
        3 => creates.prop_map(|pieces| ("run", pieces)),
        3 => execs.prop_map(|pieces| ("exec", pieces)),
        3 => deletes.prop_map(|pieces| ("delete", pieces)),
        1 => (prop::sample::select(vec!["state", "start", "kill", "pause", "ps", "list", "creat", "--new", "--"]), others),
    ];
    (any::<bool>(), prop::sample::select(ROOTS), globals, call)
        .prop_map(|(rooted, root, globals, (subcommand, pieces))| {
            let mut line: Vec<String> = globals.concat();
            // runc would look into /run/runc otherwise: most lines name a folder that shows the id.
            if rooted || !line.iter().any(|word| word.contains("root")) {
                line.extend(["--root".to_owned(), root.to_owned()]);
            }
            line.push(subcommand.to_owned());
            line.extend(pieces.concat());
            line
        })
        .boxed()
}
