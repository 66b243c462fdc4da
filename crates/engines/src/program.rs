//! The wrapper's program: where it is, and from where it is copied.

use std::path::{Path, PathBuf};

use host::version::Versions;
use reconcile::{Digest, Managed, State, Store};
use root::{Kind, Root};

/// Path at which rocworker's package has the wrapper, which is then used from there.
pub const PACKAGED: &str = "/usr/lib/rocworker/runc-amd-wrapper";

/// Path to which the wrapper is copied from beside this program, when no package has it.
pub const INSTALLED: &str = "/usr/local/lib/rocworker/runc-amd-wrapper";

const REINSTALL: &str = "install rocworker again, then rocworker apply";

/// The longest program that is read, in bytes: more than the wrapper has in any build.
const LIMIT: usize = 256 << 20;

/// How every program of Linux begins (elf(5)).
const ELF: &[u8] = b"\x7fELF";
/// What the wrapper's own messages on stderr contain. A wrapper that prints one runs.
const SAYS: &str = ": runc-amd-wrapper: ";

/// The wrapper's program, as engines name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The program's path beneath the Root.
    pub path: PathBuf,
    /// The bytes that rocworker writes to `path`; `None`: a package has the program, and it is left as it is.
    pub bytes: Option<Vec<u8>>,
}

/// Whether rocworker has or had the wrapper at this path: a package may come after a copy.
#[must_use]
pub fn is_managed(path: &str) -> bool {
    [PACKAGED, INSTALLED].contains(&path)
}

impl Program {
    /// Finds the package's wrapper; else the wrapper beside this program, which an apply copies; else the copy of an
    /// earlier apply, while nobody has changed that copy.
    ///
    /// # Errors
    /// There is no wrapper, or a user other than root could have put it there. No engine then names the wrapper.
    pub fn find(root: &Root, beside: Option<&Path>) -> Result<Self, String> {
        if let Ok(meta) = root.lstat(PACKAGED)
            && meta.kind == Kind::Regular
        {
            root.check_owner(Path::new(PACKAGED), &meta).map_err(|error| error.to_string())?;
            let broken = |what: &str| Err(format!("{} {what}: {REINSTALL}", root.shown(PACKAGED).display()));
            if meta.mode & 0o100 == 0 {
                return broken("is not executable");
            }
            // On the running machine it is run: see `that_runs`.
            if !root.is_host() && !root.read_start(PACKAGED, ELF.len()).is_ok_and(|head| head == ELF) {
                return broken("is no program (ELF)");
            }
            return Ok(Self { path: PACKAGED.into(), bytes: None });
        }
        let here = Root::open(Path::new("/")).map_err(|error| error.to_string())?;
        let Some(path) = beside else { return Self::installed(root) };
        match here.read_trusted(path, LIMIT) {
            Ok(bytes) if bytes.starts_with(ELF) => Ok(Self { path: INSTALLED.into(), bytes: Some(bytes) }),
            Ok(_) => Err(format!("{} is no program (ELF): {REINSTALL}", path.display())),
            Err(error) if error.is_not_found() => Self::installed(root),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The program, once it has run: no engine names a program that is cut short or made for another machine. `beside`:
    /// as in [`Program::find`].
    ///
    /// # Errors
    /// Why the program does not run.
    pub fn that_runs(self, versions: &mut Versions<'_>, beside: Option<&Path>) -> Result<Self, String> {
        let source = match (&self.bytes, beside) {
            (None, _) => Some(self.path.as_path()),
            (Some(_), beside) => beside.filter(|beside| beside.exists()),
        };
        // A copy without its source holds what the receipt says, of a build that ran.
        source.map_or(Ok(()), |source| runs(versions, source))?;
        Ok(self)
    }

    fn installed(root: &Root) -> Result<Self, String> {
        let receipt = Store::new(root).receipt().map_err(|error| error.to_string())?;
        let states = match receipt.entry(Path::new(INSTALLED)).map(|entry| &entry.managed) {
            Some(Managed::Owned { states }) => Some(states.as_slice()),
            _ => None,
        };
        let read = root.read_trusted(INSTALLED, LIMIT);
        let is_managed = |bytes: &&Vec<u8>| states.is_none_or(|states| is_among(states, bytes));
        let there = read.as_ref().ok().filter(is_managed).cloned();
        if let Some(bytes) = there {
            return Ok(Self { path: INSTALLED.into(), bytes: Some(bytes) });
        }
        Err(match read {
            Ok(_) => format!(
                "{} is not what rocworker has put there, and none is beside this program to put it right: apply again by \
                 one that has it beside it",
                root.shown(INSTALLED).display()
            ),
            Err(error) if error.is_not_found() => format!(
                "runc-amd-wrapper is neither at {PACKAGED} nor beside the program rocworker: put it there, then apply again"
            ),
            Err(error) => error.to_string(),
        })
    }
}

/// Runs the wrapper with `--version`, which it passes to the real runc. Beneath another Root than `/` nothing is run.
///
/// # Errors
/// Why the wrapper does not run.
pub fn runs(versions: &mut Versions<'_>, program: &Path) -> Result<(), String> {
    versions.run(program, SAYS).map_err(|problem| format!("{problem}: {REINSTALL}"))
}

fn is_among(states: &[State], bytes: &[u8]) -> bool {
    let digest = Digest::of(bytes);
    states.iter().any(|state| matches!(state, State::File { sha256, .. } if *sha256 == digest))
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and lays out files"
)]
mod tests {
    use std::fs;

    use reconcile::{Action, Content, Desired, Kind as Way, Plan, Stage, Transaction};
    use root::Attributes;

    use super::*;

    fn put(root: &Root, program: &Program) {
        let attributes = Attributes { mode: 0o755, owner: None };
        let content = Content::File { bytes: program.bytes.clone().unwrap(), attributes };
        let mut wanted = Desired::default();
        wanted.push(Action::new(Stage::Expose, &program.path, Way::Owned(content), "a test's"));
        let mut work = Transaction::begin(root, &mut |_| ()).unwrap();
        let plan = Plan::make(root, &wanted, work.receipt(), None, false, 1);
        let carried = work.execute(&plan, 1, &mut |_| ()).unwrap();
        assert!(carried.failed.is_empty());
    }

    #[test]
    fn a_copy_that_somebody_has_changed_is_not_what_should_be_there() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let (beside, copy) = (dir.path().join("bin/runc-amd-wrapper"), dir.path().join(&INSTALLED[1..]));
        fs::create_dir(dir.path().join("bin")).unwrap();
        // A copy made by hand counts while no receipt knows another.
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::write(&copy, "by hand").unwrap();
        assert_eq!(Program::find(&root, None).unwrap().bytes.unwrap(), b"by hand");
        fs::remove_file(&copy).unwrap();

        for build in ["\u{7f}ELF first", "\u{7f}ELF second"] {
            fs::write(&beside, build).unwrap();
            let program = Program::find(&root, Some(&beside)).unwrap();
            put(&root, &program);
            assert_eq!(Program::find(&root, None).unwrap(), program);
            assert_eq!(Program::find(&root, Some(&dir.path().join("bin/none"))).unwrap(), program);
            for changed in ["EVIL", "", "\u{7f}ELF firs"] {
                fs::write(&copy, changed).unwrap();
                let why = Program::find(&root, None).unwrap_err();
                assert!(why.contains("is not what rocworker has put there"), "{why}");
                // Who has it beside puts it right.
                let program = Program::find(&root, Some(&beside)).unwrap();
                assert_eq!(program.bytes.as_deref(), Some(build.as_bytes()));
            }
            fs::write(&copy, build).unwrap();
        }
    }
}
