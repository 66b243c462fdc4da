use std::path::Path;

use anyhow::{Context as _, Result, bail};
use root::if_there;

use super::{ETC, FILE, LIB, LIMIT, PACKAGED, RECEIPT, STATE, Setup, WORK, is_installed, state};
use crate::exporter_unit::NAME;

/// What becomes of the package, as dpkg's option or this word.
const STAYS: &str = "stays";
const PURGE: &str = "--purge";
const REMOVE: &str = "--remove";

impl Setup<'_> {
    /// Reverts install, last step first. Each step can run again. Returns sentences on what was restored, and what was not.
    pub(super) fn revert(&self, force: bool) -> Result<Vec<String>> {
        let mut kept = Vec::new();
        let is_applied = self.has("applied") && self.root.exists(PACKAGED);
        let is_own = self.has("own");
        if is_own {
            self.revert_config(&mut kept)?;
        }
        let mut argv = vec![PACKAGED, if is_own { "apply" } else { "undo" }, "--only", "exporter"];
        argv.extend((force && !is_own).then_some("--force"));
        if is_applied && self.call(&argv).is_err() {
            let advice =
                if is_own { "" } else { "; after an edit, use `rocworker remote uninstall --force`" };
            bail!("the exporter's unit was not reverted: the lines above say why{advice}");
        }
        if !is_own {
            if is_applied {
                // systemd refuses this for a unit that it does not know.
                self.answer(&["systemctl", "reset-failed", NAME]).ok();
            }
            self.revert_config(&mut kept)?;
        }
        let before = self.root.read(state("package"), LIMIT)?;
        let before = String::from_utf8_lossy(&before);
        let how = if is_installed(&before) { STAYS } else { self.revert_package(&before, &mut kept)? };
        // A purge removes both folders, whoever made them.
        if how == PURGE {
            self.restore("etc", ETC)?;
        } else if !self.has("etc") {
            self.root.remove_empty_folder(ETC)?;
        }
        // This folder holds only traces of the installation then.
        if !self.is_managed() && !self.has("lib/receipt.json") {
            self.restore("lib", LIB)?;
        }
        self.root.rename_new(STATE, Path::new(WORK).join("done"))?;
        let except = if kept.is_empty() { "" } else { ", except:" };
        kept.insert(0, format!("exporter removed, previous state restored{except}"));
        Ok(kept)
    }

    fn revert_config(&self, kept: &mut Vec<String>) -> Result<()> {
        let path = config::PATH;
        let old = self.bytes(state("etc/config.yaml"))?;
        let (Some(after), Some(now)) = (self.bytes(state("config.after"))?, self.bytes(path)?) else {
            return Ok(());
        };
        let lines = |text| <[u8]>::split_inclusive(text, |byte| *byte == b'\n');
        let line = lines(&after).next_back().unwrap_or_default();
        let added = line.trim_ascii_end();
        // A later install may have added its line to another configuration than the first found.
        let begun = after.strip_suffix(line).unwrap_or_default();
        let found = old.as_deref().unwrap_or_default();
        let is_of_found = begun == found || begun.strip_suffix(b"\n") == Some(found);
        let rest: Vec<&[u8]> = lines(&now).filter(|line| line.trim_ascii_end() != added).collect();
        let restored = match () {
            () if old.as_ref() == Some(&now) => return Ok(()),
            () if now == after && is_of_found => old,
            () if rest.len() + 1 == lines(&now).count() => {
                kept.push(format!(
                    "{path} changed after the installation: only the key exporter was removed"
                ));
                Some(rest.concat())
            }
            () => {
                kept.push(format!(
                    "{path} and its key exporter changed after the installation: the file stays as it is"
                ));
                return Ok(());
            }
        };
        let written = match restored {
            Some(bytes) => self.write_config(&bytes),
            None => self.root.remove(path).map(drop),
        };
        written.with_context(|| {
            format!("{path} cannot be restored, and stays as it is: make room, then uninstall again")
        })
    }

    /// Returns what has become of the package.
    fn revert_package(&self, before: &str, kept: &mut Vec<String>) -> Result<&'static str> {
        let now = self.package()?;
        let had_config = before.starts_with("config-files");
        let decided = self.bytes(state("how"))?.filter(|_| !is_installed(&now));
        let how = match decided {
            // After a killed dpkg the folders say nothing.
            Some(how) if how.starts_with(PURGE.as_bytes()) => PURGE,
            Some(how) if how.starts_with(REMOVE.as_bytes()) => REMOVE,
            Some(_) => STAYS,
            None if self.is_managed() => STAYS,
            None if had_config || !self.has_etc_as_before()? => REMOVE,
            None => PURGE,
        };
        self.root.write(state("how"), format!("{how}\n").as_bytes(), FILE)?;
        if how == STAYS {
            kept.push("rocworker manages other components now, so its package stays".to_owned());
        } else if now != "not-installed"
            && let Err((_, why)) = self.call(&["dpkg", "--force-remove-reinstreq", how, "rocworker"])
        {
            bail!("dpkg cannot remove rocworker: {why}");
        }
        if how == REMOVE && !had_config {
            kept.push(format!(
                "{ETC} changed after the installation and stays; `dpkg --purge rocworker` removes it"
            ));
        }
        Ok(how)
    }

    fn has_etc_as_before(&self) -> Result<bool> {
        if self.has("etc") {
            return Ok(self.answer(&["diff", "-r", &state("etc").to_string_lossy(), ETC]).is_ok());
        }
        Ok(if_there(self.root.list(ETC))?.is_none_or(|names| names.is_empty()))
    }

    fn restore(&self, saved: &str, folder: &str) -> Result<()> {
        let new = format!("{folder}.new");
        self.root.remove_tree(&new)?;
        if self.has(saved) {
            self.copy(&state(saved), new.as_ref())?;
        }
        self.root.remove_tree(folder)?;
        if self.has(saved) {
            self.root.rename_new(new, folder)?;
        }
        Ok(())
    }

    /// Whether rocworker, or Juju by it, manages this machine.
    fn is_managed(&self) -> bool {
        self.root.exists(RECEIPT) || self.root.exists(juju::charm::PATH)
    }

    fn has(&self, name: &str) -> bool {
        self.root.exists(state(name))
    }

    /// A file's bytes; `None`: it is not there.
    fn bytes(&self, path: impl AsRef<Path>) -> Result<Option<Vec<u8>>> {
        Ok(if_there(self.root.read(path, LIMIT))?)
    }
}
