//! `hooks`: a list for each moment of a container's life.

use super::{entries, places::find};
use crate::{
    Error, Quoted,
    cdi::{HOOK_NAMES, Hook},
    error::refuse,
    splice::{ARRAY, Members, OBJECT, Place, Splices, json},
};

/// Adds the hooks that are not there yet. Returned is the whole object if the bundle has none.
pub(super) fn extend(
    text: &str,
    place: Place,
    hooks: &[&Hook<'_>],
    splices: &mut Splices,
) -> Result<Option<String>, Error> {
    if let Some(hook) = hooks.iter().find(|hook| !HOOK_NAMES.contains(&&*hook.name)) {
        return refuse(format!("no container has a hook {}", Quoted(&hook.name)));
    }
    let mut members = Members::default();
    for name in HOOK_NAMES {
        let list = match place {
            Place::Here(object) => find(text, object, "hooks.", name)?,
            _ => Place::Absent,
        };
        let wanted: Vec<&&Hook<'_>> = hooks.iter().filter(|hook| hook.name == name).collect();
        if wanted.is_empty() {
            continue;
        }
        let present: Vec<entries::Hook<'_>> = entries::read(text, list, &["hooks.", name].concat())?;
        let mut missing: Vec<String> = Vec::new();
        for (at, hook) in wanted.iter().enumerate() {
            let repeated = wanted.iter().take(at).any(|earlier| earlier == hook);
            if !repeated && !present.iter().any(|present| present.is(hook)) {
                let mut new = Members::default();
                new.add("path", Some(json(&hook.path)));
                new.add("args", (!hook.args.is_empty()).then(|| json(&hook.args)));
                new.add("env", (!hook.env.is_empty()).then(|| json(&hook.env)));
                new.add("timeout", hook.timeout.map(|seconds| json(&seconds)));
                missing.push(["{", &new.0, "}"].concat());
            }
        }
        members.add(name, splices.extend(list, ARRAY, missing.join(",")));
    }
    Ok(splices.extend(place, OBJECT, members.0))
}
