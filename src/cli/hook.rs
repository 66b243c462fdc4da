use std::time::SystemTime;

use anyhow::Context as _;
use reconcile::command::Programs;

use super::Outcome;
use super::output::print_text;
use super::session::{Misuse, Session, caller};
use crate::juju::{Ended, Environment, Event, Machine, Tools, Way};
use crate::timestamp::Timestamp;

/// `name`: the hook that is run from another charm's own. `is_guest`: that charm sets its unit's status itself.
pub(crate) fn run(session: &Session, name: Option<&str>, is_guest: bool) -> anyhow::Result<Outcome> {
    let environment = environment();
    let event = Event::of(name, &environment).map_err(|error| Misuse(error.to_string()))?;
    let here = caller()?;
    // Juju is where this program runs, whatever --root says.
    let tools = Programs::of(&here).context("hook tools are looked for on PATH")?;
    let tools = Tools::new(tools, if is_guest { Way::Guest } else { Way::Own });
    let programs = Programs::of(&session.root);
    let machine = Machine {
        root: &session.root,
        programs: programs.as_ref(),
        tools: &tools,
        environment: &environment,
        running: crate::run::running().context("this program does not know where it is")?,
        now: Timestamp::of(SystemTime::now()),
        caller: crate::run::caller(&here),
    };
    let Ended { workload, is_well } = machine.run(event)?;
    if let Some(workload) = workload.filter(|_| is_guest) {
        print_text(&format!("{}: {}\n", workload.state.word(), workload.text))?;
    }
    Ok(if is_well { Outcome::Done } else { Outcome::FellShort })
}

/// What Juju says of this hook.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place where a hook's environment is read, and handed in as data"
)]
fn environment() -> Environment {
    Environment::of(|name| std::env::var(name).ok())
}
