//! `explain`: an error's number, another's code, or what the kernel says in a line, a file or the journal.

mod codes;
mod list;
mod log;
mod near;

use super::Outcome;
use super::session::{Misuse, Session};

const NOTHING_ASKED: &str = "explain: name a code, such as 7 or hip:719, or a line of the kernel's log; - reads a log \
                             from stdin, --journal the journal, and --list lists what explain knows";

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("asked").args(["what", "list", "journal"]))]
pub(crate) struct Args {
    /// A line of the kernel's log or a message's name as ring-timeout, a code as hip:719, hsa:0x1016 or amdsmi:2,
    /// 1 to 8, or - to read a log from stdin
    #[arg(value_name = "CODE|TEXT|-")]
    what: Option<String>,
    /// List what the kernel and HIP say, and the errors 1 to 8
    #[arg(long)]
    list: bool,
    /// Look through the kernel's messages in the journal, of this boot unless --since says more
    #[arg(long)]
    pub(super) journal: bool,
    /// The journal from this time on, as journalctl takes it: yesterday, "2 hours ago", 2026-11-23
    #[arg(long, value_name = "TIME", requires = "journal", conflicts_with_all = ["what", "list"])]
    pub(super) since: Option<String>,
}

pub(crate) fn run(session: &Session, args: &Args) -> anyhow::Result<Outcome> {
    match &args.what {
        _ if args.list => list::list(session),
        _ if args.journal => log::journal(session, args.since.as_deref()),
        Some(what) if what == "-" => log::from_stdin(session),
        Some(what) => codes::one(session, what)
            .or_else(|| list::one(session, what).transpose())
            .unwrap_or_else(|| log::text(session, what)),
        None => Err(Misuse(NOTHING_ASKED.to_owned()).into()),
    }
}

/// `list-errors`: the errors 1 to 8.
pub(crate) fn list_errors(session: &Session) -> anyhow::Result<Outcome> {
    codes::list_errors(session)
}

/// The word by which JSON names a value, for tables.
fn word(value: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}
