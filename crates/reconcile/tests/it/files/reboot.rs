//! A restart of the machine that is pending until the kernel names another boot.

use std::time::Duration;

use crate::machine::{Machine, NOW, desired, owned};
use reconcile::command::Programs;
use reconcile::{
    Desired, Effect, Entry, Managed, Outcome, Plan, Receipt, Repairs, Resource, Restarts, Services, Settled,
    Stage, State, Transaction,
};

const BOOT: &str = "proc/sys/kernel/random/boot_id";
const REQUIRED: &str = "run/reboot-required";
const PACKAGES: &str = "run/reboot-required.pkgs";

fn wanted() -> Desired {
    let reason = "the module that runs is an old one".to_owned();
    desired([owned("/etc/ours", "1\n").with(Effect::Reboot { reason, module: None })])
}

fn apply(machine: &Machine, desired: &Desired) -> Vec<Settled> {
    let root = machine.root();
    let mut work = Transaction::begin(&root, &mut |_| {}).unwrap();
    let plan = Plan::make(&root, desired, work.receipt(), None, false, NOW);
    work.execute(&plan, NOW, &mut |_| {}).unwrap();
    let programs = Programs::in_folders("/nowhere");
    let (restarts, drain) = (Restarts::Now, Duration::ZERO);
    let services = Services { programs: Some(&programs), restarts, drain, waiter: None, proxy: None };
    work.run_effects(&root, &services, |_| true, &mut |_| {}).unwrap()
}

fn booted(boot: &str) -> Machine {
    let machine = Machine::new();
    machine.put(BOOT, &format!("{boot}\n"));
    std::fs::create_dir_all(machine.path("run")).unwrap();
    machine
}

#[test]
fn it_is_pending_and_announced_until_the_next_boot() {
    let machine = booted("first");
    for _ in 0..2 {
        let settled = apply(&machine, &wanted());
        assert_eq!(settled[0].outcome, Outcome::Pending);
        assert_eq!(settled[0].text, "the module that runs is an old one: restart the machine when it may");
        assert_eq!(machine.text(REQUIRED), "*** System restart required ***\n");
        assert_eq!(machine.text(PACKAGES), "rocworker\n");
    }
    machine.put(BOOT, "second\n");
    let settled = apply(&machine, &wanted());
    assert_eq!(settled[0].outcome, Outcome::Done);
    assert!(apply(&machine, &wanted()).is_empty());
}

/// A reboot that became pending again in this boot is settled only by the next one.
#[test]
fn a_change_in_the_next_boot_adds_it_anew() {
    let machine = booted("first");
    apply(&machine, &wanted());
    machine.put(BOOT, "second\n");
    machine.put("etc/ours", "somebody's\n");
    assert_eq!(apply(&machine, &wanted())[0].outcome, Outcome::Pending);
    machine.put(BOOT, "third\n");
    assert_eq!(apply(&machine, &wanted())[0].outcome, Outcome::Done);
}

#[test]
fn what_others_have_said_of_a_restart_stays() {
    let machine = booted("first");
    machine.put(REQUIRED, "theirs\n");
    machine.put(PACKAGES, "linux-base\nlibc6");
    apply(&machine, &wanted());
    assert_eq!(machine.text(REQUIRED), "theirs\n");
    assert_eq!(machine.text(PACKAGES), "linux-base\nlibc6\nrocworker\n");
}

/// A module that we had loaded and that was loaded again in the next boot is of no component in an undo.
#[test]
fn a_module_that_another_boot_has_loaded_is_left_without_a_word() {
    let entry = Entry {
        path: Resource::Module("amdgpu".to_owned()),
        stage: Stage::Shape,
        reason: "for the test".to_owned(),
        before: State::Absent,
        managed: Managed::Module {
            boot: Some("first".to_owned()),
            came: vec!["amdgpu".to_owned()],
            begun: false,
        },
        effects: Vec::new(),
        component: String::new(),
        uses: Vec::new(),
        rival: None,
        repairs: Repairs::default(),
        mount: None,
    };
    let receipt = Receipt { entries: vec![entry], ..Receipt::default() };
    for (boot, left) in [("second", 0), ("first", 1)] {
        let machine = booted(boot);
        machine.put("sys/module/amdgpu/initstate", "live\n");
        machine.put("sys/module/amdgpu/refcnt", "2\n");
        let plan = Plan::make(&machine.root(), &Desired::default(), &receipt, None, false, NOW);
        assert_eq!(plan.left.len(), left, "{boot}: {plan:#?}");
        assert!(plan.changes.is_empty() && !plan.is_empty(), "{boot}: it leaves the receipt");
    }
}

fn drop_reboot(machine: &Machine) {
    let root = machine.root();
    let mut work = Transaction::begin(&root, &mut |_| {}).unwrap();
    work.drop_pending(|effect| matches!(effect, Effect::Reboot { .. })).unwrap();
    assert!(work.pending().is_empty());
}

#[test]
fn a_dropped_restart_is_announced_no_more_and_what_others_announce_stays() {
    let machine = booted("first");
    apply(&machine, &wanted());
    drop_reboot(&machine);
    assert!(!machine.path(REQUIRED).exists() && !machine.path(PACKAGES).exists());
    machine.put(REQUIRED, "*** System restart required ***\n");
    machine.put(PACKAGES, "linux-base\n");
    machine.put("etc/ours", "somebody's\n");
    apply(&machine, &wanted());
    assert_eq!(machine.text(PACKAGES), "linux-base\nrocworker\n");
    drop_reboot(&machine);
    assert_eq!(machine.text(PACKAGES), "linux-base\n");
    assert_eq!(machine.text(REQUIRED), "*** System restart required ***\n");
}
