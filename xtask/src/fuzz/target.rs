//! A fuzz target: how it runs, and what its output means.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::command::{Command, search_path};
use crate::privilege::Privilege;
use crate::{programs, repository};

/// A fuzz target of fuzz/.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) name: &'static str,
    /// The file in fuzz/dictionaries with the words of its inputs.
    dictionary: Option<&'static str>,
    /// Whether the target runs real runc, for which it needs root.
    asks_runc: bool,
}

const fn target(name: &'static str, dictionary: Option<&'static str>) -> Target {
    Target { name, dictionary, asks_runc: false }
}

pub(super) const TARGETS: &[Target] = &[
    target("bundle", Some("oci")),
    target("process", Some("oci")),
    target("cdi", Some("cdi")),
    target("policy", Some("policy")),
    target("record", Some("record")),
    target("lease", Some("lease")),
    target("runtime_state", Some("runtime_state")),
    target("health", Some("health")),
    target("request", Some("request")),
    target("gpu_metrics", None),
    target("kernel_log", Some("kernel_log")),
    target("kmsg", Some("kmsg")),
    target("args", Some("args")),
    // Each byte of this target's input stands for a word, so it needs no dictionary.
    Target { asks_runc: true, ..target("args_runc", None) },
    target("config", Some("config")),
    target("hip_message", None),
    target("hip_v1", Some("hip_v1")),
    target("hip_image", Some("hip_image")),
    target("hip_code_object", Some("hip_code_object")),
    target("hip_address", Some("hip_address")),
];

impl Target {
    pub(super) fn seeds(&self) -> PathBuf {
        repository::top().join("fuzz/seeds").join(self.name)
    }

    pub(super) fn dictionary(&self) -> Option<PathBuf> {
        let name = self.dictionary?;
        Some(repository::top().join(format!("fuzz/dictionaries/{name}.dict")))
    }

    /// Runs it for so long and prints a line about it. What libFuzzer says is kept in `folder`.
    pub(super) fn run(&self, folder: &Path, duration: Duration, privilege: Option<Privilege>) -> Result<()> {
        let as_root = privilege.filter(|_| self.asks_runc);
        if self.asks_runc && as_root.is_none() {
            println!("{:<13} skipped: it asks real runc, which takes root or sudo", self.name);
            return Ok(());
        }
        let [corpus, temporary, found, logs] =
            ["corpus", "tmp", "found", "logs"].map(|name| folder.join(name));
        let (corpus, temporary) = (corpus.join(self.name), temporary.join(self.name));
        // A run that found something ends without tidying up.
        if temporary.exists() {
            let remove = ["rm", "-rf", "--"];
            let argv =
                as_root.map_or(remove.map(str::to_owned).to_vec(), |privilege| privilege.as_root(&remove));
            Command::new(argv).arguments([&temporary]).read()?;
        }
        for folder in [&corpus, &temporary, &found, &logs] {
            std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
        }
        let log = logs.join(self.name);
        let argv = self.argv(folder, &[corpus.clone(), self.seeds()], &found, duration);
        let command = match as_root {
            Some(privilege) => privilege.lead(argv, &temporary)?,
            None => Command::new(argv).environment("TMPDIR", &temporary),
        };
        let ended_well = command.ends_well_with_its_words_in(&log)?;
        if let Some(privilege) = as_root {
            // The caller must be able to keep and remove what root's run has found.
            let owner = format!("--reference={}", folder.display());
            Command::new(privilege.as_root(&["chown", "-R", &owner])).arguments([&corpus, &found]).read()?;
        }
        let said = std::fs::read(&log).with_context(|| format!("reading {}", log.display()))?;
        let said = String::from_utf8_lossy(&said);
        if !ended_well {
            bail!("{}; all it said is in {}", failure(&said), log.display());
        }
        let figures = Figures::of(&said).with_context(|| format!("no figures in {}", log.display()))?;
        println!("{:<13} {figures}", self.name);
        Ok(())
    }

    fn argv(&self, folder: &Path, corpora: &[PathBuf], found: &Path, duration: Duration) -> Vec<OsString> {
        let triple = programs::glibc_target();
        let mut argv: Vec<OsString> = vec![folder.join(triple).join("release").join(self.name).into()];
        argv.extend(corpora.iter().map(OsString::from));
        argv.push(format!("-max_total_time={}", duration.as_secs()).into());
        argv.push(format!("-artifact_prefix={}/{}-", found.display(), self.name).into());
        argv.extend(["-timeout=10", "-max_len=4096", "-print_final_stats=1"].map(OsString::from));
        argv.extend(self.dictionary().map(|dictionary| format!("-dict={}", dictionary.display()).into()));
        argv
    }
}

impl Privilege {
    /// The command as root; sudo passes no environment on.
    fn lead(self, argv: Vec<OsString>, temporary: &Path) -> Result<Command> {
        let mut variable = OsString::from("PATH=");
        variable.push(search_path(None)?);
        Ok(Command::new(self.as_root(&["env"]))
            .arguments([variable, format!("TMPDIR={}", temporary.display()).into()])
            .arguments(argv))
    }
}

/// The failure's place and message, and the input that caused it.
fn failure(said: &str) -> String {
    let after = |mark: &str| said.lines().find_map(|line| line.split_once(mark)).map(|(_, rest)| rest);
    let mut lines = said.lines().skip_while(|line| !line.contains("panicked at"));
    let panicked = lines.next().and_then(|line| line.split_once("panicked at ")).map(|(_, place)| place);
    let words = panicked.map(|place| format!("{place} {}", lines.next().unwrap_or_default()));
    let words =
        words.or_else(|| after("ERROR: ").map(str::to_owned)).unwrap_or_else(|| "no word why".to_owned());
    match after("Test unit written to ") {
        Some(input) => format!("{words}; the input is {input}"),
        None => words,
    }
}

/// The counts of a run.
#[derive(Debug, PartialEq, Eq)]
struct Figures {
    executions: u64,
    /// libFuzzer's counters of edges, of features, and of inputs that are kept.
    cov: u64,
    ft: u64,
    corpus: u64,
}

impl Figures {
    fn of(said: &str) -> Option<Self> {
        let last = said.lines().rev().find(|line| line.contains("DONE") && line.contains(" cov: "))?;
        let number = |mark: &str| {
            let rest = last.split_once(mark)?.1;
            rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
        };
        Some(Self {
            executions: number("#")?,
            cov: number(" cov: ")?,
            ft: number(" ft: ")?,
            corpus: number(" corp: ")?,
        })
    }
}

impl std::fmt::Display for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { executions, cov, ft, corpus } = self;
        write!(f, "{executions:>12} {cov:>7} {ft:>8} {corpus:>7}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_are_those_of_the_last_line() {
        let said = "#2\tINITED cov: 1 ft: 2 corp: 3/4b\n\
                    #43699\tDONE   cov: 4412 ft: 13987 corp: 803/139Kb lim: 1422 exec/s: 7283 rss: 448Mb\nstat::x: 1\n";
        let expected = Figures { executions: 43699, cov: 4412, ft: 13987, corpus: 803 };
        assert_eq!(Figures::of(said), Some(expected));
        assert_eq!(Figures::of("#2\tINITED cov: 1 ft: 2 corp: 3/4b\n"), None);
    }

    #[test]
    fn a_failure_is_named_with_its_place_and_its_input() {
        let said = "thread '<unnamed>' (7) panicked at src/bundle.rs:46:9:\nread, though it is none\nstack backtrace:\n\
                    ==7== ERROR: libFuzzer: deadly signal\nartifact_prefix='f/'; Test unit written to f/crash-1\n";
        assert_eq!(failure(said), "src/bundle.rs:46:9: read, though it is none; the input is f/crash-1");
        assert_eq!(failure("==7== ERROR: libFuzzer: timeout\n"), "libFuzzer: timeout");
        assert_eq!(failure(""), "no word why");
    }
}
