//! What apt and dpkg say when they cannot: of many lines the ones that tell why.

/// What came on stderr.
pub(super) struct Said<'a>(&'a str);

impl<'a> Said<'a> {
    pub(super) fn of(stderr: &'a str) -> Self {
        Self(stderr)
    }

    /// The telling lines, in a sentence: what dpkg says of each package it could not process, else apt's errors.
    pub(super) fn telling(&self) -> Option<String> {
        let lines: Vec<&str> = self.0.lines().collect();
        let mut telling: Vec<String> = Vec::new();
        for (at, line) in lines.iter().enumerate() {
            let of_dpkg = line.strip_prefix("dpkg: error processing ").map(|rest| rest.trim_end_matches(':'));
            if let Some(what) = of_dpkg {
                let further = lines.iter().skip(at + 1).take_while(|line| line.starts_with(' '));
                let problem: Vec<&str> = further.map(|line| line.trim()).collect();
                telling.push(match problem.join(" ") {
                    problem if problem.is_empty() => what.to_owned(),
                    problem => format!("{what}: {problem}"),
                });
            } else if let Some(rest) = line.strip_prefix("dpkg: error: ") {
                telling.push(rest.trim().to_owned());
            }
        }
        if telling.is_empty() {
            let errors = lines.iter().filter_map(|line| line.strip_prefix("E: "));
            // Of that dpkg failed, dpkg itself says why.
            let errors = errors.filter(|line| !line.starts_with("Sub-process "));
            telling = errors.map(|line| line.trim().to_owned()).collect();
            // That a list is not signed is the error, and why gpgv thinks so only a warning.
            let reasons = lines.iter().filter_map(|line| line.strip_prefix("W: GPG error: "));
            telling.extend(reasons.map(|line| line.trim().to_owned()));
        }
        if telling.is_empty() {
            telling = lines
                .iter()
                .rev()
                .find(|line| !line.trim().is_empty())
                .map(|it| (*it).to_owned())
                .into_iter()
                .collect();
        }
        telling.dedup();
        (!telling.is_empty()).then(|| telling.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_lines_the_telling_ones_are_kept() {
        for (stderr, expected) in [
            (
                "E: Unable to locate package rocm\nE: Couldn't find any package by glob 'rocm'\n",
                Some("Unable to locate package rocm; Couldn't find any package by glob 'rocm'"),
            ),
            (
                "debconf: delaying package configuration\ndpkg: error processing package broken (--configure):\n \
                 installed broken package post-installation script subprocess returned error exit status 3\nErrors were \
                 encountered while processing:\n broken\nE: Sub-process /usr/bin/dpkg returned an error code (1)\n",
                Some(
                    "package broken (--configure): installed broken package post-installation script subprocess \
                     returned error exit status 3",
                ),
            ),
            (
                "W: GPG error: http://a jammy InRelease: The following signatures were invalid: EXPKEYSIG 1A AMD\nE: The \
                 repository 'http://a jammy InRelease' is not signed.\n",
                Some(
                    "The repository 'http://a jammy InRelease' is not signed.; http://a jammy InRelease: The following \
                     signatures were invalid: EXPKEYSIG 1A AMD",
                ),
            ),
            ("something odd\n\n", Some("something odd")),
            ("", None),
        ] {
            assert_eq!(Said::of(stderr).telling().as_deref(), expected);
        }
    }
}
