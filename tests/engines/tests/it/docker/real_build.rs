//! `docker build` with the wrapper as docker's default runtime: the classic builder runs its steps through it, BuildKit
//! does not.

use std::fs;

use real_engines::docker::Docker;
use real_engines::engine::CONTAINERD_1_6;
use real_engines::machine::ALL;

/// An image whose build step writes the GPUs that it sees into the image.
const DOCKERFILE: &str = "FROM look\nRUN /bin/sh -c 'ls /dev/kfd /dev/dri 2>/dev/null >/saw || :'\n";

#[test]
#[ignore = "cargo xtask test --all"]
fn real_buildkit_ignores_the_default_runtime_and_the_classic_builder_does_not() {
    // Of the three suites' dockers only Debian 12's contains a BuildKit client.
    let Some(docker) = Docker::start(&CONTAINERD_1_6, ALL, "\"default-runtime\": \"amd\", ") else { return };
    fs::create_dir(docker.host().folder().join("build")).unwrap();
    fs::write(docker.host().folder().join("build/Dockerfile"), DOCKERFILE).unwrap();
    let saw = |builder: &str| {
        let cgroup = docker.cgroup_parent();
        let build = ["build", "--network", "none", "--no-cache", cgroup, "--tag", "built", "/stage/build"];
        docker.call(&[("DOCKER_BUILDKIT", builder)], &build).well();
        let cat = ["run", "--rm", "--network", "none", cgroup, "--env", "AMD_VISIBLE_DEVICES=none", "built"];
        docker.call(&[], &[&cat[..], &["/bin/cat", "/saw"]].concat()).well()
    };
    assert!(saw("0").contains("renderD129"));
    assert_eq!(saw("1"), "");
}
