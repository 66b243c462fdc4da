//! `top` of another machine: the rocworker there reads it, and this one draws, so that nothing from there steers the terminal.

use std::io::{self, Write as _};
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::anyhow;
use config::Host;
use fleet::program::{self, Command, Event, Which};
use printable::{printable, shortened};
use reconcile::command::{Programs, Stream};
use ui::top::reader::Scrape;
use ui::top::signals;

use crate::cli::Outcome;
use crate::cli::session::Session;
use crate::cli::top::{Args, needs_a_terminal, watch};

/// The limit for a watch: a year.
const NO_LIMIT: Duration = Duration::from_secs(365 * 24 * 3600);

/// The most bytes of a snapshot: far more than that of a machine with 64 partitions has.
const LARGEST: usize = 16 << 20;

pub(super) fn run(programs: Programs, session: &Session, host: Host, args: &Args) -> anyhow::Result<Outcome> {
    needs_a_terminal(session)?;
    let (begin, begun) = channel();
    // A machine sends one snapshot for each that is asked for.
    let (send, snapshots) = sync_channel(1);
    let connection = thread::spawn(move || {
        signals::block();
        connect(&programs, &host, &begin, &send)
    });
    let Ok(stdin) = begun.recv() else { return Err(anyhow!(why(Some(connection)))) };
    let mut connection = Some(connection);
    watch(
        args,
        Box::new(move || {
            // Where the connection has ended, no snapshot comes.
            stdin.send(b"\n".to_vec()).ok();
            snapshots.recv().map_err(|_| io::Error::other(why(connection.take())))
        }),
    )
}

fn why(connection: Option<JoinHandle<String>>) -> String {
    connection.and_then(|it| it.join().ok()).unwrap_or_else(|| "the connection has ended".to_owned())
}

/// Runs the rocworker there until the connection ends, and returns why it ended. Sends its stdin, then each snapshot.
fn connect(
    programs: &Programs,
    host: &Host,
    begin: &Sender<Sender<Vec<u8>>>,
    send: &SyncSender<Result<Scrape, String>>,
) -> String {
    let words = ["snapshots".to_owned()];
    let command =
        Command { which: Which::Same, words: &words, colour: false, limit: NO_LIMIT, most: usize::MAX };
    let (mut line, mut stderr, mut is_flood) = (Vec::new(), Vec::new(), false);
    let ended = program::run(programs, host, &command, &mut |event| {
        if let Some(text) = event.sentence() {
            writeln!(io::stderr(), "{host}: {text}").ok();
        }
        match event {
            Event::Copying { .. } => true,
            Event::Begun { stdin, .. } => begin.send(stdin).is_ok(),
            Event::Output(Stream::Stderr, chunk) => {
                stderr.extend(chunk.iter().take(LARGEST.saturating_sub(stderr.len())));
                true
            }
            Event::Output(Stream::Stdout, chunk) => {
                for part in chunk.split_inclusive(|byte| *byte == b'\n') {
                    line.extend(part);
                    if line.ends_with(b"\n") {
                        let scrape = serde_json::from_slice(&line)
                            .unwrap_or_else(|error| Err(format!("{host} sent no snapshot: {error}")));
                        line.clear();
                        is_flood = send.try_send(scrape).is_err();
                        if is_flood {
                            return false;
                        }
                    }
                }
                is_flood = line.len() > LARGEST;
                !is_flood
            }
        }
    });
    match ended {
        _ if is_flood => {
            format!("{host} sent more snapshots than rocworker asked for, or one that is too large")
        }
        Ok(code) => {
            let stderr = String::from_utf8_lossy(&stderr);
            let last = stderr.lines().last().map(|line| format!(": {}", shortened(printable(line), 300)));
            let last = last.unwrap_or_default();
            format!("{host}: rocworker there ended with code {code}{last}")
        }
        Err(error) => error.to_string(),
    }
}
