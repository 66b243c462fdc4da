use std::io::{Cursor, Write};
use std::path::Path;

use anyhow::Context as _;
use clap::CommandFactory;
use clap_complete::Shell;
use root::Attributes;

use super::Outcome;
use super::args::Args;
use super::output::print_text;
use super::session::caller;

pub(crate) fn completions(shell: Shell) -> anyhow::Result<Outcome> {
    let mut script = Cursor::new(Vec::new());
    clap_complete::generate(shell, &mut Args::command(), "rocworker", &mut script);
    print_bytes(script.into_inner())
}

/// One page for the program, with a section for each command; or a page each, in a folder.
pub(crate) fn man(into: Option<&Path>) -> anyhow::Result<Outcome> {
    let mut program = Args::command();
    program.build();
    if let Some(folder) = into {
        let folder =
            folder.canonicalize().with_context(|| format!("cannot write into {}", folder.display()))?;
        return pages(&folder, &program, "rocworker").map(|()| Outcome::Done);
    }
    let mut page = Vec::new();
    let manual = clap_mangen::Man::new(program.clone()).section("8").manual("rocworker");
    manual.render(&mut page)?;
    for command in documented(&program) {
        writeln!(page, ".SH \"{}\"", format!("rocworker {}", command.get_name()).to_uppercase())?;
        let part = clap_mangen::Man::new(command.clone());
        part.render_synopsis_section(&mut page)?;
        part.render_description_section(&mut page)?;
        part.render_options_section(&mut page)?;
    }
    print_bytes(page)
}

/// `rocworker.8` and, of each command, `rocworker-COMMAND.8`, as man(1) finds `man rocworker cdi list`.
fn pages(folder: &Path, command: &clap::Command, name: &str) -> anyhow::Result<()> {
    let page =
        clap_mangen::Man::new(command.clone()).title(name.to_uppercase()).section("8").manual("rocworker");
    let mut text = Vec::new();
    page.render(&mut text)?;
    caller()?.write(folder.join(format!("{name}.8")), &text, Attributes { mode: 0o644, owner: None })?;
    documented(command).try_for_each(|it| pages(folder, it, &format!("{name}-{}", it.get_name())))
}

fn documented(command: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    command.get_subcommands().filter(|command| command.get_name() != "help" && !command.is_hide_set())
}

fn print_bytes(bytes: Vec<u8>) -> anyhow::Result<Outcome> {
    print_text(&String::from_utf8(bytes)?)?;
    Ok(Outcome::Done)
}
