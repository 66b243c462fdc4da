//! A code object is an ELF file of 64 bits, little endian.

use crate::bytes::{part, u16_at, u32_at, u64_at};
use crate::{Refused, malformed};

pub(crate) const MAGIC: &[u8; 4] = b"\x7fELF";

/// The length of the file's header.
pub(crate) const HEADER: usize = 64;
const EM_AMDGPU: u16 = 224;
const SEGMENT: u16 = 56;
const SECTION: u16 = 64;
const PT_NOTE: u32 = 4;
const SHT_NOBITS: u32 = 8;
/// A linker writes one or two. Thousands that name one another's bytes would take minutes to read.
const MAX_NOTE_SEGMENTS: usize = 16;
/// `Elf64_Nhdr`.
const NOTE: usize = 12;

/// Where the tables of segments and sections are.
pub(crate) struct Tables {
    pub(crate) segments: Table,
    pub(crate) sections: Table,
}

#[derive(Clone, Copy)]
pub(crate) struct Table {
    pub(crate) offset: u64,
    entry: u16,
    count: u16,
}

impl Table {
    pub(crate) fn size(self) -> u64 {
        u64::from(self.entry) * u64::from(self.count)
    }
}

/// A segment's or a section's type, and the part of the file that it takes.
pub(crate) struct Part {
    pub(crate) kind: u32,
    pub(crate) flags: u32,
    pub(crate) address: u64,
    offset: u64,
    size: u64,
}

pub(crate) fn tables(header: &[u8]) -> Result<Tables, Refused> {
    let short = || malformed("the code object ends within its ELF header");
    let class_and_order = header.get(4..6).ok_or_else(short)?;
    if class_and_order != [2, 1] || u16_at(header, 18) != Some(EM_AMDGPU) {
        return Err(malformed("the ELF file is no code object of an AMD GPU"));
    }
    let table = |offset, entry, size| {
        let table = Table {
            offset: u64_at(header, offset).ok_or_else(short)?,
            entry: u16_at(header, entry).ok_or_else(short)?,
            count: u16_at(header, entry + 2).ok_or_else(short)?,
        };
        if table.count > 0 && table.entry != size {
            return Err(malformed(format!(
                "the code object's ELF header has entries of {} bytes",
                table.entry
            )));
        }
        Ok(table)
    };
    Ok(Tables { segments: table(32, 54, SEGMENT)?, sections: table(40, 58, SECTION)? })
}

/// The end of what the tables name: the length of the file. `segments` and `sections` are the tables' bytes.
pub(crate) fn length(tables: &Tables, segments: &[u8], sections: &[u8]) -> Result<u64, Refused> {
    let ends =
        [(tables.segments.offset, tables.segments.size()), (tables.sections.offset, tables.sections.size())];
    let segments = segments.chunks_exact(SEGMENT.into()).filter_map(segment);
    let sections =
        sections.chunks_exact(SECTION.into()).filter_map(section).filter(|it| it.kind != SHT_NOBITS);
    let parts = segments.chain(sections).map(|part| (part.offset, part.size));
    parts.chain(ends).try_fold(HEADER as u64, |longest, (offset, size)| {
        let end =
            offset.checked_add(size).ok_or_else(|| malformed("a part of the code object ends nowhere"))?;
        Ok(longest.max(end))
    })
}

/// The segments of a whole code object.
pub(crate) fn segments(file: &[u8]) -> Result<impl Iterator<Item = Part> + Clone, Refused> {
    let tables = tables(file)?;
    let table = part(file, tables.segments.offset, tables.segments.size())
        .ok_or_else(|| malformed("the code object ends within its table of segments"))?;
    Ok(table.chunks_exact(SEGMENT.into()).filter_map(segment))
}

fn segment(bytes: &[u8]) -> Option<Part> {
    Some(Part {
        kind: u32_at(bytes, 0)?,
        flags: u32_at(bytes, 4)?,
        address: u64_at(bytes, 16)?,
        offset: u64_at(bytes, 8)?,
        size: u64_at(bytes, 32)?,
    })
}

fn section(bytes: &[u8]) -> Option<Part> {
    Some(Part {
        kind: u32_at(bytes, 4)?,
        flags: u32_at(bytes, 8)?,
        address: u64_at(bytes, 16)?,
        offset: u64_at(bytes, 24)?,
        size: u64_at(bytes, 32)?,
    })
}

/// The first note of a vendor and a type, such as AMDGPU's 32: segments carry notes, since a loader reads these alone.
pub(crate) fn note<'a>(file: &'a [u8], vendor: &str, wanted: u32) -> Result<Option<&'a [u8]>, Refused> {
    let segments = segments(file)?.filter(|segment| segment.kind == PT_NOTE);
    for segment in segments.take(MAX_NOTE_SEGMENTS) {
        let mut notes = part(file, segment.offset, segment.size)
            .ok_or_else(|| malformed("the code object ends within its notes"))?;
        while !notes.is_empty() {
            let (note, rest) =
                first(notes).ok_or_else(|| malformed("a note of the code object is cut off"))?;
            if note.kind == wanted
                && note.vendor.strip_suffix(&[0]).unwrap_or(note.vendor) == vendor.as_bytes()
            {
                return Ok(Some(note.text));
            }
            notes = rest;
        }
    }
    Ok(None)
}

struct Note<'a> {
    kind: u32,
    vendor: &'a [u8],
    text: &'a [u8],
}

/// Takes a note from the beginning; its parts are padded to four bytes, the last one of a segment perhaps not.
fn first(notes: &[u8]) -> Option<(Note<'_>, &[u8])> {
    let size = |offset| usize::try_from(u32_at(notes, offset)?).ok();
    let (vendor_size, text_size, kind) = (size(0)?, size(4)?, u32_at(notes, 8)?);
    let vendor_end = NOTE.checked_add(vendor_size)?;
    let text = vendor_end.checked_next_multiple_of(4)?;
    let text_end = text.checked_add(text_size)?;
    let next = text_end.checked_next_multiple_of(4)?.min(notes.len());
    let note = Note { kind, vendor: notes.get(NOTE..vendor_end)?, text: notes.get(text..text_end)? };
    Some((note, notes.get(next..)?))
}
