//! Lists the engines, and how each finds the wrapper.

use std::path::{Path, PathBuf};

use support::real;

/// The folder that holds nothing but the wrapper under the name `runc`.
pub const SHIM_FOLDER: &str = "/opt/rocworker/shim";
const PATH: &str = "/usr/sbin:/usr/bin";

/// A release of containerd, with the runc that its suite of Debian has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Engine {
    pub name: &'static str,
    /// Names the unpacked `containerd`: set by `cargo xtask test`.
    variable: &'static str,
    way: Way,
}

/// How the shims find the wrapper as `runc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// A launcher gives containerd a PATH, which its shims inherit: all that 1.x offers.
    Launcher,
    /// containerd's own configuration gives its shims a PATH, from 2.0.
    ShimManager,
}

pub const CONTAINERD_1_6: Engine =
    Engine { name: "containerd 1.6", variable: "ROCWORKER_CONTAINERD_BOOKWORM", way: Way::Launcher };
pub const CONTAINERD_1_7: Engine =
    Engine { name: "containerd 1.7", variable: "ROCWORKER_CONTAINERD_TRIXIE", way: Way::Launcher };
pub const CONTAINERD_2_1: Engine =
    Engine { name: "containerd 2.1", variable: "ROCWORKER_CONTAINERD_SID", way: Way::ShimManager };

/// The newest release, and with `cargo xtask test --all` those before it.
pub fn releases() -> Vec<Engine> {
    [vec![CONTAINERD_2_1], older()].concat()
}

/// The releases before the newest, with `cargo xtask test --all` only.
pub fn older() -> Vec<Engine> {
    if real::is_all() { vec![CONTAINERD_1_6, CONTAINERD_1_7] } else { Vec::new() }
}

/// The parts of this repository that an engine's test needs.
#[derive(Clone, Debug)]
pub struct Unpacked {
    /// The root of the engine's own file system.
    pub tree: PathBuf,
    /// The wrapper as it ships.
    pub wrapper: PathBuf,
}

impl Engine {
    /// The paths of the engine and the wrapper, unless the calling test is to be skipped.
    ///
    /// # Panics
    /// Where something is missing in a full run.
    #[must_use = "a test that cannot run must return"]
    #[track_caller]
    pub fn unpacked(&self) -> Option<Unpacked> {
        let containerd = real::require_root_and_built(self.variable, &["unshare", "nsenter", "pivot_root"])?;
        let wrapper = real::require_root_and_built("ROCWORKER_WRAPPER", &["busybox"])?;
        // TREE/usr/bin/containerd
        let tree = containerd.ancestors().nth(3).map(Path::to_owned).unwrap();
        Some(Unpacked { tree, wrapper })
    }

    /// The PATH that containerd is started with where the wrapper is to be found as `runc`.
    pub fn path(&self) -> String {
        match self.way {
            Way::Launcher => format!("{SHIM_FOLDER}:{PATH}"),
            Way::ShimManager => PATH.to_owned(),
        }
    }

    /// containerd's configuration, without CRI: Concourse does not use it, and it starts twice as fast.
    pub fn config(&self, with_wrapper: bool) -> String {
        let version = if self.way == Way::ShimManager { 3 } else { 2 };
        let shims =
            format!("[plugins.\"io.containerd.shim.v1.manager\"]\nenv = [\"PATH={SHIM_FOLDER}:{PATH}\"]\n");
        format!(
            "version = {version}\nroot = \"/stage/containerd\"\nstate = \"/run/containerd\"\n\
             disabled_plugins = [\"io.containerd.grpc.v1.cri\", \"io.containerd.cri.v1.runtime\", \
             \"io.containerd.cri.v1.images\", \"io.containerd.internal.v1.opt\"]\n\
             [grpc]\naddress = \"/run/containerd/containerd.sock\"\n{}",
            if with_wrapper && self.way == Way::ShimManager { &shims } else { "" }
        )
    }

    /// The PATH without the wrapper.
    pub fn plain_path(&self) -> String {
        PATH.to_owned()
    }
}
