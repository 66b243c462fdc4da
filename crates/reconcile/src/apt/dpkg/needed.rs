//! Finds the packages that others need, and that so cannot be removed.

use std::collections::{BTreeMap, BTreeSet};

use super::{Database, There, compare};

/// A package that is there, as far as others may need it.
struct Node<'a> {
    name: &'a str,
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
        let nodes: Vec<Node<'_>> = self.installed().map(Node::of).collect();
        let mut needed: BTreeMap<String, String> = BTreeMap::new();
        loop {
            let stays = |node: &Node<'_>| !going.contains(node.name) || needed.contains_key(node.name);
            let (staying, leaving): (Vec<_>, Vec<_>) = nodes.iter().partition(|node| stays(node));
            let mut found = BTreeMap::new();
            for node in &staying {
                for clause in &node.depends {
                    let does = |it: &&&Node<'_>| clause.iter().any(|relation| relation.is_met_by(it));
                    // Few leave: who stays is asked only where one of them would be missed.
                    if let Some(it) = leaving.iter().find(does)
                        && !staying.iter().any(|it| does(&it))
                    {
                        found.entry(it.name.to_owned()).or_insert_with(|| node.name.to_owned());
                    }
                }
            }
            if found.is_empty() {
                return needed;
            }
            needed.extend(found);
        }
    }
}

impl<'a> Node<'a> {
    fn of((name, package): (&'a String, &'a There)) -> Self {
        let version = Some(("=", package.version.as_str()));
        let own = Relation { name: name.split(':').next().unwrap_or(name), version };
        let provided = package.provides.split(',').filter_map(Relation::parse);
        let clauses = package.depends.split(',');
        Self {
            name,
            offers: std::iter::once(own).chain(provided).collect(),
            depends: clauses.map(|clause| clause.split('|').filter_map(Relation::parse).collect()).collect(),
        }
    }
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

    /// Packages of version 1.0-1, each with what it provides and what it depends on.
    fn database(lines: &str) -> Database {
        let record = |line: &str| {
            let [name, status, provides, depends] = line.split(';').collect::<Vec<_>>().try_into().unwrap();
            format!("{name}\x1famd64\x1f{status}\x1f1.0-1\x1f{provides}\x1f{depends}\x1f\x1e")
        };
        let lines = lines.replace('@', "install ok installed");
        Database::parse(&lines.lines().map(record).collect::<String>()).unwrap()
    }

    const STATUS: &str = "\
app;@;;, library (>= 1.0), virtual | other, tool:any (>= 0.5)
library;@;;base, 
base;@;;, 
provider;@;virtual (= 2), more;, 
tool;@;;, 
free;@;;, library
gone;deinstall ok config-files;;, free
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
        let other = format!("{STATUS}other;@;;\n");
        assert_eq!(needed(&other, &["provider"]), []);
        assert_eq!(needed(&other, &["other"]), []);
        assert_eq!(needed(&other, &["provider", "other"]).len(), 1);
    }

    #[test]
    fn what_is_too_old_to_be_depended_on_is_not_needed() {
        let older = STATUS.replace("library (>= 1.0)", "library (>= 1.1)").replace(", library\n", "\n");
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
