//! A program of the node that goes on while the test does, and what it logs.

use std::fs::{self, OpenOptions};
use std::path::PathBuf;
use std::process::Child;

use crate::node::Node;

/// How a program is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    Term,
    Kill,
}

/// A program that can be ended and started again.
#[derive(Debug)]
pub struct Daemon<'a> {
    node: &'a Node,
    argv: Vec<String>,
    log: PathBuf,
    child: Option<Child>,
}

impl<'a> Daemon<'a> {
    /// Starts it. Its log is beneath `/stage`, under the program's name.
    ///
    /// # Panics
    /// Where it cannot be started.
    pub fn start(node: &'a Node, argv: Vec<String>) -> Self {
        let log = node.outside(&format!("{}.log", name(&argv)));
        let mut daemon = Self { node, argv, log, child: None };
        daemon.start_again();
        daemon
    }

    /// # Panics
    /// Where it runs already, or cannot be started.
    pub fn start_again(&mut self) {
        assert!(self.child.is_none(), "{} runs already", name(&self.argv));
        let log = OpenOptions::new().create(true).append(true).open(&self.log).unwrap();
        let argv: Vec<&str> = self.argv.iter().map(String::as_str).collect();
        let mut command = self.node.command(&argv);
        self.child = Some(command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap());
    }

    /// Ends it and waits for its end.
    ///
    /// # Panics
    /// Where it does not run.
    #[track_caller]
    pub fn stop(&mut self, signal: Signal) {
        let mut child = self.child.take().unwrap();
        let pids = self.node.host().pids_of(name(&self.argv));
        assert!(!pids.is_empty(), "{} has ended by itself:\n{}", name(&self.argv), self.log());
        let signal = match signal {
            Signal::Term => "-TERM",
            Signal::Kill => "-KILL",
        };
        let pids: Vec<&str> = pids.iter().map(String::as_str).collect();
        self.node.host().busybox(&[&["kill", signal], &pids[..]].concat()).well();
        child.wait().unwrap();
    }

    /// Whether it has not ended by itself.
    ///
    /// # Panics
    /// Where it was not started.
    pub fn runs(&mut self) -> bool {
        self.child.as_mut().unwrap().try_wait().unwrap().is_none()
    }

    /// What it has logged since its first start.
    ///
    /// # Panics
    /// Where there is no log.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap()).into_owned()
    }

    pub(crate) fn node(&self) -> &'a Node {
        self.node
    }
}

fn name(argv: &[String]) -> &str {
    let program = &argv[0];
    program.rsplit('/').next().unwrap_or(program)
}

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        // nsenter ends here; the program itself ends with the node's process namespace.
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
