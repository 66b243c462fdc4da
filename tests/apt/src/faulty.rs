//! Packages that give trouble, a function for each kind.

use crate::package::{Package, Script};

/// Depends on what no repository has.
pub fn needs_what_is_missing(name: &str) -> Package {
    Package::new(name, "1.0").depends("rocworker-lab-nowhere")
}

/// Cannot stand beside another: apt removes that one for it.
pub fn displaces(name: &str, other: &str) -> Package {
    Package::new(name, "1.0").conflicts(other).field("Replaces", other)
}

/// Needs at least this version of another: apt upgrades that one for it.
pub fn needs_newer(name: &str, other: &str, version: &str) -> Package {
    Package::new(name, "1.0").depends(&format!("{other} (>= {version})"))
}

/// Fails to be configured, with these words on stderr.
pub fn fails(name: &str, words: &str) -> Package {
    Package::new(name, "1.0").script(Script::Postinst, &format!("#!/bin/sh\necho '{words}' >&2\nexit 1\n"))
}

/// A package that fails as [`fails`] does, at its first installation only.
pub fn fails_once(name: &str, words: &str) -> Package {
    let mark = format!("/var/lib/{name}.tried");
    Package::new(name, "1.0")
        .script(
            Script::Postinst,
            &format!("#!/bin/sh\n[ -e {mark} ] && exit 0\ntouch {mark}\necho '{words}' >&2\nexit 1\n"),
        )
        .script(Script::Postrm, &format!("#!/bin/sh\nrm -f {mark}\n"))
}

/// Can be installed, and fails to be removed.
pub fn stays(name: &str, words: &str) -> Package {
    Package::new(name, "1.0").script(Script::Prerm, &format!("#!/bin/sh\necho '{words}' >&2\nexit 1\n"))
}

/// Asks by debconf at the highest priority, and keeps the answer in `/var/lib/NAME.answer`. The default is `blue`.
pub fn asks(name: &str) -> Package {
    let confmodule = "#!/bin/sh\nset -e\n. /usr/share/debconf/confmodule\n";
    Package::new(name, "1.0")
        .depends("debconf")
        .templates(&format!(
            "Template: {name}/colour\nType: string\nDefault: blue\nDescription: Which colour?\n It is asked for by a \
             test of rocworker.\n"
        ))
        .script(Script::Config, &format!("{confmodule}db_input critical {name}/colour || true\ndb_go || true\n"))
        .script(
            Script::Postinst,
            &format!("{confmodule}db_get {name}/colour\necho \"$RET\" >/var/lib/{name}.answer\n"),
        )
        .script(
            Script::Postrm,
            &format!(
                "#!/bin/sh\nset -e\n[ \"$1\" = purge ] || exit 0\nrm -f /var/lib/{name}.answer\n\
                 . /usr/share/debconf/confmodule\ndb_purge\n"
            ),
        )
}
