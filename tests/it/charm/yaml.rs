//! charmcraft.yaml against the program: no tool checks an option's type, nor that anybody reads it.

use std::fs;
use std::path::Path;

use config::{Config, Managed};
use juju::{Event, Options, Role};
use serde_json::{Map, Value, json};

/// What Juju takes as the type of an option.
const TYPES: [&str; 5] = ["string", "int", "float", "boolean", "secret"];

pub(crate) fn yaml() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/charm/charmcraft.yaml");
    yaml_serde::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn options() -> Map<String, Value> {
    yaml()["config"]["options"].as_object().unwrap().clone()
}

#[test]
fn each_option_has_a_type_of_jujus_and_a_default_of_that_type() {
    for (name, option) in options() {
        let kind = option["type"].as_str().unwrap();
        assert!(TYPES.contains(&kind), "{name}: {kind}");
        let fits = match option.get("default") {
            None => true,
            Some(default) => match kind {
                "boolean" => default.is_boolean(),
                "string" => default.is_string(),
                _ => default.is_number(),
            },
        };
        assert!(fits, "{name}: {option}");
        assert!(option["description"].as_str().is_some_and(|text| text.len() > 20), "{name}");
    }
}

/// What cannot be anything is refused only by who looks at it.
#[test]
fn each_option_is_read_by_the_program() {
    for name in options().keys() {
        let options = Options(Map::from_iter([(name.clone(), json!({}))]));
        let read = [
            options.role().map(drop),
            options.remove_driver().map(drop),
            options.configuration(Role::Worker, Path::new("x")).map(drop),
        ];
        let errors: Vec<String> = read.into_iter().filter_map(|it| Some(it.err()?.to_string())).collect();
        assert_eq!(errors.len(), 1, "{name}: {errors:?}");
        assert!(errors[0].starts_with(&format!("{name}: ")), "{errors:?}");
    }
}

#[test]
fn the_defaults_are_those_of_a_machine_without_a_configuration() {
    let defaults: Map<String, Value> = options()
        .into_iter()
        .filter_map(|(name, option)| Some((name, option.get("default")?.clone())))
        .collect();
    let ours = Options(defaults).configuration(Role::Worker, Path::new("x")).unwrap();
    let none = Config::parse(Path::new("x"), "").unwrap();
    assert_eq!((ours.gpus, ours.needs_gpu), (Managed::On(()), false));
    assert_eq!((&ours.devices, &ours.tags, &ours.wrapper), (&none.devices, &none.tags, &none.wrapper));
    assert_eq!((&ours.restart, &ours.packages, &ours.rocm), (&none.restart, &none.packages, &none.rocm));
    assert_eq!((&ours.driver, &ours.repositories), (&none.driver, &none.repositories));
}

#[test]
fn the_actions_are_those_that_the_program_answers() {
    let yaml = yaml();
    let mut named: Vec<&str> = yaml["actions"].as_object().unwrap().keys().map(String::as_str).collect();
    let mut known: Vec<&str> =
        Event::ALL.iter().filter_map(|(name, _)| name.strip_prefix("action ")).collect();
    named.sort_unstable();
    known.sort_unstable();
    assert_eq!(named, known);
}
