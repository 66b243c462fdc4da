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

/// Asserts that a document has the lines of a table or of a list, in this order and with no other between them.
///
/// # Panics
/// Names the lines that the document lacks, ready to be copied, and those that it must not have.
#[track_caller]
pub fn assert_has_rows(path: &str, rows: &str) {
    let document = text(path);
    if document.contains(rows) {
        return;
    }
    let is_row = |line: &&str| rows.lines().any(|row| row == *line);
    let blocks = document.split("\n\n");
    let written = blocks.max_by_key(|block| block.lines().filter(is_row).count()).unwrap_or_default();
    let lacks: Vec<&str> = rows.lines().filter(|row| written.lines().all(|line| line != *row)).collect();
    let leftover: Vec<&str> = written.lines().filter(|line| !is_row(line)).collect();
    assert!(!lacks.is_empty() || !leftover.is_empty(), "{path}: the lines must stand in this order:\n{rows}");
    panic!("{path}\nlacks these lines:\n{}\nmust not have these:\n{}", lacks.join("\n"), leftover.join("\n"));
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The panic of a document of two rows below a head of its own.
    fn panic_of(table: &str) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("page.md");
        fs::write(&path, "# Page\n\n| a | b |\n| --- | --- |\n| 1 | x |\n| 2 | y |\n\nText.\n").unwrap();
        let path = path.to_str().unwrap();
        let panicked = std::panic::catch_unwind(|| assert_has_rows(path, table)).err()?;
        Some(panicked.downcast_ref::<String>().unwrap().replace(path, "page.md"))
    }

    #[test]
    fn a_table_that_differs_names_the_rows_to_add_and_to_remove() {
        let head = "| a | b |\n| --- | --- |\n";
        assert_eq!(panic_of(&format!("{head}| 1 | x |\n| 2 | y |\n")), None);
        let changed = panic_of(&format!("{head}| 1 | x |\n| 3 | z |\n")).unwrap();
        assert_eq!(changed, "page.md\nlacks these lines:\n| 3 | z |\nmust not have these:\n| 2 | y |");
        let moved = panic_of(&format!("{head}| 2 | y |\n| 1 | x |\n")).unwrap();
        assert!(moved.contains("in this order"), "{moved}");
    }
}
