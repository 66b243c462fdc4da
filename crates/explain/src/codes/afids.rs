//! AFIDs, AMD's numbers for what a CPER record of a GPU is about. rocworker does not carry AMD's table (document
//! 70122): what the user copies from it says what one means.

use std::path::PathBuf;

use root::Root;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

/// The user's table.
pub const PATH: &str = "/etc/rocworker/afids.toml";

const LIMIT: usize = 1 << 20;

/// One row of the user's table at [`PATH`].
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Afid {
    pub id: u32,
    #[serde(deserialize_with = "name")]
    pub name: String,
    pub category: Option<String>,
    pub severity: Option<String>,
    pub action: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is there, and is not to be believed or cannot be read.
    #[error(transparent)]
    Unreadable(root::Error),
    #[error("{path}, line {line}: {problem}; correct it, or remove the file", path = path.display())]
    Wrong { path: PathBuf, line: usize, problem: String },
}

/// The user's table; `None` where there is none.
///
/// # Errors
/// When users other than root could write it, or it is no such table.
pub fn read(root: &Root) -> Result<Option<Vec<Afid>>, Error> {
    let bytes = match root.read_trusted(PATH, LIMIT) {
        Err(error) if error.is_not_found() => return Ok(None),
        bytes => bytes.map_err(Error::Unreadable)?,
    };
    let wrong = |(line, problem)| Error::Wrong { path: root.shown(PATH), line, problem };
    parse(&bytes).map(Some).map_err(wrong)
}

fn name<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let name = String::deserialize(from)?;
    if name.trim().is_empty() {
        return Err(D::Error::custom("name is empty: write the name in AMD's table"));
    }
    Ok(name)
}

fn parse(bytes: &[u8]) -> Result<Vec<Afid>, (usize, String)> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Table {
        #[serde(default)]
        afid: Vec<toml::Spanned<Afid>>,
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = bytes.iter().take(error.valid_up_to());
        (1 + before.filter(|byte| **byte == b'\n').count(), "this is not UTF-8 text".to_owned())
    })?;
    let Table { afid } = toml::from_str(text).map_err(|error| {
        let place = error.span().map_or(0, |span| span.start);
        (super::line_at(text, place), error.message().trim_end().replace('\n', ", "))
    })?;
    let mut afids: Vec<Afid> = Vec::new();
    for entry in afid {
        let line = super::line_at(text, entry.span().start);
        let entry = entry.into_inner();
        if afids.iter().any(|other| other.id == entry.id) {
            return Err((line, format!("AFID {} stands here a second time", entry.id)));
        }
        afids.push(entry);
    }
    Ok(afids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_and_an_error_names_its_line() {
        let afids = parse(b"[[afid]]\nid = 24\nname = \"a\"\n\n[[afid]]\nid = 25\nname = \"b\"\n").unwrap();
        assert_eq!(afids.iter().map(|afid| afid.id).collect::<Vec<_>>(), [24, 25]);
        assert!(parse(b"").unwrap().is_empty());
        for (text, line, problem) in [
            ("[[afid]]\nid = 24\n", 1, "missing field `name`"),
            ("[[afid]]\nid = 24\nname = \"a\"\ncolour = 1\n", 4, "unknown field `colour`"),
            ("[[afid]]\nid = 24\nname = \" \"\n", 3, "name is empty"),
            ("[[afid]]\nid = -1\nname = \"a\"\n", 2, "invalid value"),
            (
                "[[afid]]\nid = 1\nname = \"a\"\n[[afid]]\nid = 1\nname = \"b\"\n",
                4,
                "AFID 1 stands here a second time",
            ),
            ("afids = []\n", 1, "unknown field `afids`"),
            ("[[afid]]\nid =\n", 2, ""),
        ] {
            let (at, reported) = parse(text.as_bytes()).unwrap_err();
            assert!(
                at == line && reported.contains(problem) && !reported.contains('\n'),
                "{text}: {at}: {reported}"
            );
        }
        assert_eq!(parse(b"a = 1\n\xff\n").unwrap_err().0, 2);
    }
}
