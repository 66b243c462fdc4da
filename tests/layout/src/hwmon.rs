//! The links by which hwmon's class leads to its devices and these to their cards (drivers/hwmon/hwmon.c). A capture of a
//! card has the folder with its files; the links lead out of what was captured.

use crate::tree::relative;
use crate::{Entry, Error, Tree};

/// Adds `/sys/class/hwmon/hwmonN` and its `device` for each folder `…/hwmon/hwmonN` of a device.
pub(crate) fn lay_out(tree: &mut Tree) -> Result<(), Error> {
    let devices: Vec<String> = tree.iter().filter_map(|(path, _)| device(path)).collect();
    for folder in devices {
        let (Some((_, name)), Some(card)) = (folder.rsplit_once('/'), folder.rsplitn(3, '/').nth(2)) else {
            continue;
        };
        let class = format!("/sys/class/hwmon/{name}");
        tree.claim(&class, Entry::Link(relative(&class, &folder)))?;
        let link = format!("{folder}/device");
        tree.put(&link, Entry::Link(relative(&link, card)));
    }
    Ok(())
}

/// The folder of `sys/devices/…/hwmon/hwmonN/name`, the file that each has.
fn device(path: &str) -> Option<String> {
    let folder = path.strip_suffix("/name").filter(|folder| folder.starts_with("sys/devices/"))?;
    let mut parts = folder.rsplit('/');
    let number = parts.next()?.strip_prefix("hwmon")?;
    let is_device = parts.next() == Some("hwmon") && number.bytes().all(|byte| byte.is_ascii_digit());
    is_device.then(|| format!("/{folder}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hwmon_device_is_in_its_class_and_leads_to_its_card() {
        let mut tree = Tree::new();
        tree.put("/sys/devices/p/0000:64:00.0/hwmon/hwmon6/name", "amdgpu\n");
        tree.put("/sys/devices/p/0000:64:00.0/hwmon/name", "none\n");
        lay_out(&mut tree).unwrap();
        for (link, target) in [
            ("sys/class/hwmon/hwmon6", "../../devices/p/0000:64:00.0/hwmon/hwmon6"),
            ("sys/devices/p/0000:64:00.0/hwmon/hwmon6/device", "../.."),
        ] {
            assert_eq!(tree.get(link), Some(&Entry::Link(target.to_owned())), "{link}");
        }
        assert_eq!(tree.iter().count(), 4);
    }
}
