//! The commands and configurations of docs/monitoring.md, word for word but for the port: another exporter may have it on
//! the machine that runs the test.

use std::fs;
use std::process::Command;

use layout::Machine;
use support::document;
use support::real;
use support::stage::{Stage, stdout};

const PORT: &str = "29406";

/// The blocks of code of a section, without the four blanks in front of each line.
fn blocks(heading: &str) -> Vec<String> {
    let text = document::text("docs/monitoring.md").replace("9401", PORT);
    let section = text.split_once(&format!("\n## {heading}\n\n")).unwrap().1.split("\n## ").next().unwrap();
    let blocks = section.split("\n\n").filter(|block| block.starts_with("    "));
    let lines =
        |block: &str| block.lines().map(|line| format!("{}\n", line.strip_prefix("    ").unwrap())).collect();
    blocks.map(lines).collect()
}

#[test]
fn the_keys_of_the_document_are_the_defaults_and_what_it_configures_is_understood() {
    let parse = |text: &str| config::Config::parse("config.yaml".as_ref(), text).unwrap().exporter;
    let [_, _, defaults] = blocks("Quick start").try_into().unwrap();
    assert_eq!(parse(&defaults.replace(PORT, "9401")), parse(""));
    let [listen, _] = blocks("Prometheus on another machine").try_into().unwrap();
    assert_eq!(parse(&listen).listen.to_string(), format!("0.0.0.0:{PORT}"));
    let [replace] = blocks("Another tool's rocm-exporter.service").try_into().unwrap();
    assert_eq!(parse(&replace).existing, config::ExistingUnit::Replace);
}

#[test]
fn real_promtool_takes_the_scrape_configuration() {
    if !real::require(&["promtool"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("prometheus.yml");
    let promtool = real::program("promtool").unwrap();
    let [_, plain] = blocks("Prometheus on another machine").try_into().unwrap();
    let behind_tls = blocks("TLS and passwords").pop().unwrap();
    assert!(behind_tls.contains("scheme: https"), "{behind_tls}");
    for name in ["rocm.crt", "rocm.password"] {
        fs::write(folder.path().join(name), "").unwrap();
    }
    for config in [plain, behind_tls] {
        fs::write(&file, config.replace("/etc/prometheus", folder.path().to_str().unwrap())).unwrap();
        let output = Command::new(&promtool).args(["check", "config"]).arg(&file).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
}

#[test]
fn real_promtool_finds_the_container_that_holds_each_gpu() {
    if !real::require(&["promtool"]) {
        return;
    }
    let [join] = blocks("The container that holds a GPU").try_into().unwrap();
    let join = join.trim_end();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("test.yml");
    let card = r#"instance="w:9401", gpu="0""#;
    let partition = r#"instance="w:9401", gpu="1", partition="1""#;
    let series = |name: &str, labels: &str, value: u32| {
        format!("      - {{series: '{name}{{{labels}}}', values: '{value}'}}\n")
    };
    let input = [
        series("rocm_gpu_utilization", card, 70),
        series("rocm_gpu_utilization", partition, 20),
        series("rocm_gpu_utilization", r#"instance="w:9401", gpu="2""#, 5),
        series("rocm_lease_info", &format!(r#"{card}, container="a""#), 1),
        series("rocm_lease_info", &format!(r#"{partition}, container="b""#), 1),
    ];
    let found = |labels: &str, container: &str, value: u32| {
        format!("          - {{labels: '{{{labels}, container=\"{container}\"}}', value: {value}}}\n")
    };
    let text = format!(
        "tests:\n  - interval: 1m\n    input_series:\n{}    promql_expr_test:\n      - expr: {join}\n        \
         eval_time: 0m\n        exp_samples:\n{}{}",
        input.concat(),
        found(card, "a", 70),
        found(partition, "b", 20)
    );
    fs::write(&file, &text).unwrap();
    let promtool = real::program("promtool").unwrap();
    let output = Command::new(promtool).args(["test", "rules"]).arg(&file).output().unwrap();
    assert!(output.status.success(), "{text}{output:?}");
}

#[test]
fn real_the_document_leads_to_metrics_and_to_metrics_behind_tls() {
    let programs = ["unshare", "systemctl", "curl", "openssl", "groupadd"];
    let Some(exporter) = real::require_root_and_built("ROCWORKER_EXPORTER", &programs) else { return };
    let stage = Stage::set(&Machine::demo());
    stage.put("usr/lib/rocworker/runc-amd-wrapper", support::stage::WRAPPER);
    let [start, _, _] = blocks("Quick start").try_into().unwrap();
    let [web, _, rights, config, scrape, _] = blocks("TLS and passwords").try_into().unwrap();
    let listen = format!("  listen: 127.0.0.1:{PORT}\n");
    stage.put("etc/rocworker/config.yaml", &format!("exporter:\n{listen}"));
    stage.put("etc/rocworker/exporter-web.yaml", &web);
    let scrape = scrape.trim_end();
    let (program, exporter) = (env!("CARGO_BIN_EXE_rocworker"), exporter.display());
    let script = format!(
        "export PATH=/usr/sbin:/usr/bin:/sbin:/bin
install -m 755 {program} {exporter} /usr/bin
chmod 755 /usr/lib/rocworker/runc-amd-wrapper
exec 3>&1 >/run/said
{start}
grep -q '^active$' /run/said && grep -q '^rocm_gpu_info{{' /run/said && echo metrics >&3
{rights}
printf '%s' '{config}{listen}' > config.yaml
rocworker apply
until systemctl is-active --quiet rocm-exporter; do sleep 0.05; done
{scrape} > /run/scraped
grep -q '^rocm_gpu_info{{' /run/scraped && echo metrics behind TLS >&3
curl --silent --cacert exporter.crt --user prometheus:secret --resolve worker-1:{PORT}:127.0.0.1 https://worker-1:{PORT}/metrics > /run/scraped
grep -q '^rocm_gpu_info{{' /run/scraped && echo metrics of worker-1 >&3
"
    );
    assert_eq!(stdout(&stage.boot(&script)), "metrics\nmetrics behind TLS\nmetrics of worker-1\n");
}
