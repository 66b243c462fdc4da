use serde_json::Value;

use super::{Redactor, line};

impl Redactor {
    /// Takes names out of an answer of ours, whose words `key` and `token` guard nothing.
    pub(crate) fn names_in(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                let inside = self.root.as_ref().map_or_else(|| text.clone(), |root| text.replace(root, "/"));
                *text = line::identities(&inside, &self.names, &mut 0);
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.names_in(item)),
            Value::Object(map) => map.values_mut().for_each(|value| self.names_in(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}
