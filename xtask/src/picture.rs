//! `cargo xtask picture`: docs/demo.svg, from what the demo really prints on a terminal, and docs/top.svg, which a test of
//! `rocworker top` draws (tests/it/observe/top/picture.rs): the README's pictures.

use std::ffi::OsStr;

use anstyle_svg::Term;
use anyhow::{Context, Result};

use crate::command::Command;
use crate::refusal::Refusal;
use crate::repository;

/// The columns of detect's table.
const COLUMNS: usize = 100;
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
    let test = ["cargo", "test", "--quiet", "--locked", "--test", "it", "observe::top::picture"];
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
    let hidden = lines.len().saturating_sub(first + last);
    let own = |lines: &[&str]| lines.iter().map(ToString::to_string).collect::<Vec<_>>();
    // A line that says so would take the place of the only line that it hides.
    if hidden <= 1 && last > 0 {
        return own(lines);
    }
    let (head, rest) = lines.split_at(first.min(lines.len()));
    let mut excerpt = own(head);
    if last > 0 {
        excerpt.push(format!("{DIM}  … {hidden} more lines{PLAIN}"));
        excerpt.extend(own(rest.get(hidden..).unwrap_or_default()));
    }
    excerpt
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
            let mut parts = line.split('\u{1b}');
            let first = parts.next().unwrap_or_default();
            let rest: String = parts.filter_map(|part| Some(part.split_once('m')?.1)).collect();
            let without_colours = format!("{first}{rest}");
            assert!(without_colours.chars().count() <= COLUMNS, "{line}");
        }
        assert!(shown.lines().count() <= LINES, "{} lines:\n{shown}", shown.lines().count());
    }

    #[test]
    fn a_long_scene_keeps_its_ends() {
        let lines = ["a", "b", "c", "d", "e"];
        for (first, last, expected) in [
            (2, 1, vec!["a", "b", "\u{1b}[2m  … 2 more lines\u{1b}[0m", "e"]),
            (3, 1, vec!["a", "b", "c", "d", "e"]),
            (9, 1, vec!["a", "b", "c", "d", "e"]),
            (2, 0, vec!["a", "b"]),
        ] {
            assert_eq!(excerpt(&lines, first, last), expected, "{first}, {last}");
        }
    }

    #[test]
    fn the_demos_folder_is_left_out() {
        let demo = "in /tmp/rocworker-demo-aB3xYz: a\n/tmp/rocworker-demo-aB3xYz/etc  owned\n";
        assert_eq!(without_folder(demo), "in : a\n/etc  owned\n");
    }
}
