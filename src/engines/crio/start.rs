//! How systemd starts CRI-O.

use std::path::PathBuf;

use root::Root;

use super::UNIT;
use crate::engines::env_file::EnvFile;
use crate::engines::options::Dashes;
use crate::engines::unit::{Unit, named};

const LIMIT: usize = 256 << 10;

/// What its command line says. CRI-O's own unit takes the options from variables of /etc/sysconfig/crio.
#[derive(Debug, Default)]
pub(super) struct Start {
    pub(super) program: Option<PathBuf>,
    /// `--config`
    pub(super) main: Option<PathBuf>,
    /// `--config-dir`
    pub(super) folder: Option<PathBuf>,
}

impl Start {
    pub(super) fn of(root: &Root, unit: &Unit) -> Self {
        let words: Vec<String> = unit.exec_start.iter().flat_map(|word| resolved(root, unit, word)).collect();
        let said = |names: &[&str]| {
            let (_, last) = Dashes::OneOrTwo.said(words.get(1..).unwrap_or_default(), names).pop()?;
            last.map(PathBuf::from).filter(|path| path.is_absolute())
        };
        Self {
            program: words.first().map(PathBuf::from),
            main: said(&["config", "c"]),
            folder: said(&["config-dir", "d"]),
        }
    }
}

/// `$NAME` is as many words as its value has, and none where nothing sets it (systemd.service(5)).
fn resolved(root: &Root, unit: &Unit, word: &str) -> Vec<String> {
    let Some(name) = word.strip_prefix('$').filter(|name| !name.starts_with('{')) else {
        return vec![word.to_owned()];
    };
    let of_files =
        unit.environment_files.iter().rev().flat_map(|file| named(root, UNIT, &file.path)).flatten();
    let of_files = of_files.filter_map(|path| {
        let text = root.read_text(path, LIMIT).ok()?;
        EnvFile::parse(&text).get(name).map(str::to_owned)
    });
    let of_unit =
        || unit.environment.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.clone());
    let value = of_files.into_iter().next().or_else(of_unit).unwrap_or_default();
    value.split_whitespace().map(str::to_owned).collect()
}
