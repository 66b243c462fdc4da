//! The images of deploy/tensorfusion: podman builds them on a Debian root by the Makefile's commands, and a container copies
//! /build out of one as the hypervisor's init container does.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use lab::machine::{Machine, SHARED};
use lab::server::Server;
use lab::systems;
use lab::tarball::{self, Tarball};
use support::real;
use support::said::Said;
use support::waiting::eventually;
use tempfile::TempDir;

use crate::deploy::repository;

const PROVIDER: &str = "ROCWORKER_PROVIDER";
const TRIXIE: &str = "ROCWORKER_APT_TRIXIE";
const DIST: &str = "ROCWORKER_DIST";
const PROGRAMS: &[&str] = &["make", "podman", "runc", "pgrep", "tar", "gcc", "sha256sum"];

const LIBRARY: &str = "libaccelerator_amd.so";
const BASE: &str = "localhost/debian:test";
const IMAGE: &str = "registry.example/lab/tensor-fusion-amd-provider:1.2.3";
/// Without CAP_SYS_RESOURCE podman may raise no limit, and its own are above a container's.
const LIMITS: [&str; 4] = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"];

/// podman's own store with a Debian in it, and the top of the repository after `make amd`, as far as images need it.
struct Workshop {
    folder: TempDir,
}

impl Workshop {
    fn new(debian: &Path, provider: &Path) -> Self {
        let workshop = Self { folder: tempfile::tempdir().unwrap() };
        for file in ["Makefile", ".dockerignore", "deploy/install_rocm_tarball.sh"] {
            workshop.put(&repository().join(file), file);
        }
        for file in [
            "Containerfile",
            "Containerfile.hip-client",
            "Containerfile.hip-worker",
            "Containerfile.therock",
            "inject-hip.sh",
            "metadata.yaml",
            "tensor-fusion-worker.sh",
        ] {
            let file = format!("deploy/tensorfusion/{file}");
            workshop.put(&repository().join(&file), &file);
        }
        workshop.put(&provider.join(LIBRARY), &format!("target/provider/{LIBRARY}"));
        // make asks cargo for the library, which was built before the tests.
        let cargo = workshop.path("bin/cargo");
        fs::create_dir(cargo.parent().unwrap()).unwrap();
        fs::write(&cargo, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).unwrap();
        workshop.import(debian);
        workshop
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn put(&self, from: &Path, name: &str) {
        let file = self.path("top").join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::copy(from, file).unwrap();
    }

    /// podman and its options, as a shell and make split them.
    fn podman_words(&self) -> String {
        let (store, run) = (self.path("store"), self.path("run"));
        format!(
            "podman --root {} --runroot {} --runtime {} --storage-driver vfs --cgroup-manager cgroupfs --events-backend none",
            store.display(),
            run.display(),
            real::program("runc").unwrap().display()
        )
    }

    fn podman(&self) -> Command {
        let words = self.podman_words();
        let mut words = words.split(' ');
        let mut podman = Command::new(words.next().unwrap());
        podman.args(words);
        podman
    }

    /// Makes a Debian's root file system an image. Its certificates, which the tests' server needs not, spare the build a
    /// package from Debian.
    fn import(&self, debian: &Path) {
        let certificates = "etc/ssl/certs/ca-certificates.crt";
        let more = self.path("more");
        fs::create_dir_all(more.join(certificates).parent().unwrap()).unwrap();
        fs::write(more.join(certificates), "").unwrap();
        let mut tar = Command::new("tar")
            .args(["--numeric-owner", "--directory"])
            .arg(debian)
            .args(["--create", ".", "--directory"])
            .arg(&more)
            .arg(certificates)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut podman = self.podman();
        podman.args(["import", "--quiet", "-", BASE]).stdin(tar.stdout.take().unwrap());
        Said::from(podman.output().unwrap()).well();
        assert!(tar.wait().unwrap().success());
    }

    fn make(&self, target: &str, container_tool: &str, flags: &[&str]) -> Said {
        let path = format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", self.path("bin").display());
        let base = format!("BASE={BASE}");
        let flags = [&["--layers=false", "--build-arg", &base], &LIMITS[..], flags].concat();
        let mut make = Command::new("make");
        make.env_clear().env("PATH", path).env("HOME", self.folder.path()).current_dir(self.path("top"));
        make.args([target, "IMG_REGISTRY=registry.example/lab", "VERSION=1.2.3"]);
        make.arg(format!("CONTAINER_TOOL={container_tool}")).arg(format!("BUILD_FLAGS={}", flags.join(" ")));
        make.output().unwrap().into()
    }

    /// What a shell prints in a container of an image, which sees this folder at /out.
    fn shell(&self, image: &str, out: &Path, script: &str) -> String {
        let mut podman = self.podman();
        podman.args(["run", "--rm", "--network", "none", "--entrypoint", "sh"]).args(LIMITS);
        podman.arg("--volume").arg(format!("{}:/out", out.display())).args([image, "-c", script]);
        Said::from(podman.output().unwrap()).well()
    }
}

impl Drop for Workshop {
    fn drop(&mut self) {
        self.podman().args(["rm", "--all", "--force", "--time", "0"]).output().ok();
        // conmon calls podman once more when a container ends, which would make its folder again.
        let programs = format!("^[^ ]*(conmon|podman) .*{}/", self.folder.path().display());
        let is_there =
            || Command::new("pgrep").args(["-f", &programs]).output().is_ok_and(|it| it.status.success());
        eventually("conmon ends", || !is_there());
    }
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Puts dump.c's program where a machine finds it.
fn compile_dump(provider: &Path, machine: &Machine) {
    let mut gcc = Command::new("gcc");
    gcc.arg("-std=c11").arg("-I").arg(provider).arg("-o").arg(machine.shared().join("dump"));
    gcc.arg(repository().join("crates/accelerator-amd/tests/c/dump.c")).arg("-ldl");
    Said::from(gcc.output().unwrap()).well();
}

#[test]
fn real_podman_builds_an_image_whose_copied_library_loads_on_debian() {
    let Some([provider, trixie]) = real::require_made([PROVIDER, TRIXIE], PROGRAMS) else { return };
    let machines = systems::both();
    if machines.is_empty() {
        return;
    }
    let workshop = Workshop::new(&trixie, &provider);
    let made = workshop.make("docker-build-amd-provider", &workshop.podman_words(), &["--network", "none"]);
    assert!(made.well().starts_with("cargo xtask provider\n"));
    let mut podman = workshop.podman();
    podman.args(["image", "inspect", "--format", "{{.Config.Entrypoint}}", IMAGE]);
    assert_eq!(Said::from(podman.output().unwrap()).well(), "[sleep infinity]\n");
    assert_eq!(workshop.shell(IMAGE, workshop.folder.path(), "ls /opt"), "", "no ROCm");

    for (system, machine) in machines {
        let out = machine.shared().join("build");
        fs::create_dir(&out).unwrap();
        workshop.shell(IMAGE, &out, "cp -r /build/. /out");
        assert_eq!(names(&out), ["lib", LIBRARY, "metadata.yaml"]);
        assert_eq!(names(&out.join("lib")), [LIBRARY]);
        assert_eq!(fs::read(out.join(LIBRARY)).unwrap(), fs::read(provider.join(LIBRARY)).unwrap());
        let metadata = repository().join("deploy/tensorfusion/metadata.yaml");
        assert_eq!(fs::read(out.join("metadata.yaml")).unwrap(), fs::read(metadata).unwrap());

        compile_dump(&provider, &machine);
        let dump = |library: &str| {
            machine.call(&[&format!("{SHARED}/dump"), &format!("{SHARED}/build/{library}")]).well()
        };
        let seen = dump(LIBRARY);
        assert!(seen.contains("\ndeviceCount: 9\n"), "{system}: {seen}");
        let by_link = dump(&format!("lib/{LIBRARY}"));
        assert!(by_link.contains("\ndeviceCount: 9\n"), "{system}: {by_link}");
    }
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_podman_builds_an_image_in_which_therock_lies_whole() {
    let Some([provider, trixie, dist]) = real::require_made([PROVIDER, TRIXIE, DIST], PROGRAMS) else {
        return;
    };
    if !real::require_root(PROGRAMS) {
        return;
    }
    let workshop = Workshop::new(&trixie, &provider);
    let program = format!("rocworker-{}-{}-linux-static", env!("CARGO_PKG_VERSION"), std::env::consts::ARCH);
    workshop.put(&dist.join(&program), &format!("target/dist/{program}"));
    let served = workshop.path("served");
    fs::create_dir(&served).unwrap();
    let archive = served.join(tarball::name("gfx94X-dcgpu", "7.10.0"));
    fs::File::create(&archive).unwrap().write_all(&Tarball::therock("7.10.0").bytes()).unwrap();
    let sha256 = Said::from(Command::new("sha256sum").arg(&archive).output().unwrap()).well();
    let server = Server::start(&served);
    let build = |sha256: &str| {
        let (url, sha256) =
            (format!("ROCM_TARBALL_URL={}", server.url()), format!("ROCM_SHA256={}", &sha256[..64]));
        let flags = ["--network", "host", "--build-arg", &url, "--build-arg", &sha256];
        workshop.make("docker-build-amd-provider-therock", &workshop.podman_words(), &flags)
    };
    let refused = build(&"0".repeat(64)).badly();
    assert!(refused.contains("its SHA-256 is"), "{refused}");
    let made = build(&sha256).well();
    assert!(made.starts_with("cargo xtask provider\ncargo xtask dist\n"), "{made}");

    let look = "rocminfo; readlink /opt/rocm; ls /opt; ls /opt/rocm/; cat /build/lib/*.so >/dev/null; cat /build/metadata.yaml";
    let seen = workshop.shell(&format!("{IMAGE}-therock"), workshop.folder.path(), look);
    let metadata = fs::read_to_string(repository().join("deploy/tensorfusion/metadata.yaml")).unwrap();
    let expected = format!(
        "rocminfo of 7.10.0\n/opt/rocm-7.10.0\nrocm\nrocm-7.10.0\nbin\ninclude\nlib\n\
         {metadata}rocmDistribution: TheRock\nrocmVersion: 7.10.0\n"
    );
    assert_eq!(seen, expected);
}

/// The images' programs are stand-ins: no GPU and no cluster is there that they could be for.
#[test]
fn real_podman_builds_the_images_of_remote_gpus() {
    let Some([provider, trixie]) = real::require_made([PROVIDER, TRIXIE], PROGRAMS) else { return };
    let workshop = Workshop::new(&trixie, &provider);
    let program = |name: &str, text: &str| {
        let file = workshop.path("top/target/hip-remote").join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    };
    let libraries = ["libamdhip64.so.5", "libamdhip64.so.6", "libamdhip64.so.7", "libhip_client_stub.so"];
    for library in libraries {
        program(&format!("lib/{library}"), library);
    }
    program("bin/rocworker-hip-worker", "#!/bin/sh\necho \"$@\"\n");
    let flags = ["--network", "none", "--build-arg", "ROCM=6"];
    let made = workshop.make("docker-build-hip-client", &workshop.podman_words(), &flags).well();
    assert!(made.starts_with("cargo xtask hip-remote\n"), "{made}");
    workshop.make("docker-build-hip-worker", &workshop.podman_words(), &flags[..2]).well();
    let refused = ["--network", "none", "--build-arg", "ROCM=8"];
    let refused = workshop.make("docker-build-hip-client", &workshop.podman_words(), &refused).badly();
    assert!(refused.contains("ROCM=8: give 5, 6 or 7"), "{refused}");

    let run = |image: &str, options: &[&str], arguments: &[&str]| {
        let mut podman = workshop.podman();
        podman.args(["run", "--rm", "--network", "none"]).args(LIMITS).args(options);
        podman.arg(format!("registry.example/lab/tensor-fusion-{image}:1.2.3")).args(arguments);
        Said::from(podman.output().unwrap())
    };
    let mount = |name: &str, place: &str| {
        let folder = workshop.path(name);
        fs::create_dir_all(&folder).unwrap();
        format!("--volume={}:{place}", folder.display())
    };
    // As TensorFusion's webhook runs it: two volumes, and the image's own command.
    let volumes = [mount("libs", "/tensor-fusion"), mount("conf", "/tensor-fusion-conf")];
    run("hip-client", &volumes.each_ref().map(String::as_str), &[]).well();
    let preload = fs::read_to_string(workshop.path("conf/ld.so.preload")).unwrap();
    assert_eq!(preload, "/tensor-fusion/libamdhip64.so.6\n");
    let injected = names(&workshop.path("libs"));
    assert!(libraries.iter().all(|library| injected.iter().any(|name| name == library)), "{injected:?}");

    let key = mount("key", "/etc/rocworker/hip");
    let options = ["--entrypoint", "./tensor-fusion-worker", key.as_str()];
    let refused = run("hip-worker", &options, &["-p", "8000"]).badly();
    assert!(refused.contains("there is no /etc/rocworker/hip/worker.key"), "{refused}");
    fs::write(workshop.path("key/worker.key"), "").unwrap();
    let started = run("hip-worker", &options, &["-p", "8000"]).well();
    assert_eq!(started, "--listen 0.0.0.0 --key /etc/rocworker/hip/worker.key -p 8000\n");
}

#[test]
fn real_make_names_the_tool_that_is_missing() {
    if !real::require(&["make"]) {
        return;
    }
    for (arguments, missing) in [
        (["docker-push-amd-provider", "CONTAINER_TOOL=nowhere/docker"], "nowhere/docker"),
        (["docker-build-amd-provider", "CONTAINER_TOOL=nowhere/docker"], "cargo"),
        (["amd", "IMG_REGISTRY=registry.example"], "cargo"),
    ] {
        let mut make = Command::new(real::program("make").unwrap());
        make.env_clear().env("PATH", "/nowhere").current_dir(repository());
        let refused = Said::from(make.arg("VERSION=1").args(arguments).output().unwrap()).badly();
        assert!(refused.contains(&format!("make: {missing}: No such file or directory")), "{refused}");
    }
}

/// Runs nothing: make prints the commands that it would run.
fn planned(variables: &[(&str, &str)], arguments: &[&str]) -> Said {
    let mut make = Command::new(real::program("make").unwrap());
    make.env_clear().env("PATH", "/usr/bin:/bin").envs(variables.iter().copied());
    make.arg("--dry-run").args(arguments).current_dir(repository()).output().unwrap().into()
}

#[test]
fn real_make_takes_the_tag_from_its_command_line_and_no_empty_name() {
    if !real::require(&["make"]) {
        return;
    }
    let image = "tensor-fusion-amd-provider";
    let version = env!("CARGO_PKG_VERSION");
    let push = "docker-push-amd-provider";
    for (variables, arguments, pushed) in [
        (&[("VERSION", "9")][..], &[push][..], format!("docker push localhost/{image}:{version}\n")),
        (
            &[("IMG_REGISTRY", "r.example"), ("CONTAINER_TOOL", "podman")],
            &[push],
            format!("podman push r.example/{image}:{version}\n"),
        ),
        (&[], &[push, "VERSION=9"], format!("docker push localhost/{image}:9\n")),
        (
            &[],
            &["docker-push-amd-provider-therock"],
            format!("docker push localhost/{image}:{version}-therock\n"),
        ),
    ] {
        assert_eq!(planned(variables, arguments).well(), pushed);
    }
    for name in ["CONTAINER_TOOL", "IMG_REGISTRY", "VERSION"] {
        let refused = planned(&[], &[push, &format!("{name}=")]).badly();
        assert!(refused.contains(&format!("{name} is empty: give it a value")), "{refused}");
    }
}
