//! What `juju status` shows of the unit. People and scripts search these texts: `Worker ready (GPU: 1x AMD)`.

use crate::printable::printable;

use super::Role;

/// Juju's words for how a unit's workload is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Active,
    Blocked,
    Maintenance,
    Waiting,
}

/// A workload's status, as `status-set` takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workload {
    pub state: State,
    /// One line.
    pub text: String,
}

/// How the unit stands at the end of a hook.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnitSummary {
    pub role: Role,
    /// The GPUs that containers may be given.
    pub gpus: usize,
    /// Whether the options leave AMD's GPUs alone, and by which word.
    pub off: Option<&'static str>,
    /// Whether there is a worker to set up where the options say that there should be one.
    pub lacks_worker: bool,
    /// Why no GPU can be used, and the one thing to do.
    pub hindrance: Option<String>,
    /// The first thing that should be and could not be brought about.
    pub problem: Option<String>,
    /// What else somebody should know: `pending: …`, `contested: …`.
    pub remark: Option<String>,
}

/// Longer than any command that is shown. Juju has no bound of its own, and a table has.
const LONGEST: usize = 600;

impl Workload {
    pub fn new(state: State, text: &str) -> Self {
        let text = printable(&text.split_whitespace().collect::<Vec<_>>().join(" "));
        let text = match text.char_indices().nth(LONGEST) {
            Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
            None => text,
        };
        Self { state, text }
    }

    /// What is to be done first stands first: a problem hides everything else.
    pub fn of(summary: &UnitSummary) -> Self {
        if let Some(problem) = &summary.problem {
            return Self::installation_failed(problem);
        }
        let text = match (summary.role, summary.off) {
            (Role::Web, _) => "Web node: no GPU is set up here".to_owned(),
            (_, Some(word)) => format!("Worker ready (no GPU: compute-runtime is {word})"),
            (_, None) if summary.gpus == 0 => {
                let why = summary.hindrance.as_deref().unwrap_or("see rocworker doctor");
                return Self::new(State::Blocked, &format!("No usable GPU: {why}"));
            }
            (_, None) if summary.lacks_worker => {
                return Self::new(
                    State::Waiting,
                    &format!(
                        "Waiting for concourse-worker.service, which mode=worker says comes (GPU: {}x AMD)",
                        summary.gpus
                    ),
                );
            }
            (_, None) => format!("Worker ready (GPU: {}x AMD)", summary.gpus),
        };
        let remark = summary.remark.as_ref().map_or_else(String::new, |it| format!("; {it}"));
        Self::new(State::Active, &format!("{text}{remark}"))
    }

    /// The options cannot be followed.
    pub fn config_failed(problem: &str) -> Self {
        Self::new(State::Blocked, &format!("Config failed: {problem}"))
    }

    /// What the options say could not be brought about.
    pub fn installation_failed(problem: &str) -> Self {
        Self::new(State::Blocked, &format!("Installation failed: {problem}"))
    }

    /// The action undo has been run; `but_for`: what it has not taken back.
    pub fn taken_back(unit: &str, but_for: Option<&str>) -> Self {
        let but_for = but_for.map_or_else(String::new, |what| format!(", but for {what}"));
        let text = format!("Taken back by the action undo{but_for}: juju run {unit} apply sets it up again");
        Self::new(State::Blocked, &text)
    }

    /// The action undo found before its first change what would stop it.
    pub fn undo_refused(why: &str) -> Self {
        Self::new(State::Blocked, &format!("The action undo changed nothing: {why}"))
    }

    /// A GPU has gone, and nobody knows yet whether it comes back.
    pub fn settling() -> Self {
        Self::new(
            State::Waiting,
            "A GPU has gone: the worker keeps its tags for a while, should it come back (rocworker status)",
        )
    }

    /// Somebody has set the machine up by this command, and not the charm.
    pub fn of_another(unit: &str, command: &str) -> Self {
        let text = format!(
            "Set up by {command} on the machine, and left as it is: juju run {unit} apply has the charm's options take its \
             place"
        );
        Self::new(State::Blocked, &text)
    }

    /// Somebody has set the machine up again after the action undo.
    pub fn applied_since(unit: &str) -> Self {
        let text = format!(
            "Taken back by the action undo, and set up since by rocworker apply on the machine: juju run {unit} apply keeps \
             it, juju run {unit} undo takes it back"
        );
        Self::new(State::Blocked, &text)
    }
}

impl State {
    /// As `status-set` takes it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Blocked => "blocked",
            Self::Maintenance => "maintenance",
            Self::Waiting => "waiting",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(summary: UnitSummary) -> String {
        let Workload { state, text } = Workload::of(&summary);
        format!("{}: {text}", state.word())
    }

    #[test]
    fn a_status_says_what_people_search_for() {
        let with = |gpus| UnitSummary { role: Role::Worker, gpus, ..UnitSummary::default() };
        for (summary, expected) in [
            (with(1), "active: Worker ready (GPU: 1x AMD)"),
            (with(2), "active: Worker ready (GPU: 2x AMD)"),
            (
                UnitSummary { role: Role::Machine, gpus: 63, ..UnitSummary::default() },
                "active: Worker ready (GPU: 63x AMD)",
            ),
            (
                UnitSummary { remark: Some("pending: restart x.service".to_owned()), ..with(1) },
                "active: Worker ready (GPU: 1x AMD); pending: restart x.service",
            ),
            (
                UnitSummary { off: Some("none"), ..with(0) },
                "active: Worker ready (no GPU: compute-runtime is none)",
            ),
            (
                UnitSummary { role: Role::Web, off: Some("none"), ..UnitSummary::default() },
                "active: Web node: no GPU is set up here",
            ),
            (
                UnitSummary {
                    hindrance: Some("the driver is not loaded:\n modprobe amdgpu".to_owned()),
                    ..with(0)
                },
                "blocked: No usable GPU: the driver is not loaded: modprobe amdgpu",
            ),
            (
                UnitSummary { lacks_worker: true, ..with(1) },
                "waiting: Waiting for concourse-worker.service, which mode=worker says comes (GPU: 1x AMD)",
            ),
            (
                UnitSummary { problem: Some("/etc/cdi/amd.json: is a folder".to_owned()), ..with(1) },
                "blocked: Installation failed: /etc/cdi/amd.json: is a folder",
            ),
        ] {
            assert_eq!(said(summary), expected);
        }
        assert_eq!(Workload::config_failed("tag: a blank").text, "Config failed: tag: a blank");
    }

    #[test]
    fn a_text_is_one_line_of_bounded_length_that_steers_no_terminal() {
        let workload = Workload::new(State::Blocked, &format!("a\u{1b}[31m\n\tb {}", "x".repeat(700)));
        assert!(workload.text.starts_with("a\\u{1b}[31m b xxx"), "{}", workload.text);
        assert_eq!(workload.text.chars().count(), 601);
    }
}
