//! Finds the packages that others need, and that so cannot be removed.

use std::collections::{BTreeMap, BTreeSet};

use super::stanza::{Stanza, all};
use super::{Database, Status, compare};

/// A package that is there, as far as others may need it.
struct Node<'a> {
    name: String,
    /// The package's own name and version, and what it provides.
    offers: Vec<Relation<'a>>,
    /// Dependencies, each a list of alternatives of which one must be there.
    depends: Vec<Vec<Relation<'a>>>,
}

/// `NAME (OP VERSION)`, one of the alternatives of a dependency.
#[derive(Debug, PartialEq, Eq)]
struct Relation<'a> {
    name: &'a str,
    version: Option<(&'a str, &'a str)>,
}

impl Database {
    /// The packages of `going` that cannot go, each with one that stays and needs it: by Depends and
    /// Pre-Depends, and only where nothing else that stays meets the dependency.
    pub(crate) fn needed(&self, going: &BTreeSet<String>) -> BTreeMap<String, String> {
        let nodes: Vec<Node<'_>> = self.installed().collect();
        let mut needed: BTreeMap<String, String> = BTreeMap::new();
        loop {
            let stays = |node: &Node<'_>| !going.contains(&node.name) || needed.contains_key(&node.name);
            let (staying, leaving): (Vec<_>, Vec<_>) = nodes.iter().partition(|node| stays(node));
            let mut found = BTreeMap::new();
            for node in &staying {
                for clause in &node.depends {
                    let does = |it: &&&Node<'_>| clause.iter().any(|relation| relation.is_met_by(it));
                    // Few leave: who stays is asked only where one of them would be missed.
                    if let Some(it) = leaving.iter().find(does)
                        && !staying.iter().any(|it| does(&it))
                    {
                        found.entry(it.name.clone()).or_insert_with(|| node.name.clone());
                    }
                }
            }
            if found.is_empty() {
                return needed;
            }
            needed.extend(found);
        }
    }

    /// Every package that is installed wholly or in part; not those that have left only their configuration.
    #[must_use]
    pub fn names(&self) -> BTreeSet<String> {
        self.installed().map(|node| node.name).collect()
    }

    /// Packages with which dpkg has begun and has not come to the end, by name. One that must be put there anew counts as
    /// half installed, however far it came.
    pub(crate) fn half_done(&self) -> Vec<(String, Status)> {
        let is_half = |name: String| {
            let there = self.there(&name).ok()??;
            let status = if there.must_be_anew { Status::HalfInstalled } else { there.status };
            let is_half = !matches!(status, Status::Installed | Status::ConfigFiles);
            is_half.then_some((name, status))
        };
        self.names().into_iter().filter_map(is_half).collect()
    }

    /// Whether a package must be unpacked anew before dpkg can do anything else with it.
    pub(crate) fn is_half_installed(&self, name: &str) -> bool {
        let there = self.there(name).ok().flatten();
        there.is_some_and(|it| it.must_be_anew || it.status == Status::HalfInstalled)
    }

    /// Whether a run of dpkg was killed, or is still running.
    pub(crate) fn is_interrupted(&self) -> bool {
        !self.updates.is_empty() || !self.half_done().is_empty()
    }

    fn installed(&self) -> impl Iterator<Item = Node<'_>> {
        let mut seen = BTreeSet::new();
        let texts = self.updates.iter().chain([&self.status]);
        texts.flat_map(|text| all(text)).filter_map(move |stanza| {
            let name = stanza.name(self.native.as_deref())?;
            if !seen.insert(name.clone()) {
                return None;
            }
            let status = stanza.field("Status")?.split_whitespace().nth(2)?;
            let version = Some(("=", stanza.field("Version")?));
            let mut offers = vec![Relation { name: stanza.field("Package")?, version }];
            let provides = stanza.field("Provides").unwrap_or_default();
            offers.extend(provides.split(',').filter_map(Relation::parse));
            let is_there = !matches!(status, "not-installed" | "config-files");
            is_there.then(|| Node { name, offers, depends: depends(&stanza) })
        })
    }
}

fn depends<'a>(stanza: &Stanza<'a>) -> Vec<Vec<Relation<'a>>> {
    let fields = ["Pre-Depends", "Depends"].into_iter().filter_map(|field| stanza.field(field));
    let clauses = fields.flat_map(|text| text.split(','));
    clauses.map(|clause| clause.split('|').filter_map(Relation::parse).collect()).collect()
}

impl<'a> Relation<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (name, version) = match text.split_once('(') {
            Some((name, version)) => (name, Some(version.split(')').next()?.trim())),
            None => (text, None),
        };
        let name = name.trim();
        // `python3:any` is met by python3 of any architecture.
        let name = name.split_once(':').map_or(name, |(name, _)| name);
        let version = version.map(|version| {
            let end = version.find(|c: char| !"<=>".contains(c)).unwrap_or(version.len());
            let (operator, version) = version.split_at(end);
            (operator, version.trim())
        });
        (!name.is_empty()).then_some(Self { name, version })
    }

    fn is_met_by(&self, node: &Node<'_>) -> bool {
        node.offers.iter().filter(|it| it.name == self.name).any(|it| match (self.version, it.version) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some((operator, wanted)), Some((_, version))) => {
                let order = compare(version, wanted);
                match operator {
                    "<<" => order.is_lt(),
                    "<=" | "<" => order.is_le(),
                    "=" | "" => order.is_eq(),
                    ">>" => order.is_gt(),
                    _ => order.is_ge(),
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database(status: &str) -> Database {
        let status = status.replace("@", "Status: install ok installed\nArchitecture: amd64\nVersion: 1.0-1");
        Database { status, updates: Vec::new(), native: Some("amd64".to_owned()) }
    }

    const STATUS: &str = "\
Package: app
@
Depends: library (>= 1.0), virtual | other, tool:any (>= 0.5)

Package: library
@
Pre-Depends: base

Package: base
@

Package: provider
@
Provides: virtual (= 2), more

Package: tool
@

Package: free
@
Depends: library

Package: gone
Status: deinstall ok config-files
Architecture: amd64
Version: 1.0-1
Depends: free
";

    fn needed(status: &str, going: &[&str]) -> Vec<(String, String)> {
        let going = going.iter().map(|&name| name.to_owned()).collect();
        database(status).needed(&going).into_iter().collect()
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, by)| ((*name).to_owned(), (*by).to_owned())).collect()
    }

    #[test]
    fn what_another_depends_on_stays_and_so_does_what_that_depends_on() {
        assert_eq!(needed(STATUS, &["library", "base"]), pairs(&[("base", "library"), ("library", "app")]));
        assert_eq!(needed(STATUS, &["library", "base", "app", "free"]), []);
        assert_eq!(
            needed(STATUS, &["app", "library", "base"]),
            pairs(&[("base", "library"), ("library", "free")])
        );
    }

    #[test]
    fn what_provides_the_name_is_needed_unless_an_alternative_stays() {
        assert_eq!(needed(STATUS, &["provider"]), pairs(&[("provider", "app")]));
        let other = format!("{STATUS}\nPackage: other\n@\n");
        assert_eq!(needed(&other, &["provider"]), []);
        assert_eq!(needed(&other, &["other"]), []);
        assert_eq!(needed(&other, &["provider", "other"]).len(), 1);
    }

    #[test]
    fn what_is_too_old_to_be_depended_on_is_not_needed() {
        let older = STATUS.replace("library (>= 1.0)", "library (>= 1.1)").replace("Depends: library\n", "");
        assert_eq!(needed(&older, &["library"]), []);
        let exact = STATUS.replace("virtual | other", "virtual (= 1)");
        assert_eq!(needed(&exact, &["provider"]), []);
    }

    #[test]
    fn what_is_removed_and_left_its_configuration_needs_nothing() {
        assert_eq!(needed(STATUS, &["free"]), []);
        assert_eq!(needed(STATUS, &["tool"]), pairs(&[("tool", "app")]));
    }
}
