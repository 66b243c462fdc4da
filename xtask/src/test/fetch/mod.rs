//! Fetches components for the tests into the user's cache folder, so that a second checkout finds them.

mod apt;
mod environment;
pub(crate) mod kernels;
mod kubelet;
mod linux_source;
mod modules;
mod rust;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use apt::Needed;
use environment::Apt;
use sha2::{Digest as _, Sha256};

use super::step::Steps;
use crate::command::Command;
use crate::privilege::Privilege;
use crate::refusal::no_argument;

/// A folder in the cache.
#[derive(Debug)]
struct Component {
    what: &'static str,
    folder: &'static str,
    recipe: Recipe,
    /// The environment variables that tell the tests where the component is, each with the path inside that
    /// it names.
    variables: &'static [(&'static str, &'static str)],
}

/// How a folder is made. Another recipe makes another folder, so that a checkout changes nothing beneath the
/// tests of another checkout.
#[derive(Debug)]
enum Recipe {
    /// Debian's packages of a suite, unpacked as `tree` and never installed.
    Packages(&'static str, &'static [&'static str], Needed),
    /// A suite's smallest system with apt, and these packages in it.
    System(&'static str, &'static str),
    /// The kernel of a suite. It is fetched once: a newer one comes when its folder is removed.
    Kernel(&'static str),
    /// Files of Debian's kernel sources: `linux_source`.
    Source,
    /// amdgpu.ko of several kernels: `modules`.
    Modules,
    /// A kubelet built from a source package: `kubelet`.
    Kubelet,
    /// A compiler with its library's source: `rust`.
    Rust,
    /// PyPI's releases that this file lists, and whether Debian's python3-apt is among their modules.
    Python(&'static str, Apt),
    /// npm's releases that package-lock.json in this folder lists.
    Npm(&'static str),
}

/// The components in the order in which they are fetched: the modules belong to the kernels.
const COMPONENTS: &[Component] = &[
    // containerd 1.6 with runc 1.1, crun 1.8, docker 20.10
    Component {
        what: "engines of Debian 12",
        folder: "engines/bookworm",
        recipe: Recipe::Packages("bookworm", &["containerd", "runc", "crun", "docker.io"], Needed::Too),
        variables: &[("ROCWORKER_CONTAINERD_BOOKWORM", "tree/usr/bin/containerd")],
    },
    // containerd 1.7 with runc 1.1, crun 1.21, docker 26.1; a udevadm that verifies rules, which it does from systemd 254 on;
    // that systemd, which starts a machine in QEMU; docker's client, which Debian 12 has in the daemon's package
    Component {
        what: "engines, udev and systemd of Debian 13",
        folder: "engines/trixie",
        recipe: Recipe::Packages(
            "trixie",
            &["containerd", "runc", "crun", "docker.io", "udev", "systemd", "docker-cli"],
            Needed::Too,
        ),
        variables: &[
            ("ROCWORKER_CONTAINERD_TRIXIE", "tree/usr/bin/containerd"),
            ("ROCWORKER_UDEVADM_TRIXIE", "tree/usr/bin/udevadm"),
        ],
    },
    // containerd 2.1 with runc 1.3, crun 1.28, docker 28.5 (November 2026); a criu that starts on a kernel of today, which
    // Debian 12's does not, and what it calls
    Component {
        what: "engines of Debian sid",
        folder: "engines/sid",
        recipe: Recipe::Packages(
            "sid",
            &["containerd", "runc", "crun", "docker.io", "criu", "tar", "gzip", "docker-cli"],
            Needed::Too,
        ),
        variables: &[("ROCWORKER_CONTAINERD_SID", "tree/usr/bin/containerd")],
    },
    // CNI's plugins 1.9 (November 2026), for pods through containerd's CRI
    Component {
        what: "CNI's plugins",
        folder: "cni/sid",
        recipe: Recipe::Packages("sid", &["containernetworking-plugins"], Needed::Not),
        variables: &[("ROCWORKER_CNI", "tree/usr/lib/cni")],
    },
    // Programs of another project that read what rocworker writes. Debian's packages would start services on every address.
    Component {
        what: PROMETHEUS,
        folder: "prometheus",
        recipe: Recipe::Packages("bookworm", &["prometheus", "prometheus-node-exporter"], Needed::Not),
        variables: &[],
    },
    Component {
        what: "Linux 6.1 and its headers",
        folder: "kernels/bookworm",
        recipe: Recipe::Kernel("bookworm"),
        variables: &[("ROCWORKER_KERNELS", ".."), ("ROCWORKER_APT_HEADERS", kernels::HEADERS)],
    },
    Component {
        what: "Linux 6.12",
        folder: "kernels/trixie",
        recipe: Recipe::Kernel("trixie"),
        variables: &[],
    },
    // Tests of apt and dpkg run on copies of it; what is added mounts, and counts a program's calls.
    Component {
        what: "a system of Debian 13",
        folder: "apt/trixie",
        recipe: Recipe::System("trixie", "mount,strace"),
        variables: &[("ROCWORKER_APT_TRIXIE", "")],
    },
    // Incus 6.0: its daemon wants the libraries, groups and programs of its release around it.
    Component {
        what: "a system of Debian 13 with Incus",
        folder: "incus/trixie",
        recipe: Recipe::System("trixie", "incus,mount"),
        variables: &[("ROCWORKER_INCUS_TRIXIE", "")],
    },
    Component {
        what: "kernel source",
        folder: "linux-source",
        recipe: Recipe::Source,
        variables: &[("ROCWORKER_AMDGPU_HEADERS", "")],
    },
    Component {
        what: "amdgpu modules",
        folder: "amdgpu-modules",
        recipe: Recipe::Modules,
        variables: &[("ROCWORKER_AMDGPU_MODULES", "")],
    },
    // Kubernetes 1.20.2, which speaks the CRI of Debian 12's containerd and knows no CDI devices
    Component {
        what: "a kubelet",
        folder: "kubelet",
        recipe: Recipe::Kubelet,
        variables: &[("ROCWORKER_KUBELET", kubelet::PROGRAM)],
    },
    // rocm-smi 6.4 and amd-smi 10.1 (November 2026) with the Python that runs them: AMD's own readers of a card's files
    Component {
        what: "rocm-smi and amd-smi",
        folder: "smi/sid",
        recipe: Recipe::Packages("sid", &["rocm-smi", "amd-smi"], Needed::Too),
        variables: &[("ROCWORKER_SMI_SID", "tree")],
    },
    // HIP and HSA 6.4.3, AMD SMI 10.1 (November 2026): headers say which status codes there are, and hip-remote's worker opens
    // HIP's library
    Component {
        what: "ROCm's headers and HIP's library",
        folder: "rocm/sid",
        recipe: Recipe::Packages(
            "sid",
            &["libamdhip64-dev", "libhsa-runtime-dev", "libamd-smi-dev"],
            Needed::Too,
        ),
        variables: &[("ROCWORKER_ROCM_HEADERS", "tree/usr/include"), ("ROCWORKER_ROCM_SID", "tree")],
    },
    // What the kubelet of Kubernetes 1.32 says to device plugins and monitors, and that of 1.36 to container runtimes
    // (November 2026), in protobuf
    Component {
        what: "the kubelet's APIs",
        folder: "kubelet-apis",
        recipe: Recipe::Packages(
            "sid",
            &["golang-github-kubernetes-kubelet-dev", "golang-k8s-cri-api-dev"],
            Needed::Not,
        ),
        variables: &[
            ("ROCWORKER_KUBELET_APIS", "tree/usr/share/gocode/src/k8s.io/kubelet/pkg/apis"),
            ("ROCWORKER_CRI_API", "tree/usr/share/gocode/src/k8s.io/cri-api/pkg/apis/runtime/v1/api.proto"),
        ],
    },
    // Go 1.27 and purego 0.11 (November 2026), by which TensorFusion's hypervisor loads a provider. Debian's Go before sid's is
    // older than purego asks for. The packages' names have no version, so that sid may move on.
    Component {
        what: "Go and purego",
        folder: "go/sid",
        recipe: Recipe::Packages("sid", &["golang-go", "golang-github-ebitengine-purego-dev"], Needed::Too),
        variables: &[("ROCWORKER_GO", "tree/usr/lib/go"), ("ROCWORKER_GO_PATH", "tree/usr/share/gocode")],
    },
    Component {
        what: CHARMCRAFT,
        folder: "charmcraft",
        recipe: Recipe::Python("tests/it/charm/requirements.txt", Apt::Linked),
        variables: &[("ROCWORKER_CHARMCRAFT", "")],
    },
    // Grafana's types of a dashboard, for the test that reads deploy/grafana/rocworker.json
    Component {
        what: "Grafana's SDK",
        folder: "grafana-sdk",
        recipe: Recipe::Python("crates/telemetry/tests/it/alerts/requirements.txt", Apt::Absent),
        variables: &[("ROCWORKER_GRAFANA_SDK", "")],
    },
    // What reads deploy/kubernetes: schemas and kubectl of Kubernetes 1.37, and Google's CEL (November 2026)
    Component {
        what: "kubectl, Kubernetes' schemas and CEL",
        folder: "kubernetes-tools",
        recipe: Recipe::Python("crates/device-plugin/tests/it/deploy/requirements.txt", Apt::Absent),
        variables: &[("ROCWORKER_KUBERNETES_TOOLS", "")],
    },
    Component {
        what: "axe and Chromium's driver",
        folder: "browser",
        recipe: Recipe::Npm("crates/exporter/tests/browser"),
        variables: &[("ROCWORKER_BROWSER", "")],
    },
];

/// Only a part of `cargo xtask test --all` needs it, which fetches it.
const RUST: Component = Component {
    what: "Rust with its library's source",
    folder: "rust/sid",
    recipe: Recipe::Rust,
    variables: &[],
};

const PROMETHEUS: &str = "Prometheus and node_exporter";
const CHARMCRAFT: &str = "charmcraft";

/// Fetches what is not there yet.
pub(super) fn all(steps: &Steps, privilege: Privilege) -> Result<()> {
    let remedy = "see whether Debian's mirror, pypi.org and registry.npmjs.org can be reached";
    for component in COMPONENTS {
        if !component.place()?.is_dir() {
            steps.run(component.what, remedy, || component.fetch(privilege))?;
        }
    }
    println!("what the tests fetch is in {}", cache()?.display());
    Ok(())
}

/// The variables that the tests read.
pub(super) fn variables() -> Result<Vec<(&'static str, PathBuf)>> {
    let mut variables = Vec::new();
    for component in COMPONENTS {
        let place = component.place()?;
        variables.extend(component.variables.iter().map(|(name, inside)| {
            // `..` is resolved here: a test appends to it.
            let path =
                if *inside == ".." { place.parent().unwrap_or(&place).into() } else { place.join(inside) };
            (*name, path)
        }));
    }
    Ok(variables)
}

/// The folder with prometheus, promtool and node_exporter, fetched if it is not there.
pub(crate) fn prometheus() -> Result<PathBuf> {
    Ok(named(PROMETHEUS)?.join("tree/usr/bin"))
}

/// A compiler beside whose library lies its source, fetched if it is not there.
pub(crate) fn rust() -> Result<PathBuf> {
    RUST.fetch(Privilege::Root)?;
    Ok(RUST.place()?.join(rust::PROGRAM))
}

/// `cargo xtask charmcraft`: fetches its environment if it is not there.
pub(crate) fn run_charmcraft(arguments: &[String]) -> Result<()> {
    no_argument("charmcraft", arguments)?;
    println!("{} -m charmcraft", named(CHARMCRAFT)?.join("bin/python").display());
    Ok(())
}

fn named(what: &str) -> Result<PathBuf> {
    let component =
        COMPONENTS.iter().find(|it| it.what == what).with_context(|| format!("no component {what}"))?;
    component.fetch(Privilege::Root)?;
    component.place()
}

impl Component {
    fn place(&self) -> Result<PathBuf> {
        Ok(cache()?.join(match self.recipe.digest()? {
            Some(digest) => format!("{}-{digest}", self.folder),
            None => self.folder.to_owned(),
        }))
    }

    fn fetch(&self, privilege: Privilege) -> Result<()> {
        whole_or_absent(&self.place()?, |place| self.recipe.make(place, privilege))
    }
}

impl Recipe {
    /// The end of a folder's name, which distinguishes it from the folder of another recipe.
    fn digest(&self) -> Result<Option<String>> {
        let text = match self {
            Self::Kernel(_) => return Ok(None),
            Self::Packages(..) | Self::System(..) => format!("{self:?}"),
            Self::Source => linux_source::recipe(),
            Self::Modules => modules::recipe(),
            Self::Kubelet => kubelet::recipe(),
            Self::Rust => rust::recipe(),
            Self::Python(list, _) => environment::list(list)?,
            Self::Npm(folder) => environment::list(&format!("{folder}/package-lock.json"))?,
        };
        let digest = Sha256::digest(text);
        Ok(Some(digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect()))
    }

    /// Makes it in a folder that is not there yet. Only a system's files are root's.
    fn make(&self, place: &Path, privilege: Privilege) -> Result<()> {
        match self {
            Self::Packages(suite, packages, needed) => apt::unpack(place, suite, packages, *needed),
            Self::System(suite, packages) => apt::system(place, suite, packages, privilege),
            Self::Kernel(suite) => kernels::unpack(place, suite),
            Self::Source => linux_source::fetch(place),
            Self::Modules => modules::fetch(place),
            Self::Kubelet => kubelet::fetch(place),
            Self::Rust => rust::fetch(place),
            Self::Python(list, apt) => environment::python(place, list, *apt),
            Self::Npm(folder) => environment::npm(place, folder),
        }
    }
}

/// `rocworker-tests` in `$XDG_CACHE_HOME` or `~/.cache` (XDG Base Directory Specification).
fn cache() -> Result<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    Ok(caches.context("neither XDG_CACHE_HOME nor HOME names a folder")?.join("rocworker-tests"))
}

/// Makes a folder beside its place, and renames it once it is whole. Of two checkouts that do so at once the first one's
/// stays, and the other's is removed.
///
/// # Errors
/// `make` failed; the next run calls it again.
fn whole_or_absent(place: &Path, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    if place.is_dir() {
        return Ok(());
    }
    let parent = place.parent().context("a place without a folder")?;
    fs::create_dir_all(parent).with_context(|| format!("making {}", parent.display()))?;
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    let unfinished = place.with_file_name(format!("{name}.unfinished-{}", std::process::id()));
    let made = make(&unfinished).and_then(|()| match fs::rename(&unfinished, place) {
        Err(error) if !place.is_dir() => {
            Err(error).with_context(|| format!("renaming {} to {}", unfinished.display(), place.display()))
        }
        _ => Ok(()),
    });
    if unfinished.exists() {
        remove(&unfinished)?;
    }
    made
}

/// Removes a folder, which may be root's or hold what a program has made.
fn remove(folder: &Path) -> Result<()> {
    Command::new(["rm", "-rf", "--one-file-system"]).arguments([folder]).read().map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_variable_is_named_once_and_each_component_has_a_place_of_its_own() {
        let variables = variables().unwrap();
        let mut names: Vec<_> = variables.iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), variables.len());
        let mut places: Vec<_> = COMPONENTS.iter().map(|it| it.place().unwrap()).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), COMPONENTS.len());
    }

    #[test]
    fn another_list_of_packages_is_another_place() {
        let [one, other] = [&["a"][..], &["a", "b"]]
            .map(|packages| Recipe::Packages("sid", packages, Needed::Too).digest().unwrap());
        assert_ne!(one, other);
        assert_eq!(one.unwrap().len(), 8);
    }

    #[test]
    fn a_folder_is_whole_or_not_there_and_of_two_that_are_made_at_once_the_first_stays() {
        let cache = tempfile::tempdir().unwrap();
        let place = cache.path().join("engines/sid");
        let put = |folder: &Path, text: &str| {
            fs::create_dir_all(folder).unwrap();
            fs::write(folder.join("file"), text).unwrap();
        };
        let failed = whole_or_absent(&place, |unfinished| {
            put(unfinished, "half");
            anyhow::bail!("the server is away")
        });
        assert_eq!(failed.unwrap_err().to_string(), "the server is away");
        assert_eq!(fs::read_dir(cache.path().join("engines")).unwrap().count(), 0);
        whole_or_absent(&place, |unfinished| {
            put(&place, "first");
            put(unfinished, "second");
            Ok(())
        })
        .unwrap();
        assert_eq!(fs::read_to_string(place.join("file")).unwrap(), "first");
        assert_eq!(fs::read_dir(cache.path().join("engines")).unwrap().count(), 1);
        whole_or_absent(&place, |_| panic!("it is there")).unwrap();
    }
}
