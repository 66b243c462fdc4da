//! What AMD's libraries export: the version script and the stubs from which a library of a release is linked.
//!
//! Sources of symbols.txt: release 5, Debian's 5.2.3 and 5.7.1 together; 6, Debian's 6.4.3; 7, AMD's hip_hcc.map.in of
//! August 2026, without hiprtc, which has a library of its own there. Types of replies: Debian's headers of 6.4.3.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::release::Release;

const TEXT: &str = include_str!("symbols.txt");

/// Code of the program's compiler asks for these two: calculations, and no calls of a GPU.
pub const CALCULATIONS: [&str; 2] = ["__gnu_f2h_ieee", "__gnu_h2f_ieee"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol {
    pub name: &'static str,
    /// Such as `hip_4.2`: equal in each release that has the symbol.
    pub version: &'static str,
    pub returns: Returns,
    /// The numbers of the releases, one digit each.
    releases: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returns {
    /// `hipError_t`.
    Error,
    /// `hiprtcResult`.
    Compilation,
    Nothing,
    Pointer,
    /// `int`, `bool` or `size_t`.
    Number,
    /// `hipChannelFormatDesc`.
    Channel,
    /// A float, from the bits of a half.
    Float,
    /// The bits of a half, from a float.
    Half,
}

impl Returns {
    fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "error" => Self::Error,
            "hiprtc" => Self::Compilation,
            "void" => Self::Nothing,
            "pointer" => Self::Pointer,
            "number" => Self::Number,
            "channel" => Self::Channel,
            "float" => Self::Float,
            "half" => Self::Half,
            _ => return None,
        })
    }
}

/// The symbols of a release.
pub fn of(release: Release) -> impl Iterator<Item = Symbol> {
    all().filter(move |symbol| symbol.releases.contains(&release.number().to_string()))
}

fn all() -> impl Iterator<Item = Symbol> {
    TEXT.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let (name, version) = (words.next()?, words.next()?);
        Some(Symbol { name, version, returns: Returns::parse(words.next()?)?, releases: words.next()? })
    })
}

/// The linker's version script: each version builds on the one before it, and nothing else is exported.
pub fn version_script(release: Release) -> String {
    let mut versions: BTreeMap<Vec<u32>, (&str, Vec<&str>)> = BTreeMap::new();
    for symbol in of(release) {
        let numbers = symbol.version.split(['_', '.']).filter_map(|part| part.parse().ok()).collect();
        versions.entry(numbers).or_insert((symbol.version, Vec::new())).1.push(symbol.name);
    }
    let mut script = String::new();
    let mut before = "";
    for (version, names) in versions.into_values() {
        let local = if before.is_empty() { " local: *;" } else { "" };
        let names = names.join("; ");
        let _ = writeln!(script, "{version} {{ global: {names};{local} }}{before};");
        before = version;
    }
    script
}

/// C of all that the client does not define: each stub says its name to `rocworker_hip_unsupported` and does nothing.
pub fn stubs(release: Release, defined: &BTreeSet<&str>) -> String {
    let mut code = String::from(
        "#include <stddef.h>\n#include <string.h>\nvoid rocworker_hip_unsupported(const char *name);\n\
         struct channel { int fields[5]; };\n",
    );
    for Symbol { name, returns, .. } in of(release).filter(|symbol| !defined.contains(symbol.name)) {
        let (declared, result) = match returns {
            // hipErrorNotSupported.
            Returns::Error => ("int", "return 801;"),
            // HIPRTC_ERROR_INTERNAL_ERROR: hiprtc knows no better one.
            Returns::Compilation => ("int", "return 11;"),
            Returns::Nothing => ("void", ""),
            // Each that the client does not define is a text, which programs print.
            Returns::Pointer => ("const char *", "return \"not supported by a remote GPU\";"),
            Returns::Number => ("size_t", "return 0;"),
            Returns::Channel => ("struct channel", "return (struct channel){0};"),
            Returns::Float => {
                let _ = writeln!(
                    code,
                    "float {name}(unsigned short bits) {{ _Float16 half; memcpy(&half, &bits, sizeof half); return half; }}"
                );
                continue;
            }
            Returns::Half => {
                let _ = writeln!(
                    code,
                    "unsigned short {name}(float value) {{ _Float16 half = value; unsigned short bits; memcpy(&bits, &half, sizeof bits); return bits; }}"
                );
                continue;
            }
        };
        let _ =
            writeln!(code, "{declared} {name}(void) {{ rocworker_hip_unsupported(\"{name}\"); {result} }}");
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_of_the_list_is_a_symbol_and_the_list_is_sorted() {
        assert_eq!(all().count(), TEXT.lines().count());
        assert!(all().zip(all().skip(1)).all(|(one, next)| one.name < next.name));
    }

    #[test]
    fn a_version_builds_on_the_one_before_it() {
        let script = version_script(Release::Rocm5);
        let versions: Vec<_> = script.lines().map(|line| (line.split_once(' ').unwrap().0, line)).collect();
        let names: Vec<_> = versions.iter().map(|(version, _)| *version).collect();
        assert_eq!(
            names.join(" "),
            "hip_4.2 hip_4.3 hip_4.4 hip_4.5 hip_5.0 hip_5.1 hip_5.2 hip_5.3 hip_5.5 hip_5.6"
        );
        assert!(versions[0].1.ends_with("local: *; };"), "{script}");
        assert!(versions[9].1.ends_with("}hip_5.5;"), "{script}");
        assert!(version_script(Release::Rocm7).ends_with("}hip_7.1;\n"));
    }

    #[test]
    fn a_stub_that_gives_a_text_gives_one_that_can_be_printed() {
        let code = stubs(Release::Rocm5, &BTreeSet::new());
        for name in ["hipApiName", "hiprtcGetErrorString"] {
            let said =
                format!("const char * {name}(void) {{ rocworker_hip_unsupported(\"{name}\"); return \"");
            assert!(code.contains(&said), "{name}");
        }
    }

    #[test]
    fn what_the_client_defines_has_no_stub() {
        let code = stubs(Release::Rocm6, &BTreeSet::from(["hipMalloc"]));
        assert!(!code.contains(" hipMalloc("));
        assert!(code.contains("int hipGetDevicePropertiesR0600(void) {"));
        assert!(!stubs(Release::Rocm5, &BTreeSet::new()).contains("hipGetDevicePropertiesR0600"));
    }
}
