//! What stays names what goes: then that stays too. Entries are taken back in reverse, so that what names another comes
//! before it.

use std::path::{Path, PathBuf};

use root::Root;

use super::{Target, Verdict};
use crate::State;
use crate::state::{Found, LIMIT};

/// Files that stay and in which something of ours may stand.
#[derive(Debug, Default)]
pub(crate) struct Standing(Vec<(PathBuf, Vec<u8>)>);

impl Standing {
    pub(crate) fn add(&mut self, path: &Path, bytes: Vec<u8>) {
        self.0.push((path.to_owned(), bytes));
    }

    /// Why a path may not be taken away, if it may not.
    pub(crate) fn hold(&self, path: &Path) -> Option<String> {
        let name = path.as_os_str().as_encoded_bytes();
        let names = |bytes: &[u8]| !name.is_empty() && bytes.windows(name.len()).any(|it| it == name);
        let (file, _) = self.0.iter().find(|(_, bytes)| names(bytes))?;
        Some(format!("{} names it and stays: take it out there, then undo again", file.display()))
    }

    /// The verdict on an entry, in the light of those before it.
    pub(super) fn unless_named(
        &mut self,
        root: &Root,
        path: &Path,
        found: &Found,
        verdict: Verdict,
        force: bool,
    ) -> Verdict {
        match &verdict {
            Verdict::Left(_) | Verdict::GoneBut(_) => {
                // What a link leads to, too: somebody may have moved the file there.
                let behind = || root.read(path, LIMIT).unwrap_or_default();
                let is_link = matches!(found, Found::Else(State::Link { .. }));
                self.add(path, if is_link { behind() } else { found.bytes().to_vec() });
            }
            Verdict::Change(change) => match &change.target {
                // What stands there from then on: keys of ours that somebody has changed, or what was there before.
                Target::File { bytes, .. } => self.add(path, bytes.clone()),
                Target::Absent if !force => {
                    if let Some(text) = self.hold(path) {
                        return Verdict::Left(text);
                    }
                }
                _ => {}
            },
            _ => {}
        }
        verdict
    }
}
