//! A device plugin of the node, as its DaemonSet runs it: the machine's files are beneath its `--root`.

use std::path::Path;

use crate::daemon::{Daemon, Signal};
use crate::node::{KUBELET_DIR, MACHINE, Node};

/// A running device plugin.
#[derive(Debug)]
pub struct Plugin<'a> {
    daemon: Daemon<'a>,
}

impl<'a> Plugin<'a> {
    /// Starts this program with further arguments.
    ///
    /// # Panics
    /// Where it cannot be started.
    pub fn start(node: &'a Node, program: &Path, arguments: &[&str]) -> Self {
        let program = node.put_program(program);
        let own = [program, format!("--root={MACHINE}"), format!("--kubelet-dir={KUBELET_DIR}")];
        let further = arguments.iter().map(|argument| (*argument).to_owned());
        Self { daemon: Daemon::start(node, own.into_iter().chain(further).collect()) }
    }

    /// # Panics
    /// Where it does not run.
    #[track_caller]
    pub fn stop(&mut self, signal: Signal) {
        self.daemon.stop(signal);
    }

    /// # Panics
    /// Where it cannot be started.
    pub fn start_again(&mut self) {
        self.daemon.start_again();
    }

    /// Whether it has not ended by itself.
    pub fn runs(&mut self) -> bool {
        self.daemon.runs()
    }

    /// What it has logged since its first start.
    pub fn log(&self) -> String {
        self.daemon.log()
    }
}
