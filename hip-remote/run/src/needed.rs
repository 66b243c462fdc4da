//! Which release's HIP library a program is linked with.

use std::fs::File;
use std::path::Path;

use hip_abi::release::Release;
use object::elf::{DT_NEEDED, FileHeader64};
use object::read::elf::{Dyn as _, FileHeader as _};
use object::{Endianness, ReadCache, ReadRef};

/// None where the program is no ELF file, or loads the library later or by another library.
pub(crate) fn release(program: &Path) -> Option<Release> {
    let file = ReadCache::new(File::open(program).ok()?);
    of(&file)
}

fn of<'data>(file: impl ReadRef<'data>) -> Option<Release> {
    let header = FileHeader64::<Endianness>::parse(file).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, file).ok()?;
    let (entries, strings) = sections.dynamic(endian, file).ok()??;
    let strings = sections.strings(endian, file, strings).ok()?;
    let needed = entries.iter().filter(|entry| entry.tag(endian) == DT_NEEDED);
    let names: Vec<&[u8]> = needed.filter_map(|entry| strings.get(entry.val32(endian)?).ok()).collect();
    Release::ALL.into_iter().find(|release| names.contains(&release.soname().as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_programs_release_is_that_of_the_library_it_needs() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("empty.c"), "int main(void) { return 0; }\n").unwrap();
        let gcc = |arguments: &[&str]| {
            let done = Command::new("gcc").current_dir(folder.path()).args(arguments).status().unwrap();
            assert!(done.success());
        };
        for (release, number) in Release::ALL.into_iter().zip(5..) {
            let name = format!("libamdhip64.so.{number}");
            gcc(&["-shared", "-o", &name, "empty.c", &format!("-Wl,-soname,{name}")]);
            gcc(&["-o", "program", "empty.c", "-Wl,--no-as-needed", &name]);
            assert_eq!(super::release(&path("program")), Some(release));
        }
        gcc(&["-o", "program", "empty.c"]);
        assert_eq!(super::release(&path("program")), None);
        gcc(&["-static", "-o", "program", "empty.c"]);
        assert_eq!(super::release(&path("program")), None);
        assert_eq!(super::release(&path("empty.c")), None);
        assert_eq!(super::release(&path("none")), None);
    }
}
