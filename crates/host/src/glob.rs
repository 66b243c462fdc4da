//! Patterns of file names.

use std::path::{Component, Path, PathBuf};

use root::Root;

/// The most paths that a pattern gives: more than a folder of drop-ins has.
pub const MOST: usize = 256;

/// The paths that match an absolute pattern. `fits`: whether one part of it matches a name.
pub fn paths(root: &Root, pattern: &Path, fits: fn(&str, &str) -> bool) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::from("/")];
    for part in pattern.components().filter(|part| *part != Component::RootDir) {
        let part = part.as_os_str().to_string_lossy();
        let in_folder = |folder: PathBuf| {
            if !part.contains(['*', '?', '[', '\\']) {
                return vec![folder.join(&*part)];
            }
            let names = root.list(&folder).unwrap_or_default().into_iter();
            names.filter(|name| fits(&part, &name.to_string_lossy())).map(|name| folder.join(name)).collect()
        };
        found = found.into_iter().flat_map(in_folder).take(MOST).collect();
    }
    found.retain(|path| root.exists(path));
    found
}

/// A path without `.` and `..`, as Go's filepath.Clean has it.
pub fn clean(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut clean, part| {
        match part {
            Component::ParentDir => _ = clean.pop(),
            Component::CurDir => {}
            part => clean.push(part),
        }
        clean
    })
}

/// Go's path.Match for one name: `*`, `?`, `[a-z]`, `[^a-z]` and `\`; a leading dot is no exception.
pub fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut pattern, mut name) = (pattern.as_slice(), name.as_slice());
    // Only the last star is tried again at each place, so that many take no longer than their product with the name.
    let mut star = None;
    loop {
        if let ['*', rest @ ..] = pattern {
            star = Some((rest, name));
            pattern = rest;
            continue;
        }
        let next = name.split_first().and_then(|(c, behind)| Some((after(pattern, *c)?, behind)));
        (pattern, name) = match (next, star) {
            _ if pattern.is_empty() && name.is_empty() => return true,
            (Some(next), _) => next,
            (None, Some((rest, [_, behind @ ..]))) => {
                star = Some((rest, behind));
                (rest, behind)
            }
            _ => return false,
        };
    }
}

/// What follows the first part of a pattern, if that part matches this character.
fn after(pattern: &[char], c: char) -> Option<&[char]> {
    match pattern {
        ['?', rest @ ..] => Some(rest),
        ['[', class @ ..] => {
            let end = class.iter().skip(1).position(|c| *c == ']')? + 1;
            let (class, rest) = class.split_at(end);
            let matches = match class {
                ['^', class @ ..] => !holds(class, c),
                class => holds(class, c),
            };
            rest.get(1..).filter(|_| matches)
        }
        ['\\', wanted, rest @ ..] | [wanted, rest @ ..] if *wanted == c => Some(rest),
        _ => None,
    }
}

fn holds(class: &[char], c: char) -> bool {
    match class {
        [from, '-', to, rest @ ..] => (*from..=*to).contains(&c) || holds(rest, c),
        [one, rest @ ..] => *one == c || holds(rest, c),
        [] => false,
    }
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
            ("*a*b*", "xxaxxbx", true),
            ("*a*b*", "xxbxxax", false),
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
}
