//! containerd's configuration as it loads it: the main file, then what each file imports, in that order
//! (`LoadConfig` in its cmd/containerd/server/config/config.go, services/server/config in 1.x).

use std::collections::VecDeque;
use std::path::{Component, Path, PathBuf};

use edit::Format;
use root::{Kind, Root};
use serde_json::Value;

/// More than any file has that people write; `containerd config default` makes 10 KB.
const LIMIT: usize = 8 << 20;

/// More than a folder of drop-ins has: files can import each other without end.
const MOST: usize = 256;

/// A file that containerd loads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    pub path: PathBuf,
    pub text: Text,
    /// What it says, where it is TOML; nothing of a file that is not there.
    pub said: Result<Value, String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Text {
    Absent,
    There(String),
    /// Why it cannot be read, or must not be written.
    Refused(String),
}

/// `ours` is left out; the number tells how many files are loaded before it, whether it is there yet or not: where none
/// imports it, it is taken for the last import of the main file.
pub(super) fn read(root: &Root, main: &Path, ours: &Path) -> (Vec<File>, usize) {
    let mut files: Vec<File> = Vec::new();
    let mut before_ours = None;
    let mut pending = VecDeque::from([main.to_owned()]);
    while let Some(path) = pending.pop_front() {
        if path == ours {
            before_ours.get_or_insert(files.len());
            continue;
        }
        if files.len() >= MOST || files.iter().any(|file| file.path == path) {
            continue;
        }
        let file = read_one(root, path);
        for pattern in file.imports() {
            let mut found = matches(root, &file.path, &pattern);
            if file.names(&pattern, ours) && !found.iter().any(|path| path == ours) {
                found.insert(found.partition_point(|path| path.as_path() < ours), ours.to_owned());
            }
            pending.extend(found);
        }
        if files.is_empty() && !pending.iter().any(|path| path == ours) {
            pending.push_back(ours.to_owned());
        }
        files.push(file);
    }
    let before_ours = before_ours.unwrap_or(files.len());
    (files, before_ours)
}

fn read_one(root: &Root, path: PathBuf) -> File {
    let is_link = |path: &Path| root.lstat(path).is_ok_and(|meta| meta.kind == Kind::Link);
    let link = path.ancestors().find(|path| is_link(path));
    let text = match (link, root.lstat(&path)) {
        (Some(link), _) => {
            let link = root.shown(link);
            Text::Refused(format!("{} is a link, and nothing is written through links", link.display()))
        }
        (None, Err(error)) if error.is_not_found() => Text::Absent,
        (None, Err(error)) => Text::Refused(error.to_string()),
        (None, Ok(_)) => {
            root.read_text(&path, LIMIT).map_or_else(|error| Text::Refused(error.to_string()), Text::There)
        }
    };
    let said = match &text {
        Text::Absent => Ok(Value::Object(serde_json::Map::new())),
        Text::There(text) => {
            Format::Toml.read(text).map_err(|fault| format!("{}: {fault}", root.shown(&path).display()))
        }
        // A link can still be followed for what it says.
        Text::Refused(reason) => match root.read_text(&path, LIMIT) {
            Ok(text) => Format::Toml.read(&text).map_err(|fault| format!("{}: {fault}", path.display())),
            Err(_) => Err(reason.clone()),
        },
    };
    File { path, text, said }
}

impl File {
    /// What it imports, as it is written.
    #[must_use]
    pub fn imports(&self) -> Vec<String> {
        let list = self.said.as_ref().ok().and_then(|said| said.get("imports")?.as_array());
        list.into_iter().flatten().filter_map(|path| path.as_str().map(str::to_owned)).collect()
    }

    /// Takes what it would say without our keys for what it says.
    pub(super) fn without_ours(&mut self, text: impl Fn(&Path, &str) -> Option<String>) {
        let without = match &self.text {
            Text::There(it) => text(&self.path, it),
            Text::Absent | Text::Refused(_) => None,
        };
        if let Some(Ok(said)) = without.map(|text| Format::Toml.read(&text)) {
            self.said = Ok(said);
        }
    }

    /// Its text; nothing where it is not there or cannot be read.
    #[must_use]
    pub fn text_or_nothing(&self) -> &str {
        match &self.text {
            Text::There(text) => text,
            Text::Absent | Text::Refused(_) => "",
        }
    }

    /// Whether one of its imports, other than `ours`, is this file or a pattern that matches it.
    #[must_use]
    pub fn covers(&self, path: &Path, ours: &str) -> bool {
        self.imports().iter().filter(|import| *import != ours).any(|pattern| self.names(pattern, path))
    }

    /// Whether an import of this file is that file or a pattern that matches it.
    fn names(&self, import: &str, path: &Path) -> bool {
        let pattern = resolved(&self.path, import);
        if !is_pattern(&pattern) {
            return pattern == path;
        }
        let (wanted, there): (Vec<_>, Vec<_>) = (pattern.components().collect(), path.components().collect());
        wanted.len() == there.len()
            && wanted.iter().zip(&there).all(|(wanted, there)| {
                fits(&wanted.as_os_str().to_string_lossy(), &there.as_os_str().to_string_lossy())
            })
    }
}

/// Relative to the file that imports it, without `.` and `..`, as Go's filepath.Clean has it.
fn resolved(file: &Path, pattern: &str) -> PathBuf {
    let whole = file.parent().unwrap_or(Path::new("/")).join(pattern);
    whole.components().fold(PathBuf::new(), |mut path, part| {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::CurDir => {}
            part => path.push(part),
        }
        path
    })
}

/// containerd takes a path for a pattern where it has an asterisk.
fn is_pattern(path: &Path) -> bool {
    path.to_string_lossy().contains('*')
}

fn matches(root: &Root, file: &Path, pattern: &str) -> Vec<PathBuf> {
    let pattern = resolved(file, pattern);
    if !is_pattern(&pattern) {
        return vec![pattern];
    }
    let mut found = vec![PathBuf::from("/")];
    for part in pattern.components().filter(|part| *part != Component::RootDir) {
        let part = part.as_os_str().to_string_lossy();
        let plain = !part.contains(['*', '?', '[', '\\']);
        found = found
            .into_iter()
            .flat_map(|folder| {
                if plain {
                    return vec![folder.join(&*part)];
                }
                let names = root.list(&folder).unwrap_or_default();
                names
                    .iter()
                    .filter(|name| fits(&part, &name.to_string_lossy()))
                    .map(|name| folder.join(name))
                    .collect()
            })
            .take(MOST)
            .collect();
    }
    found.retain(|path| root.exists(path));
    found
}

/// Go's path.Match for one name: `*`, `?`, `[a-z]`, `[^a-z]` and `\`; a leading dot is no exception.
fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    fits_from(&pattern, &name)
}

/// What follows a star is looked for once at each place, so that many stars take no longer than their product with the
/// name: only the last one is ever tried again.
fn fits_from(mut pattern: &[char], mut name: &[char]) -> bool {
    let mut last_star: Option<(&[char], &[char])> = None;
    loop {
        match one(pattern, name) {
            Step::Star(rest) => {
                last_star = Some((rest, name));
                pattern = rest;
            }
            Step::Fits(rest, behind) => (pattern, name) = (rest, behind),
            Step::End => return true,
            Step::Not => match last_star {
                Some((rest, [_, behind @ ..])) => {
                    last_star = Some((rest, behind));
                    (pattern, name) = (rest, behind);
                }
                _ => return false,
            },
        }
    }
}

/// What the first part of a pattern makes of the start of a name.
enum Step<'p, 'n> {
    Star(&'p [char]),
    Fits(&'p [char], &'n [char]),
    End,
    Not,
}

fn one<'p, 'n>(pattern: &'p [char], name: &'n [char]) -> Step<'p, 'n> {
    match (pattern, name) {
        ([], []) => Step::End,
        (['*', rest @ ..], _) => Step::Star(rest),
        (['?', rest @ ..], [_, behind @ ..]) => Step::Fits(rest, behind),
        (['[', class @ ..], [first, behind @ ..]) => {
            let end = class.iter().skip(1).position(|c| *c == ']').map(|at| at + 1);
            let Some((class, rest)) = end.map(|end| class.split_at(end)) else { return Step::Not };
            let rest = rest.get(1..).unwrap_or_default();
            if in_class(class, *first) { Step::Fits(rest, behind) } else { Step::Not }
        }
        (['\\', wanted, rest @ ..], [first, behind @ ..]) | ([wanted, rest @ ..], [first, behind @ ..])
            if wanted == first =>
        {
            Step::Fits(rest, behind)
        }
        _ => Step::Not,
    }
}

fn in_class(class: &[char], c: char) -> bool {
    let (negated, class) = match class {
        ['^', class @ ..] => (true, class),
        class => (false, class),
    };
    let mut at = 0;
    let mut found = false;
    while let Some(from) = class.get(at) {
        let to = class.get(at + 2).filter(|_| class.get(at + 1) == Some(&'-'));
        found |= (*from..=*to.unwrap_or(from)).contains(&c);
        at += if to.is_some() { 3 } else { 1 };
    }
    found != negated
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_gos_do() {
        for (pattern, name, expected) in [
            ("*.toml", "a.toml", true),
            ("*.toml", ".toml", true),
            ("*.toml", "a.toml.bak", false),
            ("*", "", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("[0-9]*", "99-nvidia.toml", true),
            ("[^0-9]*", "99-nvidia.toml", false),
            ("[ab]", "b", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("[", "[", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-b-b-d", false),
            // Tried at every place for every star, this would take longer than the machine lives.
            (&format!("{}b", "*a".repeat(40)), &"a".repeat(250), false),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn an_import_is_beside_the_file_that_names_it() {
        let main = Path::new("/etc/containerd/config.toml");
        for (import, expected) in [
            ("conf.d/*.toml", "/etc/containerd/conf.d/*.toml"),
            ("./a.toml", "/etc/containerd/a.toml"),
            ("../a.toml", "/etc/a.toml"),
            ("/opt//x/../a.toml", "/opt/a.toml"),
        ] {
            assert_eq!(resolved(main, import), Path::new(expected), "{import}");
        }
    }
}
