//! TOML of every style that can be put together: what goes in comes out, and what others write stays.

use edit::{Edit, Format, Key, Set};
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};

/// Lines of each style in which the managed keys' tables can be there already; which of them go together, the parser says.
const TOP: [&str; 12] = [
    "version = 2",
    "version = 0x2 # hex",
    "imports = []",
    "imports = [\"a\", 'b'] # c",
    "imports = [\n  # first\n  \"a\", # why\n  'm'\n]",
    "imports = [\n\t\"a\",\n\t]",
    "root = '''\n[not a table]\n'''",
    "p = { \"c.d\" = { runtimes = { runc = { type = \"x\" } } } }",
    "p.\"c.d\".on = false",
    "p.'c.d'.runtimes.runc.type = \"y\"",
    "p = {}",
    "# a word, and \"a quote",
];
const TABLES: [&str; 14] = [
    "[p]",
    "[p.\"c.d\"]\n  on = false # no",
    "  [p.'c.d']\n    on = true",
    "[ p . \"c.d\" . runtimes ]",
    "[p.\"c.d\".runtimes.runc]\ntype = \"runc\"\noptions = { a = 1 }",
    "    [p.\"c.d\".runtimes.runc]\n      type = \"runc\"\n\n      [p.\"c.d\".runtimes.runc.options]\n        a = [\n          1,\n        ]",
    "[p]\n\"c.d\".runtimes.runc.type = 'z'\n\"c.d\".on = false",
    "[p]\n\"c.d\" = { on = false, runtimes.runc = { type = \"i\" } }",
    "[p.\"c.d\".runtimes]\namd = { type = \"old\", options = { } }",
    "[p.\"c.d\".runtimes.amd.options]\n# theirs\nName = \"theirs\"",
    "[[list]]\nx = 1\n[[list]]\n[list.y]",
    "[other] # said\nz = \"\"\"\n[p.x]\n\"\"\"",
    "# between\n",
    "",
];

fn key(at: &[&str], set: Set) -> Key {
    Key { path: at.iter().map(|name| (*name).to_owned()).collect(), set }
}

fn ours() -> Edit {
    let runc = json!({"type": "runc", "options": {"Name": "", "On": false}});
    let amd = json!({"type": "amd", "options": {"Name": "/bin/\"w\""}});
    let keys = vec![
        key(&["version"], Set::Needed(2.into())),
        key(&["imports"], Set::Member("m".into())),
        key(&["p", "c.d", "runtimes", "runc"], Set::Needed(runc)),
        key(
            &["p", "c.d", "runtimes", "amd"],
            Set::Entry { value: amd, identity: "options/Name".to_owned(), instead: vec![] },
        ),
        key(&["p", "c.d", "on"], Set::Value(true.into())),
    ];
    Edit::new(Format::Toml, keys)
}

/// A text that is TOML, of all that can be put together.
fn texts() -> impl Strategy<Value = String> {
    let lines = (subsequence(TOP.to_vec(), 0..=5), subsequence(TABLES.to_vec(), 0..=6)).prop_shuffle_parts();
    let styles = (select(vec!["\n", "\r\n"]), any::<bool>(), any::<bool>(), select(vec!["\n", "\n\n"]));
    (lines, styles).prop_filter_map("no TOML", |((top, tables), (eol, ended, bom, between))| {
        let mut text = [top.join("\n"), tables.join(between)].join("\n");
        if ended {
            text.push('\n');
        }
        text = text.replace('\n', eol);
        if bom {
            text.insert(0, '\u{feff}');
        }
        Format::Toml.read(&text).ok().map(|_| text)
    })
}

trait Shuffled {
    fn prop_shuffle_parts(self) -> BoxedStrategy<(Vec<&'static str>, Vec<&'static str>)>;
}

impl<A, B> Shuffled for (A, B)
where
    A: Strategy<Value = Vec<&'static str>> + 'static,
    B: Strategy<Value = Vec<&'static str>> + 'static,
{
    fn prop_shuffle_parts(self) -> BoxedStrategy<(Vec<&'static str>, Vec<&'static str>)> {
        (self.0.prop_shuffle(), self.1.prop_shuffle()).boxed()
    }
}

fn read(text: &str) -> Value {
    Format::Toml.read(text).unwrap_or_else(|fault| panic!("{fault}\n{text}"))
}

/// What a text says beside the managed keys and the empty tables on the way to them.
fn theirs(mut document: Value, before: &Value) -> Value {
    for key in &ours().keys {
        let pointer = |path: &[String]| path.iter().map(|name| format!("/{name}")).collect::<String>();
        let (last, folder) = key.path.split_last().unwrap();
        match (&key.set, before.pointer(&pointer(&key.path))) {
            (Set::Member(member), _) => {
                if let Some(list) = document.pointer_mut("/imports").and_then(Value::as_array_mut) {
                    list.retain(|known| known != member);
                }
            }
            (Set::Needed(_), Some(_)) => {}
            (Set::Entry { .. }, Some(_)) => {
                for (table, name) in [("", "type"), ("/options", "Name")] {
                    let table = document.pointer_mut(&[&pointer(&key.path), table].concat());
                    table.and_then(Value::as_object_mut).map(|table| table.remove(name));
                }
            }
            _ => {
                if let Some(table) = document.pointer_mut(&pointer(folder)).and_then(Value::as_object_mut) {
                    table.remove(last);
                }
            }
        }
    }
    without_empty(document)
}

fn without_empty(document: Value) -> Value {
    match document {
        Value::Object(table) => {
            let entries = table.into_iter().map(|(name, value)| (name, without_empty(value)));
            let is_empty =
                |value: &Value| value.as_object().is_some_and(|t| t.is_empty()) || value == &json!([]);
            Value::Object(entries.filter(|(_, value)| !is_empty(value)).collect())
        }
        other => other,
    }
}

/// Writes the text as a program does that sorts the values that it has read.
fn write_sorted(text: &mut String, path: &[String], table: &Value) {
    let (tables, values): (Vec<_>, Vec<_>) =
        table.as_object().unwrap().iter().partition(|(_, v)| v.is_object());
    if !path.is_empty() {
        text.push_str(&format!("[{}]\n", path.join(".")));
    }
    for (name, value) in values {
        // Tables in lists are this test's only ones: in braces.
        let value = value.to_string().replace("\":", "\"=");
        text.push_str(&format!("{name:?} = {value}\n"));
    }
    for (name, table) in tables {
        write_sorted(text, &[path, &[format!("{name:?}")]].concat(), table);
    }
}

/// Everything between a # and its line's end, that in strings too: all of it has to stay.
fn comments(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.split_once('#').map(|(_, comment)| comment)).collect()
}

#[track_caller]
fn holds(text: &str) {
    let before = read(text);
    let edit = ours();
    let applied = match edit.apply(text) {
        Ok(applied) => applied,
        // A string where a table has to be, and the like.
        Err(fault) => {
            assert!(fault.problem.contains(" is needed"), "{fault}\n{text}");
            return;
        }
    };
    let after = read(&applied);
    assert_eq!(edit.apply(&applied).unwrap(), applied, "twice is not once:\n{text}");
    assert_eq!(theirs(after.clone(), &before), theirs(before.clone(), &before), "{text}\n=>\n{applied}");
    assert_eq!(comments(&applied), comments(text), "{text}\n=>\n{applied}");
    assert_eq!(after.pointer("/p/c.d/on"), Some(&json!(true)), "{applied}");
    assert_eq!(after.pointer("/p/c.d/runtimes/amd/options/Name"), Some(&json!("/bin/\"w\"")), "{applied}");
    assert_eq!(
        applied.contains("\r\n"),
        text.contains("\r\n") || !text.contains('\n') && applied.contains("\r\n")
    );
    assert_eq!(
        applied.matches('\n').count(),
        applied.lines().count() - usize::from(!applied.ends_with('\n'))
    );

    let back = edit.revert(&applied, Some(text)).unwrap();
    assert_eq!((back.text.as_deref(), back.left), (Some(text), Vec::new()), "{applied}");

    // Somebody has written it anew, sorted, with nothing but tables.
    let mut sorted = String::new();
    write_sorted(&mut sorted, &[], &after);
    let back = edit.revert(&sorted, Some(text)).unwrap();
    assert_eq!(back.left, Vec::<String>::new(), "{sorted}");
    let now = without_empty(read(back.text.as_deref().unwrap()));
    assert_eq!(now, without_empty(before.clone()), "{text}\n=>\n{sorted}\n=>\n{}", back.text.unwrap());

    // Somebody has gone on with it: a comment on top and at the end, and a table.
    let eol = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let (bom, body) = applied.split_at(if applied.starts_with('\u{feff}') { 3 } else { 0 });
    let changed = format!("{bom}# new{eol}{body}{eol}# newer{eol}[added]{eol}k = 1{eol}");
    let back = edit.revert(&changed, Some(text)).unwrap();
    let (now, text_now) = (read(back.text.as_deref().unwrap()), back.text.unwrap());
    assert_eq!(back.left, Vec::<String>::new(), "{changed}");
    let mut expected = before.clone();
    expected["added"] = json!({"k": 1});
    // Somebody stands beside it at the top now.
    expected["version"] = json!(2);
    assert_eq!(now, expected, "{text}\n=>\n{changed}\n=>\n{text_now}");
    for kept in [" new", " newer"].into_iter().chain(comments(text)) {
        assert!(comments(&text_now).contains(&kept), "{kept} is lost:\n{changed}\n=>\n{text_now}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 800, max_global_rejects: 200_000, ..ProptestConfig::default() })]

    #[test]
    fn our_keys_go_in_and_out_and_everything_else_stays(text in texts()) {
        holds(&text);
    }

    #[test]
    fn whatever_the_bytes_are_there_is_an_answer(text in "[\\[\\]{}=.,#\"'a-c\\n\\r 0-2\u{e9}]{0,40}") {
        if let Ok(applied) = ours().apply(&text) {
            prop_assert_eq!(&ours().apply(&applied).unwrap(), &applied);
            prop_assert_eq!(ours().revert(&applied, Some(&text)).unwrap().text, Some(text));
        }
    }
}
