//! What `plan` announces, and a saved plan on a machine that has changed since.

use crate::setup::laid::Laid;

#[test]
fn a_dry_run_of_a_kept_plan_says_what_has_moved_and_what_to_do() {
    let laid = Laid::demo("");
    let plan = laid.path("plan.json");
    let plan = plan.to_str().unwrap();
    laid.run(&["plan", "--out", plan]).success();
    laid.run(&["apply", plan, "--dry-run"]).success();
    laid.put("etc/cdi/amd.json", "{\"kind\":\"amd.com/gpu\"}");
    let (code, said) = laid.fails(&["apply", plan, "--dry-run"]);
    assert_eq!(code, 1, "{said}");
    let moved =
        "plan is stale, and nothing was applied: /etc/cdi/amd.json was nothing, and is a file, mode 0644";
    assert!(said.contains(moved) && said.contains(&format!("plan --save {plan}")), "{said}");
}

#[test]
fn a_plan_is_saved_over_an_earlier_plan_and_over_no_other_file() {
    let laid = Laid::demo("");
    let plan = laid.path("plan.json");
    let plan = plan.to_str().unwrap();
    for before in [None, Some("")] {
        before.into_iter().for_each(|text| laid.put("plan.json", text));
        laid.run(&["plan", "--save", plan]).success();
        laid.run(&["plan", "--save", plan]).success();
    }
    for text in ["notes of mine\n", "{\"schema_version\": 1}", "\u{0}"] {
        laid.put("plan.json", text);
        let (code, said) = laid.fails(&["plan", "--save", plan]);
        assert!(
            code == 1 && said.contains("plan.json exists and is no saved plan: name another file"),
            "{said}"
        );
        assert_eq!(std::fs::read_to_string(plan).unwrap(), text);
    }
    let (code, said) = laid.fails(&["plan", "--save", "-"]);
    assert!(code == 2 && said.contains("--save -: name a file; `rocworker plan"), "{said}");
}

#[test]
fn a_plan_notes_a_rocm_url_that_installs_nothing() {
    for (config, is_noted) in [
        ("ROCM_BASE_URL: https://mirror/7.2.4/ubuntu\n", true),
        ("GPU_NODE: false\nROCM_BASE_URL: https://mirror/7.2.4/ubuntu\n", false),
    ] {
        let laid = Laid::demo(config);
        let notes = laid.json(&["plan"])["notes"].to_string();
        let said =
            "ROCM_BASE_URL of the configuration is not used: amdgpu-install does not install ROCm here";
        assert_eq!(notes.contains(said), is_noted, "{config}: {notes}");
    }
}

#[test]
fn a_plan_announces_what_may_be_restarted() {
    for (restart, said) in [
        ("never", "containerd.service is not restarted (restart: never)"),
        ("drain", "systemctl restart containerd.service"),
    ] {
        let laid = Laid::with_engines(&format!("restart: {restart}\n"));
        laid.put("usr/lib/systemd/system/containerd.service", "[Service]\nExecStart=/usr/bin/containerd\n");
        let (_, text) = laid.fails(&["plan"]);
        // Beneath another Root than / nothing is started at all.
        assert!(
            text.contains("systemctl restart containerd.service (not beneath another root than /)"),
            "{said}: {text}"
        );
    }
}
