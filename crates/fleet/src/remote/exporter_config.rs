//! Adds the key `exporter` to the configuration for `remote install`.

use std::net::SocketAddr;

use config::{Config, ExistingUnit};

/// The address on which the exporter will listen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listen {
    /// The person named this address: it replaces the configuration's.
    Asked(SocketAddr),
    /// This address applies unless the configuration names one.
    Default(SocketAddr),
}

/// The configuration's text with the key `exporter` at its end, all else byte for byte; `None` where the key has these
/// values already. `replaces`: rocworker's unit takes the place of another's.
///
/// # Errors
/// A sentence where a key `exporter` says something else, or the GPUs are off: rocworker never edits an
/// existing key.
pub fn with_exporter(config: &Config, listen: Listen, replaces: bool) -> Result<Option<String>, String> {
    let path = config.path().display();
    if !config.gpus.is_on() {
        return Err(format!(
            "{path} turns AMD's GPUs off (compute-runtime, or GPU_NODE): change that key, then install again"
        ));
    }
    let says_listen = config.has_key("exporter.listen");
    let exporter = &config.exporter;
    let is_listening = match listen {
        Listen::Asked(address) => exporter.listen == address,
        Listen::Default(address) => says_listen || exporter.listen == address,
    };
    let is_replacing = !replaces || exporter.existing == ExistingUnit::Replace;
    if is_listening && is_replacing && exporter.unit.is_on() {
        return Ok(None);
    }
    let (Listen::Asked(address) | Listen::Default(address)) = listen;
    let mut keys = Vec::new();
    if !is_listening {
        keys.push(format!("listen: \"{address}\""));
    }
    if !is_replacing {
        keys.push("existing: replace".to_owned());
    }
    if !exporter.unit.is_on() {
        keys.push("unit: true".to_owned());
    }
    if config.has_key("exporter") {
        return Err(format!(
            "{path} already has a key exporter with other values: set {} there, then install again",
            keys.join(" and ")
        ));
    }
    let text = config.text();
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    let new = format!("{text}{end}exporter: {{{}}}\n", keys.join(", "));
    // A document in braces, or one that has ended, takes no further line.
    let is_as_wanted = Config::parse(config.path(), &new)
        .is_ok_and(|new| new.exporter.unit.is_on() && (is_listening || new.exporter.listen == address));
    if is_as_wanted {
        Ok(Some(new))
    } else {
        Err(format!(
            "rocworker cannot append to {path}: add `exporter: {{{}}}` yourself, then install again",
            keys.join(", ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const EVERY: &str = "0.0.0.0:9401";

    fn edited(text: &str, listen: Listen, replaces: bool) -> Result<Option<String>, String> {
        let config = Config::parse(Path::new("/etc/rocworker/config.yaml"), text).unwrap();
        with_exporter(&config, listen, replaces)
    }

    fn asked(address: &str) -> Listen {
        Listen::Asked(address.parse().unwrap())
    }

    #[test]
    fn the_key_comes_at_the_end_and_all_else_stays() {
        let every = Listen::Default(EVERY.parse().unwrap());
        for (text, replaces, expected) in [
            ("", false, "exporter: {listen: \"0.0.0.0:9401\"}\n"),
            (
                "# mine\nboot: {unit: false}",
                false,
                "# mine\nboot: {unit: false}\nexporter: {listen: \"0.0.0.0:9401\"}\n",
            ),
            ("", true, "exporter: {listen: \"0.0.0.0:9401\", existing: replace}\n"),
        ] {
            let new = edited(text, every, replaces).unwrap().unwrap();
            assert_eq!(new, expected);
            assert_eq!(edited(&new, every, replaces), Ok(None), "a second time");
        }
        let six = edited("", asked("[::]:9401"), false).unwrap().unwrap();
        assert_eq!(six, "exporter: {listen: \"[::]:9401\"}\n");
        assert_eq!(edited("", asked("127.0.0.1:9401"), false), Ok(None), "the default");
    }

    #[test]
    fn what_a_person_has_written_is_followed_or_refused() {
        let own = "exporter:\n  listen: 10.0.0.5:9500\n";
        assert_eq!(edited(own, Listen::Default(EVERY.parse().unwrap()), false), Ok(None));
        assert_eq!(edited(own, asked("10.0.0.5:9500"), false), Ok(None));
        let error = edited(own, asked(EVERY), true).unwrap_err();
        assert_eq!(
            error,
            "/etc/rocworker/config.yaml already has a key exporter with other values: set listen: \"0.0.0.0:9401\" and \
             existing: replace there, then install again"
        );
        assert!(edited("exporter: {unit: false}\n", asked(EVERY), false).unwrap_err().contains("unit: true"));
        for off in ["compute-runtime: none\n", "GPU_NODE: false\n"] {
            let error = edited(off, asked(EVERY), false).unwrap_err();
            assert!(error.contains("compute-runtime") && error.contains("GPU_NODE"), "{error}");
        }
        assert!(
            edited("{boot: {unit: false}}\n", asked(EVERY), false).unwrap_err().contains("cannot append")
        );
    }
}
