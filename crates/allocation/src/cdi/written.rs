//! What is spelt as rocworker's template spells it (templates/cdi/amd.json).
//!
//! A spec of 64 partitions has seventy devices with five hundred nodes in it, and a create reads nearly all of them: by
//! comparing with the template's own text, which takes a tenth of the time that key by key takes. Of any other spelling
//! nothing is read here, and what is read means what it means key by key (a test holds the two against each other).

use super::{Device, DeviceNode, Edits};
use crate::json::{Scanner, plain_bytes};

const BEFORE_NAME: &[u8] = b"{\n      \"name\": \"";
const BEFORE_NODES: &[u8] = b"\",\n      \"containerEdits\": {\n        \"deviceNodes\": [\n          ";
const BETWEEN_NODES: &[u8] = b",\n          ";
const BEHIND_NODES: &[u8] = b"\n        ]\n      }\n    }";

const BEFORE_PATH: &[u8] = b"{ \"path\": \"";
const BEFORE_MODE: &[u8] = b"\", \"fileMode\": ";
const BEHIND_MODE: &[u8] = b", \"permissions\": \"rw\" }";

/// What stands behind a path, where the mode has the three digits that the mode of a node has.
type Behind = [u8; BEFORE_MODE.len() + 3 + BEHIND_MODE.len()];

/// A node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node<'a> {
    pub(super) path: &'a str,
    file_mode: u32,
}

impl<'a> From<Node<'a>> for DeviceNode<'a> {
    fn from(Node { path, file_mode }: Node<'a>) -> Self {
        Self {
            path: path.into(),
            file_mode: Some(file_mode),
            permissions: Some("rw".into()),
            ..DeviceNode::default()
        }
    }
}

/// Goes past a device, and tells each of its nodes; answers its name. Where it is spelt otherwise, some of its nodes may
/// have been told, and nothing is gone past.
pub(super) fn device<'a>(scanner: &mut Scanner<'a>, mut found: impl FnMut(Node<'a>)) -> Option<&'a str> {
    let mut cursor = Cursor::at(scanner);
    cursor.past(BEFORE_NAME)?;
    let name = cursor.plain();
    cursor.past(BEFORE_NODES)?;
    let mut last = None;
    loop {
        found(cursor.node(&mut last)?);
        if cursor.past(BETWEEN_NODES).is_none() {
            cursor.past(BEHIND_NODES)?;
            scanner.go_to(cursor.at);
            return Some(name);
        }
    }
}

/// The whole of a device.
pub(super) fn whole_device<'a>(scanner: &mut Scanner<'a>) -> Option<Device<'a>> {
    let mut device_nodes = Vec::with_capacity(2);
    let name = device(scanner, |node| device_nodes.push(node.into()))?;
    Some(Device { name: name.into(), edits: Edits { device_nodes, ..Edits::default() }, ..Device::default() })
}

/// Goes past a node. Where it is spelt otherwise, nothing is gone past.
pub(super) fn node<'a>(scanner: &mut Scanner<'a>) -> Option<Node<'a>> {
    let mut cursor = Cursor::at(scanner);
    let node = cursor.node(&mut None)?;
    scanner.go_to(cursor.at);
    Some(node)
}

struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn at(scanner: &Scanner<'a>) -> Self {
        Self { text: scanner.whole(), at: scanner.offset() }
    }

    #[inline(always)]
    fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    #[inline(always)]
    fn past(&mut self, constant: &[u8]) -> Option<()> {
        self.rest()
            .get(..constant.len())
            .is_some_and(|here| same(here, constant))
            .then(|| self.at += constant.len())
    }

    /// Goes past what stands in front of the next quotation mark, escape or control character.
    #[inline(always)]
    fn plain(&mut self) -> &'a str {
        let start = self.at;
        self.at += plain_bytes(self.rest());
        self.text.get(start..self.at).unwrap_or_default()
    }

    #[inline(always)]
    fn node(&mut self, last: &mut Option<(&'a Behind, u32)>) -> Option<Node<'a>> {
        self.past(BEFORE_PATH)?;
        let path = self.plain();
        let behind: Option<&Behind> = self.rest().first_chunk();
        if let Some((known, file_mode)) = *last
            && behind.is_some_and(|behind| same(behind, known))
        {
            self.at += known.len();
            return Some(Node { path, file_mode });
        }
        let begin = self.at;
        self.past(BEFORE_MODE)?;
        let file_mode = self.number()?;
        self.past(BEHIND_MODE)?;
        *last = behind.filter(|behind| self.at - begin == behind.len()).map(|behind| (behind, file_mode));
        Some(Node { path, file_mode })
    }

    /// A number as JSON has it, of no more digits than surely fit.
    fn number(&mut self) -> Option<u32> {
        let rest = self.rest();
        let digits = rest.iter().take(10).take_while(|byte| byte.is_ascii_digit());
        let (length, number) = digits.fold((0, 0_u32), |(length, number), digit| {
            (length + 1, number.wrapping_mul(10).wrapping_add(u32::from(digit - b'0')))
        });
        self.at += length;
        (length == 1 || (2..10).contains(&length) && rest.first() != Some(&b'0')).then_some(number)
    }
}

/// Whether two texts of the same length are the same, sixteen bytes at a time: the C library compares byte by byte.
#[inline(always)]
fn same(here: &[u8], there: &[u8]) -> bool {
    match (here.last_chunk::<16>(), there.last_chunk::<16>()) {
        (Some(last), Some(its_last)) => {
            let ((blocks, _), (its_blocks, _)) = (here.as_chunks::<16>(), there.as_chunks::<16>());
            last == its_last && blocks.iter().zip(its_blocks).all(|(block, its)| block == its)
        }
        _ => here == there,
    }
}
