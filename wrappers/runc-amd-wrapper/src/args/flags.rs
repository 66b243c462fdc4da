//! Flags as Go's `flag` package takes them, and the reordering that runc's command-line library puts
//! in front of it (urfave/cli v1, `command.go`).

use super::table::Flags;

/// runc, or the library in it, would refuse the line: it never gets to a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refused;

/// A guess at which unknown flags take a value: a newer runc may know them.
///
/// The n-th distinct unknown flag of a line takes a value when bit n of `mask` is set. Running a line
/// under every mask gives every way in which it can be meant.
#[derive(Debug)]
pub(super) struct Unknown<'a> {
    mask: u32,
    names: Vec<&'a [u8]>,
}

impl<'a> Unknown<'a> {
    pub(super) fn under(mask: u32) -> Self {
        Self { mask, names: Vec::new() }
    }

    pub(super) fn count(&self) -> usize {
        self.names.len()
    }

    fn takes_value(&mut self, name: &'a [u8]) -> bool {
        let place = self.names.iter().position(|n| *n == name).unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        });
        u32::try_from(place)
            .ok()
            .and_then(|bit| 1_u32.checked_shl(bit))
            .is_some_and(|bit| self.mask & bit != 0)
    }
}

/// A flag that a table has.
#[derive(Clone, Copy, Debug)]
struct Flag {
    /// All names of the flag, as the table has them.
    names: &'static str,
    /// The name by which the flag was found.
    name: &'static str,
    takes_value: bool,
}

/// The flags of a line, and what followed them.
#[derive(Debug)]
pub(super) struct Parsed<'a> {
    given: Vec<(Flag, &'a [u8])>,
    pub(super) operands: Vec<&'a [u8]>,
}

impl<'a> Parsed<'a> {
    /// The last value of the flag whose first name is `name`.
    pub(super) fn value(&self, name: &str) -> Option<&'a [u8]> {
        let is = |flag: &Flag| flag.names.split(' ').next() == Some(name);
        self.given.iter().rev().find(|(flag, _)| is(flag)).map(|(_, value)| *value)
    }

    pub(super) fn is_on(&self, name: &str) -> bool {
        self.value(name).is_some_and(|v| boolean(v) == Some(true))
    }

    /// urfave/cli refuses `-b X --bundle Y`, though not `-b X -b Y`.
    fn uses_two_names_of_one_flag(&self) -> bool {
        let is_twin = |one: &Flag, other: &Flag| one.names == other.names && one.name != other.name;
        self.given.iter().any(|(one, _)| self.given.iter().any(|(other, _)| is_twin(one, other)))
    }
}

/// Go's `strconv.ParseBool`.
fn boolean(text: &[u8]) -> Option<bool> {
    match text {
        b"1" | b"t" | b"T" | b"TRUE" | b"true" | b"True" => Some(true),
        b"0" | b"f" | b"F" | b"FALSE" | b"false" | b"False" => Some(false),
        _ => None,
    }
}

/// Takes flags from the front of `line`; the first argument that is none begins the operands.
///
/// Numbers are not checked: with one that it cannot read runc refuses the whole call by itself.
pub(super) fn parse<'a>(
    flags: &'static Flags,
    line: &[&'a [u8]],
    unknown: &mut Unknown<'a>,
) -> Result<Parsed<'a>, Refused> {
    let mut parsed = Parsed { given: Vec::with_capacity(8), operands: Vec::new() };
    let mut rest = line.iter().copied();
    while let Some(argument) = rest.next() {
        let name = match argument {
            b"--" => break,
            [b'-', b'-', name @ ..] => name,
            [b'-', name @ ..] if !name.is_empty() => name,
            _ => {
                parsed.operands.push(argument);
                break;
            }
        };
        if matches!(name.first(), None | Some(b'-' | b'=')) {
            return Err(Refused);
        }
        let (name, attached) = split(name);
        match find(flags, name) {
            Some(flag) => {
                let value = match attached {
                    Some(value) if !flag.takes_value && boolean(value).is_none() => return Err(Refused),
                    Some(value) => value,
                    None if flag.takes_value => rest.next().ok_or(Refused)?,
                    None => b"true",
                };
                parsed.given.push((flag, value));
            }
            None if attached.is_none() && unknown.takes_value(name) => drop(rest.next().ok_or(Refused)?),
            None => {}
        }
    }
    parsed.operands.extend(rest);
    if parsed.uses_two_names_of_one_flag() { Err(Refused) } else { Ok(parsed) }
}

/// The way in which runc reorders flags. Releases of urfave/cli v1 have moved flags in front of the operands
/// in two ways, which differ for a value that begins with a dash and for `--`. A newer runc moves flags that
/// the tables do not have, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reorder {
    /// urfave/cli up to 1.22.1; otherwise a later one, as runc 1.1.5 of Debian 12 and runc 1.2 have it.
    pub(super) early: bool,
    /// Whether an argument that looks like a flag and is in no table counts as one.
    pub(super) unknown_too: bool,
}

/// The line as runc hands it to Go's `flag` package.
///
/// A switch in front of the id takes the id along with it, as runc's library does: what follows the id
/// is then no flag any more, and runc refuses the line for its number of operands.
pub(super) fn reorder<'a>(flags: &'static Flags, line: &[&'a [u8]], how: Reorder) -> Vec<&'a [u8]> {
    let mut front = Vec::with_capacity(line.len());
    let mut back = Vec::new();
    let mut value_may_follow = false;
    for (i, argument) in line.iter().copied().enumerate() {
        let is_value = value_may_follow
            && if how.early {
                !argument.starts_with(b"-")
            } else {
                !is_flag(flags, argument, how.unknown_too)
            };
        if is_value {
            value_may_follow = false;
            front.push(argument);
        } else if argument == b"--" {
            let place = if how.early { back.len() } else { 0 };
            back.insert(place, argument);
            back.extend(line.iter().skip(i + 1));
            break;
        } else if is_flag(flags, argument, how.unknown_too) {
            front.push(argument);
            value_may_follow = !argument.contains(&b'=');
        } else {
            back.push(argument);
        }
    }
    front.append(&mut back);
    front
}

/// Whether runc's library would move the argument in front of the operands.
fn is_flag(flags: &'static Flags, argument: &[u8], unknown_too: bool) -> bool {
    let Some(name) = argument.strip_prefix(b"-") else { return false };
    let name = name.strip_prefix(b"-").unwrap_or(name);
    // The library strips all of three dashes before it looks the flag up; Go refuses the syntax afterwards.
    let (name, dashes) = name.strip_prefix(b"-").map_or((name, 2), |name| (name, 3));
    let name = split(name).0;
    find(flags, name).is_some() || (unknown_too && dashes < 3 && !name.is_empty())
}

fn split(name: &[u8]) -> (&[u8], Option<&[u8]>) {
    match name.iter().position(|b| *b == b'=') {
        Some(at) => {
            let (name, value) = name.split_at(at);
            (name, value.get(1..))
        }
        None => (name, None),
    }
}

fn find(flags: &'static Flags, name: &[u8]) -> Option<Flag> {
    let find_in = |takes_value, flags: &'static [&'static str]| {
        flags.iter().find_map(|names| Some(Flag { names, name: called(names, name)?, takes_value }))
    };
    find_in(true, flags.values).or_else(|| find_in(false, flags.switches))
}

/// The one of a flag's names, at most two with a space between them, that this is.
fn called(names: &'static str, name: &[u8]) -> Option<&'static str> {
    let bytes = names.as_bytes();
    if bytes.strip_prefix(name).is_some_and(|rest| matches!(rest, [] | [b' ', ..])) && !name.contains(&b' ') {
        return names.get(..name.len());
    }
    let is_second = bytes.strip_suffix(name).is_some_and(|rest| rest.ends_with(b" "));
    if is_second { names.get(names.len() - name.len()..) } else { None }
}
