use std::path::Path;

use anyhow::{Context as _, Result, bail};
use root::Attributes;

use super::{ETC, LIB, PACKAGED, PATIENCE, PRIVATE, RECEIPT, STATE, Setup, WORK, state};
use crate::exporter_unit::NAME;

/// What becomes of the package, as dpkg's option or this word.
const STAYS: &str = "stays";
const PURGE: &str = "--purge";
const REMOVE: &str = "--remove";

impl Setup<'_> {
    /// Reverts install, last step first. Each step can run again. Returns sentences on what was not restored.
    pub(super) fn revert(&self, force: bool) -> Result<Vec<String>> {
        let mut kept = Vec::new();
        self.revert_unit(force, &mut kept)?;
        let before = self.bytes(state("package"))?.unwrap_or_default();
        let before = String::from_utf8_lossy(&before);
        let how = match before.starts_with("installed") {
            true => STAYS,
            false => self.revert_package(&before, &mut kept)?,
        };
        self.revert_folders(how)?;
        self.root.rename_new(STATE, Path::new(WORK).join("done"))?;
        Ok(kept)
    }

    fn revert_unit(&self, force: bool, kept: &mut Vec<String>) -> Result<()> {
        let is_applied = self.has("applied") && self.root.exists(PACKAGED);
        if self.has("own") {
            self.revert_config(kept)?;
            if is_applied && self.call(&[PACKAGED, "apply", "--only", "exporter"]).is_err() {
                bail!("rocworker cannot restore the previous exporter unit: the lines above say why");
            }
            return Ok(());
        }
        if is_applied {
            let mut argv = vec![PACKAGED, "undo", "--only", "exporter"];
            argv.extend(force.then_some("--force"));
            if self.call(&argv).is_err() {
                bail!(
                    "the exporter's unit was not reverted: the lines above say why; after an edit, use `rocworker remote \
                     uninstall --force`"
                );
            }
            // systemd has forgotten a unit that did not fail.
            self.programs.run(&["systemctl", "reset-failed", NAME], PATIENCE).ok();
        }
        self.revert_config(kept)
    }

    fn revert_config(&self, kept: &mut Vec<String>) -> Result<()> {
        let path = config::PATH;
        let [old, after, now] = [state("etc/config.yaml"), state("config.after"), path.into()];
        let (old, after, now) = (self.bytes(old)?, self.bytes(after)?, self.bytes(now)?);
        let (Some(after), Some(now)) = (after, now) else { return Ok(()) };
        if old.as_ref() == Some(&now) {
            return Ok(());
        }
        let lines = |text| <[u8]>::split_inclusive(text, |byte| *byte == b'\n');
        let restored = if now == after {
            old
        } else {
            // Somebody edited it since: only the line that install added goes.
            let added = lines(&after).next_back().unwrap_or_default().trim_ascii_end();
            let rest: Vec<&[u8]> = lines(&now).filter(|line| line.trim_ascii_end() != added).collect();
            if rest.len() + 1 != lines(&now).count() {
                kept.push(format!(
                    "{path} and its key exporter changed after the installation: the file stays as it is"
                ));
                return Ok(());
            }
            kept.push(format!("{path} changed after the installation: only the key exporter was removed"));
            Some(rest.concat())
        };
        let written = match restored {
            Some(bytes) => self.root.stat(path).and_then(|meta| {
                let how = Attributes { mode: meta.mode, owner: Some((meta.uid, meta.gid)) };
                self.root.write(path, &bytes, how)
            }),
            None => self.root.remove(path),
        };
        written.with_context(|| {
            format!("{path} cannot be restored, and stays as it is: make room, then uninstall again")
        })?;
        Ok(())
    }

    /// Returns what has become of the package.
    fn revert_package(&self, before: &str, kept: &mut Vec<String>) -> Result<&'static str> {
        let now = self.package()?;
        let how = self.decide(&now, before)?;
        if how == STAYS {
            kept.push("rocworker manages other components now, so its package stays".to_owned());
            return Ok(how);
        }
        if now != "not-installed"
            && let Err(why) = self.call(&["dpkg", "--force-remove-reinstreq", how, "rocworker"])
        {
            bail!("dpkg cannot remove rocworker: {why}");
        }
        if how == REMOVE && !before.starts_with("config-files") {
            kept.push(format!(
                "{ETC} changed after the installation and stays; `dpkg --purge rocworker` removes it"
            ));
        }
        Ok(how)
    }

    /// After a killed dpkg the folders say nothing: what an earlier run decided counts.
    fn decide(&self, now: &str, before: &str) -> Result<&'static str> {
        if let (Some(how), false) = (self.bytes(state("how"))?, now.starts_with("installed ")) {
            let is = |it: &&str| how.trim_ascii() == it.as_bytes();
            return [STAYS, PURGE, REMOVE].into_iter().find(is).context("an unknown word is in how");
        }
        let how = match () {
            () if self.root.exists(RECEIPT) => STAYS,
            () if before.starts_with("config-files") || !self.has_config_folder_as_before()? => REMOVE,
            () => PURGE,
        };
        self.root.write(state("how"), format!("{how}\n").as_bytes(), PRIVATE)?;
        Ok(how)
    }

    fn has_config_folder_as_before(&self) -> Result<bool> {
        if self.has("etc") {
            let saved = state("etc");
            return Ok(self.programs.run(&["diff", "-r", &saved.to_string_lossy(), ETC], PATIENCE).is_ok());
        }
        Ok(root::if_there(self.root.list(ETC))?.is_none_or(|names| names.is_empty()))
    }

    /// A purge removes both folders, whoever made them. Without a receipt rocworker manages nothing, and /var/lib/rocworker
    /// holds only traces of this installation.
    fn revert_folders(&self, how: &str) -> Result<()> {
        if how == PURGE {
            self.restore("etc", ETC)?;
        } else if !self.has("etc") {
            self.root.remove_empty_folder(ETC)?;
        }
        if !self.root.exists(RECEIPT) && !self.has("lib/receipt.json") {
            self.restore("lib", LIB)?;
        }
        Ok(())
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
}
