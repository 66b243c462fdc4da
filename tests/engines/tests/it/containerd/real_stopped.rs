//! A container that runs by the wrapper can be stopped after undo, which leaves the wrapper until then.

use std::fs;
use std::path::Path;

use config::Config;
use engines::Docker;
use engines::undo_constraints::undo_constraints;
use real_engines::containerd::Containerd;
use real_engines::engine::releases;
use real_engines::machine::ASKED;
use reconcile::{Action, Content, Desired, Kind, Plan, Stage, Transaction};
use root::{Attributes, Root};

/// Beneath the stage, which is this test's Root.
const WRAPPER: &str = "/usr/local/lib/rocworker/runc-amd-wrapper";

/// Makes the changes of a plan.
fn bring_about(root: &Root, desired: &Desired) -> Plan {
    let mut work = Transaction::begin(root, &mut |_| {}).unwrap();
    let plan = Plan::make(root, desired, work.receipt(), None, false, 0);
    let carried = work.execute(&plan, 0, &mut |_| {}).unwrap();
    assert!(carried.failed.is_empty(), "{carried:?}");
    plan
}

#[test]
fn real_a_container_can_be_stopped_after_undo() {
    for engine in releases() {
        let Some(unpacked) = engine.unpacked() else { return };
        let mut containerd = Containerd::without_wrapper(&engine, &unpacked, ASKED);
        containerd.kill();
        let config = containerd.outside("/stage/config.toml");
        let text = fs::read_to_string(&config).unwrap();
        fs::write(&config, text.replace("\"/run/containerd\"", "\"/stage/run/containerd\"")).unwrap();
        containerd.start_again();

        let root = Root::open(&containerd.outside("/stage")).unwrap();
        let attributes = Attributes { mode: 0o755, owner: None };
        let content = Content::File { bytes: fs::read(&unpacked.wrapper).unwrap(), attributes };
        let mut desired = Desired::default();
        desired.push(Action::new(
            Stage::Expose,
            WRAPPER,
            Kind::Owned(content),
            "engines run it in place of runc",
        ));
        bring_about(&root, &desired.of("wrapper"));
        let program = containerd.outside("/stage").join(WRAPPER.trim_start_matches('/'));
        let within = format!("/stage{WRAPPER}");
        let through = ["--runtime", "io.containerd.runc.v2", "--runc-binary", &within];
        containerd.start_sleeping(&through, "c1");

        // Without it nobody stops the container.
        fs::rename(&program, program.with_extension("aside")).unwrap();
        let refused = containerd.ctr(&["task", "kill", "--signal", "SIGKILL", "c1"]);
        assert!(
            !refused.status.success() && refused.stderr.contains("no such file"),
            "{}: {refused:?}",
            engine.name
        );
        fs::rename(program.with_extension("aside"), &program).unwrap();

        let config = Config::parse(Path::new("config.yaml"), "").unwrap();
        let undo = Desired {
            undo_constraints: undo_constraints(&root, &config, &Docker::default()),
            ..Desired::default()
        };
        let plan = bring_about(&root, &undo);
        let left = &plan.left[0];
        assert_eq!(left.path, Path::new(WRAPPER));
        assert!(left.text.starts_with("container c1 runs by it"), "{}: {left:?}", engine.name);
        containerd.remove("c1");
        assert_eq!(bring_about(&root, &undo).left, [], "{}", engine.name);
        assert!(!program.exists(), "{}", engine.name);
        containerd.assert_nothing_is_left();
    }
}
