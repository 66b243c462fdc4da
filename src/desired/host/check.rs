//! What templates give is read again, as far as its readers' grammars go, before it may be written: they skip a
//! line that they do not understand, with a word in a log.

/// udev's rules: `KEY{attribute}OPERATOR"value"`, comma-separated (udev(7)).
pub(super) fn rules(text: &str) -> Result<(), String> {
    each_line(text, |line| {
        let mut rest = line;
        loop {
            rest = pair(rest)?.trim_start();
            match rest.strip_prefix(',') {
                // A comma at the end is taken.
                Some(after) if after.trim().is_empty() => return Ok(()),
                Some(after) => rest = after.trim_start(),
                None if rest.is_empty() => return Ok(()),
                None => return Err("a comma belongs between two pairs"),
            }
        }
    })
}

/// Checks a pair of key and value at the start of `text`, and returns what follows it.
fn pair(text: &str) -> Result<&str, &'static str> {
    const OPERATORS: [&str; 6] = ["==", "!=", "+=", "-=", ":=", "="];
    let end = text.find(|c: char| !c.is_ascii_uppercase() && c != '_').unwrap_or(text.len());
    let (key, mut rest) = text.split_at(end);
    if key.is_empty() {
        return Err("a rule is of pairs such as SUBSYSTEM==\"drm\"");
    }
    if let Some(attribute) = rest.strip_prefix('{') {
        rest = attribute.split_once('}').ok_or("an attribute's brace is not closed")?.1;
    }
    let rest = rest.trim_start();
    let operator = OPERATORS.iter().find_map(|operator| rest.strip_prefix(operator));
    let value = operator.ok_or("a key is followed by ==, !=, =, +=, -= or :=")?.trim_start();
    let value = value.strip_prefix('"').ok_or("a value must be between double quotes")?;
    Ok(value.split_once('"').ok_or("a value's quotes are not closed")?.1)
}

/// modules-load.d(5): a module's name a line.
pub(super) fn modules_load(text: &str) -> Result<(), String> {
    each_line(text, |line| {
        let is_name = line.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
        if is_name { Ok(()) } else { Err("a line is the name of one module") }
    })
}

/// modprobe.d(5): a command and what it is about.
pub(super) fn modprobe(text: &str) -> Result<(), String> {
    const COMMANDS: [&str; 7] = ["alias", "blacklist", "install", "options", "remove", "softdep", "weakdep"];
    each_line(text, |line| {
        let mut words = line.split_whitespace();
        match (words.next(), words.next()) {
            (Some(command), Some(_)) if COMMANDS.contains(&command) => Ok(()),
            _ => {
                Err("a line is a command of modprobe.d(5) and a module, as `options amdgpu ppfeaturemask=1`")
            }
        }
    })
}

/// tmpfiles.d(5): type, path, mode, user, group, age.
pub(super) fn tmpfiles(text: &str) -> Result<(), String> {
    each_line(text, |line| {
        let mut words = line.split_whitespace();
        let kind = words.next().is_some_and(|kind| kind.starts_with(|c: char| c.is_ascii_alphabetic()));
        let path = words.next().is_some_and(|path| path.starts_with('/'));
        let mode = words.next().unwrap_or("-").trim_start_matches(['~', ':']);
        if !kind || !path {
            return Err("a line is a type and an absolute path, as `z /dev/kfd 0660 - render -`");
        }
        let is_mode = mode == "-" || mode.len() <= 4 && mode.bytes().all(|b| (b'0'..=b'7').contains(&b));
        if is_mode { Ok(()) } else { Err("the third word is a mode in octal, or -") }
    })
}

/// Blank lines and comments say nothing in any of these grammars.
fn each_line(text: &str, fits: impl Fn(&str) -> Result<(), &'static str>) -> Result<(), String> {
    for (number, line) in (1..).zip(text.lines().map(str::trim)) {
        if !line.is_empty() && !line.starts_with('#') {
            fits(line).map_err(|problem| format!("in line {number} {line:?}: {problem}"))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn holds(check: fn(&str) -> Result<(), String>, good: &[&str], bad: &[&str]) {
        for line in good {
            check(&format!("# a comment\n\n{line}\n")).unwrap();
        }
        for line in bad {
            let error = check(&format!("# a comment\n\n{line}\n")).unwrap_err();
            assert!(error.starts_with("in line 3 "), "{line}: {error}");
        }
    }

    #[test]
    fn rules_are_pairs_of_key_operator_and_quoted_value() {
        let good = [
            r#"SUBSYSTEM=="kfd", KERNEL=="kfd", GROUP="render", MODE="0660""#,
            r#"ATTRS{vendor}=="0x1002",TAG+="uaccess""#,
            r#"KERNEL!="a,b", ENV{X}:="", "#,
        ];
        let bad = [
            r#"SUBSYSTEM=="kfd" KERNEL=="kfd""#,
            r#"SUBSYSTEM=="kfd, MODE="0660""#,
            "MODE=0660",
            r#"kernel=="kfd""#,
            r#"ATTRS{vendor=="0x1002""#,
            r#"KERNEL"kfd""#,
            r#"KERNEL=="kfd", , MODE="0660""#,
            r#"KERNEL=="kfd"#,
        ];
        holds(rules, &good, &bad);
    }

    #[test]
    fn module_files_are_names_and_commands() {
        holds(modules_load, &["amdgpu", "snd-hda-intel"], &["amdgpu ppfeaturemask=1", "a;b"]);
        holds(
            modprobe,
            &["options amdgpu a=b c=1,2", "blacklist x"],
            &["amdgpu a=b", "options", "option a b"],
        );
    }

    #[test]
    fn tmpfiles_lines_have_a_type_a_path_and_a_mode_in_octal() {
        let good = ["z /dev/kfd 0660 - render -", "z /dev/kfd - - - -", "z+ /dev/kfd :0660"];
        holds(
            tmpfiles,
            &good,
            &["/dev/kfd 0660", "z dev/kfd 0660", "z /dev/kfd 0990 - - -", "z /dev/kfd rw"],
        );
    }
}
