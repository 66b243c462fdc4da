//! The licences of the crates that are linked in, which ask to be handed on with the program.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};

use super::crates::Crate;
use super::files::{in_folder, name, read};

/// The prefixes of files in which crates keep their licences and notices.
const NAMES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE"];

/// A list of the crates of others, then each text once with the crates that it is of.
pub(super) fn notices(crates: &[Crate]) -> Result<Vec<u8>> {
    let mut list =
        "rocworker, rocworker-exporter and runc-amd-wrapper hold these crates of others:\n\n".to_owned();
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for one in crates.iter().filter(|one| !one.is_own) {
        let (name, version) = (&one.name, &one.version);
        let licence = one.licence.as_deref().unwrap_or("see below");
        list.push_str(&format!("{name} {version}  {licence}\n  https://crates.io/crates/{name}/{version}\n"));
        let own = texts_of(one)?;
        ensure!(
            !own.is_empty() || one.licence.is_some(),
            "{name} {version} names neither a licence nor its text"
        );
        own.into_iter().for_each(|text| texts.entry(text).or_default().push(format!("{name} {version}")));
    }
    let mut sections: Vec<(Vec<String>, String)> =
        texts.into_iter().map(|(text, names)| (names, text)).collect();
    sections.sort();
    for (names, text) in sections {
        list.push_str(&format!("\n{}\n{}\n\n{text}\n", "=".repeat(100), names.join(", ")));
    }
    Ok(list.into_bytes())
}

fn texts_of(one: &Crate) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for path in in_folder(&one.folder, "")? {
        let name = name(&path)?.to_uppercase();
        if NAMES.iter().any(|begin| name.starts_with(begin)) {
            let text = String::from_utf8_lossy(&read(&path)?).replace("\r\n", "\n");
            texts.push(text.trim_end().to_owned());
        }
    }
    Ok(texts)
}
