//! TLS and basic auth by the file that Prometheus' own exporters take, read again whenever it or a certificate changes.

mod document;
mod tls;
mod trusted;
mod users;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use root::{Identity, Root};
use tokio_rustls::TlsAcceptor;

use document::{ClientAuth, Document};
use users::Verified;
pub(crate) use users::{Login, one_client};

/// The most bytes that are read of a file: room for some hundreds of users.
const LIMIT: usize = 64 << 10;

/// How long after a failed read the files are read again although none has changed: a folder's mode may have.
const AGAIN: Duration = Duration::from_secs(10);

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Read(#[from] root::Error),
    #[error("{}:{line}: {problem}", path.display())]
    Document { path: PathBuf, line: usize, problem: String },
}

pub(crate) struct WebConfig {
    root: Root,
    path: PathBuf,
    state: RefCell<State>,
    verified: Verified,
}

struct State {
    loaded: Rc<Loaded>,
    /// The identities of the files at the last read, whether it succeeded or not.
    seen: Vec<Option<Identity>>,
    files: Vec<PathBuf>,
    /// When and why the last read failed, if it did.
    in_vain: Option<(Instant, String)>,
}

/// The content of the configuration.
pub(crate) struct Loaded {
    pub(crate) acceptor: Option<TlsAcceptor>,
    users: BTreeMap<String, String>,
    /// The keys that keep the metrics from strangers.
    protections: Vec<&'static str>,
    /// Advice to the administrator about settings that are accepted.
    warnings: Vec<String>,
}

impl WebConfig {
    /// # Errors
    /// When the file, or one that it names, cannot be read or says what is not understood.
    pub(crate) fn load(path: &Path) -> Result<Self, Error> {
        let root = Root::open(Path::new("/"))?;
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let mut files = Vec::new();
        let loaded = load(&root, &path, &mut files)?;
        loaded.warn();
        let seen = identities(&root, &files);
        let state = RefCell::new(State { loaded: Rc::new(loaded), seen, files, in_vain: None });
        Ok(Self { root, path, state, verified: Verified::default() })
    }

    pub(crate) fn has_tls(&self) -> bool {
        self.state.borrow().loaded.acceptor.is_some()
    }

    /// The configuration that the files hold now, or held before where they cannot be understood now.
    pub(crate) fn current(&self) -> Rc<Loaded> {
        let mut state = self.state.borrow_mut();
        let seen = identities(&self.root, &state.files);
        let has_changed = seen != state.seen;
        if has_changed || state.in_vain.as_ref().is_some_and(|(when, _)| when.elapsed() >= AGAIN) {
            let former = state.in_vain.take();
            let mut files = Vec::new();
            let loaded = load(&self.root, &self.path, &mut files)
                .and_then(|loaded| self.keeps_protections(&state.loaded, &loaded).map(|()| loaded));
            // The files of a configuration that failed are watched, too: a certificate that it names may
            // appear later. Identities are taken before the read, so that a later change shows.
            state.seen = if files == state.files { seen } else { identities(&self.root, &files) };
            state.files = files;
            match loaded {
                Ok(loaded) => {
                    crate::say(&format!("{} was read again", self.path.display()));
                    loaded.warn();
                    state.loaded = Rc::new(loaded);
                }
                Err(error) => {
                    let error = error.to_string();
                    if has_changed || former.is_none_or(|(_, problem)| problem != error) {
                        crate::say(&format!("{error}; what was read before stays in force"));
                    }
                    state.in_vain = Some((Instant::now(), error));
                }
            }
        }
        state.loaded.clone()
    }

    /// An empty file, or half of one, must not open what was closed.
    fn keeps_protections(&self, former: &Loaded, new: &Loaded) -> Result<(), Error> {
        let lost = former.protections.iter().find(|key| !new.protections.contains(key));
        let Some(key) = lost else { return Ok(()) };
        let problem = format!("it takes away {key}, which only a restart of the exporter does");
        Err(Error::Document { path: self.path.clone(), line: 1, problem })
    }

    /// Whether a client's request with this `Authorization` may be answered.
    pub(crate) async fn admits(&self, header: Option<&str>, client: IpAddr) -> Login {
        let loaded = self.current();
        if loaded.users.is_empty() {
            return Login::Right;
        }
        self.verified.admits(&loaded.users, header, client).await
    }
}

impl Loaded {
    fn warn(&self) {
        self.warnings.iter().for_each(|warning| crate::say(warning));
    }
}

fn identities(root: &Root, files: &[PathBuf]) -> Vec<Option<Identity>> {
    files.iter().map(|file| root.identity(file).ok()).collect()
}

/// Reads the configuration. `files` becomes the file and those that it names.
fn load(root: &Root, path: &Path, files: &mut Vec<PathBuf>) -> Result<Loaded, Error> {
    files.push(path.to_owned());
    let wrong = |line, problem| Error::Document { path: path.to_owned(), line, problem };
    let text = String::from_utf8(root.read_trusted(path, LIMIT)?)
        .map_err(|_| wrong(1, "not UTF-8: write it as text".to_owned()))?;
    if let Some(line) = document::too_deep(&text) {
        return Err(wrong(line, "brackets are nested too deep: nothing here needs that".to_owned()));
    }
    // A file of comments alone is null in YAML.
    let document: Option<Document> = yaml_serde::from_str(&text).map_err(|error| {
        let (line, problem) = placed(&error, &text);
        wrong(line, problem)
    })?;
    let Document { tls_server_config, basic_auth_users } = document.unwrap_or_default();
    let users = basic_auth_users.unwrap_or_default().0;
    let mut protections = Vec::new();
    if !users.is_empty() {
        protections.push("basic_auth_users");
    }
    let Some(mut tls) = tls_server_config else {
        if protections.is_empty() {
            let problem = "it protects nothing: set tls_server_config or basic_auth_users, or start without --web-config";
            return Err(wrong(1, problem.to_owned()));
        }
        return Ok(Loaded { acceptor: None, users, protections, warnings: Vec::new() });
    };
    protections.push("tls_server_config");
    if tls.client_auth_type == ClientAuth::RequireAndVerifyClientCert {
        protections.push("client_auth_type: RequireAndVerifyClientCert");
    }
    let folder = path.parent().unwrap_or(path);
    for file in [Some(&mut tls.cert_file), Some(&mut tls.key_file), tls.client_ca_file.as_mut()] {
        file.into_iter().for_each(|file| *file = folder.join(&*file));
    }
    files.extend(tls::files(&tls));
    let acceptor = tls::acceptor(root, &tls)
        .map_err(|tls::Wrong { key, problem }| wrong(line_of(key, &text), format!("{key}: {problem}")))?;
    let warnings = tls::readable_key(root, &tls.key_file).into_iter().collect();
    Ok(Loaded { acceptor: Some(acceptor), users, protections, warnings })
}

/// The line and what is wrong there. The parser tells no line of an unknown key at the top of the file.
fn placed(error: &yaml_serde::Error, text: &str) -> (usize, String) {
    let message = error.to_string();
    let problem = message.split(" at line ").next().unwrap_or(&message).to_owned();
    let key = problem.strip_prefix("unknown field `").and_then(|rest| rest.split('`').next());
    let line = error.location().map(|place| place.line()).or_else(|| key.map(|key| line_of(key, text)));
    (line.unwrap_or(1), problem)
}

fn line_of(key: &str, text: &str) -> usize {
    text.lines()
        .position(|line| line.trim_start().starts_with(key) || line.contains(&format!("{key}:")))
        .map_or(1, |line| line + 1)
}
