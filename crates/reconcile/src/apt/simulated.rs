//! What apt would do, read from its own simulation (`apt-get -s`, apt-get(8)).

/// What a run would change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Simulated {
    /// Names and versions that would be there and are not.
    pub(crate) comes: Vec<(String, String)>,
    /// Names, the version that is there, and the one that would be.
    pub(crate) replaced: Vec<(String, String, String)>,
    /// Names that would be there no longer.
    pub(crate) goes: Vec<String>,
}

impl Simulated {
    /// `Inst NAME (NEW …)`, `Inst NAME [OLD] (NEW …)`, `Remv NAME [OLD]`, `Purg NAME [OLD]`; every other line tells
    /// nothing of which packages are there afterwards.
    pub(super) fn parse(stdout: &str) -> Self {
        let mut simulated = Self::default();
        for line in stdout.lines() {
            let mut words = line.split_whitespace();
            let (Some(verb), Some(name)) = (words.next(), words.next()) else { continue };
            let mut next = words.next().unwrap_or_default();
            let name = name.to_owned();
            match verb {
                "Inst" => {
                    let old = next.strip_prefix('[').map(|old| old.trim_end_matches(']').to_owned());
                    if old.is_some() {
                        next = words.next().unwrap_or_default();
                    }
                    let new = next.trim_start_matches('(').trim_end_matches(')').to_owned();
                    match old {
                        Some(old) => simulated.replaced.push((name, old, new)),
                        None => simulated.comes.push((name, new)),
                    }
                }
                // What is purged is told twice by some versions of apt: as removed, and as purged.
                "Remv" | "Purg" if !simulated.goes.contains(&name) => simulated.goes.push(name),
                _ => {}
            }
        }
        simulated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installs_upgrades_and_removals_are_told_apart() {
        let stdout = "NOTE: This is only a simulation!\nReading package lists...\nRemv old [1.0] [needs:amd64 ]\n\
                      Inst libdrm2 [2.4.114-1+b1] (2.4.120-1 rocm:6.3/noble [amd64]) []\n\
                      Inst rocm-smi-lib:i386 (7.3.0 rocm:6.3/noble [i386])\nConf libdrm2 (2.4.120-1 rocm:6.3/noble [amd64])\n\
                      Purg old [1.0]\nInst same [1] (1 rocm [all])\n";
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        let triple = |a: &str, b: &str, c: &str| (a.to_owned(), b.to_owned(), c.to_owned());
        assert_eq!(
            Simulated::parse(stdout),
            Simulated {
                comes: vec![pair("rocm-smi-lib:i386", "7.3.0")],
                replaced: vec![triple("libdrm2", "2.4.114-1+b1", "2.4.120-1"), triple("same", "1", "1")],
                goes: vec!["old".to_owned()],
            }
        );
    }
}
