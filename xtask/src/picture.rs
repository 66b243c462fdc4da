//! `cargo xtask picture`: docs/demo.svg, from what the demo really prints on a terminal, and docs/top.svg, which a test of
//! `rocworker top` draws (tests/it/observe/top/picture.rs): the README's pictures.

use std::ffi::OsStr;

use anstyle_svg::Term;
use anyhow::{Context, Result};

use crate::command::Command;
use crate::refusal::Refusal;
use crate::repository;

/// The columns that a README shows at its width in a readable size.
const COLUMNS: usize = 90;
#[cfg(test)]
const LINES: usize = 30;

const PLACE: &str = "docs/demo.svg";

/// The commands of the demo that are shown, each with how many of its first lines and of its last ones.
const SCENES: [(&str, usize, usize); 5] = [
    ("$ rocworker detect", 3, 2),
    ("$ rocworker apply", 2, 1),
    ("$ # the nodes in config.json", 3, 0),
    ("$ rocworker status", 2, 2),
    ("$ rocworker undo", 1, 1),
];

/// The column that makes detect's table wider than the picture.
const LEFT_OUT: &str = "PARTITION";

/// The prefix of the demo's folder (src/cli/demo.rs); its end differs from run to run.
const FOLDER: &str = "/tmp/rocworker-demo-";
const DIM: &str = "\u{1b}[2m";
const BOLD: &str = "\u{1b}[1m";
const PLAIN: &str = "\u{1b}[0m";

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    if !arguments.is_empty() {
        return Err(Refusal::new("`cargo xtask picture` takes no argument"));
    }
    let path = repository::top().join(PLACE);
    let drawn = drawn(&shown(&demo(["cargo", "run", "--quiet", "--locked", "--", "demo"])?)?);
    std::fs::write(&path, drawn).with_context(|| format!("writing {}", path.display()))?;
    println!("{} is written", path.display());
    let test = ["cargo", "test", "--quiet", "--locked", "--test", "observe", "top::picture"];
    Command::new(test).environment("ROCWORKER_PICTURE", "1").read()?;
    println!("{} is written", repository::top().join("docs/top.svg").display());
    Ok(())
}

/// The demo's output with its colours.
fn demo<A: AsRef<OsStr>>(argv: impl IntoIterator<Item = A>) -> Result<String> {
    // anstream takes this variable for "this is a terminal with colours".
    Command::new(argv).environment("CLICOLOR_FORCE", "1").environment("TMPDIR", "/tmp").read()
}

fn drawn(text: &str) -> String {
    Term::new().min_width_px(COLUMNS * 8).render_svg(text)
}

/// The scenes of what the demo printed.
fn shown(demo: &str) -> Result<String> {
    let demo = without_folder(demo);
    let scene = |(command, first, last)| {
        let begin = format!("{BOLD}{command}");
        let rest = demo.split_once(&begin).with_context(|| format!("the demo shows no `{command}`"))?.1;
        let whole = rest.split_once(&format!("\n{BOLD}$ ")).map_or(rest, |(scene, _)| scene);
        let (heading, output) = whole.split_once("\n\n").unwrap_or((whole, ""));
        let heading = heading.lines().next().unwrap_or_default();
        let output = without_column(output, LEFT_OUT);
        let lines: Vec<&str> = output.lines().filter(|line| !line.is_empty()).collect();
        let mut scene = vec![format!("{begin}{heading}")];
        scene.extend(excerpt(&lines, first, last));
        Ok(scene)
    };
    let scenes: Result<Vec<Vec<String>>> = SCENES.into_iter().map(scene).collect();
    let scenes: Vec<String> = scenes?.iter().map(|scene| scene.join("\n")).collect();
    Ok(scenes.join("\n\n") + "\n")
}

/// The first lines and the last ones, with a line for what is between them.
fn excerpt(lines: &[&str], first: usize, last: usize) -> Vec<String> {
    let cut = |lines: &[&str]| lines.iter().map(|line| cut(line)).collect::<Vec<_>>();
    let hidden = lines.len().saturating_sub(first + last);
    // A line that says so would take the place of the only line that it hides.
    if hidden <= 1 && last > 0 {
        return cut(lines);
    }
    let (head, rest) = lines.split_at(first.min(lines.len()));
    let mut excerpt = cut(head);
    if last > 0 {
        excerpt.push(format!("{DIM}  … {hidden} more lines{PLAIN}"));
        excerpt.extend(cut(rest.get(hidden..).unwrap_or_default()));
    }
    excerpt
}

/// A line as far as it fits, and what sets its colours back.
fn cut(line: &str) -> String {
    let Some(end) = visible(line).nth(COLUMNS - 1).filter(|_| visible(line).count() > COLUMNS) else {
        return line.to_owned();
    };
    format!("{}…{PLAIN}", line.get(..end).unwrap_or(line))
}

/// A table without the column of this name; other text stays.
fn without_column(text: &str, name: &str) -> String {
    let letters = |line: &str| visible(line).collect::<Vec<_>>();
    let place = text.lines().find_map(|line| {
        let (at, places) = (line.find(name)?, letters(line));
        let first = places.iter().position(|place| *place == at)?;
        let last =
            places.iter().skip(first + name.len()).position(|place| !line[*place..].starts_with(' '))?;
        Some((first, first + name.len() + last))
    });
    let Some((first, end)) = place else { return text.to_owned() };
    let shorter = |line: &str| match letters(line).as_slice() {
        places if places.len() > end => format!("{}{}", &line[..places[first]], &line[places[end]..]),
        _ => line.to_owned(),
    };
    text.lines().map(shorter).collect::<Vec<_>>().join("\n")
}

/// The place of each letter that is not part of a colour's sequence.
fn visible(line: &str) -> impl Iterator<Item = usize> {
    let mut in_sequence = false;
    line.char_indices().filter_map(move |(place, letter)| {
        let was_in_sequence = in_sequence;
        in_sequence = if in_sequence { letter != 'm' } else { letter == '\u{1b}' };
        (!was_in_sequence && !in_sequence).then_some(place)
    })
}

/// Paths as they are on a machine: without the demo's folder.
fn without_folder(demo: &str) -> String {
    let Some((_, rest)) = demo.split_once(FOLDER) else { return demo.to_owned() };
    let name: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
    demo.replace(&format!("{FOLDER}{name}"), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_the_picture_is_what_the_demo_prints_now_and_fits_a_readme() {
        let Some([program]) = support::real::require_made(["ROCWORKER_PROGRAM"], &[]) else { return };
        let shown = shown(&demo([program.as_os_str(), OsStr::new("demo")]).unwrap()).unwrap();
        let drawn = drawn(&shown);
        let kept = std::fs::read_to_string(repository::top().join(PLACE)).unwrap();
        assert!(kept == drawn, "{PLACE} is stale: run `cargo xtask picture`, which draws\n{shown}");
        for line in shown.lines() {
            assert!(visible(line).count() <= COLUMNS, "{line}");
            assert!(!line.trim_end_matches(PLAIN).ends_with('…'), "{line}");
        }
        assert!(shown.lines().count() <= LINES, "{} lines:\n{shown}", shown.lines().count());
    }

    #[test]
    fn a_long_scene_keeps_its_ends_and_a_long_line_its_beginning() {
        let lines = ["a", "b", "c", "d", "e"];
        for (first, last, expected) in [
            (2, 1, vec!["a", "b", "\u{1b}[2m  … 2 more lines\u{1b}[0m", "e"]),
            (3, 1, vec!["a", "b", "c", "d", "e"]),
            (9, 1, vec!["a", "b", "c", "d", "e"]),
            (2, 0, vec!["a", "b"]),
        ] {
            assert_eq!(excerpt(&lines, first, last), expected, "{first}, {last}");
        }
        let red = |text: &str| format!("\u{1b}[31m{text}\u{1b}[0m");
        assert_eq!(cut(&red(&"é".repeat(90))), red(&"é".repeat(90)));
        assert_eq!(cut(&red(&"é".repeat(91))), red(&format!("{}…", "é".repeat(89))));
    }

    #[test]
    fn the_demos_folder_is_left_out() {
        let demo = "in /tmp/rocworker-demo-aB3xYz: a\n/tmp/rocworker-demo-aB3xYz/etc  owned\n";
        assert_eq!(without_folder(demo), "in : a\n/etc  owned\n");
    }
}
