//! Which rules are in force: the operator's, or the built-in ones.

use std::io::{Read as _, stdin};
use std::path::Path;

use gpu_health::rules::{self, Rules};
use root::{Kind, Root};

/// The limit for a rules file's bytes: more than any has.
const LIMIT: usize = 256 << 10;

/// The operator's rules, or the built-in ones with the reason why the operator's do not count.
#[must_use]
pub fn in_force(root: &Root) -> (Rules, Option<String>) {
    match of_machine(root) {
        Ok(Some(rules)) => (rules, None),
        Ok(None) => (Rules::built_in(), None),
        Err(problem) => (Rules::built_in(), Some(problem)),
    }
}

/// The operator's rules; `None` where there are none.
///
/// # Errors
/// A sentence with the file, the line and what to do.
pub fn of_machine(root: &Root) -> Result<Option<Rules>, String> {
    match root.read_trusted(rules::PATH, LIMIT) {
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error.to_string()),
        Ok(bytes) => parse(&root.shown(rules::PATH), bytes).map(Some),
    }
}

/// The rules that a person names, with their bytes: a file's, or stdin's for `-`. `here`: the machine on which the program
/// runs. `path`: absolute, or `-`.
///
/// # Errors
/// A sentence with the file, the line and what to do.
pub fn named(here: &Root, path: &Path) -> Result<(Rules, Vec<u8>), String> {
    if path == Path::new("-") {
        let mut bytes = Vec::new();
        let limit = u64::try_from(LIMIT).unwrap_or(u64::MAX);
        let read = stdin().lock().take(limit).read_to_end(&mut bytes);
        read.map_err(|error| format!("cannot read stdin: {error}"))?;
        return Ok((parse(Path::new("stdin"), bytes.clone())?, bytes));
    }
    let name = path.display();
    if here.stat(path).is_ok_and(|meta| meta.kind != Kind::Regular) {
        return Err(format!("{name} is not a regular file: write the rules into a file and name that"));
    }
    let bytes = here.read(path, LIMIT).map_err(|error| error.to_string())?;
    Ok((parse(path, bytes.clone())?, bytes))
}

fn parse(path: &Path, bytes: Vec<u8>) -> Result<Rules, String> {
    let name = path.display().to_string();
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes().iter().take(valid).filter(|byte| **byte == b'\n').count();
        format!("{name}, line {line}: this is not UTF-8 text: save the file as UTF-8")
    })?;
    if text.trim().is_empty() {
        return Err(format!("{name} is empty: write rules into it, as docs/health.md describes"));
    }
    Rules::parse(&name, &text).map_err(|error| error.to_string())
}
