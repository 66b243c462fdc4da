//! The string literals of a C source.

use crate::oracle::has_in_order;

/// Texts that a `%s` can become besides a string of its file: the driver's name, a firmware in its folder,
/// and the names of windows that `pci_resource_name` (drivers/pci/pci.c) gives.
const OF_OTHERS: [&str; 5] = ["amdgpu", "amdgpu/%s", "BAR %s", "VF BAR %s", "bridge window"];

/// Texts that `resource_string` (lib/vsprintf.c) writes for a window, with and without an address.
const WINDOWS: [&str; 3] = ["[mem size %llx]", "[mem %llx]", "[io  size %llx]"];

/// The prefix that dev_printk puts before the driver's messages (drivers/base/core.c).
const PREFIX: &str = "amdgpu %s: ";

/// Whether a literal has the words in their order, after one of its `%s`, or each, is filled.
pub(super) fn says(literals: &[String], words: &[&str]) -> bool {
    let has = |text: &str| {
        let has = |text: &str| has_in_order(text.as_bytes(), words.iter().copied());
        has(text) || (text.contains("%pR") && WINDOWS.iter().any(|window| has(&text.replace("%pR", window))))
    };
    // A filling that shares no words with the pattern cannot make words that the literal does not have itself.
    let is_of_words = |filling: &&str| {
        let filling = filling.split('%').next().unwrap_or_default();
        words.iter().any(|words| words.contains(filling) || filling.contains(words))
    };
    let fillings: Vec<&str> =
        literals.iter().map(String::as_str).chain(OF_OTHERS).filter(is_of_words).collect();
    literals.iter().any(|literal| {
        has(literal)
            || has(&format!("{PREFIX}{literal}"))
            || literal.match_indices("%s").any(|(at, conversion)| {
                let (before, behind) = (&literal[..at], &literal[at + conversion.len()..]);
                fillings.iter().any(|filling| has(&format!("{before}{filling}{behind}")))
            })
            || fillings.iter().any(|filling| has(&literal.replace("%s", filling)))
    })
}

/// Each string literal; adjacent ones are joined as a compiler joins them. Macros are not resolved.
pub(super) fn literals(source: &str) -> Vec<String> {
    let mut literals: Vec<String> = Vec::new();
    let mut rest = source;
    // Whether only blanks and comments stand between the last literal and here.
    let mut joins = false;
    while let Some(first) = rest.chars().next() {
        if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/").map_or("", |(_, behind)| behind);
        } else if let Some(comment) = rest.strip_prefix("//") {
            rest = comment.split_once('\n').map_or("", |(_, behind)| behind);
        } else if let Some(behind) = rest.strip_prefix('"') {
            let (literal, behind) = literal(behind);
            match literals.last_mut() {
                Some(last) if joins => last.push_str(&literal),
                _ => literals.push(literal),
            }
            (joins, rest) = (true, behind);
        } else if let Some(behind) = rest.strip_prefix("'\"'").or_else(|| rest.strip_prefix("'\\\"'")) {
            (joins, rest) = (false, behind);
        } else {
            joins = joins && first.is_whitespace();
            rest = &rest[first.len_utf8()..];
        }
    }
    literals
}

/// A literal up to its second quote, as it is printed, and what follows it.
fn literal(source: &str) -> (String, &str) {
    let mut literal = String::new();
    let mut chars = source.chars();
    while let Some(char) = chars.next() {
        match char {
            '"' => break,
            '\\' => match chars.next() {
                Some('n') => literal.push('\n'),
                Some('t') => literal.push('\t'),
                Some(escaped) => literal.push(escaped),
                None => break,
            },
            '%' if chars.as_str().starts_with('%') => {
                chars.next();
                literal.push('%');
            }
            other => literal.push(other),
        }
    }
    (literal, chars.as_str())
}

#[test]
fn literals_that_follow_one_another_are_one() {
    let source = r#"
        /* "no literal" */ // "nor this"
        pr_err("%s: `%s' is "
               /* why */ "bad at 90%% \"now\"\n", name, '"', "x");
        printk("%s""port_type: %d\n", "y" "z" w "v");
    "#;
    let expected = ["%s: `%s' is bad at 90% \"now\"\n", "x", "%sport_type: %d\n", "yz", "v"];
    assert_eq!(literals(source), expected);
}

#[test]
fn a_conversion_stands_for_a_string_of_the_same_file_or_for_the_driver() {
    let literals = [
        "%s: severity=%s, type=%s\n",
        "Fatal",
        "device %s lost",
        "aer_%s_status, aer_%s_mask",
        "cor",
        "%s %pR: can't assign; no space",
    ];
    let literals = literals.map(str::to_owned);
    for (words, expected) in [
        (&["severity=", ", type="][..], true),
        (&["severity=Fatal, type="], true),
        (&["amdgpu: severity="], true),
        (&["amdgpu: severity=Fatal"], false),
        (&["amdgpu ", "device ", " lost"], true),
        (&["aer_cor_status, aer_cor_mask"], true),
        (&["aer_cor_status, aer_Fatal_mask"], false),
        (&["severity=Corrected"], false),
        (&["device lost"], false),
        (&["VF BAR ", " [mem size ", "]: can't assign; no space"], true),
        (&["bridge window [io  size ", "]: can't assign"], true),
        (&["bridge window [irq "], false),
    ] {
        assert_eq!(says(&literals, words), expected, "{words:?}");
    }
}
