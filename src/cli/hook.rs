use std::time::SystemTime;

use anyhow::Context as _;
use host::timestamp::Timestamp;
use juju::{Environment, Event, Tools};
use reconcile::command::Programs;

use super::Outcome;
use super::output::print_text;
use super::session::{Misuse, Session, caller, variable};
use crate::hook::{Ended, Machine};

/// `name`: the hook that is run from another charm's own. `is_guest`: that charm sets its unit's status itself.
pub(crate) fn run(session: &Session, name: Option<&str>, is_guest: bool) -> anyhow::Result<Outcome> {
    let environment = Environment::of(variable);
    let event = Event::of(name, &environment).map_err(Misuse)?;
    let here = caller()?;
    // Juju is where this program runs, whatever --root says.
    let tools = Programs::of(&here).context("hook tools are looked for on PATH")?;
    let proxies = environment.proxies.iter().map(|(name, value)| (*name, value.as_str()));
    let proxies: Vec<(&str, &str)> = proxies.collect();
    let machine = Machine {
        root: &session.root,
        programs: session.programs.as_ref().map(|programs| programs.with_environment(&proxies)),
        tools: Tools::new(tools, is_guest),
        event,
        unit: environment.unit,
        now: Timestamp::of(SystemTime::now()),
        caller: crate::run::caller(&here),
    };
    let Ended { status, is_failed } = machine.run()?;
    if let Some(status) = status.filter(|_| is_guest) {
        print_text(&format!("{}: {}\n", status.state.word(), status.text))?;
    }
    Ok(if is_failed { Outcome::FellShort } else { Outcome::Done })
}
