//! `cargo xtask pci-ids FILE`: crates/inventory/src/names/pci.ids, the names of chips, from the PCI id database as
//! distributions ship it (/usr/share/misc/pci.ids). As text in the program it costs nothing until a name is looked up;
//! as a table of Rust's strings each start would have to relocate it.

use anyhow::{Context, Result, ensure};

use crate::refusal::Refusal;
use crate::repository;

/// Vendors of GPUs, accelerators, or the displays of servers and virtual machines.
const VENDORS: [&str; 16] = [
    "1002", "1022", "102b", "10de", "1234", "1414", "15ad", "1a03", "1ae0", "1af4", "1b36", "1d0f", "1da3",
    "1ed5", "8086", "80ee",
];

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let [file] = arguments else {
        return Err(Refusal::new("`cargo xtask pci-ids` takes one FILE: /usr/share/misc/pci.ids"));
    };
    let text = std::fs::read_to_string(file).map_err(|error| Refusal::new(format!("{file}: {error}")))?;
    let cut = cut(&text).with_context(|| file.clone())?;
    let path = repository::top().join("crates/inventory/src/names/pci.ids");
    std::fs::write(&path, cut).with_context(|| format!("writing {}", path.display()))?;
    println!("{} is written", path.display());
    Ok(())
}

/// The head, which names version and licence, and a line `VVVVDDDD NAME` for each device of [`VENDORS`], sorted.
fn cut(text: &str) -> Result<String> {
    let head = text.lines().take_while(|line| line.starts_with('#'));
    let head: Vec<&str> = head.collect();
    ensure!(
        head.iter().any(|line| line.contains("Version:")),
        "names no version: is this the PCI id database?"
    );
    let mut vendor = "";
    let mut devices = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix('\t'), line.split_once("  ")) {
            (Some(device), _) if !device.starts_with('\t') && VENDORS.contains(&vendor) => {
                let (id, name) = device.split_once("  ").with_context(|| format!("{line:?} is no device"))?;
                devices.push(format!("{vendor}{id} {name}"));
            }
            (None, Some((id, _))) => vendor = id,
            _ => {}
        }
    }
    ensure!(!devices.is_empty(), "holds no device of a vendor of GPUs");
    devices.sort();
    Ok([head.join("\n"), "# Cut by `cargo xtask pci-ids`.".to_owned(), devices.join("\n"), String::new()]
        .join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_of_vendors_of_gpus_are_kept_without_boards() {
        let text = "#\n#\tVersion: 2026.10.24\n\n1000  Other\n\t0001  Disk\n1002  AMD\n# a remark\n\t15bf  Phoenix\n\
                    \t\t1043 1  Board\n\t1586  Strix Halo\nC 03  Display controller\n\t00  VGA\n";
        let expected = "#\n#\tVersion: 2026.10.24\n# Cut by `cargo xtask pci-ids`.\n10021586 Strix Halo\n100215bf Phoenix\n";
        assert_eq!(cut(text).unwrap(), expected);
        assert!(cut("1002  AMD\n\t15bf  Phoenix\n").is_err(), "no version");
        assert!(cut("# Version: 1\n1000  Other\n\t0001  Disk\n").is_err(), "no vendor of GPUs");
    }
}
