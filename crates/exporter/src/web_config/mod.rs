//! TLS and basic auth by the file that Prometheus' own exporters take, read again whenever it or a certificate changes.

mod document;
mod tls;
mod users;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use root::{Identity, Root};
use tokio_rustls::TlsAcceptor;

use document::Document;
pub(crate) use users::Login;
use users::Verified;

/// Some hundreds of users have room.
const LIMIT: usize = 64 << 10;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Read(#[from] root::Error),
    #[error("{}: {problem}", path.display())]
    Document { path: PathBuf, problem: String },
}

pub(crate) struct WebConfig {
    root: Root,
    path: PathBuf,
    state: RefCell<State>,
    verified: Verified,
}

struct State {
    loaded: Rc<Loaded>,
    /// Which files these were, read or in vain.
    seen: Vec<Option<Identity>>,
    files: Vec<PathBuf>,
}

/// What the file says.
pub(crate) struct Loaded {
    pub(crate) acceptor: Option<TlsAcceptor>,
    users: BTreeMap<String, String>,
}

impl WebConfig {
    /// # Errors
    /// When the file, or one that it names, cannot be read or says what is not understood.
    pub(crate) fn load(path: &Path) -> Result<Self, Error> {
        let root = Root::open(Path::new("/"))?;
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let files = vec![path.clone()];
        let (loaded, more) = load(&root, &path)?;
        let files = [files, more].concat();
        let seen = identities(&root, &files);
        let state = RefCell::new(State { loaded: Rc::new(loaded), seen, files });
        Ok(Self { root, path, state, verified: Verified::default() })
    }

    pub(crate) fn has_tls(&self) -> bool {
        self.state.borrow().loaded.acceptor.is_some()
    }

    /// What the files say now. What they said before, where they cannot be understood now.
    pub(crate) fn current(&self) -> Rc<Loaded> {
        let mut state = self.state.borrow_mut();
        let seen = identities(&self.root, &state.files);
        if seen != state.seen {
            match load(&self.root, &self.path) {
                Ok((loaded, more)) => {
                    state.files = [vec![self.path.clone()], more].concat();
                    state.seen = identities(&self.root, &state.files);
                    state.loaded = Rc::new(loaded);
                    crate::say(&format!("{} was read again", self.path.display()));
                }
                Err(error) => {
                    state.seen = seen;
                    crate::say(&format!("{error}; what was read before stays in force"));
                }
            }
        }
        state.loaded.clone()
    }

    /// Whether a request with this `Authorization` may be answered.
    pub(crate) async fn admits(&self, header: Option<&str>) -> Login {
        let loaded = self.current();
        if loaded.users.is_empty() { Login::Right } else { self.verified.admits(&loaded.users, header).await }
    }
}

fn identities(root: &Root, files: &[PathBuf]) -> Vec<Option<Identity>> {
    files.iter().map(|file| root.identity(file).ok()).collect()
}

/// What the file says, and the further files that it names.
fn load(root: &Root, path: &Path) -> Result<(Loaded, Vec<PathBuf>), Error> {
    let wrong = |problem: String| Error::Document { path: path.to_owned(), problem };
    let text = String::from_utf8(root.read_trusted(path, LIMIT)?)
        .map_err(|_| wrong("not UTF-8: write it as text".to_owned()))?;
    if let Some(line) = document::too_deep(&text) {
        return Err(wrong(format!("brackets are nested too deep: nothing here needs that at line {line}")));
    }
    // A file of comments alone is no mapping.
    let is_empty = text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'));
    let document = if is_empty { Ok(Document::default()) } else { yaml_serde::from_str(&text) };
    let Document { tls_server_config, basic_auth_users } =
        document.map_err(|error| wrong(placed(&error, &text)))?;
    let users = basic_auth_users.unwrap_or_default().0;
    let Some(mut tls) = tls_server_config else {
        return Ok((Loaded { acceptor: None, users }, Vec::new()));
    };
    let folder = path.parent().unwrap_or(path);
    for file in [Some(&mut tls.cert_file), Some(&mut tls.key_file), tls.client_ca_file.as_mut()] {
        file.into_iter().for_each(|file| *file = folder.join(&*file));
    }
    let acceptor = tls::acceptor(root, &tls)
        .map_err(|tls::Wrong { key, problem }| wrong(format!("{key}: {problem}{}", line_of(key, &text))))?;
    Ok((Loaded { acceptor: Some(acceptor), users }, tls::files(&tls)))
}

/// The parser tells no line of an unknown key at the top of the file.
fn placed(error: &yaml_serde::Error, text: &str) -> String {
    let said = error.to_string();
    let key = said.strip_prefix("unknown field `").and_then(|rest| rest.split('`').next());
    let line = key.filter(|_| !said.contains(" at line ")).map(|key| line_of(key, text));
    said + line.as_deref().unwrap_or_default()
}

fn line_of(key: &str, text: &str) -> String {
    let line = text.lines().position(|line| line.contains(key));
    line.map_or_else(String::new, |line| format!(" at line {}", line + 1))
}
