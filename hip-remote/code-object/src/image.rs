//! What a program gives as code: an ELF file, a bundle of them, or a compressed bundle, told apart by their first bytes.

use std::borrow::Cow;
use std::io::{self, BufReader, Read};

use crate::compressed::Header;
use crate::{Refused, bundle, compressed, elf, malformed, target};

/// The longest code object: its code reaches its data by 32-bit distances.
const MAX_CODE_OBJECT: u64 = 4 << 30;

/// The length of an image of which a program gave only the address. `read` fills the bytes from an offset on, and says
/// whether it could; nothing behind the image is asked for.
///
/// # Errors
/// The bytes are no image.
pub fn length(mut read: impl FnMut(u64, &mut [u8]) -> bool) -> Result<u64, Refused> {
    let read: &mut Memory = &mut read;
    let mut magic = [0; 4];
    fill(read, 0, &mut magic)?;
    match &magic {
        elf::MAGIC => {
            let mut header = [0; elf::HEADER];
            fill(read, 0, &mut header)?;
            let tables = elf::tables(&header)?;
            let mut table = |table: elf::Table| {
                let mut bytes = vec![0; usize::try_from(table.size()).unwrap_or_default()];
                fill(read, table.offset, &mut bytes)?;
                Ok(bytes)
            };
            let [segments, sections] = [table(tables.segments)?, table(tables.sections)?];
            elf::length(&tables, &segments, &sections)
        }
        compressed::MAGIC => {
            let mut header = [0; compressed::HEADER];
            // Version 1 ends its header earlier, and its stream may be shorter than the rest.
            fill(read, 0, &mut header[..20])?;
            if !header.starts_with(b"CCOB\x01\0") {
                fill(read, 0, &mut header)?;
            }
            let header = Header::parse(&header)?;
            if let Some(total) = header.total {
                return Ok(total);
            }
            let mut stream = Stream { read, position: header.size as u64 };
            // A greater buffer would read behind the stream's end, where no memory may be.
            compressed::skip(&mut header.decompressed(BufReader::with_capacity(1, &mut stream))?)?;
            Ok(stream.position)
        }
        _ => {
            let (entries, table) = bundle::entries(&mut Stream { read, position: 0 })?;
            entries.iter().try_fold(table, |longest, entry| Ok(longest.max(entry.end()?)))
        }
    }
}

/// The code object in an image that a GPU such as `gfx90a:sramecc+:xnack-` runs, chosen by LLVM's rules.
///
/// # Errors
/// The bytes are no image, or none of its code is for the GPU.
pub fn code_object<'a>(image: &'a [u8], gpu: &str) -> Result<Cow<'a, [u8]>, Refused> {
    if image.starts_with(elf::MAGIC) {
        elf::tables(image)?;
        return Ok(Cow::Borrowed(image));
    }
    if !image.starts_with(compressed::MAGIC) {
        let (entries, _) = bundle::entries(&mut &*image)?;
        let entry = chosen(&entries, gpu)?;
        let code = crate::bytes::part(image, entry.offset, entry.size);
        return code.map(Cow::Borrowed).ok_or_else(|| cut_off(entry));
    }
    let header = Header::parse(image)?;
    let stream = image.get(header.size..).unwrap_or_default();
    let mut bundle = header.decompressed(stream)?;
    let (entries, table) = bundle::entries(&mut bundle)?;
    let entry = chosen(&entries, gpu)?;
    if entry.size > MAX_CODE_OBJECT {
        return Err(malformed(format!("the code object for {gpu} has {} bytes", entry.size)));
    }
    let gap =
        entry.offset.checked_sub(table).ok_or_else(|| malformed("a code object begins within the table"))?;
    // Other targets' code is not kept: a library's bundle holds a dozen of them.
    let skipped = compressed::skip(&mut bundle.by_ref().take(gap))?;
    let mut code = Vec::new();
    let damaged = |error: io::Error| malformed(format!("the compressed bundle is damaged: {error}"));
    bundle.take(entry.size).read_to_end(&mut code).map_err(damaged)?;
    if skipped < gap || (code.len() as u64) < entry.size {
        return Err(cut_off(entry));
    }
    Ok(Cow::Owned(code))
}

fn chosen<'a>(entries: &'a [bundle::Entry], gpu: &str) -> Result<&'a bundle::Entry, Refused> {
    let fitting =
        entries.iter().filter_map(|entry| Some((target::fit(target::of_entry(&entry.id)?, gpu)?, entry)));
    fitting.max_by_key(|(fit, _)| *fit).map(|(_, entry)| entry).ok_or_else(|| Refused::NoCodeFor {
        target: gpu.to_owned(),
        offered: entries.iter().filter_map(|entry| target::of_entry(&entry.id)).map(str::to_owned).collect(),
    })
}

fn cut_off(entry: &bundle::Entry) -> Refused {
    malformed(format!("the bundle ends within its entry {}", entry.id))
}

type Memory<'a> = dyn FnMut(u64, &mut [u8]) -> bool + 'a;

fn fill(read: &mut Memory, offset: u64, into: &mut [u8]) -> Result<(), Refused> {
    if into.is_empty() || read(offset, into) {
        return Ok(());
    }
    Err(malformed(format!("the image ends before its byte {}", offset.saturating_add(into.len() as u64))))
}

/// An image as a stream, which takes exactly what it is asked for.
struct Stream<'a, 'b> {
    read: &'a mut Memory<'b>,
    position: u64,
}

impl Read for Stream<'_, '_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if !into.is_empty() && !(self.read)(self.position, into) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.position += into.len() as u64;
        Ok(into.len())
    }
}
