//! Packages under the names of AMD's, made here: none of AMD's repositories is reached by a test.
//!
//! They have what rocworker looks at (names, versions, paths, what their scripts call) and none of AMD's software. A
//! test that needs more of one adds it ([`Package`]).

use crate::machine::Machine;
use crate::package::{Package, Script};

/// AMD's repositories name themselves so, and are pinned by it.
pub const ORIGIN: &str = "repo.radeon.com";
/// The folder in which ROCm's packages and tarballs are found, whatever their version.
pub const ROCM: &str = "/opt/rocm";

/// `amd-ctk cdi generate --output=FILE` and `amd-ctk cdi list`, of one spec whatever the machine.
const AMD_CTK: &str = r#"#!/bin/sh
spec=/usr/share/amd-container-toolkit/spec.json
case "$1 $2 $3" in
    "cdi generate --output="*) exec cp "$spec" "${3#--output=}" ;;
    "cdi list ") exec cat "$spec" ;;
esac
echo "amd-ctk: the stand-in of a test knows no such command: $*" >&2
exit 1
"#;

const AMDGPU_INSTALL: &str = r#"#!/bin/sh
set -e
packages=
yes=
for argument; do
    case $argument in
        --usecase=*) usecases=${argument#--usecase=} ;;
        -y | --yes) yes=--yes ;;
        *) echo "amdgpu-install: the stand-in of a test knows no such option: $argument" >&2; exit 1 ;;
    esac
done
for usecase in $(echo "$usecases" | tr , ' '); do
    case $usecase in
        rocm) packages="$packages rocm" ;;
        dkms) packages="$packages amdgpu-dkms" ;;
        graphics) packages="$packages amdgpu-graphics" ;;
        *) echo "amdgpu-install: the stand-in of a test knows no such usecase: $usecase" >&2; exit 1 ;;
    esac
done
apt-get update
exec apt-get install $yes $packages
"#;

/// The module that is built: it has the name and nothing of the driver.
const MODULE: &str = r#"#include <linux/module.h>
#include <linux/init.h>

static int __init stand_in_init(void)
{
	pr_info("amdgpu: the stand-in of a test\n");
	return 0;
}

static void __exit stand_in_exit(void)
{
}

module_init(stand_in_init);
module_exit(stand_in_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("made by a test of rocworker");
"#;

/// AMD's container toolkit, which generates this spec.
pub fn container_toolkit(version: &str, spec: &str) -> Package {
    Package::new("amd-container-toolkit", version)
        .program("/usr/bin/amd-ctk", AMD_CTK)
        .program("/usr/bin/amd-container-runtime", "#!/bin/sh\nexec runc \"$@\"\n")
        .file("/usr/share/amd-container-toolkit/spec.json", spec)
}

/// rocm-smi, which prints this text for every command.
pub fn rocm_smi(version: &str, says: &str) -> Package {
    Package::new("rocm-smi-lib", version)
        .file("/usr/share/rocm-smi-lib/says", says)
        .program(&format!("{ROCM}/bin/rocm-smi"), "#!/bin/sh\nexec cat /usr/share/rocm-smi-lib/says\n")
}

/// rocm-smi lists this many GPUs.
pub fn rocm_smi_with(version: &str, gpus: usize) -> Package {
    let cards: Vec<String> = (0..gpus).map(|card| format!("\"card{card}\": {{}}")).collect();
    rocm_smi(version, &format!("{{{}}}\n", cards.join(", ")))
}

/// Takes Debian's rocminfo away where it is: hipcc, which other tests compile with, brings it, and its version is newer
/// than AMD's.
///
/// # Panics
/// Where apt refuses.
pub fn purge_debians_rocminfo(machine: &Machine) {
    if machine.package("rocminfo").is_some() {
        machine.apt_get(&["purge", "rocminfo"]).well();
    }
}

/// AMD's 1.0.0.70203 and Ubuntu's 5.7.1, which sorts after it, have this one name.
pub fn rocminfo(version: &str) -> Package {
    Package::new("rocminfo", version)
        .program(&format!("{ROCM}/bin/rocminfo"), &format!("#!/bin/sh\necho rocminfo {version}\n"))
}

/// The package that stands for all of ROCm, and depends on the others here.
pub fn rocm(version: &str) -> Package {
    Package::new("rocm", version)
        .depends("rocminfo, rocm-smi-lib")
        .file(&format!("{ROCM}/.info/version"), format!("{version}\n"))
}

/// AMD's installer with the source and the key that it brings along.
pub fn amdgpu_install(version: &str, source: &str, keyring: &[u8]) -> Package {
    Package::new("amdgpu-install", version)
        .conffile("/etc/apt/sources.list.d/amdgpu.list", source)
        .file("/usr/share/keyrings/amdgpu-install.gpg", keyring)
        .program("/usr/bin/amdgpu-install", AMDGPU_INSTALL)
}

/// The path at which [`amdgpu_install`] puts its key, for the source to name.
pub const AMDGPU_INSTALL_KEYRING: &str = "/usr/share/keyrings/amdgpu-install.gpg";

/// The version that AMD's package of this version registers with dkms, without the epoch and the release's
/// eight digits: `6.16.13-2341068.24.04` of `1:6.16.13.30300400-2341068.24.04`.
pub fn amdgpu_in_dkms(package: &str) -> String {
    let version = package.split_once(':').map_or(package, |(_, rest)| rest);
    let Some((upstream, revision)) = version.rsplit_once('-') else { return version.to_owned() };
    match upstream.rsplit_once('.') {
        Some((upstream, release)) if release.len() == 8 => format!("{upstream}-{revision}"),
        _ => version.to_owned(),
    }
}

/// A driver that real dkms builds against real kernel headers, as dh-dkms has it done (dh_dkms(1)): for the running
/// kernel and the newest one whose headers are there.
pub fn amdgpu_dkms(package: &str) -> Package {
    let version = &amdgpu_in_dkms(package);
    let source = format!("/usr/src/amdgpu-{version}");
    let configuration = format!(
        "PACKAGE_NAME=\"amdgpu\"\nPACKAGE_VERSION=\"{version}\"\nBUILT_MODULE_NAME[0]=\"amdgpu\"\n\
         DEST_MODULE_LOCATION[0]=\"/updates/dkms\"\nAUTOINSTALL=\"yes\"\n\
         MAKE[0]=\"make -C $kernel_source_dir M=$dkms_tree/$module/$module_version/build modules\"\n\
         CLEAN=\"make -C $kernel_source_dir M=$dkms_tree/$module/$module_version/build clean\"\n"
    );
    let module = format!("{MODULE}MODULE_VERSION(\"{version}\");\n");
    Package::new("amdgpu-dkms", package)
        .depends("dkms")
        .file(&format!("{source}/dkms.conf"), configuration)
        .file(&format!("{source}/Makefile"), "obj-m := amdgpu.o\n")
        .file(&format!("{source}/amdgpu.c"), module)
        .script(
            Script::Postinst,
            &format!(
                "#!/bin/sh\nset -e\n[ \"$1\" = configure ] || exit 0\n\
                 exec /usr/lib/dkms/common.postinst amdgpu {version} /usr/share/amdgpu-dkms \"\" \"$2\"\n"
            ),
        )
        .script(
            Script::Prerm,
            &format!(
                "#!/bin/sh\nset -e\nif dkms status -m amdgpu -v {version} | grep -q .; then\n    \
                 dkms remove -m amdgpu -v {version} --all\nfi\n"
            ),
        )
}
