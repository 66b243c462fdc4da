//! Whether the running kernel was built with an option, by its configuration where a distribution keeps one.

use std::io::Read as _;

use flate2::read::GzDecoder;
use root::Root;

/// The option that gives amdgpu a KFD (drivers/gpu/drm/amd/amdkfd/Kconfig).
pub const HSA_AMD: &str = "CONFIG_HSA_AMD";

/// The longest kernel configuration that is read, in bytes. Debian's has 300 kB.
const LIMIT: usize = 4 << 20;

/// An answer, and the file that gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    pub with: bool,
    pub by: String,
}

/// `None` where no configuration of this kernel is to be found. A module counts as built.
pub fn built(root: &Root, release: Option<&str>, option: &str) -> Option<Built> {
    // The kernel's own (CONFIG_IKCONFIG_PROC) comes first.
    let own = ["/proc/config.gz".to_owned()].into_iter();
    let of_release = release
        .filter(|release| !release.contains('/'))
        .into_iter()
        .flat_map(|release| [format!("/boot/config-{release}"), format!("/lib/modules/{release}/config")]);
    own.chain(of_release).find_map(|path| {
        let bytes = root.read(&path, LIMIT).ok()?;
        let text = if path.ends_with(".gz") { unpacked(&bytes)? } else { bytes };
        let with = says(&String::from_utf8_lossy(&text), option)?;
        Some(Built { with, by: path })
    })
}

fn unpacked(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    GzDecoder::new(bytes).take(LIMIT as u64).read_to_end(&mut text).ok()?;
    Some(text)
}

/// A configuration leaves out an option whose conditions are not met (Documentation/kbuild/kconfig-language.rst).
/// `None`: the text is none.
fn says(text: &str, option: &str) -> Option<bool> {
    let value = text.lines().find_map(|line| line.trim_end().strip_prefix(option)?.strip_prefix('='));
    let is_unset = |line: &str| {
        line.strip_prefix("# ").and_then(|line| line.strip_prefix(option)) == Some(" is not set")
    };
    let is_one = || text.lines().any(|line| line.starts_with("CONFIG_DRM=") || is_unset(line));
    match value {
        Some(value) => Some(matches!(value, "y" | "m")),
        None => is_one().then_some(false),
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the tests lay out files")]
mod tests {
    use std::fs;
    use std::io::Write as _;

    use super::*;

    #[test]
    fn an_option_is_set_unset_or_unknown() {
        for (text, expected) in [
            ("CONFIG_DRM=m\nCONFIG_HSA_AMD=y\nCONFIG_HSA_AMD_SVM=y\n", Some(true)),
            ("CONFIG_DRM=m\n# CONFIG_HSA_AMD is not set\n", Some(false)),
            ("CONFIG_DRM=m\nCONFIG_HSA_AMD_SVM=y\n", Some(false)),
            ("CONFIG_HSA_AMD=n\n", Some(false)),
            ("# CONFIG_HSA_AMD is not set\n", Some(false)),
            ("# cut off\nCONFIG_64BIT=y\n", None),
            ("", None),
        ] {
            assert_eq!(says(text, HSA_AMD), expected, "{text}");
        }
    }

    #[test]
    fn the_kernels_own_configuration_comes_before_the_files_of_its_release() {
        let folder = tempfile::tempdir().unwrap();
        let put = |path: &str, bytes: &[u8]| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        };
        let root = Root::open(folder.path()).unwrap();
        let ask = |release| built(&root, release, HSA_AMD).map(|built| (built.with, built.by));
        let set: &[u8] = b"CONFIG_DRM=m\nCONFIG_HSA_AMD=y\n";
        let unset: &[u8] = b"CONFIG_DRM=m\n# CONFIG_HSA_AMD is not set\n";
        assert_eq!(ask(Some("6.1.0")), None);
        put("lib/modules/6.1.0/config", set);
        assert_eq!(ask(Some("6.1.0")), Some((true, "/lib/modules/6.1.0/config".to_owned())));
        put("boot/config-6.1.0", unset);
        assert_eq!(ask(Some("6.1.0")), Some((false, "/boot/config-6.1.0".to_owned())));
        assert_eq!(ask(Some("6.1.1")), None);
        assert_eq!(ask(None), None);
        put("proc/config.gz", b"no gzip");
        assert_eq!(ask(Some("6.1.0")).unwrap().1, "/boot/config-6.1.0");
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(set).unwrap();
        put("proc/config.gz", &packed.finish().unwrap());
        assert_eq!(ask(Some("6.1.0")), Some((true, "/proc/config.gz".to_owned())));
    }
}
