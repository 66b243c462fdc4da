//! As whom a script runs, and under which shells.

use support::machines::{self, Fleet, Shell, Sudo};
use support::real;

use crate::fleet::asker::Asker;

/// Login shells with a syntax each of its own, one user for each.
const SHELLS: [&str; 2] = ["bash", "dash"];

/// What a script and its answer may have in them.
const SCRIPT: &str = r#"printf '%s|%s|' "$(id -u)" 'a "quote", a \\ and a !bang'; printf '\377\000\n'
echo talk >&2
exit 7"#;

#[test]
fn real_a_script_and_its_bytes_pass_every_login_shell_and_its_start_files() {
    if !machines::require() || !real::require(&SHELLS) {
        return;
    }
    let fleet = Fleet::new();
    let users = SHELLS.map(|shell| {
        format!(
            "useradd --create-home --shell /usr/bin/{shell} in{shell}
             cp -a /root/.ssh /home/in{shell}/.ssh
             echo 'echo Welcome to a machine; echo of many words 1>&2' > /home/in{shell}/.bashrc
             chown -R in{shell}: /home/in{shell}"
        )
    });
    fleet.machine("gpu1", |machine| machine.prepare(&users.join("\n")));
    fleet.machine("gpu2", |machine| machine.shell(Shell::Busybox));
    let asker = Asker::of(&fleet);
    let hosts = SHELLS.map(|shell| format!("in{shell}@gpu1"));
    for host in hosts.iter().map(String::as_str).chain(["gpu1", "gpu2"]) {
        let answer = asker.run(host, SCRIPT).unwrap_or_else(|error| panic!("{error}"));
        let (id, text) = answer.stdout.split_at(answer.stdout.iter().position(|byte| *byte == b'|').unwrap());
        assert_eq!(text, b"|a \"quote\", a \\\\ and a !bang|\xff\0\n", "{host}");
        assert_eq!(id == b"0", !host.contains('@'), "{host}");
        assert_eq!((answer.code, answer.stderr.ends_with(b"talk\n")), (7, true), "{host}");
    }
}

#[test]
fn real_unusable_login_shells_are_reported() {
    if !machines::require() {
        return;
    }
    let fleet = Fleet::new();
    fleet.machine("gpu1", |machine| {
        machine.user("nobody2", Sudo::No).user("loud", Sudo::No).prepare(
            "usermod --shell /usr/sbin/nologin nobody2; usermod --shell /bin/bash loud; echo yes > /home/loud/.bashrc",
        )
    });
    let asker = Asker::of(&fleet);
    assert_eq!(
        asker.refused("nobody2@gpu1"),
        "nobody2@gpu1: its login shell did not run `sh -c`: This account is currently not available; check the user's \
         shell in /etc/passwd"
    );
    assert_eq!(
        asker.refused("loud@gpu1"),
        "loud@gpu1: its login shell printed more than 256 KiB before the script began: remove that output from its \
         startup files"
    );
}
