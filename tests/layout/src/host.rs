use crate::tree::relative;
use crate::{Entry, Tree};

/// A loaded kernel module: `/sys/module/NAME` and its line in `/proc/modules`.
#[derive(Debug, Clone)]
pub struct Module {
    name: String,
    srcversion: Option<String>,
    version: Option<String>,
}

impl Module {
    /// A loaded module that tells neither its version nor its srcversion.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), srcversion: None, version: None }
    }

    /// Sets `srcversion`, which every module built with CONFIG_MODULE_SRCVERSION_ALL has.
    #[must_use]
    pub fn srcversion(mut self, srcversion: &str) -> Self {
        self.srcversion = Some(srcversion.to_owned());
        self
    }

    /// Sets `version`, which amdgpu has when it was built by DKMS and not in the kernel's tree.
    #[must_use]
    pub fn version(mut self, version: &str) -> Self {
        self.version = Some(version.to_owned());
        self
    }

    pub(crate) fn lay_out(&self, tree: &mut Tree) {
        let folder = format!("/sys/module/{}", self.name);
        tree.put(&format!("{folder}/initstate"), "live\n");
        tree.put(&format!("{folder}/refcnt"), "0\n");
        for (file, value) in [("srcversion", &self.srcversion), ("version", &self.version)] {
            if let Some(value) = value {
                tree.put(&format!("{folder}/{file}"), format!("{value}\n"));
            }
        }
        let driver = format!("/sys/bus/pci/drivers/{}", self.name);
        let link = format!("{folder}/drivers/pci:{}", self.name);
        tree.put(&link, Entry::Link(relative(&link, &driver)));
        let back = format!("{driver}/module");
        tree.put(&back, Entry::Link(relative(&back, &folder)));
    }

    /// `name size refcount users state address`, the address hidden as from an ordinary user
    /// (kernel/module/procfs.c). The size is synthetic.
    pub(crate) fn proc_line(&self) -> String {
        format!("{} 16384 0 - Live 0x0000000000000000\n", self.name)
    }
}

/// `/proc/devices`: the majors of the devices that the machine has (fs/proc/devices.c).
pub(crate) fn proc_devices(character: &[(u32, &str)]) -> String {
    let mut majors = vec![(1, "mem"), (5, "/dev/tty"), (10, "misc")];
    majors.extend(character);
    majors.sort_unstable();
    let lines: String = majors.iter().map(|(major, name)| format!("{major:3} {name}\n")).collect();
    format!("Character devices:\n{lines}\nBlock devices:\n  8 sd\n")
}
