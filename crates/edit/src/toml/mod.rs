//! Edits of TOML. toml_edit locates each key and value; an edit splices, and leaves all other bytes alone.
//! docs/dev/dependencies.md says which bytes toml_edit would change if it wrote its document out.

mod array;
mod comments;
mod insert;
mod remove;
mod tree;

use serde_json::Value;
use toml_edit::Array;

use crate::document::{Before, Document};
use crate::{Fault, dotted, lines};
use tree::known;

pub(crate) use tree::Tree;

impl Tree {
    /// A text as JSON has it; a date becomes its text.
    pub(crate) fn read(text: &str) -> Result<Value, Fault> {
        Ok(tree::json(Self::parse(text.to_owned())?.item()))
    }

    fn array(&self, path: &[String]) -> Result<&Array, Fault> {
        let found = self.find(path).and_then(|step| step.item.as_array());
        found.ok_or_else(|| self.blocked(path, "a list"))
    }
}

impl Document for Tree {
    const TABLE: &str = "a table";

    fn parse(text: String) -> Result<Self, Fault> {
        let raw = text.clone();
        toml_edit::Document::parse(text).map(Self).map_err(|error| Fault {
            line: lines::line_number(&raw, error.span().map_or(0, |span| span.start)),
            problem: error.message().replace('\n', ", "),
        })
    }

    fn text(&self) -> &str {
        self.0.raw()
    }

    fn is_empty(&self) -> bool {
        self.text().trim().is_empty()
    }

    fn comments(&self) -> Vec<&str> {
        comments::comments(self.text())
    }

    fn value(&self, path: &[String]) -> Result<Option<Value>, Fault> {
        let item = if path.is_empty() { Some(self.item()) } else { self.find(path).map(|step| step.item) };
        Ok(item.map(tree::json))
    }

    fn blocked(&self, path: &[String], needed: &str) -> Fault {
        let step = self.find(path);
        let start = step.and_then(|step| step.key.span()).map_or(0, |span| span.start);
        let what = tree::what(step.map_or(self.item(), |step| step.item));
        let problem = format!("{} is {what} where {needed} is needed", dotted(path));
        Fault { line: lines::line_number(self.text(), start), problem }
    }

    fn insert(&self, path: &[String], value: &Value) -> Result<String, Fault> {
        insert::insert(self, path, value)
    }

    fn replace(&self, path: &[String], value: &Value) -> Result<String, Fault> {
        match self.find(path).and_then(|step| tree::plain(step.item)) {
            Some(old) => Ok(lines::spliced(self.text(), [(known(old.span())?, tree::spelled(value)?)])),
            None => Err(self.blocked(path, "a value")),
        }
    }

    fn add(&self, path: &[String], member: &Value, _fresh: &Value) -> Result<String, Fault> {
        array::added(self.text(), self.array(path)?, &tree::spelled(member)?)
    }

    fn cut(&self, path: &[String], nth: usize) -> Result<String, Fault> {
        array::without(self.text(), self.array(path)?, nth)
    }

    fn restore(&self, path: &[String], before: &Before<'_, Self>) -> Result<String, Fault> {
        let was = before.document.find(&before.path(path)?);
        let [now, was] = [self.find(path), was].map(|step| tree::plain(step?.item)?.span());
        match (now, was) {
            (Some(now), Some(was)) => {
                let old = before.document.text().get(was).unwrap_or_default();
                Ok(lines::spliced(self.text(), [(now, old.to_owned())]))
            }
            _ => self.remove(path, before),
        }
    }

    fn remove(&self, path: &[String], before: &Before<'_, Self>) -> Result<String, Fault> {
        remove::removed(self, path, before)
    }
}
