//! What a device is, from the struct that the worker's library filled.

use hip_abi::properties::{self, Layout};

use crate::error::{HipError, Outcome};

/// `hipDeviceProp_t` of a device.
pub struct Properties {
    layout: Layout,
    bytes: Vec<u8>,
}

impl Properties {
    /// # Errors
    /// The layout is none that is known, or the struct is too short for it.
    pub fn new(layout: u32, bytes: Vec<u8>) -> Outcome<Self> {
        let layout = Layout::of_number(layout).ok_or(HipError::INVALID_DEVICE)?;
        if bytes.len() < layout.size() {
            return Err(HipError::INVALID_DEVICE);
        }
        Ok(Self { layout, bytes })
    }

    /// The struct as a program of this layout sees it.
    ///
    /// # Errors
    /// The struct cannot be shown so.
    pub fn shown(&self, layout: Layout) -> Outcome<Vec<u8>> {
        properties::converted(self.layout, &self.bytes, layout).ok_or(HipError::INVALID_DEVICE)
    }

    /// The device's target, such as `gfx90a:sramecc+:xnack-`.
    ///
    /// # Errors
    /// The worker's library names none.
    pub fn target(&self) -> Outcome<String> {
        match String::from_utf8(self.text("gcnArchName")?.to_vec()) {
            Ok(name) if !name.is_empty() => Ok(name),
            _ => Err(HipError::INVALID_DEVICE),
        }
    }

    /// # Errors
    /// The worker's library has no such field.
    pub fn text(&self, field: &str) -> Outcome<&[u8]> {
        Ok(self.field(field)?.split(|byte| *byte == 0).next().unwrap_or_default())
    }

    /// # Errors
    /// The worker's library has no such field.
    pub fn int(&self, field: &str) -> Outcome<i32> {
        let bytes = self.field(field)?.first_chunk().ok_or(HipError::NOT_SUPPORTED)?;
        Ok(i32::from_ne_bytes(*bytes))
    }

    /// # Errors
    /// The worker's library has no such field.
    pub fn size(&self, field: &str) -> Outcome<usize> {
        let bytes = self.field(field)?.first_chunk().ok_or(HipError::NOT_SUPPORTED)?;
        Ok(usize::from_ne_bytes(*bytes))
    }

    /// # Errors
    /// The worker's library has no such field.
    pub fn field(&self, field: &str) -> Outcome<&[u8]> {
        let range = properties::range(self.layout, field).ok_or(HipError::NOT_SUPPORTED)?;
        self.bytes.get(range).ok_or(HipError::NOT_SUPPORTED)
    }

    /// How many wishes of a program, given as the struct in a layout, the device fulfils. A wish is a field that is not 0.
    pub fn fulfilled(&self, layout: Layout, wished: &[u8]) -> usize {
        const WISHES: [&str; 6] = [
            "major",
            "minor",
            "maxThreadsPerBlock",
            "multiProcessorCount",
            "clockRate",
            "maxThreadsPerMultiProcessor",
        ];
        let wish = |field: &str| {
            let bytes = wished.get(properties::range(layout, field)?)?.first_chunk()?;
            Some(i32::from_ne_bytes(*bytes)).filter(|wish| *wish != 0)
        };
        let fulfils =
            |field: &str| wish(field).is_some_and(|wish| self.int(field).is_ok_and(|has| has >= wish));
        WISHES.into_iter().filter(|field| fulfils(field)).count()
    }
}
