//! Paths for the kernel's calls that are made without asking for memory.

use std::ffi::CStr;

/// A path of fewer than 64 bytes.
#[derive(Debug)]
pub struct ShortPath {
    /// Without a null up to `length`, and zeroed behind it.
    bytes: [u8; 64],
    length: usize,
}

impl Default for ShortPath {
    fn default() -> Self {
        Self { bytes: [0; 64], length: 0 }
    }
}

impl ShortPath {
    /// Adds to it. None: that would have a null in it, or not be short; then it stays as it was.
    pub fn push(&mut self, bytes: &[u8]) -> Option<()> {
        // Without a branch, so that many are looked at at once.
        let has_null = bytes.iter().fold(false, |has, byte| has | (*byte == 0));
        let end = self.length + bytes.len();
        // One byte stays free.
        let place = self.bytes.get_mut(self.length..end).filter(|_| !has_null && end < 64)?;
        place.copy_from_slice(bytes);
        self.length = end;
        Some(())
    }

    /// Adds a number. core::fmt would take longer than the question to the kernel.
    pub fn push_number(&mut self, number: u32) -> Option<()> {
        let digit = |number: u32| b'0' + u8::try_from(number % 10).unwrap_or_default();
        match number {
            // Most are numbers of nodes.
            0..10 => self.push(&[digit(number)]),
            10..100 => self.push(&[digit(number / 10), digit(number)]),
            100..1000 => self.push(&[digit(number / 100), digit(number / 10), digit(number)]),
            _ => {
                let (mut digits, mut begin, mut left) = ([0; 10], 10, number);
                while left > 0 {
                    begin -= 1;
                    digits[begin] = digit(left);
                    left /= 10;
                }
                self.push(&digits[begin..])
            }
        }
    }

    pub fn as_c_str(&self) -> &CStr {
        let bytes = self.bytes.get(..=self.length).unwrap_or(&[0]);
        // SAFETY: nothing is added that has a null in it, and one always stands behind it.
        unsafe { CStr::from_bytes_with_nul_unchecked(bytes) }
    }
}
