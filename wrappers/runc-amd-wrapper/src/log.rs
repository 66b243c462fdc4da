//! Warnings and errors, where a container engine looks for them: in the file that runc's `--log` names,
//! in the format that `--log-format` names. An engine shows this file and, mostly, nothing else.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::args::Global;

/// runc's log, as this call's flags name it.
#[derive(Clone, Copy, Debug)]
pub struct Log<'a> {
    file: Option<&'a Path>,
    json: bool,
}

impl<'a> Log<'a> {
    /// An empty `--log` is none, as for runc.
    pub fn of(global: &Global<'a>) -> Self {
        Self {
            file: global.log.filter(|path| !path.is_empty()).map(|path| Path::new(OsStr::from_bytes(path))),
            json: global.log_format == Some(b"json"),
        }
    }

    /// Warns of something that was left out, with which the container still starts. Without `--log` the
    /// warning goes to stderr, as runc's own warnings do.
    pub fn warn(&self, sentence: &str) {
        let line = self.line("warning", sentence);
        match self.file {
            Some(_) => self.append(&line),
            None => to_stderr(&line),
        }
    }

    /// Reports that the call fails: a sentence on stderr and in the log.
    pub fn fail(&self, sentence: &str) {
        if self.file.is_some() {
            self.append(&self.line("error", sentence));
        }
        to_stderr(&format!("runc-amd-wrapper: {}\n", sentence.replace('\n', " ")));
    }

    fn line(&self, level: &str, sentence: &str) -> String {
        let time = now();
        let message = format!("runc-amd-wrapper: {sentence}");
        // Not as a `Value`: with it comes the writing of floating-point numbers, 25 KB of it.
        let message = serde_json::to_string(&message).unwrap_or_default();
        if self.json {
            // logrus' JSONFormatter, whose keys are in the order of the alphabet.
            format!("{{\"level\":\"{level}\",\"msg\":{message},\"time\":\"{time}\"}}\n")
        } else {
            // logrus' TextFormatter where the output is no terminal.
            format!("time=\"{time}\" level={level} msg={message}\n")
        }
    }

    /// Opened as runc opens it. That a log cannot be written is no reason to stop a container.
    fn append(&self, line: &str) {
        let Some(path) = self.file else { return };
        let file = OpenOptions::new().create(true).append(true).mode(0o644).open(path);
        if file.and_then(|mut file| file.write_all(line.as_bytes())).is_err() {
            to_stderr(line);
        }
    }
}

fn to_stderr(text: &str) {
    // If this write fails too, there is nowhere left to report it.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// The wall clock, for people.
pub(crate) fn now() -> String {
    allocation::rfc3339(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_stands_in_the_log_in_its_format() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("log");
        let log_path = path.as_os_str().as_bytes();
        let message = "no \"GPU\" in /dev\nhere";
        Log::of(&Global { log: Some(log_path), log_format: Some(b"json"), root: None }).warn(message);
        let text = std::fs::read_to_string(&path).unwrap();
        let line: serde_json::Value = serde_json::from_str(text.strip_suffix('\n').unwrap()).unwrap();
        assert_eq!(line["level"], "warning");
        assert_eq!(line["msg"], format!("runc-amd-wrapper: {message}"));
        assert!(line["time"].as_str().unwrap().ends_with('Z'));

        std::fs::remove_file(&path).unwrap();
        Log::of(&Global { log: Some(log_path), log_format: None, root: None }).fail(message);
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains(r#" level=error msg="runc-amd-wrapper: no \"GPU\" in /dev\nhere""#), "{text}");
    }
}
