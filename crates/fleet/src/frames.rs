//! Parses what the script of [`super::script`] prints: what is at each path, or why that is not known.
//!
//! After a random marker come frames `KIND A B`: A bytes of a path or of names, then B bytes of data. File contents and
//! a command's output have no length, so marks separate them. A file or a login banner cannot forge a frame: the parser
//! expects exactly one mark per file.

mod errno;
mod ls;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use explain::journal::Printed;
use nix::errno::Errno;
use printable::printable;
use root::files::{Content, Entry, Files};

/// Paths and names of one machine.
const MOST_ENTRIES: usize = 400_000;
/// Bytes of a path, or of where a link points (PATH_MAX in linux/limits.h, which counts a NUL).
const LONGEST_PATH: usize = 4095;
/// Links behind one path, as the kernel follows them (MAXSYMLINKS).
const MOST_LINKS: usize = 40;

/// The files that a script read on another machine, and how it read them.
#[derive(Debug)]
pub struct RemoteFiles {
    pub files: Files,
    /// When the script read them, by that machine's clock: seconds since 1970. `None`: `detect` does not ask.
    pub taken_at: Option<u64>,
    /// Whether root ran the script.
    pub as_root: bool,
    /// What journalctl printed on the machine, where it was asked.
    pub journal: Option<Printed>,
    /// The suspended cards, as the script lists them.
    pub asleep: String,
}

/// Parses a script's whole output. `token`: the script's.
///
/// # Errors
/// Says in a sentence at which frame the output is no script's, or that it ended too early.
pub(super) fn parse(token: &str, stdout: &[u8]) -> Result<RemoteFiles, String> {
    let begin = format!("\nrocworker-frames 1 {token}\n");
    let Some(at) = find(stdout, begin.as_bytes()) else {
        let first = String::from_utf8_lossy(stdout.get(..200).unwrap_or(stdout)).into_owned();
        return Err(match first.trim() {
            "" => "it printed nothing: its shell may not run a script that comes by stdin".to_owned(),
            text => format!("it did not run rocworker's script, and printed: {}", printable(text)),
        });
    };
    let rest = stdout.get(at + begin.len()..).unwrap_or_default();
    let mut parser = Parser {
        token,
        rest,
        frame: 0,
        paths: 0,
        prefix: Vec::new(),
        files: Files::default(),
        contents: Vec::new(),
    };
    parser.all().map_err(|problem| match problem {
        Problem::Ended => format!("its answer ended too early, at frame {}", parser.frame),
        Problem::Wrong(why) => format!("its answer is damaged at frame {}: {why}", parser.frame),
    })
}

enum Problem {
    Ended,
    Wrong(&'static str),
}

const TOO_MANY: Problem = Problem::Wrong("it names too many paths");

struct Frame<'o> {
    kind: &'o [u8],
    about: &'o [u8],
    bytes: &'o [u8],
}

struct Parser<'o> {
    token: &'o str,
    rest: &'o [u8],
    /// How many frames have begun.
    frame: usize,
    /// How many paths and names the output has had so far.
    paths: usize,
    /// The machine's Root, which precedes each path that programs print.
    prefix: Vec<u8>,
    files: Files,
    /// Contents of files and folders, which wait until every link is known.
    contents: Vec<(PathBuf, Content)>,
}

impl<'o> Parser<'o> {
    fn all(&mut self) -> Result<RemoteFiles, Problem> {
        let about = self.next()?;
        if about.kind != b"about" {
            return Err(Problem::Wrong("the first one does not say who reads"));
        }
        self.prefix = about.about.to_owned();
        let text = str::from_utf8(about.bytes).unwrap_or_default();
        let (uid, time) = text.split_once(' ').unwrap_or_default();
        let taken_at = if time.is_empty() { Ok(None) } else { time.parse().map(Some) };
        let (Ok(uid), Ok(taken_at)) = (uid.parse(), taken_at) else {
            return Err(Problem::Wrong("it says neither who reads nor when"));
        };
        self.files.reader = uid;
        let mut journal = None;
        let asleep = loop {
            let frame = self.next()?;
            match frame.kind {
                b"end" => break String::from_utf8_lossy(frame.bytes).into_owned(),
                b"d" => self.folder(&frame)?,
                b"t" => self.put(frame.about, Content::File(frame.bytes.to_owned()))?,
                b"a" => self.all_missing(frame.bytes, &Content::Failed(Errno::ENOENT))?,
                b"p" => self.all_missing(frame.bytes, &Content::Unreachable(Errno::EACCES))?,
                b"l" => self.listed(&frame, false)?,
                b"m" => self.listed(&frame, true)?,
                b"e" => self.empty_folders(&frame)?,
                b"f" => self.contents(frame.bytes)?,
                b"k" => self.kernel_log()?,
                b"j" => journal = Some(self.journal()?),
                _ => return Err(Problem::Wrong("no frame is of that kind")),
            }
        };
        for (path, content) in std::mem::take(&mut self.contents) {
            if let Some(end) = self.end_of(path) {
                self.entry(end).content = content;
            }
        }
        Ok(RemoteFiles {
            files: std::mem::take(&mut self.files),
            taken_at,
            as_root: uid == 0,
            journal,
            asleep,
        })
    }

    fn next(&mut self) -> Result<Frame<'o>, Problem> {
        self.frame += 1;
        // The longest header has two numbers of nine digits.
        let header = self.rest.get(..40).unwrap_or(self.rest);
        let Some(end) = header.iter().position(|byte| *byte == b'\n') else {
            return Err(if header.len() < 40 { Problem::Ended } else { Problem::Wrong("it has no header") });
        };
        let header = self.take(end + 1)?;
        let mut words = header.trim_ascii_end().split(|byte| *byte == b' ');
        let [kind, a, b] = std::array::from_fn(|_| words.next());
        let number = |word: Option<&[u8]>| -> Option<usize> { str::from_utf8(word?).ok()?.parse().ok() };
        let (Some(kind), Some(a), Some(b), None) = (kind, number(a), number(b), words.next()) else {
            return Err(Problem::Wrong("its header is none"));
        };
        let (about, bytes) = (self.take(a)?, self.take(b)?);
        // Before lists are made of the lines: a hostile machine can send 32 million within the limit of an answer.
        if [about, bytes].iter().any(|lines| memchr::memchr_iter(b'\n', lines).count() > MOST_ENTRIES) {
            return Err(TOO_MANY);
        }
        if self.take(1)? != b"\n" {
            // A stream's frame ends with its header.
            return Err(Problem::Wrong("it is longer than it says"));
        }
        Ok(Frame { kind, about, bytes })
    }

    fn take(&mut self, count: usize) -> Result<&'o [u8], Problem> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Problem::Ended)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Takes the bytes up to a mark.
    fn until(&mut self, mark: &[u8]) -> Result<&'o [u8], Problem> {
        let taken = self.take(find(self.rest, mark).ok_or(Problem::Ended)?)?;
        self.take(mark.len())?;
        Ok(taken)
    }

    /// Counts and checks a path: no machine's answer may occupy this one without end.
    fn path(&mut self, path: &[u8]) -> Result<PathBuf, Problem> {
        self.counted()?;
        if !path.starts_with(b"/") {
            return Err(Problem::Wrong("it names a path that does not begin with a slash"));
        }
        short(path)
    }

    fn counted(&mut self) -> Result<(), Problem> {
        self.paths += 1;
        if self.paths > MOST_ENTRIES { Err(TOO_MANY) } else { Ok(()) }
    }

    fn entry(&mut self, path: PathBuf) -> &mut Entry {
        self.files.entries.entry(path).or_insert(Entry { meta: None, content: Content::Node })
    }

    /// A second frame on a path replaces the first: a file may go while it is asked for.
    fn put(&mut self, path: &[u8], content: Content) -> Result<(), Problem> {
        let path = self.path(path)?;
        self.entry(path).content = content;
        Ok(())
    }

    /// Follows the links at the end of a path, as far as the script read them. `None`: they form a circle.
    fn end_of(&self, mut path: PathBuf) -> Option<PathBuf> {
        for _ in 0..MOST_LINKS {
            let Some(Entry { content: Content::Link(target), .. }) = self.files.entries.get(&path) else {
                return Some(path);
            };
            path = path.parent().unwrap_or(Path::new("/")).join(target);
        }
        None
    }

    fn folder(&mut self, frame: &Frame<'_>) -> Result<(), Problem> {
        let mut names = Vec::new();
        for name in frame.bytes.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            self.counted()?;
            names.push(OsStr::from_bytes(name).to_owned());
        }
        let path = self.path(frame.about)?;
        self.contents.push((path, Content::Folder(names)));
        Ok(())
    }

    fn all_missing(&mut self, paths: &[u8], content: &Content) -> Result<(), Problem> {
        for path in lines(paths) {
            let path = self.path(path)?;
            self.files.entries.entry(path).or_insert(Entry { meta: None, content: content.clone() });
        }
        Ok(())
    }

    /// What `ls -ldn` prints for paths. `is_followed`: `ls` ran with `-L`, which describes what links lead to.
    fn listed(&mut self, frame: &Frame<'_>, is_followed: bool) -> Result<(), Problem> {
        let asked: Vec<&[u8]> = lines(frame.about).collect();
        let errors = errno::by_path(&asked, &self.prefix, frame.bytes).by_path;
        let errors: BTreeMap<&[u8], &[u8]> = errors.into_iter().collect();
        for (path, found) in asked.iter().zip(ls::found(&asked, &self.prefix, frame.bytes)) {
            let mut place = self.path(path)?;
            if is_followed {
                match self.end_of(place.clone()) {
                    Some(end) if end != place => place = end,
                    _ => continue,
                }
            }
            let (meta, content) = match found {
                ls::Found::Link(target, meta) => {
                    (Some(meta), Content::Link(short(target.as_os_str().as_bytes())?))
                }
                ls::Found::Other(meta) => (Some(meta), Content::Node),
                ls::Found::Nothing => match errors.get(path).map(|message| errno::content(message)) {
                    Some(Content::Failed(Errno::EACCES)) => (None, Content::Unreachable(Errno::EACCES)),
                    Some(content) => (None, content),
                    None => (None, Content::Unread("ls says nothing of it".to_owned())),
                },
                ls::Found::Twice => {
                    (None, Content::Unread("ls says two things of it: a name has a line break".to_owned()))
                }
            };
            let entry = Entry { meta, content };
            if meta.is_some() {
                self.files.entries.insert(place, entry);
            } else {
                self.files.entries.entry(place).or_insert(entry);
            }
        }
        Ok(())
    }

    /// Folders that had no name in them: what `ls` says of those that it could not list.
    fn empty_folders(&mut self, frame: &Frame<'_>) -> Result<(), Problem> {
        let asked: Vec<&[u8]> = lines(frame.about).collect();
        for (path, message) in errno::by_path(&asked, &self.prefix, frame.bytes).by_path {
            let path = self.path(path)?;
            self.contents.push((path, errno::content(message)));
        }
        Ok(())
    }

    /// Files' contents. After each stands the reader's environment, which is the mark.
    fn contents(&mut self, asked: &[u8]) -> Result<(), Problem> {
        let asked: Vec<&[u8]> = lines(asked).collect();
        let mark = format!("R={}\0", self.token);
        let mut contents = Vec::with_capacity(asked.len());
        for path in &asked {
            contents.push((*path, self.until(mark.as_bytes())?));
        }
        if self.take(1)? != b"\n" {
            return Err(Problem::Wrong("a file has the script's mark in it"));
        }
        let mut failed = Vec::new();
        let stderr = loop {
            let frame = self.next()?;
            match frame.kind {
                b"x" => failed.push((frame.about, frame.bytes)),
                b"w" => break frame.bytes,
                _ => return Err(Problem::Wrong("it stands among files' contents")),
            }
        };
        let words = errno::by_path(&asked, &self.prefix, stderr);
        failed.extend(words.by_path.iter().copied());
        let failed: BTreeMap<&[u8], &[u8]> = failed.into_iter().collect();
        for (path, bytes) in contents {
            let content = match failed.get(path) {
                Some(message) => errno::content(message),
                // A message that names no file may be about this one.
                None if bytes.is_empty() && !words.others.is_empty() => {
                    Content::Unread(printable(&String::from_utf8_lossy(words.others)))
                }
                None => Content::File(bytes.to_owned()),
            };
            let path = self.path(path)?;
            self.contents.push((path, content));
        }
        Ok(())
    }

    /// A command's stdout, and the frame with its stderr and exit code.
    fn stream(&mut self) -> Result<(&'o [u8], Frame<'o>), Problem> {
        let mark = format!("\n{}\n", self.token);
        let stdout = self.until(mark.as_bytes())?;
        let ended = self.next()?;
        if ended.kind != b"w" {
            Err(Problem::Wrong("it says nothing of a command"))
        } else {
            Ok((stdout, ended))
        }
    }

    fn kernel_log(&mut self) -> Result<(), Problem> {
        let (records, ended) = self.stream()?;
        // EAGAIN: the end of the log. After any other error the newest records are missing.
        let failed = errno::by_path(&[b"/dev/kmsg"], &self.prefix, ended.bytes).by_path;
        let content = match failed.first().map(|(_, message)| errno::content(message)) {
            None | Some(Content::Failed(Errno::EAGAIN)) => Content::File(records.to_owned()),
            Some(failed) => failed,
        };
        self.put(b"/dev/kmsg", content)
    }

    fn journal(&mut self) -> Result<Printed, Problem> {
        let (stdout, ended) = self.stream()?;
        let code = str::from_utf8(ended.about).ok().and_then(|code| code.parse().ok());
        let code = code.ok_or(Problem::Wrong("it does not say how journalctl ended"))?;
        Ok(Printed { stdout: stdout.to_owned(), stderr: ended.bytes.to_owned(), code })
    }
}

fn find(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    memchr::memmem::find(bytes, mark)
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

fn short(path: &[u8]) -> Result<PathBuf, Problem> {
    if path.len() > LONGEST_PATH {
        return Err(Problem::Wrong("it names a path that is longer than any"));
    }
    Ok(PathBuf::from(OsStr::from_bytes(path)))
}
