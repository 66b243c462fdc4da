//! Machines with an AMD GPU, as far as a driver is concerned.

use layout::{Entry, Gpu, Machine, Nodes};
use root::Root;
use support::detect::scratch;

pub(crate) const KERNEL: &str = "6.8.0-45-generic";
pub(crate) const PACKAGE: &str = "1:6.16.13.30300300-2327507.24.04";
/// What AMD's package of that version registers with dkms.
pub(crate) const SOURCE: &str = "6.16.13-2327507.24.04";

/// Ubuntu 24.04 with apt's and dpkg's records, and no driver of AMD's.
pub(crate) fn ubuntu() -> Machine {
    Machine::new()
        .gpu(Gpu::amd("0000:03:00.0", 0x7448).unbound())
        .put("/proc/sys/kernel/osrelease", format!("{KERNEL}\n").as_str())
        .put(
            "/proc/version",
            "Linux version 6.8.0-45-generic (buildd@lcy02-amd64-115) (x86_64-linux-gnu-gcc-13 (Ubuntu \
             13.2.0-23ubuntu4) 13.2.0, GNU ld (GNU Binutils for Ubuntu) 2.42) #45-Ubuntu SMP\n",
        )
        .put("/proc/sys/kernel/random/boot_id", "0f6a3854-90fa-44ce-9b76-f16b8805f492\n")
        .put("/proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/vda1\n")
        .put("/etc/os-release", "ID=ubuntu\nVERSION_ID=\"24.04\"\nPRETTY_NAME=\"Ubuntu 24.04.1 LTS\"\n")
        .put("/var/lib/dpkg/status", status(&[]).as_str())
        .put("/etc/group", "root:x:0:\nrender:x:992:\n")
}

/// Debian 12, whose kernel's headers are there.
pub(crate) fn debian() -> Machine {
    ubuntu()
        .put("/etc/os-release", "ID=debian\nVERSION_ID=\"12\"\n")
        .put("/proc/sys/kernel/osrelease", "6.1.0-50-amd64\n")
        .put("/proc/version", "Linux version 6.1.0-50-amd64 (debian-kernel@lists.debian.org) (gcc-12 (Debian 12.2.0-14) 12.2.0)\n")
        .put("/lib/modules/6.1.0-50-amd64/build/include", Entry::Directory)
}

/// dpkg's database with these packages installed.
pub(crate) fn status(packages: &[(&str, &str)]) -> String {
    let stanza = |(name, version): &(&str, &str)| {
        format!("Package: {name}\nStatus: install ok installed\nArchitecture: all\nVersion: {version}\n\n")
    };
    [("base-files", "12ubuntu4")].iter().chain(packages).map(stanza).collect()
}

/// How far dkms has come with a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Come {
    Added,
    Built,
    Installed,
}

/// What dkms 3.0.10 leaves of amdgpu, as it laid out a trivial module of that name here.
pub(crate) fn dkms(machine: Machine, version: &str, kernel: &str, come: Come) -> Machine {
    let tree = "/var/lib/dkms/amdgpu";
    let built = format!("{tree}/{version}/{kernel}/x86_64");
    let source = format!("/usr/src/amdgpu-{version}");
    let mut machine = machine
        .put(&format!("{source}/dkms.conf"), "PACKAGE_NAME=amdgpu\n")
        .put(&format!("{tree}/{version}/source"), Entry::Link(source));
    if come == Come::Added {
        return machine.put(&format!("{tree}/{version}/build"), Entry::Directory);
    }
    machine = machine
        .put(&format!("{built}/log/make.log"), "make\n")
        .put(&format!("{built}/module/amdgpu.ko.zst"), "a module\n");
    if come == Come::Installed {
        machine = machine
            .put(&format!("{tree}/kernel-{kernel}-x86_64"), Entry::Link(format!("{version}/{kernel}/x86_64")))
            .put(&format!("/lib/modules/{kernel}/updates/dkms/amdgpu.ko.zst"), "a module\n");
    }
    machine
}

/// The driver 30.30.3 with all that it was brought with, built and installed.
pub(crate) fn done() -> Machine {
    let packages = [
        ("linux-headers-6.8.0-45-generic", "6.8.0-45.45"),
        ("linux-modules-extra-6.8.0-45-generic", "6.8.0-45.45"),
        ("gcc-13", "13.2.0"),
        ("python3-setuptools", "68.1.2-2ubuntu1"),
        ("amdgpu-dkms", PACKAGE),
    ];
    let machine = ubuntu()
        .put("/var/lib/dpkg/status", status(&packages).as_str())
        .put(&format!("/lib/modules/{KERNEL}/build/include"), Entry::Directory);
    dkms(machine, SOURCE, KERNEL, Come::Installed)
}

/// The machine beneath a folder that goes with the first of the two.
pub(crate) fn beneath(machine: &Machine) -> (tempfile::TempDir, Root) {
    let folder = scratch();
    machine.lay_out(folder.path(), Nodes::Recorded).unwrap();
    let root = Root::open(folder.path()).unwrap();
    (folder, root)
}
