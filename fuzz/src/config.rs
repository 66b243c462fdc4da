//! The configuration, /etc/rocworker/config.yaml, which a person writes: read, or refused with its line.

use std::{fmt::Write as _, path::Path};

use config::{Config, Devices, Error, Managed, NamedBy, Off};
use printable::printable;

/// The text of a configuration.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let path = Path::new("/etc/rocworker/config.yaml");
    let config = match Config::parse(path, text) {
        Ok(config) => config,
        Err(error) => return names_its_line(&error, path, text),
    };
    is_sound(&config);
    let written = render(&config);
    let again = Config::parse(path, &written).unwrap_or_else(|error| panic!("{error} of\n{written}"));
    assert_eq!(
        (again.gpus, again.needs_gpu, &again.devices, &again.tags, &again.cdi),
        (config.gpus, config.needs_gpu, &config.devices, &config.tags, &config.cdi),
        "{text:?} written as\n{written}"
    );
}

fn names_its_line(error: &Error, path: &Path, text: &str) {
    let Error::Wrong { path: named, line, problem, .. } = error else {
        panic!("nothing was to be read: {error}")
    };
    assert_eq!(named, path);
    // YAML 1.1 ends lines at each of these (section 5.4).
    let lines = text.matches(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']).count() + 1;
    assert!((1..=lines).contains(line), "line {line} of {lines} in {text:?}: {problem}");
    assert!(!problem.is_empty());
    // What the program prints is one line.
    let shown = printable(&error.to_string());
    assert!(!shown.chars().any(char::is_control), "{shown:?}");
}

/// What the rest of the program relies on.
fn is_sound(config: &Config) {
    let once = |words: &[String]| words.iter().enumerate().all(|(at, word)| !words[..at].contains(word));
    let plain = |word: &String| !word.is_empty() && word.trim() == word && !word.contains(',');
    if let Devices::Listed(words) = &config.devices {
        assert!(!words.is_empty() && once(words) && words.iter().all(plain), "{words:?}");
        assert!(words.iter().all(|word| word != "all" && word != "discrete"), "{words:?}");
        assert_ne!(config.gpus, Managed::Off(Off::NoGpu));
    }
    assert!(once(&config.tags) && config.tags.iter().all(plain), "{:?}", config.tags);
    let harmless = |word: &String| !word.contains(|c: char| c.is_whitespace() || "\"'\\$`".contains(c));
    assert!(config.tags.iter().all(harmless), "{:?}", config.tags);
    let cdi = config.cdi.path.to_str().expect("YAML is text");
    assert!(cdi.starts_with('/') && cdi.trim_end_matches(['/', '.']).ends_with(".json"), "{cdi:?}");
    assert!(cdi.split('/').all(|part| part != ".."), "{cdi:?}");
    assert!(!config.cdi.names.is_empty());
}

/// The configuration in YAML, every word in quotation marks and everything but letters and digits escaped.
fn render(config: &Config) -> String {
    let runtime = match config.gpus {
        Managed::On(()) if config.needs_gpu => "rocm",
        Managed::On(()) => "auto",
        Managed::Off(Off::Cuda) => "cuda",
        Managed::Off(_) => "none",
    };
    let mut out = format!("schema_version: 1\ncompute-runtime: {runtime}\n");
    match &config.devices {
        Devices::All => out.push_str("gpu-device-ids: all\n"),
        Devices::Discrete => out.push_str("gpu-device-ids: discrete\n"),
        Devices::Listed(words) => list(&mut out, "gpu-device-ids", words),
    }
    if !config.tags.is_empty() {
        list(&mut out, "tag", &config.tags);
    }
    let path = config.cdi.path.to_str().expect("YAML is text");
    let _ = writeln!(out, "cdi:\n  path: {}\n  names:", quoted(path));
    for name in &config.cdi.names {
        let name = match name {
            NamedBy::Index => "index",
            NamedBy::Uuid => "uuid",
            NamedBy::Pci => "pci",
        };
        let _ = writeln!(out, "  - {name}");
    }
    out
}

fn list(out: &mut String, key: &str, words: &[String]) {
    let _ = writeln!(out, "{key}:");
    for word in words {
        let _ = writeln!(out, "- {}", quoted(word));
    }
}

fn quoted(text: &str) -> String {
    let escaped = text.chars().map(|c| match c {
        c if c.is_ascii_alphanumeric() => c.to_string(),
        c => format!("\\U{:08x}", u32::from(c)),
    });
    format!("\"{}\"", escaped.collect::<String>())
}
