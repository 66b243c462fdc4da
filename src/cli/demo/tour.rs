//! How a tour shows what a person would type: each command runs as a process beneath the machine's folder.

use std::io::IsTerminal as _;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use reconcile::command::{Call, Programs, Stream};

use crate::cli::output::{DIM, HEADING, print_text, styled};
use crate::run::running;

/// How long a person reads before the next command, on a terminal.
const PAUSE: Duration = Duration::from_millis(2500);

/// How often a pause looks whether the tour is interrupted.
const GLANCE: Duration = Duration::from_millis(50);

/// How long one command may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A machine in a folder, and how its tour is shown.
pub(super) struct Tour<'t> {
    pub(super) folder: &'t str,
    program: String,
    programs: Programs,
    stop: &'t AtomicBool,
    pause: Option<Duration>,
}

impl<'t> Tour<'t> {
    /// A tour of the machine in `folder`, without pauses where no terminal shows it.
    pub(super) fn of(folder: &'t Path, no_pause: bool, stop: &'t Arc<AtomicBool>) -> anyhow::Result<Self> {
        let folder = folder.to_str().context("the temporary folder's path is no UTF-8")?;
        let program = running().context("the kernel does not say where this program is")?;
        Ok(Self {
            folder,
            program: program.to_str().context("this program's path is no UTF-8")?.to_owned(),
            // A command that an interrupt ends leaves its temporary files: they go with the machine.
            programs: Programs::here()
                .interrupted_by(Arc::clone(stop))
                .with_environment(&[("TMPDIR", folder)]),
            stop,
            pause: (std::io::stdout().is_terminal() && !no_pause).then_some(PAUSE),
        })
    }

    /// Begins a step with a sentence, after a pause on a terminal.
    pub(super) fn says(&self, sentence: &str) -> anyhow::Result<()> {
        let since = Instant::now();
        while self.pause.is_some_and(|pause| since.elapsed() < pause) && !self.is_stopped() {
            sleep(GLANCE);
        }
        self.goes_on()?;
        print_text(&format!("\n{}\n", styled(DIM, format_args!("# {sentence}"))))
    }

    /// Shows a command, and of what it prints the first and the last lines.
    pub(super) fn command(&self, arguments: &[&str], first: usize, last: usize) -> anyhow::Result<()> {
        prompt(&format!("rocworker {}", arguments.join(" ")))?;
        print_text(&excerpt(&self.output(arguments)?, first, last))
    }

    /// The lines that a command prints on the machine, without the empty ones.
    fn output(&self, arguments: &[&str]) -> anyhow::Result<Vec<String>> {
        self.goes_on()?;
        // print_text takes the colours out where they are not wanted.
        let argv = [&[&*self.program, "--root", self.folder, "--color=always"], arguments].concat();
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let status = self.programs.call(
            Call { argv: &argv, input: None, limit: PATIENCE },
            &mut |stream, chunk| {
                if stream == Stream::Stdout {
                    stdout.extend_from_slice(chunk)
                } else {
                    stderr.extend_from_slice(chunk)
                }
                ControlFlow::Continue(())
            },
        )?;
        // A command that fell short says so in its answer: dpkg-query may be missing.
        let error = String::from_utf8_lossy(&stderr);
        ensure!(status.success() || !stdout.is_empty(), "{}: {status}: {}", argv.join(" "), error.trim());
        let text = self.as_on_a_machine(&String::from_utf8_lossy(&stdout));
        Ok(text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect())
    }

    /// A text with the paths of a machine, which do not begin with the temporary folder.
    pub(super) fn as_on_a_machine(&self, text: &str) -> String {
        text.replace(self.folder, "")
    }

    pub(super) fn goes_on(&self) -> anyhow::Result<()> {
        ensure!(!self.is_stopped(), "interrupted before the end of the tour");
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

pub(super) fn prompt(command: &str) -> anyhow::Result<()> {
    print_text(&format!("{}\n", styled(HEADING, format_args!("$ {command}"))))
}

/// The first lines and the last ones, with a line for what is between them.
pub(super) fn excerpt(lines: &[String], first: usize, last: usize) -> String {
    let hidden = lines.len().saturating_sub(first + last);
    // A line that says so would take the place of the only line that it hides.
    if hidden <= 1 {
        return lines.iter().map(|line| format!("{line}\n")).collect();
    }
    let more = styled(DIM, format_args!("  … {hidden} more lines"));
    let shown = lines.iter().take(first).chain([&more]).chain(lines.iter().skip(first + hidden));
    shown.map(|line| format!("{line}\n")).collect()
}
