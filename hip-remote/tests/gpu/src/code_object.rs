//! Code objects: which of a bundle is for this GPU, their segments in memory, their kernels and their variables.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::isa::Instruction;
use crate::memory::{self, Kind};
use crate::metadata;
use crate::status::{INVALID_IMAGE, NO_BINARY_FOR_GPU, Status};

/// The name of this GPU's architecture, and the features that its code may name.
const ARCHITECTURE: &str = "gfx90a";
const BUNDLE: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
/// EF_AMDGPU_MACH_AMDGCN_GFX90A.
const MACHINE_FLAGS: u32 = 0x3f;

/// Instructions, each decoded when a wave first comes to it.
pub struct Code {
    pub start: u64,
    words: Vec<u32>,
    decoded: Vec<OnceLock<Option<Instruction>>>,
}

impl Code {
    /// The instruction at an address, or the words there that are none.
    pub fn at(&self, address: u64) -> Result<&Instruction, String> {
        let at = address.wrapping_sub(self.start);
        let words =
            at.is_multiple_of(4).then(|| self.words.get((at / 4) as usize..)).flatten().unwrap_or(&[]);
        let Some(first) = words.first() else {
            return Err(format!("a wave came to {address:#x}, where the module has no code"));
        };
        let decoded = self.decoded[(at / 4) as usize].get_or_init(|| Instruction::decode(words));
        decoded.as_ref().ok_or_else(|| {
            let second = words.get(1).copied().unwrap_or(0);
            format!("this interpreter does not know the instruction {first:#010x} {second:#010x}; add it to hip-remote/tests/gpu/src/isa")
        })
    }
}

/// A kernel's descriptor of 64 bytes (LLVM, "Kernel Descriptor").
#[derive(Clone, Copy, Debug, Default)]
pub struct Descriptor {
    pub local: usize,
    pub scratch: usize,
    pub user_registers: u32,
    pub resources: u32,
    pub properties: u32,
    pub vectors: usize,
    pub accumulators: usize,
}

pub struct Kernel {
    pub meta: metadata::Kernel,
    pub descriptor: Descriptor,
    pub entry: u64,
    /// Where its descriptor is, which packets name.
    pub object: u64,
    pub code: Arc<Code>,
    pub device: usize,
}

pub struct Module {
    pub kernels: HashMap<String, Arc<Kernel>>,
    pub variables: HashMap<String, (u64, u64)>,
    start: u64,
}

impl Drop for Module {
    fn drop(&mut self) {
        let _ = memory::memory().free(self.start, Kind::Code);
    }
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<usize> {
    number(bytes, at).map(|bytes| usize::from(u16::from_le_bytes(bytes)))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    number(bytes, at).map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<usize> {
    number(bytes, at).map(|bytes| u64::from_le_bytes(bytes) as usize)
}

/// A copy of the code object for this GPU, at a pointer to one or to a bundle of them.
///
/// # Safety
/// The pointer must be to one of both, as long as its headers say.
pub unsafe fn image(pointer: *const u8) -> Result<Vec<u8>, Status> {
    let bytes = |at: usize, length: usize| unsafe { std::slice::from_raw_parts(pointer.add(at), length) };
    if bytes(0, 4) == b"\x7fELF" {
        let header = bytes(0, 64);
        let sections = || Some(u64_at(header, 40)? + u16_at(header, 58)? * u16_at(header, 60)?);
        return Ok(bytes(0, sections().ok_or(INVALID_IMAGE)?).to_vec());
    }
    if bytes(0, BUNDLE.len()) != BUNDLE {
        return Err(INVALID_IMAGE);
    }
    let word = |at: usize| u64_at(bytes(at, 8), 0).unwrap_or(0);
    let mut at = BUNDLE.len() + 8;
    for _ in 0..word(BUNDLE.len()) {
        let (offset, length, name_length) = (word(at), word(at + 8), word(at + 16));
        let name = String::from_utf8_lossy(bytes(at + 24, name_length));
        at += 24 + name_length;
        let target = name.rsplit("--").next().unwrap_or("");
        let (architecture, features) = target.split_once(':').unwrap_or((target, ""));
        if architecture == ARCHITECTURE && !features.contains("xnack+") && !features.contains("sramecc-") {
            return Ok(bytes(offset, length).to_vec());
        }
    }
    Err(NO_BINARY_FOR_GPU)
}

struct Symbol {
    name: String,
    kind: u8,
    value: usize,
    size: usize,
}

struct Section {
    kind: u32,
    link: usize,
    offset: usize,
    size: usize,
    entry: usize,
}

/// What there is to read of an ELF file.
struct Elf<'a> {
    bytes: &'a [u8],
    sections: Vec<Section>,
}

impl<'a> Elf<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (offset, size, count) = (u64_at(bytes, 40)?, u16_at(bytes, 58)?, u16_at(bytes, 60)?);
        let section = |i: usize| {
            let at = offset + i * size;
            Some(Section {
                kind: u32_at(bytes, at + 4)?,
                link: u32_at(bytes, at + 40)? as usize,
                offset: u64_at(bytes, at + 24)?,
                size: u64_at(bytes, at + 32)?,
                entry: u64_at(bytes, at + 56)?.max(1),
            })
        };
        Some(Self { bytes, sections: (0..count).map(section).collect::<Option<_>>()? })
    }

    fn of_kind(&self, kind: u32) -> impl Iterator<Item = &Section> {
        self.sections.iter().filter(move |section| section.kind == kind)
    }

    fn entries(&self, section: &Section) -> impl Iterator<Item = usize> {
        let (offset, entry) = (section.offset, section.entry);
        (0..section.size / entry).map(move |i| offset + i * entry)
    }

    /// The symbols that a loader sees.
    fn symbols(&self) -> Option<Vec<Symbol>> {
        let table = self.of_kind(11).next()?;
        let names = self.sections.get(table.link)?;
        self.entries(table)
            .map(|at| {
                let name = names.offset + u32_at(self.bytes, at)? as usize;
                let rest = self.bytes.get(name..)?;
                let name = rest.split(|byte| *byte == 0).next()?;
                Some(Symbol {
                    name: String::from_utf8_lossy(name).into_owned(),
                    kind: *self.bytes.get(at + 4)? & 15,
                    value: u64_at(self.bytes, at + 8)?,
                    size: u64_at(self.bytes, at + 16)?,
                })
            })
            .collect()
    }

    /// The note of AMDGPU (type 32) that has the metadata.
    fn metadata(&self) -> Option<&'a [u8]> {
        for section in self.of_kind(7) {
            let mut at = section.offset;
            while at + 12 <= section.offset + section.size {
                let [name, length, kind] = [0, 4, 8].map(|offset| u32_at(self.bytes, at + offset));
                let (name, length) = (name? as usize, length? as usize);
                let description = at + 12 + name.next_multiple_of(4);
                if kind? == 32 {
                    return self.bytes.get(description..description.checked_add(length)?);
                }
                at = description + length.next_multiple_of(4);
            }
        }
        None
    }
}

impl Module {
    /// Loads a code object into a device's memory.
    pub fn load(bytes: &[u8], device: usize) -> Result<Self, Status> {
        // EM_AMDGPU, and the architecture of this GPU.
        if u16_at(bytes, 18) != Some(224) {
            return Err(INVALID_IMAGE);
        }
        if u32_at(bytes, 48).is_none_or(|flags| flags & 0xff != MACHINE_FLAGS) {
            return Err(NO_BINARY_FOR_GPU);
        }
        Self::parse(bytes, device).ok_or(INVALID_IMAGE)?
    }

    fn parse(bytes: &[u8], device: usize) -> Option<Result<Self, Status>> {
        let elf = Elf::parse(bytes)?;
        let (offset, size, count) = (u64_at(bytes, 32)?, u16_at(bytes, 54)?, u16_at(bytes, 56)?);
        let mut segments = Vec::new();
        for at in (0..count).map(|i| offset + i * size) {
            if u32_at(bytes, at)? == 1 {
                let [from, address, in_file, in_memory] =
                    [8, 16, 32, 40].map(|field| u64_at(bytes, at + field));
                let executable = u32_at(bytes, at + 4)? & 1 == 1;
                segments.push((
                    bytes.get(from?..from?.checked_add(in_file?)?)?,
                    address?,
                    in_memory?,
                    executable,
                ));
            }
        }
        let whole = segments.iter().map(|(_, address, length, _)| address + length).max()?;
        if whole > 1 << 30 {
            return None;
        }
        let mut image = vec![0u8; whole];
        for (content, address, _, _) in &segments {
            image.get_mut(*address..address + content.len())?.copy_from_slice(content);
        }
        let symbols = elf.symbols()?;
        let start = match memory::memory().allocate(device, whole as u64, Kind::Code) {
            Ok(start) => start,
            Err(status) => return Some(Err(status)),
        };
        // From here on the memory is the module's, which frees it.
        let mut module = Module { kernels: HashMap::new(), variables: HashMap::new(), start };
        for section in elf.of_kind(4) {
            for at in elf.entries(section) {
                let (place, info, addend) =
                    (u64_at(bytes, at)?, u64_at(bytes, at + 8)?, u64_at(bytes, at + 16)?);
                let symbol = symbols.get(info >> 32)?;
                // R_AMDGPU_ABS64 and R_AMDGPU_RELATIVE64.
                let value = match info & 0xffff_ffff {
                    3 => start + (symbol.value.wrapping_add(addend)) as u64,
                    13 => start + addend as u64,
                    _ => return None,
                };
                image.get_mut(place..place + 8)?.copy_from_slice(&value.to_le_bytes());
            }
        }
        let (_, address, length, _) = segments.iter().find(|(.., executable)| *executable)?;
        let words: Vec<u32> = image
            .get(*address..address + length)?
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
            .collect();
        let decoded = words.iter().map(|_| OnceLock::new()).collect();
        let code = Arc::new(Code { start: start + *address as u64, words, decoded });
        for meta in metadata::kernels(elf.metadata()?)? {
            let descriptor = symbols.iter().find(|symbol| symbol.name == meta.symbol)?.value;
            let entry = (start as usize + descriptor).wrapping_add(u64_at(&image, descriptor + 16)?) as u64;
            let kernel = Kernel {
                descriptor: Descriptor::parse(image.get(descriptor..descriptor + 64)?)?,
                entry,
                object: start + descriptor as u64,
                code: code.clone(),
                device,
                meta,
            };
            module.kernels.insert(kernel.meta.name.clone(), Arc::new(kernel));
        }
        // STT_OBJECT, but for the descriptors of kernels.
        for symbol in symbols.iter().filter(|symbol| symbol.kind == 1 && !symbol.name.ends_with(".kd")) {
            module.variables.insert(symbol.name.clone(), (start + symbol.value as u64, symbol.size as u64));
        }
        // The allocation is as long as the image.
        unsafe { std::ptr::copy_nonoverlapping(image.as_ptr(), start as *mut u8, image.len()) };
        Some(Ok(module))
    }
}

impl Descriptor {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let resources1 = u32_at(bytes, 48)?;
        // Registers come in groups of eight, and accumulation registers begin at a multiple of four (gfx90a).
        let vectors = ((resources1 & 0x3f) as usize + 1) * 8;
        let accumulators = ((u32_at(bytes, 44)? & 0x3f) as usize + 1) * 4;
        Some(Self {
            local: u32_at(bytes, 0)? as usize,
            scratch: u32_at(bytes, 4)? as usize,
            user_registers: u32_at(bytes, 52)? >> 1 & 0x1f,
            resources: u32_at(bytes, 52)?,
            properties: u32_at(bytes, 56)? & 0xffff,
            vectors,
            accumulators,
        })
    }
}
