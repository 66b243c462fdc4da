//! A container's user who is not root, and what it takes for that user to open a GPU's nodes: docker by CDI and by the
//! wrapper, at the start and by a later `docker exec`.

use std::fs;

use real_engines::docker::Docker;
use real_engines::engine::{CONTAINERD_1_6, CONTAINERD_1_7, CONTAINERD_2_1};
use real_engines::look;
use real_engines::machine::{ASKED, seen_on_demo};

const CDI: &str = r#""features": {"cdi": true}, "#;
const BY_CDI: &[&str] = &["--device", "amd.com/gpu=1"];
const BY_WRAPPER: &[&str] = &["--runtime", "amd", "--env", "AMD_VISIBLE_DEVICES=1"];
const USER: &[&str] = &["--user", "1000:1000"];
/// The groups of card and render nodes on the demo machine (tests/layout/src/drm.rs).
const GROUPS: &[&str] = &["--group-add", "44", "--group-add", "992"];

/// The GPUs that a container with these flags sees, and those that `docker exec` with these flags sees in it.
#[track_caller]
fn look(docker: &Docker, flags: &[&str], exec: &[&str]) -> [String; 2] {
    let seen = format!("{}:/seen", look::SEEN);
    let always = ["--network", "none", "--volume", &seen, docker.cgroup_parent()];
    let run = |more: &[&str], command: &[&str]| {
        docker.call(&[], &[&["run"], &always[..], more, flags, &["look"], command].concat()).well();
    };
    run(&["--detach", "--name", "one"], &["/bin/sleep", "1000"]);
    docker.call(&[], &[&["exec"], exec, &["one"], &look::look("exec")].concat()).well();
    docker.call(&[], &["rm", "--force", "one"]).well();
    run(&["--rm"], &look::look("run"));
    ["run", "exec"].map(|name| {
        let file = docker.host().folder().join("seen").join(name);
        let seen = fs::read_to_string(&file).unwrap();
        fs::remove_file(file).unwrap();
        seen
    })
}

fn open() -> String {
    seen_on_demo([1], "open")
}

fn shut() -> String {
    seen_on_demo([1], "shut")
}

/// The nodes have the groups that they have outside: in none of them the user is refused, in all of them it is not.
fn by_cdi_the_groups_decide(docker: &Docker) {
    assert_eq!(look(docker, BY_CDI, &[]), [open(), open()], "root");
    assert_eq!(look(docker, &[BY_CDI, USER].concat(), USER), [shut(), shut()], "without a group");
    assert_eq!(look(docker, &[BY_CDI, USER, GROUPS].concat(), USER), [open(), open()], "with their groups");
    let render = &GROUPS[2..];
    let card = shut().lines().find(|line| line.contains("card")).unwrap().to_owned();
    let [run, exec] = look(docker, &[BY_CDI, USER, render].concat(), USER);
    let computes =
        open().lines().filter(|line| !line.contains("card")).map(str::to_owned).collect::<Vec<_>>();
    for seen in [run, exec] {
        let lines: Vec<&str> = seen.lines().collect();
        assert!(lines.contains(&card.as_str()), "{seen}");
        assert!(computes.iter().all(|line| lines.contains(&line.as_str())), "{seen}");
    }
}

/// The wrapper adds the groups.
fn by_the_wrapper_every_user_opens_them(docker: &Docker) {
    assert_eq!(look(docker, BY_WRAPPER, &[]), [open(), open()], "root");
    assert_eq!(look(docker, &[BY_WRAPPER, USER].concat(), USER), [open(), open()], "a user");
    assert_eq!(look(docker, BY_WRAPPER, USER), [open(), open()], "a user that comes later");
    // docker has put this one into the bundle before the wrapper sees it.
    let with_kfd = [BY_WRAPPER, USER, &["--device", "/dev/kfd"]].concat();
    assert_eq!(look(docker, &with_kfd, USER), [open(), open()], "/dev/kfd by its path as well");
}

/// By CDI all nodes are in the bundle before the wrapper sees it. If the wrapper adds another GPU, only
/// /dev/kfd is already there.
fn by_cdi_and_the_wrapper_at_once_too(docker: &Docker) {
    let both = [BY_CDI, BY_WRAPPER, USER].concat();
    assert_eq!(look(docker, &both, USER), [open(), open()], "the same GPU by both");
    let another = ["--device", "amd.com/gpu=2", "--runtime", "amd", "--env", "AMD_VISIBLE_DEVICES=1"];
    for seen in look(docker, &[&another[..], USER].concat(), USER) {
        assert!(open().lines().all(|line| seen.contains(line)), "{seen}");
    }
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_docker_20_10_lets_every_user_of_a_container_open_its_gpus_through_the_wrapper() {
    if let Some(docker) = Docker::start(&CONTAINERD_1_6, ASKED, "") {
        by_the_wrapper_every_user_opens_them(&docker);
    }
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_docker_26_1_opens_cdis_nodes_to_the_users_of_their_groups_and_the_wrappers_to_all() {
    if let Some(docker) = Docker::start(&CONTAINERD_1_7, ASKED, CDI) {
        by_cdi_the_groups_decide(&docker);
        by_the_wrapper_every_user_opens_them(&docker);
        by_cdi_and_the_wrapper_at_once_too(&docker);
    }
}

#[test]
fn real_docker_28_5_opens_cdis_nodes_to_the_users_of_their_groups_and_the_wrappers_to_all() {
    if let Some(docker) = Docker::start(&CONTAINERD_2_1, ASKED, CDI) {
        by_cdi_the_groups_decide(&docker);
        by_the_wrapper_every_user_opens_them(&docker);
        by_cdi_and_the_wrapper_at_once_too(&docker);
    }
}
