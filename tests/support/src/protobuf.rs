//! Compares a hand-written .proto file with the published one of which it has a part.

use std::collections::{BTreeMap, BTreeSet};

/// What the file has and the published one does not: its package, and by their lines each field, value and call.
/// Messages, enums and services that are inside others are compared by their whole path. Options count nowhere.
///
/// # Panics
/// Where a file's braces do not match.
pub fn unpublished(own: &str, published: &str) -> Vec<String> {
    let published = definitions(published);
    let missing = definitions(own).into_iter().flat_map(|(block, members)| match published.get(&block) {
        Some(there) => members.difference(there).map(|member| format!("{block}: {member}")).collect(),
        None => vec![block],
    });
    missing.collect()
}

/// The members of each block. A block's name is its path (`message Outer / enum Inner`), and empty for the file.
fn definitions(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let text = without_comments(text);
    let mut all = BTreeMap::from([(String::new(), BTreeSet::new())]);
    let mut open: Vec<String> = Vec::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find([';', '{', '}']) {
        let statement = plain(&rest[..at]);
        let mut put = |path: &[String], member: String| {
            let is_option = member.starts_with("option ") || member.starts_with("import ");
            if !member.is_empty() && !is_option {
                all.entry(path.join(" / ")).or_default().insert(member);
            }
        };
        match &rest[at..=at] {
            "{" if statement.starts_with("rpc ") => {
                put(&open, statement.clone());
                open.push(statement);
            }
            "{" => {
                open.push(statement);
                all.entry(open.join(" / ")).or_default();
            }
            "}" => drop(open.pop().expect("a brace too many")),
            _ => put(&open, statement),
        }
        rest = &rest[at + 1..];
    }
    assert!(open.is_empty(), "no brace closes {open:?}");
    all
}

/// A statement with single spaces, without the options in its brackets.
fn plain(statement: &str) -> String {
    let named = statement.split('[').next().unwrap_or_default();
    named.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn without_comments(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("/*").into_iter().chain(rest.find("//")).min() {
        kept.push_str(&rest[..at]);
        let comment = &rest[at..];
        let end = if comment.starts_with("//") { "\n" } else { "*/" };
        rest = comment.split_once(end).map_or("", |(_, after)| after);
        kept.push('\n');
    }
    kept + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLISHED: &str = r#"
        /* A licence. // message No { } */
        syntax = "proto3";
        package v1;
        option (gogoproto.sizer_all) = true;
        service Lister { // of /* pods
            rpc List(Request) returns (Answer) {}
            rpc Get(Request) returns (stream Answer) {
                option (deprecated) = true;
            }
        }
        message Request {}
        message Answer {
            string name  = 1 ;
            repeated int64 ids = 2 [deprecated = true];
            map<string, string> labels = 3;
            Kind kind = 4;
            enum Kind {
                NONE   = 0;
                SOME = 1;
            }
        }
    "#;

    /// What is not published of a file that has these words in the place of others.
    #[track_caller]
    fn changed(words: &str, others: &str) -> Vec<String> {
        assert_eq!(PUBLISHED.matches(words).count(), 1, "{words}");
        unpublished(&PUBLISHED.replace(words, others), PUBLISHED)
    }

    #[test]
    fn a_part_of_a_file_in_other_lines_is_published() {
        assert_eq!(unpublished(PUBLISHED, PUBLISHED), [""; 0]);
        let part = "syntax = \"proto3\"; package v1; service Lister { rpc List(Request) returns (Answer); }
            message Answer { enum Kind { NONE = 0; } repeated int64 ids = 2; // the last one\n}";
        assert_eq!(unpublished(part, PUBLISHED), [""; 0]);
    }

    #[test]
    fn each_other_number_type_and_name_is_reported_with_where_it_is() {
        for (words, others, reported) in [
            ("package v1", "package v2", ": package v2"),
            ("\"proto3\"", "\"proto2\"", ": syntax = \"proto2\""),
            ("name  = 1", "name = 5", "message Answer: string name = 5"),
            ("string name", "bytes name", "message Answer: bytes name = 1"),
            ("repeated int64", "int64", "message Answer: int64 ids = 2"),
            ("map<string, string>", "map<string, bytes>", "message Answer: map<string, bytes> labels = 3"),
            ("SOME = 1", "SOME = 2", "message Answer / enum Kind: SOME = 2"),
            ("List(Request)", "Lists(Request)", "service Lister: rpc Lists(Request) returns (Answer)"),
            ("stream Answer", "Answer", "service Lister: rpc Get(Request) returns (Answer)"),
            ("message Request", "message Question", "message Question"),
            ("enum Kind", "enum Sort", "message Answer / enum Sort"),
            ("service Lister", "service Listing", "service Listing"),
        ] {
            assert_eq!(changed(words, others), [reported], "{others}");
        }
    }
}
