//! The wrapper's reading of a command line against real runc's, on generated lines.
//!
//! How runc's own reading shows, without a container: every id that a line may name is a link to itself
//! in the state folder, so that runc stops with an error that names the folder and the id; every bundle
//! holds a mount whose relative destination names the bundle, which runc warns about just before that.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "a test lays out folders and runs runc")]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};
use support::real;

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use runc_amd_wrapper::args::{Call, Command, Reading, read};

const LINES: usize = 3000;
const WORKERS: usize = 3;
const BUNDLES: &[&str] = &["b1", "b2", "create", "-b3"];
const ROOTS: &[&str] = &["R", "S"];
/// `void` stands in the state folder as an empty folder: `delete void` removes it.
const IDS: &[&str] = &["c1", "c2", "create", "run", "exec", "b1", "x,y", "true"];

const CRIU_IS_IGNORED: &str = "WARNING: --criu ignored (criu binary from $PATH is used); do not use\n";

/// What runc was seen to take a line for. What it did not show is `None`.
#[derive(Debug, Default)]
struct Seen {
    subcommand: Option<&'static str>,
    root: Option<String>,
    id: Option<String>,
    bundle: Option<String>,
    removed_void: bool,
    /// It succeeded without a word, as `delete --force` of nothing does.
    silent: bool,
    text: String,
}

#[test]
fn real_runc_agrees_with_the_reading_of_a_command_line() {
    if real::require_root(&["runc"]) {
        agrees_with(&["runc".into()]);
    }
}

/// The loader is named beside its libraries, as sid's are later than this machine's.
#[test]
fn real_runc_1_3_agrees_with_the_reading_of_a_command_line() {
    let Some(containerd) = real::require_root_and_built("ROCWORKER_CONTAINERD_SID", &[]) else { return };
    let usr = containerd.parent().and_then(Path::parent).unwrap();
    let libraries = std::fs::read_dir(usr.join("lib")).unwrap().map(|entry| entry.unwrap().path());
    let libraries = libraries.into_iter().find(|folder| folder.join("libseccomp.so.2").exists()).unwrap();
    let files = std::fs::read_dir(&libraries).unwrap().map(|entry| entry.unwrap().path());
    let is_loader =
        |file: &PathBuf| file.file_name().is_some_and(|name| name.as_bytes().starts_with(b"ld-linux-"));
    let loader = files.into_iter().find(is_loader).unwrap();
    agrees_with(&[loader, "--library-path".into(), libraries, usr.join("sbin/runc")]);
}

/// `runc`: the program, and what stands before runc's own arguments.
fn agrees_with(runc: &[PathBuf]) {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let lines: Vec<Vec<String>> =
        (0..LINES).map(|_| line().new_tree(&mut runner).unwrap().current()).collect();
    let tallies: Vec<Tally> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|n| {
                let lines = &lines;
                scope.spawn(move || {
                    let place = Place::new();
                    lines.iter().skip(n).step_by(WORKERS).fold(Tally::default(), |tally, line| {
                        tally.with(compare(line, &place.run(runc, line), &place))
                    })
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    let sum = |field: fn(&Tally) -> usize| tallies.iter().map(field).sum::<usize>();
    // The lines must be such that they can show a difference, and hardly ever leave a doubt.
    assert!(sum(|t| t.created) > LINES / 10, "{tallies:?}");
    assert!(sum(|t| t.executed) > LINES / 20, "{tallies:?}");
    assert!(sum(|t| t.deleted) > LINES / 40, "{tallies:?}");
    assert!(sum(|t| t.refused) > LINES / 20, "{tallies:?}");
    assert!(sum(|t| t.doubtful) < LINES / 10, "{tallies:?}");
}

#[derive(Debug, Default)]
struct Tally {
    created: usize,
    executed: usize,
    deleted: usize,
    refused: usize,
    doubtful: usize,
}

impl Tally {
    fn with(mut self, more: Self) -> Self {
        self.created += more.created;
        self.executed += more.executed;
        self.deleted += more.deleted;
        self.refused += more.refused;
        self.doubtful += more.doubtful;
        self
    }
}

fn compare(line: &[String], seen: &Seen, place: &Place) -> Tally {
    let arguments: Vec<&[u8]> = line.iter().map(|word| word.as_bytes()).collect();
    let reading = read(&arguments);
    let calls: &[Call<'_>] = match &reading {
        Reading::Certain(call) => std::slice::from_ref(call),
        Reading::Doubtful(calls) => calls,
    };
    let new_flags =
        line.iter().any(|word| word.contains("new") || ["--keep", "-d", "-x"].contains(&word.as_str()));
    let agreed = calls.iter().any(|call| agrees(call, seen, place))
        // A flag that this runc does not have there: a newer one may go on where this one refuses.
        || new_flags && seen.refused();
    assert!(agreed, "{line:?}\nread as {calls:?}\nseen {seen:?}");
    let mut tally = Tally { doubtful: usize::from(calls.len() > 1), ..Tally::default() };
    match seen.subcommand {
        Some("create" | "run") if seen.bundle.is_some() && seen.id.is_some() => tally.created = 1,
        Some("exec") if seen.id.is_some() => tally.executed = 1,
        _ if seen.removed_void => tally.deleted = 1,
        _ if seen.refused() => tally.refused = 1,
        _ => {}
    }
    tally
}

impl Seen {
    /// runc printed help or refused the line: it never looked for a container.
    fn refused(&self) -> bool {
        self.subcommand.is_none()
            && self.id.is_none()
            && !self.removed_void
            && !self.silent
            && !self.looked_for_an_id()
    }

    fn looked_for_an_id(&self) -> bool {
        ["container does not exist", "invalid container ID format", "container id cannot be empty"]
            .iter()
            .any(|sentence| self.text.contains(sentence))
    }
}

fn agrees(call: &Call<'_>, seen: &Seen, place: &Place) -> bool {
    let root = call.global.root.map(|root| String::from_utf8_lossy(root).into_owned());
    let same_root = seen.root.as_ref().is_none_or(|seen| Some(seen) == root.as_ref());
    let same_id = |id: &[u8]| match &seen.id {
        Some(seen) => seen.as_bytes() == id,
        // From 1.3 a comma makes an id invalid, and which one it is does not show.
        None if seen.text.contains("invalid container ID format") && id.contains(&b',') => true,
        None => !IDS.iter().any(|known| known.as_bytes() == id) || root.is_none(),
    };
    match call.command {
        Command::Create { bundle, id } | Command::Run { bundle, id } => {
            let name = if matches!(call.command, Command::Create { .. }) { "create" } else { "run" };
            let bundle = place.name_of(bundle);
            seen.subcommand == Some(name)
                && same_root
                && match bundle {
                    None => seen.no_such_bundle(),
                    Some(_) if id.is_empty() => seen.text.contains("container id cannot be empty"),
                    Some(_) => seen.bundle == bundle && same_id(id),
                }
        }
        Command::Exec { id, .. } => seen.subcommand == Some("exec") && same_root && same_id(id),
        Command::Delete { id, .. } => {
            let void_in_place = id == b"void" && root.as_deref().is_some_and(|root| ROOTS.contains(&root));
            seen.subcommand.is_none()
                && same_root
                && same_id(id)
                && (seen.id.is_some() || seen.looked_for_an_id() || seen.silent || seen.removed_void)
                && seen.removed_void == void_in_place
        }
        Command::Other(_) => seen.subcommand.is_none() && !seen.removed_void,
        Command::Nothing => seen.refused(),
    }
}

impl Seen {
    fn no_such_bundle(&self) -> bool {
        self.bundle.is_none() && (self.text.contains("chdir ") || self.text.contains("config.json not found"))
    }
}

/// A working directory with bundles and two state folders.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        let at = place.0.path();
        for bundle in BUNDLES.iter().copied().chain(["."]) {
            let folder = at.join(bundle);
            std::fs::create_dir_all(folder.join("rootfs")).unwrap();
            let config = format!(
                r#"{{"ociVersion":"1.0.2","process":{{"cwd":"/","args":["x"],"user":{{}}}},"root":{{"path":"rootfs"}},
"mounts":[{{"destination":"BUNDLE[{bundle}]","type":"bind","source":"/tmp"}}],
"linux":{{"namespaces":[{{"type":"mount"}}]}}}}"#
            );
            std::fs::write(folder.join("config.json"), config).unwrap();
        }
        for root in ROOTS {
            std::fs::create_dir(at.join(root)).unwrap();
            for id in IDS {
                std::os::unix::fs::symlink(id, at.join(root).join(id)).unwrap();
            }
            std::fs::create_dir(at.join(root).join("void")).unwrap();
        }
        place
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// The name that stands in the bundle which `bundle` leads to from here, as `open` sees it.
    fn name_of(&self, bundle: Option<&[u8]>) -> Option<String> {
        let folder = self.path().join(OsStr::from_bytes(bundle.unwrap_or_default()));
        let config = std::fs::read_to_string(folder.join("config.json")).ok()?;
        between(&config, "BUNDLE[", "]").map(str::to_owned)
    }

    fn run(&self, runc: &[PathBuf], line: &[String]) -> Seen {
        let output = Process::new(&runc[0])
            .args(&runc[1..])
            .args(line)
            .current_dir(self.path())
            .env_remove("XDG_RUNTIME_DIR")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        // What 1.3 says of --criu, which it takes and does not use.
        let mut text = String::from_utf8_lossy(&output.stderr).replace(CRIU_IS_IGNORED, "");
        for log in ["L1", "L2"].map(|log| self.path().join(log)) {
            text.push_str(&std::fs::read_to_string(&log).unwrap_or_default());
            let _ = std::fs::remove_file(&log);
        }
        let removed: Vec<PathBuf> = ROOTS
            .iter()
            .map(|root| self.path().join(root).join("void"))
            .filter(|void| !void.exists())
            .collect();
        for void in &removed {
            std::fs::create_dir(void).unwrap();
        }
        let subcommand =
            [("create", "runc create failed: "), ("run", "runc run failed: "), ("exec", "exec failed: ")]
                .iter()
                .find(|(_, said)| text.contains(said))
                .map(|(name, _)| *name);
        // 1.1 names the folder of the id, 1.3 the id in it.
        let state = between(&text, "SecureJoin ", ": too many").map(|path| path.trim_end_matches('/'));
        let state = state.and_then(|path| path.rsplit_once('/'));
        Seen {
            subcommand,
            root: state.map(|(root, _)| root.rsplit('/').next().unwrap().to_owned()),
            id: state.map(|(_, id)| id.to_owned()),
            bundle: between(&text, "BUNDLE[", "]").map(str::to_owned),
            removed_void: !removed.is_empty(),
            silent: output.status.success() && output.stdout.is_empty() && text.is_empty(),
            text,
        }
    }
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    rest.split_once(after).map(|(inside, _)| inside)
}

/// One dash or two, and the value attached or not.
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
