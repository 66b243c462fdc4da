//! Machines that cannot be reached, or that refuse.

use std::process::Stdio;
use std::time::Instant;

use fleet::ssh::{CONNECTING, Error};
use support::machines::{self, Fleet, Machine};
use support::real;
use support::waiting::eventually;

use crate::fleet::asker::{Asker, LONG, PROGRAM};

/// How often somebody has connected.
fn connections(machine: &Machine<'_>) -> usize {
    machine.sshd_log().matches("Connection from ").count()
}

#[test]
fn real_host_key_and_login_errors_are_not_retried() {
    if !machines::require() {
        return;
    }
    let fleet = Fleet::new();
    let gpu1 = fleet.machine("gpu1", |machine| machine.sshd("LogLevel VERBOSE"));
    let gpu2 = fleet.machine("gpu2", |machine| {
        machine.sshd("LogLevel VERBOSE").sshd("PubkeyAuthentication no").sshd("PasswordAuthentication yes")
    });
    let asker = Asker::of(&fleet);
    assert!(asker.run("gpu1", "true").is_ok());

    let before = connections(&gpu2);
    let said = asker.refused("gpu2");
    assert!(said.starts_with("gpu2: ssh key login failed (root@gpu2: Permission denied ("), "{said}");
    assert!(
        said.ends_with("run `ssh-copy-id gpu2`, then check that `ssh gpu2 true` needs no password"),
        "{said}"
    );
    assert_eq!(connections(&gpu2), before + 1);

    gpu1.change_key();
    let before = connections(&gpu1);
    let said = asker.refused("gpu1");
    assert!(said.starts_with("gpu1: its host key differs from the one in known_hosts."), "{said}");
    assert!(
        said.ends_with("Then remove the line of known_hosts that `ssh gpu1` names, and run `ssh gpu1` again"),
        "{said}"
    );
    assert_eq!(connections(&gpu1), before + 1);

    fleet.shell(": > /root/.ssh/known_hosts").well();
    let before = connections(&gpu1);
    let said = asker.refused("gpu1");
    assert!(said.starts_with("gpu1: its host key is not in known_hosts. Run `ssh gpu1` once"), "{said}");
    assert!(said.contains("Do not use ssh-keyscan alone"), "{said}");
    assert_eq!(connections(&gpu1), before + 1);
}

/// BatchMode is not passed on to the ssh that connects to a jump host.
#[test]
fn real_a_jump_host_is_passed_and_never_prompts_on_the_terminal() {
    if !machines::require() || !real::require(&["script"]) {
        return;
    }
    let fleet = Fleet::new();
    fleet.machine("gpu1", |machine| machine);
    fleet.machine("gpu2", |machine| machine);
    // Only the asker knows names.
    let gpu2 = fleet.shell("getent hosts gpu2").well();
    let address = gpu2.split_whitespace().next().unwrap();
    let config = format!("Host gpu2\nHostName {address}\nHostKeyAlias gpu2\nProxyJump gpu1\n");
    fleet.put("root/.ssh/config", &config);
    let ask = || fleet.shell(&format!("script -qec '{PROGRAM} --host gpu2 detect' /dev/null < /dev/null"));
    let said = ask();
    assert!(said.stdout.contains("of 0 AMD GPUs usable"), "{said:?}");
    fleet.shell("sed -i '/^gpu1 /d' /root/.ssh/known_hosts").well();
    let said = ask();
    assert!(said.stdout.contains("its host key is not in known_hosts"), "{said:?}");
    assert!(!said.stdout.contains("Are you sure"), "{said:?}");
}

#[test]
fn real_connecting_is_tried_three_times_and_each_error_says_why() {
    if !machines::require() {
        return;
    }
    let fleet = Fleet::new();
    let gpu1 = fleet.machine("gpu1", |machine| machine);
    let asker = Asker::of(&fleet);
    assert_eq!(
        asker.refused("nowhere"),
        "nowhere: cannot connect, after 3 tries: ssh: Could not resolve hostname nowhere: Name or service not known; \
         check the name, or give nowhere an address in ~/.ssh/config"
    );
    gpu1.stop_sshd();
    let began = Instant::now();
    assert_eq!(
        asker.refused("gpu1"),
        "gpu1: cannot connect, after 3 tries: Connection timed out during banner exchange; check that gpu1 is up and \
         that its sshd listens"
    );
    assert!(began.elapsed().as_secs_f64() < 20.0, "{:?}", began.elapsed());
    gpu1.continue_sshd();
    gpu1.kill_sshd();
    let said = asker.refused("gpu1");
    assert!(said.contains("after 3 tries: ssh: connect to host gpu1 port 22: Connection refused;"), "{said}");
    gpu1.start_sshd();
    gpu1.cut_off();
    let said = asker.refused("gpu1");
    assert!(said.contains("after 3 tries: ssh: connect to host gpu1 port 22: "), "{said}");
}

/// 30 s and more: three tries of 10 s with the product's own patience.
#[test]
#[ignore = "cargo xtask test --all"]
fn real_a_machine_that_hangs_is_given_up_after_half_a_minute() {
    if !machines::require() {
        return;
    }
    let fleet = Fleet::new();
    fleet.machine("gpu1", |machine| machine).stop_sshd();
    let asker = Asker::of(&fleet);
    let began = Instant::now();
    let error = asker.run_within("gpu1", "true", LONG, CONNECTING).unwrap_err();
    assert!(matches!(error, Error::Connect { tries: 3, .. }), "{error}");
    let seconds = began.elapsed().as_secs_f64();
    eprintln!("given up after {seconds:.1} s");
    assert!((30.0..60.0).contains(&seconds), "{seconds}");
}

#[test]
fn real_a_connection_that_sshd_has_no_room_for_is_tried_again() {
    if !machines::require() {
        return;
    }
    let fleet = Fleet::new();
    let gpu1 = fleet.machine("gpu1", |machine| machine.sshd("MaxStartups 1").sshd("LogLevel DEBUG1"));
    let asker = Asker::of(&fleet);
    // Somebody who does not log in.
    let hold = "exec 3<> /dev/tcp/gpu1/22; read -r line <&3; echo \"$line\"; cat > /dev/null";
    let mut held = fleet.command(&["bash", "-c", hold]);
    let mut held = held.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut banner = [0; 8];
    std::io::Read::read_exact(held.stdout.as_mut().unwrap(), &mut banner).unwrap();
    let said = asker.refused("gpu1");
    // What ssh says depends on whether sshd has read its first line.
    let closed = ["Connection closed by remote host;", "read: Connection reset by peer;"];
    let closed = closed.map(|how| format!("after 3 tries: kex_exchange_identification: {how}"));
    assert!(closed.iter().any(|it| said.contains(it)), "{said}");
    assert!(gpu1.sshd_log().contains("MaxStartups"), "{}", gpu1.sshd_log());
    // The other client leaves between two tries.
    let before = gpu1.sshd_log().matches("drop connection").count();
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| asker.run("gpu1", "echo there"));
        let drops = || gpu1.sshd_log().matches("drop connection").count();
        eventually("it is refused a first time", || drops() > before);
        drop(held.stdin.take());
        assert_eq!(asked.join().unwrap().unwrap().stdout, b"there\n");
    });
    held.wait().unwrap();
}
