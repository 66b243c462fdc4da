use clap::Subcommand;
use printable::printable;
use serde::Serialize;

use super::Outcome;
use super::options::Format;
use super::output::{BAD, DIM, GOOD, styled};
use super::session::{Misuse, Session};
use super::table::{Cell, Columns};
use crate::lease::{self, Held, HeldBy, Waiting};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show what holds each GPU, how rocworker knows that its container lives, and which creates wait
    List,
    /// Free the GPUs of a container that has ended, but still holds them
    Release {
        /// The container's id, or the render node of one GPU: renderD128
        name: String,
        /// Also if the container lives, or if that is unknown. Other containers can then get the GPU too
        #[arg(long)]
        force: bool,
    },
    /// End the create of a container that waits for GPUs (AMD_GPU_WAIT)
    Cancel {
        /// The container's id, as `lease list` shows it
        id: String,
    },
}

#[derive(Serialize)]
struct List<'a> {
    schema_version: u32,
    leases: &'a [Held],
    waiting: &'a [Waiting],
}

#[derive(Serialize)]
struct Released<'a> {
    schema_version: u32,
    released: &'a [String],
}

#[derive(Serialize)]
struct Cancelled<'a> {
    schema_version: u32,
    cancelled: &'a str,
    /// How many creates of that id waited.
    creates: usize,
}

pub(crate) fn run(session: &Session, command: &Command) -> anyhow::Result<Outcome> {
    if !session.root.is_host() && !session.root.exists("/proc/sys/kernel/random/boot_id") {
        let why = "lease: no container runs beneath --root, so nothing there holds or waits for a GPU";
        return Err(Misuse(why.to_owned()).into());
    }
    match command {
        Command::List => {
            let (leases, waiting) = lease::list(&session.root)?;
            let answer = List { schema_version: 1, leases: &leases, waiting: &waiting };
            session.format.print(&answer, || text(&leases, &waiting, session.format))?;
        }
        Command::Release { name, force } => {
            let released = lease::release(&session.root, name, *force)?;
            let answer = Released { schema_version: 1, released: &released };
            session.format.print(&answer, || format!("released {}\n", released.join(", ")))?;
        }
        Command::Cancel { id } => {
            let creates = lease::cancel(&session.root, id)?;
            let answer = Cancelled { schema_version: 1, cancelled: id, creates };
            session.format.print(&answer, || format!("cancelled {id}\n"))?;
        }
    }
    Ok(Outcome::Done)
}

fn text(leases: &[Held], waiting: &[Waiting], format: Format) -> String {
    if leases.is_empty() && waiting.is_empty() {
        return "no GPU is held\n".to_owned();
    }
    let mut table = Columns::new(&["GPU", "HELD BY", "CONTAINER", "RUNC ROOT", "SINCE", "ALIVE BY", "IDLE"]);
    table = table.only_wide(&[3, 4]).shortened(&[2, 1, 5]);
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    for held in leases {
        let alive = match (&held.problem, held.alive_by) {
            _ if held.gone => Cell::styled("its partition is gone", DIM),
            (Some(_), _) => Cell::styled("unknown", BAD),
            (None, Some(by)) => Cell::styled(by, GOOD),
            (None, None) if held.is_taken() => "-".into(),
            (None, None) => Cell::styled("nothing: free at the next decision", DIM),
        };
        table.row([
            held.gpu.as_ref().map_or_else(|| held.render.clone(), ToString::to_string).into(),
            match (held.held_by, &held.process) {
                (HeldBy::Lease, _) => "lease".into(),
                (HeldBy::Record, _) => "record".into(),
                (HeldBy::Process, process) => or_none(process).into(),
            },
            or_none(&held.id).into(),
            or_none(&held.runc_root).into(),
            or_none(&held.since).into(),
            alive,
            held.idle_s.map_or_else(|| "-".to_owned(), |seconds| format!("{seconds} s")).into(),
        ]);
    }
    let mut text = table.shown(format);
    for (held, problem) in leases.iter().filter_map(|held| Some((held, held.problem.as_ref()?))) {
        let line = format!("{}: the lease {problem}", held.render);
        text += &format!("{} {}\n", styled(BAD, "problem:"), printable(&line));
    }
    for one in waiting {
        let line = format!(
            "waiting: {} of runc root {} for {} since {}",
            one.id, one.runc_root, one.wants, one.since
        );
        text += &format!("{}\n", styled(DIM, line));
    }
    text
}
