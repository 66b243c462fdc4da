//! `cargo xtask test`: every check, on a machine that has a Rust toolchain and perhaps nothing else.

pub(crate) mod charm;
mod engines;
mod exporter;
mod headers;
mod install;
pub(crate) mod kernels;
mod needs;
mod privilege;
mod real;
mod releases;
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

/// Runs the checks in order; the first that fails ends the run. With words after `--`, only the tests that these
/// arguments of `cargo nextest run` select.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (consent, arguments) = match arguments {
        [yes, rest @ ..] if yes == "--yes" => (install::Consent::Given, rest),
        all => (install::Consent::Ask, all),
    };
    let selection = match arguments {
        [] => None,
        [dashes, selection @ ..] if dashes == "--" => Some(selection),
        _ => {
            return Err(Refusal::new(
                "`cargo xtask test` takes --yes, or -- and arguments of `cargo nextest run`",
            ));
        }
    };
    let privilege = Privilege::of_this_process()?;
    let started = Instant::now();
    let steps = Steps::default();

    // Not a step: declining is no failure of a check.
    install::what_is_missing(consent, &privilege)?;

    // The network is waited for beside the compiler.
    let (tests, others) = std::thread::scope(|scope| {
        let fetching = scope.spawn(|| fetch(&steps, privilege));
        let built = build(&steps, privilege, selection.is_none());
        let fetched = fetching.join().unwrap_or_else(|_| bail!("the thread that fetched panicked"));
        built.and_then(|(tests, others)| Ok((Tests { kernels: fetched?, ..tests }, others)))
    })?;
    if let Some(selection) = selection {
        return tests.run_selected(selection);
    }
    let Others { with_glibc, for_arm } = others;
    steps.run("tests", "run one alone with `cargo xtask test -- NAME`", || tests.run())?;
    let remedy = "run one alone with ROCWORKER_WRAPPER=FILE `cargo nextest run NAME`";
    let both = ["real_runc", "real_nodes"];
    steps.run("tests of the wrapper with glibc", remedy, || tests.run_with_wrapper(&with_glibc, &both))?;
    if let Some(for_arm) = for_arm {
        steps.run("tests of the wrapper for Arm", remedy, || {
            tests.run_with_wrapper(&for_arm, &["real_runc"])
        })?;
    }
    let remedy = "see why its helper in tests/support/src/real.rs was not called";
    steps.run("real components", remedy, || real::check(&tests.ran, &tests.all()?))?;

    println!("\nall {} steps passed in {}", steps.count(), step::shown(started.elapsed()));
    Ok(())
}

/// Builds of the wrapper that repeat some of its tests.
#[derive(Default)]
struct Others {
    with_glibc: PathBuf,
    for_arm: Option<PathBuf>,
}

/// Builds what the tests run; `checks`: and makes every check that only compiles.
fn build(steps: &Steps, privilege: Privilege, checks: bool) -> Result<(Tests, Others)> {
    let mut others = Others::default();
    if checks {
        steps.run("formatting", "run `cargo fmt --all`, and again inside tests/cdi-oracle", formatting)?;
        steps.run("lints", "correct what clippy names; `#[allow]` needs a reason", lints)?;
        steps.run("documentation", "correct the doc comments that rustdoc names", documentation)?;
    }
    let wrapper = steps.run("wrapper", "make the wrapper build as it ships", wrapper_build::build)?;
    if checks {
        let remedy = "make the wrapper build statically with glibc";
        others.with_glibc = steps.run("wrapper with glibc", remedy, wrapper_build::build_with_glibc)?;
        let remedy = "make the wrapper and rocworker build for 64-bit Arm";
        others.for_arm = steps.run("wrapper for Arm", remedy, wrapper_build::build_for_arm)?;
    }
    let oracle = steps.run("CDI oracle", "correct tests/cdi-oracle", oracle)?;
    let program = steps.run("program", "make rocworker build", program)?;
    let remedy = "make rocworker build statically";
    let static_program = steps.run("static program", remedy, static_program::build)?;
    let programs = dist::Programs {
        rocworker: program.clone(),
        wrapper: wrapper.clone(),
        without_libraries: static_program.clone(),
    };
    let remedy = "make `cargo xtask dist` work";
    let dist = steps.run("what is handed out", remedy, || dist::for_tests(&programs))?;
    if checks {
        steps.run("doc examples", "correct the examples that rustdoc ran", doc_examples)?;
        let remedy = "give its input to the target again (docs/dev/fuzzing.md), and make a test of it";
        steps.run("fuzzing", remedy, || fuzz::briefly(privilege))?;
    }
    let (kernels, ran) = (PathBuf::new(), clean_file("real-components-ran.txt")?);
    let tests = Tests { privilege, wrapper, oracle, program, static_program, dist, kernels, ran };
    Ok((tests, others))
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
    let remedy = "see whether pypi.org can be reached, and remove target/charmcraft where it is damaged";
    steps.run("charmcraft", remedy, charm::make)?;
    Ok(kernels)
}

/// The crate of the oracle has a workspace of its own, so cargo has to be told of it each time.
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
    let target = repository::target().join("cdi-oracle");
    let cargo = |subcommand| {
        Command::new(["cargo", subcommand, "--locked", "--manifest-path"])
            .arguments([oracle_manifest()])
            .environment("CARGO_TARGET_DIR", &target)
    };
    cargo("clippy").arguments(["--all-targets", "--", "-D", "warnings"]).run()?;
    cargo("test").run()?;
    Ok(target.join("debug/cdi-oracle"))
}

/// rocworker itself, for tests of other packages: cargo names it to those of its own alone.
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

/// The workspace's tests, and what they are told by the environment.
struct Tests {
    privilege: Privilege,
    wrapper: PathBuf,
    oracle: PathBuf,
    program: PathBuf,
    static_program: PathBuf,
    /// The Debian package and what else is handed out.
    dist: PathBuf,
    /// A kernel in a folder for each release of Debian; fetched while the rest is built.
    kernels: PathBuf,
    /// Each test of a real component adds its name here once it has found what it needs.
    ran: PathBuf,
}

impl Tests {
    fn run(&self) -> Result<()> {
        let nextest = ["cargo", "nextest", "run", "--locked", "--workspace", "--profile", "ci"];
        self.told(Command::new(nextest).arguments(["--run-ignored", "all"]), &self.wrapper).run()
    }

    /// The tests that these arguments of nextest's select.
    fn run_selected(&self, selection: &[String]) -> Result<()> {
        let nextest = Command::new(["cargo", "nextest", "run", "--locked", "--profile", "ci"]);
        let names_packages = selection.iter().any(|word| word == "-p" || word.starts_with("--package"));
        let nextest = if names_packages { nextest } else { nextest.arguments(["--workspace"]) };
        self.told(nextest.arguments(selection), &self.wrapper).run()
    }

    /// The wrapper's tests with real runc once more, with another build of it.
    fn run_with_wrapper(&self, wrapper: &Path, programs: &[&str]) -> Result<()> {
        let nextest =
            ["cargo", "nextest", "run", "--locked", "--package", "runc-amd-wrapper", "--profile", "ci"];
        let nextest = Command::new(nextest).arguments(programs.iter().flat_map(|name| ["--test", name]));
        self.told(nextest, wrapper).run()
    }

    /// Every test of the workspace, the ignored among them, as nextest names them.
    fn all(&self) -> Result<Vec<String>> {
        let nextest = ["cargo", "nextest", "list", "--locked", "--workspace", "--message-format", "json"];
        real::tests_in(
            &self.told(Command::new(nextest).arguments(["--run-ignored", "all"]), &self.wrapper).read()?,
        )
    }

    fn told(&self, command: Command, wrapper: &Path) -> Command {
        let path = search_path();
        let command = self.privilege.run_tests_as_root(command, &path);
        let command =
            engines::variables().fold(command, |command, (name, program)| command.environment(name, program));
        let made =
            [releases::APT.variable(), headers::variable(), releases::INCUS.variable(), charm::variable()];
        let command = made.into_iter().fold(command, |command, (name, path)| command.environment(name, path));
        command
            .environment("PATH", &path)
            .environment("ROCWORKER_FULL", "1")
            .environment("ROCWORKER_RAN", &self.ran)
            .environment("ROCWORKER_WRAPPER", wrapper)
            .environment("ROCWORKER_CDI_ORACLE", &self.oracle)
            .environment("ROCWORKER_PROGRAM", &self.program)
            .environment(static_program::VARIABLE, &self.static_program)
            .environment(dist::VARIABLE, &self.dist)
            .environment("ROCWORKER_KERNELS", &self.kernels)
    }
}

/// This process's PATH, with what was unpacked beside the build, and with the sbin folders that hold runc
/// and that Debian leaves out of an ordinary user's PATH.
pub(crate) fn search_path() -> OsString {
    let mut folders = vec![exporter::folder()];
    let own = std::env::var_os("PATH").unwrap_or_default();
    folders.extend(std::env::split_paths(&own));
    folders.extend(["/usr/sbin".into(), "/sbin".into()]);
    // A folder with a colon in its name cannot be on a PATH at all, so it was not on this one.
    std::env::join_paths(folders).unwrap_or(own)
}
