use std::path::Path;

use crate::{Entry, Error, Gpu, Kfd, Module, Nodes, Tree, XcpNames, drm, host, hwmon, pci, write};

/// A machine as far as its GPUs are concerned. Nothing is written before [`Machine::lay_out`].
#[derive(Debug, Clone, Default)]
pub struct Machine {
    gpus: Vec<Gpu>,
    kfd: Option<Kfd>,
    modules: Vec<Module>,
    xcp_names: XcpNames,
    edits: Vec<Edit>,
}

/// A change to the tree after the parts of the machine have made it; changes apply in order.
#[derive(Debug, Clone)]
enum Edit {
    Put(String, Entry),
    Remove(String),
    Overlay(String, Tree),
}

impl Machine {
    /// A machine without GPUs, KFD or modules.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a GPU.
    #[must_use]
    pub fn gpu(mut self, gpu: Gpu) -> Self {
        self.gpus.push(gpu);
        self
    }

    /// Adds KFD, or replaces it.
    #[must_use]
    pub fn kfd(mut self, kfd: Kfd) -> Self {
        self.kfd = Some(kfd);
        self
    }

    /// Adds a loaded module.
    #[must_use]
    pub fn module(mut self, module: Module) -> Self {
        self.modules.push(module);
        self
    }

    /// Chooses how the platform devices of partitions are named.
    #[must_use]
    pub fn xcp_names(mut self, names: XcpNames) -> Self {
        self.xcp_names = names;
        self
    }

    /// Puts anything at a path, in place of what stands there: `/run/systemd/container`, a file
    /// that the kernel would not make, a device with the wrong number. The path may lead through
    /// the machine's own links, so `/sys/class/drm/card1/device/vendor` is the PCI folder's file.
    #[must_use]
    pub fn put(mut self, path: &str, entry: impl Into<Entry>) -> Self {
        self.edits.push(Edit::Put(path.to_owned(), entry.into()));
        self
    }

    /// Removes what stands at a path, with everything beneath it. A link itself goes, not what
    /// it leads to.
    #[must_use]
    pub fn remove(mut self, path: &str) -> Self {
        self.edits.push(Edit::Remove(path.to_owned()));
        self
    }

    /// Lays captured files over a folder, which may be named through links; they win.
    #[must_use]
    pub fn overlay(mut self, folder: &str, tree: Tree) -> Self {
        self.edits.push(Edit::Overlay(folder.to_owned(), tree));
        self
    }

    /// This machine with the parts of the other one beside its own. KFD and the names of partitions are taken
    /// from the other machine only where this one has none.
    #[must_use]
    pub fn beside(mut self, other: Self) -> Self {
        self.gpus.extend(other.gpus);
        self.modules.extend(other.modules);
        self.edits.extend(other.edits);
        self.kfd = self.kfd.or(other.kfd);
        self
    }

    /// The machine's files, in memory.
    ///
    /// # Errors
    /// A malformed PCI address, two parts that claim one place, a path that leads nowhere.
    pub fn tree(&self) -> Result<Tree, Error> {
        let mut tree = Tree::new();
        tree.put("/sys/bus/pci/devices", Entry::Directory);
        for module in &self.modules {
            module.lay_out(&mut tree);
        }
        let mut next_xcp = 0;
        for gpu in &self.gpus {
            let folder = pci::lay_out(gpu, &mut tree)?;
            drm::lay_out(gpu, &folder, self.xcp_names, &mut next_xcp, &mut tree)?;
        }
        let mut majors = Vec::new();
        if self.gpus.iter().any(|gpu| gpu.driver.is_some()) {
            tree.put("/sys/class/drm/version", "drm 1.1.0 20060810\n");
            majors.push((drm::MAJOR, "drm"));
        }
        if let Some(kfd) = &self.kfd {
            kfd.lay_out(&mut tree)?;
            majors.push((kfd.major, "kfd"));
        }
        tree.put("/proc/devices", host::proc_devices(&majors));
        tree.put("/proc/modules", self.modules.iter().map(Module::proc_line).collect::<String>());
        for edit in &self.edits {
            match edit {
                Edit::Put(path, entry) => tree.put(&tree.resolve(path)?, entry.clone()),
                Edit::Remove(path) => tree.remove(&tree.resolve(path)?),
                Edit::Overlay(folder, captured) => {
                    let folder = tree.resolve_folder(folder)?;
                    tree.overlay(&folder, captured);
                }
            }
        }
        hwmon::lay_out(&mut tree)?;
        Ok(tree)
    }

    /// Lays the machine out beneath `directory`, which is made if it is not there.
    ///
    /// # Errors
    /// As [`Machine::tree`], and the first path that the file system refuses. `Nodes::Real`
    /// needs root.
    pub fn lay_out(&self, directory: &Path, nodes: Nodes) -> Result<(), Error> {
        write::write(&self.tree()?, directory, nodes)
    }
}
