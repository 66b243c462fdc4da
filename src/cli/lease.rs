use clap::Subcommand;
use serde::Serialize;

use super::Outcome;
use super::output::{BAD, DIM, GOOD, styled};
use super::session::Session;
use super::table::{Cell, Columns};
use crate::lease::{self, Held, Waiting};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show every lease, what says that its container lives, and who waits
    List,
    /// Free the GPUs of a container that has ended
    Release {
        /// The container's id, or the render node of one GPU: renderD128
        name: String,
        /// Also where the container lives or nobody can tell: nothing then keeps others off the GPU
        #[arg(long)]
        force: bool,
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

pub(crate) fn run(session: &Session, command: &Command) -> anyhow::Result<Outcome> {
    match command {
        Command::List => {
            let (leases, waiting) = lease::list(&session.root)?;
            let answer = List { schema_version: 1, leases: &leases, waiting: &waiting };
            session.format.print(&answer, || text(&leases, &waiting))?;
        }
        Command::Release { name, force } => {
            let released = lease::release(&session.root, name, *force)?;
            let answer = Released { schema_version: 1, released: &released };
            session.format.print(&answer, || format!("released {}\n", released.join(", ")))?;
        }
    }
    Ok(Outcome::Done)
}

fn text(leases: &[Held], waiting: &[Waiting]) -> String {
    if leases.is_empty() && waiting.is_empty() {
        return "no GPU is leased\n".to_owned();
    }
    let mut table = Columns::new(&["GPU", "CONTAINER", "RUNC ROOT", "SINCE", "ALIVE BY", "IDLE"]);
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    for held in leases {
        let alive = match (&held.problem, held.alive_by) {
            (Some(problem), _) => Cell::styled(format!("nobody knows: the lease {problem}"), BAD),
            (None, Some(by)) => Cell::styled(by, GOOD),
            (None, None) => Cell::styled("nothing: free at the next decision", DIM),
        };
        table.row([
            held.gpu.as_ref().map_or_else(|| held.render.clone(), ToString::to_string).into(),
            or_none(&held.id).into(),
            or_none(&held.runc_root).into(),
            or_none(&held.since).into(),
            alive,
            held.idle_s.map_or_else(|| "-".to_owned(), |seconds| format!("{seconds} s")).into(),
        ]);
    }
    let mut text = table.to_string();
    for one in waiting {
        let line = format!(
            "waiting: {} of runc root {} for {} since {}",
            one.id, one.runc_root, one.wants, one.since
        );
        text += &format!("{}\n", styled(DIM, line));
    }
    text
}
