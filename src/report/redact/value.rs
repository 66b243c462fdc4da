use serde_json::{Map, Value};

use super::{MARK, Redactor, is_secret, line};

impl Redactor {
    /// Takes secrets out of a JSON value: by the keys, and in each string as in a text. Says in how many places.
    pub(crate) fn value(&self, value: &mut Value) -> usize {
        match value {
            Value::String(text) => self.string(text),
            Value::Array(items) => items.iter_mut().map(|item| self.value(item)).sum(),
            Value::Object(map) => self.object(map),
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
    }

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

    fn object(&self, map: &mut Map<String, Value>) -> usize {
        let mut places = 0;
        for (mut key, mut value) in std::mem::take(map) {
            if is_secret(&key) && !value.is_null() {
                value = Value::String(MARK.to_owned());
                places += 1;
            } else {
                places += self.value(&mut value);
            }
            // A registry's address may carry a password, and stands as a key.
            places += self.string(&mut key);
            map.insert(key, value);
        }
        places
    }

    fn string(&self, text: &mut String) -> usize {
        let redacted = self.text(text);
        *text = redacted.text;
        redacted.places
    }
}
