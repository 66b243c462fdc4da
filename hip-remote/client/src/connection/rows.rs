//! Rows of bytes in the program's memory.

/// `height` rows of `width` bytes, whose beginnings are `pitch` bytes apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rows {
    pub address: usize,
    pub pitch: usize,
    pub width: usize,
    pub height: usize,
}

impl Rows {
    pub fn bytes(&self) -> usize {
        self.width.saturating_mul(self.height)
    }

    /// Whether the rows follow one another without gaps.
    pub fn are_one(&self) -> bool {
        self.pitch == self.width || self.height == 1
    }

    /// Whether some of this memory lies between the first row's beginning and the last row's end.
    pub fn overlap(&self, address: usize, bytes: usize) -> bool {
        let end = self.address + self.height.saturating_sub(1) * self.pitch + self.width;
        self.address < address.saturating_add(bytes) && address < end
    }

    /// The parts of rows that `length` bytes from `offset` on are, counted without the gaps: addresses and lengths.
    pub fn parts(&self, offset: usize, length: usize) -> impl Iterator<Item = (usize, usize)> {
        let Self { address, pitch, width, .. } = *self;
        let width = if self.are_one() { usize::MAX } else { width.max(1) };
        let end = offset.saturating_add(length);
        let mut at = offset;
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let (row, column) = (at / width, at % width);
            let part = (width - column).min(end - at);
            at += part;
            Some((address + row * pitch + column, part))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_leave_the_gaps_out() {
        let rows = Rows { address: 1000, pitch: 10, width: 4, height: 5 };
        let parts: Vec<_> = rows.parts(6, 8).collect();
        assert_eq!(parts, [(1012, 2), (1020, 4), (1030, 2)]);
        let rows = Rows { address: 1000, pitch: 4, width: 4, height: 5 };
        assert_eq!(rows.parts(6, 8).collect::<Vec<_>>(), [(1006, 8)]);
    }
}
