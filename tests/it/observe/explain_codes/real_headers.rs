//! The tables of codes beside the headers of Debian's packages: a C compiler says which names have which numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use explain::codes::statuses::Library;
use support::real;

/// By which `cargo xtask test` tells where the headers are.
const HEADERS: &str = "ROCWORKER_ROCM_HEADERS";

fn includes(library: Library) -> &'static str {
    match library {
        Library::Hip => "#include <hip/hip_runtime_api.h>\n",
        Library::Hsa => {
            "#include <hsa/hsa.h>\n#include <hsa/hsa_ext_amd.h>\n#include <hsa/hsa_ext_finalize.h>\n\
             #include <hsa/hsa_ext_image.h>\n"
        }
        Library::AmdSmi => "#include <amd_smi/amdsmi.h>\n",
    }
}

fn is_code(word: &str) -> bool {
    // Not the type hipError_t.
    let is_of_hip = word.strip_prefix("hipError").is_some_and(|rest| rest.starts_with(char::is_uppercase));
    word == "hipSuccess"
        || is_of_hip
        || ["HSA_STATUS_", "HSA_EXT_STATUS_", "AMDSMI_STATUS_"].iter().any(|it| word.starts_with(it))
}

/// Every code that a compiler sees in the headers, with its number.
fn in_headers(library: Library, headers: &Path) -> BTreeMap<String, u32> {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("codes.c"), folder.path().join("codes"));
    let compile = |text: &str, arguments: &[&str]| {
        fs::write(&source, text).unwrap();
        let mut cc = Command::new(real::program("cc").unwrap());
        cc.arg("-D__HIP_PLATFORM_AMD__").arg("-isystem").arg(headers).args(arguments).arg(&source);
        let output = cc.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let preprocessed = compile(includes(library), &["-E", "-P"]);
    let words = preprocessed.split(|c: char| !c.is_alphanumeric() && c != '_');
    let names: BTreeSet<&str> = words.filter(|word| is_code(word)).collect();
    let lines: String =
        names.iter().map(|name| format!("printf(\"%s %u\\n\", \"{name}\", (unsigned){name});\n")).collect();
    let text = format!("#include <stdio.h>\n{}int main(void) {{\n{lines}}}\n", includes(library));
    compile(&text, &["-o", program.to_str().unwrap()]);
    let said = String::from_utf8(Command::new(&program).output().unwrap().stdout).unwrap();
    let pairs = said.lines().map(|line| line.split_once(' ').unwrap());
    pairs.map(|(name, number)| (name.to_owned(), number.parse().unwrap())).collect()
}

#[test]
fn real_each_code_of_the_headers_is_in_the_tables_and_no_other() {
    let Some([headers]) = real::require_made([HEADERS], &["cc"]) else { return };
    for (library, least) in [(Library::Hip, 80), (Library::Hsa, 50), (Library::AmdSmi, 45)] {
        let expected = in_headers(library, &headers);
        assert!(expected.len() >= least, "{library:?}: {expected:?}");
        let table = library.table().unwrap();
        let names =
            table.codes.iter().flat_map(|code| code.names().map(|name| (name.to_owned(), code.number)));
        let found: BTreeMap<String, u32> = names.collect();
        assert_eq!(found, expected, "{library:?}");
    }
}
