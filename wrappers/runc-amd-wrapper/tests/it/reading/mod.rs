//! Observes how real runc reads a command line, and compares the wrapper's reading.
//!
//! runc shows its own reading without a container. Every id that a line may name is a link to itself in the
//! state folder, so that runc stops with an error that names the folder and the id. Every bundle holds a
//! mount whose relative destination names the bundle, about which runc warns just before. The fuzz target
//! `args_runc` (fuzz/) uses lines of its own.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, Stdio};

use runc_amd_wrapper::args::{Call, Command, ParsedCommandLine, read};

pub(crate) const BUNDLES: &[&str] = &["b1", "b2", "create", "-b3"];
pub(crate) const ROOTS: &[&str] = &["R", "S"];
/// `void` stands in the state folder as an empty folder: `delete void` removes it.
pub(crate) const IDS: &[&str] = &[
    "c1", "c2", "create", "run", "exec", "b1", "x,y", "true", "R", "P", "F", "x", "1", "L2", "json",
    "delete", "state", "start", "kill", "pause", "nowhere",
];

/// runc 1.3's warning about `--criu`, which it accepts and does not use.
const CRIU_IS_IGNORED: &str = "WARNING: --criu ignored (criu binary from $PATH is used); do not use\n";

/// runc's reading of a line as far as it showed; `None` where it did not.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    subcommand: Option<&'static str>,
    root: Option<String>,
    id: Option<String>,
    bundle: Option<String>,
    removed_void: bool,
    /// runc succeeded without a word, as `delete --force` of nothing does.
    silent: bool,
    text: String,
}

#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) created: usize,
    pub(crate) executed: usize,
    pub(crate) deleted: usize,
    pub(crate) refused: usize,
    pub(crate) doubtful: usize,
}

impl Tally {
    pub(crate) fn with(mut self, more: Self) -> Self {
        self.created += more.created;
        self.executed += more.executed;
        self.deleted += more.deleted;
        self.refused += more.refused;
        self.doubtful += more.doubtful;
        self
    }
}

/// Fails unless one of the readings is what runc was seen to take the line for. `newer`: the line has a flag that
/// this runc does not have there; a newer one may go on where this one refuses.
pub(crate) fn compare(line: &[String], newer: bool, seen: &Seen, place: &Place) -> Tally {
    let arguments: Vec<&[u8]> = line.iter().map(|word| word.as_bytes()).collect();
    let reading = read(&arguments);
    let calls: &[Call<'_>] = match &reading {
        ParsedCommandLine::Certain(call) => std::slice::from_ref(call),
        ParsedCommandLine::Doubtful(calls) => calls,
    };
    let agreed = calls.iter().any(|call| agrees(call, seen, place)) || newer && seen.refused();
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

/// A working directory with bundles and two state folders, and the runc that is run there.
pub(crate) struct Place {
    folder: tempfile::TempDir,
    runc: Vec<PathBuf>,
}

impl Place {
    /// An observer of this machine's own runc.
    #[allow(dead_code, reason = "the fuzz target's")]
    pub(crate) fn new() -> Self {
        Self::of(&["runc".into()])
    }

    /// `runc`: the program, and what stands before runc's own arguments.
    pub(crate) fn of(runc: &[PathBuf]) -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap(), runc: runc.to_vec() };
        let at = place.path();
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
        self.folder.path()
    }

    /// The name that stands in the bundle which `bundle` leads to from here, as `open` sees it.
    fn name_of(&self, bundle: Option<&[u8]>) -> Option<String> {
        let folder = self.path().join(OsStr::from_bytes(bundle.unwrap_or_default()));
        let config = std::fs::read_to_string(folder.join("config.json")).ok()?;
        between(&config, "BUNDLE[", "]").map(str::to_owned)
    }

    pub(crate) fn run(&self, line: &[String]) -> Seen {
        let output = Process::new(&self.runc[0])
            .args(&self.runc[1..])
            .args(line)
            .current_dir(self.path())
            .env_remove("XDG_RUNTIME_DIR")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let mut text = String::from_utf8_lossy(&output.stderr).replace(CRIU_IS_IGNORED, "");
        // Whatever runc wrote here is a log or a pid.
        for entry in std::fs::read_dir(self.path()).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_file() && entry.file_name() != "config.json" {
                text.push_str(&std::fs::read_to_string(entry.path()).unwrap_or_default());
                std::fs::remove_file(entry.path()).unwrap();
            }
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
                .find(|(_, reported)| text.contains(reported))
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
