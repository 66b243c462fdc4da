//! Workers that somebody has configured in a way that rocworker's configuration has to get along with.

use crate::desired::concourse::worker::{UNIT, shown, text, value};
use crate::desired::concourse::{OURS, V7_14, V8_1, machine};

const OWN: &str = "/etc/concourse/containerd.toml";
const LAUNCHER: &str = "/usr/local/lib/rocworker/concourse-containerd";

#[test]
fn a_configuration_of_containerd_that_somebody_wrote_stays_theirs() {
    for (config, is_launched, problem) in [
        ("version = 3\nroot = \"/data\"\n", true, None),
        ("not toml", true, None),
        ("[plugins.\"io.containerd.shim.v1.manager\"]\nenv = [\"A=b\"]\n", true, None),
        (
            "[plugins.\"io.containerd.shim.v1.manager\"]\nenv = [\"PATH=/usr/bin\"]\n",
            false,
            Some(
                "gives containerd's shims PATH=/usr/bin, on which runc is not rocworker's wrapper: begin it with /usr/local/lib/rocworker/shim:",
            ),
        ),
        (
            "[plugins.\"io.containerd.shim.v1.manager\"]\nenv = [\"PATH=/usr/local/lib/rocworker/shim:/usr/bin\"]\n",
            false,
            None,
        ),
    ] {
        let machine = machine(V8_1);
        machine.set(&format!("CONCOURSE_CONTAINERD_CONFIG={OWN}"));
        machine.put(OWN.trim_start_matches('/'), config);
        let desired = machine.desired("");
        assert_eq!(value(&desired, "CONCOURSE_CONTAINERD_BIN").is_some(), is_launched, "{config}");
        assert_eq!(value(&desired, "CONCOURSE_CONTAINERD_CONFIG"), None, "{config}");
        assert_eq!(value(&desired, "CONCOURSE_TAG").is_some(), problem.is_none(), "{config}");
        let said = desired.notes.iter().find(|note| note.problem).map(|note| note.text.as_str());
        assert!(
            said.is_some() == problem.is_some() && said.is_none_or(|said| said.contains(problem.unwrap())),
            "{said:?}"
        );
    }
}

#[test]
fn a_containerd_that_somebody_chose_is_the_one_that_is_started() {
    let machine = machine(V7_14).with_program("/opt/containerd/bin/containerd", (1, 7, 24));
    machine.set("CONCOURSE_CONTAINERD_BIN=/opt/containerd/bin/containerd");
    let desired = machine.desired("");
    assert_eq!(value(&desired, "CONCOURSE_CONTAINERD_BIN").as_deref(), Some(LAUNCHER));
    assert!(text(&desired, LAUNCHER).unwrap().ends_with("exec '/opt/containerd/bin/containerd' \"$@\"\n"));
    // One by its name is looked up where the worker would.
    let machine =
        crate::desired::concourse::machine(V7_14).with_program("/opt/bin/containerd-next", (2, 3, 0));
    machine.set("CONCOURSE_CONTAINERD_BIN=containerd-next");
    assert!(
        text(&machine.desired(""), "/etc/rocworker/concourse-containerd.toml")
            .unwrap()
            .contains("version = 4")
    );
}

#[test]
fn what_the_command_line_says_wins_and_is_said() {
    let unit = |flags: &str| UNIT.replace("concourse worker", &format!("concourse worker {flags}"));
    for (flags, bin, tag, problem) in [
        ("--runtime guardian", false, false, "the worker runs guardian"),
        ("--tag a", false, true, "sets tags on its command line"),
        ("--containerd-config /etc/concourse/containerd.toml", true, false, ""),
        (
            "--containerd-config=/etc/c.toml --containerd-bin=/x/containerd",
            false,
            false,
            "--containerd-bin /x/containerd",
        ),
    ] {
        let machine = machine(V8_1);
        machine.put("etc/systemd/system/concourse-worker.service", &unit(flags));
        machine.put("etc/concourse/containerd.toml", "version = 3\n");
        machine.put("etc/c.toml", "version = 3\n");
        let desired = machine.desired("");
        assert_eq!(value(&desired, "CONCOURSE_CONTAINERD_BIN").is_some(), bin, "{flags}: {desired:#?}");
        assert_eq!(value(&desired, "CONCOURSE_CONTAINERD_CONFIG").is_some(), tag, "{flags}");
        assert!(
            desired.notes.iter().any(|note| note.problem && note.text.contains(problem))
                != problem.is_empty(),
            "{desired:#?}"
        );
        assert_eq!(value(&desired, "CONCOURSE_TAG"), bin.then(|| OURS.to_owned()), "{flags}");
    }
}

#[test]
fn a_drop_in_that_comes_after_ours_is_said() {
    for (name, text, is_said) in [
        ("zzz.conf", "[Service]\nEnvironmentFile=/etc/default/concourse\n", true),
        ("zzz.conf", "[Service]\nUnsetEnvironment=CONCOURSE_TAG\n", true),
        ("zzz.conf", "[Service]\nEnvironment=CONCOURSE_TAG=a\n", false),
        ("override.conf", "[Service]\nEnvironmentFile=-/etc/default/concourse\n", false),
    ] {
        let machine = machine(V8_1);
        machine.drop_in(name, text);
        let desired = machine.desired("");
        let said = desired.notes.iter().filter(|note| note.problem && note.text.contains(name)).count();
        assert_eq!(said == 1, is_said, "{name}: {}", shown(&desired));
    }
}

#[test]
fn a_worker_without_a_containerd_is_said() {
    let machine = crate::desired::concourse::worker::Machine::without_worker(&support::captures::phoenix())
        .with_program("/var/lib/concourse/bin/concourse", V8_1.0);
    machine.put("etc/systemd/system/concourse-worker.service", UNIT);
    machine.put(crate::desired::concourse::worker::ENVIRONMENT_FILE, "");
    let desired = machine.desired("");
    assert!(desired.actions.is_empty());
    assert_eq!(
        desired.notes[0].text,
        "the worker's containerd is not found (there is no containerd in /var/lib/concourse/bin): nothing is changed \
         until it is there"
    );
}
