use crate::asker::{Asker, is_as_before, tree};

const UNIT: &str = "[Unit]\nDescription=ROCm SMI Prometheus Exporter\n[Service]\nExecStart=/usr/bin/sleep infinity\n\
                    [Install]\nWantedBy=multi-user.target\n";

#[test]
fn real_another_tools_unit_is_replaced_only_when_that_is_said_and_comes_back() {
    let Some(asker) = Asker::new() else { return };
    let gpu1 = asker.machine("gpu1", |m| m);
    gpu1.put("etc/systemd/system/rocm-exporter.service", UNIT);
    gpu1.shell("systemctl daemon-reload; systemctl start rocm-exporter").well();
    let before = tree(&gpu1);
    let said = asker.install(&["gpu1"]);
    assert_eq!(said.status.code(), Some(1));
    for part in ["/etc/systemd/system/rocm-exporter.service runs: /usr/bin/sleep infinity", "--replace"] {
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
