//! Python with PyPI's hip-python.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// What pip installs, all of one release. Another release is another folder.
const PACKAGES: [&str; 3] = ["hip-python", "rocm-bindings-hip", "rocm-bindings-core"];
const RELEASE: &str = "10.0.0.0.1.2";

/// The interpreter of a virtual environment, which stays beside the builds for the next run.
pub fn python() -> &'static Path {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    PYTHON.get_or_init(|| {
        let folder = test_gpu::built::folder().join(format!("hip-python-{RELEASE}"));
        let python = folder.join("bin/python3");
        // nextest has a process for each test: one of them installs.
        let lock = std::fs::File::create(test_gpu::built::folder().join("python.lock")).unwrap();
        lock.lock().unwrap();
        if folder.join("whole").exists() {
            return python;
        }
        let _ = std::fs::remove_dir_all(&folder);
        run(Command::new("python3").args(["-m", "venv"]).arg(&folder));
        let packages = PACKAGES.map(|name| format!("{name}=={RELEASE}"));
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        run(Command::new(&python).args(install).args(packages));
        std::fs::write(folder.join("whole"), "").unwrap();
        python
    })
}

fn run(command: &mut Command) {
    let done = command.output().unwrap();
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
}
