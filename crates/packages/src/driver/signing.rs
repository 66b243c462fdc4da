//! Whether the kernel takes unsigned modules, and whether it would take the one that dkms signs.

use root::{Error, Root, if_there};

/// `EFI_GLOBAL_VARIABLE` of the UEFI specification. Four bytes of attributes precede the value, one byte.
const SECURE_BOOT: &str = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c";
/// `Y` or `N`; not there where the kernel checks no signatures at all.
const ENFORCED: &str = "/sys/module/module/parameters/sig_enforce";
/// `none [integrity] confidentiality`, the one that holds in brackets (kernel_lockdown(7)).
const LOCKDOWN: &str = "/sys/kernel/security/lockdown";
/// Certificates that the machine's owner has enrolled, as shim passes them on: whole, and where the kernel has no such
/// folder yet (before 5.9), as a variable with its four bytes.
const ENROLLED: [&str; 2] = [
    "/sys/firmware/efi/mok-variables/MokListRT",
    "/sys/firmware/efi/efivars/MokListRT-605dab50-e046-4300-abb6-3dd810dd8b23",
];

/// dkms' own settings (framework.conf in dkms(8)), the later ones first.
const SETTINGS: [&str; 2] = ["/etc/dkms/framework.conf.d", "/etc/dkms/framework.conf"];
const DKMS_CERTIFICATE: &str = "/var/lib/dkms/mok.pub";
/// What dkms takes on Ubuntu, where shim's own scripts make and enrol it.
const UBUNTU_CERTIFICATE: &str = "/var/lib/shim-signed/mok/MOK.der";

const LIMIT: usize = 1 << 20;

/// What the kernel asks of a module, and what dkms can give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signing {
    /// A module is loaded whether it is signed or not.
    NotNeeded,
    /// Only modules are loaded whose signer the machine trusts.
    Needed {
        /// What says so: "Secure Boot is on".
        because: String,
        /// The certificate that dkms signs with.
        certificate: String,
        enrolled: Enrolled,
    },
    /// Why rocworker does not know how modules are judged.
    Unknown(String),
}

/// Whether the machine trusts a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enrolled {
    Yes,
    No,
    /// No certificate exists yet: dkms makes one when it builds, so that it cannot be enrolled.
    NotMade,
}

impl Signing {
    /// `is_ubuntu`: dkms has another certificate there.
    #[must_use]
    pub fn read(root: &Root, is_ubuntu: bool) -> Self {
        let read = || {
            let Some(because) = needed(root)? else { return Ok(Self::NotNeeded) };
            let certificate = certificate(root, is_ubuntu)?;
            let enrolled = enrolled(root, &certificate)?;
            Ok(Self::Needed { because, certificate, enrolled })
        };
        read().unwrap_or_else(|error: Error| Self::Unknown(error.to_string()))
    }
}

/// What says that a module has to be signed. The kernel's own word counts before the firmware's: with shim's validation
/// turned off (`mokutil --disable-validation`) Secure Boot is on and the kernel takes everything.
fn needed(root: &Root) -> Result<Option<String>, Error> {
    let enforced = if_there(root.read_text(ENFORCED, 16))?;
    if enforced.as_deref().map(str::trim) == Some("Y") {
        return Ok(Some("the kernel loads signed modules only (module.sig_enforce)".to_owned()));
    }
    let lockdown = if_there(root.read_text(LOCKDOWN, 256))?;
    let mode = lockdown.as_deref().and_then(|text| text.split_once('[')?.1.split(']').next());
    match mode {
        Some("none") => return Ok(None),
        Some(mode) => return Ok(Some(format!("the kernel is locked down ({mode}), as Secure Boot has it"))),
        None => {}
    }
    // Not there: no UEFI firmware, or one without Secure Boot.
    let value = if_there(root.read(SECURE_BOOT, 16))?;
    let is_on = value.is_some_and(|value| value.len() == 5 && value.last() == Some(&1));
    Ok(is_on.then(|| "Secure Boot is on".to_owned()))
}

/// The certificate with which dkms signs: by its settings, where they name a key too; else by distribution.
fn certificate(root: &Root, is_ubuntu: bool) -> Result<String, Error> {
    let [folder, file] = SETTINGS;
    let names = if_there(root.list(folder))?.unwrap_or_default();
    let mut places: Vec<String> =
        names.iter().rev().map(|name| format!("{folder}/{}", name.to_string_lossy())).collect();
    places.retain(|place| place.ends_with(".conf"));
    places.push(file.to_owned());
    let mut texts = Vec::new();
    for place in places {
        texts.extend(if_there(root.read_text(&place, LIMIT))?);
    }
    let setting = |name: &str| texts.iter().find_map(|text| setting(text, name));
    Ok(match (setting("mok_signing_key"), setting("mok_certificate")) {
        (None, _) if is_ubuntu => UBUNTU_CERTIFICATE.to_owned(),
        (_, None) => DKMS_CERTIFICATE.to_owned(),
        (_, Some(certificate)) => certificate,
    })
}

/// The last assignment of a shell's variable; dkms reads its settings as a shell does.
fn setting(text: &str, name: &str) -> Option<String> {
    let value = |line: &str| line.trim().strip_prefix(name)?.strip_prefix('=').map(str::to_owned);
    let value = text.lines().filter_map(value).next_back()?;
    Some(value.trim().trim_matches(['"', '\'']).to_owned()).filter(|value| !value.is_empty())
}

/// Whether the list of enrolled certificates holds this one, whole, as it is in its file (DER).
fn enrolled(root: &Root, certificate: &str) -> Result<Enrolled, Error> {
    let Some(certificate) = if_there(root.read(certificate, LIMIT))? else { return Ok(Enrolled::NotMade) };
    // Shorter than any certificate: an empty one would be found everywhere.
    if certificate.len() < 64 {
        return Ok(Enrolled::NotMade);
    }
    for list in ENROLLED {
        if let Some(list) = if_there(root.read(list, LIMIT))? {
            let found = list.windows(certificate.len()).any(|part| part == certificate);
            return Ok(if found { Enrolled::Yes } else { Enrolled::No });
        }
    }
    Ok(Enrolled::No)
}
