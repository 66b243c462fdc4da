//! What `plan` announces, and a saved plan on a machine that has changed since.

use std::process::Command;

use support::real;

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
fn a_plan_shows_what_an_edit_writes_and_no_secret_of_the_files_owner() {
    let laid = Laid::with_engines("");
    for daemon in [
        "{\n  \"debug\": true,\n  \"log-opts\": {\"splunk-token\": \"hunter2\"}\n}\n",
        "{\"log-opts\":{\"splunk-token\":\"hunter2\"},\"features\":{},\"http-proxy\":\"http://u:hunter2@proxy:3128\"}",
    ] {
        laid.put("etc/docker/daemon.json", daemon);
        laid.put("etc/containerd/config.toml", "# hunter2\nversion = 3\nroot = \"/hunter2\"\n");
        let (_, text) = laid.fails(&["plan", "-v"]);
        let plan = laid.path("plan.json");
        std::fs::remove_file(&plan).ok();
        laid.run(&["plan", "--save", plan.to_str().unwrap()]).success();
        for shown in [text.clone(), std::fs::read_to_string(plan).unwrap()] {
            assert!(shown.contains("runc-amd-wrapper") && !shown.contains("hunter2"), "{shown}");
        }
        assert!(text.contains("imports = [\"/etc/containerd/conf.d/rocworker*.toml\"]"), "{text}");
    }
}

#[test]
fn a_plan_says_what_several_packages_have_in_common_once_and_warnings_come_first() {
    let laid = Laid::with_engines("compute-runtime: rocm\ngpu-device-ids: [0, 1]\n");
    let recorded = laid.text("capture.json").replace("/dev/dri/renderD129\"", "/dev/dri/renderD229\"");
    laid.put("capture.json", &recorded);
    let (_, text) = laid.fails(&["plan"]);
    let why = "nothing is fetched or installed beneath another root than /";
    assert_eq!(text.matches(why).count(), 1, "{text}");
    let at = |word: &str| text.match_indices(word).map(|(at, _)| at).collect::<Vec<_>>();
    let (warnings, notes) = (at("\nwarning: "), at("\nnote: "));
    assert!(!warnings.is_empty() && warnings.last() < notes.first(), "{text}");
}

#[test]
fn real_on_a_terminal_a_plans_sentences_end_at_100_columns_or_its_width_and_elsewhere_where_they_end() {
    if !real::require(&["script", "stty"]) {
        return;
    }
    let laid = Laid::with_engines("compute-runtime: rocm\n");
    let piped = laid.fails(&["plan"]).1;
    assert!(piped.lines().any(|line| line.starts_with("note: ") && line.len() > 150), "{piped}");
    for (columns, longest) in [(200, 100), (70, 70)] {
        let command = format!(
            "stty rows 24 cols {columns}; NO_COLOR=1 {} --root {} plan",
            env!("CARGO_BIN_EXE_rocworker"),
            laid.top().display()
        );
        let output =
            Command::new("script").args(["--quiet", "--return", "--command", &command, "/dev/null"]).output();
        let said = String::from_utf8(output.unwrap().stdout).unwrap().replace('\r', "");
        let sentences = said.lines().skip_while(|line| !line.starts_with("afterwards, once"));
        let sentences: Vec<&str> = sentences.collect();
        // A word that is longer than a line stays whole.
        let fits = |line: &&str| line.chars().count() <= longest || !line.trim_start().contains(' ');
        assert!(sentences.len() > 5 && sentences.iter().all(fits), "{columns}: {said}");
        assert!(
            sentences.iter().any(|line| line.starts_with("    ") && line.chars().count() > longest - 30),
            "{said}"
        );
    }
}

#[test]
fn a_plan_says_that_dockers_runtime_gives_every_gpu_on_a_concourse_worker() {
    for (config, is_worker, is_said) in
        [("", true, true), ("", false, false), ("wrapper: {default: none}\n", true, false)]
    {
        let laid = Laid::with_engines(config);
        if is_worker {
            laid.put_worker("linux");
            for program in ["var/lib/concourse/bin/concourse", "var/lib/concourse/bin/containerd"] {
                laid.put(program, "");
            }
        }
        let notes = laid.json(&["plan"])["notes"].to_string();
        let said = "docker run --runtime amd gives a container every GPU on this Concourse worker";
        assert_eq!(notes.contains(said), is_said, "{config} {is_worker}: {notes}");
    }
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
fn a_plan_notes_keys_that_count_under_exclusive_sharing_alone() {
    for (keys, noted) in [
        ("wait-limit-s: 60", "wait-limit-s"),
        ("idle-grace-s: 60", "idle-grace-s"),
        ("wait-limit-s: 60, idle-grace-s: 60, sharing: shared", "wait-limit-s and idle-grace-s"),
        ("wait-limit-s: 60, sharing: exclusive", ""),
        ("wait-limit-s: 0", ""),
    ] {
        let notes = Laid::demo(&format!("wrapper: {{{keys}}}\n")).json(&["plan"])["notes"].to_string();
        let said = format!("only wrapper.sharing: exclusive uses wrapper.{noted}");
        assert_eq!(notes.contains(&said), !noted.is_empty(), "{keys}: {notes}");
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
        let heading = "afterwards, once (nothing is started beneath another root than /)\n";
        assert!(text.contains(heading) && text.contains(said), "{said}: {text}");
    }
}
