//! The shells that run the script.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use fleet::frames::RemoteFiles;
use fleet::script::{Further, Script, Wanted};
use support::real;
use tempfile::TempDir;

/// A shell, and the folder of the only programs that it finds, where it is to find no others.
#[derive(Debug)]
pub(crate) struct Shell {
    pub(crate) name: &'static str,
    argv: Vec<PathBuf>,
    programs: Option<TempDir>,
}

/// The shells of this machine: of Debian `sh` is dash, of Red Hat bash, of Alpine busybox.
pub(crate) fn all() -> Vec<Shell> {
    let mut shells = vec![Shell { name: "sh", argv: vec!["/bin/sh".into()], programs: None }];
    for (name, option) in [("dash", None), ("bash", Some("--posix"))] {
        let is_other =
            |program: &PathBuf| program.canonicalize().ok() != Path::new("/bin/sh").canonicalize().ok();
        if let Some(program) = real::program(name).filter(is_other) {
            let argv = [program].into_iter().chain(option.map(PathBuf::from)).collect();
            shells.push(Shell { name, argv, programs: None });
        }
    }
    shells.extend(busybox());
    shells
}

/// Its shell, with its applets alone.
pub(crate) fn busybox() -> Option<Shell> {
    let busybox = real::program("busybox")?;
    let folder = tempfile::tempdir().unwrap();
    for applet in ["sh", "cat", "ls", "env", "id", "date", "dd", "sleep", "kill"] {
        std::os::unix::fs::symlink(&busybox, folder.path().join(applet)).unwrap();
    }
    Some(Shell { name: "busybox", argv: vec![folder.path().join("sh")], programs: Some(folder) })
}

impl Shell {
    /// Gives a shell that finds few programs another one.
    pub(crate) fn put(&self, name: &str, text: &str) {
        let path = self.programs.as_ref().unwrap().path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }

    /// Runs a script as `sh -s` does.
    pub(crate) fn run(&self, script: &str) -> Output {
        let mut command = self.command();
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.argv[0]);
        command.args(&self.argv[1..]).arg("-s").env("LANG", "C.UTF-8");
        if let Some(programs) = &self.programs {
            command.env("PATH", programs.path());
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// What it reads of a machine that is laid out beneath a folder.
    #[track_caller]
    pub(crate) fn read(&self, folder: &Path, wanted: Wanted) -> RemoteFiles {
        self.read_further(folder, wanted, &Further::default())
    }

    /// Reads what an earlier answer lacked as well.
    #[track_caller]
    pub(crate) fn read_further(&self, folder: &Path, wanted: Wanted, further: &Further) -> RemoteFiles {
        let script = Script::beneath(folder, wanted, None, further);
        let output = self.run(&script.text);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{}: {}: {said}", self.name, output.status);
        script.parse(&output.stdout).unwrap_or_else(|problem| panic!("{}: {problem}", self.name))
    }
}
