//! What Juju says of a hook by its environment.

/// The variables of a hook's context that matter here, as data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// `hooks/install`, `actions/detect`.
    pub dispatch_path: Option<String>,
    pub hook_name: Option<String>,
    pub action_name: Option<String>,
    /// `rocworker/0`.
    pub unit: Option<String>,
    /// What the model's proxies are called for programs: `http_proxy` and the like.
    pub proxies: Vec<(&'static str, String)>,
}

/// Juju does not name its proxies as programs do, so that a charm decides which of its programs use them.
const PROXIES: [(&str, [&str; 2]); 3] = [
    ("JUJU_CHARM_HTTP_PROXY", ["http_proxy", "HTTP_PROXY"]),
    ("JUJU_CHARM_HTTPS_PROXY", ["https_proxy", "HTTPS_PROXY"]),
    ("JUJU_CHARM_NO_PROXY", ["no_proxy", "NO_PROXY"]),
];

impl Environment {
    /// What it says: `look_up` tells a variable's value. An empty one is one that is not there.
    pub fn of(look_up: impl Fn(&str) -> Option<String>) -> Self {
        let said = |name: &str| look_up(name).filter(|value| !value.is_empty());
        let proxies = PROXIES.iter().filter_map(|(name, as_programs)| Some((said(name)?, as_programs)));
        Self {
            dispatch_path: said("JUJU_DISPATCH_PATH"),
            hook_name: said("JUJU_HOOK_NAME"),
            action_name: said("JUJU_ACTION_NAME"),
            unit: said("JUJU_UNIT_NAME"),
            proxies: proxies
                .flat_map(|(value, names)| names.iter().map(move |name| (*name, value.clone())))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!((environment.hook_name, environment.unit.as_deref()), (None, Some("rocworker/0")));
    }
}
