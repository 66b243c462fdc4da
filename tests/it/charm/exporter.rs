//! The exporter that the charm's package brings, and its port.

use layout::{Entry, Machine};
use serde_json::json;
use support::real;

use crate::charm::machines::out;
use crate::charm::record::Call;
use crate::charm::unit::Unit;

const UNIT: &str = "etc/systemd/system/rocm-exporter.service";
const PROGRAM: &str = "/usr/bin/rocworker-exporter";

fn ports(calls: &[Call]) -> Vec<String> {
    let of_ports = calls.iter().filter(|call| call.name().ends_with("-port"));
    of_ports.map(|call| call.words().join(" ")).collect()
}

#[test]
fn real_the_port_of_an_exporter_that_answers_others_is_opened_and_closed_when_it_goes() {
    if !real::require(&["python3", "env"]) {
        return;
    }
    let laid = out(&Machine::demo().put("/run/systemd/system", Entry::Directory));
    let unit = Unit::new();
    let hook = |listen: &str, path: &str| {
        unit.options(&json!({ "exporter-listen": listen }).to_string());
        ports(&unit.run(laid.top(), path).well())
    };
    let none = [""; 0];
    assert_eq!(hook("127.0.0.1:9401", "hooks/install"), none, "loopback needs none");
    let exec_start = |listen: &str| format!("\nExecStart={PROGRAM} --listen {listen}\n");
    assert!(laid.text(UNIT).contains(&exec_start("127.0.0.1:9401")), "{}", laid.text(UNIT));

    assert_eq!(hook("0.0.0.0:9401", "hooks/config-changed"), ["open-port 9401/tcp"]);
    assert!(laid.text(UNIT).contains(&exec_start("0.0.0.0:9401")), "{}", laid.text(UNIT));
    // Juju forgets what a hook told that failed later.
    assert_eq!(hook("0.0.0.0:9401", "hooks/update-status"), ["open-port 9401/tcp"]);
    assert_eq!(hook("[::]:9500", "hooks/config-changed"), ["close-port 9401/tcp", "open-port 9500/tcp"]);
    let closed = ["close-port 9401/tcp", "close-port 9500/tcp"];
    assert_eq!(hook("none", "hooks/config-changed"), closed);
    assert!(!laid.path(UNIT).exists());
    assert_eq!(hook("0.0.0.0:9401", "hooks/config-changed"), ["close-port 9500/tcp", "open-port 9401/tcp"]);
    assert_eq!(hook("0.0.0.0:9401", "actions/undo"), closed);
    assert!(!laid.path(UNIT).exists());
}

#[test]
fn real_another_ones_unit_stays_and_its_port_is_not_the_charms() {
    if !real::require(&["python3", "env"]) {
        return;
    }
    let laid = out(&Machine::demo().put("/run/systemd/system", Entry::Directory));
    laid.put(UNIT, "[Service]\nExecStart=/usr/local/bin/rocm_smi_exporter\n");
    let before = laid.text(UNIT);
    let unit = Unit::new();
    unit.options(&json!({ "exporter-listen": "0.0.0.0:9401" }).to_string());
    let calls = unit.run(laid.top(), "hooks/install").well();
    assert_eq!(ports(&calls), [""; 0]);
    let said = calls.iter().any(|call| {
        let words = call.words().join(" ");
        words.contains("rocm_smi_exporter: it stays") && words.contains("`exporter: {existing: replace}`")
    });
    assert!(said, "{calls:?}");
    assert_eq!(laid.text(UNIT), before);
}
