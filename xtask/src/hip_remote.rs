//! HIP over the network: the client's libraries and the programs of hip-remote, as they ship.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use hip_abi::release::Release;
use hip_abi::symbols;

use crate::command::Command;
use crate::programs;
use crate::provider::{copy, unwinder};
use crate::refusal::Refusal;
use crate::repository;

/// For LD_PRELOAD before a HIP library that is already there.
const STUB: &str = "libhip_client_stub.so";

/// The packages, named as their programs.
const PROGRAMS: [&str; 2] = ["rocworker-hip-run", "rocworker-hip-worker"];

/// The oldest glibc that the libraries run with.
const GLIBC: u32 = 34;

/// `cargo xtask hip-remote`.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let profile = match arguments {
        [] => &RELEASE,
        [only] if only == "--dev" => &DEV,
        _ => {
            let given = arguments.join(" ");
            return Err(Refusal::new(format!(
                "hip-remote takes --dev alone, and these arguments were given: {given}"
            )));
        }
    };
    println!("{}", built(profile)?.display());
    Ok(())
}

/// How cargo builds, and the folder into which it does.
pub(crate) struct Profile {
    flag: &'static str,
    folder: &'static str,
}

pub(crate) const RELEASE: Profile = Profile { flag: "--release", folder: "release" };
/// Without optimization: what tests run.
pub(crate) const DEV: Profile = Profile { flag: "--profile=dev", folder: "debug" };

/// Builds the programs and the libraries into a folder with `bin` and `lib`.
pub(crate) fn built(profile: &Profile) -> Result<PathBuf> {
    let target = programs::glibc_target();
    programs::require(&target, "HIP's libraries need glibc")?;
    let folder = repository::target().join("hip-remote");
    let [bin, lib, link] = ["bin", "lib", "link"].map(|name| folder.join(name));
    for folder in [&bin, &lib, &link] {
        fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    }
    cargo("build")
        .arguments(["--locked", profile.flag, "--target", &target, "--package", "hip-client"])
        .arguments(PROGRAMS.iter().flat_map(|name| ["--package", name]))
        .run()?;
    let made = repository::target().join(target).join(profile.folder);
    for program in PROGRAMS {
        replace(&made.join(program), &bin.join(program))?;
    }
    let linker = Linker::new(&made.join("libhip_client.a"), link, lib.clone())?;
    for release in Release::ALL {
        linker.library(release, &release.soname())?;
    }
    linker.library(Release::Rocm7, STUB)?;
    let newest = lib.join("libamdhip64.so");
    // A link of an earlier run may lead elsewhere.
    if newest.is_symlink() {
        fs::remove_file(&newest).with_context(|| format!("removing {}", newest.display()))?;
    }
    symlink(Release::Rocm7.soname(), &newest).with_context(|| format!("making {}", newest.display()))?;
    Ok(folder)
}

/// A call of cargo in hip-remote, whose workspace is its own.
pub(crate) fn cargo(subcommand: &str) -> Command {
    Command::new(["cargo", subcommand])
        .inside(repository::top().join("hip-remote"))
        .environment("CARGO_TARGET_DIR", repository::target())
}

/// Copies a file into the place of one that a process may be running.
fn replace(from: &Path, to: &Path) -> Result<()> {
    let beside = to.with_extension("new");
    copy(from, &beside)?;
    fs::rename(&beside, to).with_context(|| format!("renaming {} to {}", beside.display(), to.display()))
}

/// Links the client. rustc gives no version script to a cdylib, so that gcc links.
struct Linker {
    /// The archive, and the symbols that it defines.
    client: PathBuf,
    defined: String,
    unwinder: PathBuf,
    /// Where the parts of a library are made.
    link: PathBuf,
    lib: PathBuf,
}

impl Linker {
    fn new(archive: &Path, link: PathBuf, lib: PathBuf) -> Result<Self> {
        let client = link.join("client.a");
        let shared = symbols::CALCULATIONS.map(|name| format!("--localize-symbol={name}"));
        // Rust's own library has these two for itself alone, and what is hidden in one object is hidden in all.
        Command::new(["objcopy"]).arguments(shared).arguments([archive, &client]).run()?;
        let listed = Command::new(["nm", "--defined-only", "--extern-only", "--format=posix"]);
        let defined = listed.arguments([&client]).read()?;
        Ok(Self { client, defined, unwinder: unwinder(&link)?, link, lib })
    }

    fn library(&self, release: Release, soname: &str) -> Result<()> {
        let defined: BTreeSet<&str> =
            self.defined.lines().filter_map(|line| line.split(' ').next()).collect();
        let [script, stubs, linked] = [format!("{soname}.map"), format!("{soname}.c"), soname.to_owned()]
            .map(|name| self.link.join(name));
        write(&script, &symbols::version_script(release))?;
        // The client asks the program for its release where the library is of no one release.
        let number = if soname == STUB { 0 } else { release.number() };
        let constant = format!("const int rocworker_hip_release = {number};\n");
        write(&stubs, &(constant + &symbols::stubs(release, &defined)))?;
        Command::new([
            "gcc",
            "-shared",
            "-O2",
            "-fPIC",
            "-Wall",
            "-Werror",
            "-Wno-builtin-declaration-mismatch",
        ])
        .arguments([Path::new("-o"), &linked, &stubs])
        .arguments([format!("-Wl,-soname,{soname}"), format!("-Wl,--version-script,{}", script.display())])
        // The library has threads: its code stays, whatever closes it. What it lacks is told here, not to a program.
        .arguments(["-Wl,-z,nodelete", "-Wl,-z,defs", "-Wl,-z,now", "-Wl,--gc-sections", "-Wl,--strip-debug"])
        .arguments([Path::new("-Wl,--whole-archive"), &self.client, Path::new("-Wl,--no-whole-archive")])
        .arguments([&self.unwinder.join("libgcc_s.a"), Path::new("-lm")])
        .run()?;
        check(&linked, release)?;
        replace(&linked, &self.lib.join(soname))
    }
}

/// Compares what a library gives and takes with the release's list and with the oldest glibc.
fn check(library: &Path, release: Release) -> Result<()> {
    let shown = library.display();
    let listed = Command::new(["nm", "--dynamic", "--format=posix", "--with-symbol-versions"])
        .arguments([library])
        .read()?;
    let mut exported = BTreeSet::new();
    for line in listed.lines() {
        let mut words = line.split(' ');
        let (Some(symbol), Some(kind)) = (words.next(), words.next()) else {
            continue;
        };
        let version = symbol.split_once('@').map(|(_, version)| version);
        match kind {
            // A library may do without a weak symbol, but not without its version.
            "w" if version.is_none() => {}
            "U" | "w" if !version.is_some_and(glibc_has) => {
                bail!("{shown} needs {symbol}, and only glibc 2.{GLIBC} and its symbols may be needed")
            }
            "U" | "w" | "A" => {}
            _ => {
                exported.insert(symbol.replace("@@", " "));
            }
        }
    }
    let wanted: BTreeSet<String> =
        symbols::of(release).map(|symbol| format!("{} {}", symbol.name, symbol.version)).collect();
    if exported != wanted {
        let differing: Vec<_> = exported.symmetric_difference(&wanted).map(String::as_str).collect();
        bail!("{shown} and the list of release {} differ in {}", release.number(), differing.join(", "));
    }
    Ok(())
}

fn glibc_has(version: &str) -> bool {
    let minor = version.strip_prefix("GLIBC_2.").and_then(|rest| rest.split('.').next());
    minor.and_then(|minor| minor.parse::<u32>().ok()).is_some_and(|minor| minor <= GLIBC)
}

fn write(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| format!("writing {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client of one call, in place of the real one.
    const CLIENT: &str = "\
        #include <stdio.h>\n\
        void rocworker_hip_unsupported(const char *name) { printf(\"%s is unsupported\\n\", name); }\n\
        int hipMalloc(void **pointer, unsigned long bytes) { *pointer = (void *)bytes; return 0; }\n";

    const PROGRAM: &str = "\
        #include <stdio.h>\n\
        struct channel { int fields[5]; };\n\
        int hipMalloc(void **, unsigned long);\n\
        int hipGraphCreate(void **, unsigned);\n\
        struct channel hipCreateChannelDesc(int, int, int, int, int);\n\
        float __gnu_h2f_ieee(unsigned short);\n\
        unsigned short __gnu_f2h_ieee(float);\n\
        int main(void) {\n\
            void *pointer;\n\
            struct channel channel = hipCreateChannelDesc(1, 2, 3, 4, 5);\n\
            printf(\"%d\\n\", hipGraphCreate(&pointer, 0));\n\
            int error = hipMalloc(&pointer, 0x2a);\n\
            printf(\"%d %p\\n\", error, pointer);\n\
            printf(\"%d %g %#x\\n\", channel.fields[4], __gnu_h2f_ieee(0x3e00), __gnu_f2h_ieee(-2));\n\
            return 0;\n\
        }\n";

    #[test]
    fn a_program_of_each_release_calls_the_client_and_hears_what_it_lacks() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| folder.path().join(name);
        fs::write(file("client.c"), CLIENT).unwrap();
        fs::write(file("program.c"), PROGRAM).unwrap();
        let gcc = |arguments: &[&str]| {
            Command::new([&["gcc", "-fPIC"], arguments].concat()).inside(folder.path()).run().unwrap();
        };
        gcc(&["-c", "client.c"]);
        Command::new(["ar", "r", "archive.a", "client.o"]).inside(folder.path()).run().unwrap();
        let linker = Linker::new(&file("archive.a"), folder.path().into(), folder.path().into()).unwrap();
        for release in Release::ALL {
            let soname = release.soname();
            linker.library(release, &soname).unwrap();
            let library = format!("./{soname}");
            gcc(&["-o", "program", "program.c", &library]);
            let said = Command::new([file("program")])
                .environment("LD_LIBRARY_PATH", folder.path())
                .inside(folder.path())
                .read()
                .unwrap();
            let expected = "hipCreateChannelDesc is unsupported\nhipGraphCreate is unsupported\n801\n0 0x2a\n0 1.5 0xc000\n";
            assert_eq!(said, expected, "{soname}");
        }
    }

    #[test]
    fn a_symbol_of_a_newer_glibc_is_refused() {
        for (version, has) in
            [("GLIBC_2.34", true), ("GLIBC_2.2.5", true), ("GLIBC_2.35", false), ("GCC_3.0", false)]
        {
            assert_eq!(glibc_has(version), has, "{version}");
        }
    }
}
