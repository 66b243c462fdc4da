//! What deploy/install_rocm_tarball.sh runs: ROCm as one archive in an image that is being built, where no GPU is and
//! nothing is to be managed.

use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};
use config::TheRock;
use packages::desired::rocm::LINK;
use reconcile::command::Programs;
use reconcile::dpkg::{self, Database};
use reconcile::{ArchiveSource, DPKG_LOCK, PackageManager, Store, unpack_archive};
use root::{Kind, Root};
use serde::Serialize;

use super::Outcome;
use super::progress::Shown;
use super::session::{Misuse, Session, caller};

#[derive(Debug, clap::Args)]
pub(crate) struct Archive {
    /// As archives are named: 7.10.0, 7.11.0a20251211
    #[arg(value_name = "VERSION")]
    archive_version: String,
    /// Of GPUs: gfx94X-dcgpu, gfx110X-all
    family: String,
    /// stable, nightlies, prereleases or devreleases; as the version is written unless given
    release: Option<String>,
    /// The archive's SHA-256, as its publisher names it
    #[arg(long, value_name = "DIGITS")]
    sha256: Option<String>,
    /// The archives' folder, if it is not AMD's. With --root R, file:///x reads R/x
    #[arg(long, value_name = "URL")]
    url: Option<String>,
}

#[derive(Serialize)]
struct Answer {
    schema_version: u32,
    path: PathBuf,
    url: String,
    /// Null: it was there already.
    sha256: Option<String>,
}

pub(crate) fn run(session: &Session, archive: &Archive) -> anyhow::Result<Outcome> {
    let Archive { archive_version: version, family, release, sha256, url } = archive;
    let therock = TheRock::named(version, family, release.as_deref(), url.clone(), sha256.as_deref())
        .map_err(|(name, problem)| Misuse(format!("{name} {problem}")))?;
    let (from, path, root) = (therock.url(), therock.path(), &session.root);
    if from.starts_with("http://") && therock.sha256.is_none() {
        bail!(Misuse(format!(
            "what comes from {from} can be changed on its way: name an https:// URL, or the archive's checksum (--sha256)"
        )));
    }
    may_link(root)?;
    // The programs that fetch are this machine's, whatever is being built.
    let programs =
        Programs::of(&caller()?).ok_or_else(|| anyhow!("this machine's programs are not found"))?;
    let manager = PackageManager::new(&programs, DPKG_LOCK, None);
    let source = ArchiveSource { url: &from, sha256: therock.sha256.as_ref(), holds: &TheRock::holds() };
    let mut shown = Shown::new(session);
    let unpacked = unpack_archive(root, &manager, Path::new(&path), &source, &mut |it| shown.on_progress(it));
    shown.end()?;
    let digest = unpacked?.map_err(|problem| anyhow!("{}: {problem}", root.shown(&path).display()))?;
    root.write_link(LINK, Path::new(&path))?;
    let answer = Answer {
        schema_version: 1,
        path: root.shown(&path),
        url: from,
        sha256: digest.map(|it| it.as_str().to_owned()),
    };
    session.format.print(&answer, || {
        let (place, link) = (answer.path.display(), root.shown(LINK));
        let what = match &answer.sha256 {
            Some(digest) => format!("{place}: unpacked from {}, whose SHA-256 is {digest}", answer.url),
            None => format!("{place}: it was there already, and stays as it is"),
        };
        format!("{what}\n{} names it\n", link.display())
    })?;
    Ok(Outcome::Done)
}

/// What is at the link's place, before anything is fetched: only a link to an earlier archive is replaced.
fn may_link(root: &Root) -> anyhow::Result<()> {
    let shown = root.shown(LINK);
    let shown = shown.display();
    let receipt = Store::new(root).receipt()?;
    if receipt.entries.iter().any(|entry| entry.path.path() == Some(Path::new(LINK))) {
        bail!("rocworker manages {shown} here: name the archive in config.yaml's rocm.therock instead")
    }
    let Ok(there) = root.lstat(LINK) else { return Ok(()) };
    if there.kind != Kind::Link {
        bail!("{shown} is there and is no link: move it out of the way")
    }
    let target = root.read_link(LINK)?;
    let is_archive = target.to_str().is_some_and(|it| it.starts_with("/opt/rocm-"));
    if !is_archive || has_package(root)? {
        bail!(
            "{shown} leads to {}, which is no archive of TheRock's: remove the ROCm that is there, or the link",
            target.display()
        )
    }
    Ok(())
}

/// Whether dpkg has ROCm's own packages, whose folders are called as an archive's are.
fn has_package(root: &Root) -> Result<bool, dpkg::Error> {
    match Database::read(root) {
        Ok(database) => Ok(database.names().iter().any(|name| name.starts_with("rocm-core"))),
        Err(dpkg::Error::None(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use root::Attributes;

    use super::*;

    #[test]
    fn only_a_link_to_an_earlier_archive_is_replaced() {
        for (target, package, refused) in [
            ("/opt/rocm-7.10.0", None, None),
            ("/etc/alternatives/rocm", None, Some("leads to /etc/alternatives/rocm")),
            ("/srv/rocm", None, Some("leads to /srv/rocm")),
            ("/opt/rocm-7.2.4", Some("rocm-core"), Some("leads to /opt/rocm-7.2.4")),
            ("/opt/rocm-7.2.4", Some("rocm-core7.2.4"), Some("leads to /opt/rocm-7.2.4")),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let root = Root::open(dir.path()).unwrap();
            may_link(&root).unwrap();
            root.write_link(LINK, Path::new(target)).unwrap();
            if let Some(package) = package {
                let stanza = format!("Package: {package}\nStatus: install ok installed\nVersion: 7.2.4\n");
                root.write(dpkg::STATUS, stanza.as_bytes(), Attributes { mode: 0o644, owner: None }).unwrap();
            }
            let problem = may_link(&root).err().map(|error| error.to_string());
            assert_eq!(problem.is_some(), refused.is_some(), "{target}: {problem:?}");
            assert!(refused.is_none_or(|part| problem.unwrap().contains(part)), "{target}");
        }
    }
}
