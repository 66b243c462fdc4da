//! The container's files as runc will find them, and what runc can make there.

use std::borrow::Cow;
use std::fs::Metadata;
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use allocation::bundle::{Bundle, Device, Injection, Mount, mount_over, rest_behind};
use allocation::gids::UserNamespace;

use rustix::fs::{
    AtFlags, CWD, StatVfsMountFlags, StatxAttributes, StatxFlags, major, minor, statvfs, statx,
};

use crate::config::Config;

const SHM: &str = "/dev/shm";

/// Something else is there or on the way, or nothing can be made there.
struct NoRoom;

/// The container's files, and for whom they are.
#[derive(Debug)]
pub(crate) struct Rootfs {
    config: PathBuf,
    path: PathBuf,
    namespace: UserNamespace,
}

impl Rootfs {
    pub(crate) fn of(config: &Config, bundle: &Bundle<'_>) -> Self {
        Self {
            config: config.path.clone(),
            // `root.path` is relative to the bundle.
            path: config.path.with_file_name(bundle.rootfs().as_deref().unwrap_or_default()),
            namespace: bundle.user_namespace().unwrap_or(UserNamespace::Host),
        }
    }

    /// Whether runc finds a folder at this path of the root file system, or can make it.
    pub(crate) fn has_room(&self, path: &str) -> bool {
        self.look(self.path.clone(), path).is_ok_and(|found| found.is_none_or(|found| found.is_dir()))
    }

    /// Checks that runc can make what an injection has below /dev: its nodes, and the folder for /dev/shm.
    ///
    /// # Errors
    /// A sentence that names what runc cannot make.
    pub(crate) fn has_room_for(
        &self,
        injection: &Injection<'_>,
        mut mounts: Vec<Mount<'_>>,
        devices: &[Device<'_>],
    ) -> Result<(), String> {
        self.follow_links(&mut mounts);
        let mounts = &*mounts;
        let is_folder = |found: Metadata| found.is_dir();
        for node in &injection.nodes {
            // In a user namespace runc opens the file that is there, to bind the host's node over it.
            let is_it = |found: Metadata| {
                found.file_type().is_char_device()
                    && (major(found.rdev()), minor(found.rdev())) == (node.major, node.minor)
                    && self.may(0o006, &found)
            };
            let is_else = |device: &Device<'_>| {
                let numbers = (Some(node.major.into()), Some(node.minor.into()));
                let is_it = |rest: String| rest.is_empty() && (device.major, device.minor) == numbers;
                rest_behind(&device.path, node.path).is_some_and(|rest| !is_it(rest))
            };
            if devices.iter().any(is_else) {
                return Err(no_room(node.path));
            }
            if !self.look_behind(mounts, node.path).is_ok_and(|found| found.is_none_or(is_it)) {
                return Err(no_room(node.path));
            }
        }
        let needs_shm = injection.shm_bytes.is_some() && !mounts.iter().any(|mount| mount.is_at(SHM));
        if needs_shm && !self.look_behind(mounts, SHM).is_ok_and(|found| found.is_none_or(is_folder)) {
            return Err(no_room(SHM));
        }
        Ok(())
    }

    /// Puts in place of each mount's destination where the image's links lead it. What lies in an earlier mount has none of
    /// the image's.
    fn follow_links(&self, mounts: &mut [Mount<'_>]) {
        for at in 0..mounts.len() {
            let (earlier, rest) = mounts.split_at_mut(at);
            if let Some(mount) = rest.first_mut()
                && mount_over(earlier, &mount.destination).is_none()
                && let Some(led) = self.led(&mount.destination)
            {
                mount.destination = Cow::Owned(led);
            }
        }
    }

    /// The end of a path after the image's links; `None` where the path has no link, or too many.
    fn led(&self, path: &str) -> Option<String> {
        let mut path = rest_behind("/", path)?;
        for followed in 0..40 {
            let mut place = self.path.clone();
            let mut parts = path.split('/').filter(|part| !part.is_empty());
            let mut walked = String::new();
            let next = loop {
                let Some(part) = parts.next() else { return (followed > 0).then_some(path) };
                place.push(part);
                match place.symlink_metadata() {
                    Ok(found) if found.is_symlink() => break parts,
                    Ok(_) => walked.extend(["/", part]),
                    Err(_) => return (followed > 0).then_some(path),
                }
            };
            let target = std::fs::read_link(&place).ok()?;
            let target = target.to_string_lossy();
            let above = if target.starts_with('/') { "" } else { &*walked };
            let whole = next.fold([above, "/", &target].concat(), |path, part| [&path, "/", part].concat());
            path = rest_behind("/", &whole)?;
        }
        None
    }

    /// The file at a path of the container once everything is mounted. `None`: nothing is there, and runc can
    /// make it.
    fn look_behind(&self, mounts: &[Mount<'_>], path: &str) -> Result<Option<Metadata>, NoRoom> {
        let Some((mount, rest)) = mount_over(mounts, path) else {
            return self.look(self.path.clone(), path);
        };
        match mount.source.as_deref() {
            Some(source) if mount.is_bind() => {
                let source = self.config.with_file_name(source);
                if rest.is_empty() {
                    return source.metadata().map(Some).map_err(|_| NoRoom);
                }
                let found = self.look(source, &rest)?;
                if found.is_none() && mount.is_read_only() { Err(NoRoom) } else { Ok(found) }
            }
            // runc makes /dev read-only when it has made what is in it.
            _ if rest.is_empty() || mount.is_read_only() && !mount.is_at("/dev") => Err(NoRoom),
            _ if mount.has_no_files() && !mount.counts_its_files() => Ok(None),
            _ => Err(NoRoom),
        }
    }

    /// The file at a path beneath a folder. `None`: nothing is there, and it can be made. A link is never
    /// followed: in a container it may lead anywhere, and a mount or a file behind it would hide what is
    /// there.
    fn look(&self, mut place: PathBuf, path: &str) -> Result<Option<Metadata>, NoRoom> {
        let mut found: Option<Metadata> = None;
        for part in path.split('/').filter(|part| !part.is_empty()) {
            if found.is_some_and(|found| !found.is_dir()) {
                return Err(NoRoom);
            }
            place.push(part);
            match place.symlink_metadata() {
                Ok(there) => found = Some(there),
                Err(error)
                    if error.kind() == ErrorKind::NotFound
                        && place.parent().is_some_and(|parent| self.can_be_written(parent)) =>
                {
                    return Ok(None);
                }
                Err(_) => return Err(NoRoom),
            }
        }
        Ok(found)
    }

    /// Whether a folder can be written; true where that cannot be seen from here.
    fn can_be_written(&self, folder: &Path) -> bool {
        let attributes = statx(CWD, folder, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BASIC_STATS);
        let (Ok(mount), Ok(attributes), Ok(found)) = (statvfs(folder), attributes, folder.symlink_metadata())
        else {
            return true;
        };
        !mount.f_flag.contains(StatVfsMountFlags::RDONLY)
            && !attributes.stx_attributes.contains(StatxAttributes::IMMUTABLE)
            && self.may(0o002, &found)
    }

    /// Whether the container's root has these permissions of others. Its capabilities reach as far as its
    /// user namespace (capabilities(7)).
    fn may(&self, permissions: u32, found: &Metadata) -> bool {
        matches!(self.namespace, UserNamespace::Joined { .. })
            || self.namespace.uid(found.uid()).is_some() && self.namespace.gid(found.gid()).is_some()
            || found.mode() & permissions == permissions
    }
}

fn no_room(path: &str) -> String {
    format!("its image or its mounts have no place for {path}: something else is there, or it is read-only")
}
