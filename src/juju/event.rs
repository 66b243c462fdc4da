//! What a charm is called for: a hook, or an action.

use super::Environment;

/// What has happened to the unit, or what somebody asks of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    Install,
    ConfigChanged,
    UpdateStatus,
    UpgradeCharm,
    Start,
    Stop,
    Remove,
    /// One that asks for nothing here: a relation's, storage's, leadership's.
    Nothing,
    Action(Action),
}

/// The hooks that do something, by Juju's names.
const HOOKS: [(&str, Event); 7] = [
    ("install", Event::Install),
    ("config-changed", Event::ConfigChanged),
    ("update-status", Event::UpdateStatus),
    ("upgrade-charm", Event::UpgradeCharm),
    ("start", Event::Start),
    ("stop", Event::Stop),
    ("remove", Event::Remove),
];

/// What an operator can run on a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Detect,
    Doctor,
    Status,
    Plan,
    Apply,
    Undo,
    Report,
    LeaseList,
}

/// Nobody says which hook this is, or the name is none that rocworker knows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownEvent {
    #[error(
        "neither JUJU_DISPATCH_PATH nor JUJU_HOOK_NAME says which hook this is: run it as a charm's dispatch, or name \
         the hook, as in rocworker hook config-changed"
    )]
    Unnamed,
    #[error(
        "there is nothing to do in a hook named {0}: install, config-changed, start, update-status, upgrade-charm, stop and \
         remove are the ones that do something, and actions/NAME"
    )]
    Hook(String),
    #[error("there is no action named {0}")]
    Action(String),
}

impl Event {
    /// The name that was given (from another charm's own hook), else what Juju says. `actions/NAME` is an action. A hook
    /// of Juju's that is not known asks for nothing: a later Juju may have more of them, and the unit is to go on.
    pub fn of(given: Option<&str>, environment: &Environment) -> Result<Self, UnknownEvent> {
        if let Some(name) = given {
            return match name.strip_prefix("actions/") {
                Some(action) => Action::named(action).map(Self::Action),
                None => Self::named(name).ok_or_else(|| UnknownEvent::Hook(name.to_owned())),
            };
        }
        let path = environment.dispatch_path.as_deref();
        let action = path.and_then(|path| path.strip_prefix("actions/"));
        if let Some(name) = action.or(environment.action_name.as_deref()) {
            return Action::named(name).map(Self::Action);
        }
        let hook = path.map(|path| path.strip_prefix("hooks/").unwrap_or(path));
        let name = hook.or(environment.hook_name.as_deref()).ok_or(UnknownEvent::Unnamed)?;
        Ok(Self::named(name).unwrap_or(Self::Nothing))
    }

    fn named(name: &str) -> Option<Self> {
        HOOKS.iter().find(|(known, _)| *known == name).map(|(_, event)| *event)
    }

    /// As Juju's people call it.
    pub fn described(self) -> String {
        if let Self::Action(action) = self {
            return format!("action {}", action.name());
        }
        let hook = HOOKS.iter().find(|(_, event)| *event == self);
        hook.map_or_else(|| "hook".to_owned(), |(name, _)| format!("hook {name}"))
    }
}

impl Action {
    pub const ALL: [Self; 8] = [
        Self::Detect,
        Self::Doctor,
        Self::Status,
        Self::Plan,
        Self::Apply,
        Self::Undo,
        Self::Report,
        Self::LeaseList,
    ];

    /// Its name in charmcraft.yaml.
    pub fn name(self) -> &'static str {
        match self {
            Self::Detect => "detect",
            Self::Doctor => "doctor",
            Self::Status => "status",
            Self::Plan => "plan",
            Self::Apply => "apply",
            Self::Undo => "undo",
            Self::Report => "report",
            Self::LeaseList => "lease-list",
        }
    }

    fn named(name: &str) -> Result<Self, UnknownEvent> {
        let found = Self::ALL.into_iter().find(|action| action.name() == name);
        found.ok_or_else(|| UnknownEvent::Action(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(dispatch: &str, hook: &str, action: &str) -> Environment {
        Environment::of(|name| match name {
            "JUJU_DISPATCH_PATH" => Some(dispatch.to_owned()),
            "JUJU_HOOK_NAME" => Some(hook.to_owned()),
            "JUJU_ACTION_NAME" => Some(action.to_owned()),
            _ => None,
        })
    }

    #[test]
    fn an_event_is_what_was_given_then_what_is_dispatched_then_what_a_hooks_link_would_say() {
        for (given, environment, expected) in [
            (None, said("hooks/install", "", ""), Ok(Event::Install)),
            (None, said("hooks/juju-info-relation-joined", "", ""), Ok(Event::Nothing)),
            (None, said("actions/lease-list", "", "lease-list"), Ok(Event::Action(Action::LeaseList))),
            (None, said("", "", "doctor"), Ok(Event::Action(Action::Doctor))),
            (None, said("", "upgrade-charm", ""), Ok(Event::UpgradeCharm)),
            (Some("config-changed"), said("hooks/start", "start", ""), Ok(Event::ConfigChanged)),
            (Some("actions/plan"), said("hooks/start", "start", ""), Ok(Event::Action(Action::Plan))),
            (None, said("", "", ""), Err(UnknownEvent::Unnamed)),
            (Some("reinstall"), said("", "", ""), Err(UnknownEvent::Hook("reinstall".to_owned()))),
            (None, said("hooks/of-a-later-juju", "", ""), Ok(Event::Nothing)),
            (None, said("actions/format", "", ""), Err(UnknownEvent::Action("format".to_owned()))),
        ] {
            assert_eq!(Event::of(given, &environment), expected, "{given:?} {environment:?}");
        }
    }
}
