use anstyle::Style;
use layout::{Machine, Nodes};
use root::Root;

use super::args::Format;
use super::output::{DIM, HEADING, print_text, styled};
use super::session::Session;
use super::{Outcome, detect, tags};

/// The whole story on a built-in synthetic machine: the same functions as the commands', beneath a temporary
/// Root, with nothing of this machine read or written.
pub(crate) fn run() -> anyhow::Result<Outcome> {
    let dir = tempfile::Builder::new().prefix("rocworker-demo-").tempdir()?;
    Machine::demo().lay_out(dir.path(), Nodes::Recorded)?;
    let session = Session { root: Root::open(dir.path())?, config: None, format: Format::Table };
    let shown = dir.path().display();

    say(&format!(
        "A synthetic machine is laid out in {shown}: an NVIDIA card, an AMD card, and an AMD card in eight partitions. \
         Nothing of this machine is read or changed."
    ))?;
    step("detect", "Every GPU is listed, and what a container can be given.")?;
    detect::run(&session)?;
    step("tags", "The tags by which Concourse finds this worker.")?;
    tags::run(&session, false)?;
    Ok(Outcome::Done)
}

fn step(command: &str, says: &str) -> anyhow::Result<()> {
    print_text(&format!("\n{}\n{}\n\n", styled(HEADING, format!("$ rocworker {command}")), styled(DIM, says)))
}

fn say(text: &str) -> anyhow::Result<()> {
    print_text(&format!("{}\n", styled(Style::new(), text)))
}
