//! A code object's kernels, and how their arguments lie in memory: LLVM's metadata of code objects 3 to 6.

use rmpv::Value;
use rmpv::decode::read_value_with_max_depth;

use crate::{Refused, elf, malformed};

/// The note that has the metadata (AMDGPUUsage, Note Records).
const VENDOR: &str = "AMDGPU";
const NT_AMDGPU_METADATA: u32 = 32;

/// The metadata nests six deep, and rmpv counts two or three for a level.
const MAX_DEPTH: usize = 32;

/// A kernel's metadata has some 1,500 bytes, and a library thousands of kernels. Hostile nesting takes 170 bytes of memory
/// for each byte.
const MAX_METADATA: usize = 16 * 1024 * 1024;

/// More bytes of arguments than any GPU takes. A launch carries them in one message.
const MAX_ARGUMENTS: u64 = 64 * 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// As `__hipRegisterFunction` and `hipModuleGetFunction` name it.
    pub name: String,
    /// In the order of the program's parameters, without those that the runtime adds.
    pub arguments: Vec<Argument>,
    /// The bytes from the first argument's beginning to the last one's end.
    pub arguments_size: usize,
    /// What the kernel was compiled for; 0 where the metadata does not say.
    pub max_threads_per_block: u32,
    /// Of `__shared__` variables with a fixed size, in bytes.
    pub shared: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument {
    pub offset: usize,
    pub size: usize,
}

/// All kernels of a code object.
///
/// # Errors
/// The metadata is missing, is of code object 2, or contradicts itself.
pub fn kernels(code_object: &[u8]) -> Result<Vec<Kernel>, Refused> {
    let mut note = elf::note(code_object, VENDOR, NT_AMDGPU_METADATA)?.ok_or_else(|| {
        malformed("the code object has no metadata of version 3 or later: build it with ROCm 3.5 or later")
    })?;
    if note.len() > MAX_METADATA {
        return Err(malformed(format!("the code object's metadata has {} bytes", note.len())));
    }
    let metadata = read_value_with_max_depth(&mut note, MAX_DEPTH)
        .map_err(|_| malformed("the code object's metadata is no MessagePack"))?;
    // A code object may hold variables alone.
    metadata["amdhsa.kernels"].as_array().into_iter().flatten().map(kernel).collect()
}

fn kernel(metadata: &Value) -> Result<Kernel, Refused> {
    let name =
        metadata[".name"].as_str().ok_or_else(|| malformed("a kernel of the code object has no name"))?;
    let wrong = |what: &str| malformed(format!("the metadata of the kernel {name} {what}"));
    let number = |field: &str| metadata[field].as_u64();
    let segment = number(".kernarg_segment_size").ok_or_else(|| wrong("has no .kernarg_segment_size"))?;
    if segment > MAX_ARGUMENTS {
        return Err(wrong(&format!("asks for {segment} bytes of arguments")));
    }
    let mut arguments = Vec::new();
    for argument in metadata[".args"].as_array().into_iter().flatten() {
        if argument[".value_kind"].as_str().is_some_and(|kind| kind.starts_with("hidden_")) {
            continue;
        }
        let (Some(offset), Some(size)) = (argument[".offset"].as_u64(), argument[".size"].as_u64()) else {
            return Err(wrong("has an argument without .offset or .size"));
        };
        if offset.checked_add(size).is_none_or(|end| end > segment) {
            return Err(wrong(&format!("has an argument at {offset} of {size} bytes in {segment}")));
        }
        let narrow = |number| usize::try_from(number).map_err(|_| wrong("has too large an argument"));
        arguments.push(Argument { offset: narrow(offset)?, size: narrow(size)? });
    }
    let clamped = |field: &str| u32::try_from(number(field).unwrap_or_default()).unwrap_or(u32::MAX);
    Ok(Kernel {
        name: name.to_owned(),
        arguments_size: arguments.iter().map(|argument| argument.offset + argument.size).max().unwrap_or(0),
        arguments,
        max_threads_per_block: clamped(".max_flat_workgroup_size"),
        shared: clamped(".group_segment_fixed_size"),
    })
}

impl Kernel {
    /// Appends the arguments, laid out as the kernel reads them. `fill` is asked for each argument's bytes by its number.
    pub fn lay_out(&self, out: &mut Vec<u8>, mut fill: impl FnMut(usize, &mut [u8])) {
        let begin = out.len();
        out.resize(begin + self.arguments_size, 0);
        let Some(all) = out.get_mut(begin..) else {
            return;
        };
        for (number, argument) in self.arguments.iter().enumerate() {
            if let Some(bytes) = all.get_mut(argument.offset..argument.offset + argument.size) {
                fill(number, bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of one segment: a note with this metadata.
    fn code_object(metadata: &[u8]) -> Vec<u8> {
        let length = u32::try_from(metadata.len()).unwrap();
        let note = [
            &7_u32.to_le_bytes(),
            &length.to_le_bytes(),
            &32_u32.to_le_bytes(),
            b"AMDGPU\0\0".as_slice(),
            metadata,
        ];
        let note = note.concat();
        let mut file = vec![0; 64 + 56];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        file[18] = 224;
        // The table of segments, its entries' size and their count; then a segment's type, place and size.
        for (at, byte) in [(32, 64), (54, 56), (56, 1), (64, 4), (64 + 8, 64 + 56)] {
            file[at] = byte;
        }
        file[64 + 32..64 + 40].copy_from_slice(&(note.len() as u64).to_le_bytes());
        file.extend(note);
        file
    }

    #[test]
    fn metadata_that_announces_more_than_it_holds_or_nests_without_end_is_refused_at_once() {
        assert_eq!(kernels(&code_object(b"\x81\xaeamdhsa.kernels\x90")), Ok(Vec::new()));
        // A map, an array, text and bytes of 2^32 - 1.
        let announced = [0xdf, 0xdd, 0xdb, 0xc6].map(|marker| vec![marker, 0xff, 0xff, 0xff, 0xff]);
        let nested = [vec![0x91; 1_000_000], announced.concat().repeat(100_000)];
        for metadata in announced.iter().chain(&nested) {
            let refused = kernels(&code_object(metadata)).unwrap_err().to_string();
            assert_eq!(refused, "the code object's metadata is no MessagePack");
        }
    }

    #[test]
    fn more_metadata_than_a_library_has_is_refused_before_it_is_read() {
        let refused = kernels(&code_object(&vec![0xc0; MAX_METADATA + 4])).unwrap_err().to_string();
        assert_eq!(refused, "the code object's metadata has 16777220 bytes");
    }
}
