use std::fmt::Write;
use std::io::{Read, stdin};
use std::path::Path;

use anyhow::Context as _;
use clap::{Subcommand, ValueEnum};
use reconcile::command::Programs;
use serde::Serialize;

use super::Outcome;
use super::output::{DIM, styled};
use super::session::{Misuse, Session, absolute, caller};
use crate::lxd::advice::{self, Advice, Cdi, Question};
use crate::lxd::command::{self, Client, Container, PLACEHOLDER, is_name};
use crate::lxd::{ask, resources};
use crate::printable::printable;
use crate::task_check::nodes;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print the commands that pass every card of AMD's, and only those, into a container; changes nothing
    Advise {
        /// Read the answer to `lxc query /1.0/resources` from this file, or from stdin with -, instead of asking
        #[arg(long, value_name = "FILE")]
        json: Option<String>,
        /// The container's name, with its remote where it has one: REMOTE:NAME
        #[arg(long, value_name = "NAME", value_parser = name)]
        container: Option<String>,
        /// The number of the group render in the container; without it the container's /etc/group is asked
        #[arg(long, value_name = "GID", value_parser = clap::value_parser!(u32).range(1..))]
        gid: Option<u32>,
        /// Whose commands; without it LXD's, and Incus's where only that is there
        #[arg(long, value_enum)]
        client: Option<Whose>,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Whose {
    Lxc,
    Incus,
}

fn name(text: &str) -> Result<String, Misuse> {
    let wrong = || Misuse("an instance has letters, digits and dashes in its name".to_owned());
    is_name(text).then(|| text.to_owned()).ok_or_else(wrong)
}

#[derive(Serialize)]
struct Answer<'a> {
    schema_version: u32,
    client: &'static str,
    /// Where the list of cards came from.
    source: String,
    container: Option<&'a str>,
    gid: Option<u32>,
    #[serde(flatten)]
    advice: &'a Advice,
}

/// The list of cards, and who has it.
struct Heard {
    client: Client,
    bytes: Vec<u8>,
    source: String,
    cdi: Cdi,
}

pub(crate) fn run(session: &Session, command: &Command) -> anyhow::Result<Outcome> {
    let Command::Advise { json, container, gid, client } = command;
    let wanted = client.map(|whose| match whose {
        Whose::Lxc => Client::Lxc,
        Whose::Incus => Client::Incus,
    });
    let programs = session.programs.as_ref();
    let heard = match json {
        Some(file) => from_file(file, programs, wanted)?,
        None => from_daemon(programs, wanted)?,
    };
    let client = heard.client;
    let cards = resources::cards(&heard.bytes).with_context(|| format!("cannot use {}", heard.source))?;
    // Of a file's host nobody is asked what a container there has.
    let host = programs.filter(|_| json.is_none());
    let (gid, gid_from) = gid_of(host, client, container.as_deref(), *gid);
    let name = container.as_deref().unwrap_or(PLACEHOLDER);
    let is_partition = |render: &str| is_partition(session, json.is_none(), render);
    let question = Question { container: Container { client, name, gid }, gid_from, cdi: heard.cdi };
    let advice = advice::advise(&cards, &question, &is_partition)?;
    let answer = Answer {
        schema_version: 1,
        client: client.program(),
        source: heard.source,
        container: container.as_deref(),
        gid,
        advice: &advice,
    };
    session.format.print(&answer, || text(&advice))?;
    Ok(Outcome::Done)
}

fn from_file(file: &str, programs: Option<&Programs>, wanted: Option<Client>) -> anyhow::Result<Heard> {
    let there = programs.and_then(|programs| ask::client(programs, wanted).ok());
    let client = wanted.or(there).unwrap_or(Client::Lxc);
    let source = if file == "-" { "stdin" } else { file };
    Ok(Heard { client, bytes: read(file)?, source: source.to_owned(), cdi: Cdi::Unknown })
}

fn from_daemon(programs: Option<&Programs>, wanted: Option<Client>) -> anyhow::Result<Heard> {
    let nobody =
        || Misuse("lxd advise: beneath another root than / nobody is asked: give --json FILE".to_owned());
    let programs = programs.ok_or_else(nobody)?;
    let client = ask::client(programs, wanted)?;
    let bytes = ask::resources(programs, client)?;
    let source = format!("{} query /1.0/resources", client.program());
    Ok(Heard { client, bytes, source, cdi: ask::cdi(programs, client) })
}

/// By sysfs of the machine that was asked, or of the Root that goes with a file.
fn is_partition(session: &Session, of_this_machine: bool, render: &str) -> Option<bool> {
    let device = Path::new("/sys/class/drm").join(render).join("device");
    let is_known = (of_this_machine || !session.root.is_host()) && session.root.lstat(&device).is_ok();
    is_known.then(|| nodes::is_partition(&session.root, &device))
}

fn read(file: &str) -> anyhow::Result<Vec<u8>> {
    if file != "-" {
        return Ok(caller()?.read(absolute(Path::new(file))?, resources::LIMIT)?);
    }
    let mut bytes = Vec::new();
    let more = u64::try_from(resources::LIMIT)? + 1;
    stdin().lock().take(more).read_to_end(&mut bytes).context("cannot read stdin")?;
    anyhow::ensure!(bytes.len() <= resources::LIMIT, "stdin has more than {} MiB", resources::LIMIT >> 20);
    Ok(bytes)
}

/// The gid, and a part of a sentence on where it comes from.
fn gid_of(
    host: Option<&Programs>,
    client: Client,
    container: Option<&str>,
    given: Option<u32>,
) -> (Option<u32>, String) {
    let program = client.program();
    let by_hand = |name| format!("`{program} exec {name} -- getent group render` tells it");
    match (given, container, host) {
        (Some(gid), _, _) => (Some(gid), "it was given".to_owned()),
        (None, Some(name), Some(programs)) => match ask::render_of(programs, client, name) {
            Ok(gid) => (Some(gid), format!("{name}/etc/group has it")),
            Err(why) => (None, format!("it is not known here ({}); {}", printable(&why), by_hand(name))),
        },
        (None, name, _) => (None, by_hand(name.unwrap_or(PLACEHOLDER))),
    }
}

/// What a shell can be given as it stands: everything but the commands is behind a #.
fn text(advice: &Advice) -> String {
    let mut text = String::new();
    for note in &advice.notes {
        remark(&mut text, note);
    }
    for card in &advice.cards {
        if let Some(why_not) = &card.why_not {
            remark(&mut text, &format!("left out: {}: {why_not}", card.called()));
        }
    }
    for command in &advice.add {
        writeln!(text, "{command}").ok();
    }
    commands(&mut text, "taken away again:", &advice.remove);
    if let Some(cdi) = &advice.cdi {
        commands(&mut text, "in the place of all of these, by CDI:", &cdi.add);
        commands(&mut text, "and taken away again:", &cdi.remove);
    }
    text
}

fn commands(text: &mut String, title: &str, commands: &[command::Command]) {
    remark(text, title);
    commands.iter().for_each(|command| remark(text, &format!("  {command}")));
}

/// Names of vendors and products are the machine's: no line end of theirs may end the remark.
fn remark(text: &mut String, line: &str) {
    writeln!(text, "{}", styled(DIM, format!("# {}", printable(line)))).ok();
}
