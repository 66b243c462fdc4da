//! Who runs this, as far as the machine tells.

use root::Root;

/// `uid 0 (login uid 1000), by bash`: who acts, who logged in for it (proc_pid_loginuid(5)), and the program that
/// started this one.
#[must_use]
pub fn caller(machine: &Root) -> String {
    /// The kernel's -1: nobody logged in, as in a service.
    const UNSET: &str = "4294967295";
    let read = |path: &str| machine.read_text(path, 4096).ok().map(|text| text.trim().to_owned());
    let uid = nix::unistd::getuid();
    let login = read("/proc/self/loginuid").filter(|login| login != UNSET && *login != uid.to_string());
    let by = read(&format!("/proc/{}/comm", nix::unistd::getppid()));
    let login = login.map_or_else(String::new, |login| format!(" (login uid {login})"));
    let by = by.map_or_else(String::new, |by| format!(", by {by}"));
    format!("uid {uid}{login}{by}")
}
