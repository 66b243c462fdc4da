//! What every decision does besides deciding: wait for its turn, no longer than it should, and clear away some of
//! what the dead have left.

use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::stage::{Stage, config, names};

const ASKING: &[&str] = &["AMD_VISIBLE_DEVICES=0"];

/// A process that has the lock and is stopped.
fn stopped_with_the_lock(stage: &Stage) -> Child {
    let mut holder = Command::new("flock")
        .arg("--no-fork")
        .arg(stage.path("run/lock"))
        .args(["sh", "-c", "echo held; kill -STOP $$"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    holder.stdout.as_mut().unwrap().read_exact(&mut [0; 5]).unwrap();
    let stat = format!("/proc/{}/stat", holder.id());
    while !std::fs::read_to_string(&stat).unwrap().contains(") T ") {
        std::thread::sleep(Duration::from_millis(1));
    }
    holder
}

#[test]
fn a_process_that_is_stopped_with_the_lock_is_named_by_who_waited_for_it_in_vain() {
    let mut stage = Stage::new();
    stage.paths.lease.lock_patience = Duration::from_millis(50);
    stage.policy("all", "all");
    // Makes the folder and its lock.
    stage.create(config(ASKING));
    let mut holder = stopped_with_the_lock(&stage);
    let (asking, default, none) =
        (stage.create(config(ASKING)), stage.create(config(&[])), stage.create(config(&["AMD_GPU_COUNT=0"])));
    holder.kill().unwrap();
    holder.wait().unwrap();
    let sentence = |seconds: &str| {
        format!(
            "what containers are given cannot be kept: the lock {} could not be taken within {seconds} s: the process {} (\"sh\") \
         has it and is stopped: `kill -CONT {}` lets it go on, or end it",
            stage.path("run/lock").display(),
            holder.id(),
            holder.id()
        )
    };
    assert!(!asking.runs() && asking.messages("error")[0].ends_with(&sentence("0.05")), "{asking:?}");
    // A create without a request waits only a moment, whatever the patience of creates with one.
    assert!(default.runs() && default.messages("warning")[0].ends_with(&sentence("0.25")), "{default:?}");
    assert!(none.runs() && none.log.is_empty(), "{none:?}");
    let after = stage.create(config(ASKING));
    assert!(!after.messages("error").iter().any(|reported| reported.contains("lock")), "{after:?}");
}

#[test]
fn a_wait_that_has_no_effect_where_gpus_are_shared_is_a_warning_with_the_keys_that_it_takes() {
    let stage = Stage::new();
    stage.policy("all", "all");
    for (env, part) in [
        (
            &["AMD_VISIBLE_DEVICES=0", "AMD_GPU_WAIT=30"][..],
            "AMD_GPU_WAIT=30 has no effect where GPUs are shared",
        ),
        // The default, which is best effort.
        (
            &["AMD_GPU_WAIT=30"],
            "wrapper.sharing: exclusive and wrapper.wait-limit-s in rocworker's configuration",
        ),
        (&["AMD_VISIBLE_DEVICES=0", "AMD_GPU_WAIT=1m"], "AMD_GPU_WAIT: \"1m\" is not a number of seconds"),
    ] {
        let outcome = stage.create(config(env));
        assert!(outcome.messages("warning").iter().any(|it| it.contains(part)), "{env:?}: {outcome:?}");
    }
    for env in [&["AMD_VISIBLE_DEVICES=0"][..], &["AMD_VISIBLE_DEVICES=0", "AMD_GPU_WAIT=0"], &[]] {
        let outcome = stage.create(config(env));
        assert!(!outcome.messages("warning").iter().any(|it| it.contains("WAIT")), "{env:?}: {outcome:?}");
    }
}

#[test]
fn of_many_records_a_decision_judges_a_few_and_each_has_its_turn() {
    const DEAD: usize = 60;
    let stage = Stage::new();
    stage.policy("all", "none");
    stage.write_record("lives", 1, &[], true);
    for n in 0..DEAD {
        stage.write_record(&format!("dead-{n}"), 0, &[], false);
    }
    let left = || names(&stage.path("run/records")).len() - 1;
    let mut decisions = 0;
    let mut before = DEAD;
    while left() > 0 {
        // Without rights there are no nodes to give: it fails behind the decision.
        stage.create(config(ASKING));
        let now = left();
        assert!(before - now <= 4, "{before} {now}");
        before = now;
        decisions += 1;
        assert!(decisions < 2000, "{now} are never looked at");
    }
    assert!(decisions >= DEAD / 4, "{decisions}");
    assert!(stage.record("lives").is_some());
    // A few are looked at all.
    stage.write_record("dead", 0, &[], false);
    stage.create(config(ASKING));
    assert_eq!(names(&stage.path("run/records")), ["%2Fnowhere%2Frunc@lives"]);
}
