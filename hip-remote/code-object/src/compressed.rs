//! A bundle under zlib or zstd, which `--offload-compress` makes: the container that LLVM calls CCOB.

use std::io::{self, BufRead, Read};

use flate2::bufread::ZlibDecoder;
use ruzstd::decoding::StreamingDecoder;

use crate::bytes::{u16_at, u32_at, u64_at};
use crate::{Refused, malformed};

pub(crate) const MAGIC: &[u8; 4] = b"CCOB";

/// The length of the longest header.
pub(crate) const HEADER: usize = 32;

/// The window of clang 22 for a bundle of more than 100 MiB.
const MAX_WINDOW: u64 = 128 << 20;

#[derive(Debug, PartialEq)]
pub(crate) struct Header {
    zstd: bool,
    /// Of the header itself.
    pub(crate) size: usize,
    /// Header and compressed bytes together, where the version says so.
    pub(crate) total: Option<u64>,
    /// Of the bundle, decompressed.
    uncompressed: u64,
}

impl Header {
    /// Reads a header from at most [`HEADER`] bytes of the image's beginning.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Refused> {
        let short = || malformed("the compressed bundle ends within its header");
        let version = u16_at(bytes, 4).ok_or_else(short)?;
        let method = u16_at(bytes, 6).ok_or_else(short)?;
        let wide = |offset| u32_at(bytes, offset).map(u64::from);
        // Behind the sizes stand eight bytes of a hash.
        let (total, uncompressed, size) = match version {
            1 => (None, wide(8), 20),
            2 => (Some(wide(8).ok_or_else(short)?), wide(12), 24),
            3 => (Some(u64_at(bytes, 8).ok_or_else(short)?), u64_at(bytes, 16), 32),
            other => {
                return Err(malformed(format!(
                    "the compressed bundle has version {other}, and 1 to 3 are known"
                )));
            }
        };
        let zstd = match method {
            0 => false,
            1 => true,
            other => {
                return Err(malformed(format!(
                    "the bundle's compression is {other}, and 0 (zlib) and 1 (zstd) are known"
                )));
            }
        };
        if total.is_some_and(|total| total < size as u64) {
            return Err(malformed("the compressed bundle says that it ends within its header"));
        }
        Ok(Self { zstd, size, total, uncompressed: uncompressed.ok_or_else(short)? })
    }

    /// The bundle, read from the bytes behind the header: never more than a byte more than the header says. That byte
    /// makes a decoder read its stream to the end.
    pub(crate) fn decompressed<'a>(
        &self,
        compressed: impl BufRead + 'a,
    ) -> Result<Box<dyn Read + 'a>, Refused> {
        let bundle: Box<dyn Read + 'a> = if self.zstd {
            let decoder = StreamingDecoder::new_with_max_window_size(compressed, MAX_WINDOW)
                .map_err(|error| malformed(format!("the bundle's zstd frame cannot be read: {error}")))?;
            Box::new(decoder.take(self.uncompressed.saturating_add(1)))
        } else {
            Box::new(ZlibDecoder::new(compressed).take(self.uncompressed.saturating_add(1)))
        };
        Ok(bundle)
    }
}

/// Reads all of a stream and keeps nothing.
pub(crate) fn skip(stream: &mut impl Read) -> Result<u64, Refused> {
    io::copy(stream, &mut io::sink())
        .map_err(|error| malformed(format!("the compressed bundle is damaged: {error}")))
}
