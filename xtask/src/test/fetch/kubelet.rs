//! A kubelet of Debian 12's source package `kubernetes`: no suite of Debian's, and no registry that the tests use, has the
//! program itself.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::apt::{Apt, extract};
use super::remove;
use crate::command::Command;

const SUITE: &str = "bookworm";
/// Kubernetes 1.20.2 with everything that it imports.
const SOURCE: &str = "kubernetes";
/// The suite's own Go.
const GO: [&str; 2] = ["golang-1.19-go", "golang-1.19-src"];
const GO_ROOT: &str = "usr/lib/go-1.19";
/// Go finds the source by the folder's name beneath GOPATH.
const IMPORTED_AS: &str = "src/k8s.io/kubernetes";
/// Leaves out the clients of clouds, which look for an account for seconds at each start, and the runtime Docker: together a
/// third of the build.
const TAGS: &str = "providerless,dockerless";
/// A version without this setting is v0.0.0-master.
const FLAGS: &str = "-s -w -X k8s.io/component-base/version.gitVersion=v1.20.2";
/// Where the kubelet calls a plugin, and the arguments with which it does.
const CALLS: &str = "pkg/kubelet/cm/devicemanager/endpoint.go";
const ARGUMENTS: &str = "grpc.WithInsecure(), grpc.WithBlock(),";
/// Kubelets before 1.26 send the socket's path as the plugin's `:authority`, which HTTP does not allow and Rust's h2 refuses.
/// 1.26 has this argument (kubernetes/kubernetes, pull request 112597).
const AUTHORITY: &str = " grpc.WithAuthority(\"localhost\"),";
/// The kubelet's name in its folder.
pub(super) const PROGRAM: &str = "kubelet";

/// A text that names everything that is built.
pub(super) fn recipe() -> String {
    format!("{SUITE} {SOURCE} {GO:?} {TAGS} {FLAGS}{AUTHORITY}")
}

/// Builds the kubelet from 115 MB of archives, in minutes, and keeps the program alone. Needs no root, no C compiler and
/// no installed Go.
pub(super) fn fetch(place: &Path) -> Result<()> {
    let work = place.join("work");
    let apt = Apt::with_sources(SUITE, work.join("apt"))?;
    let (go, path) = (work.join("go"), work.join("gopath"));
    extract(&apt.download(&GO, &work.join("archives"))?, &go)?;
    let source = path.join(IMPORTED_AS);
    fs::create_dir_all(&source).with_context(|| format!("making {}", source.display()))?;
    let original = original(&apt.download_source(SOURCE, &work.join("source"))?)?;
    Command::new(["tar", "--extract", "--gzip", "--strip-components=1", "--file"])
        .arguments([&original])
        .inside(&source)
        .run()?;
    name_plugins(&source.join(CALLS))?;
    build(&source, &go.join(GO_ROOT), &path, &work, &place.join(PROGRAM))?;
    remove(&work)
}

/// Has the kubelet name plugins as 1.26 does.
fn name_plugins(file: &Path) -> Result<()> {
    let code = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    let (before, after) = code
        .split_once(ARGUMENTS)
        .with_context(|| format!("{} does not call plugins with `{ARGUMENTS}`", file.display()))?;
    let code = format!("{before}{ARGUMENTS}{AUTHORITY}{after}");
    fs::write(file, code).with_context(|| format!("writing {}", file.display()))
}

/// A static program, as Debian builds it. Debian's patches change only what kubectl prints, so that they are left out.
fn build(source: &Path, go: &Path, path: &Path, work: &Path, program: &Path) -> Result<()> {
    Command::new([go.join("bin/go")])
        .arguments(["build", "-trimpath", "-tags", TAGS, "-ldflags", FLAGS, "-o"])
        .arguments([program])
        .arguments(["./cmd/kubelet"])
        .environment("GOROOT", go)
        .environment("GOPATH", path)
        .environment("GOCACHE", work.join("cache"))
        .environment("GO111MODULE", "off")
        .environment("GOENV", "off")
        .environment("GOFLAGS", "")
        .environment("CGO_ENABLED", "0")
        .inside(source)
        .run()
}

/// The archive of Kubernetes' own files among those of a source package.
fn original(files: &[PathBuf]) -> Result<PathBuf> {
    let named = |file: &&PathBuf| file.to_string_lossy().ends_with(".orig.tar.gz");
    files.iter().find(named).cloned().with_context(|| format!("{SOURCE} has no .orig.tar.gz: {files:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_original_archive_is_taken_of_a_source_package() {
        let files = ["k.dsc", "k_1.debian.tar.xz", "k_1.orig.tar.gz"].map(PathBuf::from);
        assert_eq!(original(&files).unwrap(), Path::new("k_1.orig.tar.gz"));
        let [description, debians, _] = files;
        let refused = original(&[description, debians]).unwrap_err().to_string();
        assert!(refused.starts_with("kubernetes has no .orig.tar.gz: [\"k.dsc\""), "{refused}");
    }

    #[test]
    fn a_kubelet_names_plugins_once_its_call_is_found() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(&file, format!("dial({ARGUMENTS}\n)\n")).unwrap();
        name_plugins(file.path()).unwrap();
        let code = fs::read_to_string(&file).unwrap();
        assert_eq!(code, format!("dial({ARGUMENTS} grpc.WithAuthority(\"localhost\"),\n)\n"));
        fs::write(&file, "dial()").unwrap();
        let refused = name_plugins(file.path()).unwrap_err().to_string();
        assert!(refused.contains("does not call plugins with `grpc.WithInsecure(), "), "{refused}");
    }
}
