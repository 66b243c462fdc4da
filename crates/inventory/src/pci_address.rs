//! PCI addresses.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Where a PCI function is: `domain:bus:device.function`, as `/sys/bus/pci/devices` names it.
///
/// Ordered as the kernel lists functions. The domain has more than 16 bits where a host bridge is
/// virtual (Intel VMD counts from 0x10000).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PciAddress {
    pub domain: u32,
    pub bus: u8,
    /// 0 to 31.
    pub device: u8,
    /// 0 to 7.
    pub function: u8,
}

impl PciAddress {
    /// Reads `0000:64:00.0`, in any case, or `64:00.0`, which is in domain 0 as for `lspci`.
    /// Each part has the digits that the kernel writes, so that no text that only resembles an address is one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (rest, [b0, b1, b':', d0, d1, b'.', function]) = text.as_bytes().split_last_chunk()? else {
            return None;
        };
        let domain = match rest {
            [] => 0,
            [domain @ .., b':'] if (4..=8).contains(&domain.len()) => hex(domain)?,
            _ => return None,
        };
        let byte = |digits: &[u8]| u8::try_from(hex(digits)?).ok();
        let address = Self {
            domain,
            bus: byte(&[*b0, *b1])?,
            device: byte(&[*d0, *d1])?,
            function: byte(&[*function])?,
        };
        (address.device < 32 && address.function < 8).then_some(address)
    }
}

impl FromStr for PciAddress {
    type Err = NoPciAddress;

    /// Parses as [`Self::parse`] does.
    fn from_str(text: &str) -> Result<Self, NoPciAddress> {
        Self::parse(text).ok_or_else(|| NoPciAddress(text.chars().take(40).collect()))
    }
}

/// A text that is not the address of a PCI function: its first 40 characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoPciAddress(String);

impl fmt::Display for NoPciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a PCI address like 0000:64:00.0", self.0)
    }
}

impl std::error::Error for NoPciAddress {}

/// A hexadecimal number of at most eight digits.
fn hex(digits: &[u8]) -> Option<u32> {
    let mut number = 0;
    for digit in digits {
        number = number << 4 | char::from(*digit).to_digit(16)?;
    }
    Some(number)
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { domain, bus, device, function } = self;
        write!(f, "{domain:04x}:{bus:02x}:{device:02x}.{function:x}")
    }
}

impl Serialize for PciAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_string())
    }
}

impl<'de> Deserialize<'de> for PciAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            de::Error::invalid_value(de::Unexpected::Str(&text), &"a PCI address like 0000:64:00.0")
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::PciAddress;

    /// Domains on both sides of 0xffff as often as each other.
    fn addresses() -> impl Strategy<Value = PciAddress> {
        let domain = prop_oneof![Just(0), 0..=0xffff_u32, Just(0xffff), Just(0x1_0000), any::<u32>()];
        (domain, any::<u8>(), 0..32_u8, 0..8_u8).prop_map(|(domain, bus, device, function)| PciAddress {
            domain,
            bus,
            device,
            function,
        })
    }

    proptest! {
        /// Serialize spells an address by itself.
        #[test]
        fn an_address_is_the_same_text_in_json_and_for_a_person_and_both_are_read(address in addresses()) {
            let text = address.to_string();
            prop_assert_eq!(serde_json::to_string(&address).unwrap(), format!("\"{text}\""));
            prop_assert_eq!(PciAddress::parse(&text), Some(address));
            prop_assert_eq!(serde_json::from_str::<PciAddress>(&format!("\"{text}\"")).unwrap(), address);
        }
    }

    #[test]
    fn reads_the_addresses_that_the_kernel_writes_and_nothing_else() {
        let table = [
            ("0000:64:00.0", Some("0000:64:00.0")),
            ("64:00.0", Some("0000:64:00.0")),
            ("0000:C1:1F.7", Some("0000:c1:1f.7")),
            ("10000:e1:00.0", Some("10000:e1:00.0")),
            ("ffffffff:00:00.0", Some("ffffffff:00:00.0")),
            ("1ffffffff:00:00.0", None),
            ("000:64:00.0", None),
            ("0000:64:20.0", None),
            ("0000:64:00.8", None),
            ("0000:64:00", None),
            ("0000:640:00.0", None),
            ("0000:+4:00.0", None),
            ("0000:6 :00.0", None),
            ("0000:64:00.0.0", None),
            (":64:00.0", None),
            ("00:0000:64:00.0", None),
            ("", None),
        ];
        for (text, expected) in table {
            let read = PciAddress::parse(text).map(|address| address.to_string());
            assert_eq!(read.as_deref(), expected, "{text:?}");
        }
    }
}
