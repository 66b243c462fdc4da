//! Programs of another release of Debian, unpacked and not installed: run by that release's own loader with its own
//! libraries, on this machine's files.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A tree of unpacked packages.
#[derive(Debug)]
pub struct Release {
    tree: PathBuf,
}

impl Release {
    /// The tree that this program lies in, as `TREE/usr/bin/NAME`.
    ///
    /// # Panics
    /// Where it lies less deep.
    pub fn of(program: &Path) -> Self {
        Self { tree: program.ancestors().nth(3).unwrap().to_owned() }
    }

    /// A file of the tree.
    pub fn file(&self, path: &str) -> PathBuf {
        self.tree.join(path)
    }

    /// The command line that runs a program of the tree, up to its arguments. systemd's shared library has a
    /// folder of its own.
    ///
    /// # Panics
    /// Where the tree's path is no text.
    pub fn argv(&self, program: &str) -> Vec<String> {
        let libraries = ["", "/systemd"].map(|below| format!("usr/lib/x86_64-linux-gnu{below}"));
        let libraries = libraries.map(|folder| self.text(&folder)).join(":");
        let loader = self.text("usr/lib64/ld-linux-x86-64.so.2");
        vec![loader, "--library-path".to_owned(), libraries, self.text(program)]
    }

    /// The libraries that a program of the tree needs, by their paths in it.
    ///
    /// # Panics
    /// Where one is missing, or is not the tree's.
    pub fn libraries(&self, program: &str) -> Vec<String> {
        let mut argv = self.argv(program);
        argv.insert(1, "--list".to_owned());
        let output = Command::new(&argv[0]).args(&argv[1..]).output().unwrap();
        assert!(output.status.success(), "{argv:?}: {output:?}");
        let answer = String::from_utf8(output.stdout).unwrap();
        let files = answer.lines().filter_map(|line| line.split_once("=> "));
        files
            .map(|(_, file)| {
                let file = file.split(' ').next().unwrap();
                let inside = Path::new(file).strip_prefix(&self.tree);
                inside
                    .unwrap_or_else(|_| panic!("{file} is not of {}", self.tree.display()))
                    .to_str()
                    .unwrap()
                    .to_owned()
            })
            .collect()
    }

    fn text(&self, path: &str) -> String {
        self.tree.join(path).to_str().unwrap().to_owned()
    }
}
