//! What `cargo xtask dist` makes, judged by lintian, CycloneDX' schema, sha256sum and man; and the tarball, put where it
//! says.

use std::fs;
use std::path::Path;
use std::process::Command;

use layout::{Machine, Nodes};
use support::document::{blocks, text};

use crate::packages::debian::worker::{file, handed_out, on, run, same};

#[test]
#[ignore = "cargo xtask test --all"]
fn real_lintian_finds_no_error() {
    let Some(folder) = handed_out(&["lintian"]) else { return };
    // lintian leaves a file there.
    let temporary = tempfile::tempdir().unwrap();
    let mut lintian = Command::new("lintian");
    lintian.env("TMPDIR", temporary.path()).arg("--allow-root").arg(file(&folder, ".deb"));
    let output = lintian.output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let tags: Vec<&str> = said.lines().filter(|line| !line.starts_with("N:")).collect();
    assert!(output.status.success() && tags.is_empty(), "{said}");
}

#[test]
fn real_the_bill_of_materials_is_cyclonedx_and_one_that_is_not_is_told() {
    let Some(folder) = handed_out(&["/usr/bin/python3"]) else { return };
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/packages/debian");
    let judge = |document: &Path| {
        let mut command = Command::new("/usr/bin/python3");
        command.args(["-W", "ignore"]).arg(here.join("sbom.py")).arg(here.join("cyclonedx")).arg(document);
        let output = command.output().unwrap();
        assert!(output.stderr.is_empty(), "{output:?}");
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    };
    let document = file(&folder, ".cdx.json");
    assert_eq!(judge(&document), (true, String::new()));
    let text = fs::read_to_string(document).unwrap();
    for name in ["serde_json", "clap", "reconcile", "runc-amd-wrapper"] {
        assert!(text.contains(&format!("\"name\": \"{name}\"")), "{name}");
    }
    let wrong = tempfile::NamedTempFile::new().unwrap();
    for (from, to, said) in [
        ("\"alg\": \"SHA-256\"", "\"alg\": \"SHA256\"", "'SHA256' is not one of"),
        ("\"bom-ref\": \"anyhow@", "\"bom-ref\": \"anyway@", "is named and not there"),
    ] {
        assert!(text.contains(from));
        fs::write(wrong.path(), text.replacen(from, to, 1)).unwrap();
        let (is_valid, words) = judge(wrong.path());
        assert!(!is_valid && words.contains(said), "{words}");
    }
}

#[test]
fn real_the_sums_are_those_of_the_files() {
    let Some(folder) = handed_out(&["sha256sum"]) else { return };
    let said =
        run(Command::new("sha256sum").args(["--check", "--strict", "SHA256SUMS"]).current_dir(&folder));
    assert_eq!(said.lines().filter(|line| line.ends_with(": OK")).count(), 4, "{said}");
}

/// The README installs it by dpkg; docs/install.md has apt do it, and its sample of a configuration.
#[test]
fn real_the_package_is_installed_and_applied_as_the_document_says() {
    let Some(folder) = handed_out(&["dpkg-deb"]) else { return };
    let Some(worker) = on("trixie") else { return };
    let commands = blocks(&text("docs/install.md"), "## The package").swap_remove(0);
    let package = file(&folder, ".deb");
    let name = package.file_name().unwrap().to_str().unwrap();
    assert!(commands.contains(&format!("apt-get install ./{name}\n")), "{commands}");
    worker.machine.put(&format!("/tmp/{name}"), fs::read(&package).unwrap());
    worker.machine.call(&["sh", "-exc", &format!("cd /tmp\n{commands}")]).well();
    worker.is("install ok installed");
    assert!(
        worker
            .machine
            .text("/etc/docker/daemon.json")
            .unwrap()
            .contains("/usr/lib/rocworker/runc-amd-wrapper")
    );
}

#[test]
fn real_a_worker_beneath_another_root_is_set_up_as_the_document_says() {
    let Some(folder) = handed_out(&["dpkg-deb", "sh"]) else { return };
    let source = tempfile::tempdir().unwrap();
    let dist = source.path().join("target/dist");
    fs::create_dir_all(&dist).unwrap();
    let package = file(&folder, ".deb");
    fs::copy(&package, dist.join(package.file_name().unwrap())).unwrap();
    // In place of the captured machine that the document's first command lays out.
    let root = source.path().join("target/captures/phoenix");
    fs::create_dir_all(&root).unwrap();
    Machine::demo()
        .put(
            "/etc/systemd/system/concourse-worker.service",
            "[Service]\nEnvironmentFile=/etc/worker.env\nExecStart=/opt/concourse/bin/concourse worker\n",
        )
        .put("/etc/worker.env", "CONCOURSE_RUNTIME=containerd\nCONCOURSE_TAG=linux\n")
        .put("/opt/concourse/bin/concourse", "")
        .put("/opt/concourse/bin/containerd", "")
        .lay_out(&root, Nodes::Recorded)
        .unwrap();
    let commands = blocks(&text("docs/install.md"), "## Another root").swap_remove(0);
    let (capture, commands) = commands.split_once('\n').unwrap();
    assert!(capture.starts_with("cargo xtask captures phoenix "), "{capture}");
    run(Command::new("sh").args(["-ec", commands]).current_dir(source.path()));
    let environment = fs::read_to_string(root.join("etc/rocworker/concourse.env")).unwrap();
    assert!(environment.contains("gpu-count=9"), "{environment}");
}

#[test]
fn real_the_tarball_is_installed_used_and_taken_away() {
    let Some(folder) = handed_out(&["tar"]) else { return };
    let Some(worker) = on("trixie") else { return };
    let [install, remove] = blocks(&text("docs/install.md"), "## The tarball").try_into().unwrap();
    let tarball = file(&folder, ".tar.gz");
    let name = tarball.file_name().unwrap().to_str().unwrap();
    worker.machine.put(&format!("/tmp/{name}"), fs::read(&tarball).unwrap());
    let shell = |script: &str| worker.machine.call(&["sh", "-exc", &format!("cd /tmp\n{script}")]).well();
    // As a machine has them that has had other programs.
    for other in ["share/man/man8/other.8", "share/rocworker-of-mine/notes", "bin/rocworker-of-mine"] {
        worker.machine.put(&format!("/usr/local/{other}"), "somebody else's\n");
    }
    shell(
        "mkdir -p /usr/local/share/bash-completion/completions /usr/local/share/zsh/site-functions \
           /usr/local/share/fish/vendor_completions.d",
    );
    let before = worker.written();
    shell(&install);
    shell("rocworker apply");
    let copied = "/usr/local/lib/rocworker/runc-amd-wrapper";
    assert!(worker.machine.text("/etc/docker/daemon.json").unwrap().contains(copied));
    assert!(worker.machine.outside(copied).exists());
    shell(&remove);
    same(&worker.written(), &before, "the tarball's");
}

#[test]
fn real_each_command_has_its_page_and_shells_have_its_words() {
    let Some(folder) = handed_out(&["dpkg-deb", "bash"]) else { return };
    let tree = tempfile::tempdir().unwrap();
    run(Command::new("dpkg-deb").arg("--extract").arg(file(&folder, ".deb")).arg(tree.path()));
    let help = run(Command::new(tree.path().join("usr/bin/rocworker")).arg("--help"));
    let commands = help.lines().take_while(|line| *line != "Global options:");
    let commands: Vec<&str> =
        commands.filter_map(|line| line.strip_prefix("  ")).filter(|line| !line.starts_with(' ')).collect();
    let names: Vec<&str> =
        commands.iter().map(|line| line.split(' ').next().unwrap()).filter(|name| *name != "help").collect();
    assert!(names.contains(&"apply") && names.len() > 10 && !names.contains(&"deb"), "{names:?}");
    for name in names {
        let page = tree.path().join(format!("usr/share/man/man8/rocworker-{name}.8.gz"));
        assert!(page.is_file(), "{}", page.display());
    }
    let completions = tree.path().join("usr/share/bash-completion/completions/rocworker");
    let script = format!(
        "source {}; COMP_WORDS=(rocworker ap); COMP_CWORD=1; _rocworker rocworker ap rocworker; echo ${{COMPREPLY[@]}}",
        completions.display()
    );
    assert_eq!(run(Command::new("bash").args(["--norc", "-c", &script])), "apply\n");
}
