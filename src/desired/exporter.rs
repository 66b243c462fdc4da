//! rocm-exporter.service: what it runs, and what becomes of another's unit of that name.

use config::{Component, Config, ExistingUnit, Exporter};
use host::facts::Facts;
use minijinja::context;
use reconcile::{Desired, Effect};
use render::{self, Templates};

use super::own_unit::{EXPORTER, Line};
use crate::exporter_unit::{ExporterUnit, FILE, Foreign, WebConfig};

/// The desired state of the exporter's unit.
///
/// # Errors
/// When the template does not give a unit that runs the exporter.
pub fn actions(
    config: &Config,
    facts: &Facts,
    templates: &Templates,
    observed: &ExporterUnit,
) -> Result<Desired, render::Error> {
    if !EXPORTER.is_wanted(config, facts) {
        return Ok(Desired::default());
    }
    let mut notes = Desired::default();
    let about = Component::Exporter.as_ref();
    let Exporter { existing, .. } = config.exporter;
    if let Some(foreign) = &observed.foreign {
        let text = of_foreign(foreign, existing);
        match existing {
            ExistingUnit::Replace if !foreign.is_link => notes.note(about, text),
            ExistingUnit::Replace => notes.problem(about, text),
            ExistingUnit::Leave => notes.note(about, text),
        }
        if foreign.is_link || existing == ExistingUnit::Leave {
            return Ok(notes);
        }
    }
    let program = match &observed.program {
        Ok(program) => program,
        Err(why) => return Ok(EXPORTER.without_program(why)),
    };
    let group = match &observed.web_config {
        WebConfig::Readable => None,
        WebConfig::ByGroup(group) => Some(group),
        WebConfig::Unreadable(why) => {
            notes.problem(about, format!("exporter.web-config: {why}"));
            // A unit that runs is worth more than one that cannot start.
            notes.leave(about);
            return Ok(notes);
        }
    };
    let line = Line { program, arguments: arguments(&config.exporter), context: context! { group } };
    let back = if observed.foreign_ran {
        Effect::Start { unit: EXPORTER.name.to_owned() }
    } else {
        EXPORTER.stopped()
    };
    let mut desired = EXPORTER.written(templates, &line, back)?;
    desired.extend(notes);
    Ok(desired)
}

fn arguments(exporter: &Exporter) -> Vec<String> {
    let mut arguments = vec!["--listen".to_owned(), exporter.listen.to_string()];
    if let Some(file) = &exporter.web_config {
        arguments.extend(["--web-config".to_owned(), file.display().to_string()]);
    }
    if exporter.pcie_bw {
        arguments.push("--pcie-bw".to_owned());
    }
    arguments
}

fn of_foreign(foreign: &Foreign, existing: ExistingUnit) -> String {
    let (path, what) = (foreign.path.display(), &foreign.what);
    if foreign.is_link {
        return format!(
            "{path} is a link that rocworker did not make, and {what}: rocworker's exporter does not run; remove the link \
             (systemctl unmask {}, or rm), then apply again",
            EXPORTER.name
        );
    }
    if existing == ExistingUnit::Leave {
        return format!(
            "{path} is not rocworker's and {what}: it stays, and rocworker's exporter does not run; \
             `exporter: {{existing: replace}}` replaces it until undo"
        );
    }
    let instead = match path.to_string().as_str() {
        FILE => "rocworker's unit replaces it",
        _ => "rocworker's unit in /etc/systemd/system takes its place",
    };
    let mut text = format!("{path} is not rocworker's and {what}: {instead}, and undo restores it");
    if let Some(first) = foreign.drop_ins.first() {
        let first = first.display();
        text.push_str(&format!("; its drop-ins apply to rocworker's unit too, such as {first}"));
    }
    text
}
