//! Which release's HIP library a program is linked with.

use std::fs::File;
use std::path::Path;

use hip_abi::release::Release;
use object::elf::{DT_NEEDED, DT_STRSZ, DT_STRTAB, FileHeader64};
use object::read::StringTable;
use object::read::elf::{Dyn as _, FileHeader as _, ProgramHeader as _};
use object::{Endianness, ReadCache, ReadRef};

/// None where the program is no ELF file, or loads the library later or by another library.
pub(crate) fn release(program: &Path) -> Option<Release> {
    let file = ReadCache::new(File::open(program).ok()?);
    of(&file)
}

fn of<'data>(file: impl ReadRef<'data>) -> Option<Release> {
    let header = FileHeader64::<Endianness>::parse(file).ok()?;
    let endian = header.endian().ok()?;
    // A program may have no table of sections: the loader reads segments alone.
    let segments = header.program_headers(endian, file).ok()?;
    let entries = segments.iter().find_map(|segment| segment.dynamic(endian, file).ok()?)?;
    let value = |tag| entries.iter().find(|entry| entry.tag(endian) == tag).map(|entry| entry.val(endian));
    let (address, size) = (value(DT_STRTAB)?, value(DT_STRSZ)?);
    let strings =
        segments.iter().find_map(|segment| segment.data_range(endian, file, address, size).ok()?)?;
    let strings = StringTable::new(strings, 0, size);
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
            // No table of sections: e_shoff, e_shnum and e_shstrndx are zero (sstrip).
            let mut stripped = std::fs::read(path("program")).unwrap();
            stripped[0x28..0x30].fill(0);
            stripped[0x3c..0x40].fill(0);
            std::fs::write(path("stripped"), stripped).unwrap();
            assert_eq!(super::release(&path("stripped")), Some(release));
        }
        gcc(&["-o", "program", "empty.c"]);
        assert_eq!(super::release(&path("program")), None);
        gcc(&["-static", "-o", "program", "empty.c"]);
        assert_eq!(super::release(&path("program")), None);
        assert_eq!(super::release(&path("empty.c")), None);
        assert_eq!(super::release(&path("none")), None);
    }
}
