//! The Concourse worker: whether the managed environment file is there, and whether systemd reads it last.

use std::path::Path;

use check::{APPLY, About, Check};
use config::selection::select;
use host::version::Versions;

use super::desired::{actions, managed};
use super::{Concourse, ENV_FILE, NAME, UNIT};
use crate::examined::{CHECKS, Examined, PATIENCE};

pub(super) fn check(examined: &Examined<'_>, versions: &mut Versions<'_>) -> Result<Vec<Check>, Check> {
    let about = || About::one(CHECKS, NAME);
    let concourse = Concourse::read(examined.root, versions);
    if concourse.worker.is_none() && concourse.unknown.is_none() {
        return Err(about().skipped(format!("no worker: there is no {UNIT}")));
    }
    if concourse.worker.is_some() && managed(examined.config, &concourse).is_none() {
        return Err(about().skipped("the Concourse charm has set it up by itself, and it is left alone"));
    }
    let wrapper = examined.wrapper(NAME)?;
    let Ok(selection) = select(examined.config, examined.facts) else {
        return Err(about().skipped("the configuration names a GPU that is not there"));
    };
    let desired =
        actions(examined.config, &selection, &concourse, &examined.templates, Some(wrapper)).of(NAME);
    let mut checks = examined.files(NAME, &desired);
    let has_environment = desired.actions.iter().any(|action| action.path == Path::new(ENV_FILE));
    if checks.is_empty() && has_environment {
        checks.push(about().ok(format!("{ENV_FILE} says what was meant, and comes last by {UNIT}'s files")));
    }
    checks.extend(examined.pending(NAME, UNIT));
    if has_environment {
        checks.push(by_systemd(examined));
    }
    Ok(checks)
}

/// What systemd says that it will read: its last reload counts, not the files.
fn by_systemd(examined: &Examined<'_>) -> Check {
    let about = About::one(CHECKS, NAME);
    // sd_booted(3) looks for this folder.
    let booted = examined.root.exists("/run/systemd/system");
    let Some(programs) = examined.programs.filter(|_| booted) else {
        return about.skipped("systemd does not run here: what it would read is not asked");
    };
    let argv = ["systemctl", "show", "--property=EnvironmentFiles", UNIT];
    let listed = match programs.run(&argv, PATIENCE) {
        Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
        Err(error) => return about.skipped(error.to_string()),
    };
    let evidence = match last(&listed) {
        Some(last) if Path::new(last) == Path::new(ENV_FILE) => {
            return about.ok(format!("systemd reads {ENV_FILE} last"));
        }
        Some(other) => format!("systemd reads {other} last, and what it says wins over {ENV_FILE}"),
        None => format!("systemd reads no environment file for {UNIT}"),
    };
    about.failed(evidence, format!("systemctl daemon-reload; where that changes nothing, {APPLY}"))
}

/// The last file in what systemctl shows: `EnvironmentFiles=PATH (ignore_errors=no)`, a line each.
fn last(shown: &str) -> Option<&str> {
    let line = shown.lines().rfind(|line| line.contains('/'))?;
    let value = line.strip_prefix("EnvironmentFiles=").unwrap_or(line);
    Some(value.rsplit_once(" (").map_or(value, |(path, _)| path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_environment_file_is_the_one_that_wins() {
        let two = "EnvironmentFiles=/var/lib/concourse-worker/worker-config.env (ignore_errors=no)\n\
                   EnvironmentFiles=/etc/rocworker/concourse.env (ignore_errors=yes)\n";
        for (shown, expected) in
            [(two, Some("/etc/rocworker/concourse.env")), ("EnvironmentFiles=\n", None), ("", None)]
        {
            assert_eq!(last(shown), expected, "{shown}");
        }
    }
}
