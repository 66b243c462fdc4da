//! An engine's own files that name the runtime of rocworker's: it stays, and keeps its name.

use crate::setup::laid::Laid;

/// An applied machine whose docker and containerd have `amd` as default runtime, and their files.
fn with_amd_as_default() -> (Laid, String, String) {
    let laid = Laid::with_engines("wrapper: {requests: all}\n");
    laid.run(&["apply"]).success();
    let daemon = laid.text("etc/docker/daemon.json").replacen('{', "{\"default-runtime\": \"amd\",", 1);
    laid.put("etc/docker/daemon.json", &daemon);
    let main = laid.text("etc/containerd/config.toml")
        + "[plugins.'io.containerd.cri.v1.runtime'.containerd]\ndefault_runtime_name = 'amd'\n";
    laid.put("etc/containerd/config.toml", &main);
    (laid, daemon, main)
}

#[test]
fn a_runtime_that_an_engines_default_names_is_not_taken_away() {
    let (laid, daemon, main) = with_amd_as_default();
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
    let (laid, daemon, main) = with_amd_as_default();
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
fn a_containerd_file_that_was_migrated_since_is_left_without_our_keys() {
    let laid = Laid::with_engines("");
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

    // The newer containerd is there before anything is reverted.
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
