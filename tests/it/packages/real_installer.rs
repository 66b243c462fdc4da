//! ROCm by AMD's installer: a file whose program installs the rest, and everything reverted.

use lab::machine::Machine;
use lab::package::Package;
use lab::repository::sha256;
use lab::server::Misbehaviour;
use lab::{standins, systems};

use crate::packages::worker::{PROGRAM, Worker};

const DEB: &str = "amdgpu-install_6.3.60302-1_all.deb";
const LIST: &str = "/etc/apt/sources.list.d/amdgpu.list";

/// A machine, and what it is to say of ROCm: the stand-in of AMD's installer is served as AMD's is.
pub(crate) fn served(machine: Machine) -> (Worker, String) {
    standins::purge_debians_rocminfo(&machine);
    let worker = Worker::new(
        machine,
        vec![
            standins::rocm("6.3.2"),
            standins::rocminfo("1.0.0"),
            // As many as the laid-out machine has.
            standins::rocm_smi_with("7.4.0", 9),
            // A usecase beside ROCm that builds nothing; driver/installer.rs has the driver.
            Package::new("amdgpu-graphics", "1:6.10.5").depends("lab-library (>= 1.0)"),
            Package::new("lab-library", "1.0").conffile("/etc/lab-library.conf", "b=1\n"),
        ],
    );
    // What stands for the machine is no container, wherever the test runs.
    worker.machine.call(&["rm", "-f", "/.dockerenv", "/run/.containerenv", "/run/systemd/container"]).well();
    let source =
        format!("deb [signed-by={}] {} jammy main\n", standins::AMDGPU_INSTALL_KEYRING, worker.server.url());
    let folder = worker.folder().join("amdgpu-install/6.3.2/ubuntu/jammy");
    std::fs::create_dir_all(&folder).unwrap();
    let installer = standins::amdgpu_install("6.3.60302-1", &source, worker.key.binary());
    let built = installer.build(&folder);
    let bytes = std::fs::read(&built).unwrap();
    std::fs::write(folder.join(DEB), &bytes).unwrap();
    // The suite is named, so that it is the same on a release that is not one of AMD's.
    let lines = format!(
        "ROCM_BASE_URL: {url}/amdgpu-install/6.3.2/ubuntu/\nrocm: {{usecases: [rocm, graphics], sha256: \
         {sum}}}\nrepositories: {{rocm: {{suite: jammy}}}}\n",
        url = worker.server.url(),
        sum = sha256(&bytes)
    );
    (worker, lines)
}

pub(crate) fn configure(worker: &Worker, lines: &str) {
    worker.machine.put("/etc/rocworker/config.yaml", lines);
}

#[test]
fn real_amdgpu_install_brings_rocm_and_undo_takes_all_of_it_back() {
    for (system, machine) in systems::each() {
        let (worker, lines) = served(machine);
        worker.machine.apt_get(&["update"]).well();
        configure(&worker, &format!("GPU_NODE: true\n{lines}"));
        let tree = || {
            worker.machine.tree(&[
                "etc",
                "usr/bin",
                "usr/share/doc",
                "usr/src",
                "var/lib/apt/lists",
                "var/lib/dpkg/info",
            ])
        };
        let (packages, before) = (worker.machine.packages(), tree());

        let plan = worker.run(&["plan"]);
        assert!(plan.stdout.contains("package:amdgpu-install"), "{system}: {plan:?}");
        worker.run(&["apply"]).well();
        worker.has("amdgpu-install", Some("install ok installed 6.3.60302-1"));
        worker.has("rocm", Some("install ok installed 6.3.2"));
        worker.has("amdgpu-graphics", Some("install ok installed 1:6.10.5"));
        worker.has("lab-library", Some("install ok installed 1.0"));
        assert!(!worker.machine.outside("/var/cache/rocworker").exists(), "{system}");

        let asked = worker.server.requests().len();
        let again = worker.run(&["apply"]).well();
        assert!(again.ends_with("no changes.\n"), "{system}: {again}");
        assert_eq!(worker.server.requests().len(), asked, "{system}");

        worker.run(&["undo"]).well();
        assert_eq!(worker.machine.packages(), packages, "{system}");
        assert!(worker.machine.text(LIST).is_none(), "{system}");
        // dpkg takes an empty /opt with it where no package holds it.
        assert!(!worker.machine.outside(standins::ROCM).exists(), "{system}");
        let off = tree().differences(&[&before]);
        assert!(off.is_empty(), "{system}:\n{}", off.join("\n"));
    }
}

#[test]
fn real_amdgpu_install_takes_no_other_file_and_nobodys_packages() {
    let Some(machine) = systems::this() else { return };
    let (worker, lines) = served(machine);
    let packages = worker.machine.packages();
    let (head, sum) = lines.split_once("sha256: ").unwrap();
    let (_, rest) = sum.split_once('}').unwrap();
    configure(&worker, &format!("GPU_NODE: true\n{head}sha256: {}}}{rest}", "0".repeat(64)));
    let applied = worker.run(&["apply"]);
    assert!(format!("{applied:?}").contains("its SHA-256 is"), "{applied:?}");
    assert_eq!(worker.machine.packages(), packages);
    assert!(worker.machine.text(LIST).is_none());

    // An older one is there, which amdgpu-graphics would have replaced.
    let old = Package::new("lab-library", "0.5").build(&worker.machine.shared());
    worker.machine.call(&["dpkg", "-i", &worker.machine.shared_name(&old)]).well();
    let packages = worker.machine.packages();
    configure(&worker, &format!("GPU_NODE: true\n{lines}"));
    let applied = worker.run(&["apply"]);
    assert!(format!("{applied:?}").contains("apt would replace lab-library (0.5 to 1.0)"), "{applied:?}");
    worker.has("lab-library", Some("install ok installed 0.5"));
    worker.has("rocm", None);
    worker.run(&["undo"]).well();
    assert_eq!(worker.machine.packages(), packages);
    assert!(worker.machine.text(LIST).is_none());
}

#[test]
fn real_amdgpu_install_is_asked_for_by_the_environment() {
    let Some(machine) = systems::this() else { return };
    let (worker, lines) = served(machine);
    let lines = lines.replace("graphics", "dkms");
    configure(&worker, &lines);
    let none = worker.run(&["plan"]);
    assert!(!none.stdout.contains("package:amdgpu-install"), "{none:?}");
    assert!(none.stdout.contains("ROCM_BASE_URL of the configuration is not used"), "{none:?}");
    let asked = worker.machine.call(&["env", "GPU_NODE=true", PROGRAM, "plan"]);
    // apt has no headers here: nothing is built, and so nothing is run.
    assert!(asked.stdout.contains("amdgpu-install is not run: "), "{asked:?}");
    assert!(!asked.stdout.contains("package:amdgpu-install"), "{asked:?}");
    worker.machine.put("/run/systemd/container", "lxc\n");
    let inside = worker.machine.call(&["env", "GPU_NODE=true", PROGRAM, "plan"]);
    assert!(
        inside.stdout.contains("amdgpu-install is not asked for dkms: this is a container"),
        "{inside:?}"
    );
    assert!(inside.stdout.contains("package:amdgpu-install"), "{inside:?}");
    assert!(inside.stdout.contains("for rocm") && !inside.stdout.contains("rocm,dkms"), "{inside:?}");
    configure(&worker, &format!("{lines}GPU_NODE: false\n"));
    let kept = worker.machine.call(&["env", "GPU_NODE=true", PROGRAM, "-v", "plan"]);
    assert!(!kept.stdout.contains("package:amdgpu-install"), "{kept:?}");
    assert!(kept.stderr.contains("GPU_NODE of the environment is not used"), "{kept:?}");
}

#[test]
fn real_amdgpu_install_is_simulated_as_far_as_apt_can_and_the_rest_is_said() {
    for (system, machine) in systems::each() {
        let (worker, lines) = served(machine);
        configure(&worker, &format!("GPU_NODE: true\n{lines}"));
        worker.machine.apt_get(&["update"]).well();
        // The whole of this machine's own /usr would be gigabytes.
        let everything = || worker.machine.written();
        let says = |told: &serde_json::Value, key: &str, text: &str| {
            let texts = told["rehearsal"][key].as_array().unwrap();
            texts.iter().filter(|it| it.as_str().unwrap().contains(text)).count()
        };
        let before = everything();
        let told = worker.json(&["apply", "--dry-run"]);
        assert_eq!(says(&told, "lines", "Inst amdgpu-install (6.3.60302-1 "), 1, "{system}: {told:#}");
        let untold = "what /usr/bin/amdgpu-install --usecase=rocm,graphics --yes installs is not simulated";
        assert_eq!(says(&told, "problems", untold), 1, "{system}: {told:#}");
        assert_eq!(says(&told, "problems", ""), 1, "{system}: {told:#}");
        let off = everything().differences(&[&before]);
        assert!(off.is_empty(), "{system}:\n{}", off.join("\n"));

        // Its package came, and what its program asks for did not.
        let rocm = worker.repository.path_of_index();
        worker.server.misbehave(&rocm, Misbehaviour::Status(404));
        let applied = worker.run(&["apply"]);
        assert!(!applied.status.success(), "{system}: {applied:?}");
        worker.has("amdgpu-install", Some("install ok installed 6.3.60302-1"));
        worker.server.behave();
        let before = everything();
        let told = worker.json(&["apply", "--dry-run"]);
        for name in ["rocm (6.3.2 ", "rocminfo (1.0.0 ", "amdgpu-graphics (1:6.10.5 ", "lab-library (1.0 "] {
            assert_eq!(says(&told, "lines", &format!("Inst {name}")), 1, "{system}: {name}: {told:#}");
        }
        assert_eq!(says(&told, "problems", ""), 0, "{system}: {told:#}");
        let off = everything().differences(&[&before]);
        assert!(off.is_empty(), "{system}:\n{}", off.join("\n"));
        worker.run(&["undo"]).well();
    }
}
