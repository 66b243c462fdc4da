use std::io::{Cursor, Write};

use clap::CommandFactory;
use clap_complete::Shell;

use super::Outcome;
use super::args::Args;
use super::output::print_text;

pub(crate) fn completions(shell: Shell) -> anyhow::Result<Outcome> {
    let mut script = Cursor::new(Vec::new());
    clap_complete::generate(shell, &mut Args::command(), "rocworker", &mut script);
    print_bytes(script.into_inner())
}

/// One page for the program, with a section for each command.
pub(crate) fn man() -> anyhow::Result<Outcome> {
    let mut program = Args::command();
    program.build();
    let mut page = Vec::new();
    let manual = clap_mangen::Man::new(program.clone()).section("8").manual("rocworker");
    manual.render(&mut page)?;
    for command in
        program.get_subcommands().filter(|command| command.get_name() != "help" && !command.is_hide_set())
    {
        writeln!(page, ".SH \"{}\"", format!("rocworker {}", command.get_name()).to_uppercase())?;
        let part = clap_mangen::Man::new(command.clone());
        part.render_synopsis_section(&mut page)?;
        part.render_description_section(&mut page)?;
        part.render_options_section(&mut page)?;
    }
    print_bytes(page)
}

fn print_bytes(bytes: Vec<u8>) -> anyhow::Result<Outcome> {
    print_text(&String::from_utf8(bytes)?)?;
    Ok(Outcome::Done)
}
