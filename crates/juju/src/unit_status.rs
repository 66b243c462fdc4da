//! A unit's status as `juju status` shows it. People and scripts search its texts.

use std::time::{Duration, Instant};

use check::{Check, Status};
use lxd::on_host::OnHost;
use printable::{printable, shortened};
use reconcile::{Progress, Step, Verb};

use super::options::WrongConfig;

/// Juju's words for a unit's workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workload {
    Active,
    Blocked,
    Maintenance,
    Waiting,
}

/// A status as `status-set` takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitStatus {
    pub state: Workload,
    /// What Juju shows beside the state, in a single line.
    pub text: String,
}

/// Longer than any command that is shown, in characters. Juju has no bound of its own, and a table has.
const LONGEST: usize = 600;

/// Some five lines of a terminal, with three commands or four. Juju keeps a status of any length; the table of `juju status`
/// shows 120 letters of it (juju/cmd/juju/status/output_tabular.go), and `--format=yaml` all.
const READABLE: usize = 400;

/// Between two steps that Juju hears of: apt reports a hundred in a minute, and each is a call to the controller.
const PAUSE: Duration = Duration::from_secs(5);

impl UnitStatus {
    pub fn new(state: Workload, text: &str) -> Self {
        let text = printable(&text.split_whitespace().collect::<Vec<_>>().join(" "));
        Self { state, text: shortened(text, LONGEST) }
    }

    pub fn blocked(text: &str) -> Self {
        Self::new(Workload::Blocked, text)
    }

    /// The status after a hook that ended with an error.
    pub fn failed(error: &anyhow::Error) -> Self {
        let is_wrong = error.is::<WrongConfig>() || error.is::<config::Error>();
        match error.to_string() {
            problem if is_wrong => Self::blocked(&format!("Config failed: {problem}")),
            problem => Self::installation_failed(&problem),
        }
    }

    pub fn installation_failed(problem: &str) -> Self {
        Self::blocked(&format!("Installation failed: {problem}"))
    }

    pub fn removal_failed(problem: &str) -> Self {
        Self::blocked(&format!("Removal failed: {problem}"))
    }

    /// After the action undo; `but_for`: what it has not reverted.
    pub fn undone(unit: &str, but_for: Option<&str>) -> Self {
        let but_for = but_for.map_or_else(String::new, |what| format!(", but for {what}"));
        Self::blocked(&format!(
            "Reverted by the action undo{but_for}: juju run {unit} apply sets it up again"
        ))
    }

    /// The action undo found before its first change what would stop it.
    pub fn undo_refused(why: &str) -> Self {
        Self::blocked(&format!("The action undo changed nothing: {why}"))
    }

    /// A person has applied on the machine after the action undo.
    pub fn applied_since_undo(unit: &str) -> Self {
        Self::blocked(&format!(
            "Reverted by the action undo, and set up since by rocworker apply on the machine: juju run {unit} apply keeps \
             it, juju run {unit} undo reverts it"
        ))
    }

    /// A person has set the machine up by this command, and not the charm.
    pub fn set_up_by(command: &str, unit: &str) -> Self {
        Self::blocked(&format!(
            "Set up by {command} on the machine, and left as it is: juju run {unit} apply has the charm's options take its \
             place"
        ))
    }

    /// The daemon keeps the tags of a GPU that has gone.
    pub fn tags_held() -> Self {
        Self::new(
            Workload::Waiting,
            "A GPU has gone: the worker keeps its tags for a while, should it come back (rocworker status)",
        )
    }

    /// What a hook is at.
    fn of_progress(progress: &Progress<'_>) -> Self {
        let text = match progress {
            Progress::Begins(change) | Progress::Made(change)
                if matches!(change.change, Verb::Remove | Verb::Restore) =>
            {
                format!("reverting {}", change.path)
            }
            Progress::Begins(change) | Progress::Made(change) => {
                format!("{}: {}", change.path, change.reason)
            }
            Progress::Comes(change, Step { text, percent: None }) => format!("{}: {text}", change.path),
            Progress::Comes(change, Step { text, percent: Some(percent) }) => {
                format!("{}: {text} ({percent:.0} %)", change.path)
            }
            Progress::Waits(text) => text.clone(),
            Progress::Settles(effect) => effect.to_string(),
        };
        Self::new(Workload::Maintenance, &text)
    }
}

impl Workload {
    /// The word that `status-set` takes.
    pub fn word(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Blocked => "blocked",
            Self::Maintenance => "maintenance",
            Self::Waiting => "waiting",
        }
    }
}

/// The step that Juju was sent last, and when.
#[derive(Debug, Default)]
pub struct Steps {
    /// A tool that does not answer takes a minute each time, and work must go on.
    pub is_silent: bool,
    last: Option<(Instant, UnitStatus)>,
}

impl Steps {
    /// The status to set now for this progress, if any: the first step at once, a later one when it is another and the
    /// last came some time ago. A wait takes long, and is shown at once.
    pub fn due(&mut self, progress: &Progress<'_>, now: Instant) -> Option<UnitStatus> {
        let status = UnitStatus::of_progress(progress);
        let is_due = |(when, last): &(Instant, UnitStatus)| {
            *last != status && (matches!(progress, Progress::Waits(_)) || now.duration_since(*when) >= PAUSE)
        };
        if self.is_silent || !self.last.as_ref().is_none_or(is_due) {
            return None;
        }
        self.last = Some((now, status.clone()));
        Some(status)
    }
}

/// The first thing that doctor finds wrong, with what to do; `None` where it finds nothing wrong. In a container to which
/// nodes were not passed, all of the commands that pass them, for one alone makes no GPU usable; where they are many,
/// what prints them.
pub fn first_remedy(checks: &[Check]) -> Option<String> {
    let of = |status| checks.iter().find(|check| check.status == status && check.remedy.is_some());
    let first = of(Status::Failed).or_else(|| of(Status::Warning))?;
    // A path or an address is a thing, and evidence reads on from it; another subject is a heading.
    let thing = first.subject.as_ref().filter(|subject| subject.contains(['/', ':']));
    let subject = thing.map_or_else(String::new, |subject| format!("{subject} "));
    let sentence = |remedy: &str| format!("{subject}{}: {remedy}", first.evidence);
    let Some(on_host) = &first.on_host else { return first.remedy.as_deref().map(sentence) };
    let alike = checks.iter().filter(|check| check.status == first.status);
    let all =
        alike.filter_map(|check| check.on_host.as_deref().cloned()).fold(OnHost::clone(on_host), OnHost::and);
    let whole = sentence(&all.to_string());
    Some(if whole.chars().count() > READABLE { sentence(&all.in_brief()) } else { whole })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use check::About;
    use lxd::command::{Client, Command, Container, PLACEHOLDER};

    #[test]
    fn an_option_that_is_wrong_is_named() {
        let wrong = UnitStatus::failed(&WrongConfig("tag: a blank".to_owned()).into());
        assert_eq!(wrong.text, "Config failed: tag: a blank");
    }

    #[test]
    fn a_text_is_one_line_of_bounded_length_that_steers_no_terminal() {
        let status = UnitStatus::blocked(&format!("a\u{1b}[31m\n\tb {}", "x".repeat(700)));
        assert!(status.text.starts_with("a\\u{1b}[31m b xxx"), "{}", status.text);
        assert_eq!(status.text.chars().count(), 601);
    }

    #[test]
    fn the_first_thing_that_fails_is_told_and_of_a_container_each_command_once() {
        let lxd = Container { client: Client::Lxc, name: PLACEHOLDER, gid: Some(992) };
        let kfd = lxd.add_node(Path::new("/dev/kfd"));
        let gpu = lxd.add_node(Path::new("/dev/dri/renderD128"));
        let about = |subject: &str| About::one("nodes", subject);
        let on_host = |commands: &[&Command]| {
            OnHost::new(&lxd, commands.iter().map(|command| (*command).clone()).collect())
        };
        for (checks, expected) in [
            (vec![about("/dev/kfd").ok("fine")], None),
            (
                vec![
                    About::all("nodes").warning("a warning", "look"),
                    about("/dev/kfd").failed("is not there", "modprobe amdgpu"),
                    About::all("nodes").failed("another", "another"),
                ],
                Some("/dev/kfd is not there: modprobe amdgpu".to_owned()),
            ),
            (
                vec![
                    about("passthrough").failed("none of them in /dev", on_host(&[&kfd, &gpu])),
                    about("/dev/kfd").failed("is not there", on_host(&[&kfd])),
                    about("/dev/dri/renderD129").warning("is not there", "look"),
                ],
                Some(format!("none of them in /dev: on the host: {kfd} && {gpu}")),
            ),
            (
                vec![
                    about("/dev/kfd").failed("is not there", on_host(&[&kfd])),
                    about("passthrough").failed("none of them in /dev", on_host(&[&gpu])),
                    about("GPU 1").failed("cannot be opened", "on the host: see to its group"),
                ],
                Some(format!("/dev/kfd is not there: on the host: {kfd} && {gpu}")),
            ),
            (
                vec![
                    about("passthrough").warning("right, if the other is another's", on_host(&[&gpu])),
                    about("/dev/kfd").ok("fine"),
                ],
                Some(format!("right, if the other is another's: on the host: {gpu}")),
            ),
        ] {
            assert_eq!(first_remedy(&checks), expected);
        }
    }

    #[test]
    fn more_commands_than_can_be_read_are_told_by_what_prints_them() {
        for (name, called) in
            [(PLACEHOLDER, "CONTAINER"), ("c1", "c1 (its hostname, and likely its name there)")]
        {
            let lxd = Container { client: Client::Lxc, name, gid: Some(992) };
            let kfd = lxd.add_node(Path::new("/dev/kfd"));
            let renders =
                (128..136).map(|minor| lxd.add_node(Path::new(&format!("/dev/dri/renderD{minor}"))));
            let commands = std::iter::once(kfd.clone()).chain(renders).collect();
            let check =
                About::one("virtualization", "passthrough").failed("none", OnHost::new(&lxd, commands));
            let expected = format!(
                "none: on the host: rocworker lxd advise --container {called} prints the 9 commands, and so does rocworker \
                 doctor in here; the first is {kfd}"
            );
            assert_eq!(first_remedy(&[check]), Some(expected));
        }
    }

    #[test]
    fn the_first_step_is_told_at_once_and_the_others_now_and_then() {
        let mut steps = Steps::default();
        let begin = Instant::now();
        let reload = Progress::Settles(&reconcile::Effect::SystemdReload);
        let waits = |text: &str| Progress::Waits(text.to_owned());
        let mut at = |seconds, progress: &Progress<'_>| {
            steps.due(progress, begin + Duration::from_secs(seconds)).is_some()
        };
        assert!(at(0, &reload));
        assert!(!at(9, &reload), "it was reported");
        assert!(at(9, &waits("waiting for apt")));
        assert!(!at(10, &reload), "too early");
        assert!(at(10, &waits("waiting for the worker")), "a wait is reported at once");
        assert!(at(15, &reload));
        steps.is_silent = true;
        assert_eq!(steps.due(&waits("waiting for apt"), begin + Duration::from_secs(99)), None);
    }
}
