//! What was found and tried, as three lines that people and pipelines look for. Pure.

use std::path::Path;

use serde::Serialize;

use super::nodes::Looked;
use super::open::Tried;

const NOT_GIVEN: &str = "the task needs tags: [gpu, compute-runtime=rocm] on a worker that gives its GPUs by default, or \
                         AMD_VISIBLE_DEVICES where the worker's policy honours it";

/// One of the three.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Line {
    /// `render`, `card`, `access`.
    pub name: &'static str,
    pub ok: bool,
    /// Without the sign in front.
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    pub lines: Vec<Line>,
    /// Whether every line is right.
    pub ok: bool,
}

/// `tried`: the render nodes that were found.
#[must_use]
pub fn of(renders: &Looked, cards: &Looked, tried: Vec<Tried>, kfd: Tried) -> Verdict {
    let lines = vec![devices("render", renders), devices("card", cards), access(tried, kfd)];
    let ok = lines.iter().all(|line| line.ok);
    Verdict { lines, ok }
}

fn devices(name: &'static str, looked: &Looked) -> Line {
    let text = if looked.found.is_empty() {
        format!("Found no AMD GPU {name} devices: {}", none_because(looked))
    } else {
        format!(
            "Found AMD GPU {name} devices: {}",
            shown(looked.found.iter().map(|node| node.path.as_path()))
        )
    };
    Line { name, ok: !looked.found.is_empty(), text }
}

fn none_because(looked: &Looked) -> String {
    match (&looked.unlisted, looked.others.as_slice()) {
        (Some(why), _) => format!("{why}; {NOT_GIVEN}"),
        (None, []) => format!("/dev/dri has none; {NOT_GIVEN}"),
        (None, others) => others.join("; "),
    }
}

fn shown<'a>(paths: impl Iterator<Item = &'a Path>) -> String {
    paths.map(|path| path.display().to_string()).collect::<Vec<_>>().join(" ")
}

fn access(tried: Vec<Tried>, kfd: Tried) -> Line {
    let name = "access";
    if tried.is_empty() {
        let text = "AMD GPU devices are not accessible in container: there is none to open".to_owned();
        return Line { name, ok: false, text };
    }
    let version = kfd.answer.clone().ok().flatten();
    let refused: Vec<String> = tried
        .into_iter()
        .chain([kfd])
        .filter_map(|tried| Some(format!("{} {}", tried.path.display(), tried.answer.err()?)))
        .collect();
    if !refused.is_empty() {
        let text = format!("AMD GPU devices are not accessible in container: {}", refused.join("; "));
        return Line { name, ok: false, text };
    }
    let version = version.map_or_else(String::new, |version| format!(" (KFD {version})"));
    Line { name, ok: true, text: format!("AMD GPU devices are accessible in container{version}") }
}

#[cfg(test)]
mod tests {
    use super::super::nodes::Node;
    use super::*;

    fn found(paths: &[&str]) -> Looked {
        Looked { found: paths.iter().map(|path| Node { path: path.into() }).collect(), ..Looked::default() }
    }

    fn tried(path: &str, answer: Result<Option<&str>, &str>) -> Tried {
        Tried { path: path.into(), answer: answer.map(|it| it.map(str::to_owned)).map_err(str::to_owned) }
    }

    fn said(verdict: &Verdict) -> Vec<(bool, &str)> {
        verdict.lines.iter().map(|line| (line.ok, line.text.as_str())).collect()
    }

    #[test]
    fn what_opens_is_told_with_kfds_version() {
        let renders = found(&["/dev/dri/renderD128", "/dev/dri/renderD129"]);
        let opened = ["/dev/dri/renderD128", "/dev/dri/renderD129"].map(|path| tried(path, Ok(None)));
        let kfd = tried("/dev/kfd", Ok(Some("1.18")));
        let verdict = of(&renders, &found(&["/dev/dri/card1"]), opened.into(), kfd);
        assert_eq!(
            said(&verdict),
            [
                (true, "Found AMD GPU render devices: /dev/dri/renderD128 /dev/dri/renderD129"),
                (true, "Found AMD GPU card devices: /dev/dri/card1"),
                (true, "AMD GPU devices are accessible in container (KFD 1.18)"),
            ]
        );
        assert!(verdict.ok);
    }

    #[test]
    fn one_that_does_not_open_is_enough_and_so_is_one_line() {
        let renders = found(&["/dev/dri/renderD128"]);
        let closed = vec![tried("/dev/dri/renderD128", Err("is closed"))];
        let verdict =
            of(&renders, &found(&["/dev/dri/card1"]), closed, tried("/dev/kfd", Err("is not there")));
        assert_eq!(
            said(&verdict)[2],
            (
                false,
                "AMD GPU devices are not accessible in container: /dev/dri/renderD128 is closed; /dev/kfd is not there"
            )
        );
        assert!(!verdict.ok);
        let opened = vec![tried("/dev/dri/renderD128", Ok(None))];
        let verdict = of(&renders, &Looked::default(), opened, tried("/dev/kfd", Ok(Some("1.18"))));
        assert_eq!(verdict.lines.iter().map(|line| line.ok).collect::<Vec<_>>(), [true, false, true]);
        assert!(!verdict.ok, "a ✗ and 0 would not go together");
    }

    #[test]
    fn without_a_node_each_line_says_why() {
        let others =
            Looked { others: vec!["/dev/dri/renderD128 is NVIDIA's".to_owned()], ..Looked::default() };
        let unlisted = Looked { unlisted: Some("there is no /dev/dri".to_owned()), ..Looked::default() };
        let verdict = of(&others, &unlisted, Vec::new(), tried("/dev/kfd", Ok(Some("1.18"))));
        let [render, card, access] = said(&verdict).try_into().unwrap();
        assert_eq!(render, (false, "Found no AMD GPU render devices: /dev/dri/renderD128 is NVIDIA's"));
        assert!(!card.0 && card.1.contains("there is no /dev/dri; the task needs tags"), "{card:?}");
        assert_eq!(access, (false, "AMD GPU devices are not accessible in container: there is none to open"));
    }
}
