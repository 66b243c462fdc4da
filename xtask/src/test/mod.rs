//! `cargo xtask test`: every check, on a machine that has a Rust toolchain and perhaps nothing else.

mod browser;
pub(crate) mod charm;
mod engines;
mod headers;
mod install;
pub(crate) mod kernels;
mod linux_source;
mod modules;
mod needs;
mod packages;
mod privilege;
pub(crate) mod prometheus;
mod python;
mod real;
mod releases;
mod rocm_headers;
mod smi;
mod step;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::command::Command;
use crate::refusal::Refusal;
use crate::{dist, fuzz, repository, static_program, wrapper_build};
pub(crate) use privilege::Privilege;
use step::Steps;

const NEXTEST: [&str; 6] = ["cargo", "nextest", "run", "--locked", "--profile", "ci"];

const USAGE: &str =
    "`cargo xtask test` takes --yes, --all, and -- with arguments of `cargo nextest run`, each or none";

/// What a person or CI asks for.
#[derive(Debug, PartialEq, Eq)]
struct Asked<'a> {
    consent: install::Consent,
    /// What is slow, too: tests that are ignored, other builds of the wrapper, long fuzzing.
    all: bool,
    /// Arguments of `cargo nextest run`: only the tests that these select.
    selection: Option<&'a [String]>,
}

impl<'a> Asked<'a> {
    fn parse(arguments: &'a [String]) -> Option<Self> {
        let mut asked = Self { consent: install::Consent::Ask, all: false, selection: None };
        let mut rest = arguments;
        while let [word, more @ ..] = rest {
            rest = more;
            match word.as_str() {
                "--yes" => asked.consent = install::Consent::Given,
                "--all" => asked.all = true,
                "--" => return Some(Self { selection: Some(more), ..asked }),
                _ => return None,
            }
        }
        Some(asked)
    }
}

/// Runs the checks in order; the first that fails ends the run.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let Asked { consent, all, selection } = Asked::parse(arguments).ok_or_else(|| Refusal::new(USAGE))?;
    let privilege = Privilege::of_this_process()?;
    let started = Instant::now();
    let steps = Steps::default();

    // Not a step: declining is no failure of a check.
    install::what_is_missing(consent, &privilege, all)?;

    // The network is waited for beside the compiler.
    let tests = std::thread::scope(|scope| {
        let fetching = scope.spawn(|| fetch(&steps, privilege));
        let built = build(&steps, privilege, selection.is_none());
        let fetched = fetching.join().unwrap_or_else(|_| bail!("the thread that fetched panicked"));
        built.and_then(|tests| Ok(Tests { kernels: fetched?, all, ..tests }))
    })?;
    if let Some(selection) = selection {
        return tests.run_selected(selection);
    }
    steps.run("tests", "run one alone with `cargo xtask test -- NAME`", || tests.run())?;
    let remedy = "see why its helper in tests/support/src/real.rs was not called";
    steps.run("real components", remedy, || real::check(&tests.ran, &tests.list()?, all))?;
    if all {
        check_what_is_slow(&steps, &tests)?;
    }

    println!("\nall {} steps passed in {}", steps.count(), step::shown(started.elapsed()));
    Ok(())
}

/// What only `--all` has beside ignored tests: other builds of the wrapper, and fuzzing for as long as it finds something.
fn check_what_is_slow(steps: &Steps, tests: &Tests) -> Result<()> {
    steps.run("lints of the CDI oracle", "correct tests/cdi-oracle", oracle_lints)?;
    let remedy = "make the wrapper build statically with glibc";
    let with_glibc = steps.run("wrapper with glibc", remedy, wrapper_build::build_with_glibc)?;
    let remedy = "run one alone with ROCWORKER_WRAPPER=FILE `cargo nextest run NAME`";
    let both = ["real_runc", "real_nodes"];
    steps.run("tests of the wrapper with glibc", remedy, || tests.run_with_wrapper(&with_glibc, &both))?;
    let build = "make the wrapper and rocworker build for 64-bit Arm";
    if let Some(for_arm) = steps.run("wrapper for Arm", build, wrapper_build::build_for_arm)? {
        steps.run("tests of the wrapper for Arm", remedy, || {
            tests.run_with_wrapper(&for_arm, &["real_runc"])
        })?;
    }
    let remedy = "give its input to the target again (docs/dev/fuzzing.md), and make a test of it";
    steps.run("fuzzing", remedy, || fuzz::all(tests.privilege))
}

/// Builds what the tests run; `checks`: and makes every check that only compiles.
fn build(steps: &Steps, privilege: Privilege, checks: bool) -> Result<Tests> {
    if checks {
        steps.run("formatting", "run `cargo fmt --all`, and again inside tests/cdi-oracle", formatting)?;
        steps.run("lints", "correct what clippy names; `#[allow]` needs a reason", lints)?;
        steps.run("documentation", "correct the doc comments that rustdoc names", documentation)?;
    }
    let wrapper = steps.run("wrapper", "make the wrapper build as it ships", wrapper_build::build)?;
    let oracle = steps.run("CDI oracle", "correct tests/cdi-oracle", oracle)?;
    let program = if checks {
        steps.run("programs and tests", "make the programs and the tests build", programs_and_tests)?
    } else {
        steps.run("program", "make rocworker build", program)?
    };
    let remedy = "make rocworker build statically";
    let static_program = steps.run("static program", remedy, static_program::build)?;
    let remedy = "make rocworker-exporter build statically";
    let exporter = steps.run("static exporter", remedy, static_program::build_exporter)?;
    let programs = dist::Programs {
        rocworker: program.clone(),
        wrapper: wrapper.clone(),
        without_libraries: static_program.clone(),
        exporter: exporter.clone(),
    };
    let remedy = "make `cargo xtask dist` work";
    let dist = steps.run("what is handed out", remedy, || dist::for_tests(&programs))?;
    if checks {
        steps.run("doc examples", "correct the examples that rustdoc ran", doc_examples)?;
    }
    let (kernels, ran) = (PathBuf::new(), clean_file("real-components-ran.txt")?);
    let all = false;
    Ok(Tests { privilege, all, wrapper, oracle, program, static_program, exporter, dist, kernels, ran })
}

/// What comes from elsewhere for the tests, and is kept below target; answers with the folder of the kernels.
fn fetch(steps: &Steps, privilege: Privilege) -> Result<PathBuf> {
    let remedy = "see whether deb.debian.org can be reached, and remove target/kernels where it is damaged";
    let kernels = steps.run("kernels", remedy, kernels::fetch)?;
    let remedy = "see whether deb.debian.org can be reached, and remove target/apt where it is damaged";
    steps.run("releases", remedy, || releases::APT.make(privilege))?;
    let remedy = "see whether deb.debian.org can be reached, and remove target/incus where it is damaged";
    steps.run("Incus", remedy, || releases::INCUS.make(privilege))?;
    let remedy =
        "see whether deb.debian.org can be reached, and remove target/apt/headers where it is damaged";
    steps.run("kernel headers", remedy, headers::fetch)?;
    let remedy =
        "see whether deb.debian.org can be reached, and remove target/linux-source where it is damaged";
    steps.run("kernel source", remedy, linux_source::fetch)?;
    let remedy =
        "see whether deb.debian.org can be reached, and remove target/amdgpu-modules where it is damaged";
    steps.run("amdgpu modules", remedy, modules::fetch)?;
    let remedy = "see whether deb.debian.org can be reached, and remove target/smi where it is damaged";
    steps.run("rocm-smi and amd-smi", remedy, smi::fetch)?;
    let remedy =
        "see whether deb.debian.org can be reached, and remove target/rocm-headers where it is damaged";
    steps.run("ROCm's headers", remedy, rocm_headers::fetch)?;
    let remedy = "see whether pypi.org can be reached, and remove target/charmcraft where it is damaged";
    steps.run("charmcraft", remedy, charm::make)?;
    let remedy = "see whether pypi.org can be reached, and remove target/grafana-sdk where it is damaged";
    steps.run("Grafana's SDK", remedy, || python::GRAFANA.make(|_| Ok(())))?;
    let remedy =
        "see whether registry.npmjs.org can be reached, and remove target/browser where it is damaged";
    steps.run("axe and Chromium's driver", remedy, browser::make)?;
    Ok(kernels)
}

/// The crate of the oracle has a workspace of its own, so each call of cargo names it.
fn oracle_manifest() -> PathBuf {
    repository::top().join("tests/cdi-oracle/Cargo.toml")
}

fn formatting() -> Result<()> {
    Command::new(["cargo", "fmt", "--all", "--check"]).run()?;
    Command::new(["cargo", "fmt", "--check", "--manifest-path"]).arguments([oracle_manifest()]).run()
}

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
    Command::new(["cargo", "test", "--locked", "--workspace", "--doc"]).run()
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

/// All that the tests run, in one build: alone, rocworker would have fewer features and be built a second time. Answers
/// with rocworker, for tests of other packages: cargo names it to those of its own alone.
fn programs_and_tests() -> Result<PathBuf> {
    Command::new(NEXTEST).arguments(["--workspace", "--no-run"]).run()?;
    Ok(repository::target().join("debug/rocworker"))
}

/// rocworker itself, where only some tests run.
fn program() -> Result<PathBuf> {
    Command::new(["cargo", "build", "--locked", "--package", "rocworker"]).run()?;
    Ok(repository::target().join("debug/rocworker"))
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
    /// Those that are ignored, too.
    all: bool,
    wrapper: PathBuf,
    oracle: PathBuf,
    program: PathBuf,
    static_program: PathBuf,
    /// The exporter, static too.
    exporter: PathBuf,
    /// The Debian package and what else is handed out.
    dist: PathBuf,
    /// A kernel in a folder for each release of Debian; fetched while the rest is built.
    kernels: PathBuf,
    /// Each test of a real component adds its name here once it has found what it needs.
    ran: PathBuf,
}

impl Tests {
    fn run(&self) -> Result<()> {
        let nextest = Command::new(NEXTEST).arguments(["--workspace"]).arguments(self.ignored());
        self.with_environment(nextest, &self.wrapper).run()
    }

    /// The tests that these arguments of nextest's select.
    fn run_selected(&self, selection: &[String]) -> Result<()> {
        let nextest = Command::new(["cargo", "nextest", "run", "--locked", "--profile", "ci"]);
        let names_packages = selection.iter().any(|word| word == "-p" || word.starts_with("--package"));
        let nextest = if names_packages { nextest } else { nextest.arguments(["--workspace"]) };
        self.with_environment(nextest.arguments(selection), &self.wrapper).run()
    }

    /// The wrapper's tests with real runc once more, with another build of it.
    fn run_with_wrapper(&self, wrapper: &Path, programs: &[&str]) -> Result<()> {
        let programs: Vec<String> = programs.iter().map(|name| format!("binary({name})")).collect();
        let filter = format!("package(runc-amd-wrapper) and ({})", programs.join(" or "));
        // Of the workspace: built already.
        let nextest = Command::new(NEXTEST).arguments(["--workspace", "--filterset", &filter]);
        self.with_environment(nextest, wrapper).run()
    }

    fn ignored(&self) -> [&str; 2] {
        ["--run-ignored", if self.all { "all" } else { "default" }]
    }

    /// Every test of the workspace, the ignored among them, as nextest names them.
    fn list(&self) -> Result<Vec<real::Test>> {
        let nextest = ["cargo", "nextest", "list", "--locked", "--workspace", "--message-format", "json"];
        real::tests_in(
            &self
                .with_environment(Command::new(nextest).arguments(["--run-ignored", "all"]), &self.wrapper)
                .read()?,
        )
    }

    fn with_environment(&self, command: Command, wrapper: &Path) -> Command {
        let path = search_path();
        let command = self.privilege.run_tests_as_root(command, &path);
        let command =
            engines::variables().fold(command, |command, (name, program)| command.environment(name, program));
        let made = [
            releases::APT.variable(),
            headers::variable(),
            linux_source::variable(),
            modules::variable(),
            releases::INCUS.variable(),
            charm::variable(),
            python::GRAFANA.variable(),
            browser::variable(),
            smi::variable(),
            rocm_headers::variable(),
        ];
        let command = made.into_iter().fold(command, |command, (name, path)| command.environment(name, path));
        command
            .environment("PATH", &path)
            .environment("ROCWORKER_FULL", "1")
            .environment("ROCWORKER_ALL", if self.all { "1" } else { "0" })
            .environment("ROCWORKER_RAN", &self.ran)
            .environment("ROCWORKER_WRAPPER", wrapper)
            .environment("ROCWORKER_CDI_ORACLE", &self.oracle)
            .environment("ROCWORKER_PROGRAM", &self.program)
            .environment(static_program::VARIABLE, &self.static_program)
            .environment(static_program::EXPORTER_VARIABLE, &self.exporter)
            .environment(dist::VARIABLE, &self.dist)
            .environment("ROCWORKER_KERNELS", &self.kernels)
    }
}

/// This process's PATH, with what was unpacked beside the build, and with the sbin folders. Those hold runc,
/// and Debian leaves them out of an ordinary user's PATH.
pub(crate) fn search_path() -> OsString {
    let mut folders = vec![prometheus::folder()];
    let own = std::env::var_os("PATH").unwrap_or_default();
    folders.extend(std::env::split_paths(&own));
    folders.extend(["/usr/sbin".into(), "/sbin".into()]);
    // A folder with a colon in its name cannot be on a PATH at all, so it was not on this one.
    std::env::join_paths(folders).unwrap_or(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_read_in_any_order_and_anything_else_is_refused() {
        use install::Consent::{Ask, Given};
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        for (text, consent, all, selection) in [
            ("", Ask, false, None),
            ("--yes", Given, false, None),
            ("--all --yes", Given, true, None),
            ("--yes --all -- --all x", Given, true, Some("--all x")),
            ("--", Ask, false, Some("")),
        ] {
            let (arguments, selection) = (words(text), selection.map(words));
            let expected = Some(Asked { consent, all, selection: selection.as_deref() });
            assert_eq!(Asked::parse(&arguments), expected, "{text}");
        }
        for text in ["x", "--al", "--all x"] {
            assert_eq!(Asked::parse(&words(text)), None, "{text}");
        }
    }
}
