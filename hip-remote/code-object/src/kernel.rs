//! A code object's kernels, and how their arguments lie in memory: LLVM's metadata of code objects 3 to 6.

use crate::elf;
use crate::msgpack::{self, Value};
use crate::{Refused, malformed};

/// The note that has the metadata (AMDGPUUsage, Note Records).
const VENDOR: &str = "AMDGPU";
const NT_AMDGPU_METADATA: u32 = 32;

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
    let note = elf::note(code_object, VENDOR, NT_AMDGPU_METADATA)?.ok_or_else(|| {
        malformed("the code object has no metadata of version 3 or later: build it with ROCm 3.5 or later")
    })?;
    let metadata =
        msgpack::parse(note).ok_or_else(|| malformed("the code object's metadata is no MessagePack"))?;
    // A code object may hold variables alone.
    let kernels = metadata.get("amdhsa.kernels").and_then(Value::array).unwrap_or_default();
    kernels.iter().map(kernel).collect()
}

fn kernel(metadata: &Value) -> Result<Kernel, Refused> {
    let name = metadata
        .get(".name")
        .and_then(Value::text)
        .ok_or_else(|| malformed("a kernel of the code object has no name"))?;
    let wrong = |what: &str| malformed(format!("the metadata of the kernel {name} {what}"));
    let number = |field: &str| metadata.get(field).and_then(Value::number);
    let segment = number(".kernarg_segment_size").ok_or_else(|| wrong("has no .kernarg_segment_size"))?;
    if segment > MAX_ARGUMENTS {
        return Err(wrong(&format!("asks for {segment} bytes of arguments")));
    }
    let mut arguments = Vec::new();
    for argument in metadata.get(".args").and_then(Value::array).unwrap_or_default() {
        let kind = argument.get(".value_kind").and_then(Value::text).unwrap_or_default();
        if kind.starts_with("hidden_") {
            continue;
        }
        let field = |name| argument.get(name).and_then(Value::number);
        let (Some(offset), Some(size)) = (field(".offset"), field(".size")) else {
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
