//! The commands of a document, for tests that run them word for word.

use std::fs;
use std::path::Path;

/// A document of this repository, by its path from the top.
///
/// # Panics
/// Where it cannot be read.
pub fn text(path: &str) -> String {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(top.join(path)).unwrap()
}

/// The blocks of code of a section, each without its indentation. `heading`: its whole line.
///
/// # Panics
/// Where the document has no such section.
#[track_caller]
pub fn blocks(document: &str, heading: &str) -> Vec<String> {
    let begin = format!("\n{heading}\n\n");
    let section = document.split_once(&begin).unwrap_or_else(|| panic!("there is no section {heading}")).1;
    let section = section.split("\n#").next().unwrap();
    let blocks = section.split("\n\n").filter(|block| block.starts_with("    "));
    blocks.map(|block| block.lines().map(|line| format!("{}\n", line.trim_start())).collect()).collect()
}

/// The fenced blocks of a document: the word behind the fence, and the lines.
pub fn fenced(document: &str) -> impl Iterator<Item = (&str, &str)> {
    document.split("```").skip(1).step_by(2).filter_map(|part| part.split_once('\n'))
}

/// The commands of all blocks of a console, each with what stands below it.
pub fn consoles(document: &str) -> impl Iterator<Item = (&str, &str)> {
    let blocks = fenced(document).filter(|(kind, _)| *kind == "console").map(|(_, block)| block);
    blocks
        .flat_map(|block| block.strip_prefix("$ ").unwrap_or(block).split("\n$ "))
        .map(|part| part.split_once('\n').unwrap_or((part, "")))
}

/// A quick start of the README: its commands, and what is no command, such as a pipeline's step.
///
/// # Panics
/// Where the README has none of this title, or one that is longer than its reader's patience.
#[track_caller]
pub fn quick_start(title: &str) -> (Vec<String>, Vec<String>) {
    let blocks = blocks(&text("README.md"), &format!("### {title}"));
    let lines: usize = blocks.iter().map(|block| block.lines().count()).sum();
    assert!((1..=6).contains(&lines), "{title}: {lines} lines");
    let mut blocks = blocks.into_iter();
    let commands = blocks.next().unwrap().lines().map(str::to_owned).collect();
    (commands, blocks.collect())
}
