use proptest::prelude::*;

use super::{Fault, Problem, Scanner};

fn scan(text: &str) -> Result<(), Fault> {
    let mut scanner = Scanner::new(text);
    scanner.skip()?;
    scanner.finish()
}

#[test]
fn refuses_what_is_not_json_and_says_where() {
    let table = [
        ("", 0, "a value"),
        ("  ", 2, "a value"),
        ("\u{feff}{}", 0, "a value"),
        ("\0", 0, "a value"),
        ("{} x", 3, "the end of the text"),
        ("{\"a\":1,}", 7, "a key"),
        ("{a:1}", 1, "a key"),
        ("{\"a\" 1}", 5, "a colon"),
        ("[1 2]", 3, "a comma or a closing bracket"),
        ("[1,]", 3, "a value"),
        ("{\"a\":1 \"b\":2}", 7, "a comma or a closing brace"),
        ("\"a", 2, "the end of the string"),
        ("\"a\nb\"", 2, "an escape instead of a control character"),
        (r#""\x""#, 2, "an escape"),
        (r#""\u12g4""#, 5, "four hexadecimal digits"),
        ("tru", 0, "true"),
        ("01", 1, "the end of the text"),
        ("-", 1, "a digit"),
        ("1.", 2, "a digit"),
        ("1e+", 3, "a digit"),
        ("+1", 0, "a value"),
        ("NaN", 0, "a value"),
    ];
    for (text, offset, expected) in table {
        assert_eq!(scan(text), Err(Fault { offset, problem: Problem::Syntax(expected) }), "{text:?}");
    }
}

#[test]
fn the_end_of_a_string_is_found_whatever_stands_in_front_of_it_and_behind() {
    for before in ["", "a", "1234567", "12345678", "é23456789", "\u{7f}\u{80}\u{ff}\u{100}", "!#[]^ ~"] {
        for special in ['"', '\\', '\0', '\u{1f}', '\n'] {
            for behind in ["", "!", "\"\\\u{1}", "!!!!!!!!!!!!!!!!", "\u{20}\u{21}\u{5b}\u{5d}é"] {
                let text = format!("{before}{special}{behind}");
                let text = format!("\"{text}");
                let end = 1 + before.len();
                let string = Scanner::new(&text).string();
                match special {
                    '"' => assert_eq!(string.map(|text| text.span.end), Ok(end + 1), "{text:?}"),
                    '\\' => assert_ne!(string.map(|text| text.span.end), Ok(end + 1), "{text:?}"),
                    _ => {
                        let expected = "an escape instead of a control character";
                        assert_eq!(
                            string.err(),
                            Some(Fault { offset: end, problem: Problem::Syntax(expected) }),
                            "{text:?}"
                        );
                    }
                }
            }
        }
        let text = format!("\"{before}");
        let expected = "the end of the string";
        let fault = Scanner::new(&text).string().err();
        assert_eq!(fault, Some(Fault { offset: text.len(), problem: Problem::Syntax(expected) }), "{text:?}");
    }
}

#[test]
fn goes_as_deep_as_serde_json_and_no_deeper() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    for (depth, accepted) in [(126, true), (127, true), (128, false), (129, false), (10_000, false)] {
        let text = nested(depth);
        assert_eq!(scan(&text).is_ok(), accepted, "{depth}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), accepted, "{depth}");
    }
    assert_eq!(scan(&nested(128)), Err(Fault { offset: 127, problem: Problem::TooDeep }));
    let unclosed = "[{\"a\":".repeat(50_000);
    assert_eq!(scan(&unclosed), Err(Fault { offset: 127 / 2 * 6 + 1, problem: Problem::TooDeep }));
}

#[test]
fn passing_ends_where_skipping_does() {
    let deep = "{\"a\":".repeat(40) + "[]" + &"}".repeat(40);
    let spaces = " ".repeat(70);
    for text in [
        "{}",
        "[ ]",
        r#"["\\\"]","\\","a\\\"[",{"}":"|"}] ]"#,
        &format!("[\"{}\\\"]\",1]]", "x".repeat(61)),
        &format!("[\"{}\\\\\",\"]\"]]", "x".repeat(60)),
        &format!("{{\"k\":[1,2{spaces}]{spaces}}},"),
        &deep,
        &format!("[{}]", "{\"a\":\"b{\"},".repeat(30).trim_end_matches(',')),
    ] {
        let (mut one, mut other) = (Scanner::new(text), Scanner::new(text));
        assert_eq!(other.pass(), one.skip(), "{text}");
        assert_eq!(other.offset(), one.offset(), "{text}");
    }
    let passed = Scanner::new("[1, 2 \n] ").pass_whole();
    assert_eq!(passed, Scanner::new("[1, 2 \n] ").array(|scanner| scanner.skip().map(drop)));
    for (text, expected) in [
        ("[[1,2]", "a closing bracket or brace"),
        ("[\"]", "the end of the string"),
        ("{\"a\\\"}", "the end of the string"),
    ] {
        assert_eq!(
            Scanner::new(text).pass(),
            Err(Fault { offset: text.len(), problem: Problem::Syntax(expected) }),
            "{text}"
        );
    }
    for depth in [127, 128, 500] {
        let text = "[".repeat(depth) + &"]".repeat(depth);
        assert_eq!(Scanner::new(&text).pass(), Scanner::new(&text).skip(), "{depth}");
    }
}

#[test]
fn knows_a_key_in_every_spelling_that_go_takes_for_it() {
    let table = [
        ("process", "process", true),
        ("Process", "process", true),
        (r"\u0070rocess", "process", true),
        (r"\u0050ROCESS", "process", true),
        ("proceſſ", "process", true),
        (r"hoo\u212as", "hooks", true),
        ("additionalgids", "additionalGids", true),
        ("processes", "process", false),
        ("proces", "process", false),
        ("", "process", false),
        ("größe", "process", false),
    ];
    for (raw, name, same) in table {
        let text = format!("\"{raw}\"");
        let key = Scanner::new(&text).string().unwrap();
        assert_eq!(key.names(name), same, "{raw}");
    }
}

#[test]
fn decodes_escapes_as_go_does() {
    let table = [
        (r#""plain""#, "plain"),
        (r#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{c}\n\r\t"),
        (r#""\u0041MD_""#, "AMD_"),
        (r#""\ud83d\ude00!""#, "😀!"),
        (r#""\ud83d!""#, "\u{fffd}!"),
        (r#""\ude00\ud83d""#, "\u{fffd}\u{fffd}"),
        (r#""\ud83d\u0041""#, "\u{fffd}A"),
        (r#""é\u00e9""#, "éé"),
    ];
    for (text, decoded) in table {
        let read = Scanner::new(text).string().map(|text| text.decode().into_owned());
        assert_eq!(read.as_deref(), Ok(decoded), "{text}");
    }
}

/// Text that is nearly JSON, so that both outcomes are met often.
fn nearly_json() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"a\"",
        "\"\\u0061\"",
        "\"\\ud800\"",
        "\"\\q\"",
        "\"",
        "1",
        "-0.5e+3",
        "01",
        "-",
        "1.",
        "true",
        "nul",
        "null",
        " ",
        "\n",
        "\u{1}",
        "\u{feff}",
        "é",
    ]);
    prop_oneof![
        prop::collection::vec(token, 0..12).prop_map(|tokens| tokens.concat()),
        any_json().prop_map(|value| value.to_string()),
        (any_json(), any::<prop::sample::Index>(), any::<char>()).prop_map(|(value, at, c)| {
            let mut text: Vec<char> = value.to_string().chars().collect();
            let at = at.index(text.len());
            text[at] = c;
            text.into_iter().collect()
        }),
    ]
}

fn any_json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        ".{0,8}".prop_map(Into::into),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::btree_map(".{0,4}", inner, 0..4)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    /// serde_json's RawValue goes over a value without decoding it, as the scanner does.
    #[test]
    fn accepts_what_serde_json_accepts(text in nearly_json()) {
        let theirs = serde_json::from_str::<Box<serde_json::value::RawValue>>(&text).is_ok();
        prop_assert_eq!(scan(&text).is_ok(), theirs, "{}", text);
    }

    #[test]
    fn passes_what_it_skips_and_nothing_more(
        value in any_json(),
        before in 0..130_usize,
        behind in "[]}\",x]{0,3}",
        pretty in any::<bool>(),
    ) {
        let value = serde_json::json!(["x".repeat(before), value]);
        let written = if pretty { format!("{value:#}") } else { value.to_string() };
        let text = written + &behind;
        let (mut one, mut other) = (Scanner::new(&text), Scanner::new(&text));
        let skipped = one.skip();
        prop_assert_eq!(other.pass(), skipped, "{}", text);
        prop_assert_eq!(other.offset(), one.offset());
        let passed = Scanner::new(&text).pass_whole();
        let gone_over = Scanner::new(&text).array(|scanner| scanner.skip().map(drop));
        prop_assert_eq!(passed, gone_over, "{}", text);
    }

    #[test]
    fn decodes_what_serde_json_wrote(text in any::<String>()) {
        let theirs = serde_json::Value::from(text.as_str()).to_string();
        let decoded = Scanner::new(&theirs).string().map(|text| text.decode().into_owned());
        prop_assert_eq!(decoded.as_deref(), Ok(text.as_str()));
    }

    #[test]
    fn never_panics(text in any::<String>()) {
        let _ = scan(&text);
    }
}
