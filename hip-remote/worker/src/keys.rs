//! `rocworker-hip-worker key DIR`.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use hip_transport::WorkerKey;

/// Makes a worker's key and the key of its clients.
///
/// # Errors
/// A file is there already, or cannot be written.
pub fn make(dir: &Path) -> Result<(), String> {
    let failed = |error| format!("the folder {} cannot be made: {error}", dir.display());
    // Others need the parents, such as /etc/rocworker.
    if let Some(parent) = dir.parent() {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed)?;
    let key = WorkerKey::make()?;
    let (worker, client) = (dir.join("worker.key"), dir.join("client.key"));
    key.write(&worker)?;
    key.client().write(&client)?;
    eprintln!(
        "Start the worker with --key {}. Copy {} to the clients, and name it there by ROCWORKER_HIP_KEY or --key.",
        worker.display(),
        client.display()
    );
    Ok(())
}
