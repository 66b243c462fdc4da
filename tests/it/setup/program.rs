//! rocworker in a folder of its own, beside a small wrapper's program: what it copies is then known.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::setup::laid::Laid;

pub(crate) struct Program {
    dir: tempfile::TempDir,
}

impl Program {
    pub(crate) fn new() -> Self {
        let built = Path::new(env!("CARGO_BIN_EXE_rocworker"));
        // Where a link can lead to it: the same file system.
        let dir = tempfile::tempdir_in(built.parent().unwrap()).unwrap();
        fs::hard_link(built, dir.path().join("rocworker")).unwrap();
        let wrapper = dir.path().join("runc-amd-wrapper");
        fs::write(&wrapper, support::laid::WRAPPER).unwrap();
        fs::set_permissions(wrapper, fs::Permissions::from_mode(0o755)).unwrap();
        Self { dir }
    }

    /// Puts another build of the wrapper beside the program.
    pub(crate) fn renew_wrapper(&self) {
        fs::write(self.dir.path().join("runc-amd-wrapper"), support::laid::WRAPPER.to_owned() + "newer")
            .unwrap();
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("rocworker")
    }

    pub(crate) fn argv(&self, laid: &Laid, arguments: &[&str]) -> Vec<String> {
        let mut argv = vec![self.path().to_str().unwrap().to_owned(), "--root".to_owned()];
        argv.push(laid.top().to_str().unwrap().to_owned());
        argv.extend(arguments.iter().map(|&argument| argument.to_owned()));
        argv
    }

    /// Exit code, and what it said on both streams.
    pub(crate) fn run(&self, laid: &Laid, arguments: &[&str]) -> (i32, String) {
        let argv = self.argv(laid, arguments);
        let output = Command::new(&argv[0]).args(&argv[1..]).stdin(Stdio::null()).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8(said).unwrap())
    }
}
