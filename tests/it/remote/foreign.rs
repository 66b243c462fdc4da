use std::process::Stdio;

use crate::remote::asker::{Asker, PROGRAM, is_as_before, tree};

const UNIT: &str = "[Unit]\nDescription=ROCm SMI Prometheus Exporter\n[Service]\nExecStart=/usr/bin/sleep infinity\n\
                    [Install]\nWantedBy=multi-user.target\n";

#[test]
fn real_a_foreign_unit_is_replaced_only_with_replace_and_restored() {
    let Some(asker) = Asker::new() else { return };
    let gpu1 = asker.machine("gpu1", |m| m);
    gpu1.put("etc/systemd/system/rocm-exporter.service", UNIT);
    gpu1.shell("systemctl daemon-reload; systemctl start rocm-exporter").well();
    let before = tree(&gpu1);
    let said = asker.install(&["gpu1"]);
    assert_eq!(said.status.code(), Some(1));
    for part in ["/etc/systemd/system/rocm-exporter.service runs /usr/bin/sleep", "--replace"] {
        assert!(said.stderr.contains(part), "{part}: {said:?}");
    }
    is_as_before(&gpu1, &before);
    let said = asker.install(&["gpu1", "--replace"]);
    assert_eq!(said.clone().well(), "Metrics available at: http://gpu1:9401/metrics\n", "{said:?}");
    asker.remote(&["uninstall", "gpu1"]).well();
    is_as_before(&gpu1, &before);
    let runs =
        gpu1.shell("systemctl is-active rocm-exporter; systemctl show --property=ExecStart rocm-exporter");
    let runs = runs.well();
    assert!(runs.starts_with("active\n") && runs.contains("/usr/bin/sleep"), "{runs}");
}

#[test]
fn real_a_person_at_a_terminal_is_asked_and_a_unit_that_was_stopped_stays_so() {
    let Some(asker) = Asker::new() else { return };
    let gpu1 = asker.machine("gpu1", |m| m);
    gpu1.put("usr/lib/systemd/system/rocm-exporter.service", UNIT);
    gpu1.shell("systemctl daemon-reload; systemctl enable rocm-exporter").well();
    let before = tree(&gpu1);
    let answer = |reply: &str| {
        let package = asker.package().display();
        let install = format!("{PROGRAM} remote install gpu1 --package {package}");
        let script = format!("printf '{reply}\\n' | script --quiet --return --command '{install}' /dev/null");
        asker.fleet.command(&["sh", "-c", &script]).stdin(Stdio::null()).output().unwrap()
    };
    let said = answer("n");
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(text.contains("Replace it until rocworker remote uninstall restores it? [y/N]"), "{text}");
    assert!(
        said.status.code() == Some(1) && text.contains("you chose to keep rocm-exporter.service"),
        "{text}"
    );
    is_as_before(&gpu1, &before);
    let said = answer("y");
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.status.success() && text.contains("http://gpu1:9401/metrics"), "{text}");
    asker.remote(&["uninstall", "gpu1"]).well();
    is_as_before(&gpu1, &before);
    assert_eq!(gpu1.shell("systemctl is-active rocm-exporter || true").well(), "inactive\n");
}
