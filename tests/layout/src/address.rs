use std::fmt;
use std::str::FromStr;

use crate::Error;

/// A PCI function's address, written as the kernel writes it: `0000:64:00.0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// PCI domain (segment): 16 bits, and more behind Intel's VMD.
    pub domain: u32,
    /// Bus number.
    pub bus: u8,
    /// Device number, at most 31.
    pub device: u8,
    /// Function number, at most 7.
    pub function: u8,
}

impl Address {
    /// KFD's `location_id`: bus in bits 15:8, device in 7:3, function in 2:0
    /// (`pci_dev_id()`, as kfd_topology.c stores it). The domain is a property of its own.
    pub fn location_id(self) -> u64 {
        u64::from(self.bus) << 8 | u64::from(self.device) << 3 | u64::from(self.function)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}:{:02x}:{:02x}.{:x}", self.domain, self.bus, self.device, self.function)
    }
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        parse(text).ok_or_else(|| Error::Address { given: text.to_owned() })
    }
}

fn parse(text: &str) -> Option<Address> {
    let (domain, rest) = text.split_once(':')?;
    let (bus, rest) = rest.split_once(':')?;
    let (device, function) = rest.split_once('.')?;
    let widths = [(domain, 4..=8), (bus, 2..=2), (device, 2..=2), (function, 1..=1)];
    let written_as_the_kernel_does = widths
        .iter()
        .all(|(part, width)| width.contains(&part.len()) && part.bytes().all(|b| b.is_ascii_hexdigit()));
    let address = Address {
        domain: u32::from_str_radix(domain, 16).ok()?,
        bus: u8::from_str_radix(bus, 16).ok()?,
        device: u8::from_str_radix(device, 16).ok()?,
        function: u8::from_str_radix(function, 16).ok()?,
    };
    (written_as_the_kernel_does && address.device < 32 && address.function < 8).then_some(address)
}

#[cfg(test)]
mod tests {
    use super::Address;

    #[test]
    fn an_address_is_read_as_the_kernel_writes_it_and_nothing_else() {
        for (text, location_id) in [
            ("0000:64:00.0", Some(25600)),
            ("10000:e1:00.0", Some(57600)),
            ("0001:c7:1f.7", Some(0xc7ff)),
            ("0000:05:00.1", Some(1281)),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!((address.to_string().as_str(), Some(address.location_id())), (text, location_id));
        }
        for text in
            ["", "64:00.0", "0000:64:00", "0000:64:20.0", "0000:64:00.8", "0000:64:0.0", "000g:64:00.0"]
        {
            assert!(text.parse::<Address>().is_err(), "{text:?} was taken for an address");
        }
    }
}
