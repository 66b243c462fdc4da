//! `GPU_NODE: true` from the kernel's headers to rocm-smi, by real apt, dkms and kmod. The installer, ROCm and the driver
//! are stand-ins under AMD's names.

use lab::repository::{Repository, sha256};
use lab::server::Server;
use lab::{standins, systems};
use serde_json::Value;

use crate::packages::driver::worker::{DRIVER, SOURCE, Worker};

const DEB: &str = "amdgpu-install_6.3.60302-1_all.deb";

fn notes(answer: &Value, about: &str) -> Vec<(String, bool)> {
    let notes = answer["notes"].as_array().unwrap().iter().filter(|note| note["about"] == about);
    notes.map(|note| (note["text"].as_str().unwrap().to_owned(), note["problem"] == true)).collect()
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_gpu_node_is_the_whole_flow_and_false_takes_it_back() {
    let Some((machine, headers)) = systems::with_headers() else { return };
    let (worker, _debian) = Worker::new(machine, &headers, true);
    let before = worker.machine.packages();
    // As udev's package makes it.
    let groups = worker.machine.text("/etc/group").unwrap().replace("\nrender:", "\nformer:");
    worker.machine.put("/etc/group", groups + "render:x:991:\n");
    let detected = worker.json(&["detect"]);
    let is_driven = |gpu: &&Value| gpu["driver"] == "amdgpu";
    let count = detected["gpus"].as_array().unwrap().iter().filter(is_driven).count();
    let mut repository = Repository::new(standins::ORIGIN, "jammy", "main").with([
        standins::rocm("6.3.2"),
        standins::rocminfo("1.0.0"),
        standins::rocm_smi_with("7.4.0", count),
        standins::amdgpu_dkms(DRIVER),
    ]);
    let folder = repository.release(&worker.amd.key);
    let server = Server::start(&folder);
    let url = server.url();
    let source = format!("deb [signed-by={}] {url} jammy main\n", standins::AMDGPU_INSTALL_KEYRING);
    let place = folder.join("amdgpu-install/6.3.2/ubuntu/jammy");
    std::fs::create_dir_all(&place).unwrap();
    let built = standins::amdgpu_install("6.3.60302-1", &source, worker.amd.key.binary()).build(&place);
    let bytes = std::fs::read(&built).unwrap();
    std::fs::write(place.join(DEB), &bytes).unwrap();
    let lines = format!(
        "containerd: {{configure: never}}\ndocker: {{configure: never}}\nconcourse: {{configure: never}}\n\
         ROCM_BASE_URL: {url}/amdgpu-install/6.3.2/ubuntu/\nrocm: {{sha256: {}}}\n\
         repositories: {{rocm: {{suite: jammy}}}}\n",
        sha256(&bytes)
    );
    worker.machine.put("/etc/rocworker/config.yaml", format!("GPU_NODE: true\n{lines}"));
    assert_eq!(worker.check("rocm.install")[0], "warning");

    let applied = worker.json(&["apply"]);
    assert_eq!(applied["failed"], serde_json::json!([]), "{applied:#}");
    let changes =
        applied["changes"].as_array().unwrap().iter().map(|change| change["path"].as_str().unwrap());
    let packages: Vec<&str> = changes.filter_map(|path| path.strip_prefix("package:")).collect();
    assert_eq!(
        packages.iter().copied().filter(|name| !name.starts_with("python3")).collect::<Vec<_>>(),
        [&headers.package(), "amdgpu-install"]
    );
    // dkms has built it for the running kernel, and another build is loaded: a restart is asked for, once.
    assert_eq!(worker.state(), format!("amdgpu/{SOURCE}, {}, x86_64: installed\n", worker.release));
    let effects = applied["effects"].to_string();
    assert!(effects.contains("amdgpu-install's driver is built, and another build"), "{effects}");
    assert_eq!(worker.check("rocm.install")[0], "ok");
    assert_eq!(notes(&applied, "driver"), []);

    // The machine seems to have been restarted with that build, and rocm-smi is asked.
    let built = worker.machine.call(&["modinfo", "-k", &worker.release, "-F", "srcversion", "amdgpu"]).well();
    for (place, text, over) in [
        ("/run/lab/srcversion", built.as_str(), "/sys/module/amdgpu/srcversion"),
        ("/run/lab/boot_id", "ffffffff-90fa-44ce-9b76-f16b8805f492\n", "/proc/sys/kernel/random/boot_id"),
    ] {
        worker.machine.put(place, text);
        worker.machine.call(&["mount", "--bind", place, over]).well();
    }
    let verified = worker.json(&["apply"]);
    let said = format!("rocm-smi: lists {count} GPUs, as rocworker does");
    assert_eq!(notes(&verified, "driver"), [(said, false)], "{verified:#}");
    assert_eq!(worker.run(&["apply"]).status.code(), Some(0));

    // Nothing about GPUs is left.
    worker.machine.put("/etc/rocworker/config.yaml", format!("GPU_NODE: false\n{lines}"));
    worker.run(&["apply"]).well();
    assert_eq!(worker.machine.packages(), before);
    assert_eq!((worker.state(), worker.machine.text("/etc/cdi/amd.json")), (String::new(), None));
}
