//! What is spelt as rocworker's template spells it (templates/cdi/amd.json).
//!
//! A spec of 64 partitions has seventy devices with five hundred nodes in it, and a create reads nearly all of them: by
//! comparing with the template's own text, which takes a tenth of the time that key by key takes. Of any other spelling
//! nothing is read here, and what is read means what it means key by key (a test holds the two against each other).

use std::borrow::Cow;

use super::{Device, DeviceNode, Edits, Seldom};
use crate::{
    Render,
    json::{Scanner, plain_bytes},
};

const BEFORE_NAME: &[u8; 17] = b"{\n      \"name\": \"";
const BEFORE_NODES: &[u8; 64] = b"\",\n      \"containerEdits\": {\n        \"deviceNodes\": [\n          ";
const BEHIND_NODES: &[u8; 24] = b"\n        ]\n      }\n    }";

const BEFORE_PATH: &[u8; 11] = b"{ \"path\": \"";
/// From one node to the path of the next.
const BETWEEN_PATHS: &[u8; 23] = b",\n          { \"path\": \"";
const BEFORE_MODE: &[u8; 15] = b"\", \"fileMode\": ";
const BEFORE_GID: &[u8; 9] = b", \"gid\": ";
const BEHIND_GID: &[u8; 23] = b", \"permissions\": \"rw\" }";

/// What stands between a path and a group, where the mode has the three digits that the mode of a node has. Card nodes and
/// render nodes, which come by turns, have the same mode and different groups.
type Mode = [u8; BEFORE_MODE.len() + 3 + BEFORE_GID.len()];

/// A node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node<'a> {
    text: &'a str,
    path: &'a [u8],
    /// Where the path begins in the text.
    at: usize,
    file_mode: u32,
    gid: u32,
}

impl<'a> Node<'a> {
    /// The render node that it is, if it is one.
    pub(super) fn render(&self) -> Option<Render> {
        Render::from_bytes(self.path)
    }

    pub(super) fn path(&self) -> &'a str {
        self.text.get(self.at..self.at + self.path.len()).unwrap_or_default()
    }
}

impl<'a> From<Node<'a>> for DeviceNode<'a> {
    #[inline(always)]
    fn from(node: Node<'a>) -> Self {
        // Not by way of a default, of which the rest would be dropped.
        Self {
            path: Cow::Borrowed(node.path()),
            file_mode: Some(node.file_mode),
            gid: Some(node.gid),
            permissions: Some(Cow::Borrowed("rw")),
            more: Seldom::NOTHING,
        }
    }
}

/// Goes past a device, and tells each of its nodes; answers its name. Where it is spelt otherwise, some of its nodes may
/// have been told, and nothing is gone past.
#[inline(always)]
pub(super) fn device<'a>(scanner: &mut Scanner<'a>, mut found: impl FnMut(Node<'a>)) -> Option<&'a str> {
    let mut cursor = Cursor::of(scanner);
    cursor.past(BEFORE_NAME)?;
    let begin = cursor.at();
    cursor.plain();
    let name = cursor.text.get(begin..cursor.at()).unwrap_or_default();
    cursor.past(BEFORE_NODES)?;
    cursor.past(BEFORE_PATH)?;
    let mut last = None;
    loop {
        found(cursor.node(&mut last)?);
        if cursor.past(BETWEEN_PATHS).is_none() {
            cursor.past(BEHIND_NODES)?;
            scanner.go_to(cursor.at());
            return Some(name);
        }
    }
}

/// The whole of a device.
pub(super) fn whole_device<'a>(scanner: &mut Scanner<'a>) -> Option<Device<'a>> {
    let mut device_nodes = Vec::with_capacity(2);
    let name = device(scanner, |node| device_nodes.push(node.into()))?;
    let edits = Edits { device_nodes, more: Seldom::NOTHING };
    Some(Device { name: Cow::Borrowed(name), edits, more: Seldom::NOTHING })
}

/// Goes past a node. Where it is spelt otherwise, nothing is gone past.
pub(super) fn node<'a>(scanner: &mut Scanner<'a>) -> Option<Node<'a>> {
    let mut cursor = Cursor::of(scanner);
    cursor.past(BEFORE_PATH)?;
    let node = cursor.node(&mut None)?;
    scanner.go_to(cursor.at());
    Some(node)
}

struct Cursor<'a> {
    text: &'a str,
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn of(scanner: &Scanner<'a>) -> Self {
        let text = scanner.whole();
        Self { text, rest: text.as_bytes().get(scanner.offset()..).unwrap_or_default() }
    }

    fn at(&self) -> usize {
        self.text.len() - self.rest.len()
    }

    #[inline(always)]
    fn past<const N: usize>(&mut self, constant: &[u8; N]) -> Option<()> {
        let (here, behind) = self.rest.split_first_chunk()?;
        same(here, constant).then(|| self.rest = behind)
    }

    /// Goes past what stands in front of the next quotation mark, escape or control character.
    #[inline(always)]
    fn plain(&mut self) -> &'a [u8] {
        let (plain, behind) = self.rest.split_at_checked(plain_bytes(self.rest)).unwrap_or_default();
        self.rest = behind;
        plain
    }

    /// From a node's path on.
    #[inline(always)]
    fn node(&mut self, last: &mut Option<(&'a Mode, u32)>) -> Option<Node<'a>> {
        let (text, at, path) = (self.text, self.at(), self.plain());
        let file_mode = match *last {
            Some((known, file_mode)) if self.past(known).is_some() => file_mode,
            _ => self.mode(last)?,
        };
        let gid = self.number()?;
        self.past(BEHIND_GID)?;
        Some(Node { text, path, at, file_mode, gid })
    }

    /// From a node's mode to its group.
    fn mode(&mut self, last: &mut Option<(&'a Mode, u32)>) -> Option<u32> {
        let (here, begin): (Option<&Mode>, _) = (self.rest.first_chunk(), self.rest.len());
        self.past(BEFORE_MODE)?;
        let file_mode = self.number()?;
        self.past(BEFORE_GID)?;
        *last = here.filter(|here| begin - self.rest.len() == here.len()).map(|here| (here, file_mode));
        Some(file_mode)
    }

    /// A number as JSON has it, of no more digits than surely fit.
    #[inline(never)]
    fn number(&mut self) -> Option<u32> {
        let digits = self.rest.iter().take(10).take_while(|byte| byte.is_ascii_digit());
        let (length, number) = digits.fold((0, 0_u32), |(length, number), digit| {
            (length + 1, number.wrapping_mul(10).wrapping_add(u32::from(digit - b'0')))
        });
        let is_one = length == 1 || (2..10).contains(&length) && self.rest.first() != Some(&b'0');
        self.rest = self.rest.get(length..).unwrap_or_default();
        is_one.then_some(number)
    }
}

/// Whether two texts are the same, sixteen bytes at a time: the C library compares byte by byte.
#[inline(always)]
fn same<const N: usize>(here: &[u8; N], there: &[u8; N]) -> bool {
    match (here.last_chunk::<16>(), there.last_chunk::<16>()) {
        (Some(last), Some(its_last)) => {
            let ((blocks, _), (its_blocks, _)) = (here.as_chunks::<16>(), there.as_chunks::<16>());
            last == its_last && blocks.iter().zip(its_blocks).all(|(block, its)| block == its)
        }
        _ => here == there,
    }
}
