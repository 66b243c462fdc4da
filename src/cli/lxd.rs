use std::fmt::Write;
use std::io::{Read, stdin};
use std::path::Path;

use anyhow::Context as _;
use clap::Subcommand;
use lxd::advice::{self, Advice, Question};
use lxd::command::{self, Client, Container, PLACEHOLDER, is_name};
use lxd::{ask, resources};
use printable::printable;
use reconcile::command::Programs;
use serde::Serialize;

use super::Outcome;
use super::output::{DIM, styled};
use super::session::{Misuse, Session, absolute, caller};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print the commands that pass AMD's GPUs, and only those, into a container; changes nothing
    Advise {
        /// Read the answer to `lxc query /1.0/resources` from this file, or from stdin with -, instead of asking
        #[arg(long, value_name = "FILE")]
        resources: Option<String>,
        /// The container's name, with its remote if it has one: REMOTE:NAME
        #[arg(long, value_name = "NAME", value_parser = name)]
        container: Option<String>,
        /// The number of the group render in the container; default: what the container's /etc/group says
        #[arg(long, value_name = "GID", value_parser = clap::value_parser!(u32).range(1..))]
        gid: Option<u32>,
        /// Whose commands; default: LXD's, or Incus's if only that is installed
        #[arg(long, value_enum)]
        client: Option<Client>,
        /// The file of `--json FILE`, as --resources was called
        #[arg(hide = true)]
        file: Option<String>,
    },
}

fn name(text: &str) -> Result<String, Misuse> {
    let wrong = || Misuse("an instance has letters, digits and dashes in its name".to_owned());
    is_name(text).then(|| text.to_owned()).ok_or_else(wrong)
}

#[derive(Serialize)]
struct Answer<'a> {
    schema_version: u32,
    client: &'static str,
    /// The command or file that listed the cards.
    source: String,
    container: Option<&'a str>,
    gid: Option<u32>,
    #[serde(flatten)]
    advice: &'a Advice,
}

pub(crate) fn run(session: &Session, command: &Command) -> anyhow::Result<Outcome> {
    let Command::Advise { resources: file, container, gid, client, file: former } = command;
    if let Some(former) = former {
        let why = format!("lxd advise reads a file by --resources {former}; --json is -o json");
        return Err(Misuse(why).into());
    }
    let programs = Programs::of(&session.root);
    // A file may be another host's: no daemon here knows what a container there has.
    let host = programs.as_ref().filter(|_| file.is_none());
    let (client, bytes, source) = match (file, host) {
        (Some(file), _) => {
            let found = programs.as_ref().and_then(|programs| ask::client(programs, *client).ok());
            let source = if file == "-" { "stdin" } else { file };
            (client.or(found).unwrap_or(Client::Lxc), read(file)?, source.to_owned())
        }
        (None, Some(host)) => {
            let client = ask::client(host, *client)?;
            let bytes = ask::resources(host, client)?;
            (client, bytes, format!("{} query /1.0/resources", client.program()))
        }
        (None, None) => {
            let why = "lxd advise: with --root rocworker asks no daemon: give --resources FILE";
            return Err(Misuse(why.to_owned()).into());
        }
    };
    let cards = resources::cards(&bytes).with_context(|| format!("cannot use {source}"))?;
    let (gid, gid_from) = gid_of(host, client, container.as_deref(), *gid);
    let name = container.as_deref().unwrap_or(PLACEHOLDER);
    let is_partition = |render: &str| is_partition(session, file.is_none(), render);
    let question = Question {
        container: Container { client, name, gid },
        gid_from,
        takes_cdi: host.and_then(|host| ask::takes_cdi(host, client)),
    };
    let advice = advice::advise(&cards, &question, &is_partition)?;
    let answer = Answer {
        schema_version: 1,
        client: client.program(),
        source,
        container: container.as_deref(),
        gid,
        advice: &advice,
    };
    session.format.print(&answer, || text(&advice))?;
    Ok(Outcome::Done)
}

/// Asks sysfs whether a render node is a further partition's: on the machine that was asked, or beneath the `--root`
/// that goes with a file. `None`: there is no such sysfs.
fn is_partition(session: &Session, of_this_machine: bool, render: &str) -> Option<bool> {
    let device = Path::new("/sys/class/drm").join(render).join("device");
    let is_known = (of_this_machine || !session.root.is_host()) && session.root.lstat(&device).is_ok();
    is_known.then(|| amdgpu::is_partition(&session.root, &device))
}

fn read(file: &str) -> anyhow::Result<Vec<u8>> {
    if file != "-" {
        let read = caller()?.read(absolute(Path::new(file))?, resources::LIMIT);
        return read.map_err(|error| match error.is_not_found() {
            true => Misuse(format!("--resources: {error}")).into(),
            false => error.into(),
        });
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
    let name = container.unwrap_or(PLACEHOLDER);
    let by_hand = format!("`{} exec {name} -- getent group render` prints it", client.program());
    match (given, container, host) {
        (Some(gid), _, _) => (Some(gid), "--gid gives it".to_owned()),
        (None, Some(name), Some(programs)) => match ask::render_of(programs, client, name) {
            Ok(gid) => (Some(gid), format!("{name}/etc/group has it")),
            Err(why) => (None, format!("rocworker cannot read it ({}); {by_hand}", printable(&why))),
        },
        (None, _, _) => (None, by_hand),
    }
}

/// A text that a shell can run: everything but the commands is behind a #.
fn text(advice: &Advice) -> String {
    let mut text = String::new();
    for note in &advice.notes {
        remark(&mut text, note);
    }
    for card in &advice.cards {
        if let Some(why) = card.left_out() {
            remark(&mut text, &format!("left out: {why}"));
        }
    }
    for command in &advice.commands.add {
        writeln!(text, "{command}").ok();
    }
    commands(&mut text, "to remove these devices:", &advice.commands.remove);
    if let Some(cdi) = &advice.cdi {
        commands(&mut text, "or, in place of all these commands, by CDI:", &cdi.add);
        commands(&mut text, "and to remove that device:", &cdi.remove);
    }
    text
}

fn commands(text: &mut String, title: &str, commands: &[command::Command]) {
    remark(text, title);
    commands.iter().for_each(|command| remark(text, &format!("  {command}")));
}

/// A line end in a name of a vendor or product must not end the remark.
fn remark(text: &mut String, line: &str) {
    writeln!(text, "{}", styled(DIM, format!("# {}", printable(line)))).ok();
}
