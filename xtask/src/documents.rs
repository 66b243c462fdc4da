//! The documents: sentences that a person understands at the first reading, and links that lead somewhere. Paths in
//! comments lead somewhere too.

use std::fs;
use std::path::PathBuf;

use crate::repository::top;

/// Words in a sentence.
const LONGEST: usize = 25;

/// Words that hide who acts, or that only this project would use so.
const REFUSED: [&str; 17] = [
    "ours",
    "theirs",
    "nobody",
    "somebody",
    "else",
    "told",
    "brought about",
    "bring about",
    "taken back",
    "take back",
    "takes back",
    "given back",
    "gives back",
    "takes in",
    "taken in",
    "as it should be",
    "has moved",
];

fn documents() -> Vec<PathBuf> {
    let listed = |folder: &&str| fs::read_dir(top().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> =
        ["", "docs", "docs/dev", "charm", "charm/examples", "packaging"].iter().flat_map(listed).collect();
    found.retain(|path| path.extension().is_some_and(|ending| ending == "md"));
    found.sort();
    assert!(found.len() > 20, "{found:?}");
    found
}

/// Paragraphs, items, headings and cells, without code, each with the number of its first line.
fn passages(text: &str) -> Vec<(usize, String)> {
    let mut passages: Vec<(usize, String)> = Vec::new();
    let (mut continues, mut is_fenced) = (false, false);
    for (index, line) in text.lines().enumerate() {
        let words = line.trim();
        let is_item = words.starts_with("- ") || words.starts_with(|first: char| first.is_ascii_digit());
        if line.starts_with("```") {
            is_fenced = !is_fenced;
        }
        if is_fenced || words.is_empty() || words == "```" || (line.starts_with("    ") && !continues) {
            continues = false;
        } else if words.starts_with('|') {
            passages.extend(words.split('|').map(|cell| (index + 1, cell.to_owned())));
            continues = false;
        } else if continues && !is_item && !words.starts_with('#') {
            passages.last_mut().unwrap().1 += &format!(" {words}");
        } else {
            passages.push((index + 1, words.to_owned()));
            continues = !words.starts_with('#');
        }
    }
    let is_code = |place: usize| place % 2 == 1;
    for (_, text) in &mut passages {
        let parts =
            text.split('`').enumerate().map(|(place, part)| if is_code(place) { "code" } else { part });
        let parts: String = parts.collect();
        let mut linked = parts.split("](");
        let first = linked.next().unwrap_or_default().to_owned();
        *text = linked.fold(first, |text, part| text + part.split_once(')').map_or(part, |(_, rest)| rest));
    }
    passages
}

fn faults(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for (line, passage) in passages(text) {
        let words: Vec<&str> = passage.split_whitespace().collect();
        let ends = |word: &&str| word.trim_end_matches(['"', ')', '*']).ends_with(['.', '?', '!']);
        for sentence in words.split_inclusive(ends) {
            let count = sentence.iter().filter(|word| word.contains(char::is_alphanumeric)).count();
            if count > LONGEST {
                faults.push(format!("line {line}: {count} words: {}", sentence.join(" ")));
            }
        }
        let bare: Vec<String> = words
            .iter()
            .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase())
            .collect();
        let bare = format!(" {} ", bare.join(" "));
        let refused = REFUSED.iter().filter(|refused| bare.contains(&format!(" {refused} ")));
        faults.extend(refused.map(|refused| format!("line {line}: \"{refused}\": {passage}")));
    }
    faults
}

/// A heading's anchor, as forges make it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim_start_matches('#').trim().to_lowercase();
    kept.chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

#[test]
fn documents_are_plain_sentences() {
    let faults: Vec<String> = documents()
        .iter()
        .flat_map(|path| {
            let text = fs::read_to_string(path).unwrap();
            faults(&text).into_iter().map(move |fault| format!("{}: {fault}", path.display()))
        })
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// "Root" is this project's word for a directory in code. An operator knows `--root`, and the user root.
#[test]
fn documents_for_operators_call_no_directory_a_root() {
    for path in documents().iter().filter(|path| !path.starts_with(top().join("docs/dev"))) {
        if ["ARCHITECTURE.md", "CONTRIBUTING.md"].iter().any(|name| path.ends_with(name)) {
            continue;
        }
        let text = fs::read_to_string(path).unwrap();
        let is_word = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()) == "Root";
        let line = text.lines().find(|line| line.split_whitespace().any(is_word));
        assert_eq!(line, None, "{}", path.display());
    }
}

#[test]
fn documents_link_to_what_exists() {
    for path in documents() {
        let text = fs::read_to_string(&path).unwrap();
        let targets = text.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
        for target in targets.filter(|target| !target.starts_with("http")) {
            let (file, wanted) = target.split_once('#').unwrap_or((target, ""));
            let file = if file.is_empty() { path.clone() } else { path.with_file_name("").join(file) };
            assert!(file.exists(), "{}: {target}", path.display());
            let has = |text: String| text.lines().any(|line| line.starts_with('#') && anchor(line) == wanted);
            assert!(
                wanted.is_empty() || has(fs::read_to_string(&file).unwrap()),
                "{}: {target}",
                path.display()
            );
        }
    }
}

/// The folders at the top that hold sources.
const TOPS: [&str; 5] = ["crates", "src", "wrappers", "tests", "xtask"];

/// Beginnings of paths that lead into the source of systemd and crun.
const OTHERS: [&str; 2] = ["src/basic/", "src/libcrun/"];

/// The paths from the top of the repository that a source file's comments name.
fn paths_in_comments(text: &str) -> Vec<&str> {
    let is_comment = |line: &&str| ["//", "#"].iter().any(|mark| line.trim_start().starts_with(mark));
    let words = text.lines().filter(is_comment).flat_map(str::split_whitespace);
    let plain = words.map(|word| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        word.strip_suffix("'s").unwrap_or(word)
    });
    let is_path = |word: &&str| {
        let is_below = |folder: &&str| word.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        let is_other = OTHERS.iter().any(|other| word.starts_with(other));
        // NAME stands for any name.
        TOPS.iter().any(is_below) && !is_other && !word.contains("NAME")
    };
    plain.filter(is_path).collect()
}

#[test]
fn comments_name_paths_that_exist() {
    let mut folders = TOPS.map(|folder| top().join(folder)).to_vec();
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() && !path.ends_with("target") {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs" || ending == "sh") {
                let text = fs::read_to_string(&path).unwrap();
                let mut named = paths_in_comments(&text).into_iter();
                assert_eq!(named.find(|named| !top().join(named).exists()), None, "{}", path.display());
            }
        }
    }
}

#[test]
fn documents_with_a_long_or_vague_sentence_are_refused() {
    let long = "word ".repeat(26);
    for (text, count) in [
        (format!("{long}\n"), 1),
        (format!("| cell | {long} |\n"), 1),
        (format!("- {long}\n"), 1),
        ("It is told\nwhat is ours.\n".to_owned(), 2),
        (format!("    {long}\n\n```\n{long}\n```\n`{long}`\n"), 0),
        ("word ".repeat(20) + "end. " + &"word ".repeat(20), 0),
    ] {
        assert_eq!(faults(&text).len(), count, "{text}");
    }
}
