//! A start that waits for the answer of the program that runs.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use reconcile::{Ask, Effect, Outcome, Restarts};

use crate::files::effects::{Host, UNIT, outcomes, wanted};

/// The file of a unit may say what the program that runs has not read.
#[test]
fn what_waits_for_a_start_is_done_at_once_where_the_program_says_that_what_runs_outlives_it() {
    let host = Host::new();
    host.machine.put("bin/asked", "#!/bin/sh\ncat \"$(dirname \"$0\")/../state/answer\"\n");
    let asked = host.machine.path("bin/asked");
    fs::set_permissions(&asked, fs::Permissions::from_mode(0o755)).unwrap();
    let ask = Ask { argv: vec![asked.display().to_string(), "info".to_owned()], yes: "true".to_owned() };
    let unit = UNIT.to_owned();
    let wanted =
        wanted("1", &[Effect::Reload { unit: unit.clone() }, Effect::NextStart { unit, ask: Some(ask) }]);
    let reload = "systemctl reload worker.service";
    host.set("answer", "false\n");
    assert_eq!(outcomes(&host.apply(&wanted, Restarts::Drain)), [Outcome::Done, Outcome::Pending]);
    assert_eq!(host.calls(), [reload]);
    // Nobody to ask says nothing.
    fs::rename(&asked, host.machine.path("aside")).unwrap();
    assert_eq!(outcomes(&host.apply(&wanted, Restarts::Drain)), [Outcome::Pending]);
    fs::rename(host.machine.path("aside"), &asked).unwrap();
    host.set("answer", "true\n");
    assert_eq!(outcomes(&host.apply(&wanted, Restarts::Never)), [Outcome::Pending]);
    assert!(host.calls().is_empty());
    assert_eq!(outcomes(&host.apply(&wanted, Restarts::Drain)), [Outcome::Done]);
    assert_eq!(host.calls(), ["systemctl try-restart worker.service"]);
}
