//! Compares the fixed words of each pattern in knowledge/messages.toml with real modules and sources.
//!
//! The oracles are the strings of amdgpu.ko of Debian's 6.1, 6.12 and sid, and the kernel's source files of
//! three releases.

mod errors;
mod module;
mod source;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use kernel_log::knowledge::{Knowledge, MessagePattern};
use kernel_log::pattern::Pattern;
use support::real;

/// The folder with 6.1.ko, 6.12.ko and sid.ko that `cargo xtask test` makes. The second variable names its
/// folder with a folder for each suite whose kernel source it has.
const MODULES: &str = "ROCWORKER_AMDGPU_MODULES";
const SOURCES: &str = "ROCWORKER_AMDGPU_HEADERS";

/// The least length of a pattern's fixed words.
const FEWEST_BYTES: usize = 16;

/// Whether a text has the words in this order, as far as printf's conversions leave them in it.
pub(crate) fn has_in_order<'w>(text: &[u8], words: impl Iterator<Item = &'w str>) -> bool {
    let mut rest = text;
    for words in words {
        let Some(at) = memchr::memmem::find(rest, words.as_bytes()) else { return false };
        rest = rest.get(at + words.len()..).unwrap_or_default();
    }
    true
}

/// Asks modules and files, and keeps what it has read.
struct Oracle {
    modules: PathBuf,
    sources: PathBuf,
    strings: BTreeMap<String, Vec<Vec<u8>>>,
    files: BTreeMap<String, Vec<Vec<String>>>,
}

impl Oracle {
    fn new(modules: &Path, sources: &Path) -> Self {
        let (modules, sources) = (modules.to_owned(), sources.to_owned());
        Self { modules, sources, strings: BTreeMap::new(), files: BTreeMap::new() }
    }

    /// The error in a pattern's claim about where its words are.
    fn complaint(&mut self, pattern: &MessagePattern) -> Option<String> {
        let words: Vec<&str> = pattern.text.words().collect();
        for kernel in &pattern.kernels {
            let modules = &self.modules;
            let strings = self.strings.entry(kernel.clone()).or_insert_with(|| {
                let path = modules.join(format!("{kernel}.ko"));
                let module = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                let mut strings = module::strings(&module);
                strings.retain(|string| string.len() >= FEWEST_BYTES);
                strings
            });
            if !strings.iter().any(|string| has_in_order(string, words.iter().copied())) {
                return Some(format!("no string of {kernel}'s amdgpu.ko has {words:?} in this order"));
            }
        }
        let file = pattern.file.as_ref()?;
        let sources = &self.sources;
        let releases = self.files.entry(file.clone()).or_insert_with(|| literals_of(sources, file));
        let has = |literals: &Vec<String>| source::says(literals, &words);
        (!releases.iter().any(has)).then(|| format!("no string of {file} has {words:?} in this order"))
    }
}

/// The string literals of a file of the kernel's, for each release that has it.
fn literals_of(sources: &Path, file: &str) -> Vec<Vec<String>> {
    let suites = fs::read_dir(sources).unwrap_or_else(|error| panic!("{}: {error}", sources.display()));
    let texts = suites.filter_map(|suite| fs::read_to_string(suite.unwrap().path().join(file)).ok());
    let literals: Vec<_> = texts.map(|text| source::literals(&text)).collect();
    assert!(!literals.is_empty(), "no release in {} has {file}", sources.display());
    literals
}

#[test]
fn real_each_patterns_words_stand_in_one_string_of_each_named_kernel_or_file() {
    let Some([modules, sources]) = real::require_made([MODULES, SOURCES], &[]) else { return };
    let mut oracle = Oracle::new(&modules, &sources);
    let mut complaints = Vec::new();
    for message in Knowledge::built_in().unwrap().messages() {
        for pattern in &message.patterns {
            complaints
                .extend(oracle.complaint(pattern).map(|complaint| format!("{}: {complaint}", message.id)));
        }
    }
    assert!(complaints.is_empty(), "{complaints:#?}");

    // The oracle refuses words that no kernel says, words in another order, and words of two strings.
    for (text, kernels, file) in [
        ("ring {ring} timeout, and nobody knows why", &["6.1"][..], None),
        ("emitted seq={emitted}, signaled seq={signaled}", &["6.12"], None),
        ("GPU reset({count}) succeeded! Fatal error during GPU init", &["sid"], None),
        ("ring {ring} timeout, signaled seq={signaled}", &["6.1", "6.12", "sid"], Some("kernel/params.c")),
        ("Slot({slot}): Link Sideways", &[], Some("drivers/pci/hotplug/pciehp_ctrl.c")),
        (" Bus Error: severity=Recoverable", &[], Some("drivers/pci/pcie/aer.c")),
        ("radeon: unknown parameter '{parameter}' ignored", &[], Some("kernel/module/main.c")),
    ] {
        let pattern = MessagePattern {
            text: Pattern::try_from(text.to_owned()).unwrap(),
            values: BTreeMap::new(),
            kernels: kernels.iter().map(|&kernel| kernel.to_owned()).collect(),
            file: file.map(str::to_owned),
            only_logged: false,
            sample: String::new(),
            sample_from: String::new(),
            not: String::new(),
        };
        assert!(oracle.complaint(&pattern).is_some(), "{text}");
    }
}

#[test]
fn words_are_there_only_in_their_order_and_each_behind_the_last() {
    for (text, words, expected) in [
        ("ring %s timeout, signaled seq=%u", &["ring ", " timeout, signaled seq="][..], true),
        ("ring %s timeout, signaled seq=%u", &[" timeout, signaled seq=", "ring "], false),
        ("timeout", &["time", "meout"], false),
        ("", &["a"], false),
        ("", &[], true),
    ] {
        assert_eq!(has_in_order(text.as_bytes(), words.iter().copied()), expected, "{text} {words:?}");
    }
}
