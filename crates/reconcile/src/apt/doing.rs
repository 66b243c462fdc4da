//! Runs apt: each request first in apt's own simulation (`apt-get -s`, apt-get(8)), and programs that run apt
//! themselves.

use std::collections::BTreeSet;
use std::io::Write as _;

use root::{Root, if_there};
use tempfile::NamedTempFile;

use super::dpkg::{self, Database};
use super::stanza::stanzas;
use super::{AS_IT_IS, PackageManager, Step};

/// The arguments of a simulation. Without the first, a simulation would write the log of what apt's planner
/// was given.
pub(crate) const SIMULATED: [&str; 3] = ["-o", "Dir::Log::Planner=/dev/null", "--simulate"];

/// The changes that apt would make.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Simulated {
    /// Names and versions that would be there and are not.
    pub(crate) comes: Vec<(String, String)>,
    /// Names, each with the version that is there and the version that would replace it.
    pub(crate) replaced: Vec<(String, String, String)>,
    /// Names that would be there no longer.
    pub(crate) goes: Vec<String>,
}

impl Simulated {
    /// `Inst NAME (NEW …)`, `Inst NAME [OLD] (NEW …)`, `Remv NAME [OLD]`, `Purg NAME [OLD]`; every other line says
    /// nothing of which packages are there afterwards.
    pub(crate) fn parse(stdout: &str) -> Self {
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
                // Some versions of apt print what is purged twice: as removed, and as purged.
                "Remv" | "Purg" if !simulated.goes.contains(&name) => simulated.goes.push(name),
                _ => {}
            }
        }
        simulated
    }
}

/// The command that installs a package. `anew`: one that dpkg calls half installed, which apt takes for the newest
/// already and leaves as it is without `--reinstall`.
pub(crate) fn install(wanted: &str, anew: bool) -> Vec<&str> {
    if anew { vec!["--reinstall", "install", wanted] } else { vec!["install", wanted] }
}

/// The package as an argument of `apt-get install`.
pub(crate) fn wanted(name: &str, version: Option<&str>) -> String {
    version.map_or_else(|| name.to_owned(), |version| format!("{name}={version}"))
}

/// Packages that are to go, as arguments of `apt-get install`.
pub(crate) fn going(names: &[impl std::fmt::Display]) -> Vec<String> {
    names.iter().map(|name| format!("{name}-")).collect()
}

impl PackageManager {
    /// Simulates a command of apt-get. Takes no lock and changes nothing.
    pub(crate) fn simulate(&self, command: &[&str]) -> Result<Simulated, String> {
        let output = self.apt_get(&[&SIMULATED[..], command].concat(), &mut |_| {})?;
        Ok(Simulated::parse(&output))
    }

    /// Does what was simulated: apt ends with an error before it removes anything.
    pub(crate) fn execute(&self, command: &[&str], hear: &mut dyn FnMut(Step)) -> Result<(), String> {
        self.apt_get(&[&["--no-remove"], command].concat(), hear).map(drop)
    }

    /// Marks packages. `install`: dpkg keeps those that are there (`dpkg --set-selections`, which apt-mark calls), which
    /// no installation of one that is there says. `auto`: they came for the sake of others, as apt notes it of those
    /// that it installs by itself.
    pub(crate) fn mark(&self, mark: &str, names: &[&str]) -> Result<(), String> {
        if names.is_empty() {
            return Ok(());
        }
        self.run(&[&["apt-mark", "-o", AS_IT_IS, mark], names].concat(), &mut |_| {}).map(drop)
    }

    /// Lets a program that runs apt report what it would have apt do. `further`: options for apt.
    pub(crate) fn simulate_program(&self, argv: &[String], further: &[String]) -> Result<String, String> {
        let simulated = ["APT::Get::Simulate=1", "Dir::Log::Planner=/dev/null"].map(str::to_owned);
        self.program(argv, &[&simulated, further].concat(), &mut |_| {})
    }

    /// Runs a program that runs apt, which reads its options in the file that `APT_CONFIG` names (apt.conf(5)).
    pub(crate) fn program(
        &self,
        argv: &[String],
        further: &[String],
        hear: &mut dyn FnMut(Step),
    ) -> Result<String, String> {
        let options = [self.options(), vec!["APT::Get::Remove=0".to_owned()], further.to_vec()].concat();
        let options = options.iter().filter_map(|option| option.split_once('='));
        let text: String = options.map(|(key, value)| format!("{key} \"{value}\";\n")).collect();
        let file = NamedTempFile::new().and_then(|mut file| file.write_all(text.as_bytes()).map(|()| file));
        let file =
            file.map_err(|error| format!("apt's options for {} cannot be written: {error}", argv.join(" ")))?;
        let programs = self.programs.with_environment(&[("APT_CONFIG", &file.path().display().to_string())]);
        let manager = Self { programs, ..self.clone() };
        // The program ends with whoever waits for it, and calls apt no more; an apt that runs comes to its own end.
        let start = ["setpriv", "--pdeathsig", "KILL"];
        let argv: Vec<&str> = start.into_iter().chain(argv.iter().map(String::as_str)).collect();
        manager.run(&argv, hear)
    }
}

/// apt's own notes (apt's apt-pkg/depcache.cc, `readStateFile`). apt-mark prints them, too, once it has read all lists for
/// a second.
const STATES: &str = "/var/lib/apt/extended_states";
const LIMIT: usize = 64 << 20;

/// The names of packages that came for the sake of others, as apt prints them; nothing where apt has noted none.
/// `apt-mark manual` takes a package out of these, and so does `apt-get install` of it by name.
pub(crate) fn automatic(root: &Root, database: &Database) -> Result<BTreeSet<String>, dpkg::Error> {
    let Some(text) = if_there(root.read_text(STATES, LIMIT))? else { return Ok(BTreeSet::new()) };
    let automatic = stanzas(&text).filter(|stanza| stanza.field("Auto-Installed") == Some("1"));
    let named =
        automatic.filter_map(|it| Some(database.named(it.field("Package")?, it.field("Architecture")?)));
    Ok(named.collect())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn parse_distinguishes_installs_upgrades_and_removals() {
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

    #[test]
    fn automatic_distinguishes_one_of_another_architecture() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let how = root::Attributes { mode: 0o644, owner: None };
        let put = |path: &str, text: &str| root.write(Path::new(path), text.as_bytes(), how).unwrap();
        put(dpkg::STATUS, "Package: dpkg\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1\n");
        let database = Database::read(&root).unwrap();
        assert!(automatic(&root, &database).unwrap().is_empty());
        put(
            STATES,
            "Package: lib\nArchitecture: i386\nAuto-Installed: 1\n\nPackage: lib\nArchitecture: amd64\nAuto-Installed: \
             0\n\nPackage: data\nArchitecture: amd64\nAuto-Installed: 1\n",
        );
        let names: Vec<String> = automatic(&root, &database).unwrap().into_iter().collect();
        assert_eq!(names, ["data", "lib:i386"]);
    }
}
