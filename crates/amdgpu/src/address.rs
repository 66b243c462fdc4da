use std::fmt;
use std::str::FromStr;

/// A PCI address: `0000:64:00.0`. The domain has 16 bits on most machines and more behind Intel's VMD.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    pub domain: u32,
    pub bus: u8,
    pub device: u8,
    pub function: u8,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}:{:02x}:{:02x}.{}", self.domain, self.bus, self.device, self.function)
    }
}

/// What was read is not a PCI address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a PCI address like 0000:64:00.0")]
pub struct AddressError(String);

impl FromStr for Address {
    type Err = AddressError;

    /// Reads `DDDD:BB:DD.F`, or `BB:DD.F` for domain 0 as lspci prints it, in either case.
    fn from_str(text: &str) -> Result<Self, AddressError> {
        parse(text).ok_or_else(|| AddressError(text.chars().take(40).collect()))
    }
}

fn parse(text: &str) -> Option<Address> {
    let (rest, function) = text.rsplit_once('.')?;
    let (rest, device) = rest.rsplit_once(':')?;
    let (domain, bus) = rest.rsplit_once(':').unwrap_or(("0000", rest));
    let in_range =
        (4..=8).contains(&domain.len()) && bus.len() == 2 && device.len() == 2 && function.len() == 1;
    let hexadecimal =
        [domain, bus, device, function].iter().all(|s| s.bytes().all(|b| b.is_ascii_hexdigit()));
    if !in_range || !hexadecimal {
        return None;
    }
    let address = Address {
        domain: u32::from_str_radix(domain, 16).ok()?,
        bus: u8::from_str_radix(bus, 16).ok()?,
        device: u8::from_str_radix(device, 16).ok()?,
        function: u8::from_str_radix(function, 16).ok()?,
    };
    (address.device < 32 && address.function < 8).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_the_kernel_and_lspci_write_them_and_nothing_else_is() {
        for (text, shown) in [
            ("0000:64:00.0", "0000:64:00.0"),
            ("64:00.0", "0000:64:00.0"),
            ("0001:C1:1f.7", "0001:c1:1f.7"),
            ("10000:e1:00.0", "10000:e1:00.0"),
        ] {
            assert_eq!(text.parse::<Address>().map(|a| a.to_string()).as_deref(), Ok(shown));
        }
        for text in [
            "",
            "64:00",
            "0000:64:20.0",
            "0000:64:00.8",
            "0000:+4:00.0",
            "../..",
            "0000:64:00.0 ",
            "0:64:00.0",
        ] {
            assert!(text.parse::<Address>().is_err(), "{text:?}");
        }
    }
}
