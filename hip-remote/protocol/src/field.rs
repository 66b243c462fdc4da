//! Fields of fixed size, little endian, one after the other without padding.

/// A value whose bytes have one length.
pub trait Field: Sized {
    fn put(&self, out: &mut Vec<u8>);

    /// Takes the value from the beginning of the bytes, where they are long enough.
    fn take(bytes: &mut &[u8]) -> Option<Self>;
}

macro_rules! number {
    ($($type:ty),*) => {$(
        impl Field for $type {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            fn take(bytes: &mut &[u8]) -> Option<Self> {
                let (first, rest) = bytes.split_first_chunk()?;
                *bytes = rest;
                Some(Self::from_le_bytes(*first))
            }
        }
    )*};
}

number!(u8, u16, u32, u64, i32, f32);

impl Field for () {
    fn put(&self, _: &mut Vec<u8>) {}

    fn take(_: &mut &[u8]) -> Option<Self> {
        Some(())
    }
}

impl<T: Field + Copy + Default, const N: usize> Field for [T; N] {
    fn put(&self, out: &mut Vec<u8>) {
        for value in self {
            value.put(out);
        }
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        let mut all = [T::default(); N];
        for value in &mut all {
            *value = T::take(bytes)?;
        }
        Some(all)
    }
}
