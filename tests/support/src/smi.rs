//! AMD's rocm-smi and amd-smi as Debian packs them, run on a laid-out machine. They read /sys and know no other place:
//! each run has a mount namespace, in which the packages' tree is the root file system and has the machine's sys and dev.
//! What they ask of libdrm and the driver's nodes fails there; what they read from files is the machine's. Needs root.

use std::path::Path;
use std::process::{Command, Output};

/// The variable by which `cargo xtask test` tells where the packages are unpacked.
pub const VARIABLE: &str = "ROCWORKER_SMI_SID";

/// The programs: their names are links for an env(1) that the tree does not have.
pub const ROCM_SMI: &str = "/usr/libexec/rocm_smi/rocm_smi.py";
pub const AMD_SMI: &str = "/usr/libexec/amdsmi_cli/amdsmi_cli.py";

/// Sets the stage: `$1` is the tree, `$2` the machine; what follows are the program and its arguments.
const SET: &str = r#"
set -e
tree=$1; machine=$2; shift 2
mkdir -p "$tree/sys" "$tree/proc" "$tree/dev" "$tree/tmp" "$tree/run" "$tree/var/log"
mount --bind "$machine/sys" "$tree/sys"
mount --bind /proc "$tree/proc"
for folder in dev tmp run var/log; do mount -t tmpfs none "$tree/$folder"; done
mkdir "$tree/dev/shm"
cp -a "$machine/dev/." "$tree/dev/"
for node in null zero urandom; do touch "$tree/dev/$node"; mount --bind "/dev/$node" "$tree/dev/$node"; done
exec chroot "$tree" /usr/bin/python3 -B "$@"
"#;

/// Runs one of them on the machine that is laid out, with real device nodes, beneath a folder.
///
/// # Panics
/// Where there is no unshare(1).
pub fn run(tree: &Path, machine: &Path, program: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", SET, "smi"]);
    command.args([tree, machine]).arg(program).args(arguments).output().unwrap()
}
