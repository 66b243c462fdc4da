//! What apt and dpkg say when they cannot: of many lines the ones that tell why.

/// The telling lines of stderr, in a sentence: what dpkg says of each package it could not process, else apt's errors,
/// else the last line.
pub(super) fn telling(stderr: &str) -> Option<String> {
    let lines: Vec<&str> = stderr.lines().collect();
    let behind = |prefix: &'static str| lines.iter().filter_map(move |line| line.strip_prefix(prefix));
    let mut telling: Vec<String> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if let Some(what) = line.strip_prefix("dpkg: error processing ") {
            let further = lines.iter().skip(at + 1).take_while(|line| line.starts_with(' '));
            let problem: Vec<&str> = further.map(|line| line.trim()).collect();
            let sentence = format!("{}: {}", what.trim_end_matches(':'), problem.join(" "));
            telling.push(sentence.trim_end_matches(": ").to_owned());
        } else if let Some(rest) = line.strip_prefix("dpkg: error: ") {
            telling.push(rest.trim().to_owned());
        }
    }
    if telling.is_empty() {
        // Of that dpkg failed, dpkg itself says why.
        let errors = behind("E: ").filter(|line| !line.starts_with("Sub-process "));
        // That a list is not signed is the error, and why gpgv thinks so only a warning.
        telling.extend(errors.chain(behind("W: GPG error: ")).map(|line| line.trim().to_owned()));
    }
    if telling.is_empty() {
        telling.extend(lines.iter().rfind(|line| !line.trim().is_empty()).map(|line| (*line).to_owned()));
    }
    telling.dedup();
    (!telling.is_empty()).then(|| telling.join("; "))
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
            assert_eq!(telling(stderr).as_deref(), expected);
        }
    }
}
