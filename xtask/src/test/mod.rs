//! `cargo xtask test`: every check, on a machine that has a Rust toolchain and perhaps nothing else.

mod changed;
pub(crate) mod fetch;
mod hip_remote;
mod install;
mod needs;
mod real;
mod sanitized;
mod step;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::command::{Command, search_path};
use crate::privilege::Privilege;
use crate::programs::{self, Programs};
use crate::refusal::Refusal;
use crate::{dist, fuzz, provider, repository};
use step::Steps;

/// How many of the tests run: each tier includes the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tier {
    /// The packages that a change reaches, without slow checks.
    Changed,
    Usual,
    /// Ignored tests, other builds of the wrapper, long fuzzing.
    All,
}

/// The arguments of a person or of CI.
#[derive(Debug, PartialEq, Eq)]
struct Asked<'a> {
    consent: install::Consent,
    tier: Tier,
    /// Arguments of `cargo nextest run`: only the tests that these select.
    selection: Option<&'a [String]>,
}

impl<'a> Asked<'a> {
    fn parse(arguments: &'a [String]) -> Option<Self> {
        let mut asked = Self { consent: install::Consent::Ask, tier: Tier::Usual, selection: None };
        let mut rest = arguments;
        while let [word, more @ ..] = rest {
            rest = more;
            match word.as_str() {
                "--yes" => asked.consent = install::Consent::Given,
                "--changed" if asked.tier == Tier::Usual => asked.tier = Tier::Changed,
                "--all" if asked.tier == Tier::Usual => asked.tier = Tier::All,
                "--" if asked.tier != Tier::Changed => return Some(Self { selection: Some(more), ..asked }),
                _ => return None,
            }
        }
        Some(asked)
    }
}

/// Runs the checks in order; the first that fails ends the run.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let Asked { consent, tier, selection } = Asked::parse(arguments).ok_or_else(|| {
        Refusal::new("these arguments do not go together; `cargo xtask test --help` says which do")
    })?;
    let privilege = Privilege::of_this_process()?;
    let started = Instant::now();
    let steps = Steps::default();
    let reached = if tier == Tier::Changed { Some(changed::packages()?) } else { None };
    if let Some(packages) = &reached {
        println!("reached, with what depends on them: {}", packages.join(", "));
        if packages.is_empty() {
            return Ok(());
        }
    }

    // Not a step: declining is no failure of a check.
    install::what_is_missing(consent, &privilege, tier == Tier::All)?;

    // The network is waited for beside the compiler.
    let tests = std::thread::scope(|scope| {
        let fetching = scope.spawn(|| fetch::all(&steps, privilege));
        let built = build(&steps, privilege, tier, selection.is_none());
        fetching.join().unwrap_or_else(|_| bail!("the thread that fetched panicked")).and(built)
    })?;
    if let Some(selection) = selection {
        return tests.run_selected(selection);
    }
    let remedy = "run one alone with `cargo xtask test -- NAME`";
    if let Some(packages) = &reached {
        steps.run("tests", remedy, || tests.run_reached(packages))?;
    } else {
        steps.run("tests", remedy, || tests.run())?;
        let remedy = "see why its helper in tests/support/src/real.rs was not called";
        steps
            .run("real components", remedy, || real::check(&tests.ran, &tests.list()?, tier == Tier::All))?;
        let remedy = "run one alone in hip-remote with `cargo nextest run NAME`";
        steps.run("tests of HIP over the network", remedy, || tests.run_of_hip_remote())?;
    }
    if tier == Tier::All {
        check_what_is_slow(&steps, &tests)?;
    }

    println!("\nall {} steps passed in {}", steps.count(), step::shown(started.elapsed()));
    Ok(())
}

/// Runs the checks of `--all` beside ignored tests: other builds of the wrapper, and fuzzing for as long as
/// it finds something.
fn check_what_is_slow(steps: &Steps, tests: &Tests) -> Result<()> {
    steps.run("lints of the CDI oracle", "correct tests/cdi-oracle", oracle_lints)?;
    let remedy = "make the wrapper build statically with glibc";
    let with_glibc = steps.run("wrapper with glibc", remedy, programs::wrapper_with_glibc)?;
    let remedy = "run one alone with ROCWORKER_WRAPPER=FILE `cargo nextest run NAME`";
    let both = ["real_runc", "real_nodes"];
    steps.run("tests of the wrapper with glibc", remedy, || tests.run_with_wrapper(&with_glibc, &both))?;
    let build = "make the wrapper and rocworker build for 64-bit Arm";
    if let Some(for_arm) = steps.run("wrapper for Arm", build, programs::wrapper_for_arm)? {
        steps.run("tests of the wrapper for Arm", remedy, || {
            tests.run_with_wrapper(&for_arm, &["real_runc"])
        })?;
    }
    let remedy = "give its input to the target again (docs/dev/fuzzing.md), and make a test of it";
    steps.run("fuzzing", remedy, || fuzz::all(tests.privilege))
}

/// Builds what the tests run; `checks`: and makes every check that only compiles.
fn build(steps: &Steps, privilege: Privilege, tier: Tier, checks: bool) -> Result<Tests> {
    if checks {
        let remedy = "run `cargo fmt --all`, and again inside tests/cdi-oracle and hip-remote";
        steps.run("formatting", remedy, || formatting().and_then(|()| hip_remote::formatting()))?;
        let remedy = "correct what clippy names; `#[allow]` needs a reason";
        steps.run("lints", remedy, || lints().and_then(|()| hip_remote::lints()))?;
    }
    let whole = checks && tier != Tier::Changed;
    if whole {
        steps.run("documentation", "correct the doc comments that rustdoc names", documentation)?;
    }
    let oracle = steps.run("CDI oracle", "correct tests/cdi-oracle", oracle)?;
    let remedy = "make the programs and the tests build";
    steps
        .run("programs and tests", remedy, || nextest("run").arguments(["--workspace", "--no-run"]).run())?;
    let programs = Programs::of_tests();
    let remedy = "make `cargo xtask dist` work";
    let dist = steps.run("what is handed out", remedy, || dist::for_tests(&programs))?;
    let remedy = "make `cargo xtask provider` work";
    let provider = steps.run("provider", remedy, provider::built)?;
    let hip_remote = if tier == Tier::Changed || !checks {
        None
    } else {
        let remedy = "make `cargo xtask hip-remote` and the tests in hip-remote build";
        Some(steps.run("HIP over the network", remedy, hip_remote::build)?)
    };
    if whole {
        steps.run("doc examples", "correct the examples that rustdoc ran", doc_examples)?;
    }
    if tier == Tier::All {
        let remedy = "see whether Debian's mirror and crates.io can be reached";
        steps.run("provider for the sanitizers", remedy, || sanitized::into(&provider))?;
    }
    let ran = clean_file("real-components-ran.txt")?;
    Ok(Tests { privilege, tier, programs, provider, hip_remote, oracle, dist, ran })
}

/// The crate of the oracle has a workspace of its own, so each call of cargo names it.
fn oracle_manifest() -> PathBuf {
    repository::top().join("tests/cdi-oracle/Cargo.toml")
}

fn formatting() -> Result<()> {
    Command::new(["cargo", "fmt", "--all", "--check"]).run()?;
    Command::new(["cargo", "fmt", "--check", "--manifest-path"]).arguments([oracle_manifest()]).run()
}

/// Lints the whole workspace, as every build here is of the whole workspace. For some packages alone, cargo
/// would build their dependencies again with fewer features. What a change does not reach is not linted
/// again.
fn lints() -> Result<()> {
    Command::new(["cargo", "clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"])
        .run()
}

fn documentation() -> Result<()> {
    Command::new(["cargo", "doc", "--locked", "--workspace", "--no-deps"])
        .environment("RUSTDOCFLAGS", "-D warnings")
        .run()
}

fn doc_examples() -> Result<()> {
    Command::new(["cargo", "test", "--locked", "--workspace", "--doc", "--target", &programs::target()]).run()
}

/// Builds the oracle by running its own tests: one that accepts everything would judge nothing.
fn oracle() -> Result<PathBuf> {
    of_oracle("test").run()?;
    Ok(oracle_target().join("debug/cdi-oracle"))
}

fn oracle_lints() -> Result<()> {
    of_oracle("clippy").arguments(["--all-targets", "--", "-D", "warnings"]).run()
}

fn oracle_target() -> PathBuf {
    repository::target().join("cdi-oracle")
}

fn of_oracle(subcommand: &str) -> Command {
    Command::new(["cargo", subcommand, "--locked", "--manifest-path"])
        .arguments([oracle_manifest()])
        .environment("CARGO_TARGET_DIR", oracle_target())
}

/// nextest for the target that the programs ship for: the programs that the tests run are then of the tests' own build.
fn nextest(subcommand: &str) -> Command {
    Command::new(["cargo", "nextest", subcommand, "--locked", "--target", &programs::target()])
}

/// Tells the tests where the fetched components are.
fn with_fetched(command: Command) -> Result<Command> {
    let variables = fetch::variables()?.into_iter();
    Ok(variables.fold(command, |command, (name, path)| command.environment(name, path)))
}

/// A path below the target folder at which nothing of an earlier run is left.
fn clean_file(name: &str) -> Result<PathBuf> {
    let path = repository::target().join("xtask").join(name);
    let parent = path.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(parent).with_context(|| format!("making {}", parent.display()))?;
    std::fs::write(&path, "").with_context(|| format!("emptying {}", path.display()))?;
    Ok(path)
}

/// The workspace's tests, and what they read from the environment.
struct Tests {
    privilege: Privilege,
    tier: Tier,
    programs: Programs,
    /// The folder of TensorFusion's provider.
    provider: PathBuf,
    /// The folder of hip-remote's libraries and programs, in a run of all tests.
    hip_remote: Option<PathBuf>,
    oracle: PathBuf,
    /// The Debian package and what else is handed out.
    dist: PathBuf,
    /// The file to which each test of a real component adds its name once it has found what it needs.
    ran: PathBuf,
}

impl Tests {
    fn run(&self) -> Result<()> {
        let ignored = if self.tier == Tier::All { "all" } else { "default" };
        let nextest = nextest("run").arguments(["--profile", "ci", "--workspace", "--run-ignored", ignored]);
        self.with_environment(nextest, &self.programs.wrapper)?.run()
    }

    /// The tests of hip-remote's own workspace.
    fn run_of_hip_remote(&self) -> Result<()> {
        let folder = self.hip_remote.as_deref().context("hip-remote was not built")?;
        let ignored = if self.tier == Tier::All { "all" } else { "default" };
        let nextest = hip_remote::nextest("run").arguments(["--profile", "ci", "--run-ignored", ignored]);
        let path = search_path(None)?;
        let nextest = self.privilege.run_tests_as_root(hip_remote::with_folder(nextest, folder), &path);
        with_fetched(nextest)?.environment("PATH", &path).run()
    }

    /// The tests of these packages, and of what depends on them, that the profile `changed` has.
    fn run_reached(&self, packages: &[String]) -> Result<()> {
        let reached: Vec<String> = packages.iter().map(|name| format!("rdeps(={name})")).collect();
        let nextest = nextest("run").arguments(["--profile", "changed", "--workspace", "--filterset"]);
        self.with_environment(nextest.arguments([reached.join(" + ")]), &self.programs.wrapper)?.run()
    }

    /// The tests that these arguments of nextest's select.
    fn run_selected(&self, selection: &[String]) -> Result<()> {
        let nextest = nextest("run").arguments(["--profile", "ci"]);
        let names_packages = selection.iter().any(|word| word == "-p" || word.starts_with("--package"));
        let nextest = if names_packages { nextest } else { nextest.arguments(["--workspace"]) };
        self.with_environment(nextest.arguments(selection), &self.programs.wrapper)?.run()
    }

    /// The wrapper's tests with real runc once more, with another build of it.
    fn run_with_wrapper(&self, wrapper: &Path, modules: &[&str]) -> Result<()> {
        let modules: Vec<String> = modules.iter().map(|name| format!("test(/^{name}::/)")).collect();
        let filter = format!("package(runc-amd-wrapper) and ({})", modules.join(" or "));
        // Of the workspace: built already.
        let nextest = nextest("run").arguments(["--profile", "ci", "--workspace", "--filterset", &filter]);
        self.with_environment(nextest, wrapper)?.run()
    }

    /// Every test of the workspace in nextest's list, including the ignored ones.
    fn list(&self) -> Result<Vec<real::Test>> {
        let nextest =
            nextest("list").arguments(["--workspace", "--message-format", "json", "--run-ignored", "all"]);
        real::tests_in(&self.with_environment(nextest, &self.programs.wrapper)?.read()?)
    }

    fn with_environment(&self, command: Command, wrapper: &Path) -> Result<Command> {
        let path = search_path(Some(fetch::prometheus()?))?;
        let command = self.privilege.run_tests_as_root(command, &path);
        Ok(with_fetched(command)?
            .environment("PATH", &path)
            .environment("ROCWORKER_FULL", "1")
            .environment("ROCWORKER_ALL", if self.tier == Tier::All { "1" } else { "0" })
            .environment("ROCWORKER_RAN", &self.ran)
            .environment("ROCWORKER_WRAPPER", wrapper)
            .environment("ROCWORKER_PROVIDER", &self.provider)
            .environment("ROCWORKER_CDI_ORACLE", &self.oracle)
            .environment("ROCWORKER_PROGRAM", &self.programs.rocworker)
            .environment("ROCWORKER_EXPORTER", &self.programs.exporter)
            .environment(dist::VARIABLE, &self.dist))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_read_in_any_order_and_anything_else_is_refused() {
        use install::Consent::{Ask, Given};
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        for (text, consent, tier, selection) in [
            ("", Ask, Tier::Usual, None),
            ("--yes", Given, Tier::Usual, None),
            ("--changed", Ask, Tier::Changed, None),
            ("--all --yes", Given, Tier::All, None),
            ("--yes --all -- --all x", Given, Tier::All, Some("--all x")),
            ("--", Ask, Tier::Usual, Some("")),
        ] {
            let (arguments, selection) = (words(text), selection.map(words));
            let expected = Some(Asked { consent, tier, selection: selection.as_deref() });
            assert_eq!(Asked::parse(&arguments), expected, "{text}");
        }
        for text in ["x", "--al", "--all x", "--all --changed", "--changed --all", "--changed -- x"] {
            assert_eq!(Asked::parse(&words(text)), None, "{text}");
        }
    }
}
