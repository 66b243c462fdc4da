//! Rows of bytes in a device's memory: what a copy or a memset touches.

use crate::hip::{INVALID_VALUE, Status};

/// `height` rows of `width` bytes, which begin `pitch` bytes apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    pub pointer: u64,
    pub pitch: u64,
    pub width: u64,
    pub height: u64,
}

/// A part of packed rows as one call of the library can copy it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Where the part begins on the device.
    pub pointer: u64,
    /// Where the part begins among the packed bytes that were asked for.
    pub offset: usize,
    pub width: usize,
    pub height: usize,
}

impl Rows {
    /// # Errors
    /// Rows overlap, or are longer than an address space.
    pub fn new(pointer: u64, pitch: u64, width: u64, height: u64) -> Result<Self, Status> {
        let rows = Self { pointer, pitch, width, height };
        if height > 1 && pitch < width {
            return Err(INVALID_VALUE);
        }
        rows.extent().ok_or(INVALID_VALUE)?;
        Ok(rows)
    }

    /// The bytes of all rows, without the gaps.
    pub fn bytes(&self) -> u64 {
        self.width.saturating_mul(self.height)
    }

    /// The bytes from the first row's begin to the last row's end.
    pub fn extent(&self) -> Option<u64> {
        if self.width == 0 || self.height == 0 {
            return Some(0);
        }
        let extent = self.pitch.checked_mul(self.height - 1)?.checked_add(self.width)?;
        self.pointer.checked_add(extent)?;
        // The packed bytes are no more than the extent, since rows do not overlap.
        Some(extent)
    }

    fn is_one_piece(&self) -> bool {
        self.height <= 1 || self.pitch == self.width
    }

    /// The calls that copy `length` packed bytes from `begin` on: the rest of a row, whole rows, a part of a row.
    pub fn parts(&self, begin: u64, length: usize) -> impl Iterator<Item = Part> {
        let rows = *self;
        let mut offset = 0;
        std::iter::from_fn(move || {
            let left = length.checked_sub(offset).filter(|left| *left > 0)?;
            let at = begin + offset as u64;
            let part = if rows.is_one_piece() {
                Part { pointer: rows.pointer + at, offset, width: left, height: 1 }
            } else {
                let (row, column) = (at / rows.width, at % rows.width);
                let pointer = rows.pointer + row * rows.pitch + column;
                let rest = usize::try_from(rows.width - column).unwrap_or(usize::MAX);
                let width = left.min(rest);
                let whole = if column == 0 { left / rest } else { 0 };
                Part { pointer, offset, width, height: whole.max(1) }
            };
            offset += part.width * part.height;
            Some(part)
        })
    }

    /// How many packed bytes from `begin` on a chunk of at most `most` bytes has: whole rows where one fits.
    pub fn chunk(&self, begin: u64, most: usize) -> usize {
        let left = usize::try_from(self.bytes() - begin).unwrap_or(usize::MAX);
        let width = usize::try_from(self.width).unwrap_or(usize::MAX);
        if left <= most {
            left
        } else if self.is_one_piece() {
            most
        } else if width <= most && begin.is_multiple_of(self.width) {
            most / width * width
        } else {
            most.min(usize::try_from(self.width - begin % self.width).unwrap_or(usize::MAX))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_of_any_length_cover_each_byte_of_the_rows_once() {
        for (pitch, width, height) in [(10, 10, 5), (16, 10, 5), (100, 1, 7), (8, 8, 1), (0, 9, 1)] {
            let rows = Rows::new(1000, pitch, width, height).unwrap();
            for most in 1..40 {
                let mut touched = Vec::new();
                let mut begin = 0;
                while begin < rows.bytes() {
                    let length = rows.chunk(begin, most);
                    assert!(length > 0 && length <= most);
                    let mut packed = 0;
                    for part in rows.parts(begin, length) {
                        assert_eq!(part.offset, packed);
                        packed += part.width * part.height;
                        for row in 0..part.height as u64 {
                            let from = part.pointer + row * pitch;
                            touched.extend(from..from + part.width as u64);
                        }
                    }
                    assert_eq!(packed, length);
                    begin += length as u64;
                }
                let expected: Vec<u64> =
                    (0..height).flat_map(|row| (0..width).map(move |at| 1000 + row * pitch + at)).collect();
                assert_eq!(touched, expected, "{rows:?} by {most}");
            }
        }
    }

    #[test]
    fn rows_that_overlap_or_leave_the_address_space_are_refused() {
        for (pointer, pitch, width, height) in
            [(0, 4, 5, 2), (0, u64::MAX, 1, 3), (u64::MAX, 1, 1, 1), (1, 1, u64::MAX, 1), (0, 0, 1, u64::MAX)]
        {
            assert_eq!(Rows::new(pointer, pitch, width, height), Err(INVALID_VALUE));
        }
    }
}
