//! A machine whose files were read elsewhere gives the answers that it gives beneath `--root`.

use config::Config;
use host::facts::Facts;
use host::timestamp::Timestamp;
use layout::{JUDGED_AT, Nodes};
use rocworker::detection::Detection;
use rocworker::doctor::examine;
use rocworker::health::{Observer, rules};
use root::Root;
use serde_json::{Value, json};
use telemetry::exporter::Exporter;
use telemetry::patient::{DEADLINE, PATIENCE, Patient};
use telemetry::sample::{Sample, count};
use telemetry::samples::samples;

use crate::observe::metrics::machines;

fn shown(samples: &[Sample]) -> Vec<String> {
    // How long it took differs from run to run.
    let is_time = |sample: &&Sample| sample.metric.name == "rocm_exporter_scrape_duration_seconds";
    samples
        .iter()
        .filter(|it| !is_time(it))
        .map(|it| format!("{} {:?} {}", it.metric.name, it.labels, it.value))
        .collect()
}

/// What each command finds, its paths as on the machine itself.
fn answers(root: &Root) -> Vec<(&'static str, Value)> {
    let facts = Facts::read(root);
    let now = JUDGED_AT;
    let diagnosis =
        examine(root, &Config::read(root).unwrap(), &facts, None, None, Timestamp::of(std::time::UNIX_EPOCH));
    let scraped = Patient::new(root.place(), PATIENCE, DEADLINE).run(move |root| {
        let scraped = Exporter::default().scrape(root, count(now));
        (
            shown(&samples(&scraped)),
            scraped.faults.iter().map(|fault| fault.reason.to_string()).collect::<Vec<_>>(),
        )
    });
    let judged = Observer::new(root).judge(root, &rules::in_force(root).0, None, now).health;
    let answers = [
        ("detect", serde_json::to_value(Detection::new(&facts)).unwrap()),
        ("doctor", serde_json::to_value(diagnosis).unwrap()),
        ("metrics", json!(scraped.unwrap())),
        ("health", serde_json::to_value(judged).unwrap()),
    ];
    let prefix = root.shown("/").display().to_string();
    let as_there = |answer: Value| match &*prefix {
        "/" => answer,
        folder => {
            serde_json::from_str(&answer.to_string().replace(folder.trim_end_matches('/'), "")).unwrap()
        }
    };
    answers.map(|(command, answer)| (command, as_there(answer))).into()
}

#[test]
fn each_machine_says_in_memory_what_it_says_beneath_its_folder() {
    for (name, machine) in machines() {
        let folder = support::detect::scratch();
        machine.lay_out(folder.path(), Nodes::Recorded).unwrap();
        let beneath = Root::open(folder.path()).unwrap();
        let in_memory = Root::of_files(support::files::of(&beneath));
        for ((command, said), (_, expected)) in answers(&in_memory).into_iter().zip(answers(&beneath)) {
            assert!(said == expected, "{name}, {command}:\n{said:#}\nbut beneath a folder:\n{expected:#}");
        }
    }
}
