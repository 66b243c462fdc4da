use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use support::detect::scratch;

use super::{answer, beneath, refusal};

const TABLE: &str = "[[afid]]\nid = 24\nname = \"What the user's table says\"\ncategory = \"a category\"\n\
                     severity = \"fatal\"\naction = \"what to do\"\n\n[[afid]]\nid = 25\nname = \"two\\nlines\"\n";

/// A machine with this table.
fn machine(table: &str) -> tempfile::TempDir {
    let root = scratch();
    fs::create_dir_all(root.path().join("etc/rocworker")).unwrap();
    fs::write(root.path().join("etc/rocworker/afids.toml"), table).unwrap();
    root
}

#[test]
fn only_the_users_table_says_what_an_afid_means() {
    let root = scratch();
    let path = root.path().join("etc/rocworker/afids.toml");
    let said = refusal(&beneath(root.path(), &["explain", "afid:24"]));
    let expected = format!(
        "AFID 24 is unknown: rocworker does not carry AMD's table (document 70122, \
         https://docs.amd.com/r/en-US/AMD_Field_ID_70122_v1.0/AFID-Event-List); write what it says into {}, as \
         docs/explain.md shows",
        path.display()
    );
    assert_eq!(said, expected);

    let root = machine(TABLE);
    let path = root.path().join("etc/rocworker/afids.toml");
    let text =
        answer(&beneath(root.path(), &["explain", "AFID:24"])).replace(path.to_str().unwrap(), "AFIDS");
    insta::assert_snapshot!(text);
    for written in ["afid 24", "AFID=24"] {
        assert!(answer(&beneath(root.path(), &["explain", written])).starts_with("afid:24: "), "{written}");
    }
    let json = answer(&beneath(root.path(), &["explain", "afid:25", "-o", "json"]));
    let expected = serde_json::json!({
        "schema_version": 1,
        "afid": { "id": 25, "name": "two\nlines", "category": null, "severity": null, "action": null }
    });
    assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap(), expected);
    assert!(answer(&beneath(root.path(), &["explain", "afid:25"])).starts_with("afid:25: two\\nlines\n"));
    let other = refusal(&beneath(root.path(), &["explain", "afid:26"]));
    assert_eq!(other, format!("AFID 26 is unknown: {} does not have it", path.display()));
}

#[test]
fn a_table_that_is_wrong_or_that_others_can_write_is_refused() {
    let root = machine("[[afid]]\nid = 24\nname = \"a\"\nmeaning = \"b\"\n");
    let said = refusal(&beneath(root.path(), &["explain", "afid:24"]));
    let path = root.path().join("etc/rocworker/afids.toml");
    assert!(said.starts_with(&format!("{}, line 4: unknown field `meaning`", path.display())), "{said}");

    let root = machine(TABLE);
    let path = root.path().join("etc/rocworker/afids.toml");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    let said = refusal(&beneath(root.path(), &["explain", "afid:24"]));
    assert!(said.contains(path.to_str().unwrap()) && said.contains("writ"), "{said}");
}
