//! TOML of another program: the managed keys go in and out, and everything else stays byte for byte.

use edit::{Edit, Format, Key, Set};
use serde_json::{Value, json};

const CRI: &str = "io.containerd.grpc.v1.cri";

fn path(path: &[&str]) -> Vec<String> {
    path.iter().map(|name| (*name).to_owned()).collect()
}

fn edit(keys: Vec<(&[&str], Set)>) -> Edit {
    let keys = keys.into_iter().map(|(at, set)| Key { path: path(at), set }).collect();
    Edit::new(Format::Toml, keys)
}

fn value(at: &[&str], value: Value) -> Edit {
    edit(vec![(at, Set::Value(value))])
}

fn member(member: &str) -> Edit {
    edit(vec![(&["imports"], Set::Member(member.into()))])
}

/// rocworker's edit of containerd 1.7's file.
fn containerd() -> Edit {
    let runc = json!({"runtime_type": "io.containerd.runc.v2", "options": {"SystemdCgroup": false}});
    let runtimes = ["plugins", CRI, "containerd", "runtimes"];
    let amd = json!({"runtime_type": "io.containerd.runc.v2", "options": {"BinaryName": "/usr/local/bin/w"}});
    edit(vec![
        (&["version"], Set::Needed(2.into())),
        (&[&runtimes[..], &["runc"]].concat(), Set::Needed(runc)),
        (
            &[&runtimes[..], &["amd"]].concat(),
            Set::Entry {
                value: amd,
                identity: "options/BinaryName".to_owned(),
                instead: vec!["runtime_type".to_owned()],
            },
        ),
        (&["plugins", CRI, "enable_cdi"], Set::Value(true.into())),
    ])
}

/// Applies, holds that a second time changes nothing, and that undoing gives the text back.
#[track_caller]
fn applied(edit: &Edit, text: &str) -> String {
    let ours = edit.apply(text).unwrap_or_else(|fault| panic!("{fault}\n{text}"));
    assert_eq!(edit.apply(&ours).unwrap(), ours, "twice is not once:\n{text}");
    let back = edit.revert(&ours, Some(text)).unwrap();
    assert_eq!((back.text.as_deref(), back.left.len()), (Some(text), 0), "{ours}");
    // Not only where the whole text is known again: key by key, too.
    let changed = format!("{ours}\n# somebody\n");
    let back = edit.revert(&changed, Some(text)).unwrap().text.unwrap();
    assert_eq!(Format::Toml.read(&back).unwrap(), Format::Toml.read(text).unwrap(), "{changed}\n=>\n{back}");
    ours
}

#[test]
fn a_key_goes_where_its_neighbours_are_and_as_they_are_written() {
    let enable = value(&["a", "b", "on"], true.into());
    for (text, expected) in [
        ("", "[a.b]\non = true\n"),
        ("# ours\n", "# ours\n\n[a.b]\non = true\n"),
        ("x = 1", "x = 1\n\n[a.b]\non = true"),
        ("[a.b]\n", "[a.b]\non = true\n"),
        ("[a.b]\ny = 1 # why\n\n[c]\n", "[a.b]\ny = 1 # why\non = true\n\n[c]\n"),
        ("[a.b]\n  y = [\n    1,\n  ]\n", "[a.b]\n  y = [\n    1,\n  ]\n  on = true\n"),
        ("[a.b.c]\ny = 1\n[z]\n", "[a.b.c]\ny = 1\n\n[a.b]\non = true\n[z]\n"),
        ("[a]\n  [a.z]\n    y = 1\n", "[a]\n  [a.z]\n    y = 1\n\n  [a.b]\n    on = true\n"),
        ("[a]\nb.y = 1\n[z]\n", "[a]\nb.y = 1\nb.on = true\n[z]\n"),
        ("a.b.y = 1\na.c = 2\n", "a.b.y = 1\na.b.on = true\na.c = 2\n"),
        ("a = {}\n", "a = { b = { on = true } }\n"),
        ("a = { b = { y = 1 } } # why\n", "a = { b = { y = 1, on = true } } # why\n"),
        ("[a]\nb = { y = 1 }\n", "[a]\nb = { y = 1, on = true }\n"),
        ("a = { b.y = 1, z = 2 }\n", "a = { b.y = 1, z = 2, b.on = true }\n"),
        ("[a.b]\non = false # no\nz = 1\n", "[a.b]\non = true # no\nz = 1\n"),
        ("[\"a\".'b']\non  =  false\n", "[\"a\".'b']\non  =  true\n"),
        ("[a.b]\r\ny = 1\r\n", "[a.b]\r\ny = 1\r\non = true\r\n"),
        ("\u{feff}[a.b]\n", "\u{feff}[a.b]\non = true\n"),
        ("[a.b]\non = true", "[a.b]\non = true"),
    ] {
        assert_eq!(applied(&enable, text), expected, "{text}");
    }
}

#[test]
fn a_setting_that_is_switched_off_stays_in_its_table_when_ours_comes_behind_it() {
    let ours = Set::Entry { value: json!({"on": true}), identity: "on".to_owned(), instead: Vec::new() };
    let section = edit(vec![(&["a", "ours"], ours)]);
    let key = value(&["a", "on"], true.into());
    for (edit, text, expected) in [
        (
            &section,
            "[a]\nx = 1\n# y = 2\n  # z = 3\n\n[b]\n",
            "[a]\nx = 1\n# y = 2\n  # z = 3\n\n[a.ours]\non = true\n\n[b]\n",
        ),
        (&section, "[a]\nx = 1\n# y = 2\n[b]\n", "[a]\nx = 1\n# y = 2\n\n[a.ours]\non = true\n[b]\n"),
        (&section, "[a.c]\n# y = 2\n", "[a.c]\n# y = 2\n\n[a.ours]\non = true\n"),
        (&section, "[a.c]\n# y = 2", "[a.c]\n# y = 2\n\n[a.ours]\non = true"),
        (
            &section,
            "[a]\r\n# y = 2\r\n\r\n# b\r\n[b]\r\n",
            "[a]\r\n# y = 2\r\n\r\n[a.ours]\r\non = true\r\n\r\n# b\r\n[b]\r\n",
        ),
        (&key, "[a]\nx = 1\n# y = 2\n\n[b]\n", "[a]\nx = 1\n# y = 2\non = true\n\n[b]\n"),
        (&key, "[a]\nx = 1\n# y = 2\n", "[a]\nx = 1\n# y = 2\non = true\n"),
        // The comment is of what follows.
        (&key, "[a]\nx = 1\n# the other\n[b]\n", "[a]\nx = 1\non = true\n# the other\n[b]\n"),
    ] {
        let ours = applied(edit, text);
        assert_eq!(ours, expected, "{text}");
        // A comment that somebody turns into a key keeps the meaning that it would have without the edit.
        for off in ["# y", "# z"] {
            let on = |text: &str| text.replace(off, off.trim_start_matches("# "));
            let back = edit.revert(&on(&ours), Some(text)).unwrap();
            assert_eq!(back.text.as_deref(), Some(&*on(text)), "{ours}");
        }
    }
}

#[test]
fn an_empty_line_of_ours_goes_whatever_stands_behind_it_and_theirs_stays() {
    let section = edit(vec![(&["a", "ours"], Set::Needed(json!({"on": true, "inner": {"x": 1}})))]);
    for text in ["[a]\nx = 1\n", "[a]\nx = 1\n\n\n[b]\n", "[a]\nx = 1\n\n# end\n"] {
        let ours = section.apply(text).unwrap();
        // Right behind the managed table, and at the end.
        let last = ours.find("x = 1\n").map_or(0, |_| ours.rfind("[a.ours").unwrap());
        let behind = last + ours[last..].find("1\n").unwrap() + 2;
        let theirs = format!("{}# somebody\n{}", &ours[..behind], &ours[behind..]);
        let back = section.revert(&theirs, Some(text)).unwrap().text.unwrap();
        let expected = text.replacen("x = 1\n", "x = 1\n# somebody\n", 1);
        assert_eq!(back, expected, "{theirs}");
    }
}

#[test]
fn a_key_at_the_top_stays_above_the_tables() {
    let version = value(&["version"], 2.into());
    for (text, expected) in [
        ("", "version = 2\n"),
        ("[a]\n", "version = 2\n\n[a]\n"),
        ("# the file\n\n# the table\n[a]\n", "# the file\nversion = 2\n\n# the table\n[a]\n"),
        ("# the table\n[a]\n", "version = 2\n\n# the table\n[a]\n"),
        ("# one\n# two\n", "# one\n# two\nversion = 2\n"),
        ("root = \"/x\"\n\n[a]\n", "root = \"/x\"\nversion = 2\n\n[a]\n"),
        ("version = 0x1 # hex\n", "version = 2 # hex\n"),
    ] {
        assert_eq!(applied(&version, text), expected, "{text}");
    }
}

#[test]
fn a_list_gets_one_more_member_in_its_own_style() {
    for (text, expected) in [
        ("", "imports = [\"m\"]\n"),
        ("imports = []\n", "imports = [\"m\"]\n"),
        ("imports = ['a'] # c\n", "imports = ['a', \"m\"] # c\n"),
        ("imports = [\"a\",]\n", "imports = [\"a\", \"m\",]\n"),
        ("imports = [ \"a\" , \"b\" ]\n", "imports = [ \"a\" , \"b\", \"m\" ]\n"),
        (
            "imports = [\n  \"a\", # first\n  \"b\" # last\n]\n",
            "imports = [\n  \"a\", # first\n  \"b\", # last\n  \"m\"\n]\n",
        ),
        ("imports = [\n  \"a\",\n  # end\n]\n", "imports = [\n  \"a\",\n  \"m\",\n  # end\n]\n"),
        ("imports = [\n  \"a\"]\n", "imports = [\n  \"a\",\n  \"m\"]\n"),
        ("imports = [\r\n\t\"a\", # x\r\n]\r\n", "imports = [\r\n\t\"a\", # x\r\n\t\"m\",\r\n]\r\n"),
        ("imports = [\n  \"a\" # c\n  ,\n]\n", "imports = [\n  \"a\" # c\n  ,\n  \"m\",\n]\n"),
        ("imports = ['m']\n", "imports = ['m']\n"),
    ] {
        assert_eq!(applied(&member("m"), text), expected, "{text}");
    }
}

#[test]
fn a_member_leaves_a_list_that_somebody_has_gone_on_with() {
    for (before, now, expected) in [
        ("imports = [\"a\"]\n", "imports = [\"a\", \"m\", \"b\"]\n", "imports = [\"a\", \"b\"]\n"),
        ("imports = [\"a\"]\n", "imports = [\"m\", \"a\"]\n", "imports = [\"a\"]\n"),
        ("imports = [\"a\"]\n", "imports = [\n \"a\", # a\n \"m\" # m\n]\n", "imports = [\n \"a\" # a\n]\n"),
        ("imports = [\"a\"]\n", "imports = [\n \"m\", # m\n \"a\",\n]\n", "imports = [\n \"a\",\n]\n"),
        ("x = 1\n", "x = 2\nimports = [\"m\", \"b\"]\n", "x = 2\nimports = [\"b\"]\n"),
        ("x = 1\n", "x = 2\nimports = [\"m\"]\n", "x = 2\n"),
        ("x = 1\nimports = []\n", "x = 2\nimports = [\"m\"]\n", "x = 2\nimports = []\n"),
        ("imports = ['m']\n", "imports = ['m', 'b']\n", "imports = ['m', 'b']\n"),
        ("x = 1\n", "x = 2\n", "x = 2\n"),
    ] {
        let back = member("m").revert(now, Some(before)).unwrap();
        assert_eq!((back.text.as_deref(), back.left), (Some(expected), Vec::new()), "{now}");
    }
}

#[test]
fn what_somebody_has_changed_since_is_unmanaged_and_reported() {
    let on = value(&["a", "on"], true.into());
    let back = on.revert("[a]\non = \"maybe\"\n", Some("")).unwrap();
    assert_eq!(
        (back.text.as_deref(), &back.left[..]),
        (Some("[a]\non = \"maybe\"\n"), &["a.on".to_owned()][..])
    );
    // Gone, or as it was before: no managed key is left, and nothing is to be reported.
    for now in ["[a]\n# gone\n", "[a]\non = 1\n# back\n"] {
        let back = on.revert(now, Some("[a]\non = 1\n")).unwrap();
        assert_eq!((back.text.as_deref(), back.left), (Some(now), Vec::new()), "{now}");
    }
    // An old value comes back as it was written.
    let back = on.revert("[a]\non = true\nz = 1\n", Some("[a]\non = 0b11\n")).unwrap();
    assert_eq!(back.text.as_deref(), Some("[a]\non = 0b11\nz = 1\n"));
}

#[test]
fn a_file_that_was_not_there_goes_unless_somebody_has_written_into_it() {
    let ours = containerd().apply("").unwrap();
    insta::assert_snapshot!(ours);
    let gone = containerd().revert(&ours, None).unwrap();
    assert_eq!((gone.text, gone.left), (None, Vec::new()));
    let stale = ours.replace("\n[plugins", "\n\n[plugins");
    assert_eq!(containerd().revert(&stale, None).unwrap().text, None, "{stale}");

    // A runtime that somebody added needs the version, and stands beside runc.
    let theirs = format!("{ours}\n[plugins.\"{CRI}\".containerd.runtimes.kata]\nruntime_type = \"kata\"\n");
    let back = containerd().revert(&theirs, None).unwrap();
    insta::assert_snapshot!(back.text.unwrap());
    let theirs = format!("root = \"/x\"\n{ours}");
    assert_eq!(
        containerd().revert(&theirs, None).unwrap().text.as_deref(),
        Some("root = \"/x\"\nversion = 2\n")
    );
}

#[test]
fn what_is_needed_is_a_table_and_stays_where_it_is() {
    let text = format!("version = 2\n[plugins.\"{CRI}\".containerd.runtimes.runc]\nruntime_type = \"x\"\n");
    let ours = applied(&containerd(), &text);
    assert!(ours.starts_with(&text) && !ours.contains("SystemdCgroup"), "{ours}");
}

#[test]
fn what_stands_in_the_way_is_named_with_its_line() {
    let on = value(&["a", "b", "on"], true.into());
    for (text, line, problem) in [
        ("x = 1\na = \"text\"\n", 2, "a is a string where a table is needed"),
        ("\n\n[a]\nb = 1\n", 4, "a.b is a number where a table is needed"),
        ("[a]\nb = []\n", 2, "a.b is a list where a table"),
        ("[[a]]\n[[a]]\n", 1, "a is an array of tables where a table is needed"),
        ("[a.b.on]\n", 1, "a.b.on is a table where a value is needed"),
        ("x = 1\n= 2\n", 2, ""),
        ("x = 1\nx = 2\n", 2, "duplicate key"),
        ("\u{feff}x = 1\n\nx = \n", 3, ""),
        ("x = \"\r\n", 1, ""),
        ("\0", 1, ""),
    ] {
        let fault = on.apply(text).unwrap_err();
        assert_eq!(fault.line, line, "{text:?}: {fault}");
        assert!(fault.problem.contains(problem) && !fault.problem.is_empty(), "{text:?}: {fault}");
        assert!(!fault.to_string().contains('\n'), "{fault}");
    }
    let fault = member("m").apply("imports = \"conf.d\"\n").unwrap_err();
    assert_eq!(fault.to_string(), "line 1: imports is a string where a list is needed");
    assert!(on.revert("[a", Some("")).is_err());
}

#[test]
fn a_megabyte_is_edited_like_a_line() {
    let mut text = String::from("version = 2\n");
    let mut n = 0;
    while text.len() < 1 << 20 {
        n += 1;
        text.push_str(&format!("\n# mirror {n}\n[plugins.\"{CRI}\".registry.mirrors.\"r{n}.example\"]\nendpoint = [\"https://r{n}.example\"]\n"));
    }
    let started = std::time::Instant::now();
    let ours = containerd().apply(&text).unwrap();
    let back = containerd().revert(&format!("{ours}# changed\n"), Some(&text)).unwrap();
    let took = started.elapsed();
    assert!(back.text.unwrap().starts_with(&text));
    // A build without optimization, on a busy machine; quadratic time would be hours.
    assert!(took.as_secs() < 120, "{took:?}");
}

#[test]
fn a_text_is_read_as_json_has_it() {
    let text = "\u{feff}a = 1\nb.c = [1.5, true, { d = 'x' }]\n[[e]]\nf = 1979-05-27\n";
    let expected = json!({"a": 1, "b": {"c": [1.5, true, {"d": "x"}]}, "e": [{"f": "1979-05-27"}]});
    assert_eq!(Format::Toml.read(text).unwrap(), expected);
    assert_eq!(Format::Toml.read("a = 1\nb").unwrap_err().line, 2);
}

#[test]
fn a_list_that_begins_with_what_it_replaces_goes_unless_somebody_has_added_to_it() {
    let set = Set::Beside { member: "m".into(), default: vec!["a".into(), "b".into()] };
    let edit = edit(vec![(&["t", "l"], set)]);
    for (before, ours) in [
        ("", "[t]\nl = [\"a\", \"b\", \"m\"]\n"),
        ("[t]\nx = 1\n", "[t]\nx = 1\nl = [\"a\", \"b\", \"m\"]\n"),
        // An empty one says that there is to be none.
        ("[t]\nl = []\n", "[t]\nl = [\"m\"]\n"),
        ("[t]\nl = [\"c\"]\n", "[t]\nl = [\"c\", \"m\"]\n"),
        ("[t]\nl = [\"a\", \"b\"]\n", "[t]\nl = [\"a\", \"b\", \"m\"]\n"),
    ] {
        assert_eq!(applied(&edit, before), ours, "{before}");
    }
    for (theirs, expected) in [
        ("l = [\"a\", \"b\", \"m\", \"c\"]\n", "l = [\"a\", \"b\", \"c\"]\n"),
        ("l = [\"b\", \"m\"]\n", "l = [\"b\"]\n"),
        ("l = [\"b\", \"a\", \"m\"]\n", "l = [\"b\", \"a\"]\n"),
    ] {
        let back = edit.revert(&format!("[t]\n{theirs}"), Some("")).unwrap();
        assert_eq!((back.text, back.left.len()), (Some(format!("[t]\n{expected}")), 0), "{theirs}");
    }
}

#[test]
fn a_comment_that_goes_with_a_managed_line_is_named() {
    let import = member("/etc/containerd/conf.d/rocworker*.toml");
    for (text, added, went) in [
        ("version = 3\n", "toml\"] # do not remove", Some("# do not remove")),
        ("imports = [\n  \"a.toml\", # a\n]\n", "toml\", # it's ours", Some("# it's ours")),
        ("version = 3\n", "toml\"]\n# beside it", None),
    ] {
        let ours = import.apply(text).unwrap();
        let end = added.split(" #").next().unwrap().split('\n').next().unwrap();
        let theirs = ours.replacen(&format!("rocworker*.{end}"), &format!("rocworker*.{added}"), 1);
        assert_ne!(theirs, ours, "{ours}");
        let back = import.revert(&theirs, Some(text)).unwrap();
        let named: Vec<String> = went.iter().map(|it| format!("the comment {it:?}")).collect();
        assert_eq!(back.went, named, "{theirs}");
        assert_eq!(back.text.unwrap().contains("# beside it"), added.contains("# beside it"));
    }
}
