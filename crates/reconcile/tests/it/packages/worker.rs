//! A machine with real apt, on which this crate runs as the test's own program started again inside it.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use lab::key::Key;
use lab::machine::{Machine, SHARED};
use lab::package::Package;
use lab::repository::Repository;
use lab::server::Server;
use reconcile::command::Programs;
use reconcile::{
    Action, Content, Desired, Digest, Effect, Finding, Kind, Package as Wanted, PackageManager, Plan,
    Progress, Resource, Stage, Store, Transaction, Unpacked,
};
use root::{Attributes, Root};
use serde::{Deserialize, Serialize};

use crate::machine::NOW;

const KEYRING: &str = "/etc/apt/keyrings/rocworker-lab.gpg";
pub(crate) const SOURCE: &str = "/etc/apt/sources.list.d/rocworker-lab.sources";

/// The request to the program in the machine.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Order {
    /// `install NAME`, `install NAME VERSION`, `install NAME after NAME`, `absent NAME`, `unpack FOLDER URL SHA256`, `module NAME` or
    /// `reboot FILE`.
    pub(crate) wanted: Vec<String>,
    pub(crate) repository: Option<Source>,
    pub(crate) force: bool,
    /// How many seconds to wait for dpkg's lock.
    pub(crate) lock: u64,
    /// The program kills itself when it hears of progress for this time, from 0.
    pub(crate) dies_at: Option<usize>,
    /// Only makes a plan, and changes nothing.
    pub(crate) only_plan: bool,
    /// The proxy through which apt fetches, also at the end of the run.
    pub(crate) proxy: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Source {
    pub(crate) url: String,
    pub(crate) suite: String,
    pub(crate) component: String,
    pub(crate) key: Vec<u8>,
}

/// The result of the program's run.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Ran {
    pub(crate) planned: Vec<String>,
    pub(crate) begun: Vec<String>,
    pub(crate) done: Vec<Resource>,
    pub(crate) failed: Vec<String>,
    pub(crate) blocked: Vec<String>,
    pub(crate) contested: Vec<String>,
    pub(crate) left: Vec<String>,
    pub(crate) effects: Vec<String>,
    pub(crate) steps: Vec<String>,
    /// apt's own lines, and what kept it from more.
    pub(crate) rehearsal: Option<(Vec<String>, Vec<String>)>,
    /// How often it was told of progress.
    pub(crate) heard: usize,
    pub(crate) is_bare: bool,
    /// An error after which the program could not go on.
    pub(crate) error: Option<String>,
}

/// The machine, with one repository of the test's.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) machine: Machine,
    pub(crate) repository: Repository,
    pub(crate) server: Server,
    pub(crate) key: Key,
}

impl Worker {
    pub(crate) fn new(machine: Machine, packages: impl IntoIterator<Item = Package>) -> Self {
        let key = Key::generate("Laboratory");
        let mut repository = Repository::new("Lab", "stable", "main").with(packages);
        let server = Server::start(&repository.release(&key));
        machine.put_program(&std::env::current_exe().unwrap(), "/run/lab/child");
        // A server that hangs is not waited for as long as on a machine of somebody's.
        machine.put("/etc/apt/apt.conf.d/99lab", "Acquire::http::Timeout \"2\";\nAcquire::Retries \"0\";\n");
        Self { machine, repository, server, key }
    }

    /// Serves what the repository holds now.
    pub(crate) fn release(&mut self) {
        let folder = self.repository.release(&self.key);
        self.server.show(&folder);
    }

    pub(crate) fn order(&self, wanted: &[&str]) -> Order {
        let repository = Source {
            url: self.server.url(),
            suite: self.repository.suite().to_owned(),
            component: self.repository.component().to_owned(),
            key: self.key.binary().to_vec(),
        };
        let wanted = wanted.iter().map(|&it| it.to_owned()).collect();
        Order { wanted, repository: Some(repository), lock: 60, ..Order::default() }
    }

    pub(crate) fn apply(&self, wanted: &[&str]) -> Ran {
        self.run(&self.order(wanted))
    }

    pub(crate) fn undo(&self) -> Ran {
        self.run(&Order { lock: 60, ..Order::default() })
    }

    pub(crate) fn undo_by_force(&self) -> Ran {
        self.run(&Order { lock: 60, force: true, ..Order::default() })
    }

    pub(crate) fn run(&self, order: &Order) -> Ran {
        self.tell(order);
        let output = self.machine.call(&CHILD);
        assert!(output.status.success(), "{output:?}");
        self.ran()
    }

    /// What [`CHILD`] reads.
    pub(crate) fn tell(&self, order: &Order) {
        self.machine.put("/run/lab/order.json", serde_json::to_vec(order).unwrap());
    }

    pub(crate) fn ran(&self) -> Ran {
        serde_json::from_str(&self.machine.text("/run/lab/ran.json").unwrap()).unwrap()
    }

    /// Adds the repository under another host name than the managed list has: apt reads no source at all
    /// where two name different keys for one repository.
    pub(crate) fn somebody_adds_a_source(&self) {
        let url = self.server.url().replace("127.0.0.1", "127.1");
        self.machine.add_source(&self.repository, &url, &self.key);
        self.machine.apt_get(&["update"]).well();
    }

    /// A person installs from the repository, by a source of their own that they remove afterwards.
    pub(crate) fn somebody_installs(&self, names: &[&str]) {
        let had = self.machine.outside("/etc/apt/sources.list.d/lab.list").exists();
        self.somebody_adds_a_source();
        self.machine.apt_get(&[&["install"], names].concat()).well();
        if !had {
            fs::remove_file(self.machine.outside("/etc/apt/sources.list.d/lab.list")).unwrap();
        }
    }

    /// dpkg's state and version of a package.
    #[track_caller]
    pub(crate) fn has(&self, name: &str, expected: Option<&str>) {
        let there = self.machine.package(name).filter(|it| !it.contains("not-installed"));
        assert_eq!(there.as_deref(), expected, "{name}");
    }
}

/// The program inside.
pub(crate) const CHILD: [&str; 4] = ["/run/lab/child", "--exact", "packages::worker::child", "--nocapture"];

/// Not a test: the program that runs inside the machine, where the folder that it shares with the test
/// exists.
#[test]
fn child() {
    let Ok(order) = fs::read(format!("{SHARED}/order.json")) else { return };
    let order: Order = serde_json::from_slice(&order).unwrap();
    let mut ran = Ran::default();
    if let Err(error) = execute(&order, &mut ran) {
        ran.error = Some(error.to_string());
    }
    fs::write(format!("{SHARED}/ran.json"), serde_json::to_vec(&ran).unwrap()).unwrap();
}

fn execute(order: &Order, ran: &mut Ran) -> Result<(), reconcile::Error> {
    let root = Root::open("/".as_ref()).unwrap();
    let programs = Programs::of(&root).unwrap();
    let desired = desired(order);
    let manager = PackageManager::new(&programs, Duration::from_secs(order.lock), order.proxy.as_deref());
    let texts = |findings: &[Finding]| {
        findings.iter().map(|it| format!("{}: {}", it.path.display(), it.text)).collect::<Vec<_>>()
    };
    let plan = if order.only_plan {
        let plan = Plan::make(&root, &desired, &Store::new(&root).receipt()?, None, order.force, NOW);
        ran.rehearsal = plan.rehearse(&root, &manager, true).map(|it| (it.lines, it.problems));
        plan
    } else {
        let mut work = Transaction::begin(&root, &mut |_| {})?.by(Some(manager));
        let plan = Plan::make(&root, &desired, work.receipt(), None, order.force, NOW);
        let carried = work.execute(&plan, NOW, &mut |progress| {
            // How often apt tells of fetching depends on how long it takes.
            if matches!(&progress, Progress::Comes(_, step) if step.text.starts_with("Retrieving")) {
                return;
            }
            if order.dies_at == Some(ran.heard) {
                nix::sys::signal::raise(nix::sys::signal::Signal::SIGKILL).unwrap();
            }
            ran.heard += 1;
            if let Progress::Begins(change) = &progress {
                ran.begun.push(change.path.display().to_string());
            }
            if let Progress::Comes(_, step) = progress {
                ran.steps.push(format!("{:?} {}", step.percent, step.text));
            }
        })?;
        ran.done = carried.done;
        ran.failed = texts(&carried.failed);
        ran.effects = carried.effects.iter().map(|it| format!("{:?}: {}", it.outcome, it.text)).collect();
        let restarts = reconcile::Restarts::Never;
        let services = reconcile::Services {
            programs: Some(&programs),
            restarts,
            drain: reconcile::DRAIN,
            waiter: None,
            proxy: order.proxy.as_deref(),
        };
        let settled = work.run_effects(&root, &services, |_| true, &mut |_| {})?;
        ran.effects.extend(settled.iter().map(|it| format!("{:?}: {}", it.outcome, it.text)));
        ran.is_bare = work.receipt().is_empty();
        plan
    };
    let output = |it: &reconcile::Change| {
        format!("{:?} {}: {} → {}: {}", it.change, it.path.display(), it.from, it.to, it.reason)
    };
    ran.planned = plan.changes.iter().map(output).collect();
    ran.blocked = texts(&plan.blocked);
    ran.contested = texts(&plan.contested);
    ran.left = texts(&plan.left);
    Ok(())
}

fn desired(order: &Order) -> Desired {
    let mut desired = Desired::default();
    if let Some(Source { url, suite, component, key }) = &order.repository {
        let content =
            Content::File { bytes: key.clone(), attributes: Attributes { mode: 0o644, owner: None } };
        desired.push(Action::new(Stage::Shape, KEYRING, Kind::Owned(content), "for the test"));
        let text = format!(
            "Types: deb\nURIs: {url}\nSuites: {suite}\nComponents: {component}\nSigned-By: {KEYRING}\n"
        );
        let effect = Effect::AptUpdate { source: SOURCE.into(), uri: url.clone(), suite: suite.clone() };
        desired.push(Action::file(Stage::Shape, SOURCE, text, "for the test").with(effect));
    }
    for it in &order.wanted {
        let words: Vec<&str> = it.split(' ').collect();
        let package = match words.as_slice() {
            ["install", name, "after", needed] => {
                let action = Action::package(Wanted::present(*name), "for the test");
                desired.push(action.after(Wanted::present(*needed).resource()));
                continue;
            }
            ["install", name] => Wanted::present(*name),
            ["install", name, version] => Wanted::exactly(*name, *version),
            ["absent", name] => Wanted::absent(*name),
            ["unpack", folder, url, sha256] => {
                let holds = ["bin", "lib", "include"].map(PathBuf::from).to_vec();
                let sha256 = Digest::parse(sha256).unwrap();
                let unpacked = Unpacked { url: (*url).to_owned(), sha256, holds };
                desired.push(Action::unpacked(*folder, unpacked, "for the test"));
                continue;
            }
            ["module", name] => {
                desired.push(Action::module(*name, "for the test"));
                continue;
            }
            ["reboot", file] => {
                let reason = "the module that runs is an old one".to_owned();
                desired.push(
                    Action::file(Stage::Shape, *file, "x\n", "for the test")
                        .with(Effect::Reboot { reason, module: None }),
                );
                continue;
            }
            other => unreachable!("{other:?}"),
        };
        desired.push(Action::package(package, "for the test"));
    }
    desired
}
