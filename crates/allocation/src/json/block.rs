//! Sixteen bytes of a text, looked at at once: most of a bundle is strings, and to find their ends is most of what
//! reading one takes.
//!
//! Answers have a bit for each byte, the first one's lowest.
#![allow(unsafe_code, reason = "the instructions that every x86-64 has are functions of a target feature")]

pub(super) const LENGTH: usize = 16;
pub(super) type Block = [u8; LENGTH];

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

#[cfg(not(target_arch = "x86_64"))]
pub(super) use plain::{others, specials};

#[cfg(target_arch = "x86_64")]
mod sse2 {
    use std::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128,
        _mm_set1_epi8,
    };

    use super::Block;

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
}

/// The same a byte at a time, for every processor.
#[cfg(any(test, not(target_arch = "x86_64")))]
mod plain {
    use super::Block;

    fn bits(block: &Block, is: impl Fn(u8) -> bool) -> u32 {
        block.iter().rev().fold(0, |bits, byte| bits << 1 | u32::from(is(*byte)))
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
    use super::{LENGTH, others, plain, specials};

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
}
