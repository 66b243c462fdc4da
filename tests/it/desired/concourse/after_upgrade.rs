//! After an upgrade of Concourse what its worker wrote once is an older release's.

use engines::concourse::ENV_FILE;
use engines::concourse::desired::{out_of_date, written_by};

use crate::desired::concourse::worker::WRITTEN_CONFIG;
use crate::desired::concourse::{V7_14, V8_1, machine};

#[test]
fn what_an_older_concourse_wrote_is_told_after_an_upgrade() {
    let bin = "/var/lib/concourse/bin/concourse";
    let machine = machine(V7_14);
    machine.put(WRITTEN_CONFIG, "version = 3\noom_score = -999\n");
    let seven = written_by(&machine.concourse(), None);
    assert_eq!(seven.map(|version| version.to_string()).as_deref(), Some("7.14.3"));
    assert_eq!(out_of_date(&machine.concourse(), seven), None);

    machine.apply(&machine.desired(""));
    assert_eq!(written_by(&machine.concourse(), seven), seven);
    assert_eq!(out_of_date(&machine.concourse(), seven), None);
    let machine = machine.with_program(bin, V8_1.0);
    assert_eq!(written_by(&machine.concourse(), seven), seven, "the worker has written none since");
    let said = out_of_date(&machine.concourse(), seven).unwrap();
    assert!(
        said.contains("what Concourse 7.14.3 wrote") && said.contains("Concourse is 8.1.0 now"),
        "{said}"
    );
    // Of what nobody remembers nothing is said.
    assert_eq!(out_of_date(&machine.concourse(), None), None);

    // After undo it writes another.
    std::fs::remove_file(machine.root().join(ENV_FILE.trim_start_matches('/'))).unwrap();
    assert_eq!(written_by(&machine.concourse(), seven).unwrap().to_string(), "8.1.0");
    assert_eq!(out_of_date(&machine.concourse(), seven), None);
}
