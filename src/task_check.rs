//! `task-check`: whether the container that this runs in can use AMD's GPUs. It needs nothing of the image but the
//! program itself: no ROCm, no shell, no library.
//!
//! `task-check` finds AMD's nodes in /dev by their numbers and opens them as HIP does. Unlike `doctor` it asks nothing
//! about the machine: what a task cannot open it does not have, whatever sysfs shows.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use amdgpu::is_partition;
use engines::canary::kfd as interface;
use engines::canary::probe::named;
use host::groups::Groups;
use nix::errno::Errno;
use root::{Kind, Root};
use serde::Serialize;

const FOLDER: &str = "/dev/dri";
const KFD: &str = "/dev/kfd";
const AMD: &str = "0x1002";

const NOT_GIVEN: &str = "the task needs tags: [gpu, compute-runtime=rocm] on a worker that gives its GPUs by default, or \
                         AMD_VISIBLE_DEVICES where the worker's policy honours it";

/// Three lines that people and pipelines look for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    schema_version: u32,
    pub lines: [Line; 3],
    /// Whether every line is right.
    pub ok: bool,
}

/// A line of the verdict, one for each [`Line::name`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// `render`, `card`, `access`.
    pub name: &'static str,
    pub ok: bool,
    /// The line without its sign, ✓ or ✗.
    pub text: String,
}

/// Looks at the container and tries what it finds.
#[must_use]
pub fn check(root: &Root) -> Verdict {
    // Computing opens the render node; the card node is for displays.
    let (renders, cards) = (look(root, "renderD"), look(root, "card"));
    let access =
        renders.as_ref().map_or_else(|_| Err("there is none to open".to_owned()), |it| access(root, it));
    verdict(renders, cards, access)
}

/// Judges the container by its render nodes, its cards and its KFD. `access`: KFD's version.
fn verdict(
    renders: Result<Vec<PathBuf>, String>,
    cards: Result<Vec<PathBuf>, String>,
    access: Result<String, String>,
) -> Verdict {
    let devices = |name, found: Result<Vec<PathBuf>, String>| {
        let shown = |paths: &Vec<PathBuf>| {
            paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" ")
        };
        let text = match &found {
            Ok(paths) => format!("Found AMD GPU {name} devices: {}", shown(paths)),
            Err(why) => format!("Found no AMD GPU {name} devices: {why}"),
        };
        Line { name, ok: found.is_ok(), text }
    };
    let text = match &access {
        Ok(version) => format!("AMD GPU devices are accessible in container (KFD {version})"),
        Err(why) => format!("AMD GPU devices are not accessible in container: {why}"),
    };
    let access = Line { name: "access", ok: access.is_ok(), text };
    let lines = [devices("render", renders), devices("card", cards), access];
    Verdict { schema_version: 1, ok: lines.iter().all(|line| line.ok), lines }
}

/// AMD's nodes whose names are this and a number, in the order of their numbers; else why there is none.
///
/// Nodes are found by their device numbers, not their names: a runtime may hand a node out under another name, and
/// sysfs shows the GPUs of the whole host (`/sys/dev/char/MAJOR:MINOR`).
fn look(root: &Root, prefix: &str) -> Result<Vec<PathBuf>, String> {
    let names = root.list(FOLDER).map_err(|error| match error.is_not_found() {
        true => format!("there is no {FOLDER}; {NOT_GIVEN}"),
        false => format!("{error}; {NOT_GIVEN}"),
    })?;
    let number = |name: &str| {
        let digits = name.strip_prefix(prefix)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let mut numbers: Vec<u32> = names.iter().filter_map(|name| number(name.to_str()?)).collect();
    numbers.sort_unstable();
    let (mut found, mut others) = (Vec::new(), Vec::new());
    for number in numbers {
        let path = Path::new(FOLDER).join(format!("{prefix}{number}"));
        match whose(root, &path) {
            Ok(()) => found.push(path),
            Err(why) => others.push(format!("{} {why}", path.display())),
        }
    }
    match (found.is_empty(), others.is_empty()) {
        (false, _) => Ok(found),
        (true, false) => Err(others.join("; ")),
        (true, true) => Err(format!("{FOLDER} has none; {NOT_GIVEN}")),
    }
}

/// `Ok` when the node is a device of AMD's, else what it is.
fn whose(root: &Root, path: &Path) -> Result<(), String> {
    let meta = root.stat(path).map_err(|error| format!("cannot be examined ({error})"))?;
    let Kind::Character { major, minor } = meta.kind else {
        return Err(format!("is {}, not a device node", meta.kind.described()));
    };
    let device = PathBuf::from(format!("/sys/dev/char/{major}:{minor}/device"));
    match root.read_text(device.join("vendor"), 64) {
        Ok(vendor) if vendor.trim() == AMD => Ok(()),
        Ok(vendor) => Err(format!("is device {major}:{minor}, whose vendor is {}, not AMD", vendor.trim())),
        // The device of a partition beyond a card's first has none of PCI's files.
        Err(_) if is_partition(root, &device) => Ok(()),
        Err(_) => Err(format!("is device {major}:{minor}, and /sys does not say whose that is")),
    }
}

/// Opens each render node and KFD, which only the driver itself answers with a version.
fn access(root: &Root, renders: &[PathBuf]) -> Result<String, String> {
    let failed = |path: &Path, why: &str| format!("{} {why}", path.display());
    let refused = renders.iter().filter_map(|path| Some(failed(path, &opened(root, path).err()?)));
    let mut refused: Vec<String> = refused.collect();
    let version = opened(root, Path::new(KFD)).and_then(|file| {
        interface::version(&file).map_err(|errno| {
            format!("opens, but no driver behind it answers as KFD does ({})", named(errno as i32))
        })
    });
    match version {
        Ok(version) if refused.is_empty() => Ok(version),
        version => {
            refused.extend(version.err().map(|why| failed(Path::new(KFD), &why)));
            Err(refused.join("; "))
        }
    }
}

fn opened(root: &Root, path: &Path) -> Result<File, String> {
    let opened = OpenOptions::new().read(true).write(true).open(root.shown(path));
    opened.map_err(|error| {
        let errno = Errno::from_raw(error.raw_os_error().unwrap_or(Errno::EIO as i32));
        let rights = || {
            root.stat(path).map_or_else(
                |error| error.to_string(),
                |meta| Groups::read(root).owner((meta.uid, meta.gid), meta.mode),
            )
        };
        why_not(errno, rights)
    })
}

/// What an errno of open(2) says about a container; `rights`: who may open the node.
fn why_not(errno: Errno, rights: impl Fn() -> String) -> String {
    let why = match errno {
        Errno::ENOENT => "is not there: the container was not given it".to_owned(),
        Errno::EACCES => format!("is {}, and this process is neither", rights()),
        Errno::EPERM => "is refused by the device cgroup: the container was not given it".to_owned(),
        Errno::ENXIO | Errno::ENODEV => {
            "has no driver behind it: see rocworker doctor on the worker".to_owned()
        }
        _ => "does not open".to_owned(),
    };
    format!("{why} ({})", named(errno as i32))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(paths: &[&str]) -> Result<Vec<PathBuf>, String> {
        Ok(paths.iter().map(PathBuf::from).collect())
    }

    fn lines_of(verdict: &Verdict) -> [(bool, &str); 3] {
        verdict.lines.each_ref().map(|line| (line.ok, line.text.as_str()))
    }

    #[test]
    fn what_opens_is_told_with_kfds_version() {
        let renders = found(&["/dev/dri/renderD128", "/dev/dri/renderD129"]);
        let verdict = verdict(renders, found(&["/dev/dri/card1"]), Ok("1.18".to_owned()));
        assert_eq!(
            lines_of(&verdict),
            [
                (true, "Found AMD GPU render devices: /dev/dri/renderD128 /dev/dri/renderD129"),
                (true, "Found AMD GPU card devices: /dev/dri/card1"),
                (true, "AMD GPU devices are accessible in container (KFD 1.18)"),
            ]
        );
        assert!(verdict.ok);
    }

    #[test]
    fn one_line_that_is_wrong_is_enough() {
        let renders = || found(&["/dev/dri/renderD128"]);
        let closed = verdict(renders(), found(&["/dev/dri/card1"]), Err("/dev/kfd is closed".to_owned()));
        assert_eq!(
            lines_of(&closed)[2],
            (false, "AMD GPU devices are not accessible in container: /dev/kfd is closed")
        );
        assert!(!closed.ok);
        let without_card = verdict(renders(), Err("none".to_owned()), Ok("1.18".to_owned()));
        assert_eq!(lines_of(&without_card).map(|(ok, _)| ok), [true, false, true]);
        assert!(!without_card.ok, "a ✗ and 0 would not go together");
    }

    #[test]
    fn each_node_that_does_not_open_is_named_and_without_a_node_the_lines_say_why() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let refused = access(&root, &[PathBuf::from("/dev/dri/renderD128")]).unwrap_err();
        let missing = "is not there: the container was not given it (ENOENT, No such file or directory)";
        assert_eq!(refused, format!("/dev/dri/renderD128 {missing}; /dev/kfd {missing}"));
        let verdict = check(&root);
        let [render, card, access] = lines_of(&verdict);
        assert!(
            render
                .1
                .starts_with("Found no AMD GPU render devices: there is no /dev/dri; the task needs tags")
        );
        assert!(!card.0 && card.1.contains("there is no /dev/dri; the task needs tags"), "{card:?}");
        assert_eq!(access, (false, "AMD GPU devices are not accessible in container: there is none to open"));
        let machine = layout::Machine::new().put("/dev/dri/renderD128", "");
        machine.lay_out(dir.path(), layout::Nodes::Recorded).unwrap();
        let renders = look(&root, "renderD").unwrap_err();
        assert_eq!(renders, "/dev/dri/renderD128 is a plain file, not a device node");
        assert!(look(&root, "card").unwrap_err().starts_with("/dev/dri has none; the task needs tags"));
    }

    #[test]
    fn each_refusal_is_told_in_words_that_lead_to_who_refused() {
        for (errno, lines_of) in [
            (Errno::ENOENT, "is not there: the container was not given it (ENOENT, "),
            (Errno::EACCES, "is root:gid 992 0660, and this process is neither (EACCES, "),
            (Errno::EPERM, "is refused by the device cgroup: the container was not given it (EPERM, "),
            (Errno::ENXIO, "has no driver behind it: see rocworker doctor on the worker (ENXIO, "),
            (Errno::EMFILE, "does not open (EMFILE, "),
        ] {
            let why = why_not(errno, || "root:gid 992 0660".to_owned());
            assert!(why.starts_with(lines_of), "{why}");
        }
    }
}
