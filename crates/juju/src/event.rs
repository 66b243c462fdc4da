//! What Juju calls a charm for, by its environment: a hook, or an action.

/// The variables of a hook's context that matter here, as data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// `hooks/install` or `actions/detect`, or a hook's name alone.
    pub event: Option<String>,
    /// `rocworker/0`.
    pub unit: Option<String>,
    /// The model's proxies, by the names that programs read: `http_proxy` and the like.
    pub proxies: Vec<(&'static str, String)>,
}

/// Juju does not name its proxies as programs do, so that a charm decides which of its programs use them.
const PROXIES: [(&str, [&str; 2]); 3] = [
    ("JUJU_CHARM_HTTP_PROXY", ["http_proxy", "HTTP_PROXY"]),
    ("JUJU_CHARM_HTTPS_PROXY", ["https_proxy", "HTTPS_PROXY"]),
    ("JUJU_CHARM_NO_PROXY", ["no_proxy", "NO_PROXY"]),
];

impl Environment {
    /// `look_up` gives a variable's value. An empty one counts as absent.
    pub fn of(look_up: impl Fn(&str) -> Option<String>) -> Self {
        let value = |name: &str| look_up(name).filter(|value| !value.is_empty());
        let action = || value("JUJU_ACTION_NAME").map(|name| format!("actions/{name}"));
        let proxies = PROXIES.iter().filter_map(|(name, as_programs)| Some((value(name)?, as_programs)));
        Self {
            event: value("JUJU_DISPATCH_PATH").or_else(action).or_else(|| value("JUJU_HOOK_NAME")),
            unit: value("JUJU_UNIT_NAME"),
            proxies: proxies
                .flat_map(|(value, names)| names.iter().map(move |name| (*name, value.clone())))
                .collect(),
        }
    }
}

/// What has happened to the unit, or what an operator asks of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    Install,
    ConfigChanged,
    UpdateStatus,
    UpgradeCharm,
    Start,
    Stop,
    Remove,
    /// A hook that asks for nothing here: a relation's, storage's, leadership's.
    Other,
    /// The actions, which an operator runs on a unit.
    Detect,
    Doctor,
    Status,
    Plan,
    Apply,
    Undo,
    Report,
    LeaseList,
}

impl Event {
    /// Every event that is answered, by its kind and Juju's name. charmcraft.yaml lists the actions.
    pub const ALL: [(&str, Self); 15] = [
        ("hook install", Self::Install),
        ("hook config-changed", Self::ConfigChanged),
        ("hook update-status", Self::UpdateStatus),
        ("hook upgrade-charm", Self::UpgradeCharm),
        ("hook start", Self::Start),
        ("hook stop", Self::Stop),
        ("hook remove", Self::Remove),
        ("action detect", Self::Detect),
        ("action doctor", Self::Doctor),
        ("action status", Self::Status),
        ("action plan", Self::Plan),
        ("action apply", Self::Apply),
        ("action undo", Self::Undo),
        ("action report", Self::Report),
        ("action lease-list", Self::LeaseList),
    ];

    /// The event that was named (from another charm's own hook), else Juju's. `actions/NAME` is an action. An unknown
    /// hook of Juju's asks for nothing: a later Juju may have more of them, and the unit must go on.
    ///
    /// # Errors
    /// A sentence where no event is named, or one that does not exist.
    pub fn of(given: Option<&str>, environment: &Environment) -> Result<Self, String> {
        let path = given.or(environment.event.as_deref()).ok_or(
            "neither JUJU_DISPATCH_PATH nor JUJU_HOOK_NAME says which hook this is: run it as a charm's dispatch, or name \
             the hook, as in rocworker hook config-changed",
        )?;
        let action = path.strip_prefix("actions/");
        let named = match action {
            Some(action) => format!("action {action}"),
            None => format!("hook {}", path.strip_prefix("hooks/").unwrap_or(path)),
        };
        match (Self::ALL.iter().find(|(known, _)| *known == named), action) {
            (Some((_, event)), _) => Ok(*event),
            (None, Some(action)) => Err(format!("there is no action named {action}")),
            (None, None) if given.is_some() => Err(format!(
                "there is nothing to do in a hook named {path}: install, config-changed, start, update-status, \
                 upgrade-charm, stop and remove are the ones that do something, and actions/NAME"
            )),
            (None, None) => Ok(Self::Other),
        }
    }

    /// `hook install`, `action detect`.
    pub fn described(self) -> &'static str {
        Self::ALL.iter().find(|(_, event)| *event == self).map_or("hook", |(described, _)| described)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_what_was_given_then_what_is_dispatched_then_what_a_hooks_link_would_say() {
        let unknown_hook = "there is nothing to do in a hook named reinstall: ";
        for (given, [dispatch, hook, action], expected) in [
            (None, ["hooks/install", "", ""], Ok(Event::Install)),
            (None, ["hooks/juju-info-relation-joined", "", ""], Ok(Event::Other)),
            (None, ["actions/lease-list", "", "lease-list"], Ok(Event::LeaseList)),
            (None, ["", "", "doctor"], Ok(Event::Doctor)),
            (None, ["", "upgrade-charm", ""], Ok(Event::UpgradeCharm)),
            (Some("config-changed"), ["hooks/start", "start", ""], Ok(Event::ConfigChanged)),
            (Some("actions/plan"), ["hooks/start", "start", ""], Ok(Event::Plan)),
            (None, ["", "", ""], Err("neither JUJU_DISPATCH_PATH nor JUJU_HOOK_NAME says")),
            (Some("reinstall"), ["", "", ""], Err(unknown_hook)),
            (None, ["hooks/of-a-later-juju", "", ""], Ok(Event::Other)),
            (None, ["actions/format", "", ""], Err("there is no action named format")),
        ] {
            let environment = Environment::of(|name| match name {
                "JUJU_DISPATCH_PATH" => Some(dispatch.to_owned()),
                "JUJU_HOOK_NAME" => Some(hook.to_owned()),
                "JUJU_ACTION_NAME" => Some(action.to_owned()),
                _ => None,
            });
            match (Event::of(given, &environment), expected) {
                (Err(why), Err(begin)) => assert!(why.starts_with(begin), "{why}"),
                (event, expected) => {
                    assert_eq!(event, expected.map_err(str::to_owned), "{given:?} {environment:?}");
                }
            }
        }
    }

    #[test]
    fn proxies_are_handed_on_by_the_names_that_programs_read() {
        let environment = Environment::of(|name| match name {
            "JUJU_CHARM_HTTP_PROXY" => Some("http://p:3128".to_owned()),
            "JUJU_CHARM_NO_PROXY" => Some("10.0.0.0/8".to_owned()),
            "JUJU_HOOK_NAME" => Some(String::new()),
            "JUJU_UNIT_NAME" => Some("rocworker/0".to_owned()),
            _ => None,
        });
        let of = |name, value: &str| (name, value.to_owned());
        assert_eq!(
            environment.proxies,
            [
                of("http_proxy", "http://p:3128"),
                of("HTTP_PROXY", "http://p:3128"),
                of("no_proxy", "10.0.0.0/8"),
                of("NO_PROXY", "10.0.0.0/8"),
            ]
        );
        assert_eq!((environment.event, environment.unit.as_deref()), (None, Some("rocworker/0")));
    }
}
