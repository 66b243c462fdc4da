use std::io::{Cursor, Write};
use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;
use root::Attributes;

use super::args::{Args, MORE};
use super::output::print_text;
use super::session::{caller, callers_folder};
use super::{Outcome, visible};

pub(crate) fn completions(shell: Shell) -> anyhow::Result<Outcome> {
    let mut script = Cursor::new(Vec::new());
    clap_complete::generate(shell, &mut visible::command(), "rocworker", &mut script);
    print_bytes(script.into_inner())
}

/// Prints one manual page with a section for each command, or writes a page for each command into the folder `into`.
pub(crate) fn man(into: Option<&Path>) -> anyhow::Result<Outcome> {
    let mut program = Args::command();
    program.build();
    if let Some(folder) = into {
        let folder = callers_folder(folder)?;
        return pages(&folder, &program, "rocworker").map(|()| Outcome::Done);
    }
    let mut page = page(&program, "rocworker")?;
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
    let text = page(command, name)?;
    caller()?.write(folder.join(format!("{name}.8")), &text, Attributes { mode: 0o644, owner: None })?;
    documented(command).try_for_each(|it| pages(folder, it, &format!("{name}-{}", it.get_name())))
}

/// A page as clap_mangen makes it; the program's own has its examples, files and exit codes in sections of
/// man-pages(7).
fn page(command: &clap::Command, name: &str) -> anyhow::Result<Vec<u8>> {
    let page = clap_mangen::Man::new(command.clone().after_help(None::<&str>));
    let mut text = Vec::new();
    page.title(name.to_uppercase()).section("8").manual("rocworker").render(&mut text)?;
    if name == command.get_name() {
        for (_, title, lines) in MORE {
            writeln!(text, ".SH \"{title}\"\n.nf\n{}\n.fi", lines.replace('-', r"\-"))?;
        }
    }
    Ok(text)
}

fn documented(command: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    command.get_subcommands().filter(|command| command.get_name() != "help" && !command.is_hide_set())
}

fn print_bytes(bytes: Vec<u8>) -> anyhow::Result<Outcome> {
    print_text(&String::from_utf8(bytes)?)?;
    Ok(Outcome::Done)
}
