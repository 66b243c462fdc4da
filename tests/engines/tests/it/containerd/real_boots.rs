//! containerd runs with what apply has made of its configuration, and the wrapper that it then names gives GPUs.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use config::Config;
use edit::Format;
use engines::containerd::desired::actions;
use engines::{self as facts, Versions};
use real_engines::configured::{WRAPPER, apply_below};
use real_engines::containerd::Containerd;
use real_engines::engine::{CONTAINERD_2_1, releases};
use real_engines::look;
use real_engines::machine::{ASKED, seen_on_demo};
use render::Templates;
use root::Root;

#[test]
fn real_containerd_starts_with_what_apply_makes_and_its_runtime_gives_gpus() {
    for engine in releases() {
        let Some(unpacked) = engine.unpacked() else { return };
        let mut containerd = Containerd::without_wrapper(&engine, &unpacked, ASKED);
        let said = containerd.host().call("/usr/bin", &["/usr/bin/containerd", "--version"]).well();
        containerd.kill();

        // The main file is /stage/config.toml there, with CRI switched on.
        let stage = containerd.outside("/stage");
        let version = if engine == CONTAINERD_2_1 { 3 } else { 2 };
        let main = format!(
            "version = {version}\nroot = \"/stage/containerd\"\nstate = \"/run/containerd\"\n\
             [grpc]\naddress = \"/run/containerd/containerd.sock\"\n"
        );
        let machine = tempfile::tempdir().unwrap();
        for folder in ["stage", "usr/bin", "var/lib/dpkg"] {
            fs::create_dir_all(machine.path().join(folder)).unwrap();
        }
        fs::write(machine.path().join("usr/bin/containerd"), "").unwrap();
        fs::write(machine.path().join("stage/config.toml"), main).unwrap();
        let release = facts::Version::find(&said).unwrap();
        let status = format!("Package: containerd\nStatus: install ok installed\nVersion: {release}\n");
        fs::write(machine.path().join("var/lib/dpkg/status"), status).unwrap();
        let root = Root::open(machine.path()).unwrap();
        let config = "containerd: {config: /stage/config.toml, runtime: amd}";
        let config = Config::parse(Path::new("config.yaml"), config).unwrap();
        let mut versions = Versions::new(&root, None, BTreeMap::new());
        let found = facts::Containerd::read(&root, &config, &mut versions).unwrap();
        let desired = actions(&config, &found, &Templates::built_in(), Path::new(WRAPPER));
        apply_below(machine.path(), &desired);
        for file in ["config.toml", "conf.d/rocworker.toml"] {
            let Ok(text) = fs::read(machine.path().join("stage").join(file)) else { continue };
            fs::create_dir_all(stage.join("conf.d")).unwrap();
            fs::write(stage.join(file), text).unwrap();
        }
        containerd.start_again();

        let plugins = containerd.ctr(&["plugins", "list"]).well();
        let cri = plugins.lines().filter(|line| line.contains("cri") && !line.contains("monitor"));
        let states: Vec<&str> = cri.filter_map(|line| line.split_whitespace().last()).collect();
        assert!(
            !states.is_empty() && states.iter().all(|state| *state == "ok"),
            "{}: {plugins}",
            engine.name
        );

        // ctr knows no runtimes by name: the test passes what CRI would take from the file.
        let dump = ["/usr/bin/containerd", "--config", "/stage/config.toml", "config", "dump"];
        let dump = Format::Toml.read(&containerd.host().call("/usr/bin", &dump).well()).unwrap();
        let section = if engine == CONTAINERD_2_1 {
            "io.containerd.cri.v1.runtime"
        } else {
            "io.containerd.grpc.v1.cri"
        };
        let amd = &dump["plugins"][section]["containerd"]["runtimes"]["amd"];
        let runtime = amd["runtime_type"].as_str().unwrap();
        let program = amd["options"]["BinaryName"].as_str().unwrap();
        let through = ["--runtime", runtime, "--runc-binary", program, "--env", "AMD_VISIBLE_DEVICES=0"];
        assert_eq!(containerd.look(&through, "c1"), seen_on_demo(0..1, "open"), "{}", engine.name);
        // The runtime beside it is runc as it was.
        assert_eq!(containerd.look(&["--env", "AMD_VISIBLE_DEVICES=0"], "c2"), "", "{}", engine.name);
        if engine == CONTAINERD_2_1 {
            // containerd must start even if a person removes rocworker's file.
            containerd.kill();
            fs::remove_file(stage.join("conf.d/rocworker.toml")).unwrap();
            containerd.start_again();
        }
        let refused = [&through[..5], &["AMD_VISIBLE_DEVICES=17"]].concat();
        let refused = containerd.run(&refused, "c3", &look::look("refused"));
        assert!(
            refused.stderr.contains("runc-amd-wrapper: the policy has no GPU"),
            "{}: {refused:?}",
            engine.name
        );
    }
}
