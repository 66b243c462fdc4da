//! What the Debian package's maintainer scripts call (packaging/debian); nothing else does.

use anyhow::bail;
use clap::Subcommand;
use printable::counted;

use super::Outcome;
use super::changes;
use super::output::print_text;
use super::session::Session;
use crate::package;
use crate::run::{Phase, State};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Which stored files this version reads, and up to which schema_version: a line for each
    Formats,
    /// After another version has been put in place: bring the machine to what this one makes of it, if one was applied
    Renew,
    /// Before the program goes: revert what names it
    Leave {
        /// Nothing will remember afterwards what was changed here
        #[arg(long)]
        purge: bool,
    },
}

pub(crate) fn run(session: &Session, command: &Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Formats => {
            let line = |(path, version)| format!("{path} {version}\n");
            print_text(&package::formats().into_iter().map(line).collect::<String>())?;
            Ok(Outcome::Done)
        }
        Command::Renew => renew(session),
        Command::Leave { purge } => leave(session, *purge),
    }
}

/// Applies after an upgrade of the package what this version does otherwise. What the last version set up works on, so
/// the upgrade does not fail because a card is gone or a configuration is wrong. It fails if a newer version has stored
/// a file that this version cannot read.
fn renew(session: &Session) -> anyhow::Result<Outcome> {
    match State::read(&session.root).map(|state| state.phase()) {
        Ok(Phase::Unmanaged) => return Ok(Outcome::Done),
        Ok(Phase::Undone) => {
            print_text("rocworker was undone here. `rocworker apply` configures it again.\n")?;
            return Ok(Outcome::Done);
        }
        Ok(Phase::Applied) => {}
        // The upgrade below reports a memory that cannot be read.
        Err(_) => drop(State::of_receipt(&session.root)?),
    }
    let applied = session
        .config_in_force()
        .and_then(|config| session.run(&config, |run, on_progress| run.upgrade(on_progress)));
    match applied {
        Ok(applied) => {
            let mut text = changes::outcome(session, &applied);
            text.push_str(&match applied.changes.len() {
                // The warnings above name what is wrong.
                0 if applied.falls_short() => String::new(),
                0 => "rocworker: already in sync with this version\n".to_owned(),
                n => format!("rocworker: {} made for this version\n", counted(n, "change")),
            });
            print_text(&text)?;
        }
        Err(error) => {
            tracing::warn!("the machine stays as the last version left it: {error:#}; see rocworker status");
        }
    }
    Ok(Outcome::Done)
}

fn leave(session: &Session, purge: bool) -> anyhow::Result<Outcome> {
    let what = if purge { "purge" } else { "remove" };
    let config = session.config_for_undo()?;
    let (undone, stays) = session.run(&config, |run, on_progress| {
        let kept_by = package::keeps_program(run, purge)?;
        if !kept_by.is_empty() {
            bail!("the package stays: {}; then {what} it again", kept_by.join("; "));
        }
        let undone = run.remove(on_progress)?;
        anyhow::Ok((undone, package::installed_by_apt(&State::of_receipt(&session.root)?)))
    })?;
    let mut text = changes::outcome(session, &undone);
    if !undone.changes.is_empty() {
        text.push_str(&format!("rocworker: {} reverted\n", counted(undone.changes.len(), "change")));
    }
    if let Some(first) = stays.first() {
        text.push_str(&format!(
            "rocworker: what came by apt stays ({} and {} more); to be without it: install rocworker again, rocworker undo\n",
            first.display(),
            stays.len() - 1
        ));
    }
    print_text(&text)?;
    if undone.falls_short() {
        if undone.changes.is_empty() {
            bail!("Package kept; nothing was reverted. Correct what is listed above, then {what} it again.");
        }
        bail!(
            "Package kept; not everything that uses it was reverted. Correct what is listed above, then {what} it again. \
             `rocworker apply` restores what was reverted."
        );
    }
    Ok(Outcome::Done)
}
