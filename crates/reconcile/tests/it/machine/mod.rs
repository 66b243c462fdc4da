//! A folder that stands for a machine, and what a program does to it through this crate.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use edit::{Edit, Format, Key, Set};
use reconcile::history::{self, Event};
use reconcile::{Action, Desired, Executed, Finding, Plan, Stage, Store, Transaction};
use root::Root;
use serde_json::Value;
use support::crashes::Crashes;
use support::tree::Tree;

/// Within a day, in seconds since 1970.
pub(crate) const NOW: u64 = 1_800_000_000;

const TOPS: [&str; 4] = ["etc", "usr", "dev", "var"];

#[derive(Debug)]
pub(crate) struct Machine {
    dir: tempfile::TempDir,
}

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) carried: Executed,
    pub(crate) blocked: Vec<Finding>,
    pub(crate) contested: Vec<Finding>,
    pub(crate) left: Vec<Finding>,
}

impl Machine {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["etc", "usr", "dev", "var/lib"] {
            fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        Self { dir }
    }

    pub(crate) fn top(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn root(&self) -> Root {
        Root::open(self.dir.path()).unwrap()
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path.trim_start_matches('/'))
    }

    pub(crate) fn put(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn text(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    pub(crate) fn apply(&self, desired: &Desired) -> Ran {
        run(&self.root(), desired, false).unwrap()
    }

    pub(crate) fn undo(&self) -> Ran {
        self.apply(&Desired::default())
    }

    pub(crate) fn undo_by_force(&self) -> Ran {
        run(&self.root(), &Desired::default(), true).unwrap()
    }

    pub(crate) fn is_bare(&self) -> bool {
        Store::new(&self.root()).receipt().unwrap().is_empty()
    }

    pub(crate) fn history(&self) -> Vec<Event> {
        history::read(&self.root()).unwrap()
    }

    /// The tree without rocworker's own state.
    pub(crate) fn tree(&self) -> Tree {
        self.all().without(&["var"])
    }

    pub(crate) fn all(&self) -> Tree {
        Tree::of(self.top(), &TOPS)
    }

    /// The states that kill -9 leaves of an apply.
    pub(crate) fn crashes(&self, desired: &Desired) -> Crashes {
        Crashes::of(self.top(), &TOPS, |hook| {
            run(&self.root().on_change(hook), desired, false).unwrap();
        })
    }

    pub(crate) fn put_back(&self, tree: &Tree) {
        tree.put_back(self.top(), &TOPS);
    }
}

/// Runs as a command does: takes the lock, plans, executes.
fn run(root: &Root, desired: &Desired, force: bool) -> Result<Ran, reconcile::Error> {
    let mut work = Transaction::begin(root, &mut |_| {})?.recorded(event());
    let plan = Plan::make(root, desired, work.receipt(), None, force, NOW);
    let carried = work.execute(&plan, NOW, &mut |_| {})?;
    work.record()?;
    let Plan { blocked, contested, left, .. } = plan;
    Ok(Ran { carried, blocked, contested, left })
}

fn event() -> Event {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Event {
        // No two runs happen at one moment.
        at: u64::try_from(since.as_nanos()).unwrap(),
        command: "apply".to_owned(),
        caller: "a test".to_owned(),
        version: "0".to_owned(),
        config_sha256: String::new(),
        changed: Vec::new(),
        killed: false,
    }
}

/// An edit of an unmanaged file: these keys.
pub(crate) fn edited(path: &str, format: Format, keys: &[(&[&str], Value)]) -> Action {
    let key = |(path, value): &(&[&str], Value)| Key {
        path: path.iter().map(|&part| part.to_owned()).collect(),
        set: Set::Value(value.clone()),
    };
    let edit = Edit::new(format, keys.iter().map(key).collect());
    Action::edit(Stage::Expose, path, edit, "for the test")
}

pub(crate) fn owned(path: &str, text: &str) -> Action {
    Action::file(Stage::Expose, path, text, "for the test")
}

pub(crate) fn desired(actions: impl IntoIterator<Item = Action>) -> Desired {
    Desired { actions: actions.into_iter().collect(), ..Desired::default() }
}
