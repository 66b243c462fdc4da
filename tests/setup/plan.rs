//! What `plan` announces, and a saved plan on a machine that has changed since.

use crate::laid::Laid;

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
