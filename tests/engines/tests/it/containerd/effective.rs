//! doctor's view of containerd's configuration must agree with containerd's own: 1.6, 1.7 and 2.1.

use std::fs;

use layout::Machine;
use real_engines::engine::{CONTAINERD_1_6, CONTAINERD_2_1, Engine, releases};
use real_engines::host::Host;
use real_engines::machine::{self, ASKED};
use serde_json::Value;
use support::real;

/// Where the package puts it (crates/engines/src/program.rs).
const WRAPPER: &str = "/usr/lib/rocworker/runc-amd-wrapper";

pub(super) fn host(engine: &Engine) -> Option<Host> {
    let program = real::require_root_and_built("ROCWORKER_PROGRAM", &["unshare"])?;
    let unpacked = engine.unpacked()?;
    let stage = machine::stage(&Machine::demo(), ASKED);
    fs::copy(program, stage.folder().join("rocworker")).unwrap();
    let host = Host::set(stage, &unpacked);
    host.busybox(&["mkdir", "-p", "/usr/lib/rocworker", "/etc/containerd"]).well();
    host.busybox(&["cp", "/opt/rocworker/shim/runc", WRAPPER]).well();
    Some(host)
}

/// Puts this in the place of its main file.
fn configure(host: &Host, config: &str) {
    fs::write(host.folder().join("config.toml"), config).unwrap();
    host.busybox(&["cp", "/stage/config.toml", "/etc/containerd/config.toml"]).well();
}

/// Status and evidence of the checks of containerd.
#[track_caller]
fn checks(host: &Host) -> Vec<(String, String)> {
    let said = host.call("/usr/sbin:/usr/bin", &["/stage/rocworker", "--output", "json", "doctor"]);
    let answer: Value =
        serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"));
    let checks = answer["checks"].as_array().unwrap().iter();
    let checks = checks.filter(|check| check["name"] == "engines" && check["subject"] == "containerd");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    checks.map(|check| (text(&check["status"]), text(&check["evidence"]))).collect()
}

/// Checks about what is in effect, with this as containerd's main file; the others are about what should stand in the
/// files.
#[track_caller]
fn effective(host: &Host, config: &str) -> Vec<(String, String)> {
    configure(host, config);
    let of_files = |evidence: &str| {
        ["is not as it was meant", "says what was meant", "say what was meant"]
            .iter()
            .any(|end| evidence.ends_with(end))
            || evidence.starts_with("containerd is left alone")
    };
    checks(host).into_iter().filter(|(_, evidence)| !of_files(evidence)).collect()
}

#[test]
fn real_doctor_finds_containerd_in_order_after_an_apply_and_says_what_somebody_changed() {
    for engine in releases() {
        let Some(host) = host(&engine) else { return };
        configure(&host, if engine == CONTAINERD_2_1 { "version = 3\n" } else { "version = 2\n" });
        let missing = ("failed".to_owned(), "the containerd that runs has no runtime amd".to_owned());
        assert!(checks(&host).contains(&missing), "{}", engine.name);
        // Apply ends with 1 where something else of this machine is not to be had.
        let applied = host.call("/usr/sbin:/usr/bin", &["/stage/rocworker", "apply"]);
        let found = checks(&host);
        let in_order = |(status, evidence): &(String, String)| {
            status == "ok" || (engine == CONTAINERD_1_6 && evidence.contains("knows no CDI"))
        };
        assert!(found.len() >= 3 && found.iter().all(in_order), "{}: {found:?} {applied:?}", engine.name);
        let right = ("ok".to_owned(), format!("containerd runs {WRAPPER} for the runtime amd"));
        assert!(found.contains(&right), "{}: {found:?}", engine.name);
        // Whichever file of the two it is.
        let sed = format!("s|{WRAPPER}|/usr/sbin/runc|");
        for file in ["/etc/containerd/config.toml", "/etc/containerd/conf.d/rocworker.toml"] {
            host.busybox(&["sed", "-i", &sed, file]);
        }
        let found = checks(&host);
        let another = format!("containerd runs /usr/sbin/runc for the runtime amd, not {WRAPPER}");
        assert!(found.contains(&("failed".to_owned(), another)), "{}: {found:?}", engine.name);
    }
}

#[test]
fn real_doctor_says_of_containerd_what_is_in_effect() {
    for engine in releases() {
        let Some(host) = host(&engine) else { return };
        let (version, section) = if engine == CONTAINERD_2_1 {
            (3, "io.containerd.cri.v1.runtime")
        } else {
            (2, "io.containerd.grpc.v1.cri")
        };
        let runtime = |program: &str| {
            format!(
                "version = {version}\n[plugins.\"{section}\"]\nenable_cdi = true\n\
                 [plugins.\"{section}\".containerd.runtimes.amd]\nruntime_type = \"io.containerd.runc.v2\"\n\
                 [plugins.\"{section}\".containerd.runtimes.amd.options]\nBinaryName = \"{program}\"\n"
            )
        };
        let cdi = if engine == CONTAINERD_1_6 {
            ("skipped", "containerd 1.6.")
        } else {
            ("ok", "containerd reads CDI specs from /etc/cdi")
        };
        let as_meant = format!("containerd runs {WRAPPER} for the runtime amd");
        let another = format!("containerd runs /usr/sbin/runc for the runtime amd, not {WRAPPER}");
        let empty = format!("version = {version}\n");
        for (config, expected) in [
            (runtime(WRAPPER), ("ok", as_meant.as_str())),
            (runtime("/usr/sbin/runc"), ("failed", another.as_str())),
            (empty.clone(), ("failed", "the containerd that runs has no runtime amd")),
        ] {
            let found = effective(&host, &config);
            let [(status, evidence), (status_of_cdi, of_cdi)] = found.as_slice() else {
                panic!("{}: {found:?}", engine.name)
            };
            assert_eq!((status.as_str(), evidence.as_str()), expected, "{}: {config}", engine.name);
            // 2.x has it on unless told otherwise, 1.7 has it off.
            if config != empty || engine != real_engines::engine::CONTAINERD_1_7 {
                assert!(status_of_cdi == cdi.0 && of_cdi.starts_with(cdi.1), "{}: {of_cdi}", engine.name);
            } else {
                assert_eq!(status_of_cdi, "failed", "{of_cdi}");
            }
        }
        let disabled = format!("{empty}disabled_plugins = [\"{section}\"]\n");
        let found = effective(&host, &disabled);
        let [(status, evidence)] = found.as_slice() else { panic!("{}: {found:?}", engine.name) };
        assert!(status == "skipped" && evidence.contains("switched off"), "{}: {evidence}", engine.name);
        let found = effective(&host, "version = ");
        let [(status, evidence)] = found.as_slice() else { panic!("{}: {found:?}", engine.name) };
        assert!(
            status == "failed" && evidence.contains("config dump ended with"),
            "{}: {evidence}",
            engine.name
        );
    }
}
