//! `cargo xtask picture`: docs/demo.svg, the README's picture, from what the demo really prints on a terminal.

use anstyle_svg::Term;
use anyhow::{Context, Result};

use crate::command::Command;
use crate::refusal::Refusal;
use crate::repository;

/// Characters that fit into the picture's width.
const COLUMNS: usize = 128;

/// The heading behind what is shown.
const END: &str = "$ rocworker status";

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    if !arguments.is_empty() {
        return Err(Refusal::new("`cargo xtask picture` takes no argument"));
    }
    let demo = Command::new(["cargo", "run", "--quiet", "--locked", "--", "demo"]);
    // What anstream takes for "this is a terminal with colours".
    let text = demo.environment("CLICOLOR_FORCE", "1").environment("TMPDIR", "/tmp").read()?;
    // As far as the first apply: what follows is the same again, and longer than a page shows.
    let text = text.split(END).next().unwrap_or(&text);
    let path = repository::top().join("docs/demo.svg");
    let picture = Term::new().min_width_px(COLUMNS * 8).render_svg(&format!("$ cargo run -- demo\n{text}"));
    std::fs::write(&path, picture).with_context(|| format!("writing {}", path.display()))?;
    println!("{} is written", path.display());
    Ok(())
}
