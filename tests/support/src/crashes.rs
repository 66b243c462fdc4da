//! The trees that kill -9 leaves of a run at each of its crash points: the files on disk right before the
//! call.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::killed::is_temporary;
use crate::tree::Tree;

/// A pid that no process has: it is beyond the kernel's limit (PID_MAX_LIMIT in include/linux/threads.h).
const DEAD: &str = "4194305";

/// A call of the kernel before which a run can be killed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrashPoint {
    pub call: &'static str,
    pub path: PathBuf,
    /// The index in [`Crashes::states`] of the tree on disk at this point.
    pub state: usize,
}

/// The crash points of one run.
#[derive(Debug, Default)]
pub struct Crashes {
    pub points: Vec<CrashPoint>,
    /// The trees in their order, each once while it does not change: a call need not change the compared
    /// files.
    pub states: Vec<Tree>,
}

impl Crashes {
    /// Runs something whose Root calls the hook before each change, and notes what is beneath these folders of `top`.
    ///
    /// # Panics
    /// Where something cannot be read.
    pub fn of(
        top: &Path,
        folders: &'static [&'static str],
        run: impl FnOnce(Box<dyn Fn(&'static str, &Path) + Send + Sync>),
    ) -> Self {
        let crashes = Arc::new(Mutex::new(Self::default()));
        let (noted, beneath) = (Arc::clone(&crashes), top.to_owned());
        run(Box::new(move |call, path| {
            let tree = left(Tree::of(&beneath, folders));
            noted.lock().unwrap().note(call, path, tree);
        }));
        let mut crashes = crashes.lock().unwrap();
        std::mem::take(&mut *crashes)
    }

    fn note(&mut self, call: &'static str, path: &Path, tree: Tree) {
        if self.states.last() != Some(&tree) {
            self.states.push(tree);
        }
        self.points.push(CrashPoint { call, path: path.to_owned(), state: self.states.len() - 1 });
    }

    /// Each state with the first crash point that leaves it.
    ///
    /// # Panics
    /// Never: each state has a point.
    pub fn first_points(&self) -> Vec<(&CrashPoint, &Tree)> {
        let mut first: Vec<(&CrashPoint, &Tree)> = Vec::new();
        for (state, tree) in self.states.iter().enumerate() {
            if !first.iter().any(|(_, seen)| *seen == tree) {
                first.push((self.points.iter().find(|point| point.state == state).unwrap(), tree));
            }
        }
        first
    }
}

/// A tree as it is once this process is dead: its temporary files are nobody's.
fn left(tree: Tree) -> Tree {
    let own = format!(".{}", std::process::id());
    tree.renamed(|path| {
        let name = path.to_str()?.strip_suffix(&own).filter(|_| is_temporary(path))?;
        Some(PathBuf::from(format!("{name}.{DEAD}")))
    })
}
