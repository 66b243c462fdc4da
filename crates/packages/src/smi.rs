//! What AMD's own tools say, where they are installed: a second opinion, never more than a warning.

use std::time::Duration;

use check::{APPLY, About, Check, NO_COMMANDS};
use config::{Config, Managed, Rocm};
use host::facts::Facts;
use printable::counted;
use reconcile::command::Programs;
use serde_json::Value;

const NAME: &str = "tools";

/// rocm-smi on a machine with a hung GPU never ends.
const LIMIT: Duration = Duration::from_secs(10);

/// A tool, how it is asked for its GPUs, and how its answer is counted.
struct Tool {
    argv: &'static [&'static str],
    /// The key of the configuration that asks for the tool.
    asked_for: fn(&Config) -> Option<&'static str>,
    count: fn(&Value) -> Option<usize>,
}

const TOOLS: [Tool; 2] = [
    Tool {
        argv: &["rocm-smi", "--showproductname", "--json"],
        asked_for: |config| match config.rocm {
            Managed::On(Rocm::Installer { .. } | Rocm::Archive(_)) => Some("rocm.install"),
            _ => config.packages.rocm_smi.asked_by(),
        },
        count: rocm_smi,
    },
    Tool { argv: &["amd-smi", "list", "--json"], asked_for: |_| None, count: amd_smi },
];

/// `programs`: `None` beneath another Root than `/`, where no command is run.
#[must_use]
pub fn check(programs: Option<&Programs>, facts: &Facts, config: &Config) -> Vec<Check> {
    // rocm-smi and amd-smi list what amdgpu drives, one entry for each partition.
    let driven = facts.amd().filter(|gpu| gpu.is_driven_by_amdgpu()).count();
    let check =
        |tool: &Tool| tool.check(programs, driven, (tool.asked_for)(config)).unwrap_or_else(|check| check);
    TOOLS.iter().map(check).collect()
}

/// The commands, where this program may be run. `asked_for`: what of the configuration asks for it.
pub fn installed<'a>(
    about: &About,
    programs: Option<&'a Programs>,
    name: &str,
    asked_for: Option<&str>,
) -> Result<&'a Programs, Check> {
    let skipped = |why| about.clone().skipped(why);
    let programs = programs.ok_or_else(|| skipped(NO_COMMANDS))?;
    match (programs.find(name), asked_for) {
        (Some(_), _) => Ok(programs),
        (None, None) => Err(skipped("not installed, and nothing here needs it")),
        (None, Some(key)) => {
            let evidence = format!("not installed, and the configuration asks for it ({key})");
            Err(about.clone().warning(evidence, APPLY))
        }
    }
}

impl Tool {
    fn check(
        &self,
        programs: Option<&Programs>,
        driven: usize,
        asked_for: Option<&str>,
    ) -> Result<Check, Check> {
        let name = self.argv.first().copied().unwrap_or_default();
        let about = About::one(NAME, name);
        let by_hand =
            format!("run {} by hand; rocworker itself reads sysfs and needs no tool", self.argv.join(" "));
        let warning = |evidence: String| about.clone().warning(evidence, by_hand.clone());
        let output = installed(&about, programs, name, asked_for)?.run(self.argv, LIMIT);
        let output = output.map_err(|error| warning(error.to_string()))?;
        let answer = serde_json::from_slice(&output.stdout).ok();
        let listed = answer.as_ref().and_then(self.count).ok_or_else(|| {
            let start: String = String::from_utf8_lossy(&output.stdout).chars().take(60).collect();
            warning(format!("its answer is not understood: {start:?}"))
        })?;
        if listed == driven {
            return Ok(about.ok(format!("lists {}, as rocworker does", counted(listed, "GPU"))));
        }
        Err(about.warning(
            format!("lists {}, and rocworker finds {driven} that amdgpu drives", counted(listed, "GPU")),
            "compare with rocworker detect: an old tool does not know partitions, a container hides nodes; \
             when neither is so, send a report",
        ))
    }
}

/// `{"card0": {…}, "card1": {…}, "system": {…}}`.
fn rocm_smi(answer: &Value) -> Option<usize> {
    let is_card = |key: &&String| {
        key.strip_prefix("card").is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    Some(answer.as_object()?.keys().filter(is_card).count())
}

/// `[{"gpu": 0, …}, …]`; from tool 26 on within `{"gpu_data": […]}`.
fn amd_smi(answer: &Value) -> Option<usize> {
    let list = answer.get("gpu_data").unwrap_or(answer).as_array()?;
    list.iter().all(|entry| entry.get("gpu").is_some()).then_some(list.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use check::Status;

    /// The checks of rocm-smi and amd-smi, answered by stand-ins that print what they are given.
    #[allow(clippy::disallowed_methods, reason = "the test makes the programs that are then run")]
    fn answered(driven: usize, rocm_smi: Option<&str>, amd_smi: Option<&str>) -> [Check; 2] {
        let dir = tempfile::tempdir().unwrap();
        for (name, script) in [("rocm-smi", rocm_smi), ("amd-smi", amd_smi)] {
            let Some(script) = script else { continue };
            let text = dir.path().join("text");
            std::fs::write(&text, format!("#!/bin/sh\n{script}\n")).unwrap();
            // Not written in place: a test that forks meanwhile would inherit the descriptor, and the kernel
            // runs no file that is open for writing (ETXTBSY).
            let installed =
                std::process::Command::new("install").arg(text).arg(dir.path().join(name)).status().unwrap();
            assert!(installed.success());
        }
        let programs = Programs::in_folders(dir.path());
        TOOLS.map(|tool| tool.check(Some(&programs), driven, None).unwrap_or_else(|check| check))
    }

    fn print(argv: &str, text: &str) -> Option<String> {
        Some(format!("[ \"$*\" = '{argv}' ] || exit 9\ncat <<'END'\n{text}\nEND"))
    }

    fn rocm(text: &str) -> Option<String> {
        print("--showproductname --json", text)
    }

    fn amd(text: &str) -> Option<String> {
        print("list --json", text)
    }

    #[test]
    fn a_tool_that_counts_as_rocworker_does_is_in_order_whatever_its_version_prints() {
        let two =
            r#"{"card0": {"GFX Version": "gfx942"}, "card1": {}, "system": {"Driver version": "6.12.12"}}"#;
        for list in [
            r#"[{"gpu": 0, "bdf": "0000:64:00.0"}, {"gpu": 1}]"#,
            r#"{"gpu_data": [{"gpu": 0}, {"gpu": 1}]}"#,
        ] {
            for check in answered(2, rocm(two).as_deref(), amd(list).as_deref()) {
                assert_eq!(
                    (check.status, check.evidence.as_str()),
                    (Status::Ok, "lists 2 GPUs, as rocworker does")
                );
            }
        }
    }

    #[test]
    fn a_tool_that_counts_otherwise_fails_or_babbles_is_a_warning_with_what_it_said() {
        for (script, part) in [
            (rocm(r#"{"card0": {}}"#), "lists 1 GPU, and rocworker finds 2 that amdgpu drives"),
            (rocm("WARNING: No JSON data to report"), "not understood: \"WARNING"),
            (rocm("[]"), "not understood: \"[]"),
            (
                Some("echo 'Driver not initialized' >&2; exit 1".to_owned()),
                "exit status: 1: Driver not initialized",
            ),
        ] {
            let [check, _] = answered(2, script.as_deref(), None);
            assert_eq!(check.status, Status::Warning, "{check:?}");
            assert!(check.evidence.contains(part) && check.remedy.is_some(), "{check:?}");
        }
        let [_, check] = answered(2, None, amd(r#"[{"error": "no permission"}]"#).as_deref());
        assert_eq!(check.status, Status::Warning, "{check:?}");
    }

    #[test]
    fn a_tool_that_is_not_installed_or_may_not_be_run_is_skipped_with_the_reason() {
        for check in answered(1, None, None) {
            assert_eq!(check.status, Status::Skipped, "{check:?}");
            assert!(check.evidence.contains("not installed"), "{check:?}");
        }
        let programs = Programs::in_folders("");
        let config = |text: &str| Config::parse(std::path::Path::new("c"), text).unwrap();
        for (text, key) in [
            ("", None),
            ("compute-runtime: auto", None),
            ("compute-runtime: rocm", Some("compute-runtime: rocm")),
            ("compute-runtime: rocm\npackages: {rocm-smi: keep}", None),
            ("packages: {rocm-smi: install}", Some("packages")),
            ("GPU_NODE: true", Some("rocm.install")),
        ] {
            let config = config(text);
            let checks =
                TOOLS.map(|tool| tool.check(Some(&programs), 1, (tool.asked_for)(&config)).unwrap_err());
            let [rocm_smi, amd_smi] = checks;
            assert_eq!(amd_smi.status, Status::Skipped, "{text}");
            let Some(key) = key else {
                assert_eq!(rocm_smi.status, Status::Skipped, "{text}: {rocm_smi:?}");
                continue;
            };
            assert_eq!(rocm_smi.status, Status::Warning, "{text}");
            assert!(rocm_smi.evidence.contains(key), "{text}: {rocm_smi:?}");
            assert_eq!(rocm_smi.remedy.unwrap().to_string(), "rocworker apply", "{text}");
        }
        for check in TOOLS.map(|tool| tool.check(None, 1, None).unwrap_or_else(|check| check)) {
            assert_eq!((check.status, check.evidence.as_str()), (Status::Skipped, NO_COMMANDS));
        }
    }
}
