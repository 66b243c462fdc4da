//! Which files a unit's `EnvironmentFile=` means.

use std::path::{Component, Path, PathBuf};

use root::Root;

/// The files that a line `EnvironmentFile=` means, in the order in which systemd reads them; `None` where that takes
/// more than is known here.
pub(crate) fn named(root: &Root, unit: &str, path: &Path) -> Option<Vec<PathBuf>> {
    let text = path.to_str()?;
    let name = unit.strip_suffix(".service").unwrap_or(unit);
    // systemd.unit(5), SPECIFIERS: those that the unit's name alone decides.
    let text = text.replace("%n", unit).replace("%N", name).replace("%p", name);
    if text.contains(['%', '[', '\\']) {
        return None;
    }
    if !text.contains(['*', '?']) {
        return Some(vec![PathBuf::from(text)]);
    }
    let mut found = vec![PathBuf::from("/")];
    for part in Path::new(&text).components() {
        let Component::Normal(part) = part else { continue };
        let part = part.to_str()?;
        let is_pattern = part.contains(['*', '?']);
        found = found
            .into_iter()
            .flat_map(|folder| {
                let names = if is_pattern {
                    let names = root.list(&folder).unwrap_or_default();
                    names
                        .into_iter()
                        .filter(|name| name.to_str().is_some_and(|name| matches(part, name)))
                        .collect()
                } else {
                    vec![part.into()]
                };
                names.into_iter().map(move |name| folder.join(name))
            })
            .collect();
    }
    found.retain(|path| root.exists(path));
    // With no file there, the pattern is what is missing.
    Some(if found.is_empty() { vec![PathBuf::from(text)] } else { found })
}

/// As glob(7) has `*` and `?`: neither stands for the dot that a name begins with.
fn matches(pattern: &str, name: &str) -> bool {
    fn rest(pattern: &[char], name: &[char]) -> bool {
        match (pattern, name) {
            ([], []) => true,
            (['*', after @ ..], _) => {
                (0..=name.len()).any(|skipped| rest(after, name.get(skipped..).unwrap_or(&[])))
            }
            (['?', after @ ..], [_, left @ ..]) => rest(after, left),
            ([c, after @ ..], [d, left @ ..]) => c == d && rest(after, left),
            _ => false,
        }
    }
    // Each star tries every place: with more than a name has use for, that would take long.
    let stars = pattern.matches('*').count();
    let chars = |text: &str| text.chars().collect::<Vec<_>>();
    stars <= 4 && (pattern.starts_with('.') || !name.starts_with('.')) && rest(&chars(pattern), &chars(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_file_names() {
        for (pattern, name, is_so) in [
            ("*.env", "a.env", true),
            ("*.env", ".a.env", false),
            (".*", ".a", true),
            ("a?c*", "abcd", true),
            ("a?c", "ac", false),
            ("*", "", true),
            ("*a*b*", "xxaxxbx", true),
            ("*a*b*", "xxbxxax", false),
        ] {
            assert_eq!(matches(pattern, name), is_so, "{pattern} {name}");
        }
    }
}
