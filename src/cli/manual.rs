use std::io::{Cursor, Write};
use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;
use root::Attributes;

use super::args::{Args, MORE};
use super::output::print_text;
use super::session::{caller, callers_folder};
use super::{Outcome, help, visible};

pub(crate) fn completions(shell: Shell) -> anyhow::Result<Outcome> {
    let mut script = Cursor::new(Vec::new());
    clap_complete::generate(shell, &mut visible::command(), "rocworker", &mut script);
    print_bytes(script.into_inner())
}

/// Prints one manual page with a section for each command, or writes a page for each command into the folder `into`.
pub(crate) fn man(into: Option<&Path>) -> anyhow::Result<Outcome> {
    let mut program = help::shown(Args::command());
    program.build();
    if let Some(folder) = into {
        let folder = callers_folder(folder)?;
        return pages(&folder, &program, "").map(|()| Outcome::Done);
    }
    let mut page = page(&program, "")?;
    for command in documented(&program) {
        writeln!(page, ".SH \"{}\"", format!("rocworker {}", command.get_name()).to_uppercase())?;
        let part = clap_mangen::Man::new(command.clone());
        part.render_synopsis_section(&mut page)?;
        part.render_description_section(&mut page)?;
        part.render_options_section(&mut page)?;
    }
    print_bytes(page)
}

/// `rocworker.8` and, of each command, `rocworker-COMMAND.8`, as man(1) finds `man rocworker cdi list`. `path`: the
/// command's words; empty for the program.
fn pages(folder: &Path, command: &clap::Command, path: &str) -> anyhow::Result<()> {
    let text = page(command, path)?;
    caller()?.write(
        folder.join(format!("{}.8", name(path))),
        &text,
        Attributes { mode: 0o644, owner: None },
    )?;
    documented(command).try_for_each(|it| pages(folder, it, format!("{path} {}", it.get_name()).trim_start()))
}

fn name(path: &str) -> String {
    format!("rocworker {path}").trim_end().replace(' ', "-")
}

/// A page as clap_mangen makes it, with what stands below the options in sections of man-pages(7).
fn page(command: &clap::Command, path: &str) -> anyhow::Result<Vec<u8>> {
    let page = clap_mangen::Man::new(command.clone().after_help(None::<&str>));
    let mut text = Vec::new();
    page.title(name(path).to_uppercase()).section("8").manual("rocworker").render(&mut text)?;
    let mut section =
        |title: &str, lines: &str| writeln!(text, ".SH \"{title}\"\n.nf\n{}\n.fi", lines.replace('-', r"\-"));
    if path.is_empty() {
        MORE.iter().try_for_each(|(_, title, lines)| section(title, lines))?;
    }
    help::examples(path).map_or(Ok(()), |lines| section("EXAMPLES", &lines))?;
    Ok(text)
}

fn documented(command: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    command.get_subcommands().filter(|command| command.get_name() != "help" && !command.is_hide_set())
}

fn print_bytes(bytes: Vec<u8>) -> anyhow::Result<Outcome> {
    print_text(&String::from_utf8(bytes)?)?;
    Ok(Outcome::Done)
}
