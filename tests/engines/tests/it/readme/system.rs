//! docker, and the system's containerd.

use std::fs;

use layout::Machine;
use real_engines::containerd::{Containerd, Start};
use real_engines::dockerd::{Dockerd, SOCKET};
use real_engines::engine::{CONTAINERD_1_6, CONTAINERD_2_1, Engine, releases};
use real_engines::host::Host;
use real_engines::{image, machine};
use support::document::quick_start;
use support::stage::Stage;

use crate::readme::operator::{DIST, PATH, line, listed, put_source, with_debian};

/// The machine after the lines before the first container, and the others.
fn applied(engine: &Engine) -> Option<(Host, Vec<String>)> {
    let (unpacked, made) = with_debian(engine)?;
    let stage = Stage::set(&Machine::demo());
    put_source(&stage, &made);
    support::rootfs::lay_out(&machine::rootfs(&stage));
    let host = Host::set(stage, &unpacked);
    let (commands, rest) = quick_start("docker or containerd");
    assert_eq!(rest, [""; 0]);
    let (first, commands) = commands.split_first().unwrap();
    assert_eq!(first, DIST);
    let is_container = |command: &&String| command.starts_with("docker ") || command.starts_with("ctr ");
    let (containers, before): (Vec<_>, Vec<_>) = commands.iter().partition(is_container);
    assert_eq!(containers.len(), 3, "{containers:?}");
    for command in before {
        line(&host, &[], command).well();
    }
    Some((host, containers.into_iter().cloned().collect()))
}

/// The name of an image in a command: the word before the program that it runs, or before the container's name.
fn image_of(command: &str) -> &str {
    command.split_whitespace().find(|word| word.contains("busybox")).unwrap()
}

#[test]
fn real_the_readmes_quick_start_gives_a_container_of_docker_one_gpu() {
    for engine in releases().into_iter().filter(|engine| *engine != CONTAINERD_1_6) {
        let Some((host, containers)) = applied(&engine) else { return };
        let command = containers.iter().find(|command| command.starts_with("docker ")).unwrap();
        let mut archive = tar::Builder::new(fs::File::create(host.folder().join("image.tar")).unwrap());
        archive.follow_symlinks(false);
        archive.append_dir_all(".", host.folder().join("rootfs")).unwrap();
        archive.finish().unwrap();
        let cgroup = format!("--cgroup-parent=/{}", host.cgroup());
        // Starts docker as the restart does for which apply asks: systemd does not run there.
        let docker = Dockerd::start(host, &["--data-root=/stage/docker", &cgroup]);
        let environment = [("DOCKER_HOST", SOCKET), ("HOME", "/tmp")];
        let import = format!("docker import /stage/image.tar {}", image_of(command));
        line(&docker.host, &environment, &import).well();
        let said = line(&docker.host, &environment, command).well();
        assert_eq!(listed(&said), ["card1", "renderD129"], "{}", engine.name);
    }
}

#[test]
fn real_the_readmes_quick_start_gives_a_container_of_containerd_one_gpu() {
    let Some((host, containers)) = applied(&CONTAINERD_2_1) else { return };
    let [pull, command] = &containers[1..] else { panic!("{containers:?}") };
    // No registry is to be had here: an import stands in for it.
    assert_eq!(*pull, format!("ctr images pull {}", image_of(command)));
    let folder = host.folder().join("made");
    fs::create_dir(&folder).unwrap();
    image::write(&folder, &folder.join("image.tar"), &["PATH=/bin"], &["/bin/true"]);
    // containerd's snapshots cannot lie on the overlay that is this machine's root.
    for folder in ["/var/lib/containerd", "/stage/containerd"] {
        host.busybox(&["mkdir", "-p", folder]).well();
    }
    host.busybox(&["mount", "--bind", "/stage/containerd", "/var/lib/containerd"]).well();
    // Starts containerd as its unit does, with the configuration that apply has written.
    let start = Start { path: PATH.to_owned(), argv: vec!["/usr/bin/containerd".to_owned()] };
    let containerd = Containerd::begin(&CONTAINERD_2_1, host, start);
    let host = containerd.host();
    // A namespace gives its containers' cgroups their parent.
    let namespace = host.cgroup();
    let environment = [("CONTAINERD_NAMESPACE", namespace.as_str())];
    for setup in [
        "ctr images import /stage/made/image.tar".to_owned(),
        format!("ctr images tag {} {}", image::NAME, image_of(command)),
    ] {
        line(host, &environment, &setup).well();
    }
    // What a container prints, `ctr` loses now and then: its copying ends with the container.
    let said = (0..5).map(|_| line(host, &environment, command).well()).find(|said| !said.is_empty());
    assert_eq!(said.as_deref().map(listed), Some(vec!["card1", "renderD129"]));
}
