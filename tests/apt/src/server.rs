//! An HTTP server on loopback that serves a folder, and misbehaves on request.
//!
//! The server is its own proxy too: it answers a request for `http://HOST/PATH` with PATH, whatever the host,
//! and records the host. So a test can show that a proxy was used, and its repository's host need not exist.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};

/// A misbehaviour in place of the right answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misbehaviour {
    /// The connection is closed without a byte.
    Close,
    /// The server answers nothing until it is to behave again, or ends.
    Hang,
    /// The whole length is announced, and the connection is closed after this many bytes.
    Cut(usize),
    /// As with [`Misbehaviour::Cut`], but the rest comes once the server is to behave again, or ends.
    Stall(usize),
    /// The server answers with these bytes in place of the file's.
    Other(Vec<u8>),
    /// The server answers with this status, such as 404 or 500, and a short text.
    Status(u16),
}

/// A request as it came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub method: String,
    /// The host and port that a proxy is asked for; none of a request to the server itself.
    pub authority: Option<String>,
    /// The path from the first slash on, with `%2b` and the like decoded.
    pub path: String,
    /// The rest of its head, a line a field.
    pub head: String,
}

#[derive(Debug, Default)]
struct State {
    folder: PathBuf,
    misbehaviours: BTreeMap<String, Misbehaviour>,
    requests: Vec<Request>,
    /// Open connections, which are shut when the server ends.
    connections: Vec<TcpStream>,
    is_over: bool,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Is notified of each change for which an answer may wait.
    changed: Condvar,
}

/// A server, until it is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    listening: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves a folder on a free port.
    ///
    /// # Panics
    /// Where there is none.
    pub fn start(folder: &Path) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        folder.clone_into(&mut shared.state.lock().unwrap().folder);
        let theirs = Arc::clone(&shared);
        let listening = Some(thread::spawn(move || listen(&listener, &theirs)));
        Self { address, shared, listening }
    }

    /// `http://127.0.0.1:PORT`
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Serves another folder from now on.
    ///
    /// # Panics
    /// Never, unless a thread of the server's did.
    pub fn show(&self, folder: &Path) {
        folder.clone_into(&mut self.shared.state.lock().unwrap().folder);
    }

    /// Misbehaves from now on when this path is asked for, which begins with a slash.
    ///
    /// # Panics
    /// Where [`Server::show`] panics.
    pub fn misbehave(&self, path: &str, how: Misbehaviour) {
        self.shared.state.lock().unwrap().misbehaviours.insert(path.to_owned(), how);
    }

    /// Takes every misbehaviour back; what hangs is answered now.
    ///
    /// # Panics
    /// Where [`Server::show`] panics.
    pub fn behave(&self) {
        self.shared.state.lock().unwrap().misbehaviours.clear();
        self.shared.changed.notify_all();
    }

    /// The requests until now, in order.
    ///
    /// # Panics
    /// Where [`Server::show`] panics.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.state.lock().unwrap().requests.clone()
    }

    /// The number of requests for a path until now.
    pub fn count(&self, path: &str) -> usize {
        self.requests().iter().filter(|request| request.path == path).count()
    }

    /// Waits until a path was asked for.
    ///
    /// # Panics
    /// Where [`Server::show`] panics.
    pub fn wait_for(&self, path: &str) {
        let state = self.shared.state.lock().unwrap();
        let is_missing = |state: &mut State| state.requests.iter().all(|request| request.path != path);
        drop(self.shared.changed.wait_while(state, is_missing).unwrap());
    }
}

/// The address of a port at which nobody listens.
///
/// # Panics
/// Where there is no free port.
pub fn nobody() -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

impl Drop for Server {
    fn drop(&mut self) {
        {
            let mut state = self.shared.state.lock().unwrap();
            state.is_over = true;
            for connection in &state.connections {
                let _ = connection.shutdown(Shutdown::Both);
            }
        }
        self.shared.changed.notify_all();
        // accept() ends with a connection only.
        let _ = TcpStream::connect(self.address);
        if let Some(listening) = self.listening.take() {
            let _ = listening.join();
        }
    }
}

fn listen(listener: &TcpListener, shared: &Arc<Shared>) {
    for connection in listener.incoming() {
        let Ok(connection) = connection else { continue };
        let mut state = shared.state.lock().unwrap();
        if state.is_over {
            return;
        }
        let Ok(copy) = connection.try_clone() else { continue };
        state.connections.push(copy);
        drop(state);
        let shared = Arc::clone(shared);
        thread::spawn(move || {
            // Whatever comes of it: the peer may go at any moment.
            let _ = serve(&connection, &shared);
            let _ = connection.shutdown(Shutdown::Both);
        });
    }
}

/// Answers one request after the other: apt asks for several before it reads.
fn serve(connection: &TcpStream, shared: &Shared) -> io::Result<()> {
    let mut reader = BufReader::new(connection);
    while let Some(request) = read_request(&mut reader)? {
        let (folder, misbehaviour) = {
            let mut state = shared.state.lock().unwrap();
            state.requests.push(request.clone());
            shared.changed.notify_all();
            (state.folder.clone(), state.misbehaviours.get(&request.path).cloned())
        };
        if !answer(connection, shared, &request, &folder, misbehaviour)? {
            return Ok(());
        }
    }
    Ok(())
}

/// Reads a request; `None` where the peer has no more.
fn read_request(reader: &mut BufReader<&TcpStream>) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let (Some(method), Some(target)) = (words.next(), words.next()) else { return Ok(None) };
    let (authority, path) = match target.strip_prefix("http://") {
        Some(rest) => {
            let at = rest.find('/').unwrap_or(rest.len());
            (Some(rest[..at].to_owned()), rest[at..].to_owned())
        }
        None => (None, target.to_owned()),
    };
    let mut head = String::new();
    // A blank line ends the head, two bytes long; the end of the stream has none.
    while reader.read_line(&mut head)? > 2 {}
    let path = decoded(&path);
    Ok(Some(Request { method: method.to_owned(), authority, path, head: head.replace('\r', "") }))
}

/// RFC 3986, section 2.1: apt writes a version's `+` and `~` so.
fn decoded(path: &str) -> String {
    let mut parts = path.split('%');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let byte = part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte.filter(u8::is_ascii) {
            Some(byte) => {
                out.push(char::from(byte));
                out.push_str(&part[2..]);
            }
            None => {
                out.push('%');
                out.push_str(part);
            }
        }
    }
    out
}

/// Answers a request; returns whether the connection goes on.
fn answer(
    connection: &TcpStream,
    shared: &Shared,
    request: &Request,
    folder: &Path,
    misbehaviour: Option<Misbehaviour>,
) -> io::Result<bool> {
    let whole = || fs::read(folder.join(request.path.trim_start_matches('/')));
    match misbehaviour {
        Some(Misbehaviour::Close) => Ok(false),
        Some(Misbehaviour::Hang) => {
            wait(shared, &request.path);
            send(connection, request, whole())
        }
        Some(Misbehaviour::Cut(after)) => {
            let bytes = whole()?;
            let after = after.min(bytes.len());
            write_head(connection, "200 OK", bytes.len())?;
            (&mut &*connection).write_all(&bytes[..after])?;
            Ok(false)
        }
        Some(Misbehaviour::Stall(after)) => {
            let bytes = whole()?;
            let after = after.min(bytes.len());
            write_head(connection, "200 OK", bytes.len())?;
            (&mut &*connection).write_all(&bytes[..after])?;
            wait(shared, &request.path);
            (&mut &*connection).write_all(&bytes[after..])?;
            Ok(true)
        }
        Some(Misbehaviour::Other(bytes)) => send(connection, request, Ok(bytes)),
        Some(Misbehaviour::Status(status)) => {
            let text = format!("{status} by a test\n");
            write_head(connection, &format!("{status} Said by a test"), text.len())?;
            (&mut &*connection).write_all(text.as_bytes())?;
            Ok(true)
        }
        None => send(connection, request, whole()),
    }
}

fn send(connection: &TcpStream, request: &Request, bytes: io::Result<Vec<u8>>) -> io::Result<bool> {
    let mut connection = connection;
    match (request.method.as_str(), bytes) {
        ("GET", Ok(bytes)) => {
            write_head(connection, "200 OK", bytes.len())?;
            connection.write_all(&bytes)?;
        }
        ("HEAD", Ok(bytes)) => write_head(connection, "200 OK", bytes.len())?,
        ("GET" | "HEAD", Err(_)) => write_head(connection, "404 Not Found", 0)?,
        // A tunnel among them: nothing here speaks TLS.
        _ => {
            write_head(connection, "501 Not Implemented", 0)?;
            return Ok(false);
        }
    }
    Ok(true)
}

fn write_head(mut connection: &TcpStream, status: &str, length: usize) -> io::Result<()> {
    write!(connection, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n")
}

/// Waits until the path's misbehaviour is over, or the server ends.
fn wait(shared: &Shared, path: &str) {
    let state = shared.state.lock().unwrap();
    let goes_on = |state: &mut State| !state.is_over && state.misbehaviours.contains_key(path);
    drop(shared.changed.wait_while(state, goes_on).unwrap());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_read_as_it_was_meant() {
        for (path, expected) in [
            ("/a", "/a"),
            ("/a_1%2b2%7e3", "/a_1+2~3"),
            ("/100%", "/100%"),
            ("/%zz%2", "/%zz%2"),
            ("%2F", "/"),
        ] {
            assert_eq!(decoded(path), expected, "{path}");
        }
    }
}
