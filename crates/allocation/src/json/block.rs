//! Sixteen bytes of a text, looked at at once: most of a bundle is strings, and to find their ends is most of what
//! reading one takes.
//!
//! Answers have a bit for each byte, the first one's lowest.
#![allow(unsafe_code, reason = "the instructions that every x86-64 has are functions of a target feature")]

pub(super) const LENGTH: usize = 16;
pub(super) type Block = [u8; LENGTH];

/// Four blocks.
pub(super) type Row = [u8; 4 * LENGTH];

/// Which of the bytes can end the plain part of a string: quotation marks, backslashes, control characters.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn specials(block: &Block) -> u32 {
    // SAFETY: SSE2 is a part of x86-64.
    unsafe { sse2::specials(block) }
}

/// Which of the bytes are no space as JSON has it.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn others(block: &Block) -> u32 {
    // SAFETY: SSE2 is a part of x86-64.
    unsafe { sse2::others(block) }
}

/// Which bytes of a row are quotation marks, and whether there is any bracket or backslash in it (or a `|`, which is as
/// rare and looks alike).
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn quotes(row: &Row) -> (u64, bool) {
    // SAFETY: SSE2 is a part of x86-64.
    unsafe { sse2::quotes(row) }
}

/// Which bytes of a row are opening brackets or braces, which are closing ones, and which are backslashes.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn brackets(row: &Row) -> [u64; 3] {
    // SAFETY: SSE2 is a part of x86-64.
    unsafe { sse2::brackets(row) }
}

#[cfg(not(target_arch = "x86_64"))]
pub(super) use plain::{brackets, others, quotes, specials};

#[cfg(target_arch = "x86_64")]
mod sse2 {
    use std::arch::x86_64::{
        __m128i, _mm_add_epi8, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_min_epu8, _mm_movemask_epi8,
        _mm_or_si128, _mm_set1_epi8,
    };

    use super::{Block, Row};

    #[inline]
    #[target_feature(enable = "sse2")]
    fn load(block: &Block) -> __m128i {
        // SAFETY: a block is sixteen bytes, which may stand anywhere.
        unsafe { _mm_loadu_si128(block.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn bits(bytes: __m128i) -> u32 {
        _mm_movemask_epi8(bytes).cast_unsigned()
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    pub(super) fn specials(block: &Block) -> u32 {
        let block = load(block);
        let is = |byte: u8| _mm_cmpeq_epi8(block, _mm_set1_epi8(byte.cast_signed()));
        let is_control = _mm_cmpeq_epi8(block, _mm_min_epu8(block, _mm_set1_epi8(0x1f)));
        bits(_mm_or_si128(_mm_or_si128(is(b'"'), is(b'\\')), is_control))
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    pub(super) fn others(block: &Block) -> u32 {
        let block = load(block);
        let is = |byte: u8| _mm_cmpeq_epi8(block, _mm_set1_epi8(byte.cast_signed()));
        let breaks = _mm_or_si128(is(b'\n'), _mm_or_si128(is(b'\r'), is(b'\t')));
        !bits(_mm_or_si128(is(b' '), breaks)) & 0xffff
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn blocks(row: &Row) -> [__m128i; 4] {
        let (blocks, _) = row.as_chunks();
        [load(&blocks[0]), load(&blocks[1]), load(&blocks[2]), load(&blocks[3])]
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn all_bits([a, b, c, d]: [__m128i; 4]) -> u64 {
        let pair = |low: __m128i, high: __m128i| u64::from(bits(high) << 16 | bits(low));
        pair(c, d) << 32 | pair(a, b)
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    fn equal(block: __m128i, byte: u8) -> __m128i {
        _mm_cmpeq_epi8(block, _mm_set1_epi8(byte.cast_signed()))
    }

    /// With the bit in which a bracket differs from a brace.
    #[inline]
    #[target_feature(enable = "sse2")]
    fn braced(block: __m128i) -> __m128i {
        _mm_or_si128(block, _mm_set1_epi8(0x20))
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    pub(super) fn quotes(row: &Row) -> (u64, bool) {
        let [a, b, c, d] = blocks(row);
        // Opening, `|` or a backslash, and closing are three in a row.
        let special = |block| {
            let from_open = _mm_add_epi8(braced(block), _mm_set1_epi8(b'{'.wrapping_neg().cast_signed()));
            _mm_cmpeq_epi8(from_open, _mm_min_epu8(from_open, _mm_set1_epi8(2)))
        };
        let any = _mm_or_si128(_mm_or_si128(special(a), special(b)), _mm_or_si128(special(c), special(d)));
        (all_bits([equal(a, b'"'), equal(b, b'"'), equal(c, b'"'), equal(d, b'"')]), bits(any) != 0)
    }

    #[inline]
    #[target_feature(enable = "sse2")]
    pub(super) fn brackets(row: &Row) -> [u64; 3] {
        let [a, b, c, d] = blocks(row);
        let is = |byte| all_bits([equal(a, byte), equal(b, byte), equal(c, byte), equal(d, byte)]);
        let backslashes = is(b'\\');
        let [a, b, c, d] = [braced(a), braced(b), braced(c), braced(d)];
        let is = |byte| all_bits([equal(a, byte), equal(b, byte), equal(c, byte), equal(d, byte)]);
        [is(b'{'), is(b'}'), backslashes]
    }
}

/// The same a byte at a time, for every processor.
#[cfg(any(test, not(target_arch = "x86_64")))]
mod plain {
    use super::{Block, Row};

    fn bits(block: &Block, is: impl Fn(u8) -> bool) -> u32 {
        block.iter().rev().fold(0, |bits, byte| bits << 1 | u32::from(is(*byte)))
    }

    fn all_bits(row: &Row, is: impl Fn(u8) -> bool) -> u64 {
        row.iter().rev().fold(0, |bits, byte| bits << 1 | u64::from(is(*byte)))
    }

    pub(in super::super) fn quotes(row: &Row) -> (u64, bool) {
        let is_special = |byte: &u8| matches!(byte | 0x20, b'{' | b'|' | b'}');
        (all_bits(row, |byte| byte == b'"'), row.iter().any(is_special))
    }

    pub(in super::super) fn brackets(row: &Row) -> [u64; 3] {
        let is = |bytes: [u8; 2]| all_bits(row, |byte| bytes.contains(&byte));
        [is(*b"[{"), is(*b"]}"), is(*b"\\\\")]
    }

    pub(in super::super) fn specials(block: &Block) -> u32 {
        bits(block, |byte| (byte == b'"') | (byte == b'\\') | (byte < 0x20))
    }

    pub(in super::super) fn others(block: &Block) -> u32 {
        bits(block, |byte| (byte != b' ') & (byte != b'\n') & (byte != b'\r') & (byte != b'\t'))
    }
}

#[cfg(test)]
mod tests {
    use super::{LENGTH, brackets, others, plain, quotes, specials};

    #[test]
    fn what_is_found_at_once_is_what_is_found_byte_by_byte() {
        for byte in 0..=u8::MAX {
            for at in 0..LENGTH {
                for around in [b'a', b' ', b'"', 0xff] {
                    let mut block = [around; LENGTH];
                    block[at] = byte;
                    assert_eq!(specials(&block), plain::specials(&block), "{block:?}");
                    assert_eq!(others(&block), plain::others(&block), "{block:?}");
                }
            }
        }
        assert_eq!(plain::specials(b"a\"\\\x1f\x20\x7f\x80\xff--------"), 0b1110);
        assert_eq!(plain::others(b" \n\r\ta\x0b\x0c\0        "), 0b1111_0000);
    }

    #[test]
    fn so_are_the_quotation_marks_and_brackets_of_a_row() {
        for byte in 0..=u8::MAX {
            for at in 0..4 * LENGTH {
                for around in [b'a', b'"', b'{'] {
                    let mut row = [around; 4 * LENGTH];
                    row[at] = byte;
                    assert_eq!(quotes(&row), plain::quotes(&row), "{row:?}");
                    assert_eq!(brackets(&row), plain::brackets(&row), "{row:?}");
                }
            }
        }
        let mut row = [b' '; 4 * LENGTH];
        row[..8].copy_from_slice(b"\"[{]}\\\"|");
        row[63] = b'"';
        assert_eq!(plain::quotes(&row), (1 << 63 | 0b100_0001, true));
        assert_eq!(plain::brackets(&row), [0b110, 0b1_1000, 0b10_0000]);
        row[1..8].fill(b'=');
        assert_eq!(plain::quotes(&row), (1 << 63 | 1, false));
    }
}
