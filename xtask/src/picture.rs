//! `cargo xtask picture`: docs/demo.svg, from what the demo really prints on a terminal, and docs/top.svg, which a test of
//! `rocworker top` draws (tests/it/observe/top/picture.rs): the README's pictures.

use std::ffi::OsStr;

use anstyle_svg::Term;
use anyhow::{Context, Result};

use crate::command::Command;
use crate::programs::{Programs, target};
use crate::refusal::no_argument;
use crate::repository;

/// The columns of detect's table.
const COLUMNS: usize = 100;
#[cfg(test)]
const LINES: usize = 34;

const PLACE: &str = "docs/demo.svg";

/// The commands of the demo that are shown.
const SCENES: [&str; 5] = [
    "$ rocworker detect",
    "$ rocworker apply",
    "$ AMD_VISIBLE_DEVICES=2",
    "$ rocworker status",
    "$ rocworker undo",
];

const BOLD: &str = "\u{1b}[1m";

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    no_argument("picture", arguments)?;
    let path = repository::top().join(PLACE);
    // The build of the tests, which has the program, too.
    let (build, test) = (["cargo", "test", "--quiet", "--locked", "--workspace", "--target"], target());
    let test = build.into_iter().chain([&*test, "--test", "it", "observe::top::picture"]);
    Command::new(test).environment("ROCWORKER_PICTURE", "1").read()?;
    println!("{} is written", repository::top().join("docs/top.svg").display());
    let drawn = drawn(&shown(&demo([Programs::of_tests().rocworker.as_os_str(), OsStr::new("demo")])?)?);
    std::fs::write(&path, drawn).with_context(|| format!("writing {}", path.display()))?;
    println!("{} is written", path.display());
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

/// The scenes of what the demo printed: each command with its output.
fn shown(demo: &str) -> Result<String> {
    let scene = |command| {
        let begin = format!("{BOLD}{command}");
        let rest = demo.split_once(&begin).with_context(|| format!("the demo shows no `{command}`"))?.1;
        let ends =
            ["\n\n".to_owned(), format!("\n{BOLD}$ ")].map(|end| rest.find(&end).unwrap_or(rest.len()));
        let whole = rest.get(..ends.into_iter().min().unwrap_or_default()).unwrap_or_default();
        Ok(format!("{begin}{}", whole.trim_end()))
    };
    let scenes: Result<Vec<String>> = SCENES.into_iter().map(scene).collect();
    Ok(scenes?.join("\n\n") + "\n")
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
}
