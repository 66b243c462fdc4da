use super::*;

#[test]
fn what_is_missing_is_laid_out_as_its_neighbours_are() {
    let cases = [
        // An empty file becomes what docker's documentation shows.
        (
            "",
            "{\n    \"features\": {\n        \"cdi\": true\n    },\n    \"runtimes\": {\n        \"amd\": {\n            \
             \"path\": \"/usr/bin/runc-amd-wrapper\"\n        }\n    }\n}\n",
        ),
        (
            "{}",
            "{\n    \"features\": {\n        \"cdi\": true\n    },\n    \"runtimes\": {\n        \"amd\": {\n            \
             \"path\": \"/usr/bin/runc-amd-wrapper\"\n        }\n    }\n}",
        ),
        // Two blanks, and a table of runtimes that is there.
        (
            "{\n  \"runtimes\": {\n    \"nvidia\": {\"path\": \"n\", \"args\": []}\n  },\n  \"log\":   1e3\n}\n",
            "{\n  \"runtimes\": {\n    \"nvidia\": {\"path\": \"n\", \"args\": []},\n    \"amd\": {\n      \"path\": \
             \"/usr/bin/runc-amd-wrapper\"\n    }\n  },\n  \"log\":   1e3,\n  \"features\": {\n    \"cdi\": true\n  \
             }\n}\n",
        ),
        // Tabs, a colon with blanks on both sides, CRLF, no line end at the end.
        (
            "{\r\n\t\"debug\" : true,\r\n\t\"features\" : {}\r\n}",
            "{\r\n\t\"debug\" : true,\r\n\t\"features\" : {\r\n\t\t\"cdi\" : true\r\n\t},\r\n\t\"runtimes\" : \
             {\r\n\t\t\"amd\" : {\r\n\t\t\t\"path\" : \"/usr/bin/runc-amd-wrapper\"\r\n\t\t}\r\n\t}\r\n}",
        ),
        // One line, with and without blanks.
        (
            "{\"debug\":true,\"x\":1.0}\n",
            "{\"debug\":true,\"x\":1.0,\"features\":{\"cdi\":true},\"runtimes\":{\"amd\":{\"path\":\
             \"/usr/bin/runc-amd-wrapper\"}}}\n",
        ),
        (
            "{ \"features\": { \"x\": false } }",
            "{ \"features\": { \"x\": false, \"cdi\": true }, \"runtimes\": {\"amd\": {\"path\": \
             \"/usr/bin/runc-amd-wrapper\"}} }",
        ),
        // null is what is not there, to Go.
        (
            "{\n \"runtimes\": null, \"features\": null\n}",
            "{\n \"runtimes\": {\n  \"amd\": {\n   \"path\": \"/usr/bin/runc-amd-wrapper\"\n  }\n }, \"features\": \
             {\"cdi\": true}\n}",
        ),
        // A BOM is kept, and so are escapes, also in a managed key.
        (
            "\u{feff}{\"feat\\u0075res\":{\"cdi\":false},\"a\\/b\":\"\\u00e9\"}",
            "\u{feff}{\"feat\\u0075res\":{\"cdi\":true},\"a\\/b\":\"\\u00e9\",\"runtimes\":{\"amd\":{\"path\":\
             \"/usr/bin/runc-amd-wrapper\"}}}",
        ),
    ];
    for (text, expected) in cases {
        let applied = docker().apply(text).unwrap();
        assert_eq!(applied, expected, "{text:?}");
        assert_eq!(docker().apply(&applied).unwrap(), applied, "a second time: {text:?}");
    }
}

#[test]
fn a_value_that_is_another_is_replaced_where_it_stands() {
    let cases = [
        ("{\"features\": {\"cdi\": false, \"x\": 1}}", "{\"features\": {\"cdi\": true, \"x\": 1}}"),
        (
            "{\"features\": {\"cdi\": {\"a\": [1, \"}\"]}, \"x\": 1}}",
            "{\"features\": {\"cdi\": true, \"x\": 1}}",
        ),
        ("{\"features\": {\"cdi\":\"\\\"no\"}}", "{\"features\": {\"cdi\":true}}"),
    ];
    for (text, expected) in cases {
        assert_eq!(cdi().apply(text).unwrap(), expected, "{text}");
    }
}

#[test]
fn a_text_that_is_right_already_is_not_touched() {
    for text in [
        "{\"features\":{ \"cdi\" :true , \"z\":1E+2}  }  ",
        "\n\n{\"a\": [\"features\", {\"cdi\": false}],\n\"features\": {\"cdi\": true}}",
        "{\"\\u0066eatures\": {\"c\\u0064i\": true}}",
    ] {
        assert_eq!(cdi().apply(text).unwrap(), text);
    }
}

#[test]
fn a_list_gets_one_member_more() {
    let cases = [
        ("{}", "{\n    \"cdi-spec-dirs\": [\"/srv/cdi\"]\n}"),
        ("{\"cdi-spec-dirs\": [ ]}", "{\"cdi-spec-dirs\": [\"/srv/cdi\"]}"),
        ("{\"cdi-spec-dirs\": null}", "{\"cdi-spec-dirs\": [\"/srv/cdi\"]}"),
        ("{\"cdi-spec-dirs\": [\"/a\"]}", "{\"cdi-spec-dirs\": [\"/a\", \"/srv/cdi\"]}"),
        ("{\"cdi-spec-dirs\":[\n  \"/a\"\n ]}", "{\"cdi-spec-dirs\":[\n  \"/a\",\n  \"/srv/cdi\"\n ]}"),
        ("{\"cdi-spec-dirs\":[\"\\/srv/cdi\",\"/b\"]}", "{\"cdi-spec-dirs\":[\"\\/srv/cdi\",\"/b\"]}"),
    ];
    for (text, expected) in cases {
        assert_eq!(dirs().apply(text).unwrap(), expected, "{text}");
    }
}

#[test]
fn what_is_needed_is_written_only_where_there_is_none() {
    let edit = edit([key(&["version"], Set::Needed(json!(2)))]);
    assert_eq!(edit.apply("{\"version\": 1}").unwrap(), "{\"version\": 1}");
    assert_eq!(edit.apply("{\"a\": 1}").unwrap(), "{\"a\": 1, \"version\": 2}");
}

#[test]
fn what_cannot_be_edited_is_reported_with_its_line() {
    let cases = [
        ("[]", "line 1: the file holds a list and not an object"),
        ("\n \"x\"", "line 2: the file holds a text and not an object"),
        ("1", "line 1: the file holds a number and not an object"),
        ("null", "line 1: the file holds null and not an object"),
        ("{\n\"a\": 1,\n}", "line 3: this is not JSON: key must be a string"),
        ("// docker\n{}", "line 1: this is not JSON: expected value"),
        ("{\"a\": 1}\n}", "line 2: this is not JSON: trailing characters"),
        ("{\"a\": 'x'}", "line 1: this is not JSON: expected value"),
        ("{\"a\": 1", "line 1: this is not JSON: EOF while parsing an object"),
        (
            "{\"a\": \"\t\"}",
            "line 1: this is not JSON: control character (\\u0000-\\u001F) found while parsing a string",
        ),
        ("\u{feff}\u{feff}{}", "line 1: this is not JSON: expected value"),
        ("{\n\"features\": []}", "line 2: features is a list where an object is needed"),
        ("{\"features\": 0}", "line 1: features is a number where an object is needed"),
        (
            "{\n\"features\": {},\n\"feature\\u0073\": {\"cdi\": true}}",
            "line 3: line 2 has the key \"features\" already: keep one of the two, since each reader chooses which one counts",
        ),
        (
            "{\"features\": {\"cdi\": false,\n\"cdi\": true}}",
            "line 2: line 1 has the key \"cdi\" already: keep one of the two, since each reader chooses which one counts",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(cdi().apply(text).unwrap_err().to_string(), expected, "{text}");
    }
    let fault = dirs().apply("{\n\"cdi-spec-dirs\": \"/a\"}").unwrap_err().to_string();
    assert_eq!(fault, "line 2: cdi-spec-dirs is a text where a list is needed");
}

#[test]
fn keys_that_stand_twice_elsewhere_are_not_our_concern() {
    let text = "{\"a\": {\"cdi\": 1, \"cdi\": 2}, \"a\": 3}";
    let expected = "{\"a\": {\"cdi\": 1, \"cdi\": 2}, \"a\": 3, \"features\": {\"cdi\": true}}";
    assert_eq!(cdi().apply(text).unwrap(), expected);
}

#[test]
fn values_that_no_type_holds_stay_as_they_are() {
    let deep = "[".repeat(5000) + &"]".repeat(5000);
    for odd in ["1e999", "123456789012345678901234567890", "\"\\ud800\"", "-0.0", &deep] {
        let applied = cdi().apply(&format!("{{\"odd\": {odd}}}")).unwrap();
        assert_eq!(applied, format!("{{\"odd\": {odd}, \"features\": {{\"cdi\": true}}}}"));
    }
}

#[test]
fn a_mebibyte_is_edited_as_well() {
    let entries: Vec<String> =
        (0..20_000).map(|n| format!("    \"key-{n}\": \"value {{[ {n}, \\\" ]\"")).collect();
    let text = format!("{{\n{}\n}}\n", entries.join(",\n"));
    assert!(text.len() > 700_000);
    let applied = docker().apply(&text).unwrap();
    assert!(applied.starts_with(text.strip_suffix("\n}\n").unwrap()));
    assert_eq!(docker().revert(&applied, Some(&text)).unwrap().text, Some(text));
}
