//! The file that amdgpu is, or would be, loaded from, by kmod's own word: modinfo(8) and modprobe(8).

use std::path::{Path, PathBuf};
use std::time::Duration;

use reconcile::command::{Error, Programs};

/// How long modinfo or modprobe may take: each reads one file and its index.
const LIMIT: Duration = Duration::from_secs(20);

/// What modinfo says of a module that its index does not name, and of one whose file is gone.
const NOWHERE: [&str; 2] = ["not found.", "No such file or directory"];

/// What a module's file says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleFile {
    /// `(builtin)` where the kernel has the module in itself.
    pub path: PathBuf,
    /// A digest of its sources, which the kernel shows of a loaded module too (`/sys/module/amdgpu/srcversion`): the
    /// one that distinguishes two builds. Not every kernel's build has one.
    pub srcversion: Option<String>,
}

/// What `modprobe amdgpu` does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Modprobe {
    /// Loads this file, after what it needs.
    Loads(PathBuf),
    /// Runs this instead, by an `install` line of modprobe.d(5).
    Runs(String),
}

/// The file that `modprobe amdgpu` takes for this kernel; `None`: it has none.
///
/// # Errors
/// When modinfo is not there or says something else.
pub fn of_kernel(programs: &Programs, kernel: &str) -> Result<Option<ModuleFile>, String> {
    ask(programs, &["modinfo", "-k", kernel, "-0", "amdgpu"])
}

/// What a module's file says of itself; `None`: no module is there.
///
/// # Errors
/// When modinfo is not there or says something else.
pub fn in_file(programs: &Programs, file: &Path) -> Result<Option<ModuleFile>, String> {
    ask(programs, &["modinfo", "-0", &file.to_string_lossy()])
}

fn ask(programs: &Programs, argv: &[&str]) -> Result<Option<ModuleFile>, String> {
    match programs.run(argv, LIMIT) {
        Ok(output) => {
            parse(&output.stdout).map(Some).ok_or_else(|| format!("{} names no file", argv.join(" ")))
        }
        Err(Error::Failed { reported, .. }) if NOWHERE.iter().any(|end| reported.ends_with(end)) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

/// `filename:       PATH`, then `KEY=VALUE`, each ended by a NUL (kmod's tools/modinfo.c); later kmods have the colon in
/// each.
fn parse(answer: &[u8]) -> Option<ModuleFile> {
    let answer = String::from_utf8_lossy(answer);
    let value = |key: &str| {
        let of = |field: &str| {
            field.strip_prefix(key)?.strip_prefix(['=', ':']).map(|value| value.trim().to_owned())
        };
        answer.split('\0').find_map(of).filter(|value| !value.is_empty())
    };
    Some(ModuleFile { path: value("filename")?.into(), srcversion: value("srcversion") })
}

/// What `modprobe amdgpu` would do for this kernel; does not do it.
///
/// # Errors
/// When modprobe is not there, or finds no such module.
pub fn modprobe(programs: &Programs, kernel: &str) -> Result<Modprobe, String> {
    let argv = ["modprobe", "--set-version", kernel, "--show-depends", "amdgpu"];
    let output = programs.run(&argv, LIMIT).map_err(|error| error.to_string())?;
    let printed = String::from_utf8_lossy(&output.stdout);
    leads(&printed).ok_or_else(|| format!("{} says what is not understood: {printed:?}", argv.join(" ")))
}

/// `insmod PATH OPTIONS` for each, the module's own in the last line; `install COMMAND` where there is such a line.
fn leads(printed: &str) -> Option<Modprobe> {
    let last = printed.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    match last.split_once(' ')? {
        ("insmod", rest) => Some(Modprobe::Loads(rest.split(' ').next()?.into())),
        ("install", command) => Some(Modprobe::Runs(command.trim().to_owned())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// kmod 30 gave these answers for a module that dkms 3.0.10 built.
    #[test]
    fn a_modules_file_is_what_modinfo_says_of_it() {
        let file = parse(
            b"filename:       /lib/modules/6.1.0-50-amd64/updates/dkms/amdgpu.ko\0version=6.16.13\0license=GPL\0\
              srcversion=94F3309749DC6CE57A8A067\0depends=\0name=amdgpu\0vermagic=6.1.0-50-amd64 SMP preempt \0\
              signer=DKMS module signing key\0sig_key=2E:11\0",
        );
        let expected = ModuleFile {
            path: "/lib/modules/6.1.0-50-amd64/updates/dkms/amdgpu.ko".into(),
            srcversion: Some("94F3309749DC6CE57A8A067".to_owned()),
        };
        assert_eq!(file, Some(expected));
        let built_in =
            parse(b"name:           amdgpu\0filename:       (builtin)\0license:        GPL\0").unwrap();
        assert_eq!((built_in.path.to_str(), built_in.srcversion), (Some("(builtin)"), None));
        assert_eq!(parse(b""), None);
    }

    #[test]
    fn modprobe_loads_the_last_file_or_runs_what_an_install_line_says() {
        let kernels = "insmod /lib/modules/6.1/kernel/drm.ko \ninsmod /lib/modules/6.1/updates/dkms/amdgpu.ko noretry=0 \n";
        for (printed, expected) in [
            (kernels, Some(Modprobe::Loads("/lib/modules/6.1/updates/dkms/amdgpu.ko".into()))),
            ("install /bin/false \n", Some(Modprobe::Runs("/bin/false".to_owned()))),
            ("builtin amdgpu\n", None),
            ("", None),
        ] {
            assert_eq!(leads(printed), expected, "{printed}");
        }
    }
}
