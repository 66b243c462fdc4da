//! Runtimes other than Debian 12's runc behind the wrapper: crun 1.8, 1.21 and 1.28. containerd 2.1's tests
//! have runc 1.3.

use real_engines::containerd::Containerd;
use real_engines::engine::releases;
use real_engines::look;
use real_engines::machine::seen_on_demo;

/// The policy names the runtime.
const CRUN: &str =
    r#"{"schema_version":1,"runtime":"/usr/bin/crun","requests":"all","default":"none","sharing":"shared"}"#;

#[test]
fn real_crun_behind_the_wrapper_gives_what_runc_gives() {
    for engine in releases() {
        let Some(unpacked) = engine.unpacked() else { return };
        let containerd = Containerd::on_demo(&engine, &unpacked, CRUN);
        // crun refuses a machine with both kinds of cgroups: leave it the first.
        containerd.host().busybox(&["umount", "/sys/fs/cgroup/unified"]);
        let version =
            containerd.host().call(&engine.path(), &["/opt/rocworker/shim/runc", "--version"]).well();
        assert!(version.starts_with("crun version "), "{}: {version}", engine.name);

        let asking = ["--env", "AMD_VISIBLE_DEVICES=0,2"];
        let expected = containerd.look(&asking, "c1");
        let two: Vec<String> = [0..1, 2..3]
            .into_iter()
            .flat_map(|gpu| seen_on_demo(gpu, "open").lines().map(str::to_owned).collect::<Vec<_>>())
            .collect();
        assert!(
            two.iter().all(|line| expected.contains(line)) && expected.lines().count() == 5,
            "{expected}"
        );
        for (flags, minor, outcome) in
            [(&asking[..], "129", "open\n"), (&asking[..], "130", "denied\n"), (&[], "129", "denied\n")]
        {
            let said = containerd.forge(flags, "c2", "226", minor);
            assert_eq!(said, outcome, "{}: {flags:?} 226:{minor}", engine.name);
        }
        containerd.start_sleeping(&["--env", "AMD_VISIBLE_DEVICES=0"], "c3");
        let seen = containerd.look_in("c3", "look");
        assert_eq!(seen, seen_on_demo(0..1, "open"), "{}", engine.name);
        containerd.remove("c3");
        let refused = containerd.run(&["--env", "AMD_VISIBLE_DEVICES=17"], "c4", &look::look("refused"));
        assert!(
            refused.stderr.contains("runc-amd-wrapper: the policy has no GPU"),
            "{}: {refused:?}",
            engine.name
        );
        assert_eq!(containerd.host().records(), [""; 0], "{}", engine.name);
    }
}
