//! Installs what is missing, after asking.

use std::io::{BufRead, IsTerminal, Write};

use anyhow::{Context, Result};

use crate::command::Command;
use crate::privilege::Privilege;
use crate::refusal::Refusal;

use super::needs::Missing;

/// The caller's consent to install packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consent {
    Given,
    Ask,
}

/// Installs what this machine lacks.
///
/// # Errors
/// A [`Refusal`] when the answer is no, or when there is no person to ask.
pub(crate) fn what_is_missing(consent: Consent, privilege: &Privilege, all: bool) -> Result<()> {
    let missing = Missing::on_this_machine(all)?;
    if missing.is_nothing() {
        println!("everything that the tests need is installed");
        return Ok(());
    }
    println!("the tests need what is not here yet:");
    missing.lines().iter().for_each(|line| println!("  {line}"));
    let commands = commands(&missing, *privilege);
    agree(consent, &commands)?;
    commands.iter().try_for_each(|argv| Command::new(argv).run())?;
    let left = Missing::on_this_machine(all)?.lines();
    if left.is_empty() {
        return Ok(());
    }
    Err(Refusal::new(format!("these are still missing after the installation: {}", left.join("; "))))
}

/// The commands of an installation, in order; no shell reads them.
fn commands(missing: &Missing, privilege: Privilege) -> Vec<Vec<String>> {
    let apt = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"];
    let mut commands = Vec::new();
    if !missing.packages.is_empty() {
        commands.push(privilege.as_root(&[&apt[..], &["update"]].concat()));
        let install = ["install", "--yes", "--no-install-recommends"];
        commands.push(privilege.as_root(&[&apt[..], &install[..], &missing.packages[..]].concat()));
    }
    for component in &missing.components {
        commands.push(owned(&["rustup", "component", "add", component]));
    }
    for target in &missing.targets {
        commands.push(owned(&["rustup", "target", "add", target]));
    }
    if missing.nextest {
        commands.push(owned(&["cargo", "install", "cargo-nextest", "--locked"]));
    }
    if missing.fuzz {
        commands.push(owned(&["cargo", "install", "cargo-fuzz", "--locked"]));
    }
    commands
}

fn owned(argv: &[&str]) -> Vec<String> {
    argv.iter().map(ToString::to_string).collect()
}

fn agree(consent: Consent, commands: &[Vec<String>]) -> Result<()> {
    if consent == Consent::Given || in_ci(std::env::var("CI").ok().as_deref()) {
        return Ok(());
    }
    println!("this would be run:");
    commands.iter().for_each(|argv| println!("  {}", argv.join(" ")));
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(Refusal::new(
            "there is no terminal to ask on: run `cargo xtask test --yes` to install the above",
        ));
    }
    print!("install it? [y/N] ");
    std::io::stdout().flush().context("writing the question")?;
    let mut answer = String::new();
    stdin.lock().read_line(&mut answer).context("reading the answer")?;
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        return Ok(());
    }
    Err(Refusal::new(
        "nothing was installed and nothing was run; `cargo test` runs what an ordinary user can",
    ))
}

/// Whether the variable `CI` means that no person can be asked.
fn in_ci(value: Option<&str>) -> bool {
    value.is_some_and(|value| !matches!(value, "" | "0" | "false"))
}
