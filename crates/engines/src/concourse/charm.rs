//! What the Concourse charm (fourdollars/concourse-ci-machine) does to a worker by itself: scripts that stand in for
//! runc. One of them is for AMD's GPUs, one for the folders of /srv alone, one for NVIDIA's.

use std::path::{Path, PathBuf};

use root::{Kind, Root};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Charm {
    /// Signs, in words, that the charm's mode for AMD's GPUs is in force; empty where it is not.
    pub signs: Vec<String>,
    /// The script of the charm's that is in runc's place. It also mounts the folders of /srv into every container.
    pub script: Option<&'static str>,
    /// The real runc beside a script of the charm's that stands in runc's place. The script gives the GPUs of every
    /// vendor a second time, and /srv's folders too, so the wrapper's policy should name the real runc. It is not the
    /// charm's copy in /opt/bin, which no upgrade refreshes. `None`: the runc on PATH is the right one.
    pub real_runc: Option<PathBuf>,
    /// The script for AMD's GPUs replaces runc, and there is no real one beside it.
    pub lacks_real_runc: bool,
}

/// The charm's script for AMD's GPUs.
const SCRIPT: &str = "/opt/bin/runc-amd-wrapper";
/// The charm's script for the folders of /srv.
const FOLDERS_SCRIPT: &str = "/opt/bin/runc-wrapper";
/// The file that the charm names as containerd's configuration in either GPU mode.
const CONFIG: &str = "containerd-gpu.toml";

impl Charm {
    pub(super) fn read(root: &Root, bin: &Path, config: Option<&Path>) -> Self {
        let mut charm = Self::default();
        let is_script = |path: &str| root.read_start(path, 2).is_ok_and(|start| start == b"#!");
        let leads_to = |link: &Path, script: &str| {
            is_script(script) && root.read_link(link).is_ok_and(|to| to == Path::new(script))
        };
        let runc = bin.join("runc");
        let links = [&*runc, Path::new("/opt/bin/runc")].into_iter().filter(|link| leads_to(link, SCRIPT));
        charm.signs = links.map(|link| format!("{} leads to {SCRIPT}", link.display())).collect();
        // The charm names this file in its GPU mode for NVIDIA too: by itself the file does not show the mode for AMD.
        let config =
            config.filter(|path| !charm.signs.is_empty() && path.file_name() == Some(CONFIG.as_ref()));
        charm.signs.extend(config.map(|path| format!("containerd's configuration is {}", path.display())));
        charm.script = [SCRIPT, FOLDERS_SCRIPT].into_iter().find(|script| leads_to(&runc, script));
        if charm.script.is_some() {
            let real = bin.join("runc.real");
            let runs =
                root.stat(&real).is_ok_and(|meta| meta.kind == Kind::Regular && meta.mode & 0o111 != 0);
            charm.lacks_real_runc = !runs && charm.script == Some(SCRIPT);
            charm.real_runc = Some(real).filter(|_| runs);
        }
        charm
    }

    /// Whether the charm gives this worker's containers AMD's GPUs, or did and left it so.
    #[must_use]
    pub fn is_in_force(&self) -> bool {
        !self.signs.is_empty()
    }
}
