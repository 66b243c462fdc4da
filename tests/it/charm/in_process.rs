//! Hooks as the program runs them, in the test's own process, with hook tools that only answer.

use std::fs;
use std::time::SystemTime;

use host::timestamp::Timestamp;
use juju::{Environment, Event, Tools};
use reconcile::command::Programs;
use rocworker::hook::Machine;
use root::Root;
use support::crashes::Crashes;
use support::laid::Laid;
use tempfile::TempDir;

/// One unit.
pub(crate) struct Unit {
    dir: TempDir,
}

impl Unit {
    pub(crate) fn new() -> Self {
        let dir = support::detect::scratch();
        let at = dir.path().display();
        let tool = format!(
            "#!/bin/sh\ncase ${{0##*/}} in\nconfig-get) cat '{at}/options' ;;\naction-get) echo '{{}}' ;;\n\
             status-set) echo \"$1: $2\" > '{at}/status' ;;\nesac\n"
        );
        for name in crate::charm::unit::TOOLS {
            crate::charm::unit::put(&dir.path().join(name), &tool);
        }
        let unit = Self { dir };
        unit.options("{}");
        unit
    }

    /// What config-get answers.
    pub(crate) fn options(&self, json: &str) {
        fs::write(self.dir.path().join("options"), json).unwrap();
    }

    /// Runs a hook, `hooks/NAME` or `actions/NAME`, and answers with the unit's status.
    ///
    /// # Panics
    /// Where the hook fails.
    pub(crate) fn run(&self, laid: &Laid, path: &str) -> String {
        self.run_beneath(&Root::open(laid.top()).unwrap(), path);
        fs::read_to_string(self.dir.path().join("status")).unwrap().trim_end().to_owned()
    }

    /// What kill -9 leaves of a hook at each of its changes.
    pub(crate) fn crashes(&self, laid: &Laid, path: &str) -> Crashes {
        laid.crashes(|hook| self.run_beneath(&Root::open(laid.top()).unwrap().on_change(hook), path))
    }

    fn run_beneath(&self, root: &Root, path: &str) {
        let said = |name: &str| match name {
            "JUJU_DISPATCH_PATH" => Some(path.to_owned()),
            "JUJU_UNIT_NAME" => Some("rocworker/0".to_owned()),
            _ => None,
        };
        let environment = Environment::of(said);
        let folders = format!("{}:/usr/bin:/bin", self.dir.path().display());
        let machine = Machine {
            root,
            programs: None,
            tools: Tools::new(Programs::in_folders(folders), false),
            event: Event::of(None, &environment).unwrap(),
            unit: environment.unit,
            now: Timestamp::of(SystemTime::now()),
            caller: "a test".to_owned(),
        };
        let ended = machine.run().unwrap();
        assert!(!ended.is_failed, "{path}: {ended:?}");
    }
}
