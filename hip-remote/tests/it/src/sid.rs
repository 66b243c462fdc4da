//! Debian sid's ROCm 6.4.3, and a root with the glibc that it needs.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::built;

/// The library in such a root.
pub const ROCM_6: &str = "/usr/lib/x86_64-linux-gnu/libamdhip64.so.6";

/// The unpacked packages.
///
/// # Panics
/// They are not there.
pub fn sid() -> PathBuf {
    let tree = std::env::var_os("ROCWORKER_ROCM_SID").map(PathBuf::from).filter(|tree| tree.is_dir());
    tree.expect(
        "ROCWORKER_ROCM_SID names no folder: \
         `cargo xtask test` fetches ~/.cache/rocworker-tests/rocm/sid-*/tree and names it",
    )
}

/// `$0` is the root, `$1` sid's usr, `$2` where the programs are, `$3` where tests have their files; what follows is executed.
/// A /dev with these nodes and no /sys show no GPU on any machine.
const ENTER: &str = r#"
cd "$0"
mount --bind "$1" usr
mount --bind "$2" ".$2"
mount --bind "$3" ".$3"
mount --rbind /proc proc
for node in null zero urandom; do mount --bind "/dev/$node" "dev/$node"; done
shift 3
exec chroot . "$@"
"#;

/// A folder that only a mount namespace fills. A test reads and writes its etc and run from outside.
#[derive(Debug)]
pub struct SidRoot {
    folder: TempDir,
    usr: PathBuf,
}

impl SidRoot {
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("hip-sid").tempdir().unwrap();
        for name in ["usr", "proc", "dev", "etc/rocworker", "run"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        for node in ["null", "zero", "urandom"] {
            fs::write(folder.path().join("dev").join(node), "").unwrap();
        }
        for name in ["lib", "lib64"] {
            symlink(Path::new("usr").join(name), folder.path().join(name)).unwrap();
        }
        for outside in [built().to_owned(), std::env::temp_dir()] {
            fs::create_dir_all(folder.path().join(outside.strip_prefix("/").unwrap())).unwrap();
        }
        Self { folder, usr: sid().join("usr") }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The start of a command that runs in this root. A program and its arguments follow.
    pub fn starter(&self) -> Vec<String> {
        let enter = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", ENTER].map(str::to_owned);
        let places = [self.folder.path(), &self.usr, built(), &std::env::temp_dir()];
        enter.into_iter().chain(places.map(|place| place.to_str().unwrap().to_owned())).collect()
    }
}

impl Default for SidRoot {
    fn default() -> Self {
        Self::new()
    }
}
