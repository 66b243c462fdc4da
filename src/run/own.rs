//! The program that sets a machine up: where it is, and what is beside it.

use std::path::PathBuf;

use root::Root;

/// What a [`super::Run`] knows of its program.
#[derive(Debug, Clone, Default)]
pub struct Own {
    /// The program's path: units and later runs start it by this path.
    pub program: Option<PathBuf>,
    /// The path of the wrapper's program of the same build.
    pub beside: Option<PathBuf>,
    /// What waits for a unit that takes long to end: [`reconcile::Services::waiter`].
    pub waiter: Option<Vec<String>>,
}

impl Own {
    /// The one that runs, with the wrapper beside it; neither is known where the kernel does not say.
    pub fn find() -> Self {
        let Some(running) = running() else { return Self::default() };
        let waiter = running.to_str().map(|program| vec![program.to_owned(), "settle".to_owned()]);
        let beside = running.parent().map(|folder| folder.join("runc-amd-wrapper"));
        Self { program: Some(running), beside, waiter }
    }
}

/// The path of this process's program, as the kernel knows it.
pub fn running() -> Option<PathBuf> {
    std::env::current_exe().ok()
}

/// `uid 0 (login uid 1000), by bash`: who acts, who logged in for it (proc_pid_loginuid(5)), and the program that
/// started this one.
pub fn caller(machine: &Root) -> String {
    /// The kernel's -1: no login, as in a service.
    const UNSET: &str = "4294967295";
    let read = |path: &str| machine.read_text(path, 4096).ok().map(|text| text.trim().to_owned());
    let uid = nix::unistd::getuid();
    let login = read("/proc/self/loginuid").filter(|login| login != UNSET && *login != uid.to_string());
    let by = read(&format!("/proc/{}/comm", nix::unistd::getppid()));
    let login = login.map_or_else(String::new, |login| format!(" (login uid {login})"));
    let by = by.map_or_else(String::new, |by| format!(", by {by}"));
    format!("uid {uid}{login}{by}")
}
