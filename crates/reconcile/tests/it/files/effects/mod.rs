//! Restarts and the like, with stand-ins for systemctl and udevadm: shell scripts that write down how they were called
//! and answer from files. That systemd does what they stand for is not shown here.

mod asked;
mod failed;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use crate::machine::{Machine, NOW, desired, owned};
use reconcile::command::Programs;
use reconcile::{Desired, Effect, Outcome, Plan, Restarts, Services, Settled, Store, Transaction};

const FILE: &str = "/etc/worker.conf";
const UNIT: &str = "worker.service";

/// Microseconds of CLOCK_MONOTONIC after all that these tests do: a machine that has run for thirty thousand years.
const LATER: u64 = 1_000_000_000_000_000_000;

/// `active` holds `active` or `inactive`, `since` when it began in microseconds of CLOCK_MONOTONIC, `run` which run it is. `kill` ends it when `obeys` is
/// there; `at-kill` and `at-wait` are the receipt as it is on disk at these moments; `slow` holds at how many further looks it still runs, before it ends.
const SYSTEMCTL: &str = r#"#!/bin/sh
cd "$(dirname "$0")/../state"
case $* in
  "show --property=ActiveState,ActiveEnterTimestampMonotonic,InvocationID,MainPID "*.service)
    [ -e mute ] && { echo "no bus" >&2; exit 1; }
    if [ "${*##* }" = rocworker-restart-worker.service ]; then echo "ActiveState=$(cat waiter)"; exit; fi
    [ -e at-kill ] && cp ../var/lib/rocworker/receipt.json at-wait
    if [ -s left ]; then n=$(cat left); if [ "$n" -gt 0 ]; then echo $((n - 1)) > left; else echo inactive > active; fi; fi
    echo "ActiveState=$(cat active)"
    echo "ActiveEnterTimestampMonotonic=$(cat since)"
    echo "InvocationID=$(cat run)"
    exit ;;
esac
echo "systemctl $*" >> calls
[ -e fails ] && { echo "it is stuck" >&2; exit 1; }
case $* in
  "kill "*) cp ../var/lib/rocworker/receipt.json at-kill; [ -e obeys ] && echo inactive > active; [ -e slow ] && cp slow left; exit 0 ;;
  "start "*) echo active > active; echo again > run; rm -f left; exit 0 ;;
  "try-restart "*) [ "$(cat active)" = active ] && echo again > run; exit 0 ;;
  daemon-reload) if [ -e unread ]; then echo "bad unit" >&2; exit 1; fi; exit 0 ;;
  "reload "*) exit 0 ;;
esac
echo "no such call: $*" >&2
exit 64
"#;

struct Host {
    machine: Machine,
    /// How long a run waits for a unit.
    drain: Duration,
    /// The command that waits longer.
    waiter: Option<Vec<String>>,
}

impl Host {
    /// The unit runs, as long as anybody remembers.
    fn new() -> Self {
        let machine = Machine::new();
        for (name, script) in [
            ("systemctl", SYSTEMCTL),
            (
                "systemd-run",
                "#!/bin/sh\ncd \"$(dirname \"$0\")/../state\"\necho \"systemd-run $*\" >> calls\necho active > waiter\n",
            ),
            ("udevadm", "#!/bin/sh\ncd \"$(dirname \"$0\")/../state\"\necho \"udevadm $*\" >> calls\n"),
        ] {
            machine.put(&format!("bin/{name}"), script);
            fs::set_permissions(machine.path(&format!("bin/{name}")), fs::Permissions::from_mode(0o755))
                .unwrap();
        }
        for (name, text) in
            [("active", "active"), ("since", "1000"), ("run", "first"), ("calls", ""), ("waiter", "inactive")]
        {
            machine.put(&format!("state/{name}"), text);
        }
        fs::create_dir_all(machine.path("run/systemd/system")).unwrap();
        machine.put("run/udev/control", "");
        machine.put("proc/sys/kernel/random/boot_id", "a-boot\n");
        Self { machine, drain: Duration::ZERO, waiter: None }
    }

    fn set(&self, name: &str, text: &str) {
        self.machine.put(&format!("state/{name}"), text);
    }

    fn unset(&self, name: &str) {
        fs::remove_file(self.machine.path(&format!("state/{name}"))).unwrap();
    }

    /// What was called since the last look.
    fn calls(&self) -> Vec<String> {
        let calls = self.machine.text("state/calls").lines().map(str::to_owned).collect();
        self.set("calls", "");
        calls
    }

    /// An apply: plan, carry out, settle.
    fn apply(&self, desired: &Desired, restarts: Restarts) -> Vec<Settled> {
        let root = self.machine.root();
        let mut work = Transaction::begin(&root, &mut |_| {}).unwrap();
        let plan = Plan::make(&root, desired, work.receipt(), None, false, NOW);
        work.execute(&plan, NOW, &mut |_| {}).unwrap();
        self.settle(&mut work, restarts)
    }

    fn programs(&self) -> Programs {
        Programs::in_folders(format!("{}:/usr/bin:/bin", self.machine.path("bin").display()))
    }

    fn settle(&self, work: &mut Transaction<'_>, restarts: Restarts) -> Vec<Settled> {
        let programs = self.programs();
        let services = Services {
            programs: Some(&programs),
            restarts,
            drain: self.drain,
            waiter: self.waiter.as_deref(),
            proxy: None,
        };
        work.run_effects(&self.machine.root(), &services, |_| true, &mut |_| {}).unwrap()
    }

    /// Leaves the state of an apply that is killed before it comes to the effects.
    fn killed_before_effects(&self, desired: &Desired) {
        let root = self.machine.root();
        let mut work = Transaction::begin(&root, &mut |_| {}).unwrap();
        let plan = Plan::make(&root, desired, work.receipt(), None, false, NOW);
        work.execute(&plan, NOW, &mut |_| {}).unwrap();
    }
}

fn restart(drain: Option<&str>) -> Effect {
    Effect::Restart { unit: UNIT.to_owned(), drain: drain.map(str::to_owned) }
}

fn wanted(text: &str, effects: &[Effect]) -> Desired {
    desired([effects.iter().cloned().fold(owned(FILE, text), reconcile::Action::with)])
}

fn outcomes(settled: &[Settled]) -> Vec<Outcome> {
    settled.iter().map(|it| it.outcome).collect()
}

const SIGNAL: &str = "systemctl kill --kill-who=main --signal=SIGUSR2 worker.service";

#[test]
fn effects_come_once_after_all_changes_and_none_where_nothing_changed() {
    let host = Host::new();
    let effects = [restart(None), Effect::SystemdReload];
    let mut both = wanted("1", &effects);
    both.extend(desired([effects
        .iter()
        .cloned()
        .fold(owned("/etc/other.conf", "1"), reconcile::Action::with)]));
    let settled = host.apply(&both, Restarts::Drain);
    assert_eq!(outcomes(&settled), [Outcome::Done, Outcome::Done]);
    assert_eq!(host.calls(), ["systemctl daemon-reload", "systemctl try-restart worker.service"]);
    assert!(host.apply(&both, Restarts::Drain).is_empty());
    assert_eq!(host.calls(), [""; 0], "nothing changed");
    host.apply(&Desired::default(), Restarts::Drain);
    assert_eq!(
        host.calls(),
        ["systemctl daemon-reload", "systemctl try-restart worker.service"],
        "on the way back too"
    );
    assert!(host.machine.is_bare());
}

#[test]
fn never_leaves_a_restart_pending_until_somebody_does_it() {
    let host = Host::new();
    let wanted = wanted("1", &[restart(Some("SIGUSR2"))]);
    for _ in 0..2 {
        let settled = host.apply(&wanted, Restarts::Never);
        assert_eq!(outcomes(&settled), [Outcome::Pending]);
        assert!(settled[0].text.contains("systemctl restart worker.service"), "{}", settled[0].text);
        assert_eq!(host.calls(), [""; 0]);
    }
    // A person has restarted the unit after the file was written.
    host.set("since", &LATER.to_string());
    let settled = host.apply(&wanted, Restarts::Now);
    assert_eq!(outcomes(&settled), [Outcome::Done]);
    assert_eq!(host.calls(), [""; 0], "it runs with its new configuration already");
    assert!(host.apply(&wanted, Restarts::Now).is_empty());
}

#[test]
fn a_unit_that_was_restarted_before_the_file_was_written_is_restarted_again() {
    let host = Host::new();
    let uptime = fs::read_to_string("/proc/uptime").unwrap();
    let us = uptime.split(['.', ' ']).next().unwrap().parse::<u64>().unwrap() * 1_000_000;
    host.set("since", &us.to_string());
    host.apply(&wanted("1", &[restart(None)]), Restarts::Now);
    assert_eq!(host.calls(), ["systemctl try-restart worker.service"]);
}

#[test]
fn drain_tells_the_unit_once_and_starts_it_when_it_has_ended() {
    let host = Host::new();
    host.set("obeys", "");
    let settled = host.apply(&wanted("1", &[restart(Some("SIGUSR2"))]), Restarts::Drain);
    assert_eq!(outcomes(&settled), [Outcome::Done], "{}", settled[0].text);
    assert_eq!(host.calls(), [SIGNAL, "systemctl start worker.service"]);
    assert_eq!(host.machine.text("state/active").trim(), "active");
}

#[test]
fn a_drain_that_does_not_end_stays_pending_and_a_later_run_starts_the_unit_whatever_restart_says() {
    for later in [Restarts::Drain, Restarts::Never, Restarts::Now] {
        let host = Host::new();
        let wanted = wanted("1", &[restart(Some("SIGUSR2"))]);
        let settled = host.apply(&wanted, Restarts::Drain);
        assert_eq!(outcomes(&settled), [Outcome::Pending]);
        assert!(settled[0].text.contains("is still at it"), "{}", settled[0].text);
        assert_eq!(host.calls(), [SIGNAL]);
        // The unit is still at work: it gets no second signal.
        assert_eq!(outcomes(&host.apply(&wanted, Restarts::Drain)), [Outcome::Pending]);
        assert_eq!(host.calls(), [""; 0]);
        host.set("active", "inactive");
        assert_eq!(outcomes(&host.apply(&wanted, later)), [Outcome::Done], "{later:?}");
        assert_eq!(host.calls(), ["systemctl start worker.service"], "{later:?}");
        assert!(host.apply(&wanted, later).is_empty());
    }
}

/// Nobody has to run rocworker again: systemd starts what waits, and starts it anew where it fails.
#[test]
fn a_drain_that_takes_long_is_left_to_a_unit_that_waits() {
    let host =
        Host { waiter: Some(vec!["/usr/bin/rocworker".to_owned(), "settle".to_owned()]), ..Host::new() };
    let wanted = wanted("1", &[restart(Some("SIGUSR2"))]);
    let settled = host.apply(&wanted, Restarts::Drain);
    assert_eq!(outcomes(&settled), [Outcome::Pending]);
    assert!(
        settled[0].text.ends_with("rocworker-restart-worker.service waits for it and starts it again"),
        "{}",
        settled[0].text
    );
    assert_eq!(
        host.calls(),
        [
            SIGNAL,
            "systemd-run --quiet --collect --no-block --property=Restart=on-failure --property=RestartSec=30 \
             --unit=rocworker-restart-worker.service --description=Start worker.service again once its work is done -- \
             /usr/bin/rocworker settle worker.service"
        ]
    );
    // The unit's drain is waited for already.
    assert_eq!(outcomes(&host.apply(&wanted, Restarts::Drain)), [Outcome::Pending]);
    assert_eq!(host.calls(), [""; 0]);

    // What `settle` does there: it waits for the run that got the signal, and settles that alone.
    let programs = host.programs();
    let services = Services {
        programs: Some(&programs),
        restarts: Restarts::Never,
        drain: Duration::ZERO,
        waiter: None,
        proxy: None,
    };
    let root = host.machine.root();
    let receipt = || Store::new(&root).receipt().unwrap();
    host.set("active", "inactive");
    let effect = services.wait_for_end(&receipt(), UNIT).unwrap().unwrap();
    let mut work = Transaction::begin(&root, &mut |_| {}).unwrap();
    let settled = work.run_effects(&root, &services, |pending| *pending == effect, &mut |_| {}).unwrap();
    assert_eq!(outcomes(&settled), [Outcome::Done]);
    assert_eq!(host.calls(), ["systemctl start worker.service"]);
    drop(work);
    assert_eq!(services.wait_for_end(&receipt(), UNIT), Ok(None), "nothing is owed any more");
}

/// A bus that does not answer is not a unit that does not run: the debt stays.
#[test]
fn what_systemd_does_not_tell_stays_pending() {
    for effect in [
        restart(None),
        restart(Some("SIGUSR2")),
        Effect::Reload { unit: UNIT.to_owned() },
        Effect::NextStart { unit: UNIT.to_owned(), ask: None },
    ] {
        let host = Host::new();
        host.set("mute", "");
        let wanted = wanted("1", std::slice::from_ref(&effect));
        let settled = host.apply(&wanted, Restarts::Drain);
        assert_eq!(outcomes(&settled), [Outcome::Failed], "{effect:?}");
        assert!(settled[0].text.ends_with("no bus"), "{}", settled[0].text);
        host.unset("mute");
        // A unit that starts or stops at this moment may have read the old file.
        for state in ["activating", "deactivating"] {
            host.set("active", state);
            assert_eq!(
                outcomes(&host.apply(&wanted, Restarts::Now)),
                [Outcome::Pending],
                "{effect:?} {state}"
            );
        }
        host.set("active", "active");
        assert_eq!(outcomes(&host.apply(&wanted, Restarts::Now)), [Outcome::Done], "{effect:?}");
    }
}

/// A unit that begins anew by the old file would count as restarted.
#[test]
fn no_unit_is_touched_while_systemd_has_not_read_its_file() {
    let host = Host::new();
    let wanted = wanted("1", &[Effect::SystemdReload, restart(Some("SIGUSR2"))]);
    host.set("unread", "");
    let settled = host.apply(&wanted, Restarts::Drain);
    assert_eq!(outcomes(&settled), [Outcome::Failed, Outcome::Pending]);
    assert_eq!(host.calls(), ["systemctl daemon-reload"]);
    host.unset("unread");
    host.set("obeys", "");
    assert_eq!(outcomes(&host.apply(&wanted, Restarts::Drain)), [Outcome::Done, Outcome::Done]);
}

#[test]
fn a_unit_that_runs_since_another_boot_has_its_new_configuration() {
    let host = Host::new();
    let wanted = wanted("1", &[restart(None)]);
    host.apply(&wanted, Restarts::Never);
    host.machine.put("proc/sys/kernel/random/boot_id", "the-next\n");
    let settled = host.apply(&wanted, Restarts::Now);
    assert_eq!(settled[0].text, "worker.service was restarted since");
    assert_eq!(host.calls(), [""; 0]);
}

/// Whoever kills this while it waits must not leave a unit that has ended for nobody to start.
#[test]
fn that_a_unit_is_told_is_on_disk_before_the_signal_and_that_it_was_before_the_wait() {
    let host = Host::new();
    let wanted = wanted("1", &[restart(Some("SIGUSR2"))]);
    host.apply(&wanted, Restarts::Drain);
    let draining = |when: &str| {
        let receipt: serde_json::Value = serde_json::from_str(&host.machine.text(when)).unwrap();
        receipt["pending"][0]["told"].clone()
    };
    assert_eq!(draining("state/at-kill"), serde_json::json!({"invocation": "first", "sent": false}));
    assert_eq!(draining("state/at-wait"), serde_json::json!({"invocation": "first", "sent": true}));

    // Killed just before the signal: the unit runs on, and gets the signal now.
    host.machine.put("var/lib/rocworker/receipt.json", &host.machine.text("state/at-kill"));
    fs::set_permissions(
        host.machine.path("var/lib/rocworker/receipt.json"),
        fs::Permissions::from_mode(0o600),
    )
    .unwrap();
    host.calls();
    assert_eq!(outcomes(&host.apply(&wanted, Restarts::Drain)), [Outcome::Pending]);
    assert_eq!(host.calls(), [SIGNAL]);
}

#[test]
fn a_unit_that_takes_its_time_is_waited_for() {
    let host = Host { drain: Duration::from_secs(60), ..Host::new() };
    host.set("slow", "1");
    let settled = host.apply(&wanted("1", &[restart(Some("SIGUSR2"))]), Restarts::Drain);
    assert_eq!(outcomes(&settled), [Outcome::Done], "{}", settled[0].text);
    assert_eq!(host.calls(), [SIGNAL, "systemctl start worker.service"]);
}

#[test]
fn a_unit_that_ended_and_was_started_by_somebody_is_not_waited_for() {
    let host = Host::new();
    let first = wanted("1", &[restart(Some("SIGUSR2"))]);
    assert_eq!(outcomes(&host.apply(&first, Restarts::Drain)), [Outcome::Pending]);
    host.set("run", "second");
    host.set("since", &LATER.to_string());
    let settled = host.apply(&first, Restarts::Drain);
    assert_eq!(outcomes(&settled), [Outcome::Done], "{}", settled[0].text);

    // Another change comes after the restart: the run that is there now never got a signal.
    let host = Host::new();
    assert_eq!(outcomes(&host.apply(&first, Restarts::Drain)), [Outcome::Pending]);
    host.set("run", "second");
    host.calls();
    let settled = host.apply(&wanted("2", &[restart(Some("SIGUSR2"))]), Restarts::Drain);
    assert_eq!(outcomes(&settled), [Outcome::Pending]);
    assert_eq!(host.calls(), [SIGNAL]);
}

#[test]
fn now_does_not_wait_and_a_unit_that_does_not_run_is_left_so() {
    let host = Host::new();
    host.apply(&wanted("1", &[restart(Some("SIGUSR2"))]), Restarts::Now);
    assert_eq!(host.calls(), ["systemctl try-restart worker.service"]);
    host.set("active", "inactive");
    let settled = host.apply(&wanted("2", &[restart(Some("SIGUSR2"))]), Restarts::Drain);
    assert_eq!(outcomes(&settled), [Outcome::Skipped]);
    assert_eq!(settled[0].text, "worker.service does not run");
    assert_eq!(host.calls(), [""; 0]);
    let settled = host.apply(&wanted("3", &[Effect::Reload { unit: UNIT.to_owned() }]), Restarts::Drain);
    assert_eq!(outcomes(&settled), [Outcome::Skipped]);
}

#[test]
fn what_a_killed_apply_owes_the_next_one_does() {
    let host = Host::new();
    let wanted = wanted("1", &[restart(None), Effect::Reload { unit: "other.service".to_owned() }]);
    host.killed_before_effects(&wanted);
    assert_eq!(host.calls(), [""; 0]);
    assert_eq!(outcomes(&host.apply(&wanted, Restarts::Drain)), [Outcome::Done, Outcome::Done]);
    assert_eq!(host.calls(), ["systemctl reload other.service", "systemctl try-restart worker.service"]);
    assert!(host.apply(&wanted, Restarts::Drain).is_empty());
}

#[test]
fn a_signal_that_cannot_be_sent_or_a_start_that_fails_stays_pending() {
    let host = Host::new();
    let wanted = wanted("1", &[restart(Some("SIGUSR2"))]);
    host.set("fails", "");
    let settled = host.apply(&wanted, Restarts::Drain);
    assert_eq!(outcomes(&settled), [Outcome::Failed]);
    assert!(settled[0].text.ends_with("ended with exit status: 1: it is stuck"), "{}", settled[0].text);
    // The unit got no signal: when it is stopped now, that is somebody's decision.
    host.unset("fails");
    host.calls();
    host.set("active", "inactive");
    assert_eq!(outcomes(&host.apply(&wanted, Restarts::Drain)), [Outcome::Skipped]);
    assert_eq!(host.calls(), [""; 0]);
}
