//! What each step of a switch has at hand: the run, what it may do, and who hears of it.

use std::time::Duration;

use anyhow::anyhow;
use reconcile::command::Programs;

use super::{Holder, Phase};
use crate::run::Run;

/// What a switch may do.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Whether the driver may be loaded again.
    pub reload: bool,
    /// How long processes may take to leave the cards.
    pub wait: Duration,
    /// Whether processes that have not left by then are killed.
    pub kill: bool,
    /// Whether the configuration's units stop meanwhile, and the switch waits until they have started again.
    pub stops_units: bool,
}

/// What a person hears of a switch under way.
#[derive(Debug)]
pub enum News<'a> {
    Phase(Phase),
    /// What is waited for.
    Waits(&'a [Holder]),
    /// What was done.
    Done(String),
}

pub(super) struct Context<'a> {
    pub run: &'a Run<'a>,
    pub options: Options,
    pub news: &'a mut dyn FnMut(News<'_>),
}

impl Context<'_> {
    pub(super) fn done(&mut self, what: String) {
        (self.news)(News::Done(what));
    }

    /// The programs of the machine, for `what`: the begin of a sentence about what needs them.
    pub(super) fn programs(&self, what: &str) -> anyhow::Result<&Programs> {
        let programs = self.run.programs;
        programs.ok_or_else(|| anyhow!("{what} on the running machine only, not beneath --root"))
    }
}
