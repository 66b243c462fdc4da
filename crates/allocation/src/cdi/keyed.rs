//! Objects whose unknown keys are kept by name.
//!
//! serde's derive can refuse unknown keys or forget them, and its `flatten` reads every object twice.

use std::{borrow::Cow, fmt, marker::PhantomData};

use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};

use super::{Device, DeviceNode, Edits, Hook, Mount, Spec};

/// An object with these keys.
trait Keyed<'de>: Default {
    const WHAT: &'static str;
    const KEYS: &'static [&'static str];

    /// Takes the value of one of [`Keyed::KEYS`].
    fn set<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error>;

    fn unknown(&mut self) -> &mut Vec<String>;
}

struct KeyedVisitor<T>(PhantomData<T>);

impl<'de, T: Keyed<'de>> Visitor<'de> for KeyedVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::WHAT)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let mut value = T::default();
        let mut seen = 0_u32;
        while let Some(Text(key)) = map.next_key()? {
            let Some(at) = T::KEYS.iter().position(|known| *known == key) else {
                map.next_value::<IgnoredAny>()?;
                value.unknown().push(key.into_owned());
                continue;
            };
            if seen & (1 << at) != 0 {
                return Err(A::Error::custom(format_args!("{} twice in {}", T::KEYS[at], T::WHAT)));
            }
            seen |= 1 << at;
            value.set(T::KEYS[at], &mut map)?;
        }
        Ok(value)
    }
}

/// A string, borrowed where it has no escapes; `Cow` alone always copies.
struct Text<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(TextVisitor)
    }
}

fn text<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Cow<'de, str>, A::Error> {
    map.next_value().map(|Text(text)| text)
}

/// A string that may be null, which means that it is not there.
fn optional_text<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Option<Cow<'de, str>>, A::Error> {
    map.next_value().map(|text: Option<Text<'de>>| text.map(|Text(text)| text))
}

/// A list that may be null, which is the same as empty.
fn list<'de, A: MapAccess<'de>, T: Deserialize<'de>>(map: &mut A) -> Result<Vec<T>, A::Error> {
    map.next_value().map(|list: Option<Vec<T>>| list.unwrap_or_default())
}

fn texts<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Vec<Cow<'de, str>>, A::Error> {
    list(map).map(|list| list.into_iter().map(|Text(text)| text).collect())
}

/// Whether there is any annotation: of these, nothing else matters here.
fn annotated<'de, A: MapAccess<'de>>(map: &mut A) -> Result<bool, A::Error> {
    let annotations: Option<std::collections::BTreeMap<String, IgnoredAny>> = map.next_value()?;
    Ok(annotations.is_some_and(|annotations| !annotations.is_empty()))
}

macro_rules! keyed {
    ($type:ident, $what:literal, $unknown:ident, |$value:ident, $map:ident| { $($key:literal => $set:expr,)* }) => {
        impl<'de> Keyed<'de> for $type<'de> {
            const WHAT: &'static str = $what;
            const KEYS: &'static [&'static str] = &[$($key),*];

            fn set<A: MapAccess<'de>>(&mut self, key: &str, $map: &mut A) -> Result<(), A::Error> {
                let $value = self;
                match key {
                    $($key => $set,)*
                    _ => {}
                }
                Ok(())
            }

            fn unknown(&mut self) -> &mut Vec<String> {
                &mut self.$unknown
            }
        }

        impl<'de: 'a, 'a> Deserialize<'de> for $type<'a> {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_map(KeyedVisitor::<$type<'de>>(PhantomData))
            }
        }
    };
}

keyed!(Spec, "a CDI spec", unknown, |spec, map| {
    "cdiVersion" => spec.version = text(map)?,
    "kind" => spec.kind = text(map)?,
    "annotations" => spec.annotated = annotated(map)?,
    "devices" => spec.devices = list(map)?,
    "containerEdits" => spec.edits = map.next_value::<Option<Edits<'de>>>()?.unwrap_or_default(),
});

keyed!(Device, "a device", unknown, |device, map| {
    "name" => device.name = text(map)?,
    "annotations" => device.annotated = annotated(map)?,
    "containerEdits" => device.edits = map.next_value()?,
});

keyed!(Edits, "container edits", others, |edits, map| {
    "env" => edits.env = texts(map)?,
    "deviceNodes" => edits.device_nodes = list(map)?,
    "mounts" => edits.mounts = list(map)?,
    "hooks" => edits.hooks = list(map)?,
    "additionalGids" => edits.additional_gids = list(map)?,
});

keyed!(DeviceNode, "a device node", unknown, |node, map| {
    "path" => node.path = text(map)?,
    "hostPath" => node.host_path = optional_text(map)?,
    "type" => node.kind = optional_text(map)?,
    "major" => node.major = map.next_value()?,
    "minor" => node.minor = map.next_value()?,
    "fileMode" => node.file_mode = map.next_value()?,
    "permissions" => node.permissions = optional_text(map)?,
    "uid" => node.uid = map.next_value()?,
    "gid" => node.gid = map.next_value()?,
});

keyed!(Mount, "a mount", unknown, |mount, map| {
    "hostPath" => mount.host_path = text(map)?,
    "containerPath" => mount.container_path = text(map)?,
    "options" => mount.options = texts(map)?,
    "type" => mount.kind = optional_text(map)?,
});

keyed!(Hook, "a hook", unknown, |hook, map| {
    "hookName" => hook.name = text(map)?,
    "path" => hook.path = text(map)?,
    "args" => hook.args = texts(map)?,
    "env" => hook.env = texts(map)?,
    "timeout" => hook.timeout = map.next_value()?,
});
