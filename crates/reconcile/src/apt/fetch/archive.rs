//! Archives, which are too large to be held in memory: fetched into a folder of rocworker's own.

use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use nix::unistd::{User, fchown, getegid, geteuid};
use root::{Attributes, Root};

use super::{SANDBOX, local};
use crate::apt::{PackageManager, Step};

/// The folder of archives while they are needed. Only the process with the receipt's lock uses it.
pub(crate) const FOLDER: &str = "/var/cache/rocworker";
/// The folder to which apt's own user may write.
const PARTIAL: &str = "/var/cache/rocworker/partial";
const COMING: &str = "/var/cache/rocworker/partial/archive";
/// An archive that was fetched as a whole.
pub(crate) const ARCHIVE: &str = "/var/cache/rocworker/archive";

/// The time limit for fetching some gigabytes.
const PATIENCE: Duration = Duration::from_secs(4 * 60 * 60);

/// How many bytes the file system should keep free: a full one does more harm than the archive does good.
pub(crate) const RESERVE: u64 = 256 << 20;

/// The pause between two looks at how much has been fetched.
const GLANCE: Duration = Duration::from_secs(1);

impl PackageManager {
    /// Fetches an archive, which stays until [`sweep`]. Nothing of it was checked.
    ///
    /// # Errors
    /// A sentence on why the archive cannot be fetched.
    pub(crate) fn fetch_archive(
        &self,
        root: &Root,
        url: &str,
        hear: &mut dyn FnMut(Step),
    ) -> Result<File, String> {
        prepare(root)?;
        let most = room(root)?;
        if let Some(file) = local(url) {
            // A copy, which its owner cannot change between the check and the use.
            let opened = root.open_to_read(file).map_err(|error| error.to_string())?;
            if opened.metadata().is_ok_and(|it| it.len() > most) {
                return Err(format!("{} has more than the {} MiB that may come", file.display(), most >> 20));
            }
            std::fs::copy(root.shown(file), root.shown(ARCHIVE))
                .map_err(|error| format!("{} cannot be copied: {error}", root.shown(ARCHIVE).display()))?;
            return own(root).map_err(|error| format!("{} cannot be read: {error}", file.display()));
        }
        let fetched = thread::scope(|scope| {
            let (running, ended) = channel::<()>();
            let fetching = scope.spawn(|| {
                let fetched = self.download(url, &root.shown(COMING), most, PATIENCE);
                drop(running);
                fetched
            });
            let mut last = None;
            while ended.recv_timeout(GLANCE) == Err(RecvTimeoutError::Timeout) {
                let come = root.lstat(COMING).ok().map(|meta| meta.len / MIB);
                if come != last {
                    last = come;
                    let text = format!("Fetching {url}: {} MiB have come", come.unwrap_or(0));
                    hear(Step { text, percent: None });
                }
            }
            fetching.join().unwrap_or_else(|_| Err("the thread that fetches has ended".to_owned()))
        });
        fetched.map_err(|error| {
            format!(
                "{url} could not be fetched: {error}; see that it can be reached from here (a proxy?) and that \
                 {} has room, or name a file: URL in the configuration, then apply again",
                root.shown(FOLDER).display()
            )
        })?;
        let moved = root.rename_new(COMING, ARCHIVE).map_err(Into::into);
        moved
            .and_then(|()| own(root))
            .map_err(|error| format!("what came from {url} cannot be read: {error}"))
    }
}

const MIB: i64 = 1 << 20;

/// Takes away what was fetched, by this run or by one that was killed. What cannot go hinders nothing before the next
/// archive is fetched.
pub(crate) fn sweep(root: &Root) {
    root.remove_tree(FOLDER).ok();
}

/// How many bytes may be fetched: the free space without the reserve.
fn room(root: &Root) -> Result<u64, String> {
    let free = root.free_space(FOLDER).map_err(|error| error.to_string())?;
    free.checked_sub(RESERVE).filter(|most| *most > 0).ok_or_else(|| {
        format!(
            "the file system of {} has {} MiB left, of which {} are to stay free: see that it has room, then apply again",
            root.shown(FOLDER).display(),
            free >> 20,
            RESERVE >> 20
        )
    })
}

fn prepare(root: &Root) -> Result<(), String> {
    let prepared = || -> Result<(), Box<dyn std::error::Error>> {
        root.remove_tree(FOLDER)?;
        root.make_folder(FOLDER, Attributes { mode: 0o755, owner: None })?;
        let owner = User::from_name(SANDBOX)?.map(|user| (user.uid.as_raw(), getegid().as_raw()));
        root.make_folder(PARTIAL, Attributes { mode: 0o700, owner })?;
        Ok(())
    };
    prepared().map_err(|error| format!("no folder for what is fetched: {error}"))
}

/// The file, which only root can change from now on: it is out of the folder of apt's own user.
fn own(root: &Root) -> Result<File, Box<dyn std::error::Error>> {
    let file = root.open_to_read(Path::new(ARCHIVE))?;
    if !file.metadata()?.is_file() {
        return Err("it is no file".into());
    }
    fchown(&file, Some(geteuid()), Some(getegid()))?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}
