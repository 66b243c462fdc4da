//! What a reader of plan, apply and undo found wrong once.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use serde_json::json;

use crate::laid::Laid;

/// With docker and containerd 2.1.
fn with_engines(config: &str) -> Laid {
    let laid = Laid::demo(config);
    let status = "Package: containerd\nStatus: install ok installed\nVersion: 2.1.9-1\n\nPackage: docker.io\nStatus: install ok installed\nVersion: 28.5.2-1\n";
    laid.put("var/lib/dpkg/status", status);
    for program in ["usr/bin/containerd", "usr/sbin/dockerd"] {
        laid.put(program, "");
        fs::set_permissions(laid.path(program), fs::Permissions::from_mode(0o755)).unwrap();
    }
    laid.put("etc/containerd/config.toml", "version = 3\n");
    laid.put("etc/docker/daemon.json", "{}\n");
    laid
}

#[test]
fn a_runtime_that_an_engines_default_names_is_not_taken_away() {
    let laid = with_engines("");
    laid.run(&["apply"]).success();
    let daemon = laid.text("etc/docker/daemon.json").replacen('{', "{\"default-runtime\": \"amd\",", 1);
    laid.put("etc/docker/daemon.json", &daemon);
    let main = laid.text("etc/containerd/config.toml")
        + "[plugins.'io.containerd.cri.v1.runtime'.containerd]\ndefault_runtime_name = 'amd'\n";
    laid.put("etc/containerd/config.toml", &main);
    laid.run(&["status"]).success();
    let (code, said) = laid.fails(&["undo"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("daemon.json says default-runtime = \"amd\", which would name nothing"), "{said}");
    assert!(said.contains("config.toml says default_runtime_name = \"amd\""), "{said}");
    assert_eq!(laid.text("etc/docker/daemon.json"), daemon);
    assert_eq!(laid.text("etc/containerd/config.toml"), main);
    assert!(laid.path("etc/containerd/conf.d/rocworker.toml").exists());
    assert!(!laid.path("etc/cdi/amd.json").exists(), "the rest is taken back");

    laid.put("etc/docker/daemon.json", &daemon.replace("\"default-runtime\": \"amd\",", ""));
    laid.put("etc/containerd/config.toml", &main.replace("default_runtime_name = 'amd'\n", ""));
    laid.run(&["undo"]).success();
    assert!(!laid.text("etc/docker/daemon.json").contains("amd"));
    assert!(!laid.path("etc/containerd/conf.d").exists());
}

/// An engine whose default names a runtime that is not there does not start again.
#[test]
fn a_runtime_that_an_engines_default_names_keeps_its_name() {
    let laid = with_engines("");
    laid.run(&["apply"]).success();
    let daemon = laid.text("etc/docker/daemon.json").replacen('{', "{\"default-runtime\": \"amd\",", 1);
    laid.put("etc/docker/daemon.json", &daemon);
    let main = laid.text("etc/containerd/config.toml")
        + "[plugins.'io.containerd.cri.v1.runtime'.containerd]\ndefault_runtime_name = 'amd'\n";
    laid.put("etc/containerd/config.toml", &main);
    let drop_in = laid.text("etc/containerd/conf.d/rocworker.toml");
    laid.put("etc/rocworker/config.yaml", "docker: {runtime: gpu}\ncontainerd: {runtime: gpu}\n");
    let (code, said) = laid.fails(&["apply"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("daemon.json says default-runtime = \"amd\", which would name nothing"), "{said}");
    assert!(said.contains("config.toml says default_runtime_name = \"amd\""), "{said}");
    assert_eq!(laid.text("etc/docker/daemon.json"), daemon);
    assert_eq!(laid.text("etc/containerd/conf.d/rocworker.toml"), drop_in);

    laid.put("etc/docker/daemon.json", &daemon.replace("\"default-runtime\": \"amd\",", ""));
    laid.put("etc/containerd/config.toml", &main.replace("default_runtime_name = 'amd'\n", ""));
    laid.run(&["apply"]).success();
    assert!(laid.text("etc/docker/daemon.json").contains("\"gpu\""));
    let drop_in = laid.text("etc/containerd/conf.d/rocworker.toml");
    assert!(drop_in.contains("gpu") && !drop_in.contains("\"amd\""), "{drop_in}");
}

#[test]
fn status_tells_of_a_chosen_gpu_that_is_gone_and_of_what_is_configured_and_not_done() {
    let laid = Laid::demo("gpu-device-ids: 0\n");
    laid.run(&["apply"]).success();
    let memory = laid.text("var/lib/rocworker/memory.json");
    let status = laid.json(&["status"]);
    let uuid = status["chosen"][0]["uuid"].as_str().unwrap();
    laid.put("var/lib/rocworker/memory.json", &memory.replace(uuid, "GPU-00c0ffee00c0ffee"));
    laid.run(&["status"]).code(3);
    let status = laid.json(&["status"]);
    assert_eq!(status["chosen"][0]["index"], json!(null));
    assert!(status["problem"].as_str().unwrap().contains("that GPU is not there any more"), "{status:#}");
    assert!(!status["ours"].as_array().unwrap().is_empty());

    let laid = Laid::demo("");
    fs::remove_file(laid.path("usr/lib/rocworker/runc-amd-wrapper")).unwrap();
    // A link is not taken for the program.
    std::os::unix::fs::symlink("/bin/true", laid.path("usr/lib/rocworker/runc-amd-wrapper")).unwrap();
    laid.put("usr/local/lib/rocworker/runc-amd-wrapper", "");
    fs::set_permissions(
        laid.path("usr/local/lib/rocworker/runc-amd-wrapper"),
        fs::Permissions::from_mode(0o777),
    )
    .unwrap();
    laid.run(&["status"]).code(3);
}

#[test]
fn a_dry_run_of_a_kept_plan_says_that_the_machine_has_moved() {
    let laid = Laid::demo("");
    let plan = laid.path("plan.json");
    let plan = plan.to_str().unwrap();
    laid.run(&["plan", "--out", plan]).success();
    laid.run(&["apply", plan, "--dry-run"]).success();
    laid.put("etc/cdi/amd.json", "{\"kind\":\"amd.com/gpu\"}");
    let (code, said) = laid.fails(&["apply", plan, "--dry-run"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("the machine has moved"), "{said}");
}

#[test]
fn a_plan_announces_what_may_be_restarted() {
    for (restart, said) in [
        ("never", "containerd.service is not restarted (restart: never)"),
        ("drain", "systemctl restart containerd.service"),
    ] {
        let laid = with_engines(&format!("restart: {restart}\n"));
        laid.put("usr/lib/systemd/system/containerd.service", "[Service]\nExecStart=/usr/bin/containerd\n");
        let (_, text) = laid.fails(&["plan"]);
        // Beneath another Root than / nothing is started at all.
        assert!(
            text.contains("systemctl restart containerd.service (not beneath another root than /)"),
            "{said}: {text}"
        );
    }
}

#[test]
fn contested_stays_contested_and_a_person_may_ask_for_the_spec_by_name() {
    let laid = Laid::demo("");
    laid.run(&["apply"]).success();
    for _ in 0..3 {
        laid.put("etc/cdi/amd.json", "{\"kind\":\"amd.com/gpu\"}");
        laid.run(&["apply"]).success();
    }
    laid.put("etc/cdi/amd.json", "{\"kind\":\"amd.com/gpu\"}");
    let receipt = laid.text("var/lib/rocworker/receipt.json");
    let at = receipt.find("\"last\": 1").unwrap() + 8;
    // Long ago: a rival that never stops is not repaired three times a day for ever.
    laid.put("var/lib/rocworker/receipt.json", &format!("{}1{}", &receipt[..at], &receipt[at + 10..]));
    assert_eq!(laid.json(&["apply"])["changes"], json!([]));
    laid.run(&["cdi", "generate"]).success();
    laid.run(&["status"]).success();
}

#[test]
fn a_file_of_ours_that_another_user_owns_is_put_right() {
    let laid = Laid::demo("");
    laid.run(&["apply"]).success();
    let policy = laid.path("etc/rocworker/wrapper.json");
    if std::os::unix::fs::chown(&policy, Some(1000), Some(1000)).is_err() {
        // An ordinary user cannot give a file away, and nobody could have.
        return;
    }
    laid.run(&["status"]).code(3);
    laid.run(&["apply"]).success();
    assert_ne!(fs::metadata(&policy).unwrap().uid(), 1000);
    laid.run(&["status"]).success();
}

#[test]
fn what_cannot_be_looked_at_is_not_taken_back() {
    let laid = with_engines("");
    laid.run(&["apply"]).success();
    let applied = laid.tree();
    // The wrapper's program, for a moment.
    let program = laid.path("usr/lib/rocworker/runc-amd-wrapper");
    fs::rename(&program, laid.path("aside")).unwrap();
    fs::write(&program, "").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o777)).unwrap();
    let (code, said) = laid.fails(&["apply"]);
    assert!(code == 1 && said.contains("stays as it is until then"), "{said}");
    fs::rename(laid.path("aside"), &program).unwrap();
    assert_eq!(laid.tree(), applied);
    // The machine's devices.
    fs::rename(laid.path("sys"), laid.path("sys.aside")).unwrap();
    let (code, said) = laid.fails(&["apply"]);
    assert!(code == 0 && said.contains("nobody knows which GPUs this machine has"), "{said}");
    assert_eq!(laid.tree(), applied);
    fs::rename(laid.path("sys.aside"), laid.path("sys")).unwrap();
    laid.run(&["undo"]).success();
}

#[test]
fn no_engine_is_told_of_a_packaged_wrapper_that_cannot_run() {
    for (text, mode, why) in [
        ("", 0o755, "is no program (ELF)"),
        ("stands for half a download\n", 0o755, "is no program (ELF)"),
        (support::laid::WRAPPER, 0o644, "is not executable"),
    ] {
        let laid = with_engines("");
        let before = laid.text("etc/docker/daemon.json");
        let program = laid.path("usr/lib/rocworker/runc-amd-wrapper");
        fs::write(&program, text).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
        let (code, said) = laid.fails(&["apply"]);
        assert!(code == 1 && said.contains(why) && said.contains("install rocworker again"), "{said}");
        assert_eq!(laid.text("etc/docker/daemon.json"), before);
        let (code, said) = laid.fails(&["doctor"]);
        assert!(code == 3 && said.contains(why), "{said}");
    }
}

#[test]
fn somebodys_document_is_not_taken_for_a_broken_spec() {
    let laid = Laid::demo("cdi: {path: /etc/app/settings.json}\n");
    laid.put("etc/app/settings.json", "{\"important\": true}");
    let (code, said) = laid.fails(&["apply"]);
    assert!(code == 1 && said.contains("no CDI spec of amd.com/gpu"), "{said}");
    assert_eq!(laid.text("etc/app/settings.json"), "{\"important\": true}");
}

#[test]
fn state_that_others_could_have_written_is_not_believed() {
    let laid = Laid::demo("");
    laid.run(&["apply"]).success();
    fs::set_permissions(laid.path("var/lib/rocworker"), fs::Permissions::from_mode(0o777)).unwrap();
    for command in ["apply", "undo", "status"] {
        let (code, said) = laid.fails(&[command]);
        assert!(
            code == 1 && said.contains("/var/lib/rocworker can be written by others"),
            "{command}: {said}"
        );
    }
}

#[test]
fn a_template_that_never_ends_is_ended() {
    let laid = Laid::demo("");
    let endless = "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}";
    laid.put("etc/rocworker/templates/cdi/amd.json", endless);
    let (code, said) = laid.fails(&["plan"]);
    assert!(code == 1 && said.contains("templates/cdi/amd.json"), "{said}");
}

/// Each of these used up the memory or the stack of the whole program once.
#[test]
fn a_template_that_would_grow_without_end_is_refused_with_its_line() {
    let laid = Laid::demo("");
    let elifs = "{% elif 1 %}".repeat(5000);
    for (text, problem) in [
        (
            format!("{{% set a = 'x' %}}{}", "{% set a = a ~ a %}".repeat(40)),
            ":1: templates know no set, only if",
        ),
        ("{% for a in ['x'] %}\n{% for a in [a ~ a] %}".to_owned(), ":1: a loop goes through what is there"),
        (format!("\n{{{{ 1{} }}}}", "+1".repeat(30_000)), ":2: more than 100 words and signs"),
        (format!("\n{{% if 0 %}}{elifs}{{% endif %}}"), ":2: it has more than 500 blocks"),
        ("{{ 'x' * 100000000 }}".to_owned(), ":1: nothing is multiplied in templates"),
        ("{{ kind|replace('a', kind) }}".to_owned(), ":1: templates know no filter replace, only abs"),
        (
            "{% for i in range(100000) %}twelve bytes{% endfor %}".to_owned(),
            "amd.json: it gives more than 1024 KiB",
        ),
    ] {
        laid.put("etc/rocworker/templates/cdi/amd.json", &text);
        let (code, said) = laid.fails(&["plan"]);
        assert!(
            code == 1 && said.contains("templates/cdi/amd.json") && said.contains(problem),
            "{problem}: {said}"
        );
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn a_containerd_file_that_was_migrated_since_is_left_without_our_keys() {
    let laid = with_engines("");
    let status = laid.text("var/lib/dpkg/status");
    laid.put("var/lib/dpkg/status", &status.replace("2.1.9-1", "1.7.24-1"));
    laid.put(
        "etc/containerd/config.toml",
        "version = 2\n# mine\n[plugins.'io.containerd.grpc.v1.cri']\nsandbox_image = 'pause'\n",
    );
    laid.run(&["apply"]).success();
    let text = laid.text("etc/containerd/config.toml");
    assert!(text.contains("enable_cdi"), "{text}");
    // As `containerd config migrate` of 2.1 does: the section has another name, the version is 3.
    let migrated = text
        .replace("version = 2", "version = 3")
        .replace("io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime");
    let ours_alone =
        |text: &str| assert!(!text.contains("runc-amd-wrapper") && !text.contains("enable_cdi"), "{text}");

    laid.put("etc/containerd/config.toml", &migrated);
    laid.run(&["undo"]).success();
    let text = laid.text("etc/containerd/config.toml");
    ours_alone(&text);
    assert!(text.contains("sandbox_image = 'pause'") && text.contains("# mine"), "{text}");

    // The same with the newer containerd there before anything is taken back.
    laid.put("etc/containerd/config.toml", "version = 2\n");
    laid.run(&["apply"]).success();
    let text = laid.text("etc/containerd/config.toml");
    let migrated = text
        .replace("version = 2", "version = 3")
        .replace("io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime");
    laid.put("etc/containerd/config.toml", &migrated);
    laid.put("var/lib/dpkg/status", &status);
    laid.run(&["apply"]).success();
    ours_alone(&laid.text("etc/containerd/config.toml"));
    assert!(laid.text("etc/containerd/conf.d/rocworker.toml").contains("runc-amd-wrapper"));
    laid.run(&["undo"]).success();
    assert!(!laid.path("etc/containerd/conf.d").exists());
}

#[test]
fn status_says_of_each_path_what_is_so() {
    let laid = Laid::demo("");
    laid.run(&["apply"]).success();
    // What somebody has changed stays when it is ours no longer.
    laid.put("etc/rocworker/wrapper.json", "{}\n");
    laid.put("etc/rocworker/config.yaml", "compute-runtime: none\n");
    laid.run(&["apply"]);
    let (code, said) = laid.fails(&["status"]);
    assert_eq!(code, 3, "{said}");
    let row = said.lines().find(|line| line.contains("wrapper.json")).unwrap();
    assert!(row.contains(" left "), "{said}");
    assert!(said.ends_with("and the machine is not as it should be\n"), "{said}");

    let laid = Laid::demo("");
    laid.run(&["apply"]).success();
    fs::remove_file(laid.path("etc/cdi/amd.json")).unwrap();
    fs::create_dir(laid.path("etc/cdi/amd.json")).unwrap();
    let (code, said) = laid.fails(&["status"]);
    assert_eq!(code, 3, "{said}");
    let row = said.lines().find(|line| line.contains("amd.json")).unwrap();
    assert!(row.contains(" blocked "), "{said}");
}
