//! runc's command line, read as runc's own parser reads it.
//!
//! runc takes global flags, a subcommand, then that subcommand's flags and operands. One dash and two
//! are the same; a value follows as the next argument or after `=`; `--` ends the flags. Flags
//! behind the id count too, except for `exec`, where they belong to the command in the container.
//! No argument is ever looked for by its name alone: `exec c1 mkdir create` is an exec.
//!
//! # Flags that are not in the tables
//! A newer runc may have flags that the tables lack, and whether such a flag takes a value decides which
//! operand is the id. The line is then read in every possible way, and readings that runc would refuse
//! (`create` wants exactly one operand) are dropped. For create, run and delete one reading is left, so that
//! an unknown flag does no harm. A line that stays in doubt is [`ParsedCommandLine::Doubtful`], with all its meanings:
//! the caller acts as plain runc unless one of their containers asks for something.

mod flags;
mod table;

use flags::{Parsed, Refused, Reorder, Unknown};
use table::Grammar;

/// The most distinct unknown flags of a line that are tried out: 2^6 readings are enough.
const UNKNOWN_FLAGS: usize = 6;

/// The meaning of a command line.
#[derive(Debug, PartialEq, Eq)]
pub enum ParsedCommandLine<'a> {
    /// The line has one meaning.
    Certain(Call<'a>),
    /// Flags that only a newer runc knows leave several meanings; each is listed once.
    Doubtful(Vec<Call<'a>>),
}

impl<'a> ParsedCommandLine<'a> {
    /// The global flags: of the one meaning, or of the first.
    pub fn global(&self) -> Global<'a> {
        match self {
            Self::Certain(call) => call.global,
            Self::Doubtful(calls) => calls.first().map(|call| call.global).unwrap_or_default(),
        }
    }
}

/// A command line in one of its meanings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Call<'a> {
    pub global: Global<'a>,
    pub command: Command<'a>,
}

/// The global flags that the wrapper goes by, as they were given: empty and relative ones too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Global<'a> {
    pub root: Option<&'a [u8]>,
    pub log: Option<&'a [u8]>,
    pub log_format: Option<&'a [u8]>,
}

/// The subcommand, with what decides about GPUs. An id is as it was given, not checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Command<'a> {
    Create {
        bundle: Option<&'a [u8]>,
        id: &'a [u8],
    },
    Run {
        bundle: Option<&'a [u8]>,
        id: &'a [u8],
    },
    Exec {
        process: Option<&'a [u8]>,
        id: &'a [u8],
    },
    Delete {
        force: bool,
        id: &'a [u8],
    },
    /// A subcommand of runc's that the wrapper has no part in, by its name.
    Other(&'static str),
    /// runc prints its help or version, or refuses the line.
    #[default]
    Nothing,
}

/// Reads the arguments of a call, without the program's own name.
pub fn read<'a>(arguments: &[&'a [u8]]) -> ParsedCommandLine<'a> {
    let mut calls: Vec<Call<'a>> = Vec::with_capacity(1);
    meanings(arguments, 0, false, &mut calls);
    if calls.iter().all(|call| call.command == Command::Nothing) {
        // The runc of the tables refuses the line, so only a newer runc can give it a meaning.
        calls.clear();
        let mut unknown_flags = 0;
        let mut mask = 0_u32;
        while mask < 1 << unknown_flags {
            unknown_flags = meanings(arguments, mask, true, &mut calls).max(unknown_flags).min(UNKNOWN_FLAGS);
            mask += 1;
        }
    }
    if calls.len() > 1 {
        // A reading that runc refuses does nothing; whichever other one is meant decides.
        calls.retain(|call| call.command != Command::Nothing);
    }
    match calls.as_slice() {
        [] => ParsedCommandLine::Certain(Call::default()),
        [call] => ParsedCommandLine::Certain(*call),
        _ => ParsedCommandLine::Doubtful(calls),
    }
}

/// Adds what the line means to either release of runc's library, and counts the distinct unknown flags.
/// Unless `unknown_too`, a line that holds such flags means nothing.
fn meanings<'a>(arguments: &[&'a [u8]], mask: u32, unknown_too: bool, calls: &mut Vec<Call<'a>>) -> usize {
    let mut unknown_flags = 0;
    for early in [false, true] {
        let mut unknown = Unknown::under(mask);
        let (call, same_either_way) = call(arguments, Reorder { early, unknown_too }, &mut unknown);
        unknown_flags = unknown_flags.max(unknown.count());
        if (unknown_too || unknown.count() == 0) && !calls.contains(&call) {
            calls.push(call);
        }
        if same_either_way {
            break;
        }
    }
    unknown_flags
}

/// A meaning of the line, and whether the two ways of reordering cannot differ on it.
fn call<'a>(arguments: &[&'a [u8]], how: Reorder, unknown: &mut Unknown<'a>) -> (Call<'a>, bool) {
    let Ok(line) = flags::parse(&table::GLOBAL, arguments, unknown) else { return (Call::default(), true) };
    let global =
        Global { root: line.value("root"), log: line.value("log"), log_format: line.value("log-format") };
    let nothing = Call { global, command: Command::Nothing };
    if line.is_on("help") || line.is_on("version") {
        return (nothing, true);
    }
    let Some((name, rest)) = line.operands.split_first() else { return (nothing, true) };
    let grammar = match *name {
        b"create" => &table::CREATE,
        b"run" => &table::RUN,
        b"exec" => &table::EXEC,
        b"delete" => &table::DELETE,
        name => {
            let other = table::OTHERS.iter().find(|other| other.as_bytes() == name);
            let command = other.map_or(Command::Nothing, |other| Command::Other(other));
            return (Call { global, command }, true);
        }
    };
    let (line, same_either_way) = subcommand(grammar, rest, how, unknown);
    let command = match line {
        Err(Refused) => Command::Nothing,
        Ok((line, id)) => match *name {
            b"create" => Command::Create { bundle: line.value("bundle"), id },
            b"run" => Command::Run { bundle: line.value("bundle"), id },
            b"exec" => Command::Exec { process: line.value("process"), id },
            _ => Command::Delete { force: line.is_on("force"), id },
        },
    };
    (Call { global, command }, same_either_way)
}

/// The flags and the id of a subcommand's line.
fn subcommand<'a>(
    grammar: &'static Grammar,
    line: &[&'a [u8]],
    how: Reorder,
    unknown: &mut Unknown<'a>,
) -> (Result<(Parsed<'a>, &'a [u8]), Refused>, bool) {
    let mut reordered = line.to_vec();
    let mut same_either_way = true;
    if !grammar.has_command {
        reordered = flags::reorder(&grammar.flags, line, how);
        same_either_way =
            how.early || reordered == flags::reorder(&grammar.flags, line, Reorder { early: true, ..how });
    }
    let parsed = flags::parse(&grammar.flags, &reordered, unknown).and_then(|line| {
        let id = match line.operands.as_slice() {
            [id] => *id,
            [id, ..] if grammar.has_command => *id,
            _ => return Err(Refused),
        };
        if line.is_on("help") { Err(Refused) } else { Ok((line, id)) }
    });
    (parsed, same_either_way)
}

#[cfg(test)]
mod tests;
