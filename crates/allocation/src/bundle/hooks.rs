//! `hooks`: a list for each moment of a container's life.

use std::borrow::Cow;

use serde::Serialize;

use super::{Doubt, Error, entries, places::Key};
use crate::{
    cdi::{HOOK_NAMES, Hook},
    json::Scanner,
    splice::{Brackets, Members, Place, Splices, elements},
};

/// Adds the hooks that are not there yet. Returned is the whole object if the bundle has none.
pub(super) fn extend(
    text: &str,
    place: Place,
    hooks: &[&Hook<'_>],
    splices: &mut Splices,
) -> Result<Option<String>, Error> {
    if let Some(hook) = hooks.iter().find(|hook| !HOOK_NAMES.contains(&&*hook.name)) {
        return Err(Error::UnknownHook { name: hook.name.to_string() });
    }
    let lists = lists(text, place)?;
    let mut members = Members::default();
    for (name, list) in HOOK_NAMES.into_iter().zip(lists) {
        let wanted: Vec<&&Hook<'_>> = hooks.iter().filter(|hook| hook.name == name).collect();
        if wanted.is_empty() {
            continue;
        }
        let present: Vec<entries::Hook<'_>> = entries::read(text, list, &format!("hooks.{name}"))?;
        let mut missing = Vec::new();
        for (at, hook) in wanted.iter().enumerate() {
            let repeated = wanted.iter().take(at).any(|earlier| earlier == hook);
            if !repeated && !present.iter().any(|present| present.is(hook)) {
                missing.push(New {
                    path: &hook.path,
                    args: &hook.args,
                    env: &hook.env,
                    timeout: hook.timeout,
                });
            }
        }
        members.add(name, splices.extend(list, Brackets::Array, elements(&missing)));
    }
    Ok(splices.extend(place, Brackets::Object, members.0))
}

/// Where the list of each name is.
fn lists(text: &str, place: Place) -> Result<[Place; HOOK_NAMES.len()], Error> {
    let mut lists = [Place::Absent; HOOK_NAMES.len()];
    if let Place::Here(container) = place {
        let mut doubt = Doubt::default();
        Scanner::at(text, container.span.start).object(|scanner, key| {
            match HOOK_NAMES.into_iter().zip(&mut lists).find(|(name, _)| key.names(name)) {
                Some((name, list)) => doubt.whole(scanner, Key("hooks.", name), Brackets::Array, list),
                None => scanner.skip().map(drop),
            }
        })?;
        if let Some(error) = doubt.0 {
            return Err(error);
        }
    }
    Ok(lists)
}

/// A hook that is added.
#[derive(Serialize)]
struct New<'h> {
    path: &'h str,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    args: &'h [Cow<'h, str>],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    env: &'h [Cow<'h, str>],
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<i64>,
}
