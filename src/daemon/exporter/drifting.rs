//! What differs from the desired state, as every user of the machine may read it.
//!
//! The daemon tells its reasons to root alone: a sentence about a failure may quote a program or a file. So a path is
//! published with what its state means, and `rocworker status` says the rest.

use inventory::published::{Drift, DriftState, DriftingPath};
use reconcile::Resource;

use super::short;
use crate::daemon::report::{Remark, Report};
use crate::run::{Differs, Why};

/// At most this many paths are listed; all are counted.
const MOST: usize = 50;

/// What the last look of the daemon found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Drifting {
    pub counts: Drift,
    /// What is worst comes first.
    pub paths: Vec<DriftingPath>,
    pub config_in_force: bool,
    /// Configured parts that are not applied.
    pub problems: u64,
}

impl Drifting {
    /// `None` before the first look, and where nothing is set up.
    pub fn of(report: &Report) -> Option<Self> {
        if report.set_up != Some(true) {
            return None;
        }
        let failed = report.failing.as_ref().map(|failing| failing.what.as_slice()).unwrap_or_default();
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let counts = Drift {
            differs: count(report.differs.len()),
            contested: count(report.contested.len()),
            blocked: count(report.blocked.len()),
            failed: count(failed.len()),
            pending_restarts: count(report.pending.len()),
        };
        let lists = [
            (DriftState::Failed, failed, "A change failed: rocworker status says why."),
            (
                DriftState::Contested,
                &report.contested,
                "Another program keeps changing it, so rocworker leaves it alone.",
            ),
            (DriftState::Blocked, &report.blocked, "rocworker cannot change it: rocworker status says why."),
        ];
        let of_list = |(state, list, reason): (DriftState, &[Remark], &'static str)| {
            let paths: Vec<_> = list.iter().filter_map(|remark| remark.path.as_ref()).collect();
            paths.into_iter().map(move |path| listed(path, state, reason)).collect::<Vec<_>>()
        };
        let differs = |Differs { path, why }: &Differs| listed(path, DriftState::Differs, meaning(*why));
        let paths = lists.into_iter().flat_map(of_list).chain(report.differs.iter().map(differs));
        Some(Self {
            counts,
            paths: paths.take(MOST).collect(),
            config_in_force: report.config.problem.is_none(),
            problems: count(report.problems.len()),
        })
    }
}

fn listed(path: &Resource, state: DriftState, reason: &str) -> DriftingPath {
    DriftingPath { path: short(path), state, reason: reason.to_owned() }
}

fn meaning(why: Why) -> &'static str {
    match why {
        Why::Reported => "The daemon only reports it: daemon.enforce is off.",
        Why::Apply => "Only rocworker apply changes it.",
        Why::Settling => "The daemon waits for GPUs that have just gone.",
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::daemon::report::{ConfigReport, Failing, Problem};

    fn remark(path: Option<&str>) -> Remark {
        let path = path.map(|path| Resource::Path(PathBuf::from(path)));
        Remark { path, text: "line 3: `password: secret`".to_owned() }
    }

    fn report() -> Report {
        let differs = |number: usize| Differs {
            path: Resource::Path(PathBuf::from(format!("/etc/{number}"))),
            why: Why::Apply,
        };
        Report {
            set_up: Some(true),
            failing: Some(Failing {
                since: 1,
                times: 2,
                again: None,
                what: vec![remark(None), remark(Some("/etc/failed"))],
            }),
            contested: vec![remark(Some("/etc/contested"))],
            blocked: vec![remark(Some("/etc/blocked"))],
            differs: (0..100).map(differs).collect(),
            ..Report::default()
        }
    }

    #[test]
    fn all_are_counted_and_the_worst_listed_without_what_only_root_may_read() {
        let Drifting { counts, paths, config_in_force, problems } = Drifting::of(&report()).unwrap();
        assert_eq!((config_in_force, problems), (true, 0));
        assert_eq!(counts, Drift { differs: 100, contested: 1, blocked: 1, failed: 2, pending_restarts: 0 });
        assert_eq!(paths.len(), MOST);
        let first: Vec<&str> = paths.iter().take(4).map(|it| it.path.as_str()).collect();
        assert_eq!(first, ["/etc/failed", "/etc/contested", "/etc/blocked", "/etc/0"]);
        assert!(paths.iter().all(|it| !it.reason.contains("secret")));
    }

    #[test]
    fn a_configuration_that_is_not_in_force_or_not_applied_is_told_without_its_text() {
        let secret = || "line 3: `password: secret`".to_owned();
        let problem = Problem { about: "containerd".to_owned(), text: secret() };
        let config = ConfigReport { problem: Some(secret()), ..ConfigReport::default() };
        let report = Report { config, problems: vec![problem], ..report() };
        let Drifting { config_in_force, problems, .. } = Drifting::of(&report).unwrap();
        assert_eq!((config_in_force, problems), (false, 1));
    }

    #[test]
    fn nothing_is_known_where_nothing_is_set_up() {
        for set_up in [None, Some(false)] {
            assert_eq!(Drifting::of(&Report { set_up, ..report() }), None);
        }
    }
}
