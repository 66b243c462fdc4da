use anstyle::{AnsiColor, Style};
use explain::codes::afids::{self, Afid};
use explain::codes::errors::{self, Error};
use explain::codes::statuses::{Library, Status, Table};
use explain::codes::{Asked, libraries_with};
use kernel_log::knowledge::{Blame, Severity};
use printable::printable;
use serde::Serialize;

use super::word;
use crate::cli::Outcome;
use crate::cli::options::Format;
use crate::cli::output::{BAD, WARN, styled};
use crate::cli::session::{Misuse, Session};
use crate::cli::table::{Cell, Columns};

const NAME: Style = AnsiColor::Cyan.on_default();

/// The source of the table, as AMD's documentation of AMD SMI names it.
const DOCUMENT: &str = "document 70122, https://docs.amd.com/r/en-US/AMD_Field_ID_70122_v1.0/AFID-Event-List";

#[derive(Serialize)]
struct OneError<'a> {
    schema_version: u32,
    error: &'a Error,
}

#[derive(Serialize)]
struct Errors<'a> {
    schema_version: u32,
    errors: &'a [Error],
}

#[derive(Serialize)]
struct OneStatus<'a> {
    schema_version: u32,
    status: StatusAnswer<'a>,
}

#[derive(Serialize)]
pub(super) struct StatusAnswer<'a> {
    library: &'static str,
    pub(super) number: u32,
    pub(super) name: &'a str,
    also: &'a [String],
    pub(super) blame: Option<Blame>,
    meaning: &'a str,
    actions: &'a [String],
    source: &'a str,
}

#[derive(Serialize)]
struct OneAfid<'a> {
    schema_version: u32,
    afid: &'a Afid,
}

/// `None`: this is no code.
pub(super) fn one(session: &Session, word: &str) -> Option<anyhow::Result<Outcome>> {
    Some(match Asked::of(word)? {
        Asked::Error(code) => error(session, code),
        Asked::Status(library, code) => status(session, library, code),
        Asked::Afid(id) => afid(session, id),
        Asked::UnknownPrefix(prefix) => Err(misuse(format!(
            "{prefix}: is no prefix that rocworker knows: use hip:, hsa:, amdsmi: or afid:, as in hip:719"
        ))),
    })
}

/// The errors 1 to 8 alone, as AAMI's `list-errors`.
pub(super) fn list_errors(session: &Session) -> anyhow::Result<Outcome> {
    let errors = errors::all()?;
    let answer = Errors { schema_version: 1, errors: &errors };
    let more =
        "\nAMD gives these errors no numbers. rocworker explain --list has what the kernel and HIP say.\n";
    session.format.print(&answer, || errors_table(&errors, session.format) + more)?;
    Ok(Outcome::Done)
}

pub(super) fn errors_table(errors: &[Error], format: Format) -> String {
    let mut table = Columns::new(&["CODE", "NAME", "SEVERITY", "DESCRIPTION"]).right(&[0]).shortened(&[3]);
    for error in errors {
        let (severity, style) = severity(error.severity);
        let severity = Cell::styled(severity, style);
        table.row([
            error.code.to_string().into(),
            error.name.as_str().into(),
            severity,
            error.description.as_str().into(),
        ]);
    }
    table.shown(format)
}

fn error(session: &Session, code: &str) -> anyhow::Result<Outcome> {
    let errors = errors::all()?;
    let Some(error) = errors.iter().find(|error| code.parse() == Ok(error.code)) else {
        let libraries: Vec<String> =
            libraries_with(code)?.into_iter().map(|library| format!("{library}:{code}")).collect();
        let prefixes = match &*libraries {
            [] => "hip:, hsa:, amdsmi: or afid:".to_owned(),
            libraries => libraries.join(" or "),
        };
        return Err(misuse(format!(
            "unknown ROCm error code: {code}; there are 1 to 8, see rocworker explain --list; a library's code has \
             its prefix: {prefixes}"
        )));
    };
    let answer = OneError { schema_version: 1, error };
    session.format.print(&answer, || error_text(error))?;
    Ok(Outcome::Done)
}

fn error_text(error: &Error) -> String {
    let (severity, style) = severity(error.severity);
    let mut text = heading(&format!("ROCm Error {}", error.code), &error.name);
    text += &format!("Severity: {}\n\n", styled(style, severity));
    text += &format!("Description:\n  {}\n\n", error.description);
    text += &numbered("Common Causes", &error.causes);
    text += &format!("\n{}", numbered("Recommended Actions", &error.actions));
    if let Some(address) = &error.documentation {
        text += &format!("\nDocumentation: {address}\n");
    }
    if !error.corrections.is_empty() {
        text += "\n";
    }
    for correction in &error.corrections {
        text += &format!("Correction: in place of \"{}\": {}\n", correction.of, correction.because);
    }
    let classes: Vec<String> = error.classes.iter().map(word).collect();
    text += &format!(
        "\nEvidence: the kernel's messages of class {}; rocworker explain --journal finds them\n",
        classes.join(", ")
    );
    text + "Number: rocworker's; AMD gives this error none\n"
}

fn status(session: &Session, library: Library, code: &str) -> anyhow::Result<Outcome> {
    let prefix = library.prefix();
    let table = library.table()?;
    if code.is_empty() {
        let example = table.codes.get(1).map_or("", |status| &status.name);
        return Err(misuse(format!(
            "{prefix}: names no code: add a number or a name, as in {prefix}:1 or {prefix}:{example}"
        )));
    }
    let Some(status) = table.find(code) else {
        return Err(misuse(format!(
            "{prefix}:{code} is unknown: this version of rocworker has the codes of {}",
            table.source
        )));
    };
    let answer = OneStatus { schema_version: 1, status: answer(library, status, &table) };
    session.format.print(&answer, || status_text(library, status, &table))?;
    Ok(Outcome::Done)
}

pub(super) fn answer<'a>(library: Library, status: &'a Status, table: &'a Table) -> StatusAnswer<'a> {
    let Status { number, name, also, meaning, blame, actions, says: _ } = status;
    let source = &table.source;
    StatusAnswer {
        library: library.prefix(),
        number: *number,
        name,
        also,
        blame: *blame,
        meaning,
        actions,
        source,
    }
}

/// What a person reads of a library's code or of an error's number.
pub(super) fn text_of(code: &str) -> anyhow::Result<Option<String>> {
    Ok(match Asked::of(code) {
        Some(Asked::Status(library, code)) => {
            let table = library.table()?;
            table.find(code).map(|status| status_text(library, status, &table))
        }
        Some(Asked::Error(code)) => {
            errors::all()?.iter().find(|error| code.parse() == Ok(error.code)).map(error_text)
        }
        Some(Asked::Afid(_) | Asked::UnknownPrefix(_)) | None => None,
    })
}

fn status_text(library: Library, status: &Status, table: &Table) -> String {
    let mut text = heading(&status.code(library), &status.name);
    if !status.also.is_empty() {
        text += &format!("Also called: {}\n", status.also.join(", "));
    }
    if let Some(blame) = status.blame {
        text += &format!("Blame: {}\n", word(&blame));
    }
    text += &format!("\nMeaning:\n  {}\n", status.meaning);
    if !status.actions.is_empty() {
        text += &format!("\n{}", numbered("Recommended Actions", &status.actions));
    }
    text + &format!("\nSource: {}\n", table.source)
}

fn afid(session: &Session, id: &str) -> anyhow::Result<Outcome> {
    let Ok(number) = id.parse::<u32>() else {
        return Err(misuse(format!("afid:{id} names no AFID: one is a number, as in afid:24")));
    };
    let path = session.root.shown(afids::PATH);
    let table = afids::read(&session.root).map_err(|error| misuse(error.to_string()))?;
    let Some(table) = table else {
        return Err(misuse(format!(
            "AFID {number} is unknown: rocworker does not carry AMD's table ({DOCUMENT}); write what it says into \
             {}, as docs/explain.md shows",
            path.display()
        )));
    };
    let Some(afid) = table.iter().find(|afid| afid.id == number) else {
        return Err(misuse(format!("AFID {number} is unknown: {} does not have it", path.display())));
    };
    let answer = OneAfid { schema_version: 1, afid };
    session.format.print(&answer, || {
        let mut text = heading(&format!("afid:{number}"), &printable(&afid.name));
        let cells = [("Category", &afid.category), ("Severity", &afid.severity), ("Action", &afid.action)];
        for (key, value) in cells {
            if let Some(value) = value {
                text += &format!("{key}: {}\n", printable(value));
            }
        }
        text + &format!("\nSource: {}\n", path.display())
    })?;
    Ok(Outcome::Done)
}

fn misuse(text: String) -> anyhow::Error {
    Misuse(text).into()
}

fn heading(code: &str, name: &str) -> String {
    format!("{code}: {}\n{}\n", styled(NAME, name), "━".repeat(50))
}

fn numbered(title: &str, items: &[String]) -> String {
    let items = items.iter().zip(1..).map(|(item, number)| format!("  {number}. {item}\n"));
    format!("{title}:\n{}", items.collect::<String>())
}

fn severity(severity: Severity) -> (&'static str, Style) {
    match severity {
        Severity::Critical => ("Critical", BAD),
        Severity::Warning => ("Warning", WARN),
        Severity::Info => ("Info", Style::new()),
    }
}
